"""Check of a tile on a device: the kernel and the launch in which it fits, and the reasons of those in which not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.common.keywords import strict
from iomodel.counting.choice import split_choice
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import Implementation
from iomodel.placement.check import Check, Outcomes, by_launch, check_layer, excess, in_memory, launches_at, misfits
from iomodel.placement.shipped_tile import shipped_row
from iomodel.solving.by_pass import of_pass
from iomodel.solving.default_tiles import check_kernels, default_launch
from iomodel.solving.descent import textbook_choice
from iomodel.solving.parts import check_tiled
from iomodel.solving.question import Question
from iomodel.studies.estimate import estimated
from iomodel.workloads.attention import as_attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.workload import Workload


@strict
def check(
    algorithm: AlgorithmLike,
    workload: Workload,
    hardware: Hardware | str,
    tiles: Mapping[str, int] | None = None,
    implementation: str | Implementation | None = None,
    **options: Any,
) -> Check:
    """Check whether a tile fits a device, with the remaining resources, the limiting one, and the occupancy.

    A tile fits if it does in any launch configuration of any kernel that runs the call. Of several launches and kernels
    the answer is about the fastest, as that of :func:`iomodel.estimate`.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention, VarlenAttention, Linear, ...
        The call; of a call in both directions the pass that leaves least room is reported.
    hardware : Hardware or str
        A device with shared memory, registers and matrix instructions on file.
    tiles : mapping of tile name to int, optional
        ``{"block_q": 128, "block_kv": 64, "warps": 4, "stages": 1}``; warps are computing warps [-]. Warps and stages
        that are not given may be any; tiles that are not given are those of :func:`iomodel.estimate`, or, of standard
        attention, those of :func:`iomodel.solve`.
    implementation : str or Implementation, optional
        The kernels: one of :func:`iomodel.list_implementations`; by default all that run the call are tried.
    **options
        Options of the algorithm, and ``packed=True``; tiles by name (``block_q=128``).

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown; the kernels do not support the device or the width; the device lacks a figure.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=128)
    >>> c = iomodel.check("flash2", w, "a100-sxm4-80gb", {"block_q": 128, "block_kv": 64})
    >>> c.fits, c.tiles["warps"], c.slack["shared memory"], c.binding, c.blocks_per_sm
    (True, 4, 101376, 'registers', 2)
    """
    tiles, options = split_choice(algorithm, tiles, options, "{'block_q': 128, 'block_kv': 64}")
    question = Question.ask(algorithm, workload, as_device(hardware), implementation, options)
    if isinstance(question.call, Call):
        check_kernels(question)
    if tiles is None or not tiles.keys() - LAUNCH_NAMES:
        question, (known, chosen) = default_launch(question)
        if not known:  # an estimate makes one ideal pass of each operand
            known, chosen = textbook_choice(question)
        question = question.choosing(chosen)
        tiles = known if not tiles else {**{name: known[name] for name in known.keys() - LAUNCH_NAMES}, **tiles}
    check_tiled(question.algorithm, question.bound.compiled.tiles)
    sizes = question.bound.sizes(tiles)
    if question.call.direction != "both":
        return _of_pass(question, sizes, tiles)
    launch = {name: tiles[name] for name in LAUNCH_NAMES & tiles.keys()}
    parts = []
    for direction, part in question.each_pass.items():
        own = of_pass(direction, sizes)
        parts.append(_of_pass(part, own := {name: own[name] for name in part.bound.tiles}, {**own, **launch}))
    return max(parts, key=lambda part: (excess(part), -part.blocks_per_sm))


def _of_pass(question: Question, sizes: Mapping[str, int], given: Mapping[str, Any]) -> Check:
    """Check the tiles of one pass in every kernel that is asked for."""
    call = question.call
    if isinstance(call, Linear) and question.kernels:
        return check_layer(question.algorithm, call, question.device, given, sizes)
    if not question.kernels:
        cost = question.bound.at(sizes)
        return in_memory(question.algorithm, call, question.device, cost, question.implementation is None)
    tried: list[tuple[Implementation, Outcomes]] = []
    refusal: InputError | InfeasibleError | None = None
    others: list[str] = []
    for each in question.ranked:
        try:
            tried.append((each, _of_kernels(question.by(each), sizes, given)))
        except (InputError, InfeasibleError) as error:  # warps and stages that no kernel of it is launched with, say
            refusal = refusal or error
            others.append(f"{each.name}: {error}")
    if not tried:
        assert refusal is not None  # a kernel was tried
        raise refusal
    kernels, outcomes = _chosen(question, tried, given)
    for each, found in tried:
        label = "" if each is kernels else f"{each.name}: "
        if each is kernels or not any(outcome[0].fits for outcome in found.values()):
            others += [label + text for text in misfits(found)]
    outcome = replace(outcomes, implementation=kernels.name, others=tuple(dict.fromkeys(others)))
    if outcome.fits:
        return outcome
    known = {field.name: getattr(outcome, field.name) for field in fields(outcome) if field.name != "nearest"}
    asked = question.by(kernels), dict(sizes), dict(given)
    return Check.deferring({"nearest": lambda _: tuple(_nearest(*asked))}, **known)


def _nearest(question: Question, sizes: Mapping[str, int], given: Mapping[str, Any]) -> Iterator[Mapping[str, int]]:
    """Yield the tiles of one implementation that fit with other warps and stages, or with one size halved or more."""
    launch = {name: given[name] for name in LAUNCH_NAMES & given.keys()}
    changes: list[list[tuple[Mapping[str, int], dict[str, int]]]] = [[(sizes, {})]] if launch else []
    for name, size in sizes.items():
        changes.append([({**sizes, name: size >> times}, launch) for times in range(1, size.bit_length())])
    for candidates in changes:
        for tiles, fixed in candidates:
            with suppress(InputError, InfeasibleError):
                fitting = [check for check, *_ in _of_kernels(question, tiles, fixed).values() if check.fits]
                if fitting:
                    yield min(fitting, key=_by_spills).tiles
                    break


def _by_spills(outcome: Check) -> tuple[int, int, int]:
    """Rank launches that fit: by fewest registers spilled, then most stages, then fewest warps."""
    return outcome.spilled, -outcome.tiles["stages"], outcome.tiles["warps"]


def _of_kernels(question: Question, sizes: Mapping[str, int], given: Mapping[str, Any]) -> Outcomes:
    """Check a tile in every launch of one implementation."""
    bound, call, kernels = question.bound, as_attention(question.call.longest), question.library
    launches = launches_at(bound, call, question.device, kernels, given)
    row = shipped_row(kernels, call, question.device, bound.options)
    return by_launch(launches, question.algorithm, call, sizes, row)


def _chosen(
    question: Question, tried: Sequence[tuple[Implementation, Outcomes]], given: Mapping[str, Any]
) -> tuple[Implementation, Check]:
    """Return the fastest launch that fits, with its kernels, else the one that exceeds least."""
    every = [(kernels, *outcome) for kernels, found in tried for outcome in found.values()]
    fitting = [one for one in every if one[1].fits]
    if len(fitting) < 2 or not question.rated:
        return min(fitting or every, key=lambda one: excess(one[1]))[:2]
    timed = estimated(question, given)
    launch = {name: timed.tiles[name] for name in LAUNCH_NAMES}
    return next(
        (kernels, outcome)
        for kernels, outcome, *_ in fitting
        if kernels.name == timed.implementation and launch.items() <= outcome.tiles.items()
    )
