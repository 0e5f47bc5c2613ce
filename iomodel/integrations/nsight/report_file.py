"""Reports of Nsight Compute from a file: a table of `ncu --csv`, or an `.ncu-rep` file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown, shown_name
from iomodel.integrations.nsight.counters import KernelCounters, in_base_units
from iomodel.integrations.nsight.csv_report import read_csv

ENDINGS = (".ncu-rep", ".ncu-repz")
LARGEST = 2**30
"""Size limit of a table [B]."""


def read_report(report: str | os.PathLike[str]) -> list[KernelCounters]:
    """Read the launches of a report.

    Raises
    ------
    InputError
        The file cannot be read, is no report, or is cut short; the reader of `.ncu-rep` files is not installed.
    """
    try:
        path = Path(os.fsdecode(report))
    except TypeError:
        raise InputError(f"report: {shown(report)} given; allowed: the path of a CSV or .ncu-rep file") from None
    try:
        if not path.is_file():
            raise InputError(f"report: {shown(str(path))} is no file; allowed: a CSV of ncu --csv, or an .ncu-rep file")
        if path.suffix in ENDINGS:
            return _read_binary(path)
        if path.stat().st_size > LARGEST:
            raise InputError(
                f"report: {shown(str(path))} has more than {LARGEST:,} B; allowed: fewer kernels or metrics"
            )
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"report: {shown(str(report))} cannot be read: {shown(error)}") from None
    return read_csv(text, shown_name(path.name))


def _read_binary(path: Path) -> list[KernelCounters]:
    try:
        import ncu_report
    except (ImportError, OSError):
        raise InputError(
            "ncu_report: not installed; .ncu-rep files need it: pip install 'iomodel[nsight]', or give the CSV of "
            "ncu --import FILE --page raw --csv"
        ) from None
    try:
        context = ncu_report.load_report(str(path))
        launches = [
            _launch(action, f"{place}.{number}")
            for place in range(context.num_ranges())
            for number, action in enumerate(_actions(context.range_by_idx(place)))
        ]
    except Exception as error:  # the reader raises plain exceptions
        raise InputError(f"report: {shown(path.name)} is no report of Nsight Compute: {shown(error)}") from None
    # Of a file that was cut short, the reader lists kernels without a name.
    if not launches or not all(isinstance(launch.kernel, str) for launch in launches):
        raise InputError(f"report: {shown(path.name)} holds no kernel, or one without a name; it may be cut short")
    return launches


def _actions(part: Any) -> list[Any]:
    return [part.action_by_idx(number) for number in range(part.num_actions())]


def _launch(action: Any, identifier: str) -> KernelCounters:
    values = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        value = None if metric is None else metric.value()
        if isinstance(value, int | float) and not isinstance(value, bool):
            values[name] = in_base_units(repr(value), metric.unit() or "")
    known = {name: value for name, value in values.items() if value is not None}
    return KernelCounters(action.name(), identifier, FrozenDict(known))
