"""The fastest attention kernel of a call: the shipped algorithms at a few tiles, by the clock of `estimate`.

The tiles are the solver's at two lengths of the same kind of call; a new length then costs no search, and a longer
context is never faster for a better tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.default_tiles import fastest_tiles
from iomodel.documents import Documents
from iomodel.errors import InputError, IOModelError
from iomodel.estimate import estimate
from iomodel.hardware import Hardware
from iomodel.linear.span import Span
from iomodel.parameters import DEFAULT, Parameters
from iomodel.per_device import per_device
from iomodel.rates import rates
from iomodel.workload import Attention

MOST = 1 << 14
"""Answers that are kept."""
NAMES = ("flash3", "split_kv", "flash2")
"""What is tried, in this order."""
TYPICAL = (1024, 16384)
"""Keys of the calls whose best tiles are tried on others [rows]."""
LEAST_KEYS = 64
"""Keys of a part that a block of its own is tried for [rows]."""
FEW_ROWS = 128
"""Rows of a packed group of heads up to which keys are split among blocks: decoding [rows]."""


@dataclass(frozen=True)
class AttentionClock:
    """What times attention calls on one device."""

    device: Hardware
    parameters: Parameters = DEFAULT
    algorithm: str | None = None
    known: dict[Attention, tuple[str, Span]] = field(default_factory=dict, compare=False, repr=False)
    tiles: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def fastest(self, call: Attention) -> tuple[str, Span]:
        """The algorithm that is fastest, and its time; whatever the last one refuses if none takes the call."""
        found = self.known.get(call)
        if found is None:
            found = self._fastest(call)
            if len(self.known) >= MOST:
                self.known.pop(next(iter(self.known)), None)
            self.known[call] = found
        return found

    def _fastest(self, call: Attention) -> tuple[str, Span]:
        best: tuple[str, Span] | None = None
        refused: IOModelError | None = None
        for name in NAMES if self.algorithm is None else (self.algorithm,):
            for options in self._options(name, call):
                for tiles in self._tiles(name, call, options):
                    try:
                        found = self._timed(name, call, tiles, options)
                    except IOModelError as error:  # a tile too large, a call or device that the kernels are not for
                        refused = error
                        continue
                    if best is None or found.seconds < best[1].seconds:
                        best = name, found
            if best is not None and not (name == "flash3" and _few(call)):
                break  # flash2 is for devices and calls that the others are not for
        if best is None:
            raise refused or IOModelError(f"attention: no algorithm takes {call}")
        return best

    def _timed(self, name: str, call: Attention, tiles: Mapping[str, int] | None, options: Mapping[str, Any]) -> Span:
        found = estimate(name, call, self.device, tiles, parameters=self.parameters, **options)
        return Span(
            found.seconds,
            sum(kernel.streamed_bytes for kernel in found.kernels),
            found.requested_bytes,
            found.cost.useful_flops,
            tuple(found.breakdown.items()),
            tuple(found.tiles.items()),
        )

    def _options(self, name: str, call: Attention) -> Iterator[dict[str, Any]]:
        """The options worth a try: rows of a group packed and keys split among blocks where there are few rows."""
        if "forward" not in find_algorithm(name).directions:
            raise InputError(f"attention_algorithm: {name!r} given; allowed: one with a forward pass, such as flash2")
        taken, few = find_algorithm(name).takes("forward"), _few(call)
        packed = few and call.group > 1
        if "splits" not in taken:
            yield {"packed": packed, **({"lse": False} if "lse" in taken else {})}
        elif few or self.algorithm is not None:
            yield from ({"packed": packed, "splits": splits} for splits in self._splits(call))

    def _splits(self, call: Attention) -> Iterator[int]:
        units = rates(self.device, call.dtype).units
        splits = 1
        while splits == 1 or (units is not None and call.batch * call.kv_heads * splits <= 4 * units and splits <= 64):
            if splits > 1 and splits * LEAST_KEYS > call.kv_len:
                break
            yield splits
            splits *= 2

    def _tiles(self, name: str, call: Attention, options: Mapping[str, Any]) -> tuple[Mapping[str, int] | None, ...]:
        """The best tiles of typical calls of this kind; None, for those of the call itself, where there are none."""
        decoding = _few(call)
        kind = (name, tuple(options.items()), call.q_len if decoding else 0, call.model_copy(update=_PLAIN))
        found = self.tiles.get(kind)
        if found is None:
            lengths = TYPICAL[-1:] if decoding else TYPICAL
            tiles = dict.fromkeys(self._typical(name, call, options, length) for length in lengths)
            self.tiles[kind] = found = tuple(one for one in tiles if one) or (None,)
        return found

    def _typical(self, name: str, call: Attention, options: Mapping[str, Any], length: int) -> Mapping[str, int] | None:
        decoding = _few(call)
        queries, batch = (min(call.q_len, length), 8) if decoding else (length, 1)
        mask = "causal" if isinstance(call.mask, Documents) else call.mask
        if "splits" in options:
            options = {**options, "splits": min(options["splits"], 4)}
        try:
            like = call.model_copy(update={"q_len": queries, "kv_len": length, "batch": batch, "mask": mask})
            return fastest_tiles(name, like, self.device, self.parameters, None, options)
        except IOModelError:
            return None


def _few(call: Attention) -> bool:
    """Whether a group of heads has few rows, as in decoding."""
    return call.q_len * call.group <= FEW_ROWS


_PLAIN = {"batch": 1, "q_len": 1, "kv_len": 1, "mask": "causal"}
"""What the tiles of a kind of call do not depend on."""


@per_device
def attention_clock(device: Hardware, parameters: Parameters = DEFAULT, algorithm: str | None = None) -> AttentionClock:
    """The clock of attention of a device: the fastest algorithm, or the one asked for."""
    if algorithm is not None:
        find_algorithm(algorithm)
    return AttentionClock(device, parameters, algorithm)
