"""Check of a tile on a device: the kernel and the launch in which it fits, and the reasons of those in which not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_mapping
from iomodel.devices.device import Hardware
from iomodel.devices.rates import has_rates
from iomodel.errors import InputError
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import Implementation
from iomodel.placement.check import Check, check_layer, excess, in_memory, launches_at, misfit, nearest
from iomodel.placement.placement import Launch, Placement
from iomodel.placement.shipped_tile import shipped_row
from iomodel.solving.by_pass import of_pass
from iomodel.solving.default_kernel import check_kernels
from iomodel.solving.default_tiles import default_launch
from iomodel.solving.question import Question
from iomodel.workloads.attention import as_attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.workload import Workload


def check(
    algorithm: AlgorithmLike,
    workload: Workload,
    hardware: Hardware | str,
    tiles: Mapping[str, int] | None = None,
    implementation: str | Implementation | None = None,
    **options: Any,
) -> Check:
    """Check whether a tile fits a device, with the remaining resources, the limiting one, and the occupancy.

    A tile fits if it does in any launch configuration of any kernel that runs the call. Of several launches the answer
    is about the fastest, as that of :func:`iomodel.estimate`.

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
        that are not given may be any; without tiles those of :func:`iomodel.estimate` are checked.
    implementation : str or Implementation, optional
        The kernels: one of :func:`iomodel.list_implementations`. By default all that run the call are tried, the one
        that :func:`iomodel.estimate` takes first.
    **options
        Options of the algorithm, and ``packed=True``.

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
    question = Question.ask(algorithm, workload, hardware, implementation, options)
    if isinstance(question.call, Call):
        check_kernels(question)
    if tiles is None:
        question, (tiles, chosen) = default_launch(question)
        question = question.choosing(chosen)
    given = as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    sizes = question.bound({}).sizes(given)
    if question.call.direction != "both":
        return _of_pass(question, sizes, given)
    launch = {name: given[name] for name in LAUNCH_NAMES & given.keys()}
    parts = []
    for direction in question.passes:
        part = question.in_direction(direction, question.options)
        own = of_pass(direction, sizes)
        parts.append(_of_pass(part, own := {name: own[name] for name in part.bound({}).tiles}, {**own, **launch}))
    return max(parts, key=lambda part: (excess(part), -part.blocks_per_sm))


def _of_pass(question: Question, sizes: Mapping[str, int], given: Mapping[str, Any]) -> Check:
    """Check the tiles of one pass in every kernel that is asked for."""
    call = question.call
    if isinstance(call, Linear) and question.kernels:
        return replace(
            check_layer(question.algorithm, call, question.device, given, sizes), implementation=question.library.name
        )
    if not question.kernels:
        cost = question.bound({}).at(sizes)
        return in_memory(question.algorithm, call, question.device, cost, question.implementation is None)
    kernels = [question.library] if question.implementation is not None else question.ranked
    tried: list[Check] = []
    others: list[str] = []
    refusal: InputError | None = None
    for each in kernels:
        try:
            outcome = _of_kernels(question.by(each), sizes, given)
        except InputError as error:  # warps and stages that no kernel of it is launched with, say
            refusal = refusal or error
            others.append(f"{each.name}: {error}")
            continue
        if outcome.fits:
            return replace(outcome, others=(*others, *outcome.others))
        tried.append(outcome)
        others += [f"{each.name}: {line}" for line in outcome.others]
    if not tried:
        assert refusal is not None  # a kernel was tried
        raise refusal
    return replace(min(tried, key=excess), others=tuple(others))


def _of_kernels(question: Question, sizes: Mapping[str, int], given: Mapping[str, Any]) -> Check:
    """Check a tile in every launch of one implementation: the fastest that fits, else the one that exceeds least."""
    bound, call, kernels = question.bound({}), as_attention(question.call.longest), question.library
    launches = launches_at(bound, call, question.device, kernels, given)
    row = shipped_row(kernels, call, question.device, bound.options)
    outcomes = {
        key: nearest(alike, question.algorithm, call, sizes, row) for key, alike in _by_launch(launches).items()
    }
    fitting = {key: outcome for key, outcome in outcomes.items() if outcome[0].fits}
    best = _fastest(question, sizes, fitting or outcomes, given)
    lines = [misfit(*outcome[1:], outcome[0]) for outcome in outcomes.values() if not outcome[0].fits]
    return replace(best, implementation=kernels.name, others=tuple(dict.fromkeys(lines)))


Outcomes = Mapping[tuple[int, int], tuple[Check, Placement, Launch]]
"""Checks by warps and stages, each with its placement and launch."""


def _by_launch(
    launches: list[tuple[Placement, Launch]],
) -> Mapping[tuple[int, int], list[tuple[Placement, Launch]]]:
    grouped: dict[tuple[int, int], list[tuple[Placement, Launch]]] = {}
    for placement, launch in launches:
        grouped.setdefault((launch.warps, launch.stages), []).append((placement, launch))
    return grouped


def _fastest(question: Question, sizes: Mapping[str, int], outcomes: Outcomes, given: Mapping[str, Any]) -> Check:
    """Return the check of the fastest launch that fits, else of the one that exceeds least."""
    first = min(outcomes.values(), key=lambda outcome: excess(outcome[0]))[0]
    if len(outcomes) == 1 or not first.fits or not has_rates(question.device, question.call.dtype):
        return first
    launch = FrozenDict({name: given[name] for name in LAUNCH_NAMES & given.keys()})
    timed = question.launched({**sizes, **launch})
    return outcomes[timed.tiles["warps"], timed.tiles["stages"]][0]
