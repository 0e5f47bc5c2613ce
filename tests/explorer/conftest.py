"""Chromium, and the page of a test file in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Opened, chromium, opening


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Callable[..., Opened]]:
    """Opens the page of the test file; it has complained of nothing, and asked for nothing but itself."""
    with opening(browser, file) as at:
        yield at
