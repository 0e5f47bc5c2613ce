"""Tables that `ncu --csv` prints: a row per metric (details page), or a column per metric (raw page).

Tables of the profilers of AMD are known by the names of their columns.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence

from iomodel.common.counter_names import LAUNCH, METRIC, MOST, NAME
from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown, shown_name
from iomodel.integrations.nsight.counters import (
    KernelCounters,
    counter_of,
    has_decimal_commas,
    in_base_units,
    with_bytes,
)

OTHER_NAMES = ("KernelName", "Kernel_Name")
"""Columns with the names of kernels: of rocprof; of rocprofv3 and Omniperf."""
LAUNCHES = ("Dispatch_Id", "Dispatch_ID", "Index")
COUNTER = ("Counter_Name", "Counter_Value")
KIB = 1024
READ, WRITE, TIME = "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum"


def read_rocm(body: Iterable[list[str]], header: Sequence[str], where: str) -> list[KernelCounters]:
    """Read the launches of a table of AMD's profilers: a column per counter, or a row per counter.

    FETCH_SIZE and WRITE_SIZE, once FetchSize and WriteSize, are in KiB (rocprof --list-derived). Without them, bytes
    follow from the requests of the L2 to memory: 32 or 64 B each (TCC_EA_RDREQ, TCC_EA_WRREQ; MI200 performance
    counters, docs of ROCm), and 128 B of those that TCC_BUBBLE counts (MI300 performance counters).
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
    fetched, written = (
        next((sums[name] for name in names if name in sums), None)
        for names in (("FETCH_SIZE", "FetchSize"), ("WRITE_SIZE", "WriteSize"))
    )
    if fetched is not None:
        found[READ] = KIB * fetched
    elif reads is not None:
        found[READ] = 32 * short + 64 * (reads - short - long) + 128 * long
    if written is not None:
        found[WRITE] = KIB * written
    elif writes is not None and whole is not None:
        found[WRITE] = 64 * whole + 32 * (writes - whole)
    start = next((sums[name] for name in ("Start_Timestamp", "BeginNs") if name in sums), None)
    end = next((sums[name] for name in ("End_Timestamp", "EndNs") if name in sums), None)
    if "DurationNs" in sums:
        found[TIME] = 1e-9 * sums["DurationNs"]
    elif start is not None and end is not None and end > start:
        found[TIME] = 1e-9 * (end - start)
    return found


Row = tuple[int, list[str]]


def read_csv(text: str, where: str) -> list[KernelCounters]:
    """Read the launches of a table; lines before its header, such as those of the profiler, are passed over.

    Raises
    ------
    InputError
        There is no header; a row has fewer or more cells than the header; a launch lacks metrics of the others.
    """
    rows = _rows(text, where)
    header = next((cells for _, cells in rows if {NAME, *OTHER_NAMES} & {*cells}), None)
    if header is not None and NAME not in header:
        return read_rocm(_whole(rows, header, where), header, where)
    if header is None:
        raise InputError(
            f"{where}: no header with {NAME!r} found; allowed: the output of ncu --csv (--page raw or --metrics ...)"
        )
    if METRIC[0] in header and not {*METRIC} <= {*header}:
        raise InputError(f"{where}: a header without {METRIC[2]!r} found; the file is cut short")
    body = list(_whole(rows, header, where))
    launches = _by_rows(body, header) if METRIC[0] in header else _by_columns(body, header)
    if not launches:
        raise InputError(f"{where}: no kernel found below the header; the file may be cut short")
    every = set().union(*(each.values.keys() for each in launches))
    last = launches[-1]
    lacking = sorted(name for name in every - last.values.keys() if all(name in each.values for each in launches[:-1]))
    if len(launches) > 1 and lacking and (METRIC[0] in header or not text.endswith("\n")):
        raise InputError(
            f"{where}: the last launch, {shown_name(last.launch)} of {shown(last.kernel)}, lacks "
            f"{shown_name(lacking[0])}; the file is cut short"
        )
    return launches


def _rows(text: str, where: str) -> Iterator[Row]:
    try:
        reader = csv.reader(text.splitlines(), strict=True)
        for cells in reader:
            if reader.line_num > MOST:
                raise InputError(f"{where}: more than {MOST:,} lines; allowed: a report of fewer kernels")
            if cells and not (len(cells) == 1 or cells[0].startswith("==")):
                yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{where}: line {reader.line_num}: {error}; the file may be cut short") from None


def _whole(rows: Iterator[Row], header: Sequence[str], where: str) -> Iterator[list[str]]:
    least = header.index(METRIC[2]) + 1 if METRIC[2] in header else len(header)
    for line, cells in rows:
        if not least <= len(cells) <= len(header):
            raise InputError(
                f"{where}: line {line}: {len(cells)} cells found, {len(header)} in the header; the file is cut short"
            )
        yield cells + [""] * (len(header) - len(cells))  # ncu leaves out the cells of rules, where a row has none


def _by_rows(body: list[list[str]], header: list[str]) -> list[KernelCounters]:
    """Read a table with a row per metric."""
    name, launch = header.index(NAME), header.index(LAUNCH) if LAUNCH in header else None
    metric, unit, value = (header.index(each) for each in METRIC)
    launches: dict[tuple[str, str], dict[str, float]] = {}
    commas = has_decimal_commas(cells[value] for cells in body)
    for cells in body:
        values = launches.setdefault(("0" if launch is None else cells[launch], cells[name]), {})
        number = in_base_units(cells[value], cells[unit], commas)
        if cells[metric] and number is not None:
            values[counter_of(cells[metric], cells[unit])] = number
    return [KernelCounters(kernel, each, with_bytes(values)) for (each, kernel), values in launches.items()]


def _by_columns(body: list[list[str]], header: list[str]) -> list[KernelCounters]:
    """Read a table with a column per metric; the first row below the header holds the units."""
    name, launch = header.index(NAME), header.index(LAUNCH) if LAUNCH in header else None
    has_units = bool(body) and not body[0][name]
    units = body[0] if has_units else [""] * len(header)
    launches = []
    measured = [place for place, metric in enumerate(header) if "__" in metric]
    commas = has_decimal_commas(cells[place] for cells in body[has_units:] for place in measured)
    for place, cells in enumerate(body[has_units:]):
        numbers = {
            metric: number
            for metric, unit, value in zip(header, units, cells, strict=True)
            if "__" in metric and (number := in_base_units(value, unit, commas)) is not None
        }
        launches.append(
            KernelCounters(cells[name], str(place) if launch is None else cells[launch], with_bytes(numbers))
        )
    return launches
