"""The changes that a diagnosis tries: which kernels it has the model time in place of the measured one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.cost import tally_for
from iomodel.diagnosis.facts import Grid
from iomodel.diagnosis.model import Change, clock_of
from iomodel.errors import IOModelError
from iomodel.expressions import only_taken
from iomodel.hardware import Hardware
from iomodel.solve import solve

FUSED = ("flash2", "flash3")
NARROWER = {"fp32": ("tf32", "bf16"), "tf32": ("bf16",), "bf16": ("fp8",), "fp16": ("fp8",)}
POWERS = tuple(2**n for n in range(9))
"""Tile sizes that are tried where no kernel is declared for the device [rows]."""


@dataclass(frozen=True)
class Candidate:
    """A remedy by name with one way to carry it out; the fastest way of each name counts."""

    name: str
    why: str
    change: Change


def candidates(measured: Change, device: Hardware, blocks: Grid) -> Iterator[Candidate]:
    """Every change that is worth timing."""
    yield from _more_queries(measured)
    yield from _solved(measured, device)
    yield from _fused(measured, device)
    yield from _split(measured, blocks)
    yield from _narrower(measured, device)
    yield from _packed(measured)


def _more_queries(measured: Change) -> Iterator[Candidate]:
    """The same kernel with more queries a block, and fewer keys at a time where that makes room."""
    given = dict(measured.tiles or {})
    if "block_q" not in given or "block_kv" not in given or measured.workload.direction != "forward":
        return
    why = "several queries of a block share every key and value that is loaded"
    rows = _rows(measured)
    for more in POWERS[1:]:
        query = min(given["block_q"] * more, rows)
        if query <= given["block_q"]:
            break
        for fewer in POWERS:
            tiles = {**given, "block_q": query, "block_kv": max(1, given["block_kv"] // fewer)}
            yield Candidate("larger block_q", why, replace(measured, tiles=tiles))
            if tiles["block_kv"] == 1:
                break
        if query == rows:
            break


def _rows(change: Change) -> int:
    return change.workload.q_len * (change.workload.group if change.options.get("packed") else 1)


def _solved(measured: Change, device: Hardware) -> Iterator[Candidate]:
    """The same algorithm at the tiles of least time or of least traffic."""
    if measured.tiles:
        for tiles, what in best_tiles(measured, device):
            yield Candidate("best tiles", f"tiles of {what}", replace(measured, tiles=tiles))


def best_tiles(change: Change, device: Hardware) -> Iterator[tuple[dict[str, int] | None, str]]:
    """Tiles worth trying for an algorithm; None are those that the estimate itself takes."""
    yield None, "least time"
    call = change.workload
    placed = bool(clock_of(replace(change, tiles={"block_q": 1}), device).placements)
    tally, _ = tally_for(change.algorithm, call, change.options, tiled=True)
    try:
        if placed:
            least = solve(change.algorithm, call, device, residency="gpu", **dict(change.options))
            yield dict(least.tiles), "least traffic"
        else:  # without matrix instructions a tile need not be a multiple of theirs
            budget = device.sram_per_block
            least = solve(change.algorithm, call, sram_bytes=budget, alignment=1, **dict(change.options))
            yield dict(least.tiles), "least traffic"
    except IOModelError:
        pass
    if not placed and set(tally.tiles) == {"block_q", "block_kv"}:
        for query in POWERS:
            for key in POWERS:
                if query < 2 * _rows(change) and key < 2 * call.kv_len:
                    yield {"block_q": query, "block_kv": key}, "least time"


def _fused(measured: Change, device: Hardware) -> Iterator[Candidate]:
    """FlashAttention in place of a kernel that is none."""
    if measured.algorithm in (*FUSED, "split_kv"):
        return
    why = "a block's queries stay on chip, S never leaves it, and K and V stream past once for all of them"
    for name in FUSED:
        change = other(measured, name)
        if change is None or (name == "flash3" and not clock_of(replace(change, tiles={"b": 1}), device).placements):
            continue
        for tiles, _ in best_tiles(change, device):
            yield Candidate(name, why, replace(change, tiles=tiles))


def other(measured: Change, name: str, **more: Any) -> Change | None:
    """Another algorithm on the same call, with the options that it knows; None if it does not do that."""
    found, direction = find_algorithm(name), measured.workload.direction
    if direction not in found.directions:
        return None
    options = only_taken(found, direction, measured.options)
    return replace(measured, algorithm=name, tiles=None, options={**options, **more})


def _split(measured: Change, blocks: Grid) -> Iterator[Candidate]:
    """Keys dealt out to so many blocks that every SM has one, or half as many, where there are fewer than SMs."""
    units, call = blocks.units, measured.workload
    if units is None or not blocks.idle or call.direction != "forward":
        return
    packed = bool(measured.options.get("packed"))
    yield from _splits(measured, units, packed, "split keys")
    if call.group > 1 and not packed:
        yield from _splits(measured, units, True, "split keys, packed heads")


def _splits(measured: Change, units: int, packed: bool, name: str) -> Iterator[Candidate]:
    call, given = measured.workload, dict(measured.tiles or {})
    heads, rows = (call.kv_heads, call.group * call.q_len) if packed else (call.heads, call.q_len)
    keys = given.get("block_kv", 64)
    for query in dict.fromkeys((given.get("block_q", 128), 16, 64, 128)):
        wanted = -(-units // (call.batch * heads * -(-rows // query)))
        for key in dict.fromkeys(-(-keys // fewer) for fewer in POWERS):
            for splits in {min(-(-call.kv_len // key), many) for many in (wanted, -(-wanted // 2))}:
                more = {"packed": True} if packed else {}
                change = other(measured, "split_kv", splits=splits, **more) if splits > 1 else None
                if change is not None:
                    why = f"{splits} blocks share the keys of each query tile, so that more of the {units} SMs work"
                    yield Candidate(name, why, replace(change, tiles={"block_q": query, "block_kv": key}))


def _narrower(measured: Change, device: Hardware) -> Iterator[Candidate]:
    """Fewer bytes an element, and the faster instructions that go with them."""
    call = measured.workload
    for dtype in NARROWER.get(call.dtype, ()):
        if f"compute.peak.{dtype}" not in device.quantities:
            continue
        kept = call.kv_dtype if call.kv_dtype != call.dtype else dtype
        change = replace(measured, workload=call.model_copy(update={"dtype": dtype, "kv_dtype": kept}))
        yield Candidate(dtype, f"the same kernel on {dtype} data", change)
        for name in FUSED[:1]:
            fused = other(change, name)
            if fused is not None:
                yield Candidate(f"{name} in {dtype}", "tiles for the matrix instructions of a narrower dtype", fused)


def _packed(measured: Change) -> Iterator[Candidate]:
    if measured.workload.group > 1 and not measured.options.get("packed"):
        why = f"the {measured.workload.group} query heads of a group share the loads of their K and V"
        yield Candidate("packed heads", why, replace(measured, options={**measured.options, "packed": True}))
