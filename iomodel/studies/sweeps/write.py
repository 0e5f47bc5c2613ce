"""Sweeps as tables on disk, written chunk by chunk with a row per point."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from iomodel.errors import InputError, UnknownNameError
from iomodel.studies.sweeps.dataset import EXTRA
from iomodel.studies.sweeps.plan import SweepPlan

if TYPE_CHECKING:
    from xarray import Dataset

TABLES = (".parquet", ".csv")
STORE = ".zarr"


def suffix_of(path: Path) -> str:
    """Return the suffix of a file name, or raise UnknownNameError."""
    if path.suffix not in (*TABLES, STORE):
        raise UnknownNameError("out", path.suffix or path.name, [*TABLES, STORE])
    return path.suffix


def write_table(plan: SweepPlan, result: Dataset, path: Path) -> None:
    """Write a file under a temporary name, and rename it when it is complete."""
    hidden = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        (_parquet if path.suffix == ".parquet" else _csv)(_frames(plan, result), hidden)
        hidden.replace(path)
    except OSError as error:
        raise InputError(f"out: {os.fspath(path)!r} cannot be written: {error.strerror or error}") from None
    finally:
        hidden.unlink(missing_ok=True)


def _frames(plan: SweepPlan, result: Dataset) -> Iterator[Any]:
    """Yield the rows of each chunk as a DataFrame."""
    for block in plan.blocks():
        part = result.isel(dict(zip(plan.dims, plan.slices(block), strict=True))).load()
        if not plan.dims:
            part = part.expand_dims("point")
        yield part.to_dataframe().reset_index().drop(columns="point", errors="ignore")


def _parquet(frames: Iterator[Any], path: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InputError(f"pyarrow: not installed; Parquet needs it: {EXTRA}") from None
    writer = None
    try:
        for frame in frames:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


def _csv(frames: Iterator[Any], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        for number, frame in enumerate(frames):
            frame.to_csv(stream, index=False, header=number == 0, lineterminator="\n")
