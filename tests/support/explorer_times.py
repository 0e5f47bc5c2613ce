"""Estimates that the page and Python both answer: the link of each, and its figures."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import iomodel
from iomodel.algorithms import algorithm
from iomodel.errors import IOModelError
from iomodel.explorer.call_kinds import CallKind, switches_of

DEVICES = ("h100-sxm5", "a100-sxm4-80gb", "b200", "mi300x", "l4")
SIZES = (1, 16, 100, 1000, 4096, 8192, 33333)


def timed(count: int, seed: int) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """So many calls as the fields of a link, each with the figures of :func:`iomodel.estimate` at its defaults."""
    choose = random.Random(seed)
    made = 0
    while made < count:
        name = choose.choice(
            ("flash2", "flash2", "flash3", "flash3", "split_kv", "split_kv", "flash1", "standard", "two_pass")
        )
        direction = choose.choice(algorithm(name).directions) if choose.random() < 0.3 else "forward"
        kv_heads = choose.choice((1, 4, 8))
        width = choose.choice((64, 96, 128, 256))
        lengths = [choose.choice(SIZES)] * 2
        if name == "split_kv":
            lengths[0] = choose.choice((1, 1, 3))
        if direction == "both":  # few queries are packed in the forward pass alone
            lengths[0] = choose.choice((2, 16, lengths[1]))
        mask: Any = choose.choice(("full", "causal", "causal", "window"))
        left = choose.choice((100, 1023))
        shape = {
            "batch": choose.choice((1, 2, 16)), "heads": kv_heads * choose.choice((1, 4, 8)), "kv_heads": kv_heads,
            "q_len": lengths[0], "kv_len": lengths[1], "head_dim": width,
        }  # fmt: skip
        dtype = choose.choice(("bf16", "bf16", "fp16", "fp8", "fp32"))
        device = choose.choice(DEVICES)
        window = iomodel.Window(left=left, right=0) if mask == "window" else mask
        try:
            call = iomodel.Attention(**shape, mask=window, dtype=dtype, direction=direction)
            found = iomodel.estimate(name, call, device)
        except IOModelError:
            continue
        link = {"algorithm": name, "hardware": device, "direction": direction, "dtype": dtype, "mask": mask}
        if mask == "window":
            link |= {"window_left": str(left), "window_right": "0"}
        yield {**link, **{field: str(size) for field, size in shape.items()}}, figures(found)
        made += 1


def figures(found: iomodel.Estimate) -> dict[str, Any]:
    """The figures of an estimate that the page shows."""
    return {
        "seconds": found.seconds,
        "limited_by": found.limited_by,
        "breakdown": dict(found.breakdown),
        "dram": list(found.dram_bytes),
        "requested": found.requested_bytes,
        "tiles": dict(found.tiles),
    }


def kinds_of(fields: dict[str, str]) -> list[CallKind]:
    """The formulas that a call with default options needs on the page, in both passes if it has two."""
    name = fields["algorithm"]
    mask = "window left+right bottom-right" if fields["mask"] == "window" else fields["mask"]
    ways = ("forward", "backward", "both") if fields["direction"] == "both" else (fields["direction"],)
    found = []
    for way in ways:
        declared = algorithm(name)
        allowed, default = switches_of(declared, way), declared.takes(way)
        saved = declared.saved if way == "both" else {}
        chosen = tuple((switch, saved.get(switch, default[switch])) for switch in allowed)
        for packed in (False, True) if declared.searched else (False,):  # where no implementation runs, both are tried
            found.append(CallKind(name, way, mask, packed, chosen))
    return found


TIMED = """
(calls, job) => {
  const timer = calls.timer ?? (calls.timer = new Timer(calls.data.clock));
  const call = calls.call(calls.complete(job));
  try {
    const {seconds, limited_by, breakdown, dram, requested, tiles} = timer.estimate(call);
    return {seconds, limited_by, breakdown, dram, requested, tiles};
  } catch (error) {
    return {error: `${error.name} ${error.message}`, stack: error.stack};
  }
}
"""
"""What the page estimates for a call."""
