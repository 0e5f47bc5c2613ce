"""Least traffic of the catalogue over the largest bound at every memory: `python -m benchmarks.bound_distance [steps]`.

The grid: widths of 64, 128, 256, 192/128 and a latent of 576/512 with 128 heads; 4,096, 65,536 and 2^20 positions; M
from 64 elements to 16 D^2, D = d + d_v, `steps` sizes an octave (1). For each row the largest ratio anywhere and its M,
then from M = D^2 on forward, from 4 D^2 (16 d^2 for d_v = d) on backward.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, NamedTuple

import iomodel

WIDTHS = [(64, 64), (128, 128), (256, 256), (192, 128), (576, 512)]
DIRECTIONS: list[Literal["forward", "backward"]] = ["forward", "backward"]
LENGTHS = [4096, 65_536, 2**20]
TARGETS = {"forward": 1.65, "latent": 1.95, "large": 1.35}
"""The largest ratio anywhere, with V apart from K and as a part of it, and at a large memory of 65,536 positions on."""


class Point(NamedTuple):
    """The least traffic over the largest bound at a memory, and over that of whole rows (backward)."""

    memory: int
    algorithm: str
    ratio: float
    rows: float


def call(widths: tuple[int, int], length: int, direction: Literal["forward", "backward"]) -> iomodel.Attention:
    """Return one head, or 128 heads of a latent."""
    width, value = widths
    latent: dict[str, Any] = {"heads": 128, "kv_heads": 1, "latent": True} if width == 576 else {}
    return iomodel.Attention(q_len=length, head_dim=width, value_dim=value, direction=direction, **latent)


def distances(w: iomodel.Attention, steps: int = 1) -> list[Point]:
    """Solve a call at every memory of the grid at which an algorithm fits."""
    square, points, step = (w.head_dim + w.value_dim) ** 2, [], 0
    while (size := int(64 * 2 ** (step / steps))) <= 16 * square:
        step += 1
        moved = {name: least for name in _names(w, size, square) if (least := _least(name, w, size))}
        if not moved:
            continue
        every = iomodel.lower_bounds(w, sram_elements=size).values()
        rows = iomodel.lower_bounds(w, algorithm="flash2", sram_elements=size).values()
        best, bounds = min(moved, key=moved.__getitem__), (max(b.elements for b in each) for each in (every, rows))
        points.append(Point(size, best, *(moved[best] / bound for bound in bounds)))
    return points


def _names(w: iomodel.Attention, size: int, square: int) -> list[str]:
    """Name the algorithms that may move least: none with whole rows does where M is far below D^2."""
    if w.direction == "backward":
        return [*(["two_products"] if size <= 4 * square else []), "flash1", "flash2"]
    return ["two_products"] if size < square / 40 else ["flash2"] if size > 4 * square else ["two_products", "flash2"]


def _least(name: str, w: iomodel.Attention, size: int) -> int | None:
    options: dict[str, Any] = {"packed": True} if w.latent and name == "flash2" else {}
    options |= {"begin_once": True} if name == "flash1" else {}
    try:
        return iomodel.solve(name, w, sram_elements=size, **options).cost.hbm_elements
    except iomodel.InfeasibleError:
        return None


def main(steps: int = 1) -> None:
    """Print the largest ratios of each row of the grid, and the targets that they miss."""
    print("d/d_v     N          pass       largest     at M (of D^2), by            large M: all   whole rows   at M")
    for widths in WIDTHS:
        for direction in DIRECTIONS:
            for length in LENGTHS:
                if direction == "backward" and widths[0] == 576:
                    continue
                points = distances(call(widths, length, direction), steps)
                square = sum(widths) ** 2
                top = max(points, key=lambda point: point.ratio)
                large = [point for point in points if point.memory >= (1 if direction == "forward" else 4) * square]
                end = max(large, key=lambda point: point.ratio)
                limit = TARGETS["latent" if widths[0] == 576 else "forward"]
                missed = [f"{limit}"] * (direction == "forward" and top.ratio > limit)
                missed += [f"{TARGETS['large']}"] * (length >= 65_536 and end.ratio > TARGETS["large"])
                rows = max(point.rows for point in large)
                print(
                    f"{widths[0]}/{widths[1]:<4} {length:>9,}  {direction:<9} {top.ratio:8.3f}  "
                    f"{top.memory:>11,} ({top.memory / square:6.3f}) {top.algorithm:<13} {end.ratio:8.3f} {rows:8.3f} "
                    f"{end.memory:>13,}" + (f"  above {', '.join(missed)}" if missed else ""),
                    flush=True,
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
