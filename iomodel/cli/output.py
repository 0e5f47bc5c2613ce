"""Output of the command line: tables, JSON objects, and one-line errors."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from iomodel.common.headers import package_version, schema_named
from iomodel.errors import InputError

PIPE_WIDTH = 120
"""Width of tables outside a terminal, unless COLUMNS is set."""


READING = "docs/reading-an-answer.md"
"""The page that explains the lines of tables."""


class ReaderLeftError(Exception):
    """The reader of the output has closed the pipe. Not an OSError, which the option parser would handle."""


def emit(answer: Any, as_json: bool = False, *, explained: bool = False, kind: str | None = None) -> None:
    """Print a result: its `to_dict`, or a dict of a kind, as one JSON object with its schema, or a text or table.

    In a terminal the last line of a table that a page explains names the page.
    """
    try:
        if as_json:
            _write(json.dumps(_headed(answer, kind), indent=2, allow_nan=False))
        else:
            _write(answer if isinstance(answer, str) else _drawn(answer))
            if explained and sys.stdout.isatty():
                _write(f"\nwhat each line means: {READING}")
    except BrokenPipeError:
        _discard()
        raise ReaderLeftError from None
    except OSError as error:
        _discard()
        raise InputError(
            f"output: the answer cannot be printed ({error.strerror}); allowed: a terminal, or a disk with space"
        ) from None


def _headed(answer: Any, kind: str | None) -> dict[str, Any]:
    """Return plain data; those of a kind begin with its schema and the version."""
    plain: dict[str, Any] = answer if isinstance(answer, dict) else answer.to_dict()
    header = {} if kind is None else {"schema": schema_named(kind), "iomodel": package_version()}
    return header | plain


def _drawn(answer: Any) -> str:
    """Render a table as text; colours and the terminal's width apply only to a terminal."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    width = None if terminal or "COLUMNS" in os.environ else PIPE_WIDTH
    console = Console(
        emoji=False, width=width, color_system="auto" if terminal else None, force_terminal=terminal, highlight=False
    )
    with console.capture() as capture:
        console.print(answer)
    return "\n".join(line if terminal else line.rstrip() for line in capture.get().rstrip().splitlines())


def _write(text: str) -> None:
    """Write and flush, so that a closed pipe is noticed here; replace characters that cannot be encoded."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def _discard() -> None:
    """Give the interpreter's last flush a target."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: object) -> None:
    """Print one line on stderr."""
    line = " ".join(str(message).split())
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(f"iomodel: {shown.encode(encoding, 'backslashreplace').decode(encoding)}\n")


def refuse(message: object, kind: str, as_json: bool) -> None:
    """Print a refusal as one line on stderr, and with `--json` as one object on stdout too."""
    complain(message)
    if as_json:
        error = {"code": kind, "message": " ".join(str(message).split())}
        emit({"error": error}, as_json=True, kind="error")
