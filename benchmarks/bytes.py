"""Hold the intervals of DRAM traffic against byte counters of published kernels, row by row.

    python benchmarks/bytes.py

The rows of `tests/measured/bytes.csv` are for evaluation only. As in an audit, the lower end is less by the output that
the L2 may hold when the kernel ends: all that fits, or of a kernel that reads and writes at constant rates what the
least recently used lines leave it. A row passes if it is inside an interval at most 1.5-fold wide, or if the nearer
end of the interval is within 15 % and the interval is no wider than that. Rows of level `l2` count what leaves the L2.

    python -m benchmarks.bytes --gpu [--judging]

takes the counters of tests/measured/gpu/h200-sxm.jsonl.gz: level `requests` has what the SMs received from the L2
(`l1tex__m_xbar2l1tex_read_bytes`) beside the exact count of three Triton kernels, level `dram reads` the interval of
every kernel that is declared. The sectors that the slices of the L2 read (`lts__t_sectors_op_read`) are another figure:
a line of the far partition passes two slices, and one that SMs ask for together passes none twice.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402
from benchmarks.gpu_accuracy import told  # noqa: E402
from iomodel.algorithms import algorithm  # noqa: E402
from iomodel.counting.bound_call import BoundCall  # noqa: E402
from iomodel.counting.kinds import kind_of  # noqa: E402
from iomodel.devices.device import as_device  # noqa: E402
from iomodel.devices.rates import rates  # noqa: E402
from iomodel.nests.execution import PIPELINED  # noqa: E402
from iomodel.timing.dram import dram  # noqa: E402
from iomodel.timing.in_phase import Caches  # noqa: E402
from iomodel.timing.work_at_point import demands  # noqa: E402
from iomodel.workloads.call import ELEMENT_SIZE  # noqa: E402
from iomodel.workloads.elementwise import Elementwise  # noqa: E402
from tests.support.gpu_records import Record, attention, records  # noqa: E402

MEASURED = ROOT / "tests" / "measured" / "bytes.csv"
KINDS: dict[str, Any] = {"Attention": iomodel.Attention, "Linear": iomodel.Linear, "Elementwise": Elementwise}
WIDEST, NEAREST = 1.5, 0.15


class Judged(NamedTuple):
    """One row: the interval and the measured figure [B], and whether one counts as a prediction of the other."""

    name: str
    level: str
    low: int
    high: int
    measured: int

    @property
    def width(self) -> float:
        """Upper over lower end [-]."""
        return self.high / self.low if self.low else math.inf

    @property
    def error(self) -> float:
        """Relative distance of the measured figure from the interval, 0 inside [-]."""
        return max(self.low / self.measured - 1, 1 - self.high / self.measured, 0.0)

    @property
    def passes(self) -> bool:
        """True inside a narrow interval, or where both ends are near the figure."""
        both = max(abs(self.low / self.measured - 1), abs(self.high / self.measured - 1))
        return both <= NEAREST or (self.error == 0 and self.width <= WIDEST)


def arguments(text: str) -> dict[str, Any]:
    """Read `name=value` pairs; the values are integers, or strings that a workload reads."""
    pairs = (pair.split("=") for pair in text.split())
    return {name: int(value) if value.isdecimal() else value for name, value in pairs}


def predicted(row: dict[str, str]) -> tuple[int, int]:
    """The interval of the library for a row [B]."""
    given, tiles = arguments(row["sizes"]), arguments(row["tiles"])
    if "dropout" in given:
        given["dropout"] = float(given["dropout"])
    call = KINDS[row["workload"]](**given)
    device = as_device(row["device"])
    known = rates(device, call.dtype)
    if row["blocks_per_sm"]:  # a kernel of no declared implementation: its slots are those of its launch
        bound = BoundCall.bind(row["algorithm"], call, {})
        of_calls = demands(algorithm(row["algorithm"]), kind_of(call), bound.structure, PIPELINED)
        (work,) = of_calls.at(call, call, bound.options, tiles)
        caches = Caches.of(known)
        at_once = (known.units or 1) * int(row["blocks_per_sm"])
        traffic = dram(work, call, False, caches, at_once, row["fastest"] or "tiles")
        if row["level"] == "l2":
            return traffic.leaving
        low, high, moved = traffic.low, traffic.high, 0
        written = sum(moved.distinct for moved in work.moved if moved.name == "O")
    else:
        stated = arguments(row["options"])
        options = {name: value if isinstance(value, str) else bool(value) for name, value in stated.items()}
        answer = iomodel.estimate(row["algorithm"], call, device, tiles or None, **options)
        kernels = [kernel for kernel in answer.kernels if row["part"] in ("", kernel.title)]
        low, high = kernels[0].dram_bytes if row["part"] else answer.dram_bytes
        moved = sum(kernel.distinct_bytes for kernel in kernels)
        written = moved // 2 if row["part"] else round(answer.cost.hbm_writes * ELEMENT_SIZE[call.dtype])
        streams = bool(row["part"]) or not answer.cost.flops
        if len(kernels) > 1 or kernels[0].requested_bytes > moved or not streams:
            moved = 0  # no constant rates
    least, most = kept(written, moved, known.l2_capacity or 0, known.l2_partitions)
    if row["level"] == "dram reads":
        return max(0, low - written), max(0, high - written)
    if row["level"] == "dram writes":
        return written - most, written - least
    return max(0, low - most), high - least


def kept(written: int, moved: int, capacity: int, partitions: int) -> tuple[int, int]:
    """Least and most of the output in the L2 when the kernel ends [B].

    `moved` are all bytes of a kernel that moves each once, reads and writes at constant rates, 0 of others. Of these
    the L2 holds the latest. A line that an SM next to another partition accesses is in two of them: one and a half
    lines in the mean of two partitions.
    """
    if moved == 0:
        return 0, min(capacity, written)
    copies = 2 - 1 / partitions
    least, most = (min(1.0, held / moved) for held in (capacity / copies, capacity))
    return round(written * least), round(written * most)


def judged() -> list[Judged]:
    """All rows beside their intervals."""
    with MEASURED.open(newline="") as file:
        return [Judged(row["name"], row["level"], *predicted(row), int(row["bytes"])) for row in csv.DictReader(file)]


RECEIVED, READ = "l1tex__m_xbar2l1tex_read_bytes.sum [byte]", "dram__bytes_read.sum [byte]"
STATISTICS = {"l", "m"}
"""Tensors of the Triton kernels in fp32."""


def requested(record: Record) -> int:
    """Count the bytes that a Triton kernel of a record loads [B]."""
    tiles = {"block_q": record.case["block_q"], "block_kv": record.case["block_kv"]}
    reads = iomodel.cost(record.case["kernel"], attention(record.case), tiles).reads
    return sum(4 * read if name in STATISTICS else 2 * read for name, read in reads.items())


def of_gpu(judging: bool) -> Iterator[Judged]:
    """Hold exact requests and the intervals of DRAM reads against the counters of a GPU."""
    for record in records():
        if record.section != "traffic" or record.judges is not judging or "q_len" not in record.case or record.error:
            continue
        name = str(record).removeprefix("traffic ")
        if "kernel" in record.case:
            count = requested(record)
            yield Judged(name, "requests", count, count, record.values[RECEIVED])
        answer = told(record)
        if answer is not None:
            written = round(answer.cost.hbm_writes * ELEMENT_SIZE[answer.workload.dtype])
            low, high = (max(0, size - written) for size in answer.dram_bytes)
            yield Judged(name, "dram reads", low, high, record.values[READ])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="the counters of an H200")
    parser.add_argument("--judging", action="store_true", help="with --gpu: the judging curves in place of the others")
    given = parser.parse_args()
    table = Table("row", "level", "low [MB]", "high [MB]", "high / low", "measured [MB]", "outside by", "passes")
    rows = list(of_gpu(given.judging)) if given.gpu else judged()
    for row in rows:
        megabytes = (f"{size / 1e6:,.2f}" for size in (row.low, row.high))
        outside = "inside" if row.error == 0 else f"{row.error:.1%}"
        verdict = "yes" if row.passes else "no"
        table.add_row(
            row.name, row.level, *megabytes, f"{row.width:.2f}", f"{row.measured / 1e6:,.2f}", outside, verdict
        )
    Console(file=sys.stdout, width=130).print(table)
    inside = sum(row.error == 0 for row in rows)
    print(f"{sum(row.passes for row in rows)} of {len(rows)} rows pass; {inside} are inside their interval")


if __name__ == "__main__":
    main()
