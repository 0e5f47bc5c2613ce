"""Chromium, and the page of a test file in it."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iomodel.explorer.built import kept
from tests.support.browser import Opened, chromium, opening

PAGES = Path(__file__).parents[2] / "build" / "explorer"
"""Where the installation of a wheel leaves the page."""


@pytest.fixture(scope="session")
def whole() -> Path:
    """The page of all calls and devices, built once for all processes of a test run, or left by an installation."""
    PAGES.mkdir(parents=True, exist_ok=True)
    with (PAGES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return kept(PAGES)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Callable[..., Opened]]:
    """Opens the page of the test file; it has complained of nothing, and asked for nothing but itself."""
    with opening(browser, file) as at:
        yield at
