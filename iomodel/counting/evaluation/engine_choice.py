"""Choice of the engine for a formula: NumPy, or machine code if Numba is installed and compilation pays off."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from iomodel.counting.evaluation.numpy_runner import Runner
from iomodel.errors import InputError

if TYPE_CHECKING:
    from iomodel.counting.evaluation.compiled import Compiled

ENGINES = ("auto", "numpy", "numba")
WORTH = 2**22
"""Least points at which machine code is worth its compilation by Numba, of about a second."""

WARM = 2**14
"""Least points at which machine code that is already compiled is used."""


def runner_for(compiled: Compiled, varying: Sequence[int], points: int, engine: str) -> Runner:
    """Return the requested engine, or the faster one; it is built once for each choice of array inputs."""
    if engine == "numba" and not numba_is_there():
        raise InputError("engine: 'numba' given, which is not installed; try: pip install 'iomodel[fast]'")
    there = (True, tuple(varying)) in compiled.memo and points >= WARM
    wanted = engine == "numba" or (engine == "auto" and (there or points >= WORTH))
    key = wanted, tuple(varying)
    made: Runner | None = compiled.memo.get(key)
    if made is None:
        made = compiled.memo[key] = _made(compiled, varying, wanted)
    return made


def _made(compiled: Compiled, varying: Sequence[int], machine: bool) -> Runner:
    if not (machine and compiled.outputs == 1 and numba_is_there()):
        return Runner(compiled, varying)
    from iomodel.counting.evaluation.integral import Ratio

    if compiled.formulas[0].has(Ratio):
        return Runner(compiled, varying)
    from iomodel.counting.evaluation.numba_runner import MachineCode

    return MachineCode(compiled, varying)


@cache
def numba_is_there() -> bool:
    """Check that the extra `fast` is installed."""
    return find_spec("numba") is not None
