"""Chromium, and the page of a test file in it."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iomodel.explorer.built import whole_page
from tests.support.browser import Opened, chromium, opening
from tests.support.inside import derived

BUILD = Path(__file__).parents[2] / "build"


@pytest.fixture(scope="session")
def whole() -> Path:
    """The page of all calls and devices, built once for all processes of a test run, or kept from an earlier one."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "explorer.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patch.setattr(derived, "pending", {})
        page = whole_page()
        derived.keep()
        file = BUILD / "explorer.html"
        if not file.exists() or file.read_text(encoding="utf-8") != page:
            file.write_text(page, encoding="utf-8")
        return file


@pytest.fixture(scope="module")
def file(whole: Path) -> Path:
    """The page of all algorithms, unless a test file has one of its own."""
    return whole


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Callable[..., Opened]]:
    """Opens the page of the test file; it has complained of nothing, and asked for nothing but itself."""
    with opening(browser, file) as at:
        yield at


@pytest.fixture(scope="module")
def shared(browser: Any, file: Path) -> Iterator[Opened]:
    """The page of the test file, opened once for the tests that leave no more behind than another call."""
    with opening(browser, file) as at:
        yield at()


@pytest.fixture
def visited(shared: Opened) -> Callable[[str], Opened]:
    """Gives that page a link; it then shows what a new page shows, as a test of the browser holds."""
    return shared.visit
