"""Rank measured launches of a Triton kernel: the regret of the fastest prediction and the order, beside one fixed tile.

    python benchmarks/triton_ranking.py [--judging] [--device h100-sxm5]

The launches are those of `flash2` in tests/measured/gpu, grouped by their call; `benchmarks/decisions.py` has published
lists. Working curves of the H200 may choose constants; --judging shows the others, among them all of the H100.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402
import iomodel.triton  # noqa: E402
from benchmarks.decisions import tau  # noqa: E402
from tests.support.gpu_records import DEVICES, Record, attention, timed  # noqa: E402

VERSION = "3.9.0"
FIXED = (64, 64, 4)
"""Rows, keys and warps that are always taken instead."""
FEWEST = 8
"""Launches of a list [-]."""


class Ranked(NamedTuple):
    """The launches of a call with measured and predicted times [s]; a refused launch has an infinite one."""

    call: iomodel.Attention
    records: tuple[Record, ...]
    predicted: tuple[float, ...]

    @property
    def measured(self) -> tuple[float, ...]:
        """Measured times [s]."""
        return tuple(record.seconds for record in self.records)

    @property
    def regret(self) -> float:
        """Measured time of the launch of the least prediction over the best, less one [-]."""
        return self.measured[self.predicted.index(min(self.predicted))] / min(self.measured) - 1

    @property
    def fixed(self) -> float | None:
        """The same for the fixed tile, at its best number of stages; None where the list lacks it."""
        names = ("block_q", "block_kv", "num_warps")
        own = [record.seconds for record in self.records if tuple(record.case[name] for name in names) == FIXED]
        return min(own) / min(self.measured) - 1 if own else None

    @property
    def order(self) -> float | None:
        """Kendall's tau-b of the predicted order."""
        return tau(self.predicted, self.measured)


def ranked(judging: bool, device: str = DEVICES[0]) -> Iterator[Ranked]:
    """Yield the lists of launches of a call."""
    lists: dict[iomodel.Attention, list[Record]] = {}
    for record in timed(judging, "tiles", device=device):
        if record.case["kernel"] == "flash2":
            lists.setdefault(attention(record.case), []).append(record)
    for call, records in lists.items():
        if len(records) >= FEWEST:
            yield Ranked(call, tuple(records), tuple(predictions(call, records, device)))


def predictions(call: iomodel.Attention, records: list[Record], device: str) -> Iterator[float]:
    """Yield the predicted time of each launch [s]."""
    keep = iomodel.triton.pruner(call, device, top=None, version=VERSION)
    configs = [
        {"BLOCK_M": case["block_q"], "BLOCK_N": case["block_kv"]}
        | {name: case[name] for name in ("num_warps", "num_stages")}
        for case in (record.case for record in records)
    ]
    for each in keep.judge(configs, {}):
        yield each.seconds if each.timed else inf


def report(lists: list[Ranked]) -> Iterator[str]:
    """Yield the lines of the tables."""
    yield "| call | launches | regret | 64 x 64, 4 warps | tau |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for each in lists:
        call = each.call
        name = f"{call.batch} x {call.heads} x {call.q_len}, {call.head_dim}, {call.mask}"
        fixed = "" if each.fixed is None else f"{each.fixed:.1%}"
        yield f"| {name} | {len(each.records)} | {each.regret:.1%} | {fixed} | {each.order:.2f} |"
    regrets = [each.regret for each in lists]
    fixed = [each.fixed for each in lists if each.fixed is not None]
    yield f"regret: mean {np.mean(regrets):.1%}, worst {max(regrets):.1%}; {len(lists)} lists"
    if fixed:
        yield f"64 x 64, 4 warps: mean {np.mean(fixed):.1%}, worst {max(fixed):.1%}; {len(fixed)} lists"
    yield f"tau: median {np.median([each.order for each in lists if each.order is not None]):.2f}"
    ratios = [p / m for each in lists for p, m in zip(each.predicted, each.measured, strict=True) if p < inf]
    errors = np.abs(np.log(ratios))
    yield f"times: median error {np.expm1(np.median(errors)):.1%}, median ratio {np.median(ratios):.2f}, {len(ratios)}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judging", action="store_true", help="show the curves that may choose no constant")
    parser.add_argument("--device", choices=DEVICES, default=DEVICES[0], help="the device of the records (h200-sxm)")
    given = parser.parse_args()
    for line in report([*ranked(given.judging, given.device)]):
        print(line)


if __name__ == "__main__":
    main()
