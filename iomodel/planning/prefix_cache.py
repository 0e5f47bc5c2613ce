"""Prefix cache of an engine: a prefix that all requests share, and the hit rate of the rest."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Field

from iomodel.common.validation import Distance, Model
from iomodel.errors import InputError
from iomodel.workloads.call import Switch


class PrefixCache(Model):
    """Tokens of a prompt whose keys and values are in the cache before its prefill.

    Blocks of the cache that were computed for one request serve another one with the same first tokens (W. Kwon et al.,
    *Efficient memory management for large language model serving with PagedAttention*, SOSP 2023, section 4.4;
    L. Zheng et al., *SGLang*, NeurIPS 2024, section 3).

    Parameters
    ----------
    shared_tokens : int
        Length of a prefix that all requests share, such as a system prompt: always cached, and stored once [tokens].
    hit_rate : float
        Share of the tokens after the shared prefix that are cached, such as the history of a chat [-]. They are part of
        the memory of a request. Without a shared prefix this is the hit rate that an engine reports.
    cascade : bool
        Decode with cascade attention where it is faster: one kernel reads the shared prefix once for all requests, a
        second one the rest of each, and the two results are merged (J. Juravsky et al., *Hydragen*, arXiv:2402.05099,
        section 3). Layers with windows, chunks, indexers or latents read the prefix for each request.

    Raises
    ------
    InputError
        A number is out of range.

    Examples
    --------
    >>> PrefixCache(shared_tokens=1000, hit_rate=0.5).cached(2001)
    1500
    """

    shared_tokens: Distance = 0
    hit_rate: Annotated[float, Field(strict=True, ge=0, le=1)] = 0.0
    cascade: Switch = False

    def shared(self, page: int | None = None) -> int:
        """Compute the tokens of the shared prefix in whole pages [tokens].

        >>> PrefixCache(shared_tokens=100).shared(16)
        96
        """
        return self.shared_tokens - self.shared_tokens % (page or 1)

    def cached(self, prompt: int, page: int | None = None) -> int:
        """Compute the cached tokens of a prompt, in whole pages; its last token is always computed [tokens].

        >>> PrefixCache(hit_rate=1.0).cached(64), PrefixCache(hit_rate=1.0).cached(64, page=16)
        (63, 48)
        """
        shared = min(self.shared_tokens, prompt)
        hit = shared + int(Fraction(repr(self.hit_rate)) * (prompt - shared))
        tokens = min(hit, prompt - 1)
        return tokens - tokens % (page or 1)

    def check(self, prompt: int) -> None:
        """Raise InputError unless the shared prefix is shorter than a prompt."""
        if self.shared_tokens >= prompt:
            raise InputError(
                f"prefix_cache.shared_tokens: {self.shared_tokens:,} given; allowed: less than prompt = {prompt:,}"
            )
