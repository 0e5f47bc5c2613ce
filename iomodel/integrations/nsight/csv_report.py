"""Tables that `ncu --csv` prints: a row per metric (details page), or a column per metric (raw page).

Tables of the profilers of AMD are known by the names of their columns.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from iomodel.common.counter_names import LAUNCH, METRIC, MOST, NAME
from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown, shown_name
from iomodel.integrations.nsight.counters import KernelCounters, has_decimal_commas, in_base_units
from iomodel.integrations.nsight.rocm_report import OTHER_NAMES, read_rocm

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
            values[cells[metric]] = number
    return [KernelCounters(kernel, each, FrozenDict(values)) for (each, kernel), values in launches.items()]


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
            KernelCounters(cells[name], str(place) if launch is None else cells[launch], FrozenDict(numbers))
        )
    return launches
