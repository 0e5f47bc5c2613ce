"""Fastest attention kernel of a call: algorithms in their declared order of preference, timed by `estimate`.

In serving the tiles are those of the solver at two lengths of the same kind of call. A new length then needs no search,
and a longer context is never faster because of a better tile. In training they are the default tiles of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from iomodel.algorithms import answering, name_of
from iomodel.common.cache import BoundedCache, per_device
from iomodel.counting.cost import Cost
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.errors import InfeasibleError, InputError, IOModelError, SpecError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.implementation import TEXTBOOK, Implementation
from iomodel.placement.front_ends import with_legal_pages
from iomodel.placement.implementations import implementations_for, stand_in
from iomodel.solving.default_tiles import default_tiles
from iomodel.solving.question import Question
from iomodel.studies.estimate import estimate
from iomodel.timing.estimate_result import Estimate
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.timing.span import Span
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import ELEMENT_SIZE, KV_MULTIPLE, halves
from iomodel.workloads.masks.documents import Documents

MOST = 1 << 14
"""Cached results."""
TYPICAL = (1024, 16384)
"""Keys of the typical calls, whose best tiles are tried on other calls [rows]."""
MOST_SPLITS = 64
"""Most parts into which the keys of a sequence are split [-]."""
LATENT_START = 8e-6
"""Time of decoding on latents under engines beyond that of its kernels [s]: working rows of
tests/measured/latent_attention.csv with 1 and 8 requests on H200 and B200; the chain through tiles of 576 elements, and
the sum of the splits."""
FEW_ROWS = 128
"""Most rows of a packed group of heads at which keys are split among blocks, as in decoding [rows]."""


_Choice = tuple[Mapping[str, int] | None, Mapping[str, Any], str | None]
"""Tiles, options and implementation; without tiles, the default ones of the call."""
_Tiles = tuple[Mapping[str, int] | None, str | None]


@dataclass(frozen=True)
class AttentionClock:
    """A timer of attention calls on one device, with the kernels of an engine by its name."""

    device: Hardware
    parameters: Parameters = DEFAULT
    algorithm: Algorithm | None = None
    engine: str = ""
    known: BoundedCache[tuple[str, Span]] = field(default_factory=lambda: BoundedCache(MOST), compare=False, repr=False)
    tiles: BoundedCache[tuple[_Tiles, ...]] = field(
        default_factory=lambda: BoundedCache(MOST), compare=False, repr=False
    )

    def fastest(self, call: Attention) -> tuple[str, Span]:
        """Find the fastest algorithm and its time; raise the last error if no algorithm takes the call."""
        return self.known.get(call, lambda: self._of_one_head(call))

    def _of_one_head(self, call: Attention) -> tuple[str, Span]:
        alike = _one_head(call)
        return self._fastest(call) if alike == call else self.fastest(alike)

    def _fastest(self, call: Attention) -> tuple[str, Span]:
        call = self._runnable(call)
        timed: list[tuple[float, Algorithm, _Choice]] = []
        refused: IOModelError | None = None
        for algorithm in self._algorithms(call):
            if timed and not _few(call):
                break  # those that follow cover devices and calls that the others do not support
            for choice in self._choices(algorithm, call):
                try:
                    timed.append((self._seconds(algorithm, call, choice), algorithm, choice))
                except IOModelError as error:  # too large a tile, or a call or device that the kernel does not support
                    refused = error
        if not timed:
            raise refused or IOModelError(f"attention: no algorithm takes {call}")
        _, algorithm, choice = min(timed, key=itemgetter(0))
        return name_of(algorithm), self._timed(algorithm, call, choice)

    def _runnable(self, call: Attention) -> Attention:
        """Return a prefill in 16 bits if kernels on file run it on the device in these alone, else the call itself.

        The kernel of an engine in narrow types is then at least as fast: the exponentials take as long in both.
        """
        if _few(call) or ELEMENT_SIZE[call.dtype] > 1 or self._has_kernels(call):
            return call
        wide = call.model_copy(update={"dtype": "bf16", "kv_dtype": None, "kv_scales": None})
        return wide if self._has_kernels(wide) else call

    def _has_kernels(self, call: Attention) -> bool:
        return any(implementations_for(algorithm, call, self.device, None) for algorithm in self._algorithms(call))

    def _own(self, kernels: Sequence[Implementation]) -> tuple[Implementation, ...]:
        """Return those of the kernels that the engine runs in place of all others."""
        engines = {"any", self.engine} if self.parameters.in_graph > 0 else set()
        return tuple(known for known in kernels if engines.intersection(known.front_end.served))

    def _choices(self, algorithm: Algorithm, call: Attention) -> list[_Choice]:
        """List the tiles and options to try, each once."""
        choices: list[_Choice] = []
        for asked in self._options(algorithm, call):
            for tiles, kernels in self._tiles(algorithm, call, asked):
                choice = tiles, _whole_tiles(asked, tiles, call), kernels
                choices += [] if choice in choices else [choice]
        return choices

    def _algorithms(self, call: Attention) -> Sequence[Algorithm]:
        """List the algorithms in order: for a prefill, those with a kernel of the engine or the device first.

        Decoding has kernels on every device that no implementation here states, so that the textbook's stand in.
        """
        if self.algorithm is not None:
            return (self.algorithm,)
        preferred = answering(call)
        if _few(call):
            return preferred

        def rank(algorithm: Algorithm) -> tuple[bool, bool]:
            kernels = implementations_for(algorithm, call, self.device, None)
            return not self._own(kernels), not kernels

        return sorted(preferred, key=rank)

    def _seconds(self, algorithm: Algorithm, call: Attention, choice: _Choice) -> float:
        """Rank a candidate by the time of its fastest launch [s]."""
        tiles, options, kernels = choice
        if tiles is None:
            return self._timed(algorithm, call, choice).seconds
        paged = _paged(algorithm, call, kernels)
        asked = Question.ask(algorithm, paged, self.device, kernels, options, parameters=self.parameters)
        return asked.launched(tiles).seconds

    def _timed(self, algorithm: Algorithm, call: Attention, choice: _Choice) -> Span:
        tiles, options, kernels = choice
        paged = _paged(algorithm, call, kernels)
        result = estimate(
            algorithm, paged, self.device, tiles, parameters=self.parameters, implementation=kernels, **options
        )
        span = attention_span(result, self._conversion(call, result.cost))
        served = call.latent and _few(call)
        return replace(span, seconds=span.seconds + self.parameters.in_graph * LATENT_START) if served else span

    def _conversion(self, call: Attention, cost: Cost) -> float:
        """Time the conversion of elements of 4 bits to the type of the products, at every load of a tile [s].

        It runs beside the loads and the products, as that of weights does.
        """
        rate = rates(self.device, call.dtype).fp32
        narrow = (name for name, half in zip("KV", halves(call.kv_dtype), strict=True) if half in KV_MULTIPLE)
        elements = sum(cost.reads.get(name, 0) for name in narrow)
        return 0.0 if rate is None else elements * self.parameters.convert_ops / rate

    def _options(self, algorithm: Algorithm, call: Attention) -> Iterator[dict[str, Any]]:
        """List options to try: packed groups of heads, and keys split among blocks, if there are few rows."""
        if "forward" not in algorithm.directions:
            raise InputError(
                f"attention_algorithm: {algorithm.name!r} given; allowed: one with a forward pass, such as flash2"
            )
        accepted, few = algorithm.takes("forward"), _few(call)
        packed = few and call.group > 1
        if "splits" not in accepted:
            yield {"packed": packed, **({"lse": False} if "lse" in accepted else {})}
        elif few or self.algorithm is not None:
            yield from ({"packed": packed, "splits": splits} for splits in self._splits(call))

    def _splits(self, call: Attention) -> Iterator[int]:
        units = rates(self.device, call.dtype).units
        splits = 1
        most = 1 if units is None else min(MOST_SPLITS, 4 * units // (call.batch * call.kv_heads))
        while splits == 1 or splits <= most:
            yield splits
            splits *= 2

    def _tiles(self, algorithm: Algorithm, call: Attention, options: Mapping[str, Any]) -> tuple[_Tiles, ...]:
        """Collect the best tiles of typical calls of this kind, each with its kernels.

        Without any the tiles are None: those of the call itself.
        """
        decoding = _few(call)
        plain = call.memo.get("plain")
        if plain is None:
            plain = call.memo["plain"] = call.model_copy(update=_PLAIN)
        kind = (algorithm, tuple(options.items()), call.q_len if decoding else 0, _typical_mask(call), plain)

        def best() -> tuple[_Tiles, ...]:
            lengths = TYPICAL[-1:] if decoding else TYPICAL
            tiles = dict.fromkeys(
                entry for length in lengths for entry in self._typical(algorithm, call, options, length)
            )
            return tuple(entry for entry in tiles if entry[0]) or tuple(tiles)[:1]

        return self.tiles.get(kind, best)

    def _typical(self, algorithm: Algorithm, call: Attention, options: Mapping[str, Any], length: int) -> list[_Tiles]:
        decoding = _few(call)
        queries, batch = (min(call.q_len, length), 8) if decoding else (length, 1)
        if "splits" in options:
            options = {**options, "splits": min(options["splits"], 4)}
        try:
            lengths = {"q_len": queries, "kv_len": length, "batch": batch}
            typical = call.model_copy(update={**lengths, "mask": _typical_mask(call), "page_size": None})
            asked = Question.ask(algorithm, typical, self.device, None, options, parameters=self.parameters)
            return _listed(asked, self._own(asked.kernels))
        except IOModelError:
            return [(None, stand_in(algorithm, call, self.device))]


def attention_span(result: Estimate, least: float = 0.0) -> Span:
    """Return the span of an estimate, which takes at least a given time [s]."""
    return Span(
        max(result.seconds, least),
        sum(kernel.streamed_bytes for kernel in result.kernels),
        result.requested_bytes,
        result.cost.useful_flops,
        tuple(result.breakdown.items()),
        tuple(result.tiles.items()),
    )


def _listed(question: Question, own: Sequence[Implementation]) -> list[_Tiles]:
    """Return the default tiles of each implementation in which any fit, in the order of declaration.

    The kernels that an engine runs are listed alone, where there are such.
    """
    failure: IOModelError | None = None
    listed: list[_Tiles] = []
    for kernels in own or question.kernels:
        try:
            listed.append((default_tiles(question.by(kernels))[0], kernels.name))
        except (InputError, InfeasibleError) as error:
            failure = failure or error
    if failure is not None and not listed:
        raise failure
    return listed or [(default_tiles(question)[0], TEXTBOOK.name)]


def _paged(algorithm: Algorithm, call: Attention, kernels: str | None) -> Attention:
    """Return a call with the pages that an engine gives to its kernels."""
    known = (each for each in algorithm.implementations if each.name == kernels)
    return next((with_legal_pages(each.front_end, call) for each in known), call)


def _whole_tiles(options: Mapping[str, Any], tiles: Mapping[str, int] | None, call: Attention) -> Mapping[str, Any]:
    """Limit the splits to the key tiles of a call, so that a shorter call has every choice of a longer one."""
    if "splits" not in options or tiles is None or "block_kv" not in tiles:
        return options
    return {**options, "splits": min(options["splits"], -(-call.kv_len // tiles["block_kv"]))}


def _one_head(call: Attention) -> Attention:
    """Return the call with each group of heads as a sequence of its own, which takes the same time.

    Calls of different tensor parallelism are then the same, unless a tensor has an entry per head.
    """
    if call.kv_heads == 1 or call.alibi or call.sinks or call.kv_scales is not None:
        return call
    heads = call.kv_heads
    return call.model_copy(update={"batch": call.batch * heads, "heads": call.group, "kv_heads": 1})


def _few(call: Attention) -> bool:
    """Check that a group of heads has few rows, as in decoding."""
    return call.q_len * call.group <= FEW_ROWS


def _typical_mask(call: Attention) -> Any:
    """Return the mask of the typical calls of a kind: that of the call, but for documents, which have lengths."""
    return "causal" if isinstance(call.mask, Documents) else call.mask


_PLAIN = {"batch": 1, "q_len": 1, "kv_len": 1, "mask": "causal"}
"""Fields of a call that differ from its typical calls, with fixed values."""


@per_device
def attention_clock(
    device: Hardware, parameters: Parameters = DEFAULT, algorithm: Algorithm | None = None, engine: str = ""
) -> AttentionClock:
    """Build the attention timer of a device, for the fastest algorithm or a fixed one, under an engine.

    A call of a model follows layers that read their weights, so that the L2 has no lines to write back.
    """
    return AttentionClock(device, replace(parameters, dirty_l2=0.0), algorithm, engine)


@dataclass(frozen=True)
class PassClock(AttentionClock):
    """A timer of one pass of attention calls at the default tiles, of the fastest kernels or of fixed ones."""

    direction: str = "forward"
    implementation: str | None = None

    def fastest(self, call: Attention) -> tuple[str, Span]:
        """Find the fastest algorithm with this pass, and its time."""
        passed = call.model_copy(update={"direction": self.direction})
        algorithms = (self.algorithm,) if self.algorithm is not None else tuple(answering(passed))
        return _fastest_pass(self.device, passed, self.parameters, algorithms, self.implementation)


@per_device
def _fastest_pass(
    device: Hardware,
    call: Attention,
    parameters: Parameters,
    algorithms: tuple[Algorithm, ...],
    implementation: str | None,
) -> tuple[str, Span]:
    spans: list[tuple[str, Span]] = []
    refused: IOModelError | None = None
    stands_in = {algorithm: stand_in(algorithm, call, device) for algorithm in algorithms}
    if implementation is None and not all(stands_in.values()):
        algorithms = tuple(algorithm for algorithm in algorithms if stands_in[algorithm] is None)
    for algorithm in algorithms:
        asked = Question.ask(algorithm, call, device, implementation)
        first = next((known.name for known in asked.kernels), stands_in[algorithm])
        kernels = first if implementation is None else implementation
        try:
            result = estimate(algorithm, call, device, implementation=kernels, parameters=parameters)
        except (InputError, SpecError, InfeasibleError) as error:
            refused = error
        else:
            spans.append((name_of(algorithm), attention_span(result)))
    if not spans:
        assert refused is not None
        raise refused
    return min(spans, key=lambda entry: entry[1].seconds)
