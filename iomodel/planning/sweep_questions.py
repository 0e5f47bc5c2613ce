"""Sweeps of any question: a verb, and its arguments as values or as lists of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.deprecation import warn_renamed
from iomodel.common.keywords import strict
from iomodel.errors import InputError, IOModelError, UnknownNameError
from iomodel.planning.sweep_plans import FIGURES, sweep_plans
from iomodel.studies.sweeps.sweep import sweep as sweep_counts

if TYPE_CHECKING:
    from xarray import Dataset

COUNTED = ("cost", "solve")
"""Questions of exact counts, at given tiles and at the best ones."""


@strict
def sweep(
    question: str,
    *,
    figures: str | Sequence[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    **fields: Any,
) -> Dataset:
    """Answer a question at every point of a grid.

    Parameters
    ----------
    question : {"cost", "solve", "plan", "fleet", "train_step"}
        The verb: exact counts at given tiles or at the best ones, or a planning question.
    figures : sequence of str, optional
        Numbers of the answer, by the names of its fields. Of counts those of :class:`iomodel.Cost` (``hbm_bytes`` by
        default), ``reads_K``, ``writes_O`` and the like for a tensor, ``reads`` and ``writes`` for all; of a planning
        question with dots, ``"memory.total"``.
    store : str or os.PathLike, optional
        A folder for the counts, a Zarr store that need not fit in memory: written chunk by chunk, and taken up where
        an earlier run of the same sweep was stopped. Without it the result is held in memory.
    **fields
        Arguments of the verb, ``algorithm=`` among them, each a value or a list of values, which makes it a dimension;
        and of the sweep: ``scheduler`` ("threads", a dask.distributed.Client or its address), and for counts
        ``zipped`` (groups of fields that go along one dimension), ``chunk`` (points of a chunk) and ``progress``.

    Returns
    -------
    xarray.Dataset
        One variable for each figure: of int64 for counts, with `units` and `long_name`; of floats for a planning
        question, NaN where a point has no answer, with the reason in `refused`.

    Raises
    ------
    UnknownNameError, InputError
        An unknown name; a value out of range, or one that does not go with another; a store of another sweep; a
        library that is missing.

    Examples
    --------
    >>> import iomodel
    >>> grid = {"q_len": [4096, 8192], "block_q": [64, 128], "block_kv": 64, "head_dim": 64}
    >>> iomodel.sweep("cost", algorithm="flash2", **grid).hbm_bytes.sel(q_len=4096, block_q=128).item()
    34619392
    """
    asked: Any = question
    if isinstance(asked, str) and asked in (*COUNTED, *FIGURES):
        return _answer(asked, figures, store, fields)
    several = isinstance(asked, list | tuple) and bool(asked)
    if "algorithm" in fields or not all(map(_is_algorithm, asked if several else [asked])):
        raise UnknownNameError("question", asked, (*COUNTED, *FIGURES))
    solved = fields.get("solve") is True
    verb = "solve" if solved else "cost"
    warn_renamed("sweep(algorithm)", f"iomodel.sweep({verb!r}, algorithm=...)")
    return sweep_counts(asked, store=store, **fields)


def _is_algorithm(named: Any) -> bool:
    try:
        find_algorithm(named)
    except IOModelError:
        return False
    return True


def _answer(question: str, figures: Any, store: Any, fields: dict[str, Any]) -> Dataset:
    """Answer one of the questions by name."""
    if question not in COUNTED:
        if store is not None:
            raise InputError(f"store: given with {question!r}; allowed: with {' or '.join(map(repr, COUNTED))}")
        return sweep_plans(question, figures=figures, **fields)
    wanted = {} if figures is None else {"quantities": figures}
    if "algorithm" not in fields:
        raise InputError("algorithm: not given, but required; allowed: one or more of list_algorithms()")
    for name in ("solve", "quantities"):
        if name in fields:
            raise InputError(f"{name}: given with {question!r}; allowed: the question 'solve', and figures=")
    algorithm = fields["algorithm"]
    others = {name: value for name, value in fields.items() if name != "algorithm"}
    return sweep_counts(algorithm, solve=question == "solve", store=store, **wanted, **others)
