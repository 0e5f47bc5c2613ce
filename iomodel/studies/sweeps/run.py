"""Execution of the chunks of a sweep, on threads or on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from iomodel.errors import InputError, UnfinishedError, shown
from iomodel.studies.sweeps.dataset import EXTRA

Item = TypeVar("Item")
Result = TypeVar("Result")
AHEAD = 3
"""Chunks submitted per worker: enough to keep a cluster busy, few enough to hold in memory."""
PATIENCE = 10.0
"""The timeout for a scheduler to answer [s]."""


ALONE = 60.0
"""The time without any worker after which a cluster is given up [s]."""


def import_distributed() -> Any:
    """Import distributed, or raise InputError with the command that installs it."""
    try:
        import distributed
    except ImportError:
        raise InputError(f"distributed: not installed; a cluster needs it: {EXTRA}") from None
    return distributed


@contextmanager
def workers(scheduler: Any) -> Iterator[tuple[Executor, int]]:
    """Yield an executor and the number of functions that it runs at a time."""
    if scheduler is None or (isinstance(scheduler, str) and scheduler == "threads"):
        threads = os.cpu_count() or 1
        pool = ThreadPoolExecutor(threads)
        try:
            yield pool, threads
        finally:
            pool.shutdown(cancel_futures=True)
        return
    client_of = import_distributed().Client
    if isinstance(scheduler, client_of):
        yield scheduler.get_executor(pure=False), max(1, sum(scheduler.ncores().values()))
    elif isinstance(scheduler, str) and ":" in scheduler:
        try:
            client = client_of(scheduler, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(
                f"scheduler: {shown(scheduler)} does not answer ({error}); allowed: the address of a Dask scheduler"
            ) from None
        with client:
            yield client.get_executor(pure=False), max(1, sum(client.ncores().values()))
    else:
        raise InputError(
            f"scheduler: {shown(scheduler)} given; allowed: 'threads', a dask.distributed.Client, or an address such "
            "as 'tcp://host:8786'"
        )


def each(
    function: Callable[[Item], Result], items: Iterable[Item], pool: Executor, width: int
) -> Iterator[tuple[Item, Result]]:
    """Yield results as they complete, with a bounded number in flight; the first error cancels the rest."""
    waiting: dict[Future[Result], Item] = {}
    try:
        for item in items:
            waiting[pool.submit(function, item)] = item
            if len(waiting) >= AHEAD * width:
                yield from _done(waiting, pool)
        while waiting:
            yield from _done(waiting, pool)
    finally:
        for future in waiting:
            future.cancel()


def _done(waiting: dict[Future[Result], Item], pool: Executor) -> Iterator[tuple[Item, Result]]:
    client = getattr(pool, "_client", None)
    while not (done := wait(waiting, timeout=ALONE if client else None, return_when=FIRST_COMPLETED).done):
        if client is not None and not client.ncores():
            raise UnfinishedError(
                f"scheduler: {shown(client.scheduler.address)} has no worker left; the store keeps what is computed; "
                "allowed: the same sweep again, with workers"
            )
    for future in done:
        item = waiting.pop(future)
        try:
            result = future.result()
        except Exception as error:
            if not isinstance(error, CancelledError) and not type(error).__module__.startswith("distributed"):
                raise
            raise UnfinishedError(
                f"scheduler: lost with its workers ({shown(error)}); the store keeps what is computed; "
                "allowed: the same sweep again"
            ) from None
        yield item, result
