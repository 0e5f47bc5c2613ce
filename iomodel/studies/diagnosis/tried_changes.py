"""Candidate changes of a diagnosis: the kernels that the model times in place of the measured kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from iomodel.algorithms import AlgorithmLike, answering
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.options import only_taken
from iomodel.devices.device import Hardware
from iomodel.errors import IOModelError
from iomodel.nests.algorithm import Algorithm
from iomodel.placement.implementations import lacks_kernels
from iomodel.solving.question import Question
from iomodel.solving.solve import solve
from iomodel.studies.diagnosis.facts import BlockGrid
from iomodel.studies.diagnosis.model import Change, clock_of
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.linear import WEIGHT_QUARTERS, Linear

NARROWER = {"fp32": ("tf32", "bf16"), "tf32": ("bf16",), "bf16": ("fp8",), "fp16": ("fp8",)}
NARROW_WEIGHTS = ("fp8", "int4")
POWERS = tuple(2**n for n in range(9))
"""Tile sizes tried if no kernel is declared for the device [rows]."""


@dataclass(frozen=True)
class Candidate:
    """A remedy with one changed kernel; the fastest kernel of each remedy counts.

    Kernels of another implementation, `apart` from the measured ones, count only if they are faster by more than the
    error of their time; they give the remedy its name.
    """

    name: str
    why: str
    change: Change
    apart: bool = False


def candidates(measured: Change, device: Hardware, blocks: BlockGrid) -> Iterator[Candidate]:
    """Yield every change worth timing."""
    if isinstance(measured.workload, Linear):
        yield from _of_layer(measured, measured.workload, device)
        return
    yield from _more_queries(measured)
    yield from _solved(measured, device)
    yield from _fused(measured, device)
    yield from _faster(measured)
    yield from _split(measured, device, blocks)
    yield from _narrower(measured, device)
    yield from _packed(measured)


def _of_layer(measured: Change, layer: Linear, device: Hardware) -> Iterator[Candidate]:
    """Yield the best tiles of a linear layer, a sum split among blocks, and narrower data types."""
    if measured.tiles:
        yield Candidate("best tiles", "tiles of least time", replace(measured, tiles=None))
    free = {name: value for name, value in measured.options.items() if name != "splits"}
    why = "several blocks share the terms of an output tile, so that more SMs work"
    if measured.tiles or free != measured.options:
        yield Candidate("split sum", why, replace(measured, tiles=None, options=free))
    for dtype in _narrower_dtypes(layer.dtype, device):
        followers = {name: dtype for name in ("weight_dtype", "out_dtype") if getattr(layer, name) == layer.dtype}
        narrow = layer.model_copy(update={"dtype": dtype, **followers})
        yield Candidate(dtype, f"the same kernel on {dtype} data", replace(measured, workload=narrow))
    for dtype in NARROW_WEIGHTS:
        if WEIGHT_QUARTERS[dtype] < WEIGHT_QUARTERS[layer.weight_dtype]:
            narrow = layer.model_copy(update={"weight_dtype": dtype})
            why = f"W is read as {dtype} and converted on chip"
            yield Candidate(f"{dtype} weights", why, replace(measured, workload=narrow))


def _more_queries(measured: Change) -> Iterator[Candidate]:
    """Yield the kernel with more queries per block, and with fewer keys at a time to make room."""
    sizes = dict(measured.tiles or {})
    if "block_q" not in sizes or "block_kv" not in sizes or measured.workload.direction != "forward":
        return
    why = "several queries of a block share every key and value that is loaded"
    rows = _rows(measured)
    for more in POWERS[1:]:
        query = min(sizes["block_q"] * more, rows)
        if query <= sizes["block_q"]:
            break
        for fewer in POWERS:
            tiles = {**sizes, "block_q": query, "block_kv": max(1, sizes["block_kv"] // fewer)}
            yield Candidate("larger block_q", why, replace(measured, tiles=tiles))
            if tiles["block_kv"] == 1:
                break
        if query == rows:
            break


def _rows(change: Change) -> int:
    call = as_attention(change.workload)
    return call.q_len * (call.group if change.options.get("packed") else 1)


def _solved(measured: Change, device: Hardware) -> Iterator[Candidate]:
    """Yield the algorithm at the tiles of least time or of least traffic."""
    if measured.tiles:
        for tiles, what in best_tiles(measured, device):
            yield Candidate("best tiles", f"tiles of {what}", replace(measured, tiles=tiles))


def best_tiles(change: Change, device: Hardware) -> Iterator[tuple[dict[str, int] | None, str]]:
    """Yield tiles worth trying for an algorithm; None means the default tiles of the estimate."""
    yield None, "least time"
    call = as_attention(change.workload)
    placed = bool(clock_of(replace(change, tiles={"block_q": 1}), device).placements)
    names = Question.ask(change.algorithm, call, None, options=change.options).bound.tiles
    try:
        if placed:
            least = solve(change.algorithm, call, device, objective="traffic", **dict(change.options))
            yield dict(least.tiles), "least traffic"
        else:  # without matrix instructions, tiles need no alignment to them
            budget = device.sram_per_block
            least = solve(change.algorithm, call, sram_bytes=budget, alignment=1, **dict(change.options))
            yield dict(least.tiles), "least traffic"
    except IOModelError:
        pass
    if not placed and set(names) == {"block_q", "block_kv"}:
        for query in POWERS:
            for key in POWERS:
                if query < 2 * _rows(change) and key < 2 * call.kv_len:
                    yield {"block_q": query, "block_kv": key}, "least time"


def _fused(measured: Change, device: Hardware) -> Iterator[Candidate]:
    """Yield FlashAttention in place of any other kernel."""
    call = as_attention(measured.workload)
    if find_algorithm(measured.algorithm) in answering(call):
        return
    why = "a block's queries stay on chip, S never leaves it, and K and V stream past once for all of them"
    general, *others = fused(call)
    for declaration in (general, *others):
        change = other(measured, declaration)
        if declaration in others and not clock_of(replace(change, tiles={"b": 1}), device).placements:
            continue
        for tiles, _ in best_tiles(change, device):
            yield Candidate(declaration.name, why, replace(change, tiles=tiles))


def _faster(measured: Change) -> Iterator[Candidate]:
    """Yield the fastest kernels of the fused algorithms in place of the kernels of one of them."""
    call = as_attention(measured.workload)
    for declaration in fused(call) if find_algorithm(measured.algorithm) in answering(call) else ():
        why = f"the fastest kernels of {declaration.name} on the device, by more than the error of their time"
        yield Candidate(f"other kernels of {declaration.name}", why, other(measured, declaration), apart=True)


def fused(call: Attention) -> list[Algorithm]:
    """List the fused algorithms of a call that do not split its keys, the most general first."""
    preferred = answering(call)
    return [each for each in reversed(preferred) if "splits" not in each.takes(call.direction)]


def other(measured: Change, algorithm: Algorithm, **more: Any) -> Change:
    """Return another algorithm on the same call, with the options that it takes."""
    options = only_taken(algorithm, measured.workload.direction, measured.options)
    return replace(measured, algorithm=algorithm.name, tiles=None, options={**options, **more}, implementation=None)


def _split(measured: Change, device: Hardware, blocks: BlockGrid) -> Iterator[Candidate]:
    """Yield kernels that split the keys, if SMs are idle: the fastest of a library, else by tiles and blocks."""
    units, call = blocks.units, as_attention(measured.workload)
    if units is None or not blocks.idle or call.direction != "forward":
        return
    splitting = next(each for each in answering(call) if "splits" in each.takes())
    change = other(measured, splitting)
    if clock_of(replace(change, tiles={"b": 1}), device).placements:
        why = f"several blocks share the keys of each query tile, so that more of the {units} SMs work"
        yield Candidate("split keys", why, change)
        with suppress(IOModelError):  # no tile fits: the candidate above says so too
            best = solve(splitting, call, device, objective="time")
            chosen = {name: best.options[name] for name in best.searched}
            yield Candidate("split keys", why, replace(other(measured, splitting, **chosen), tiles=dict(best.tiles)))
        return
    packed = bool(measured.options.get("packed"))
    yield from _splits(measured, splitting, units, packed, "split keys")
    if call.group > 1 and not packed:
        yield from _splits(measured, splitting, units, True, "split keys, packed heads")


def _splits(measured: Change, splitting: Algorithm, units: int, packed: bool, name: str) -> Iterator[Candidate]:
    call, sizes = as_attention(measured.workload), dict(measured.tiles or {})
    heads, rows = (call.kv_heads, call.group * call.q_len) if packed else (call.heads, call.q_len)
    keys = sizes.get("block_kv", 64)
    for query in dict.fromkeys((sizes.get("block_q", 128), 16, 64, 128)):
        wanted = -(-units // (call.batch * heads * -(-rows // query)))
        for key in dict.fromkeys(-(-keys // fewer) for fewer in POWERS):
            for splits in {min(-(-call.kv_len // key), many) for many in (wanted, -(-wanted // 2))}:
                more = {"packed": True} if packed else {}
                if splits > 1:
                    change = other(measured, splitting, splits=splits, **more)
                    why = f"{splits} blocks share the keys of each query tile, so that more of the {units} SMs work"
                    yield Candidate(name, why, replace(change, tiles={"block_q": query, "block_kv": key}))


def _narrower(measured: Change, device: Hardware) -> Iterator[Candidate]:
    """Yield narrower data types, with their faster instructions, where kernels for them are as real as the measured."""
    call = as_attention(measured.workload)
    real = not lacks_kernels(measured.algorithm, call, device)

    def known(algorithm: AlgorithmLike, narrow: Attention) -> bool:
        return not real or not lacks_kernels(algorithm, narrow, device)

    for dtype in _narrower_dtypes(call.dtype, device):
        kept = call.kv_dtype if call.kv_dtype != call.dtype else dtype
        narrow = call.model_copy(update={"dtype": dtype, "kv_dtype": kept})
        change = replace(measured, workload=narrow)
        if measured.tiles or known(measured.algorithm, narrow):
            yield Candidate(dtype, f"the same kernel on {dtype} data", change)
        why = "tiles for the matrix instructions of a narrower dtype"
        for each in fused(call) if real else fused(call)[:1]:
            if known(each, narrow):
                yield Candidate(f"{each} in {dtype}", why, other(change, each))


def _narrower_dtypes(dtype: str, device: Hardware) -> list[str]:
    return [narrow for narrow in NARROWER.get(dtype, ()) if f"compute.peak.{narrow}" in device.quantities]


def _packed(measured: Change) -> Iterator[Candidate]:
    group = as_attention(measured.workload).group
    if group > 1 and not measured.options.get("packed"):
        why = f"the {group} query heads of a group share the loads of their K and V"
        yield Candidate("packed heads", why, replace(measured, options={**measured.options, "packed": True}))
