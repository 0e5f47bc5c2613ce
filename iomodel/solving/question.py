"""Questions: a call of an algorithm on a device or under a budget, with the kernels that may run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from iomodel.algorithms import AlgorithmLike, answering, name_of
from iomodel.common.arithmetic import ceil_div
from iomodel.common.cache import per_device
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.bounds import Bound, compulsory, largest_bounds
from iomodel.counting.options import in_pass
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.rates import Rates, has_rates, product_rates, rates
from iomodel.errors import InfeasibleError, InputError, IOModelError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import DIRECTIONS, TEXTBOOK, Implementation
from iomodel.placement.budget import Budget, budget_of
from iomodel.placement.front_ends import launched_first, packings
from iomodel.placement.implementations import implementations_for, lacks_kernels, named, no_kernel, refusal_on
from iomodel.placement.shipped_tile import shipped_tile
from iomodel.solving.parts import Parts, tileable_parts
from iomodel.solving.problem import TileRange
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.varlen import VarlenAttention, as_call
from iomodel.workloads.window import Window
from iomodel.workloads.workload import Workload, as_workload

if TYPE_CHECKING:
    from iomodel.timing.clock import Clock, TimedLaunch
    from iomodel.timing.layer_clock import LayerClock

T = TypeVar("T")
ROWS = 128
"""Rows of a tile in the rule for packing [rows]."""


@dataclass(frozen=True, eq=False)
class Question:
    """One call of an algorithm on one device or under a bare budget, as every verb asks it.

    Questions of one device object are equal if their other parts are; hashing all figures of a device is slow.

    Attributes
    ----------
    algorithm, call, hardware
        What is computed, on what, where; no hardware with a bare budget.
    implementation : str, Implementation or None
        The kernels wanted; None for the default one of the call.
    options : mapping of str to Any
        The options that are given; the kernels choose others per call.
    parameters : Parameters
        The assumptions of the time model.
    min_block_kv, min_blocks_per_sm : int
        Limits of the tiles that compete [rows], [-].
    memory : mapping of str to int
        A bare budget, `sram_bytes` or `sram_elements`, and the `alignment` of its tiles.
    by_pass : mapping of str to Implementation
        The kernels of each pass of a call in both directions, where their tiles have been chosen.
    """

    algorithm: Algorithm
    call: Workload
    hardware: Hardware | None
    implementation: str | Implementation | None = None
    options: Mapping[str, Any] = FrozenDict()
    parameters: Parameters = DEFAULT
    min_block_kv: int | None = None
    min_blocks_per_sm: int = 1
    memory: Mapping[str, Any] = FrozenDict()
    by_pass: Mapping[str, str | Implementation | None] = FrozenDict()

    @classmethod
    def ask(
        cls,
        algorithm: AlgorithmLike,
        workload: Workload,
        hardware: Hardware | str | None,
        implementation: str | Implementation | None = None,
        options: Mapping[str, Any] = FrozenDict(),
        **more: Any,
    ) -> Question:
        """Find the algorithm and the device by their names, and check the call and its options."""
        call = as_call(workload) if isinstance(workload, Call) else as_workload(workload)
        device = None if hardware is None else as_device(hardware)
        declaration, kernels = named(algorithm, implementation, device)
        question = cls(declaration, call, device, kernels, FrozenDict(options), **more)
        if options:
            question.untiled  # noqa: B018 - raises for a wrong one, which a cache might not take as a key
        return question

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (
            id(self.hardware), self.algorithm, self.call, self.implementation, self.parameters, self.min_block_kv,
            self.min_blocks_per_sm, self.memory, self.by_pass, *_typed(self.options),
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self._key == other._key

    @property
    def device(self) -> Hardware:
        """The device of a question that has one."""
        assert self.hardware is not None
        return self.hardware

    @property
    def budget(self) -> Budget:
        """The memory of one thread block; raise InputError unless there is exactly one budget."""
        given = (self.memory.get(name) for name in ("sram_bytes", "sram_elements", "alignment"))
        return budget_of(self.hardware, *given)

    @property
    def name(self) -> str:
        """The name of the algorithm in results."""
        return name_of(self.algorithm)

    @property
    def rates(self) -> Rates:
        """The rates of the device for the type of the call."""
        return rates_for(self.device, self.call)

    @property
    def rated(self) -> bool:
        """True if the device has the rates of a time for the type of the call."""
        return has_rates(self.device, self.call.dtype)

    @cached_property
    def bound(self) -> BoundCall:
        """The call with its options; raise InputError for a wrong one."""
        return BoundCall.bind(self.algorithm, self.call, self.options)

    @property
    def untiled(self) -> BoundCall:
        """The call with its options, some of which may be chosen with the tiles."""
        return BoundCall.bind(self.algorithm, self.call, self.options, tiled=False)

    @property
    def compulsory(self) -> Bound:
        """The traffic of every algorithm for the call."""
        return compulsory(self.algorithm, self.call)

    @property
    def lower_bounds(self) -> tuple[Bound, Bound]:
        """The largest bound that holds in the memory of one block, and the largest for every schedule."""
        on_device = self.kernels or self.runs_a_pass
        memory = {"sram_bytes": self.device.on_chip_per_block} if on_device else self.budget.memory
        return largest_bounds(self.algorithm, self.call, **memory)

    @property
    def tileable(self) -> tuple[Parts, dict[str, TileRange]]:
        """The parts of the algorithm that are tiled alone, with the ranges of their tiles in the budget."""
        return tileable_parts(self.bound, self.budget.unit, self.budget.alignment, self.min_block_kv)

    @property
    def layers(self) -> LayerClock:
        """The timer of linear layers on the device."""
        from iomodel.timing.layer_clock import layer_clock  # the time model, which a search for traffic does not need

        return layer_clock(self.device, self.parameters)

    @property
    def least_keys(self) -> int:
        """The least block_kv allowed [rows]."""
        return 1 if self.min_block_kv is None else as_integer("min_block_kv", self.min_block_kv)

    @property
    def least_blocks(self) -> int:
        """The least number of blocks per SM allowed [-]."""
        return as_integer("min_blocks_per_sm", self.min_blocks_per_sm)

    @cached_property
    def kernels(self) -> Sequence[Implementation]:
        """The implementations that run the call on the device, in the order in which they are tried.

        None runs both directions; those of each pass are asked for apart.
        """
        if self.hardware is None or (isinstance(self.call, Call) and len(self.passes) > 1):
            return []
        return implementations_for(self.algorithm, self.call, self.hardware, self.implementation, self.options)

    @cached_property
    def ranked(self) -> Sequence[Implementation]:
        """The implementations that run the call on the device, the default one first.

        Options that kernels choose per call, such as `splits`, and limits of the tiles leave out kernels, but do not
        change the order.
        """
        if len(self.kernels) < 2:
            return self.kernels
        from iomodel.solving.default_tiles import ranked_kernels  # imports the time model

        chosen = {name for known in self.algorithm.implementations for name in known.searched}
        own = FrozenDict({name: value for name, value in self.options.items() if name not in chosen})
        plain = replace(self, options=own, min_block_kv=None, min_blocks_per_sm=1, memory=FrozenDict())
        return [known for known in ranked_kernels(plain) if known in self.kernels]

    @cached_property
    def lacks_kernels(self) -> bool:
        """True if the algorithm has kernels, and none of them runs the call on a real device.

        A device of the user's own without an architecture is as good as simulated.
        """
        device = self.hardware
        if device is None or device.simulated or (device.id is None and device.architecture is None):
            return False
        return lacks_kernels(self.algorithm, self.call, device)

    @cached_property
    def runs_a_pass(self) -> bool:
        """True if the call goes in both directions, and kernels of the device run one of them."""
        both = isinstance(self.call, Call) and len(self.passes) > 1
        return both and any(part.kernels for part in self.each_pass.values())

    @property
    def refusal(self) -> IOModelError | None:
        """The reason for which the kernels of the algorithm for the device refuse the call; None without any for it."""
        return refusal_on(self.algorithm, self.call, self.device)

    @property
    def others(self) -> list[Question]:
        """The questions of other algorithms that kernels of the device run, in their order of preference."""
        known = [other for other in answering(self.call) if other is not self.algorithm]
        asked = (replace(self, algorithm=other, options=FrozenDict(), implementation=None) for other in known)
        return [other for other in asked if other.ranked]

    @property
    def no_kernel(self) -> str:
        """The reason for which the textbook's machine replaces the kernels of the device."""
        return no_kernel(self.algorithm, self.call, self.device)

    @property
    def library(self) -> Implementation:
        """The implementation wanted, else the default one of the call, else the textbook's."""
        wanted = self.implementation
        return wanted if isinstance(wanted, Implementation) else next(iter(self.ranked), TEXTBOOK)

    @property
    def settled(self) -> str | Implementation | None:
        """The implementation wanted, else the default one of the call; None without any."""
        wanted = self.implementation
        return next(iter(self.ranked), None) if wanted is None and isinstance(self.call, Call) else wanted

    def by(self, kernels: Implementation) -> Question:
        """Ask for one implementation."""
        return replace(self, implementation=kernels)

    def by_first(self, run: Callable[[Question], T]) -> T:
        """Run for the default implementation, else for the next that does not refuse; raise the first refusal.

        A question without a kernel, or for one implementation, is run as it is.
        """
        failure: InputError | InfeasibleError | None = None
        for kernels in self.ranked if self.implementation is None else ():
            try:
                return run(self.by(kernels))
            except (InputError, InfeasibleError) as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return run(self)

    def by_fastest(self, run: Callable[[Question], T], seconds: Callable[[T], float]) -> T:
        """Run for every implementation and return the fastest; raise the refusal of the default one if all refuse.

        Kernels that libraries launch where no other runs the call are run if all others refuse. A question without a
        kernel, or for one implementation, is run as it is.
        """
        kernels = self.kernels if self.implementation is None else ()
        if len(kernels) < 2:
            return run(self.by(kernels[0]) if kernels else self)
        for alike in launched_first(kernels):
            results: list[T] = []
            for known in alike:
                try:
                    results.append(run(self.by(known)))
                except (InputError, InfeasibleError):
                    continue
            if results:
                return min(results, key=seconds)
        return self.by_first(run)

    def choosing(self, options: Mapping[str, Any]) -> Question:
        """Ask with other options."""
        return replace(self, options=FrozenDict(options))

    def adding(self, options: Mapping[str, Any]) -> Question:
        """Ask with further options."""
        return self.choosing({**self.options, **options}) if options else self

    @cached_property
    def passes(self) -> tuple[str, ...]:
        """The directions of the call, one after the other."""
        return DIRECTIONS if self.call.direction == "both" else (self.call.direction,)

    @property
    def each_pass(self) -> Mapping[str, Question]:
        """The questions of both passes by direction, each with the options that the algorithm takes there."""
        return {direction: self._in(direction) for direction in self.passes}

    def _in(self, direction: str) -> Question:
        assert isinstance(self.call, Attention | VarlenAttention)
        taken = FrozenDict(in_pass(self.algorithm, direction, self.options))
        call = self.call.model_copy(update={"direction": direction})
        kernels = self.by_pass.get(direction, self.implementation)
        return replace(self, call=call, options=taken, implementation=kernels, by_pass=FrozenDict())

    def free(self, alike: Attention | VarlenAttention | None = None) -> dict[str, Sequence[Any]]:
        """Return the values of the options that the kernels search for the call, or for one `alike`."""
        call = self.call if alike is None else alike
        assert isinstance(call, Attention | VarlenAttention)
        taken = self.algorithm.takes(call.direction)
        return free_options(self.library, call, taken, self.options)

    def choices(self, ruled: bool = False) -> Iterator[dict[str, Any]]:
        """Yield each combination of the searched options that are not given.

        If `ruled`, the splits are those of the library's rule where it has one.
        """
        free = self.free()
        if (
            not ruled
            or "splits" not in free
            or self.library.front_end.division is None
            or not isinstance(self.call, Attention)
        ):
            yield from products(free)
            return
        del free["splits"]
        for chosen in products(free):
            packed = bool({**self.options, **chosen}.get("packed"))
            shared = self.call.group if packed else 1
            heads, rows = self.call.batch * self.call.heads // shared, self.call.q_len * shared
            yield {**chosen, "splits": self.divided(packed, heads, rows, self.call.kv_len)}

    def divided(self, packed: bool, heads: int, rows: int, keys: int) -> int:
        """Return the splits by the rule of the library for heads of all sequences, the rows and the keys of each.

        It is 1 where the library ships no tile for several.
        """
        library, division = self.library, self.library.front_end.division
        assert isinstance(self.call, Attention)
        assert division is not None
        several = shipped_tile(library, self.call, self.device, {**self.options, "packed": packed, "splits": 2})
        if several is None or self.rates.units is None:
            return 1
        mask = self.call.mask
        if isinstance(mask, Window):
            keys = division.counted(keys, mask.left, mask.right, several["block_q"])
        return division.splits(heads, rows, ceil_div(keys, several["block_kv"]), self.rates.units)

    def timer(self, tiled: bool = True) -> Timer:
        """Return the call and the timer of its tiles."""
        options = _typed(self.options)
        return _timer(self.device, self.algorithm, self.call, options, tiled, self.parameters, self.settled)

    def launched(self, tiles: Mapping[str, int], chosen: Mapping[str, Any] = FrozenDict()) -> TimedLaunch:
        """Time tiles in their fastest launch, that of their warps and stages if these are among them."""
        return self.adding(chosen).timer().launched(tiles)


def rates_for(device: Hardware, call: Workload) -> Rates:
    """Derive the rates of a device for the type of a call: those of a library's products for a linear layer."""
    derived = product_rates if isinstance(call, Linear) else rates
    return derived(device, call.dtype)


def _typed(options: Mapping[str, Any]) -> tuple[tuple[str, type, Any], ...]:
    """Return options as a key of a cache, in which True is not 1."""
    return tuple((name, type(value), value) for name, value in sorted(options.items()))


Choice = tuple[Mapping[str, int], Mapping[str, Any]]
"""Tiles, and the options that go with them."""


class TimedChoice(NamedTuple):
    """Tiles and options, with their time [s]."""

    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    seconds: float

    @property
    def choice(self) -> Choice:
        """The tiles and options."""
        return self.tiles, self.options


def best_choice(
    question: Question, tile: Callable[[Mapping[str, Any]], Mapping[str, int] | None], ruled: bool = False
) -> TimedChoice | None:
    """Return the fastest of the options that the kernels choose, at the tile under each; None if no tile fits.

    If `ruled`, their library chooses the splits where it has a rule.
    """
    best: TimedChoice | None = None
    for searched in question.choices(ruled):
        chosen = {**question.options, **searched}
        sizes = tile(chosen)
        if sizes is None:
            continue
        try:
            timed = question.launched(sizes, searched)
        except IOModelError:
            continue
        if best is None or timed.seconds < best.seconds:
            best = TimedChoice(FrozenDict(timed.tiles), chosen, timed.seconds)
    return best


class Timer(NamedTuple):
    """A call with its options, and the timer of its tiles."""

    bound: BoundCall
    clock: Clock

    def launched(self, tiles: Mapping[str, int]) -> TimedLaunch:
        """Time tiles in their fastest launch, that of their warps and stages if these are among them."""
        launch = {name: tiles[name] for name in LAUNCH_NAMES & tiles.keys()}
        own = {name: tiles[name] for name in self.bound.tiles if name in tiles}
        return self.clock.fastest(self.bound.sizes(own), launch)


@per_device
def _timer(
    device: Hardware,
    algorithm: Algorithm,
    call: Workload,
    options: tuple[tuple[str, type, Any], ...],
    tiled: bool,
    parameters: Parameters,
    implementation: str | Implementation | None,
) -> Timer:
    """Build the timer of one pass."""
    from iomodel.timing.clock import clock_for  # the time model, which a search for traffic does not need

    bound = BoundCall.bind(algorithm, call, {name: value for name, _, value in options}, tiled=tiled)
    known = rates(device, call.dtype)
    return Timer(bound, clock_for(algorithm, call, device, bound.options, parameters, known, implementation))


def free_options(
    implementation: Implementation,
    call: Attention | VarlenAttention,
    taken: Mapping[str, Any],
    options: Mapping[str, Any],
) -> dict[str, Sequence[Any]]:
    """Return the legal values of each option that an implementation searches for a call and that is not given.

    Where the front end leaves the packing of rows to the caller, it is searched for tiles that it would fill better.
    """
    legal = packings(implementation.front_end, call, options)
    packed = legal if len(legal) == 1 or _underfilled(call) else legal[:1]
    searches = call.group > 1 and packed[-1]
    return {
        name: packed if name == "packed" else values
        for name, values in implementation.searched.items()
        if name not in options and (searches if name == "packed" else name in taken)
    }


def products(values: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield each combination of the values."""
    for chosen in product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def _underfilled(call: Attention | VarlenAttention) -> bool:
    """Check that packing the rows of grouped heads fills tiles better; lengths that differ are packed."""
    if call.heads == call.kv_heads:
        return False
    return isinstance(call, VarlenAttention) or bool(underfilled(call.q_len, call.group))


def underfilled(q_len: Any, group: Any) -> Any:
    """Check that tiles of one head are filled to less than 0.9 of those of a packed group; numbers or arrays.

    This is the rule of FlashAttention-3 (github.com/Dao-AILab/flash-attention, hopper: heuristics.h, should_pack_gqa).
    """

    def filled(rows: Any) -> Any:
        return rows / (ceil_div(rows, ROWS) * ROWS)

    return filled(q_len) < 0.9 * filled(q_len * group)
