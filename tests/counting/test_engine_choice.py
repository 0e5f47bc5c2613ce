"""The engine that runs a formula at arrays: NumPy first, machine code once the points asked pay for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sympy import Max, Min, ceiling, floor, symbols

from iomodel.counting.evaluation import engine_choice, numba_runner
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.counting.evaluation.engine_choice import WARM, WORTH
from tests.support.inside import FloorSum

pytest.importorskip("numba")
a, b, c = symbols("a b c", integer=True, positive=True)
FORMULAS = [a * ceiling(b / c) + 3, Max(a - b, floor(a / b)), 7 * c, Min(a, b) ** 2, FloorSum(a, b, c, a - 1)]


def columns(size: int) -> list[Any]:
    """Draw numbers for a and b; c is one number."""
    draw = np.random.default_rng(size)
    return [draw.integers(1, 10**4, size), draw.integers(1, 10**4, size), 12]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """List the loops that are compiled."""
    made: list[object] = []
    kernel = numba_runner.MachineCode._kernel

    def counting(runner: Any, divided: Any) -> Any:
        made.append(runner)
        return kernel(runner, divided)

    monkeypatch.setattr(numba_runner.MachineCode, "_kernel", counting)
    return made


def test_a_formula_is_compiled_once_it_was_asked_enough(kernels: list[object]) -> None:
    formula, size = Compiled([a * ceiling(b / c) + 11 * a], (a, b, c)), WORTH // 4
    for calls in range(1, 7):
        formula.arrays(*columns(size))
        assert len(kernels) == (calls >= 4)


def test_a_short_call_never_waits_for_a_compilation(kernels: list[object]) -> None:
    formula = Compiled([a * ceiling(b / c) + 13 * a], (a, b, c))
    for _ in range(4 * WORTH // WARM // 4):
        formula.arrays(*columns(4 * WARM // 4 - 1))
    assert not kernels


def test_an_engine_that_is_named_is_taken(kernels: list[object]) -> None:
    formula, many = Compiled([a * ceiling(b / c) + 17 * a], (a, b, c)), columns(WORTH)
    formula.arrays(*many, engine="numpy")
    assert not kernels
    formula.arrays(*columns(3), engine="numba")
    assert len(kernels) == 1


def test_one_formula_asked_by_many_threads_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    formula, many = Compiled([a * ceiling(b / c) + 19 * a], (a, b, c)), columns(WORTH)
    expected = formula.arrays(*many, engine="numpy")[0]
    compiled: list[object] = []
    njit = numba_runner.numba.njit
    monkeypatch.setattr(numba_runner.numba, "njit", lambda *args, **kw: compiled.append(args) or njit(*args, **kw))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: formula.arrays(*many)[0], range(16)))
    assert all(np.array_equal(result, expected) for result in results)
    assert len(compiled) == 1


def test_formulas_of_several_outputs_are_compiled_together(kernels: list[object]) -> None:
    formulas, many = Compiled(FORMULAS, (a, b, c)), columns(5000)
    machine, plain = (formulas.arrays(*many, engine=engine) for engine in ("numba", "numpy"))
    for mine, other in zip(machine, plain, strict=True):
        assert mine.dtype == np.int64
        assert np.array_equal(mine, np.broadcast_to(other, mine.shape))
    assert len(kernels) == 1


def test_fractions_are_left_to_python(kernels: list[object]) -> None:
    formula = Compiled([a * b / c], (a, b, c))
    values = 12 * np.arange(1, 9), np.arange(1, 9), 12
    assert formula.arrays(*values, engine="numba")[0].tolist() == [n * n for n in range(1, 9)]
    assert not kernels


def test_without_numba_numpy_runs_every_call(monkeypatch: pytest.MonkeyPatch, kernels: list[object]) -> None:
    monkeypatch.setattr(engine_choice, "numba_is_there", lambda: False)
    Compiled([a * ceiling(b / c) + 23 * a], (a, b, c)).arrays(*columns(2 * WORTH))
    assert not kernels
