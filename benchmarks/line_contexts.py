"""Plugin for pytest that writes the lines each test runs as a coverage file with one context per test.

    python -m pytest -p benchmarks.line_contexts --junitxml=times.xml

It needs Python 3.12 or later: an event of `sys.monitoring` that was seen once in a test costs nothing afterwards, so a
run takes about as long as without it. `pytest --cov --cov-context=test` writes the same file on any Python, several
times more slowly. The file is `.coverage`, or the one that COVERAGE_FILE names.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest
from coverage import CoverageData

PACKAGE = str(Path(__file__).parent.parent / "iomodel") + os.sep
SAVED = 500
"""Tests between two writes: a run that is stopped loses fewer."""


class Lines:
    """The lines that each test ran, since they were last written."""

    def __init__(self) -> None:
        self.data = CoverageData(os.environ.get("COVERAGE_FILE", ".coverage"))
        self.data.erase()
        self.context = ""
        self.tests: dict[str, dict[str, set[int]]] = {}
        self.lines: dict[str, set[int]] = defaultdict(set)
        self.watch = sys.monitoring
        self.tool = self.watch.COVERAGE_ID
        self.watch.use_tool_id(self.tool, "line contexts")
        self.watch.register_callback(self.tool, self.watch.events.PY_START, self._start)
        self.watch.register_callback(self.tool, self.watch.events.LINE, self._line)
        self.watch.set_events(self.tool, self.watch.events.PY_START)

    def _start(self, code: CodeType, _: int) -> object:
        """Ask for the lines of a function of the package, and for nothing of any other."""
        if code.co_filename.startswith(PACKAGE):
            self.watch.set_local_events(self.tool, code, self.watch.events.LINE)
        return self.watch.DISABLE

    def _line(self, code: CodeType, line: int) -> object:
        self.lines[code.co_filename].add(line)
        return self.watch.DISABLE

    def begin(self, test: str) -> None:
        """Begin the context of a test, in which every event is seen anew."""
        self.tests[test] = self.lines = defaultdict(set)
        self.watch.restart_events()
        if len(self.tests) >= SAVED:
            self.save()

    def save(self) -> None:
        """Write the contexts of the tests that have ended."""
        for test, lines in self.tests.items():
            if lines is not self.lines:
                self.data.set_context(test)
                self.data.add_lines(lines)
        self.tests = {test: lines for test, lines in self.tests.items() if lines is self.lines}

    def end(self) -> None:
        """Write everything, and free the tool of `sys.monitoring`."""
        self.watch.set_events(self.tool, 0)
        self.watch.free_tool_id(self.tool)
        self.lines = {}
        self.save()


LINES = Lines()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Give each test its context, fixtures included."""
    LINES.begin(item.nodeid)
    return (yield)


def pytest_sessionfinish() -> None:
    """Write what is left."""
    LINES.end()
