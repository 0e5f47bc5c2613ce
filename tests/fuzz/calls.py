"""Calls of every public function and constructor: right ones, then some of their arguments changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np

import iomodel
from iomodel.algorithms import algorithm as find_algorithm
from tests.fuzz import fields
from tests.fuzz.junk import junk, scribble
from tests.fuzz.law import Case, answered

Arguments = dict[str, Any]
PAGES = {"cost_array", "solve_many", "sweep"}
"""Functions whose lengths and tiles are arrays."""
LONG = {"fleet", "compare", "crossover_context", "crossover", "diagnose"}
"""Functions that take long, and are drawn less often."""
MODELS: dict[str, Callable[[Random], Arguments]] = {
    "Attention": fields.call_fields,
    "VarlenAttention": lambda rng: {"q_lens": [4, 5], "head_dim": 8, "kv_lens": rng.choice(([8, 8], None))},
    "Window": lambda rng: {"left": rng.choice((None, 3)), "right": 0, "align": "top-left"},
    "Documents": lambda rng: {"lengths": [3, 5], "causal": rng.random() < 0.5},
    "BlockMask": lambda rng: {"blocks": [[1, 0], [0, 1]], "block_q": 4, "block_kv": 4},
    "Layout": lambda rng: {"tensor_parallel": 2, "pipeline_parallel": 1, "expert_parallel": 1},
    "Linear": lambda rng: {
        "rows": 8,
        "in_features": 16,
        "out_features": 32,
        "groups": 2,
        "dtype": "bf16",
        "gated": True,
    },
    "Parameters": lambda rng: {"step_clocks": 100.0, "kernel_launch": 1e-6},
    "ModelSpec": lambda rng: {
        **iomodel.model("llama-3-8b").to_dict(),
        "layers": list(iomodel.model("llama-3-8b").layers[:2]),
    },
    "Hardware": lambda rng: iomodel.hardware("sim-a100").to_dict(),
    "Execution": lambda rng: {"cite": "x", "phases": (("matrix", "exp"), ("hbm",))},
}
"""The public types that a user makes by hand."""


@cache
def functions() -> tuple[str, ...]:
    """The public functions that take arguments, new ones among them."""
    found = [name for name in iomodel.__all__ if inspect.isfunction(getattr(iomodel, name))]
    return tuple(name for name in found if inspect.signature(getattr(iomodel, name)).parameters)


@cache
def _parameters(name: str) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(getattr(iomodel, name)).parameters.values())


def right(name: str, rng: Random) -> Arguments:
    """Arguments of a function that are likely answered."""
    given: Arguments = {}
    for parameter in _parameters(name):
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        needed = parameter.default is parameter.empty
        known = fields.FIELDS.get(parameter.name)
        if needed or (known is not None and rng.random() < 0.12):
            given[parameter.name] = known(rng) if known is not None else fields.small(rng)
    if "algorithm" in given or "challenger" in given:
        _of_an_algorithm(name, given, rng)
    if name == "sweep":
        given |= {"q_len": fields.length(rng), "head_dim": rng.choice((8, [8, 16]))}
    if name == "fleet":
        given["hardware"] = [fields.device(rng)]
        given.pop("objective", None)
    if name == "judge":
        given["hardware"] = fields.timed() if rng.random() < 0.8 else given["hardware"]
    if name in PAGES:
        for field in ("q_len", "head_dim", "kv_len"):
            if field in given and rng.random() < 0.5:
                given[field] = fields.several(rng, fields.FIELDS[field])
    if any(p.name == "sram_bytes" for p in _parameters(name)):
        _one_budget(name, given, rng)
    return {**given, **{key: False for key in ("progress",) if key in {p.name for p in _parameters(name)}}}


def _of_an_algorithm(name: str, given: Arguments, rng: Random) -> None:
    """What goes with the algorithm: a call that it answers, its tiles, its options."""
    while name == "trace" and find_algorithm(given["algorithm"]).approximates:  # none of these is traced
        given["algorithm"] = fields.algorithm(rng)
    chosen = given.get("algorithm", given.get("challenger"))
    if "workload" in given:
        given["workload"] = fields.workload(rng, chosen)
        while name in ("check", "trace", "diagnose", "crossover") and isinstance(
            given["workload"], iomodel.VarlenAttention
        ):
            given["workload"] = fields.workload(rng, chosen)
    taken = {parameter.name: parameter for parameter in _parameters(name)}
    if "tiles" in taken and (taken["tiles"].default is inspect.Parameter.empty or rng.random() < 0.8):
        given["tiles"] = fields.tiles(
            rng, chosen, given.get("workload"), launched=name == "check" and rng.random() < 0.5
        )
    if name in PAGES and name != "solve_many":
        given |= {tile: fields.several(rng, fields.small) for tile in fields.tiles(rng, chosen)}
    if "direction" in taken and "direction" in given:
        given["direction"] = rng.choice(list(find_algorithm(chosen).directions))
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        given |= fields.options(rng, chosen)


def _one_budget(name: str, given: Arguments, rng: Random) -> None:
    budgets = ("hardware", "sram_bytes", "sram_elements")
    for budget in budgets:
        given.pop(budget, None)
    chosen = rng.choice(budgets)
    if chosen != "hardware":
        given.pop("residency", None)
        given.pop("objective", None)
        given.pop("min_blocks_per_sm", None)
    given[chosen] = fields.FIELDS[chosen](rng)


def changed(value: Any, rng: Random, deep: int = 2) -> Any:
    """Something near a value, or something in it changed, or junk."""
    kind = rng.random()
    if isinstance(value, dict) and value and deep and kind < 0.7:
        return altered(value, rng, deep - 1)
    if isinstance(value, list | tuple) and value and deep and kind < 0.6:
        made = list(value)
        place = rng.randrange(len(made))
        if rng.random() < 0.7:
            made[place] = changed(made[place], rng, deep - 1)
        else:
            made.insert(place, junk(rng)) if rng.random() < 0.5 else made.pop(place)
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, int | float) and kind < 0.45:
        wrap = (
            lambda x: x + 1,
            lambda x: x - 1,
            lambda x: -x,
            lambda x: x * 10**15,
            lambda x: x * 10**30,
            float,
            str,
            np.int64,
            np.float32,
            np.int8,
            lambda x: [x],
            lambda x: (x,),
            lambda x: np.array([x, x]),
            bool,
            lambda x: x / 3,
            complex,
        )
        try:
            return rng.choice(wrap)(value)
        except (ArithmeticError, ValueError, RuntimeWarning):  # beyond the type
            return 10**400
    if isinstance(value, str) and kind < 0.45:
        place = rng.randrange(len(value) + 1)
        return rng.choice(
            (
                value.upper(),
                value[:-1],
                value + " ",
                value.encode("utf-8", "replace"),
                [value],
                value[:place] + scribble(rng, 2) + value[place:],
            )
        )
    return junk(rng)


def altered(given: Arguments, rng: Random, deep: int = 2) -> Arguments:
    """A mapping with one entry changed, left out, or put in."""
    made = dict(given)
    kind = rng.random()
    if kind < 0.8 and made:
        name = rng.choice(sorted(made, key=str))
        made[name] = changed(made[name], rng, deep)
    elif kind < 0.83 and made:
        del made[rng.choice(sorted(made, key=str))]
    else:
        known = rng.choice(
            (*fields.FIELDS, "block_q", "block_kv", "splits", "lse", "packed", "Q_LEN", "q-len", scribble(rng))
        )
        draw = fields.FIELDS.get(known, junk)
        made[known] = draw(rng) if rng.random() < 0.6 else junk(rng)
    return made


def times(rng: Random) -> int:
    """How many changes: mostly one, so that the rest is right."""
    return rng.choices((0, 1, 2, 4), (15, 60, 17, 8))[0]


def kept_short(name: str, given: Arguments) -> Arguments:
    """A page takes longer than an input may, so that one is never made: at the latest its algorithm is unknown."""
    return {**given, "algorithms": ["none"]} if name == "explore" else given


def public(rng: Random) -> Case:
    """A call of a public function."""
    name = rng.choice(functions())
    if name in LONG and rng.random() < 0.75:
        name = rng.choice(functions())
    given = right(name, rng)
    for _ in range(times(rng)):
        given = altered(given, rng)
    return _case("functions", name, kept_short(name, given), rng)


def made(rng: Random) -> Case:
    """The constructor of a public type."""
    name = rng.choice(list(MODELS))
    given = MODELS[name](rng)
    for _ in range(times(rng)):
        given = altered(given, rng, 6)
    return _case("constructors", name, given, rng)


def _case(surface: str, name: str, given: Arguments, rng: Random) -> Case:
    """Named or, for some, by position."""
    show, taken = rng.random() < (0.02 if name == "expressions" else 0.3), list(given)
    positional = taken[: rng.randint(1, 3)] if rng.random() < 0.08 else []
    arguments = [given[key] for key in positional]
    named = {key: value for key, value in given.items() if key not in positional and isinstance(key, str)}
    return Case(
        surface, f"{name}{told(arguments, named)}", lambda: answered(getattr(iomodel, name), arguments, named, show)
    )


def told(arguments: list[Any], named: Arguments) -> str:
    from iomodel.errors import shown

    def safe(value: Any) -> str:
        try:
            return shown(value, 200)
        except Exception:  # a value that does not show itself
            return f"<{type(value).__name__}>"

    words = [*map(safe, arguments), *(f"{key}={safe(value)}" for key, value in named.items())]
    return f"({', '.join(words)})"
