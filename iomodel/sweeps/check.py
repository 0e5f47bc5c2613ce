"""What can be wrong with a plan, looked for before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from iomodel.arrays.calls import SIDES
from iomodel.errors import InputError, UnknownNameError
from iomodel.sweeps.fields import TILE_NAMES, known_fields
from iomodel.sweeps.plan import Plan
from iomodel.sweeps.question import QUANTITIES, question
from iomodel.workload import Attention

LARGEST = 2**63 - 1
"""What 64 bits hold."""
_MOST = 10**7
"""Points at which a condition is looked at beforehand; the engine looks at all."""


def heaviest(plan: Plan) -> dict[str, int]:
    """The numbers of the point that likely has the largest answer: long calls, small tiles."""
    point: dict[str, int] = {}
    for axis in plan.numeric:
        name, values = next(iter(axis.fields.items()))
        point |= axis.at(int(np.argmin(values) if name in TILE_NAMES else np.argmax(values)))
    return point


def checked(plan: Plan) -> Plan:
    """The plan with its variables resolved; raises for whatever would fail at some point."""
    heeded: set[str] = set()
    largest: dict[str, tuple[int, dict[str, Any]]] = {}
    for _, fixed in plan.combinations():
        point = {**fixed, **heaviest(plan)}
        asked = question(point, plan.solving)
        heeded |= asked.taken
        for name, value in asked.answers().items():
            if name not in largest or value > largest[name][0]:
                largest[name] = value, point
    _all_heeded(plan, heeded)
    resolved = replace(plan, variables=_variables(plan, list(largest)))
    worst = max(resolved.variables, key=lambda name: largest[name][0])
    if largest[worst][0] > LARGEST:
        raise too_large(plan, worst, *largest[worst])
    _agree(plan)
    _names_apart(resolved)
    return resolved


def _names_apart(plan: Plan) -> None:
    """InputError where a group of fields has the name of something else."""
    others = {*plan.variables, *given_fields(plan), *known_fields(plan.solving), *TILE_NAMES}
    for axis in plan.axes:
        if axis.name not in axis.fields and axis.name in others:
            raise InputError(
                f"zipped: a group of {', '.join(axis.fields)} is named {axis.name}; allowed: the name of one of them, "
                "or one that is no field and no quantity"
            )


def too_large(plan: Plan, name: str, value: int, point: Mapping[str, Any]) -> InputError:
    """The error for what 64 bits do not hold."""
    varied = [field for axis in plan.axes for field in axis.fields if field in point]
    where = ", ".join(f"{field} = {point[field]}" for field in varied) or "the only point"
    return InputError(
        f"{name}: {value} at {where}; allowed: up to {LARGEST}, the most that 64 bits hold; sweep shorter calls, or "
        "ask iomodel.cost, whose integers have no limit"
    )


def given_fields(plan: Plan) -> list[str]:
    """The fields that the plan gives, in any way."""
    return [*plan.constants, *(field for axis in plan.axes for field in axis.fields)]


def _all_heeded(plan: Plan, heeded: set[str]) -> None:
    for name in given_fields(plan):
        if name != "algorithm" and name not in heeded:
            algorithms = sorted({fixed["algorithm"] for _, fixed in plan.combinations()})
            kind = "tile" if name in TILE_NAMES else "option"
            allowed = sorted(heeded - {*Attention.model_fields, *SIDES})
            raise UnknownNameError(f"{kind} of {', '.join(algorithms)}", name, allowed)


def _variables(plan: Plan, known: list[str]) -> tuple[str, ...]:
    """The quantities, `reads` and `writes` written out, and the tiles where they are found."""
    found: dict[str, None] = {}
    for name in plan.variables:
        if name in ("reads", "writes"):
            found |= dict.fromkeys(tensor for tensor in known if tensor.startswith(f"{name}_"))
        elif name in known and name not in TILE_NAMES:
            found[name] = None
        else:
            tensors = [tensor for tensor in known if tensor not in (*QUANTITIES, *TILE_NAMES)]
            raise UnknownNameError("quantity", name, [*QUANTITIES, "reads", "writes", *tensors])
    return (*found, *(tile for tile in TILE_NAMES if tile in known and plan.solving))


def _agree(plan: Plan) -> None:
    """Raise where numbers meet that do not go together."""
    wrong = _first(plan, ("heads", "kv_heads"), lambda heads, kv_heads: heads % kv_heads != 0)
    if wrong is not None:
        raise InputError(
            f"kv_heads: {wrong['kv_heads']} does not divide heads = {wrong['heads']}, and the plan has them meet; "
            "allowed: divisors, or the two side by side by zipped=[('heads', 'kv_heads')]"
        )
    keys = "kv_len" if "kv_len" in given_fields(plan) else "q_len"
    names = ("splits", keys, "block_kv")
    wrong = _first(plan, names, lambda splits, length, tile: (splits > 1) & (splits > -(-length // tile)))
    if wrong is not None:
        most = -(-wrong[keys] // wrong["block_kv"])
        raise InputError(
            f"splits: {wrong['splits']} meets {keys} = {wrong[keys]} and block_kv = {wrong['block_kv']}; "
            f"allowed there: up to {most}, the tiles of keys"
        )


def _first(plan: Plan, names: tuple[str, ...], wrong: Callable[..., Any]) -> dict[str, int] | None:
    """The first point, of the dimensions that some fields have, at which they do not go together."""
    axes = [axis for axis in plan.axes if axis.fields.keys() & set(names)]
    shape = tuple(axis.size for axis in axes)
    if not axes or prod(shape) > _MOST:
        return None
    arrays: list[Any] = []
    for name in names:
        place = next((i for i, axis in enumerate(axes) if name in axis.fields), None)
        if place is None:
            if name not in plan.constants:
                return None
            arrays.append(np.int64(plan.constants[name]))
        else:
            spread = [1] * len(axes)
            spread[place] = -1
            arrays.append(np.asarray(axes[place].fields[name]).reshape(spread))
    faults = np.argwhere(np.broadcast_to(wrong(*arrays), shape))
    if not len(faults):
        return None
    at = tuple(faults[0])
    return {name: int(np.broadcast_to(array, shape)[at]) for name, array in zip(names, arrays, strict=True)}
