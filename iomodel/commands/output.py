"""What the command line prints: an answer as a table or as one JSON object, an error as one line."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

PIPE_WIDTH = 120
"""Columns of a table that does not go to a terminal, unless COLUMNS says otherwise."""

LONGEST = 300
"""What the option parser says repeats what was typed, however long that is [characters]."""


class ReaderLeftError(Exception):
    """Whoever read our output has stopped; no OSError, which the option parser would answer with its own exit."""


def emit(answer: Any, as_json: bool = False) -> None:
    """Print an answer: its `to_dict` (or a dict itself) as one JSON object, or a text or table for people."""
    if as_json:
        plain = answer if isinstance(answer, dict) else answer.to_dict()
        _write(json.dumps(plain, indent=2, allow_nan=False))
    else:
        _write(answer if isinstance(answer, str) else _drawn(answer))


def _drawn(answer: Any) -> str:
    """The table as text: colours and the terminal's width only where there is a terminal."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    width = None if terminal or "COLUMNS" in os.environ else PIPE_WIDTH
    console = Console(width=width, color_system="auto" if terminal else None, force_terminal=terminal)
    with console.capture() as capture:
        console.print(answer)
    return "\n".join(line if terminal else line.rstrip() for line in capture.get().rstrip().splitlines())


def _write(text: str) -> None:
    """Write and flush at once, so that a reader that has left is noticed here; no character is refused."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the last flush of the interpreter goes here
        raise ReaderLeftError from None


def complain(message: object) -> None:
    """One line on stderr, whatever the message holds."""
    line = " ".join(str(message).split())
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(f"iomodel: {shown.encode(encoding, 'backslashreplace').decode(encoding)}\n")


def usage_fault(error: Any) -> str:
    """The one line for an error of the option parser: what is wrong and where the allowed names stand."""
    message = str(error.format_message()).rstrip(".")
    message = message if len(message) <= LONGEST else f"{message[: LONGEST - 3]}..."
    context = getattr(error, "ctx", None)
    if context is None:
        return str(message)
    commands, parameter = getattr(context.command, "commands", None), getattr(error, "param", None)
    missing = getattr(parameter, "help", None) if message.startswith("Missing") else None
    allowed = ", ".join(commands) if commands else missing or f"what '{context.command_path} --help' lists"
    return f"{message}; allowed: {allowed}"
