"""Calls that the page and Python both answer: the link of each, the same call in Python, its tiles."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import iomodel
from iomodel.algorithms import algorithm, list_algorithms
from iomodel.counting.quantities import IN_FORMULAS, QUANTITIES
from iomodel.explorer.call_kinds import CallKind, switches_of
from iomodel.nests.alphabet import NUMBERS, TILES
from tests.support.tile_names import tile_names

SIZES = (1, 2, 7, 16, 48, 100, 129, 1000, 4096)
TILE_NAMES = [entry.name for entry in TILES]


@dataclass(frozen=True)
class Drawn:
    """One call."""

    algorithm: str
    workload: iomodel.Attention
    options: Mapping[str, Any]
    tiles: Mapping[str, int]

    @property
    def kind(self) -> CallKind:
        """The formulas that it needs."""
        return self.tiled_kind({})

    def tiled_kind(self, more: Mapping[str, bool]) -> CallKind:
        """The same with some switches turned."""
        chosen, w = {**self.options, **more}, self.workload
        mask = w.mask
        if isinstance(mask, iomodel.Window):
            sides = [side for side in ("left", "right") if getattr(mask, side) is not None]
            mask = f"window {'+'.join(sides)} {mask.align}" if sides else "full"
        names = switches_of(algorithm(self.algorithm), w.direction)
        switches = tuple((name, chosen[name]) for name in names)
        return CallKind(self.algorithm, w.direction, mask, bool(chosen.get("packed")), switches)

    @property
    def fields(self) -> dict[str, str]:
        """The same as a link has it, tiles and budget apart."""
        w = self.workload
        shape = ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "value_dim", "dtype", "direction")
        found = {"algorithm": self.algorithm, **{name: str(getattr(w, name)) for name in shape}}
        if isinstance(w.mask, iomodel.Window):
            sides = {"window_left": w.mask.left, "window_right": w.mask.right}
            found |= {"mask": "window", "align": w.mask.align}
            found |= {name: "auto" if side is None else str(side) for name, side in sides.items()}
        else:
            found["mask"] = str(w.mask)
        options = {
            name: str(value) if name in NUMBERS else "on" * value or "off" for name, value in self.options.items()
        }
        return {**found, **options}


def drawn(count: int, seed: int, largest: int = 0) -> Iterator[Drawn]:
    """So many calls of all algorithms in turn, that Python answers; `largest` makes the lengths that long."""
    choose = random.Random(seed)
    made = 0
    while made < count:
        call = _drawn(choose, list_algorithms()[made % len(list_algorithms())], largest)
        if call is not None:
            yield call
            made += 1


def _drawn(choose: random.Random, name: str, largest: int) -> Drawn | None:
    found = algorithm(name)
    direction = choose.choice(found.directions)
    options: dict[str, Any] = {way: choose.choice(values) for way, values in switches_of(found, direction).items()}
    for way, default in found.takes(direction).items():
        if way in NUMBERS:
            options[way] = choose.choice([default, 1, 2, 3, 5])
    if "packed" in found.common:
        options["packed"] = choose.random() < 0.3
    kv_heads, group = choose.choice([1, 2, 4]), choose.choice([1, 1, 2, 4])
    lengths = [largest + choose.randrange(1000) if largest else choose.choice(SIZES) for _ in range(2)]
    if choose.random() < 0.4 or found.approximates:
        lengths[1] = lengths[0]
    sides = [choose.choice([None, 0, 3, 130]) for _ in range(2)]
    window = iomodel.Window(left=sides[0], right=sides[1], align=choose.choice(["bottom-right", "top-left"]))
    mask = choose.choice(found.masks or ["full", "causal", window, window])
    shape = {"head_dim": choose.choice([8, 64, 128]), "value_dim": choose.choice([8, 64, 128])}
    workload = iomodel.Attention(
        batch=choose.choice([1, 3]), heads=kv_heads * group, kv_heads=kv_heads, q_len=lengths[0], kv_len=lengths[1],
        dtype=choose.choice(["bf16", "fp32", "fp8"]), mask=mask, direction=direction, **shape,
    )  # fmt: skip
    kind = {key: value for key, value in options.items() if key not in NUMBERS}
    try:
        names = tile_names(name, mask, direction, **kind)
        tiles = {tile: choose.choice([1, 3, 16, 64, 100, 128]) for tile in names}
        iomodel.cost(name, workload, tiles, **options)
    except ValueError:
        return None  # numbers that do not go together: draw again
    return Drawn(name, workload, options, tiles)


def counted(call: Drawn) -> dict[str, str]:
    """What Python counts, as the page names it; texts, for integers of any size."""
    found = iomodel.cost(call.algorithm, call.workload, call.tiles, **call.options)
    names = [name for name in QUANTITIES if name != "peak_hbm_elements"]
    plain = {IN_FORMULAS.get(name, name): getattr(found, name) for name in names}
    plain |= {f"reads {name}": value for name, value in found.reads.items()}
    plain |= {f"writes {name}": value for name, value in found.writes.items()}
    return {name: str(value) for name, value in plain.items()}


COUNTS = """
(calls, job) => {
  const state = calls.complete({...job.fields, ...job.tiles});
  const call = calls.call(state);
  const tiles = Object.fromEntries(Object.entries(job.tiles).map(([name, size]) => [name, BigInt(size)]));
  const {reads, writes, ...rest} = call.counts(tiles);
  const said = (prefix, side) => Object.entries(side).map(([name, value]) => [`${prefix} ${name}`, String(value)]);
  const plain = Object.entries(rest).map(([name, value]) => [name, String(value)]);
  return Object.fromEntries([...plain, ...said("reads", reads), ...said("writes", writes)]);
}
"""
"""What the page counts for a call."""
SOLVED = """
(calls, job) => {
  const call = calls.call(calls.complete(job.fields));
  const found = solve(call, call.budget, call.alignment);
  if (!found.feasible) return {least: String(found.least)};
  const tiles = Object.fromEntries(Object.entries(found.tiles).map(([name, size]) => [name, Number(size)]));
  return {tiles, binding: found.binding, bytes: String(call.counts(found.tiles).hbm_bytes)};
}
"""
"""What the page solves for a call."""
