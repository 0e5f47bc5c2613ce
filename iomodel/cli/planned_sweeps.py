"""Sweeps of plans that `iomodel sweep` runs: the file, the table, and a summary."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iomodel.common.display import Table, figure
from iomodel.common.output_files import in_one_step
from iomodel.common.tabular import EXTRA
from iomodel.errors import InputError, IOModelError, SpecError, UnknownNameError, shown

if TYPE_CHECKING:
    from xarray import Dataset


TABLES = (".parquet", ".csv")
UNITS = {"1": "-"}
"""Units of a data set that tables write otherwise."""
REASONS = 3
"""Most reasons that a summary prints."""


def asked_plans(path: str) -> tuple[dict[str, Any], str] | None:
    """Read the arguments of :func:`iomodel.sweep_plans` in a file; None if the file asks no planning question."""
    from iomodel.common.yaml_files import read_user
    from iomodel.studies.sweeps.file import numbers

    arguments, where = read_user(path)
    if "question" not in arguments:
        return None
    try:
        values = {
            name: numbers(name, entry) if isinstance(entry, dict) and "from" in entry else entry
            for name, entry in arguments.items()
        }
    except IOModelError as error:
        raise SpecError(f"{where}: {error}") from None
    return values, where


def answered(arguments: dict[str, Any], where: str, scheduler: Any) -> Dataset:
    """Run a sweep of plans; an error names the file."""
    from iomodel.planning.sweep_plans import sweep_plans

    try:
        return sweep_plans(scheduler=scheduler, **arguments)
    except IOModelError as error:
        raise SpecError(f"{where}: {error}") from None


def check_out(path: Path, resume: bool) -> None:
    """Raise an error unless a table of a known form can be written at a path."""
    if path.suffix not in TABLES:
        raise UnknownNameError("out", path.suffix, TABLES)
    check_place(path, table=True, resume=resume)


def check_place(path: Path, *, table: bool, resume: bool) -> None:
    """Raise InputError unless a path is in a directory, and a table there is to be replaced."""
    if not path.parent.is_dir():
        raise InputError(
            f"out: {shown(os.fspath(path.parent))} is not a directory; allowed: a file in an existing directory"
        )
    if table and path.exists() and (resume or not path.is_file()):
        raise InputError(
            f"out: {shown(os.fspath(path))} already exists; allowed: another name, or --fresh to replace it"
        )


def write(result: Dataset, path: Path) -> None:
    """Write a table with a row per point in one step."""
    point = result if result.dims else result.expand_dims("point")
    table = point.to_dataframe().reset_index().drop(columns="point", errors="ignore")
    try:
        with in_one_step(path, overwrite=True) as hidden:
            if path.suffix == ".csv":
                table.to_csv(hidden, index=False, lineterminator="\n")
            else:
                table.to_parquet(hidden, index=False)
    except ImportError:
        raise InputError(f"pyarrow: not installed; Parquet needs it: {EXTRA}") from None
    except OSError as error:
        raise InputError(f"out: {os.fspath(path)!r} cannot be written: {error.strerror or error}") from None


def summary(result: Dataset, out: str | None) -> dict[str, Any]:
    """Summarise a sweep of plans: its size, and where each figure is least and largest."""
    points = result.refused.size
    refused = Counter(str(reason) for reason in result.refused.to_numpy().flat if reason)
    return {
        "question": result.attrs["question"],
        "dimensions": {str(name): size for name, size in result.sizes.items()},
        "points": points,
        "answered": points - refused.total(),
        "refused": dict(refused.most_common()),
        "figures": {str(name): _extremes(result, str(name)) for name in result.data_vars if name != "refused"},
        "out": out,
    }


def _extremes(result: Dataset, name: str) -> dict[str, Any]:
    values = result[name]
    if bool(values.isnull().all()):
        return {"units": values.attrs["units"]}
    found: dict[str, Any] = {"units": values.attrs["units"]}
    for which, place in (("least", values.argmin(...)), ("largest", values.argmax(...))):
        here = values.isel(place)
        found[which] = {"value": float(here), "at": {str(axis): here[axis].item() for axis in values.dims}}
    return found


def tables(report: Mapping[str, Any]) -> list[Table | str]:
    """Return the summary as a table, and the reasons of the points that are not answered."""
    sizes = ", ".join(f"{name} {size}" for name, size in report["dimensions"].items()) or "one point"
    title = f"{report['question']}: {report['answered']:,} of {report['points']:,} points answered ({sizes})"
    rows = [
        (f"{which} {name}", figure(extreme["value"], 6), UNITS.get(values["units"], values["units"]), _at(extreme))
        for name, values in report["figures"].items()
        for which, extreme in values.items()
        if which != "units"
    ]
    points = f"{report['points']:,} points"
    reasons = [f"refused at {count:,} of {points}: {reason}" for reason, count in report["refused"].items()]
    more = [f"refused for {len(reasons) - REASONS:,} more reasons"] * (len(reasons) > REASONS)
    written = [f"written to {report['out']}"] * bool(report["out"])
    return [Table(title, ("figure", ">value", "unit", "at"), rows, [*reasons[:REASONS], *more]), *written]


def _at(extreme: Mapping[str, Any]) -> str:
    return ", ".join(f"{axis} = {value}" for axis, value in extreme["at"].items())
