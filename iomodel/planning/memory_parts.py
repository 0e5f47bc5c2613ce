"""Memory of a device part by part, with the lines of an engine's log that state the parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from iomodel.common.display import Table
from iomodel.planning.engines import GIB, Engine
from iomodel.planning.formatting import gigabytes
from iomodel.planning.service_memory import Fit, MemoryPart


class Lines(NamedTuple):
    """Lines of an engine's log about weights, the memory of caches and its tokens, and the requests of all tokens."""

    weights: str = ""
    caches: str = ""
    tokens: str = ""
    requests: str = ""


LINES = {
    "vllm": Lines(
        "Model loading took {gib:.4f} GiB",
        "Available KV cache memory: {gib:.2f} GiB",
        "GPU KV cache size: {tokens:,} tokens",
        "Maximum concurrency for {length:,} tokens per request: {requests:.2f}x",
    ),
    "sglang": Lines(
        "Load weight end. mem usage={gib:.2f} GB",
        "KV Cache is allocated. #tokens: {tokens}",
        "max_total_num_tokens={tokens}",
    ),
    "tensorrt-llm": Lines(
        "Memory used after loading model weights: {gib:.2f} GiB",
        "[MemUsageChange] Allocated {gib:.2f} GiB for max tokens in paged KV cache ({tokens})",
    ),
}
"""Lines of the releases that :data:`iomodel.planning.engines.ENGINES` describes."""


def memory_parts(fit: Fit, overhead: Sequence[tuple[str, int]]) -> Iterator[MemoryPart]:
    """List the parts of a device's memory in the order in which they are taken; they add up to its usable memory.

    Parameters
    ----------
    fit : Fit
        Memory of the device.
    overhead : sequence of (str, int)
        Parts of the overhead [B]; empty if they are not known.
    """
    yield MemoryPart("weights as stored", fit.weights - fit.padding)
    if fit.padding:
        yield MemoryPart("padding of experts to tiles of kernels", fit.padding)
    yield from (
        MemoryPart(name, size) for name, size in overhead or [("anything but weights and caches", fit.overhead)] if size
    )
    if fit.shared_bytes:
        yield MemoryPart("cache of the shared prefix", fit.shared_bytes)
    for pool in fit.pools:
        yield MemoryPart(pool.name, pool.bytes)
    rest = fit.left - sum(pool.bytes for pool in fit.pools)
    if rest:
        yield MemoryPart("rounding of the pools" if fit.pools else "caches", rest)


def logged_tokens(fit: Fit, engine: Engine | None, length: int) -> int:
    """Return the tokens of the cache as the log of an engine counts them: those of blocks, or of whole requests."""
    if engine is None or not engine.tokens_of_requests or fit.concurrency is None:
        return fit.tokens
    return int(fit.concurrency / fit.groups * length)


def log_lines(fit: Fit, engine: Engine | None, length: int) -> tuple[str, ...]:
    """Write the lines that the log of an engine has about the memory of a device, to be compared with it."""
    if engine is None:
        return ()
    lines = LINES[engine.name]
    room = fit.pools[0].bytes if fit.pools else fit.left
    written = [lines.weights.format(gib=fit.weights / GIB), lines.caches.format(gib=room / GIB, tokens=fit.tokens)]
    if lines.tokens:
        written.append(lines.tokens.format(tokens=logged_tokens(fit, engine, length)))
    if lines.requests and fit.concurrency is not None:
        written.append(lines.requests.format(length=length, requests=fit.concurrency / fit.groups))
    return tuple(written)


def token_rows(fit: Fit, length: int) -> list[tuple[str, str]]:
    """Write the tokens of cache that fit, and those over the interval of the overhead that an engine takes.

    Where layers of several kinds share blocks, an even share of the blocks says little about requests of a length.
    """
    rows = [("tokens of cache that fit", f"{fit.tokens:,}")]
    if fit.tokens_interval is not None:
        low, high = fit.tokens_interval
        rows.append(("  over the interval of the overhead, graphs included", f"{low:,} to {high:,}"))
    if fit.block_groups > 1 and fit.concurrency is not None:
        held = int(max(fit.fits, fit.concurrency) / fit.groups * length)
        rows.append((f"  of requests of {length:,} tokens, as layers share blocks", f"{held:,}"))
    return rows


def size_row(name: str, size: int) -> tuple[str, str, str]:
    """Write a size in GB and in GiB, as a row of a table."""
    return name, gigabytes(size), f"{size / GIB:,.2f} GiB"


def memory_tables(fit: Fit) -> list[Table | str]:
    """Build the table of a device's memory under an engine, and the lines of the engine's log; nothing without one."""
    if not fit.log:
        return []
    rows = [size_row(part.name, part.bytes) for part in fit.parts]
    return [Table("Memory of a device part by part", ("", ">", ">"), rows), *(f"log: {line}" for line in fit.log)]
