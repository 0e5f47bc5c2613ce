"""Maps of tiles, formulas and the requests of an agent with arguments that are nearly right, or never were."""

from __future__ import annotations

from random import Random
from typing import Any

import iomodel
from iomodel.integrations.mcp.tools import TOOLS
from tests.fuzz.calls import ALGORITHMS, DEVICES, WORKLOADS, changed
from tests.fuzz.law import Case, answered
from tests.fuzz.texts import SCALARS, TEXTS, scribble

NAMES = tuple(dict.fromkeys(name for names in ALGORITHMS.values() for name in names))


def tile_map(rng: Random) -> Case:
    """The times of all tiles of a call."""
    right = {**WORKLOADS["Attention"], "q_len": 512, "kv_len": 512}
    fields = changed(rng, right) if rng.random() < 0.6 else right
    algorithm = rng.choice(("flash2", "flash3", "split_kv") * 8 + (*NAMES, "x"))
    device = rng.choice(DEVICES)
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        name = rng.choice(("min_block_kv", "min_blocks_per_sm", "implementation", "packed", "splits", "sizes"))
        options[name] = rng.choice((1, 2, 64, 0, 10**18, "triton", "cutlass", True, *SCALARS))

    def run() -> object:
        found = iomodel.kernels.tile_times(algorithm, iomodel.Attention(**fields), device, **options)  # type: ignore[arg-type]
        return str(found), found.to_json(), found.records()

    told = f"tile_times({algorithm}, {fields!r:.1200}, {device}, {options!r:.300})"
    return Case("maps", told, lambda: answered(run))


def formula(rng: Random) -> Case:
    """Expressions of an algorithm, for square calls, with numbers put in, and their leading terms."""
    algorithm, mask = rng.choice(("flash1", "flash2", "standard", "tiled_query")), rng.choice(("full", "causal"))
    numbers = {
        rng.choice(("batch", "heads", "head_dim", "q_len", "block_q", "x", "kv_len", "")): rng.choice(
            (1, 2, 64, *SCALARS)
        )
        for _ in range(rng.randrange(4))
    }
    use = rng.randrange(5)
    if rng.random() < 0.1:
        algorithm, mask = rng.choice(TEXTS), rng.choice((*TEXTS, scribble(rng)))

    def run() -> object:
        found = iomodel.expressions(algorithm, mask)
        if use == 0:
            found = found.square()
        elif use == 1:
            return iomodel.optimum(algorithm, mask=mask).to_json()
        found = found.subs(**{str(name): entry for name, entry in numbers.items()})
        return (str(found), found.to_json()) if use < 4 else iomodel.theory.evaluate(found.hbm_bytes, numbers)

    told = f"expressions({algorithm!r:.200}, {mask!r:.200}), use {use}, {numbers!r:.500}"
    return Case("formulas", told, lambda: answered(run))


def request(rng: Random) -> Case:
    """A request to a tool of the MCP server, with arguments of the kinds that its schema lets through."""
    tool = rng.choice(list(TOOLS))
    kind = rng.choice(list(WORKLOADS))
    right: dict[str, Any] = {
        "workload": changed(rng, WORKLOADS[kind]) if rng.random() < 0.6 else WORKLOADS[kind],
        "algorithm": rng.choice((*ALGORITHMS[kind], "flash9", "")),
        "hardware": rng.choice([name for name in DEVICES if isinstance(name, str)]),
        "tiles": rng.choice((None, None, {"block_q": 64, "block_kv": 64}, {"block_q": 0}, {"x": 1}, {})),
        "seconds": rng.choice((1e-4, 1.0, 0.0, -1.0, float("nan"), 1e300)),
        "sram_bytes": rng.choice((100_000, 1000, 1, 0, -1, 10**30)),
        "units": rng.choice((1, 108, 0, -1, 10**30)),
        "objective": rng.choice((None, None, "time", "traffic", "x")),
        "implementation": rng.choice((None, None, "triton", "cutlass", "x")),
        "stream": rng.choice(("", ".", "no.json", "/dev/null", scribble(rng))),
        "warm": rng.choice((None, True, False)),
    }
    if rng.random() < 0.1:
        right["workload"] = {rng.choice((scribble(rng), *TEXTS)): rng.choice(SCALARS)}
    code = TOOLS[tool].__code__
    taken = {name: right[name] for name in code.co_varnames[: code.co_argcount]}

    def run() -> object:
        return str(TOOLS[tool](**taken))

    return Case("requests", f"{tool}(**{taken!r:.2000})", lambda: answered(run))
