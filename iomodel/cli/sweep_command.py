"""Command that runs a sweep over many points."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from iomodel.cli.common_options import Json
from iomodel.cli.numbers import integer
from iomodel.cli.output import emit
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, shown

Plan = Annotated[str, typer.Argument(help="A YAML file: the arguments of iomodel.sweep by name.", show_default=False)]
Out = Annotated[str | None, typer.Option(help="Output file: .zarr, .parquet or .csv.", show_default=False)]
Workers = Annotated[
    str | None,
    typer.Option(help="Processes of a local Dask cluster (threads).", metavar="INTEGER",
                 show_default=False),
]  # fmt: skip
Fresh = Annotated[
    bool, typer.Option("--resume/--fresh", help="Resume an interrupted sweep, or start over and overwrite it.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the plan and print its size.")]


def sweep(
    plan: Plan, *, out: Out = None, workers: Workers = None, resume: Fresh = True, dry_run: DryRun = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Count over every point of a plan, out of core, and resume an interrupted run.

    A file with the key `question` asks for plans, fleets or training steps: the arguments of iomodel.sweep_plans.

    Example:
      iomodel sweep plan.yaml --out traffic.parquet
    """
    from iomodel.cli.planned_sweeps import asked_plans
    from iomodel.studies.sweeps.dataset import import_xarray
    from iomodel.studies.sweeps.file import plan_file
    from iomodel.studies.sweeps.store import opened
    from iomodel.studies.sweeps.summary import summary
    from iomodel.studies.sweeps.sweep import run
    from iomodel.studies.sweeps.write import STORE, suffix_of, write_table

    path = None if out is None else Path(out).absolute()
    form = None if path is None else suffix_of(path)
    processes = None if workers is None else as_integer("workers", integer("workers", workers))
    planned = asked_plans(plan)
    if planned is not None:
        if dry_run:
            raise InputError("dry_run: given; allowed: for a sweep of counts")
        _plans(*planned, path, processes, resume, json)
        return
    question = plan_file(plan)
    if dry_run:
        emit(summary(question, None, None, out), json)
        return
    import_xarray()
    if path is None or form is None:
        with _scheduler(processes) as scheduler:
            result, computed = run(question, None, scheduler, True)
        emit(summary(question, result, computed, None), json)
        return
    store = path if form == STORE else path.with_name(f"{path.name}{STORE}")
    _make_room(path, store, form != STORE, resume)
    with _scheduler(processes) as scheduler:
        _, computed = run(question, store, scheduler, True)
    result = opened(question, store, None)
    report = summary(question, result, computed, out)
    if form != STORE:
        write_table(question, result, path)
        shutil.rmtree(store, ignore_errors=True)
    emit(report, json)


def _plans(
    arguments: dict[str, Any], where: str, path: Path | None, processes: int | None, resume: bool, json: bool
) -> None:
    """Answer a sweep of plans, and write it."""
    from iomodel.cli.planned_sweeps import answered, check_out, summary, tables, write
    from iomodel.common.display import group

    if path is not None:
        check_out(path, resume)
    with _scheduler(processes) as scheduler:
        result = answered(arguments, where, scheduler)
    if path is not None:
        write(result, path)
    report = summary(result, None if path is None else os.fspath(path))
    emit(report if json else group(tables(report)), json, kind="planned-sweep")


def _make_room(path: Path, store: Path, table: bool, resume: bool) -> None:
    """Remove the output of an earlier run if requested; never remove a folder of anything else."""
    from iomodel.cli.planned_sweeps import check_place
    from iomodel.studies.sweeps.store import stored_plan

    check_place(path, table=table, resume=resume)
    if not resume and store.exists():
        if stored_plan(store) is None:
            raise InputError(f"out: {shown(os.fspath(store))} is not the store of a sweep; allowed: another name")
        shutil.rmtree(store)


NO_DASHBOARD = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}}
"""Any free port for the HTTP server of a scheduler: on the default one, a second scheduler of a machine warns."""


@contextmanager
def _scheduler(workers: int | None) -> Iterator[Any]:
    """Yield the threaded scheduler, or a client of single-threaded processes."""
    if workers is None:
        yield "threads"
        return
    from iomodel.studies.sweeps.run import import_distributed

    distributed = import_distributed()
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)  # an error of the sweep is one line
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **NO_DASHBOARD) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
