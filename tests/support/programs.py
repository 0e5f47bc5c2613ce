"""Programs outside Python that a test runs."""

from __future__ import annotations

import os
import shutil

import pytest

REQUIRED = bool(os.environ.get("CI"))
"""Whether a missing program fails a test instead of skipping it."""


def program(title: str, *commands: str) -> str:
    """Find the first installed command; without one, skip the test, or fail it in continuous integration."""
    for command in commands:
        if (path := shutil.which(command)) is not None:
            return path
    message = f"{title} is not installed (no {' or '.join(commands)} on the PATH)"
    if REQUIRED:
        pytest.fail(f"{message}; CI is set, so this test may not be skipped", pytrace=False)
    pytest.skip(message)
