"""Estimates of the time, the limiting resource and the DRAM traffic of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from iomodel.algorithms import AlgorithmLike, answering
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.validation import as_integer, as_mapping
from iomodel.counting.choice import split_choice
from iomodel.counting.cost import Cost
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.levels import memory_levels
from iomodel.devices.rates import Rates
from iomodel.errors import InputError, shown
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import TEXTBOOK, Implementation
from iomodel.placement.implementations import check_layer_kernels
from iomodel.solving.by_pass import of_pass
from iomodel.solving.default_tiles import check_kernels, check_other_types, default_launch, default_tiles
from iomodel.solving.question import Question, best_choice
from iomodel.timing.clock import Clock, TimedLaunch
from iomodel.timing.estimate_result import Estimate
from iomodel.timing.kernel_time import KernelTime
from iomodel.timing.level_traffic import level_traffic
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.timing.totals import dram_interval, leaving_interval, seconds_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.window import open_ended
from iomodel.workloads.workload import Workload


class TimedPass(Protocol):
    """A launch configuration of one pass, with the times of its kernels."""

    @property
    def tiles(self) -> Mapping[str, int]:
        """Tiles, warps and stages."""

    @property
    def times(self) -> list[float]:
        """Time of each kernel [s]."""

    @property
    def kernels(self) -> tuple[KernelTime, ...]:
        """The kernels."""


@dataclass(frozen=True)
class _TimedKernels:
    """A launch configuration of kernels that have been described."""

    tiles: Mapping[str, int]
    kernels: tuple[KernelTime, ...]

    @property
    def times(self) -> list[float]:
        return [kernel.seconds for kernel in self.kernels]


@strict
def estimate(
    algorithm: AlgorithmLike,
    workload: Workload,
    hardware: Hardware | str,
    tiles: Mapping[str, Any] | None = None,
    *,
    parameters: Parameters = DEFAULT,
    implementation: str | Implementation | None = None,
    **options: Any,
) -> Estimate:
    """Estimate the time, the limiting resource and the DRAM traffic of a call.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention, VarlenAttention, Linear or Recurrence
        The call; sequences of different lengths share one grid. Without tiles a linear layer takes the fastest of the
        usual tiles, and the fastest `splits` if it is not given.
    hardware : Hardware or str
        A device; its `measured` figures take precedence over those of the datasheet.
    tiles : mapping of name to int, optional
        Tiles [rows], optionally with ``warps`` and ``stages`` and options, as the `choice` of a solution; the fastest
        launch of these tiles counts. The default is the tile that the implementation ships for the call, and
        where it ships none the fastest tiles, as :func:`iomodel.solve` answers them.
    parameters : Parameters
        The assumptions of the model beside the figures of the device.
    implementation : str or Implementation, optional
        The kernels: one of :func:`iomodel.list_implementations`. The default is the fastest of those that run the call
        there: at the given tiles, else each at the tile and the options that its library takes, where the first listed
        of several within 0.5 % counts. Options that the kernels choose per call are chosen too.
    **options
        Options of the algorithm, and ``packed=True``; tiles by name (``block_q=128``).

    Raises
    ------
    UnknownNameError, InputError, SpecError
        An unknown name or wrong tile; a device without a matrix peak of the dtype or without a bandwidth.
    InfeasibleError
        The tiles do not fit the device, or no tiles do.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(batch=2, heads=16, q_len=8192, head_dim=128)
    >>> e = iomodel.estimate("flash2", w, "a100-sxm4-80gb", {"block_q": 128, "block_kv": 64, "warps": 4})
    >>> e.limited_by, round(e.mfu, 2)
    ('matrix', 0.71)
    """
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.devices.Parameters")
    device = as_device(hardware)
    tiles, options = split_choice(algorithm, tiles, options)
    question = Question.ask(algorithm, workload, device, implementation, options, parameters=parameters)
    return estimated(question, tiles)


def estimated(question: Question, tiles: Mapping[str, int] | None = None) -> Estimate:
    """Estimate a call at tiles, or at the default ones."""
    if not question.rated:
        check_other_types(question)
    question.rates  # noqa: B018 - raises for a device without the rates of a time
    call, implementation = question.call, question.implementation
    if not isinstance(call, Call):
        if isinstance(call, Linear):
            check_layer_kernels(question.algorithm, call, question.device, implementation)
        elif implementation is not None:
            raise InputError(
                f"implementation: {shown(implementation)} given; allowed: none, with a {call.operation} workload"
            )
        return _of_layer(question, tiles)
    question.untiled  # noqa: B018 - raises for a wrong option before the search
    check_kernels(question)
    if tiles is None:
        asked, (tiles, chosen) = default_launch(question)
        return _at(asked, chosen, tiles)
    tile_mapping = as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    for name in LAUNCH_NAMES & tile_mapping.keys():
        as_integer(name, tile_mapping[name])

    def at_tiles(asked: Question) -> Estimate:
        return _at(asked, _with_searched(asked, tile_mapping), tile_mapping)

    return question.by_fastest(at_tiles, lambda timed: timed.seconds)


def _at(question: Question, chosen: Mapping[str, Any], tiles: Mapping[str, int]) -> Estimate:
    """Estimate a call at its tiles and options, each pass in its fastest launch."""
    launch = {name: tiles[name] for name in LAUNCH_NAMES & tiles.keys()}
    plain = question.choosing(chosen)
    whole = plain.bound if tiles.keys() - LAUNCH_NAMES else plain.untiled
    sizes = whole.sizes(tiles)
    timed, kernels = [], []

    def fastest(part: Question, *, own: Mapping[str, int]) -> tuple[TimedLaunch, str]:
        name = part.library.name if sizes else TEXTBOOK.name
        return part.timer(bool(sizes)).launched({**own, **launch}), name

    for direction in question.passes:
        part, own = plain, sizes
        if part.call.direction != direction:
            part, own = question.choosing(whole.options).each_pass[direction], of_pass(direction, sizes)
            if direction == "forward":  # it stores what the backward pass needs
                part = part.adding(part.algorithm.saved)
        one, name = part.by_fastest(partial(fastest, own=own), lambda found: found[0].seconds)
        timed.append(one)
        kernels.append(name)
    hosted = max((one.clock.parameters for one in timed), key=lambda values: values.host_launch)
    assumed = tuple(one.clock for one in timed if sizes and one.clock.assumed)
    asked, names = replace(question, parameters=hosted), " and ".join(dict.fromkeys(kernels))
    known = timed[0].clock.rates
    if known.peak < question.rates.peak:
        known = replace(known, peak=question.rates.peak)
    return assembled(asked, partial(whole.at, sizes), timed, sizes, assumed, names, known)


def _with_searched(question: Question, tiles: Mapping[str, int]) -> Mapping[str, Any]:
    """Return the options with the fastest of those that the kernels choose per call and that are not given."""
    if not tiles or question.call.direction == "both":
        return question.options
    kernels = question.library
    if kernels.searched.keys() <= question.options.keys():
        return question.options
    best = best_choice(question.by(kernels), lambda _: tiles)
    return question.options if best is None else best.options


def _of_layer(question: Question, tiles: Mapping[str, int] | None) -> Estimate:
    """Estimate a workload other than attention; a linear layer at the usual tiles of these."""
    workload, bound, launch = question.call, question.bound, {}
    if tiles is None and not isinstance(workload, Linear):
        tiles = default_tiles(question)[0]
    tile_mapping = (
        {} if tiles is None else as_mapping("tiles", tiles, "{'block_m': 128, 'block_n': 128, 'block_k': 64}")
    )
    sizes: dict[str, int] = {} if tiles is None else bound.sizes(tile_mapping)
    if isinstance(workload, Linear):
        parts = question.options.get("splits") if tiles is None else bound.options["splits"]
        given = {name: as_integer(name, tile_mapping[name]) for name in LAUNCH_NAMES & tile_mapping.keys()}
        clock = question.layers
        wanted = None if tiles is None else {**sizes, **given}
        kernels, tile = clock.fastest((workload,), wanted, parts, question.algorithm)
        sizes, launch = dict(tile.sizes), tile.launch
        bound = question.adding({"splits": sizes.pop("splits")}).bound
    else:
        kernels = list(question.launched(sizes).kernels)
    cost = bound.cost(sizes)
    timed = [_TimedKernels({**sizes, **launch}, tuple(kernels))]
    return assembled(question, lambda: cost, timed, sizes, implementation=question.library.name)


def assembled(
    question: Question,
    cost: Callable[[], Cost],
    timed: Sequence[TimedPass],
    sizes: Mapping[str, int],
    assumed: Sequence[Clock] = (),
    implementation: str = TEXTBOOK.name,
    rates: Rates | None = None,
) -> Estimate:
    """Combine the passes of a call into one estimate; what its time does not need is computed when it is read."""
    algorithm, call, device, known = question.algorithm, question.call, question.device, rates or question.rates
    seconds = seconds_of([time for launch in timed for time in launch.times], question.parameters)
    tiles = dict(sizes)
    if call.direction != "both":
        for launch in timed:
            tiles |= {name: size for name, size in launch.tiles.items() if name in LAUNCH_NAMES}
    own: dict[str, Callable[[Estimate], Any]] = {
        "cost": lambda _: cost(),
        "kernels": lambda _: tuple(kernel for launch in timed for kernel in launch.kernels),
        "compulsory_bytes": lambda result: min(question.compulsory.bytes, result.requested_bytes),
        "left_out": lambda _: (
            *(("tiles: each operand makes one ideal pass",) if algorithm.tiled_by and not sizes else ()),
            *known.left_out,
            *dict.fromkeys(clock.bare for clock in assumed if clock.bare is not None),
            *(() if device.simulated else memory_levels(device)[1]),
        ),
        "levels": lambda result: level_traffic(
            algorithm, call, device, result.requested_bytes, result.l2_bytes, result.dram_bytes
        ),
    }
    return Estimate.deferring(
        {**LATER, **own},
        algorithm=question.name,
        workload=call,
        hardware=device,
        tiles=FrozenDict(tiles),
        seconds=seconds,
        rates=known,
        parameters=question.parameters,
        implementation=implementation,
    )


def _breakdown(result: Estimate) -> FrozenDict[str, float]:
    """Add up the breakdowns of the kernels; where the host takes longer than they do, it is the launches."""
    summed: dict[str, float] = {}
    for kernel in result.kernels:
        for name, value in kernel.breakdown.items():
            summed[name] = summed.get(name, 0.0) + value
    if result.seconds > sum(kernel.seconds for kernel in result.kernels):
        summed["launch"] = result.seconds
    return FrozenDict(summed)


def _dram_bytes(result: Estimate) -> tuple[int, int]:
    if result.rates.simulated:  # no cache keeps what is requested again
        return result.requested_bytes, result.requested_bytes
    cached = result.rates.cached
    return dram_interval(result.kernels, result.compulsory_bytes, result.requested_bytes, cached)


def _l2_bytes(result: Estimate) -> tuple[int, int]:
    capacity = result.rates.l2_capacity
    return leaving_interval(result.kernels, result.compulsory_bytes, result.requested_bytes, capacity)


MUCH = 0.1
"""Share of the time of the DRAM from which on a part of it is stated."""


def _lock_step_bytes(result: Estimate) -> int | None:
    together = [kernel.lock_step_bytes for kernel in result.kernels]
    low, high = result.dram_bytes
    return None if None in together else min(max(low, sum(filter(None, together))), high)


def _mask(result: Estimate) -> tuple[str, ...]:
    return open_ended(getattr(result.workload, "mask", None))


def _products(result: Estimate) -> Iterator[str]:
    """Name the rate that is assumed of the products of a call with attention."""
    if isinstance(result.workload, Call) and result.rates.assumed_products is not None:
        yield result.rates.assumed_products


def _splitting(result: Estimate) -> list[str]:
    """Name the algorithm that splits the keys of a call with more of them than queries, unless it is an estimate's."""
    call = result.workload
    if not isinstance(call, Attention) or call.q_len >= call.kv_len or "splits" in result.cost.options:
        return []
    return [f"splits of the keys ({each.name})" for each in answering(call) if "splits" in each.takes(call.direction)][
        :1
    ]


def _idle(result: Estimate) -> Iterator[str]:
    """Warn of the longest kernel if it leaves SMs without a block."""
    units = result.rates.units
    longest = max(result.kernels, key=lambda kernel: kernel.seconds, default=None)
    if longest is not None and units is not None and longest.blocks < units:
        blocks = "1 block" if longest.blocks == 1 else f"{longest.blocks:,} blocks"
        idle = units - longest.blocks
        fill = " or ".join(["more heads or sequences", *_splitting(result)])
        yield f"{longest.title}: {blocks} for {units:,} SMs, {idle:,} idle ({fill} fill them)"


def _written_back(result: Estimate) -> Iterator[str]:
    """State the time in which lines of earlier kernels are written back, where it is much of that of the DRAM."""
    rates, waits = result.rates, result.breakdown.get("hbm", 0.0)
    if not rates.dirty or not rates.hbm or result.limited_by != "hbm":
        return
    extra = waits - result.streamed_bytes / rates.hbm
    if extra > MUCH * waits:
        left = "what a benchmark left in the L2 (dirty_l2=0, as in a plan: none)"
        yield f"{1e6 * extra:,.1f} us of hbm write back {left}"


def _assumed(result: Estimate) -> tuple[str, ...]:
    notes = (_products(result), _idle(result), _written_back(result))
    return (*_mask(result), *result.rates.assumed, *(note for group in notes for note in group))


LATER: Mapping[str, Callable[[Estimate], Any]] = {
    "requested_bytes": lambda result: result.cost.hbm_bytes,
    "breakdown": _breakdown,
    "limited_by": lambda result: max(result.breakdown, key=result.breakdown.__getitem__),
    "dram_bytes": _dram_bytes,
    "l2_bytes": _l2_bytes,
    "lock_step_bytes": _lock_step_bytes,
    "assumed": _assumed,
}
"""Fields of an estimate that follow from other fields."""
