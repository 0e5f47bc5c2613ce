"""Prefixes of prompts that are in the cache before their prefill, by the hash ids of a trace."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from iomodel.planning.simulation.trace_files import Blocks


def hits(blocks: Blocks, prompt: Any, capacity: int) -> Any:
    """Compute the tokens of each prompt that are cached before its prefill [tokens].

    A hash id names a block together with all blocks before it, as in the traces of R. Qin et al., *Mooncake*, FAST 2025
    (section 4). The cache holds the blocks that were used last; those at the end of a prompt are evicted first. The
    last token of a prompt is always computed.

    Parameters
    ----------
    blocks : Blocks
        Hash ids of the prompts in the order of their arrival.
    prompt : array of int
        Tokens of each prompt.
    capacity : int
        Tokens that the cache holds.

    Examples
    --------
    >>> blocks = Blocks(np.array([1, 2, 1, 2, 3]), np.array([0, 2, 5]), 512)
    >>> hits(blocks, np.array([1000, 1500]), 10_000).tolist()
    [0, 1024]
    """
    room, cache = capacity // blocks.tokens, OrderedDict[int, None]()
    ids, starts = blocks.ids, blocks.starts.tolist()
    found = np.zeros(len(prompt), np.int64)
    for place in range(len(prompt)):
        own = ids[starts[place] : starts[place + 1]].tolist()
        known = 0
        for block in own:
            if block not in cache:
                break
            known += 1
        found[place] = known
        for block in reversed(own):
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > room:
            cache.popitem(last=False)
    return np.minimum(found * blocks.tokens, prompt - 1)
