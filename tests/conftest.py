"""Hypothesis profiles, what makes tests quick, and the count of shapes compared with the reference kernels."""

import gc
import os
from functools import cache, lru_cache
from typing import Any

import pytest
import typer.main
from hypothesis import HealthCheck, settings
from sympy.functions.elementary.miscellaneous import MinMaxBase

from tests.support.strategies import Tally

settings.register_profile("base", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("base"), max_examples=10, derandomize=True)
settings.register_profile("dev", settings.get_profile("base"), max_examples=50)
settings.register_profile("nightly", settings.get_profile("base"), max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "ci")

# sympy compares the arguments of every Max and Min anew whenever one is rebuilt. The comparison depends on its
# arguments alone, so that caching it changes no result; tests that start a process run sympy as it is.
MinMaxBase._is_connected = classmethod(lru_cache(maxsize=65_536)(MinMaxBase._is_connected.__func__))

# The parser of the command line depends on nothing but the code; making it takes longer than most commands.
typer.main.get_command = cache(typer.main.get_command)

COLLECTED_AFTER = 200_000
"""New objects between two garbage collections; at Python's 700 they take a tenth of the time of all tests."""
TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TALLY] = Tally()
    gc.set_threshold(COLLECTED_AFTER)


def pytest_collection_finish() -> None:
    """Leave the modules and the tests, which live as long as the process, out of every garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def compared(pytestconfig: pytest.Config) -> Tally:
    """Where a test notes each shape that it compared with a reference kernel."""
    return pytestconfig.stash[TALLY]


@pytest.fixture
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command prints does not depend on the terminal that the tests run in."""
    for name in ("COLUMNS", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "IOMODEL_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a worker of pytest-xdist reports to its controller
        session.config.workeroutput["compared"] = session.config.stash[TALLY].shapes


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[TALLY].shapes += getattr(node, "workeroutput", {}).get("compared", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if shapes := config.stash[TALLY].shapes:
        terminalreporter.write_line(f"{shapes:,} shapes compared with the reference kernels")
