"""Reports of Nsight Compute from a file: a table of `ncu --csv`, or an `.ncu-rep` file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown, shown_name
from iomodel.integrations.nsight.binary_report import read_launches
from iomodel.integrations.nsight.counters import KernelCounters, in_base_units, with_bytes
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
        launches = read_launches(path)
    except ModuleNotFoundError:
        raise InputError(
            "ncu_report: not installed; .ncu-rep files need it: pip install 'iomodel[nsight]', or give the CSV of "
            "ncu --import FILE --page raw --csv"
        ) from None
    except ValueError as error:
        raise InputError(
            f"report: {shown(path.name)} is no report of Nsight Compute: {shown_name(str(error))}"
        ) from None
    # Of a file that was cut short, the reader lists kernels without a name.
    if not launches or not all(isinstance(kernel, str) for kernel, _, _ in launches):
        raise InputError(f"report: {shown(path.name)} holds no kernel, or one without a name; it may be cut short")
    return [KernelCounters(kernel, launch, _in_base_units(counters)) for kernel, launch, counters in launches]


def _in_base_units(counters: Mapping[str, tuple[float, str]]) -> FrozenDict[str, float]:
    values = {name: in_base_units(repr(value), unit) for name, (value, unit) in counters.items()}
    return with_bytes({name: value for name, value in values.items() if value is not None})
