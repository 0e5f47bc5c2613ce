"""Stores of sweeps: Zarr folders whose chunks have checksums and are written in one step each."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from iomodel.errors import InputError, shown
from iomodel.studies.sweeps.axes import Block
from iomodel.studies.sweeps.block import compute
from iomodel.studies.sweeps.dataset import EXTRA, dataset, import_xarray
from iomodel.studies.sweeps.plan import SweepPlan

if TYPE_CHECKING:
    from xarray import Dataset

MISSING = -1
"""The value of a point not computed yet; no count is negative."""
_QUIET = Lock()
KEY = "sweep"
"""The attribute of a store that holds its plan."""


def import_zarr() -> Any:
    """Import zarr, or raise InputError with the command that installs it."""
    try:
        import dask.array  # noqa: F401
        import zarr
    except ImportError as error:
        raise InputError(f"{error.name}: not installed, and a store needs it; allowed: after {EXTRA}") from None
    return zarr


def prepare(plan: SweepPlan, path: Path) -> bool:
    """Create or check the store of a plan, and return True for a new store.

    A store appears under its name when its metadata are complete. InputError for a folder that is not this plan's.
    """
    import_zarr()
    if path.is_dir() and any(path.iterdir()):
        _same(plan, path)
        return False
    if path.exists() and not path.is_dir():
        raise InputError(f"store: {shown(str(path))} is a file; allowed: a folder, new or of the same plan")
    hidden = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(plan, hidden)
        hidden.rename(path)
    except OSError as error:
        if not (path.is_dir() and any(path.iterdir())):
            raise InputError(f"store: {shown(str(path))} cannot be made: {error.strerror or error}") from None
        _same(plan, path)  # another run was first
        return False
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return True


def _create(plan: SweepPlan, path: Path) -> None:
    import dask.array as da
    from zarr.codecs import Crc32cCodec, ZstdCodec

    empty = {name: da.full(plan.shape, MISSING, chunks=plan.chunks, dtype="int64") for name in plan.variables}
    template = dataset(plan, empty).assign_attrs({KEY: plan.text})
    how = {"chunks": plan.chunks, "compressors": (ZstdCodec(level=1), Crc32cCodec()), "fill_value": MISSING}
    encoding = {name: how if plan.shape else {"fill_value": MISSING} for name in plan.variables}
    with _QUIET, warnings.catch_warnings():  # the filters are those of the whole process
        warnings.simplefilter("ignore")  # that consolidated metadata, which readers look for, are no part of Zarr 3 yet
        template.to_zarr(path, mode="w", compute=False, consolidated=True, zarr_format=3, encoding=encoding)


def _same(plan: SweepPlan, path: Path) -> None:
    """Raise InputError unless the store is of this plan."""
    stored = told_by(path)
    if stored is None:
        raise InputError(
            f"store: {shown(str(path))} holds something else; allowed: a new folder, or the store of the same plan"
        )
    differing = [key for key, value in json.loads(plan.text).items() if stored.get(key) != value]
    if differing:
        raise InputError(
            f"store: {shown(str(path))} was made by another plan, of other {', '.join(differing)}; "
            "allowed: the same plan, or another folder"
        )


def told_by(path: Path) -> dict[str, Any] | None:
    """Read the plan of a store; None if the folder is no store of a sweep."""
    try:
        stored = json.loads(import_zarr().open_group(path, mode="r").attrs[KEY])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stored if isinstance(stored, dict) else None


def finish(plan: SweepPlan, path: Path, block: Block) -> bool:
    """Compute and write a chunk unless it is intact, and return True if it was computed."""
    group = import_zarr().open_group(path, mode="r+")
    slices = plan.slices(block)
    arrays = {name: group[name] for name in plan.variables}
    if all(_whole(path, array, block, slices) for array in arrays.values()):
        return False
    for name, values in compute(plan, block).items():
        arrays[name][slices] = values
    return True


def _whole(path: Path, array: Any, block: Block, slices: tuple[slice, ...]) -> bool:
    """Check that a chunk exists and agrees with its checksum."""
    if not (path / array.path / array.metadata.encode_chunk_key(block)).is_file():
        return False
    try:
        array[slices]
    except Exception:  # torn or altered: each codec has errors of its own
        return False
    return True


def opened(plan: SweepPlan, path: Path, chunks: Mapping[str, int] | None) -> Dataset:
    """Open a store lazily: as Dask arrays, or part by part if `chunks` is None."""
    stored = import_xarray().open_zarr(path, chunks=chunks)
    return dataset(plan, {}).assign({name: stored[name].variable for name in plan.variables})
