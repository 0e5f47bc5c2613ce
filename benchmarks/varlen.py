"""One cost of a batch of many lengths against one cost a sequence, and against the bare formula in NumPy.

    python benchmarks/varlen.py [--sequences 10000] [--repeats 15]

Medians in one run, printed as ratios. All quantities of flash2 are counted, NumPy computes the bytes alone. Warm:
formulas are compiled and the batch has been seen; "new batch" includes its construction and checks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import iomodel

SHAPE = {"heads": 32, "kv_heads": 8, "head_dim": 128}
BLOCK_Q, BLOCK_KV = 128, 64
TILES = {"block_q": BLOCK_Q, "block_kv": BLOCK_KV}


def timed(call: Callable[[], object], repeats: int) -> float:
    """Median time of a call [s], after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times)


def in_numpy(q_lens: np.ndarray, kv_lens: np.ndarray) -> int:
    """Bytes of flash2 without a mask, written straight down."""
    rows = -(-q_lens // BLOCK_Q) * kv_lens
    return int(32 * (2 * 128 * (2 * q_lens + 2 * rows) + 4 * q_lens).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=10_000, help="sequences of the batch (default 10000)")
    parser.add_argument("--repeats", type=int, default=15, help="timed calls per median (default 15)")
    given = parser.parse_args()
    lengths = np.random.default_rng(0).integers(1, 8192, (2, given.sequences))
    q_lens, kv_lens = np.minimum(*lengths), np.maximum(*lengths)
    table = Table(title=f"{given.sequences:,} sequences, medians of one run")
    for column in ("mask", "how", "time [ms]", "ratio to warm"):
        table.add_column(column, justify="right" if "[" in column or "ratio" in column else "left")
    for mask in ("full", "causal"):
        batch = iomodel.VarlenAttention(q_lens=q_lens, kv_lens=kv_lens, mask=mask, **SHAPE)
        each = [iomodel.Attention(q_len=q, kv_len=k, mask=mask, **SHAPE) for q, k in lengths.T[:500].tolist()]
        warm = timed(lambda batch=batch: iomodel.cost("flash2", batch, TILES), given.repeats)
        others = {
            "new batch": timed(
                lambda mask=mask: iomodel.cost(
                    "flash2", iomodel.VarlenAttention(q_lens=q_lens, kv_lens=kv_lens, mask=mask, **SHAPE), TILES
                ),
                given.repeats,
            ),
            "one cost a sequence": timed(lambda each=each: [iomodel.cost("flash2", w, TILES) for w in each], 3)
            * given.sequences
            / len(each),
        }
        if mask == "full":
            others["bytes alone in NumPy"] = timed(lambda: in_numpy(q_lens, kv_lens), given.repeats)
            assert in_numpy(q_lens, kv_lens) == iomodel.cost("flash2", batch, TILES).hbm_bytes
        table.add_row(mask, "one batch, warm", f"{1e3 * warm:.2f}", "1.0")
        for how, seconds in others.items():
            table.add_row(mask, how, f"{1e3 * seconds:.2f}", f"{seconds / warm:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
