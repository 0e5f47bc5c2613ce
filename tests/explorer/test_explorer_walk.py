"""The animation of the page: over all its steps it loads and stores as many elements as the counts say."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from iomodel.algorithms import algorithm
from iomodel.explorer.call_kinds import kinds
from iomodel.explorer.page import page
from iomodel.explorer.payload import payload
from tests.explorer.test_explorer import run_node

WALKED = """(calls, job) => {
  const call = calls.call(calls.complete(job.fields));
  const tiles = Object.fromEntries(Object.entries(job.tiles).map(([name, size]) => [name, BigInt(size)]));
  const counts = call.counts(tiles), walked = { reads: {}, writes: {} };
  for (const kernel of call.nest.kernels.keys()) {
    for (const event of new Walker(call, tiles, kernel).run()) {
      const size = event.spans.reduce((size, [from, to]) => size * (to - from), 1);
      const sides = { load: ["reads"], store: ["writes"], add: ["reads", "writes"] }[event.do] ?? [];
      for (const side of sides) walked[side][event.tensor] = (walked[side][event.tensor] ?? 0) + size;
    }
  }
  const told = (side) => Object.fromEntries(Object.entries(counts[side]).map(([name, n]) => [name, Number(n)]));
  return { walked, counted: { reads: told("reads"), writes: told("writes") } };
}"""
MASKS: list[dict[str, Any]] = [
    {"mask": "full"},
    {"mask": "causal"},
    {"mask": "window", "window_left": "9", "window_right": "3"},
    {"mask": "window", "window_left": "0", "window_right": "0", "align": "top-left"},
]
ONE_HEAD = {"heads": "1", "kv_heads": "1", "head_dim": "4"}
LENGTHS = [("50", "70"), ("33", "33"), ("64", "40"), ("1", "17")]


@cache
def small_page() -> str:
    """A page of two algorithms, with forward passes of heads apart."""
    names = ["tiled_query", "flash2"]
    plain = [kind for kind in kinds(names) if kind.direction == "forward" and not kind.packed]
    usual = [
        kind for kind in plain if dict(kind.switches).items() <= algorithm(kind.algorithm).takes("forward").items()
    ]
    return page(payload(names, ["h100-sxm5", "a10"], only=usual))


def test_the_animation_moves_what_is_counted(tmp_path: Path) -> None:
    html = small_page()
    jobs = [
        {
            "fields": {**ONE_HEAD, "algorithm": name, "q_len": q, "kv_len": k, **mask},
            "tiles": {"block_q": 16, "block_kv": 8},
        }
        for name, mask, (q, k) in product(("flash2", "tiled_query"), MASKS, LENGTHS)
        if name == "flash2" or mask["mask"] == "full"
    ]  # fmt: skip
    answers = run_node(tmp_path, html, WALKED, jobs)
    assert len(answers) == 20
    for job, answer in zip(jobs, answers, strict=True):
        for side in ("reads", "writes"):
            walked, counted = answer["walked"][side], answer["counted"][side]
            assert {name: size for name, size in counted.items() if size} == walked, (job, side)
