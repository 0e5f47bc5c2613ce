"""Prefix cache of an engine: a prefix that all requests share, and the hit rates of the rest in each memory."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import Annotated, Self

from pydantic import Field, model_validator

from iomodel.common.validation import Distance, Measured, Model
from iomodel.errors import InputError
from iomodel.workloads.call import Switch

Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Rate = Annotated[float, Measured, Field(strict=True, gt=0, allow_inf_nan=False)]


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
    host_rate : float
        Share of the tokens after the shared prefix that is loaded from the memory of the host, after those of
        `hit_rate` and before the prefill of the others [-].
    disk_rate : float
        Share of them that is loaded from a disk [-].
    host_bandwidth : float
        Rate of the loads from the host into each device [B/s]. The default is 80 % of 16 lanes of PCIe 5.0. Each device
        loads its own shard, one request at a time, while it runs other steps.
    disk_bandwidth : float
        Rate of the loads from a disk into each device [B/s]. The default is that of sequential reads from a disk on
        4 lanes of PCIe 4.0.

    Raises
    ------
    InputError
        A number is out of range, or the rates sum to more than 1.

    Examples
    --------
    >>> PrefixCache(shared_tokens=1000, hit_rate=0.5).cached(2001)
    1500
    >>> PrefixCache(hit_rate=0.25, host_rate=0.5).tiers(1000)
    (250, 500, 0)
    """

    shared_tokens: Distance = 0
    hit_rate: Share = 0.0
    cascade: Switch = False
    host_rate: Share = 0.0
    disk_rate: Share = 0.0
    host_bandwidth: Rate = 50e9
    disk_bandwidth: Rate = 7e9

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        if self._shares[-1] > 1:
            raise InputError(
                f"hit_rate + host_rate + disk_rate: {float(self._shares[-1]):g} given; allowed: at most 1, all tokens"
            )
        return self

    @property
    def _shares(self) -> list[Fraction]:
        """Shares of the tokens that are cached on the device, in the host's memory or above, and on disk or above."""
        return list(accumulate(Fraction(repr(rate)) for rate in (self.hit_rate, self.host_rate, self.disk_rate)))

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
        return sum(self.tiers(prompt, page))

    def tiers(self, prompt: int, page: int | None = None) -> tuple[int, int, int]:
        """Divide the cached tokens of a prompt among the device, the host's memory and the disk, in whole pages.

        >>> PrefixCache(hit_rate=0.5, host_rate=0.25, disk_rate=0.25).tiers(64, page=16)
        (32, 16, 0)
        """
        shared = min(self.shared_tokens, prompt)
        hits = (min(shared + int(share * (prompt - shared)), prompt - 1) for share in self._shares)
        device, host, disk = (tokens - tokens % (page or 1) for tokens in hits)
        return device, host - device, disk - host

    def check(self, prompt: int) -> None:
        """Raise InputError unless the shared prefix is shorter than a prompt."""
        if self.shared_tokens >= prompt:
            raise InputError(
                f"prefix_cache.shared_tokens: {self.shared_tokens:,} given; allowed: less than prompt = {prompt:,}"
            )
