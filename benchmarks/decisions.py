"""Hold the time model against measured decisions: its pick and its order in lists of launches of one kernel.

    python benchmarks/decisions.py [--lists]

The lists are those of tests/measured/decisions.csv; no parameter was chosen on those of the role `judging`. The regret
of a rule is the measured time of its pick over the best of the list; Kendall's tau-b compares its order with the
measured one. Naive rules stand beside it.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402
import iomodel.triton  # noqa: E402
from iomodel.algorithms import algorithm  # noqa: E402
from iomodel.errors import IOModelError  # noqa: E402
from iomodel.nests.residency import Fragment, Residency  # noqa: E402
from iomodel.nests.tensors import O  # noqa: E402

Row = dict[str, str]
TILES = ("block_q", "block_kv", "warps", "stages")
TRITON = "3.9.0"
"""The version of Triton whose rules describe the launches of its kernels."""
CUDA_CORES = 128 * 16 // 2
"""Bytes in flight of a kernel without copies in the background: 16 B for each of 128 threads, half of the time [B]."""

REGISTERS = Residency(
    title="one query on CUDA cores: K and V go from memory to registers, four warps share the keys",
    cite="the kernel's own title: 4 warps, CUDA cores, split and merge kernel",
    shared=(),
    phases=((Fragment(O),),),
    overhead=48,  # that of FlashAttention-2
    warps=(4,),
    stages=(1,),
    step=(1, 1),
    split="values",
)
WARP = 32
"""Keys of a tile, one for each thread of a warp; its queries are one head, or a packed group of heads [rows]."""


@dataclass(frozen=True)
class Decided:
    """A list with the time or rank of each launch, measured and predicted; infinite where it is refused."""

    name: str
    role: str
    family: str
    rows: tuple[Row, ...]
    predicted: tuple[float, ...]

    @property
    def measured(self) -> tuple[float, ...]:
        return tuple(float(row["value"]) for row in self.rows)

    def regret(self, pick: int | None) -> float | None:
        """Measured value of a pick over the best, less one; None without a pick, or where only ranks are known."""
        if pick is None or self.rows[0]["unit"] == "order":
            return None
        return self.measured[pick] / min(self.measured) - 1


def lists() -> Iterator[tuple[Row, ...]]:
    with (ROOT / "tests" / "measured" / "decisions.csv").open(newline="", encoding="utf-8") as file:
        for _, rows in groupby(csv.DictReader(file), key=lambda row: row["list"]):
            yield tuple(rows)


def predicted(row: Row) -> float:
    """Predict the time of a launch [s]; infinite if the kernel is refused."""
    sizes = {name: int(row[name]) for name in ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim")}
    call = iomodel.Attention(**sizes, dtype=row["dtype"], mask=row["mask"])
    options: dict[str, Any] = {"splits": int(row["splits"])} if row["splits"] else {}
    if row["packed"]:
        options["packed"] = row["packed"] == "yes"
    if row["kernel"].startswith("CUDA decode"):
        how = replace(algorithm(row["algorithm"]).execution["forward"], in_flight=CUDA_CORES)
        options["implementation"] = iomodel.kernels.Implementation(
            "cuda-decode", residency={"forward": (REGISTERS,)}, execution={"forward": how}
        )
    if row["kernel"] == "FlashAttention-2":
        options["implementation"] = "flash-attention-2"
    tiles = {name: int(row[name]) for name in TILES if row[name]}
    if row["kernel"].startswith("CUDA decode"):
        tiles = {"block_q": call.group if options.get("packed") else 1, "block_kv": WARP}
    if row["kernel"].startswith("Triton"):
        keep = iomodel.triton.pruner(call, row["device"], names={name: name for name in TILES[:2]}, version=TRITON)
        return keep.perf_model(**tiles, num_warps=tiles["warps"], num_stages=tiles["stages"])
    for left_out in ((), ("stages",)):  # the declared kernels have stages of their own
        kept = {name: size for name, size in tiles.items() if name not in left_out}
        try:
            return iomodel.estimate(row["algorithm"], call, row["device"], kept or None, **options).seconds
        except IOModelError:
            continue
    return inf


def decided() -> list[Decided]:
    return [
        Decided(rows[0]["list"], rows[0]["role"], rows[0]["family"], rows, tuple(map(predicted, rows)))
        for rows in lists()
        if not rows[0]["not_asked"]
    ]


def tau(a: tuple[float, ...], b: tuple[float, ...]) -> float | None:
    """Kendall's tau-b of two orders; None where either has ties alone."""
    score = only_a = only_b = 0
    pairs = list(combinations(range(len(a)), 2))
    for i, j in pairs:
        x, y = np.sign(a[i] - a[j]) if a[i] != a[j] else 0, np.sign(b[i] - b[j]) if b[i] != b[j] else 0
        score, only_a, only_b = score + int(x * y), only_a + (x != 0), only_b + (y != 0)
    return score / sqrt(only_a * only_b) if only_a and only_b else None


def model(found: Decided) -> int | None:
    least = min(found.predicted)
    return None if least == inf else found.predicted.index(least)


def tile(*sizes: int) -> Callable[[Decided], int | None]:
    """The launch of a list with these rows, columns and warps."""

    def rule(found: Decided) -> int | None:
        launches = [tuple(int(row[name] or 0) for name in TILES[:3]) for row in found.rows]
        return launches.index(sizes) if sizes in launches else None

    return rule


def largest(found: Decided) -> int | None:
    if found.family != "tile":
        return None
    return max(range(len(found.rows)), key=lambda i: int(found.rows[i]["block_q"]) * int(found.rows[i]["block_kv"]))


def one_split(found: Decided) -> int | None:
    return 0 if found.family == "splits" else None


def filling(found: Decided) -> int | None:
    """The least number of splits with a block for each SM."""
    if found.family != "splits":
        return None
    row = found.rows[0]
    units = iomodel.hardware(row["device"]).compute.units
    heads = int(row["kv_heads" if row["packed"] == "yes" else "heads"]) * int(row["batch"])
    enough = [
        i for i, other in enumerate(found.rows) if units is not None and heads * int(other["splits"]) >= units.value
    ]
    return enough[0] if enough else len(found.rows) - 1


def always_packed(found: Decided) -> int | None:
    return (
        next((i for i, row in enumerate(found.rows) if row["packed"] == "yes"), None)
        if found.family == "pack"
        else None
    )


RULES: dict[str, Callable[[Decided], int | None]] = {
    "this library": model,
    "128 x 128, 4 warps": tile(128, 128, 4),
    "64 x 64, 4 warps": tile(64, 64, 4),
    "largest tile": largest,
    "one split": one_split,
    "a block for each SM": filling,
    "packed": always_packed,
}


def report(every: list[Decided], each: bool = False) -> Iterator[str]:
    for role in ("open", "judging"):
        yield f"| {role}: rule | lists | median regret | worst regret |"
        yield "| --- | ---: | ---: | ---: |"
        for family in dict.fromkeys(found.family for found in every):
            part = [found for found in every if found.role == role and found.family == family]
            for name, rule in RULES.items():
                regrets = [regret for found in part if (regret := found.regret(rule(found))) is not None]
                if regrets:
                    yield f"| {family}: {name} | {len(regrets)} | {np.median(regrets):.1%} | {max(regrets):.1%} |"
        yield ""
        orders = [
            one for found in every if found.role == role and (one := tau(found.predicted, found.measured)) is not None
        ]
        yield f"Kendall's tau of the predicted order: median {np.median(orders):.2f}, {len(orders)} lists"
        refused = sum(time == inf for found in every if found.role == role for time in found.predicted)
        yield f"launches that are refused: {refused} of {sum(len(f.rows) for f in every if f.role == role)}"
        yield ""
    if each:
        for found in every:
            yield f"{found.name} ({found.role})"
            for row, time in zip(found.rows, found.predicted, strict=True):
                launch = ", ".join(f"{name} {row[name]}" for name in (*TILES, "splits", "packed") if row[name])
                yield f"  {launch}: {row['value']} {row['unit']}, predicted {time * 1e6:,.1f} us"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", action="store_true", help="print every launch of every list")
    given = parser.parse_args()
    for line in report(decided(), given.lists):
        print(line)


if __name__ == "__main__":
    main()
