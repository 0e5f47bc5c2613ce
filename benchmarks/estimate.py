"""One warm estimate against one warm cost, and least time against least traffic: ratios in one run.

    python benchmarks/estimate.py [--repeats 15]

A cost counts; an estimate counts, folds the nests once more, times every way to run the tile, bounds what crosses the
bus. The solver of least traffic proves; that of least time looks at every tile that fits.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import iomodel
from benchmarks.solve_and_cost import timed

GPU = "h100-sxm5"
TILES = {"block_q": 128, "block_kv": 64, "warps": 4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    table = Table("call", "estimate [us]", "/ cost", "least time [ms]", "/ least traffic")
    for mask in ("full", "causal"):
        for direction in ("forward", "backward"):
            w = iomodel.Attention(heads=32, q_len=8192, head_dim=128, mask=mask, direction=direction)
            tiles = TILES if direction == "forward" else {"block_q": 64, "block_kv": 128, "warps": 8}
            estimate = timed(lambda w=w, tiles=tiles: iomodel.estimate("flash2", w, GPU, tiles), repeats)
            cost = timed(lambda w=w, tiles=tiles: iomodel.cost("flash2", w, tiles), repeats)
            fastest = timed(lambda w=w: iomodel.solve("flash2", w, GPU, objective="time"), max(3, repeats // 5))
            least = timed(lambda w=w: iomodel.solve("flash2", w, GPU, objective="traffic"), max(3, repeats // 5))
            table.add_row(
                f"flash2 {direction}, {mask}",
                f"{estimate * 1e6:,.0f}",
                f"{estimate / cost:,.1f}",
                f"{fastest * 1e3:,.1f}",
                f"{fastest / least:,.1f}",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
