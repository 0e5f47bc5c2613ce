"""A sweep as a table on disk, written chunk by chunk: a row a point."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from iomodel.errors import InputError, UnknownNameError
from iomodel.sweeps.dataset import EXTRA
from iomodel.sweeps.plan import Plan

if TYPE_CHECKING:
    from xarray import Dataset

TABLES = (".parquet", ".csv")
STORE = ".zarr"


def suffix_of(path: Path) -> str:
    """The form that a name asks for, or UnknownNameError."""
    if path.suffix not in (*TABLES, STORE):
        raise UnknownNameError("out", path.suffix or path.name, [*TABLES, STORE])
    return path.suffix


def write_table(plan: Plan, result: Dataset, path: Path) -> None:
    """Write a file under another name, and give it its own when it is whole."""
    hidden = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        (_parquet if path.suffix == ".parquet" else _csv)(_frames(plan, result), hidden)
        hidden.replace(path)
    except OSError as error:
        raise InputError(f"out: {os.fspath(path)!r} cannot be written: {error.strerror or error}") from None
    finally:
        hidden.unlink(missing_ok=True)


def _frames(plan: Plan, result: Dataset) -> Iterator[Any]:
    """The rows of each chunk as a DataFrame."""
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
        raise InputError(f"pyarrow: not installed, and Parquet needs it; allowed: after {EXTRA}") from None
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
