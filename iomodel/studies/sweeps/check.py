"""Validation of a plan before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from iomodel.errors import InputError, UnknownNameError
from iomodel.nests.alphabet import TILE_NAMES
from iomodel.studies.sweeps.fields import OF_KIND, known_fields
from iomodel.studies.sweeps.plan import SweepPlan
from iomodel.studies.sweeps.point_question import ANSWERS, question

LARGEST = 2**63 - 1
"""The largest signed 64-bit integer."""
_MOST = 10**7
"""The most points at which a condition is checked beforehand; the engine checks all."""


def heaviest(plan: SweepPlan) -> dict[str, int]:
    """Return the numbers of the point that likely has the largest result: long calls, small tiles."""
    point: dict[str, int] = {}
    for axis in plan.numeric:
        name, values = next(iter(axis.fields.items()))
        point |= axis.at(int(np.argmin(values) if name in TILE_NAMES else np.argmax(values)))
    return point


def checked(plan: SweepPlan) -> SweepPlan:
    """Resolve the variables of a plan, and raise for an error at any point."""
    assert plan.operation  # one kind of workload
    heeded: set[str] = set()
    largest: dict[str, tuple[int, dict[str, Any]]] = {}
    for _, fixed in plan.combinations():
        point = {**fixed, **heaviest(plan)}
        study = question(point, plan.solving)
        heeded |= study.taken
        for name, value in study.answers().items():
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


def _names_apart(plan: SweepPlan) -> None:
    """Raise InputError if a group of fields has the name of another field or quantity."""
    others = {*plan.variables, *given_fields(plan), *known_fields(plan.solving), *TILE_NAMES}
    for axis in plan.axes:
        if axis.name not in axis.fields and axis.name in others:
            raise InputError(
                f"zipped: a group of {', '.join(axis.fields)} is named {axis.name}; allowed: the name of one of them, "
                "or one that is no field and no quantity"
            )


def too_large(plan: SweepPlan, name: str, value: int, point: Mapping[str, Any]) -> InputError:
    """Build the error for a value that exceeds 64 bits."""
    varied = [field for axis in plan.axes for field in axis.fields if field in point]
    where = ", ".join(f"{field} = {point[field]}" for field in varied) or "the only point"
    return InputError(
        f"{name}: {value} at {where}; allowed: up to {LARGEST}, the most that 64 bits hold; sweep shorter calls, or "
        "ask iomodel.cost, whose integers have no limit"
    )


def given_fields(plan: SweepPlan) -> list[str]:
    """List the fields that the plan gives."""
    return [*plan.constants, *(field for axis in plan.axes for field in axis.fields)]


def _all_heeded(plan: SweepPlan, heeded: set[str]) -> None:
    for name in given_fields(plan):
        if name != "algorithm" and name not in heeded:
            fields = OF_KIND[plan.operation]
            of_other = any(name in others for others in OF_KIND.values())
            kind = "tile" if name in TILE_NAMES else "field" if of_other else "option"
            allowed = sorted(fields if of_other else heeded - fields)
            raise UnknownNameError(f"{kind} of {', '.join(sorted(plan.algorithms))}", name, allowed)


def _variables(plan: SweepPlan, known: list[str]) -> tuple[str, ...]:
    """Return the quantities, with `reads` and `writes` per tensor, and the tiles if they are solved for."""
    variables: dict[str, None] = {}
    for name in plan.variables:
        if name in ("reads", "writes"):
            variables |= dict.fromkeys(tensor for tensor in known if tensor.startswith(f"{name}_"))
        elif name in known and name not in TILE_NAMES:
            variables[name] = None
        else:
            tensors = [tensor for tensor in known if tensor not in (*ANSWERS, *TILE_NAMES)]
            raise UnknownNameError("quantity", name, [*ANSWERS, "reads", "writes", *tensors])
    return (*variables, *(tile for tile in TILE_NAMES if tile in known and plan.solving))


def _agree(plan: SweepPlan) -> None:
    """Raise InputError if inconsistent numbers meet at a point."""
    wrong = _first(plan, ("heads", "kv_heads"), lambda heads, kv_heads: heads % kv_heads != 0)
    if wrong is not None:
        raise InputError(
            f"kv_heads: {wrong['kv_heads']} does not divide heads = {wrong['heads']}, but the plan combines them; "
            "allowed: divisors, or the two side by side by zipped=[('heads', 'kv_heads')]"
        )
    keys = "kv_len" if "kv_len" in given_fields(plan) else "q_len"
    names = ("splits", keys, "block_kv")
    wrong = _first(plan, names, lambda splits, length, tile: (splits > 1) & (splits > -(-length // tile)))
    if wrong is not None:
        most = -(-wrong[keys] // wrong["block_kv"])
        raise InputError(
            f"splits: {wrong['splits']} combined with {keys} = {wrong[keys]} and block_kv = {wrong['block_kv']}; "
            f"allowed there: up to {most}, the tiles of keys"
        )


def _first(plan: SweepPlan, names: tuple[str, ...], wrong: Callable[..., Any]) -> dict[str, int] | None:
    """Return the first point, over the dimensions of some fields, at which they are inconsistent."""
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
