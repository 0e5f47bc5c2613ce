"""Blocks of a cache that layers of several kinds share, as vLLM allocates them.

All blocks have one size. Layers that need the same of a block form groups with equally many layers, and a block holds
some tokens of all layers of one group: keys and values, or the state of a recurrence. Where states are larger than the
usual block of keys and values, blocks get as many tokens as make both equal (vllm/v1/core/kv_cache_utils.py and
vllm/v1/kv_cache_interface.py at 001cabc; vllm/platforms/interface.py, "Setting attention block size").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

ALIGNED, ALIGNED_LATENTS = 16, 64
"""Tokens whose multiples the blocks of keys and values, and of latents, have beside states."""
NEARLY = 1.25
"""Ratio of the numbers of layers of two kinds below which the larger is the size of a group, with empty places."""

Reach = Literal["all", "window", "chunk", "state"]


class LayerCache(NamedTuple):
    """The cache of one layer on a rank.

    Attributes
    ----------
    reach : "all", "window", "chunk" or "state"
        Tokens that it holds: all, the last ones, those of a chunk; or a state of fixed size.
    bytes : int
        Size of a token, or of the state [B].
    tokens : int
        Width of a window, or length of a chunk [tokens].
    latent : bool
        The tokens are rows of a latent.
    """

    reach: Reach
    bytes: int
    tokens: int = 0
    latent: bool = False


class BlockGroup(NamedTuple):
    """A group of layers with one kind of cache: its kind, and the tokens of a block."""

    cache: LayerCache
    block: int

    def blocks(self, tokens: int) -> int:
        """Count the blocks of a sequence while it is decoded.

        A window may begin within a block.
        """
        reach = self.cache.tokens
        every = -(-tokens // self.block)
        if self.cache.reach == "window":
            return min(every, -(-(reach - 1) // self.block) + 1)
        if self.cache.reach == "chunk":
            return min(every, -(-reach // self.block))
        return 1 if self.cache.reach == "state" else every

    def charged(self, tokens: int, step: int) -> int:
        """Count the blocks that the engine's log charges for a sequence, with a step of a prompt beside a window."""
        reach = self.cache.tokens
        if self.cache.reach == "window":
            return -(-min(reach - 1 + step, tokens) // self.block) + 1
        if self.cache.reach == "chunk":
            return -(-min(reach + step, tokens) // self.block)
        return self.blocks(tokens)


@dataclass(frozen=True)
class CacheBlocks:
    """Blocks of one size that all groups of layers draw from.

    Attributes
    ----------
    bytes : int
        Size of a block, in all layers of a group [B].
    groups : tuple of BlockGroup
        Groups of layers.
    """

    bytes: int
    groups: tuple[BlockGroup, ...]

    @property
    def block(self) -> int:
        """Tokens of the smallest block [tokens]."""
        return min(group.block for group in self.groups)

    def of(self, tokens: int) -> int:
        """Count the blocks of a sequence in all groups."""
        return sum(group.blocks(tokens) for group in self.groups)

    def charged(self, tokens: int, step: int) -> int:
        """Count the blocks that the engine's log charges for a sequence in all groups."""
        return sum(group.charged(tokens, step) for group in self.groups)


def cache_blocks(caches: Mapping[LayerCache, int], usual: int) -> CacheBlocks | None:
    """Divide caches into groups of layers that share blocks; None where their sizes have no common block.

    Parameters
    ----------
    caches : mapping of LayerCache to int
        Caches of a rank, with the number of their layers.
    usual : int
        Tokens of a block without states [tokens].

    Examples
    --------
    >>> full, state = LayerCache("all", 4096), LayerCache("state", 3_207_168)  # Qwen3.5-27B
    >>> blocks = cache_blocks({full: 16, state: 48}, 16)
    >>> blocks.block, blocks.bytes, blocks.of(100)
    (784, 51380224, 4)
    """
    kept = {cache: layers for cache, layers in caches.items() if cache.bytes and layers}
    if not kept:
        return None
    pages = _pages(kept, usual)
    if len({(cache.reach, cache.tokens) for cache in kept}) == 1:  # one kind: each layer has a page of its own size
        first = next(iter(kept))
        block = pages[first] // first.bytes if first.reach != "state" else usual
        size = sum(
            layers * (cache.bytes if first.reach == "state" else block * cache.bytes) for cache, layers in kept.items()
        )
        return CacheBlocks(size, (BlockGroup(first, block),))
    page = max(pages.values())
    if any(page % pages[cache] for cache in kept if cache.reach != "state"):
        return None
    least, most = min(kept.values()), max(kept.values())
    size = most if most < NEARLY * least else least
    groups = [
        BlockGroup(cache, page // cache.bytes if cache.reach != "state" else usual)
        for cache, layers in kept.items()
        for _ in range(-(-layers // size))
    ]
    tokens = min((group.block for group in groups if group.cache.reach != "state"), default=usual)
    return CacheBlocks(page * size, tuple(g if g.cache.reach != "state" else g._replace(block=tokens) for g in groups))


def _pages(kept: Mapping[LayerCache, int], usual: int) -> dict[LayerCache, int]:
    """Compute the bytes of a block of each layer: keys and values of as many tokens as the largest state needs."""
    states = [cache.bytes for cache in kept if cache.reach == "state"]
    widths = [cache for cache in kept if cache.reach != "state"]
    block = usual
    if states and widths:
        widest = max(widths, key=lambda cache: cache.bytes)
        aligned = ALIGNED_LATENTS if widest.latent else ALIGNED
        block = max(usual, aligned * -(-max(states) // (aligned * widest.bytes)))
    page = {cache: block * cache.bytes for cache in widths}
    return {**page, **{cache: max(page.values(), default=cache.bytes) for cache in kept if cache.reach == "state"}}
