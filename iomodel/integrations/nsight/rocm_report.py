"""Tables of rocprof, rocprofv3 and Omniperf, with the counters under the names of those of Nsight Compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError
from iomodel.integrations.nsight.counters import KernelCounters, in_base_units

OTHER_NAMES = ("KernelName", "Kernel_Name")
"""Columns with the names of kernels: of rocprof; of rocprofv3 and Omniperf."""
LAUNCHES = ("Dispatch_Id", "Dispatch_ID", "Index")
COUNTER = ("Counter_Name", "Counter_Value")
KIB = 1024
READ, WRITE, TIME = "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum"


def read_rocm(body: Iterable[list[str]], header: Sequence[str], where: str) -> list[KernelCounters]:
    """Read the launches of a table of AMD's profilers: a column per counter, or a row per counter.

    FETCH_SIZE and WRITE_SIZE are in KiB (rocprof --list-derived). Without them, bytes follow from the requests of the
    L2 to memory: 32 or 64 B each (TCC_EA_RDREQ, TCC_EA_WRREQ; MI200 performance counters, docs of ROCm), and 128 B of
    those that TCC_BUBBLE counts (MI300 performance counters).
    """
    name = next(header.index(each) for each in OTHER_NAMES if each in header)
    launch = next((header.index(each) for each in LAUNCHES if each in header), None)
    launches: dict[tuple[str, str], dict[str, float]] = {}
    for place, cells in enumerate(body):
        key = (str(place) if launch is None else cells[launch], cells[name])
        counted = launches.setdefault(key, {})
        pairs = zip(header, cells, strict=True)
        row = {column: number for column, cell in pairs if (number := in_base_units(cell, "")) is not None}
        if {*COUNTER} <= {*header}:
            value = row.get(COUNTER[1])
            if value is not None:
                counter = cells[header.index(COUNTER[0])]
                counted[counter] = counted.get(counter, 0.0) + value
            row = {column: row[column] for column in ("Start_Timestamp", "End_Timestamp") if column in row}
        counted.update(row)
    found = [KernelCounters(kernel, each, FrozenDict(_named(values))) for (each, kernel), values in launches.items()]
    if not any(each.values for each in found):
        raise InputError(
            f"{where}: no counter of bytes and no time found; allowed: FETCH_SIZE and WRITE_SIZE, as of rocprof -i "
            "with 'pmc: FETCH_SIZE WRITE_SIZE'"
        )
    return found


def _named(values: Mapping[str, float]) -> dict[str, float]:
    """Give counters the names of those of Nsight Compute: bytes, sectors of 32 B, and seconds."""
    sums = {name.removesuffix("_sum").replace("TCC_EA0_", "TCC_EA_"): value for name, value in values.items()}
    found: dict[str, float] = {}
    reads, short, long = sums.get("TCC_EA_RDREQ"), sums.get("TCC_EA_RDREQ_32B", 0.0), sums.get("TCC_BUBBLE", 0.0)
    writes, whole = sums.get("TCC_EA_WRREQ"), sums.get("TCC_EA_WRREQ_64B")
    if "FETCH_SIZE" in sums:
        found[READ] = KIB * sums["FETCH_SIZE"]
    elif reads is not None:
        found[READ] = 32 * short + 64 * (reads - short - long) + 128 * long
    if "WRITE_SIZE" in sums:
        found[WRITE] = KIB * sums["WRITE_SIZE"]
    elif writes is not None and whole is not None:
        found[WRITE] = 64 * whole + 32 * (writes - whole)
    start = next((sums[name] for name in ("Start_Timestamp", "BeginNs") if name in sums), None)
    end = next((sums[name] for name in ("End_Timestamp", "EndNs") if name in sums), None)
    if "DurationNs" in sums:
        found[TIME] = 1e-9 * sums["DurationNs"]
    elif start is not None and end is not None and end > start:
        found[TIME] = 1e-9 * (end - start)
    return found
