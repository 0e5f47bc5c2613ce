"""What a call of `cost_array` costs as its arrays grow: time in all and an element, memory beside input and output.

    python benchmarks/array_growth.py [--largest 100000000]

Each size in a fresh process. The first call makes the code, from four million elements on machine code too where numba
is installed; the extra memory is that of a later call, its high-water mark less lengths and answer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from rich.console import Console
from rich.table import Table

ALONE = """
import sys, time
import numpy as np
import iomodel

def high():
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return [int(fields[name].split()[0]) * 1024 for name in ("VmHWM", "VmRSS")]

number, mask = int(sys.argv[1]), sys.argv[2]
tiles = {"block_q": 128, "block_kv": 64}
ask = lambda lengths: iomodel.cost_array("flash2", q_len=lengths, head_dim=128, heads=32, mask=mask, **tiles).hbm_bytes
lengths = np.arange(number, dtype=np.int64) % 131072 + 1
start = time.perf_counter()
ask(lengths)
first = time.perf_counter() - start
with open("/proc/self/clear_refs", "w") as clear:
    clear.write("5")  # the high-water mark starts anew
before = high()[1]
found = ask(lengths)
extra = high()[0] - before - found.nbytes
del found
runs = max(3, min(2000, 10**6 // number))
start = time.perf_counter()
for _ in range(runs):
    ask(lengths)
warm = (time.perf_counter() - start) / runs
print(first, warm, extra)
"""


def alone(number: int, mask: str, **environment: str) -> list[float]:
    """First call [s], a later call [s], extra memory [B], in a process of their own."""
    command, told = [sys.executable, "-c", ALONE, str(number), mask], {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=told)
    return [float(figure) for figure in done.stdout.split()]


def growth(largest: int, console: Console) -> None:
    """The table, a row for each mask and power of ten."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        console.print("no /proc/self/clear_refs here: memory is not measured")
        return
    table = Table(title="cost_array at N lengths, each in a fresh process; memory beside the lengths and the answer")
    for column in ("mask", "N", "first call [s]", "then [us]", "an element [ns]", "extra memory [MiB]"):
        table.add_column(column, justify="right" if column != "mask" else "left")
    for mask in ("full", "causal"):
        for number in [10**k for k in range(len(str(largest)))]:
            first, warm, _ = alone(number, mask)
            *_, extra = alone(number, mask, MALLOC_MMAP_THRESHOLD_="65536")  # what is freed is not kept for later
            cells = (
                f"{first:.2f}",
                f"{warm * 1e6:,.1f}",
                f"{warm / number * 1e9:,.1f}",
                f"{max(0.0, extra) / 2**20:,.1f}",
            )
            table.add_row(mask, f"{number:,}", *cells)
        table.add_section()
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=10**8, help="elements of the largest array (default 10**8)")
    growth(parser.parse_args().largest, Console(width=110))


if __name__ == "__main__":
    main()
