"""Which engine evaluates a formula: NumPy, or machine code where Numba is there and it is worth the wait."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from iomodel.arrays.runners import Runner
from iomodel.errors import InputError
from iomodel.integral import Ratio

if TYPE_CHECKING:
    from iomodel.compiled import Compiled

ENGINES = ("auto", "numpy", "numba")
WORTH = 2**22
"""Points from which machine code is worth the second or so that Numba takes to make it."""

WARM = 2**14
"""Points from which it is taken once it is made."""


def runner_for(compiled: Compiled, varying: Sequence[int], points: int, engine: str) -> Runner:
    """The engine that is asked for, or the faster one; made once for the same inputs as arrays."""
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
    able = len(compiled.formulas) == 1 and not compiled.formulas[0].has(Ratio)
    if not (machine and able and numba_is_there()):
        return Runner(compiled, varying)
    from iomodel.arrays.machine_code import MachineCode

    return MachineCode(compiled, varying)


@cache
def numba_is_there() -> bool:
    """Whether the extra `fast` is installed."""
    return find_spec("numba") is not None
