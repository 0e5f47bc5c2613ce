"""What must hold of every input: an answer, or one line that names what is wrong, in time; nothing else changes."""

from __future__ import annotations

import io
import json
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from types import FrameType
from unittest.mock import patch

import typer.main

import iomodel
from iomodel.cli.app import main

LIMIT = 5.0
"""The longest that one input may compute [s]; a machine that does other things as well is given six times as long."""
LONGEST_LINE = 4000
"""An error that lists every device is long; a longer one repeats what it was given [characters]."""


class TooLongError(BaseException):
    """An input has taken longer than it may; no Exception, which the code under test might answer."""


class BrokenError(AssertionError):
    """A law does not hold."""


@dataclass(frozen=True)
class Case:
    """One input: what is called, and how it is told to whoever looks for the fault."""

    surface: str
    told: str
    run: Callable[[], str]


@contextmanager
def limited(seconds: float = LIMIT) -> Iterator[None]:
    """Raise TooLongError in whatever takes longer; without a limit where there are no such signals."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLongError(f"longer than {seconds:g} s")

    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    clocks = {signal.ITIMER_PROF: (signal.SIGPROF, seconds), signal.ITIMER_REAL: (signal.SIGALRM, 6 * seconds)}
    before = {number: signal.signal(number, ring) for number, _ in clocks.values()}
    for clock, (_, most) in clocks.items():
        signal.setitimer(clock, most)
    try:
        yield
    finally:
        for clock in clocks:
            signal.setitimer(clock, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def one_line(message: str, names: str = r"^[^:].*?: .") -> None:
    """An error of one printable line that begins with the name of what is at fault."""
    if not message or message.splitlines() != [message]:
        raise BrokenError(f"no single line: {message!r}")
    if not message.isprintable():
        raise BrokenError(f"control characters in {message!r}")
    if not re.search(names, message):
        raise BrokenError(f"names nothing: {message!r}")
    if len(message) > LONGEST_LINE:
        raise BrokenError(f"{len(message)} characters: {message[:100]!r}")


def answered(call: Callable[[], object]) -> str:
    """Call a function: "answered", or "refused" by an IOModelError."""
    try:
        call()
    except iomodel.IOModelError as error:
        one_line(str(error))
        return "refused"
    return "answered"


def exit_of(words: Sequence[str]) -> str:
    """Run a command line: "exit 0", "exit 1" or "exit 2", with what each of them prints."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("typer.main.get_command", _made):
        code = main(list(words))
    said = err.getvalue()
    if code == 0:
        if said:
            raise BrokenError(f"exit 0, and on stderr {said!r:.300}")
        if "--json" in words and not {"-h", "--help", "--version"} & set(words):
            json.loads(out.getvalue(), parse_constant=_refuse)
    elif code in (1, 2):
        if "--json" in words:
            json.loads(out.getvalue(), parse_constant=_refuse)
        elif out.getvalue():
            raise BrokenError(f"exit {code}, and on stdout {out.getvalue()!r:.300}")
        if not said.startswith("iomodel: ") or not said.endswith("\n"):
            raise BrokenError(f"exit {code} with {said!r:.300}")
        one_line(
            said.removeprefix("iomodel: ").removesuffix("\n"), r"^[^:].*?: .|^Option '-|^Got unexpected extra argument"
        )
    else:
        raise BrokenError(f"exit {code} with {said!r:.300}")
    return f"exit {code}"


_made = cache(typer.main.get_command)
"""The parser of the commands, made once: that takes longer than most commands."""


def _refuse(constant: str) -> None:
    raise BrokenError(f"{constant} in JSON")


def held(case: Case, seconds: float = LIMIT) -> tuple[str, BaseException | None]:
    """The outcome of a case, and what is wrong if the law does not hold."""
    try:
        with limited(seconds):
            return case.run(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever it is, it is a finding
        return "broken", error
