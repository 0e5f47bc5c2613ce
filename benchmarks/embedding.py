"""Memory of a process that asks many distinct questions: resident size before and after.

    python -m benchmarks.embedding [N]

N questions of `cost`, each of another shape, over all workloads; then N / 100 of `solve` and of `estimate`. The caches
are filled by the first tenth, so that the last nine tenths are what a service that runs for long adds.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import iomodel


def resident() -> int:
    """Return the resident size of the process [B]."""
    fields = Path("/proc/self/status").read_text(encoding="ascii").split()
    return 1024 * int(fields[fields.index("VmRSS:") + 1])


def costs(number: int) -> None:
    """Ask for a cost that no other number asks for."""
    kind, n = number % 4, 1 + number // 4
    tiles = {"block_q": 16 * (1 + n % 8), "block_kv": 16 * (1 + n % 5)}
    linear = {"block_m": 64, "block_n": 32, "block_k": 16}
    if kind == 0:
        iomodel.cost("flash2", iomodel.Attention(q_len=n, head_dim=64, heads=8, kv_heads=2, mask="causal"), tiles)
    elif kind == 1:
        iomodel.cost("split_kv", iomodel.Attention(q_len=1, kv_len=n, head_dim=128), tiles, splits=1)
    elif kind == 2:
        iomodel.cost("gemm", iomodel.Linear(rows=n, in_features=512, out_features=256), linear)
    else:
        iomodel.cost("split_mlp", iomodel.MLP(rows=n, in_features=128, hidden_features=256), linear)


def solves(number: int) -> None:
    """Solve a problem that no other number asks for."""
    iomodel.solve("flash2", iomodel.Attention(q_len=1 + number, head_dim=64), sram_bytes=60_000, alignment=16)


def estimates(number: int) -> None:
    """Time a call that no other number asks for."""
    w = iomodel.Attention(q_len=1 + number, head_dim=64, heads=4, mask="causal")
    iomodel.estimate("flash2", w, "h100-sxm5", {"block_q": 64, "block_kv": 32})


def asked(question: Callable[[int], None], many: int) -> tuple[int, int, float]:
    """Ask, and return the resident size after a tenth and after all, and the time of a question [s]."""
    began = time.perf_counter()
    sizes = []
    for end in (many // 10, many):
        for number in range(many // 10 if sizes else 0, end):
            question(number)
        gc.collect()
        sizes.append(resident())
    return sizes[0], sizes[1], (time.perf_counter() - began) / many


def rows(many: int) -> Iterator[tuple[Any, ...]]:
    for question, count in ((costs, many), (solves, many // 100), (estimates, many // 100)):
        before, after, seconds = asked(question, count)
        yield question.__name__, count, before, after, seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=int, nargs="?", default=1_000_000, help="how many (default 1000000)")
    for name, count, before, after, seconds in rows(parser.parse_args().questions):
        sizes = f"{before / 2**20:.1f} MiB after a tenth, {after / 2**20:.1f} MiB after all"
        print(f"{name}: {count:,} questions: {sizes}, {1e6 * seconds:.0f} us each", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
