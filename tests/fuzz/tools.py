"""Calls of the tools of the MCP server, of the JSON types that its SDK lets through, with values nearly right."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from iomodel.integrations.mcp.tools import TOOLS
from tests.fuzz.calls import ALGORITHMS, LENGTHS, WORKLOADS, changed
from tests.fuzz.law import Case, answered
from tests.fuzz.texts import TEXTS, scribble

DEVICES = ("h100-sxm5", "a100-sxm4-80gb", "mi300x", "tpu-v5e", "sim-v100", "h100", "h9", "./x.yaml")


def _text(rng: Random, right: str) -> str:
    """A name: the right one mostly."""
    return right if rng.random() < 0.85 else rng.choice(TEXTS) if rng.random() < 0.8 else scribble(rng)


def _arguments(rng: Random, kind: str) -> dict[str, Any]:
    """Arguments of every tool, from which each takes its own."""
    seconds = rng.choice((1e-3, 1e-6, 0.0, -1.0, 1e-300, 1e300, float("nan"), float("inf")))
    tiles = {key: rng.choice((16, 64, 128, 0, -1, 10**18, 10**30)) for key in ("block_q", "block_kv", "block_m")}
    tiles = dict(rng.sample(list(tiles.items()), rng.randrange(4)))
    return {
        "workload": changed(rng, WORKLOADS[kind]),
        "algorithm": _text(rng, rng.choice(ALGORITHMS[kind])),
        "hardware": _text(rng, rng.choice(DEVICES)),
        "tiles": tiles if rng.random() < 0.5 else None,
        "seconds": seconds if rng.random() < 0.7 else rng.uniform(1e-6, 1e-2),
        "sram_bytes": rng.choice((*LENGTHS, 0, -1, 232448)),
        "units": rng.choice((1, 132, 0, -1, 10**20)),
        "stream": _text(rng, "no.jsonl"),
        "warm": rng.random() < 0.5,
        "objective": rng.choice((None, "time", "traffic", "x", "")),
        "implementation": rng.choice((None, "triton", "textbook", "x", "")),
    }


TAKEN = {
    "bound": ("workload", "sram_bytes", "units"),
    "best_tile": ("algorithm", "workload", "hardware", "implementation", "objective"),
    "what_binds": ("algorithm", "workload", "hardware", "tiles"),
    "gap": ("algorithm", "workload", "hardware", "seconds", "tiles"),
    "program_bound": ("stream", "hardware", "seconds", "warm"),
    "traffic": ("algorithm", "workload", "tiles"),
    "names": (),
}
"""Arguments of each tool."""


def tool(rng: Random) -> Case:
    """A call of a tool; its answer is JSON without NaN and infinities."""
    name, arguments = rng.choice(list(TAKEN)), _arguments(rng, rng.choice(list(WORKLOADS)))
    given = {key: arguments[key] for key in TAKEN[name]}

    def run() -> object:
        return json.dumps(TOOLS[name](**given), allow_nan=False)

    return Case("tools", f"{name}({given!r:.1500})", lambda: answered(run))
