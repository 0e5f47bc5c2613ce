"""Stores of sweeps: Zarr folders whose chunks are signed and are written in one step each."""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from iomodel.errors import InputError, IOModelError, UnfinishedError, shown
from iomodel.studies.sweeps.axes import Block
from iomodel.studies.sweeps.block import compute
from iomodel.studies.sweeps.dataset import EXTRA, dataset, import_xarray
from iomodel.studies.sweeps.engine import engine_digest
from iomodel.studies.sweeps.plan import SweepPlan
from iomodel.studies.sweeps.signatures import FOLDER, PARTIAL, PLAN, replace_file, sign, signed

if TYPE_CHECKING:
    from xarray import Dataset

MISSING = -1
"""The value of a point not computed yet; no count is negative."""
SETTLED = 1.0
"""Time after which a half-written file that no run continues is removed [s]."""
_QUIET = Lock()
KEY = "sweep"
"""The attribute of a store that holds its plan."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise UnfinishedError for whatever a disk, or an altered store, raises."""
    try:
        yield
    except IOModelError:
        raise
    except OSError as error:
        named = f" ({shown(str(error.filename))})" if error.filename else ""
        raise UnfinishedError(
            f"store: {shown(str(path))} cannot be written: {error.strerror or error}{named}; "
            "the store keeps what is computed; allowed: the same sweep again, once there is space and permission"
        ) from None
    except Exception as error:  # zarr has errors of its own for metadata that were altered
        raise UnfinishedError(
            f"store: {shown(str(path))} cannot be used: {shown(error)}; the store keeps what is computed; "
            "allowed: the same sweep again"
        ) from None


def import_zarr() -> Any:
    """Import zarr, or raise InputError with the command that installs it."""
    try:
        import dask.array  # noqa: F401
        import zarr
    except ImportError as error:
        raise InputError(f"{error.name}: not installed; a store needs it: {EXTRA}") from None
    return zarr


def prepare(plan: SweepPlan, path: Path) -> bool:
    """Create the store of a plan, or check and repair it, and return True for a new store.

    A store appears under its name when its metadata are complete. InputError for a folder that is not this plan's.
    """
    import_zarr()
    with writing(path):
        taken = path.is_dir() and any(path.iterdir())
        if taken:
            _same(plan, path)
        elif path.exists() and not path.is_dir():
            raise InputError(f"store: {shown(str(path))} is a file; allowed: a folder, new or of the same plan")
        elif path == Path.cwd():  # whose place the new store would take
            raise InputError(f"store: {shown(str(path))} is the current folder; allowed: another folder")
        hidden = path.with_name(f".{path.name}.{uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _create(plan, hidden)
            if not taken:
                try:
                    hidden.rename(path)
                except OSError:
                    if not (path.is_dir() and any(path.iterdir())):
                        raise
                    _same(plan, path)  # another run was first
                else:
                    return True
            _repair(hidden, path)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
        return False


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
    (path / FOLDER).mkdir()
    (path / FOLDER / PLAN).write_text(plan.text, encoding="utf-8")


def _repair(fresh: Path, path: Path) -> None:
    """Put metadata, coordinates and the copy of the plan back where they differ from those of a new store."""
    for file in sorted(file for file in fresh.rglob("*") if file.is_file()):
        there, data = path / file.relative_to(fresh), file.read_bytes()
        if not (there.is_file() and there.read_bytes() == data):
            there.parent.mkdir(parents=True, exist_ok=True)
            replace_file(there, data)


def _same(plan: SweepPlan, path: Path) -> None:
    """Raise InputError unless the store is of this plan."""
    stored = stored_plan(path)
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


def stored_plan(path: Path) -> dict[str, Any] | None:
    """Read the plan of a store, from its metadata or the copy beside them; None for any other folder."""

    def of_metadata() -> str:
        text: str = json.loads((path / "zarr.json").read_text(encoding="utf-8"))["attributes"][KEY]
        return text

    def of_copy() -> str:
        return (path / FOLDER / PLAN).read_text(encoding="utf-8")

    for read in (of_metadata, of_copy):
        try:
            stored = json.loads(read())
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(stored, dict):
            return stored
    return None


def finish(plan: SweepPlan, path: Path, block: Block) -> bool:
    """Compute, write and sign a chunk unless it is signed already, and return True if it was computed.

    UnfinishedError where a worker would compute with another engine than the process that asks.
    """
    if plan.engine != engine_digest():
        raise UnfinishedError(
            f"scheduler: a worker has another iomodel, in {shown(str(Path(__file__).parents[2]))}; what a store holds "
            "stays; allowed: the same sweep again, with workers of this one"
        )
    with writing(path):
        if signed(plan, path, block):
            return False
    values = compute(plan, block)
    with writing(path):
        group = import_zarr().open_group(path, mode="r+")
        for name, part in values.items():
            group[name][plan.slices(block)] = part
        sign(plan, path, block)
    return True


def clear(path: Path, began: float) -> None:
    """Remove the incomplete files of killed runs and workers, once the store is complete.

    A file of before the run began [s since the epoch] is nobody's; a younger one may be that of another run on the same
    store, and is removed if it stays as it is for a while.
    """
    with writing(path):
        left = {file: _changed(file) for file in path.rglob(f"*{PARTIAL}")}
        if any(at is not None and at >= began - SETTLED for at in left.values()):
            time.sleep(SETTLED)
        for file, at in left.items():
            if at is not None and _changed(file) == at:
                file.unlink(missing_ok=True)


def _changed(file: Path) -> float | None:
    """Return when a file was last written [s since the epoch], None if it is gone."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return None


def opened(plan: SweepPlan, path: Path, chunks: Mapping[str, int] | None) -> Dataset:
    """Open a store lazily: as Dask arrays, or part by part if `chunks` is None."""
    stored = import_xarray().open_zarr(path, chunks=chunks)
    return dataset(plan, {}).assign({name: stored[name].variable for name in plan.variables})
