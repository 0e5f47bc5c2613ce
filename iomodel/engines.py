"""Which engine evaluates a formula: NumPy, or machine code where Numba is there and it is worth the wait."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from iomodel.array_runners import Runner
from iomodel.errors import InputError, UnknownNameError
from iomodel.integral import Ratio

if TYPE_CHECKING:
    from iomodel.compiled import Compiled

ENGINES = ("auto", "numpy", "numba")
WORTH = 2**22
"""Points from which machine code is worth the second or so that Numba takes to make it."""


def runner_for(compiled: Compiled, varying: Sequence[int], points: int, engine: str) -> Runner:
    """The engine that is asked for, or the faster one; made once for the same inputs as arrays."""
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    able = len(compiled.formulas) == 1 and not compiled.formulas[0].has(Ratio) and find_spec("numba") is not None
    if engine == "numba" and find_spec("numba") is None:
        raise InputError("engine: 'numba' given, which is not installed; try: pip install 'iomodel[fast]'")
    machine = able and (engine == "numba" or (engine == "auto" and points >= WORTH))
    key = machine, tuple(varying)
    made: Runner | None = compiled.memo.get(key)
    if made is None:
        if machine:
            from iomodel.machine_code import MachineCode

            made = MachineCode(compiled, varying)
        else:
            made = Runner(compiled, varying)
        compiled.memo[key] = made
    return made
