"""The command that runs a plan over many points."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from iomodel.commands.numbers import integer
from iomodel.commands.options import Json
from iomodel.commands.output import emit
from iomodel.errors import InputError, shown
from iomodel.validation import as_integer

Plan = Annotated[str, typer.Argument(help="A YAML file: the arguments of iomodel.sweep by name.", show_default=False)]
Out = Annotated[str | None, typer.Option(help="Where the result goes: .zarr, .parquet or .csv.", show_default=False)]
Workers = Annotated[
    str | None,
    typer.Option(help="Processes of a Dask cluster of this machine; threads if not given.", metavar="INTEGER",
                 show_default=False),
]  # fmt: skip
Fresh = Annotated[
    bool,
    typer.Option("--resume/--fresh", help="Take up what an earlier run of the plan left, or begin anew and replace."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the plan and say how large it is.")]


def sweep(
    plan: Plan, *, out: Out = None, workers: Workers = None, resume: Fresh = True, dry_run: DryRun = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Count over every point of a plan, out of core, and take up where a run was stopped.

    Example:
      iomodel sweep plan.yaml --out traffic.parquet
    """
    from iomodel.sweep import run
    from iomodel.sweeps.dataset import import_xarray
    from iomodel.sweeps.file import plan_file
    from iomodel.sweeps.store import opened
    from iomodel.sweeps.summary import summary
    from iomodel.sweeps.write import STORE, suffix_of, write_table

    path = None if out is None else Path(out).absolute()
    form = None if path is None else suffix_of(path)
    asked = plan_file(plan)
    many = None if workers is None else as_integer("workers", integer("workers", workers))
    if dry_run:
        emit(summary(asked, None, None, out), json)
        return
    import_xarray()
    if path is None or form is None:
        with _scheduler(many) as scheduler:
            result, computed = run(asked, None, scheduler, True)
        emit(summary(asked, result, computed, None), json)
        return
    store = path if form == STORE else path.with_name(f"{path.name}{STORE}")
    _make_room(path, store, form != STORE, resume)
    with _scheduler(many) as scheduler:
        _, computed = run(asked, store, scheduler, True)
    result = opened(asked, store, None)
    told = summary(asked, result, computed, out)
    if form != STORE:
        write_table(asked, result, path)
        shutil.rmtree(store, ignore_errors=True)
    emit(told, json)


def _make_room(path: Path, store: Path, table: bool, resume: bool) -> None:
    """Remove what an earlier run left if that is wanted; a folder of anything else stays."""
    from iomodel.sweeps.store import told_by

    if not path.parent.is_dir():
        raise InputError(
            f"out: {shown(os.fspath(path.parent))} is no folder; allowed: a file of a folder that is there"
        )
    if table and path.exists() and (resume or not path.is_file()):
        raise InputError(
            f"out: {shown(os.fspath(path))} is there; allowed: another name, or --fresh, which replaces it"
        )
    if not resume and store.exists():
        if told_by(store) is None:
            raise InputError(f"out: {shown(os.fspath(store))} is no store of a sweep; allowed: another name")
        shutil.rmtree(store)


@contextmanager
def _scheduler(workers: int | None) -> Iterator[Any]:
    """Threads, or a client of as many processes of one thread each."""
    if workers is None:
        yield "threads"
        return
    from iomodel.sweeps.run import import_distributed

    distributed = import_distributed()
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
