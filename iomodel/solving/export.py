"""Choices of tiles as source text of kernels: CuTe shapes, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from iomodel.errors import InputError, UnknownNameError
from iomodel.solving.certificate import RunnerUp
from iomodel.solving.solution import Solution

SHARE = 0.05
"""Excess over the least time up to which choices are exported [-]."""
MOST = 1000
"""More choices than any call has within that share."""
PAIR = ("block_q", "block_kv")


def near_best(solution: Solution, share: float = SHARE) -> list[RunnerUp]:
    """List the choices of a solution whose time is within a share of the least, the fastest first."""
    limit = (solution.known_seconds or 0.0) * (1 + share)
    return [choice for choice in solution.ranked if (choice.seconds or 0.0) <= limit]


def exported(solution: Solution, form: str, top: int | None = None) -> str:
    """Write the choices within 5 % of the best as source text, or the `top` fastest.

    Parameters
    ----------
    solution : Solution
        A solution by time with its choices: ``solve(..., top=1000)``.
    form : {"cute", "json"}
        A list of CuTe shapes; a list of objects. Triton's configs follow from its compiler: `iomodel.triton.configs`.
    top : int, optional
        Number of choices [-].

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(heads=16, q_len=4096, head_dim=128)
    >>> print(exported(iomodel.solve("flash2", w, "a100-sxm4-80gb", top=1000), "cute").splitlines()[0])
    using TileShape = cute::Shape<cute::_128, cute::_64, cute::_128>;  // warps 4, stages 1
    """
    if form not in FORMS:
        raise UnknownNameError("emit", form, list(FORMS))
    if not solution.ranked:
        raise InputError("emit: given without choices by time; allowed: with an implementation, on a device")
    return FORMS[form](near_best(solution) if top is None else solution.ranked[:top], solution)


def _cute(choices: Sequence[RunnerUp], solution: Solution) -> str:
    call = solution.cost.workload

    def shape(tiles: Mapping[str, int]) -> str:
        sizes = (tiles["block_q"], tiles["block_kv"], call.longest.head_dim)
        rest = ", ".join(f"{name} {size}" for name, size in tiles.items() if name not in PAIR)
        return f"using TileShape = cute::Shape<{', '.join(f'cute::_{size}' for size in sizes)}>;  // {rest}"

    return "\n".join(shape(choice.tiles) for choice in choices)


def _json(choices: Sequence[RunnerUp], _solution: Solution) -> str:
    return json.dumps([choice.to_dict() for choice in choices], indent=2)


FORMS: dict[str, Callable[[Sequence[RunnerUp], Solution], str]] = {"cute": _cute, "json": _json}
"""Writers by the name of the form."""
