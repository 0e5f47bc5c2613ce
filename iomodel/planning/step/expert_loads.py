"""Experts hit by a step, and their tokens: expected values, the busiest of several ranks, and known loads.

Loads of experts are taken as distributed evenly in their logarithm, from one token to 80 % of all: the power law with
exponent 1 by which aiconfigurator samples the routing of its measurements (github.com/ai-dynamo/aiconfigurator,
collector/helper.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import pairwise
from math import log, sqrt
from statistics import NormalDist

from iomodel.common.validation import as_integer
from iomodel.errors import InputError

TokensPerExpert = tuple[tuple[int, int], ...]
"""Pairs of a number of tokens and the number of experts with it."""
LARGEST = 0.8
"""Share of all tokens that the busiest expert may have [-]."""
CLASSES = 6
"""Classes of equal loads in which the tokens of experts are counted, each with as many experts [-]."""


def approximate_experts_hit(experts: int, experts_per_token: int, tokens: int) -> float:
    """Compute the expected number of distinct experts hit if each token picks its experts uniformly.

    Parameters
    ----------
    experts, experts_per_token, tokens : int
        Number of experts, of experts per token, and of tokens [-].

    Raises
    ------
    InputError
        A number is not a positive integer, or there are more experts per token than experts.

    Examples
    --------
    >>> approximate_experts_hit(8, 2, 1), round(approximate_experts_hit(8, 2, 8), 2)
    (2.0, 7.2)
    """
    total, per_token = as_integer("experts", experts), as_integer("experts_per_token", experts_per_token)
    if per_token > total:
        raise InputError(f"experts_per_token: {per_token} given; allowed: from 1 to experts = {total}")
    return total * (1 - (1 - per_token / total) ** as_integer("tokens", tokens))


def approximate_tokens_per_expert(experts: int, experts_per_token: int, tokens: int, ranks: int = 1) -> TokensPerExpert:
    """Distribute tokens by the power law among the experts hit on one rank, in `CLASSES` classes of equal loads.

    As many experts are hit as under uniform routing, and each has at least one token.

    Parameters
    ----------
    experts, experts_per_token, tokens : int
        Number of experts, of experts per token, and of tokens [-].
    ranks : int
        Number of ranks that divide the experts [-].

    Raises
    ------
    InputError
        As for :func:`approximate_experts_hit`.

    Examples
    --------
    >>> approximate_tokens_per_expert(8, 2, 8)  # 16 rows for 7 experts
    ((5, 1), (4, 1), (2, 2), (1, 3))
    """
    among = as_integer("ranks", ranks)
    visits = -(-experts_per_token * tokens // among)
    hit = max(1, min(visits, round(approximate_experts_hit(experts, experts_per_token, tokens) / among)))
    counted: Counter[int] = Counter()
    for load, count in _power_law(visits, hit, max(1.0, LARGEST * tokens)):
        counted[load] += count
    return _listed(counted)


def evenly(tokens: int, parts: int) -> TokensPerExpert:
    """Divide tokens among parts whose numbers differ by at most one.

    >>> evenly(7, 3), evenly(1, 2)
    (((3, 1), (2, 2)), ((1, 1),))
    """
    each, more = divmod(tokens, parts)
    return tuple((size, count) for size, count in ((each + 1, more), (each, parts - more)) if size and count)


def _power_law(visits: int, hit: int, most: float) -> Iterator[tuple[int, int]]:
    """Yield the loads of experts between one token and `most` that are even in their logarithm, a class at a time.

    The busiest class takes what rounding leaves.
    """
    bounds = [hit * place // CLASSES for place in range(CLASSES + 1)]
    shares = [place / hit if most == 1 else (most ** (place / hit) - 1) / (most - 1) for place in bounds]
    further, left = visits - hit, visits
    for place, count in enumerate(last - first for first, last in pairwise(bounds[:-1])):
        if count:
            each = 1 + int(further * (shares[place + 1] - shares[place]) / count)
            left -= each * count
            yield each, count
    yield from evenly(left, hit - bounds[-2])


def approximate_skew(experts: int, tokens: int, ranks: int, redundant: int = 0) -> float:
    """Compute the load of the busiest rank over the mean load [-], for experts that ranks divide by chance.

    Loads between 1 and M that are even in their logarithm have a squared coefficient of variation of ln(M) / 2 - 1. The
    sum over the experts of a rank is nearly normal, and the largest of R sums is expected at the quantile
    (R - 3/8) / (R + 1/4) (G. Blom, *Statistical Estimates and Transformed Beta-Variables*, 1958). A share f of the
    experts, those with most tokens, may have a copy that takes half of them: the mean square of the loads then has a
    factor (1 + M^-2f) / 2, and there are 1 + f times as many loads.

    Parameters
    ----------
    experts, tokens, ranks : int
        Number of experts, of tokens of all ranks, and of ranks that divide the experts [-].
    redundant : int
        Number of experts with a copy [-].

    Raises
    ------
    InputError
        A number is not a positive integer, or there are more copies than experts.

    Examples
    --------
    >>> approximate_skew(256, 4096, 1), round(approximate_skew(256, 4096, 8), 2)
    (1.0, 1.44)
    >>> round(approximate_skew(256, 4096, 32, 32), 2), round(approximate_skew(256, 4096, 32), 2)
    (1.87, 2.28)
    """
    total, among = as_integer("experts", experts), as_integer("ranks", ranks)
    most = LARGEST * as_integer("tokens", tokens)
    if among == 1 or most <= 1:
        return 1.0
    copies = as_integer("redundant", redundant, least=0)
    if copies > total:
        raise InputError(f"redundant: {copies} given; allowed: up to experts = {total}")
    copied = copies / total
    square = (1 + copied) * (1 + most ** (-2 * copied)) / 2 * log(most) / 2
    variation = sqrt(max(0.0, square - 1))
    largest = NormalDist().inv_cdf((among - 3 / 8) / (among + 1 / 4))
    return min(float(among), 1 + largest * variation / sqrt(max(1.0, (total + copies) / among)))


def busiest(counts: Sequence[int], ranks: int, redundant: int = 0) -> TokensPerExpert:
    """Find the experts of the rank with the most tokens, for ranks with equal numbers of experts.

    Ranks have consecutive experts. With redundant copies, each copy goes to the expert with the most tokens per copy,
    and from the largest down each takes the rank with the fewest tokens that has room, as DeepSeek's balancer does
    (github.com/deepseek-ai/EPLB).

    >>> busiest([90, 10, 10, 10], 2), busiest([90, 10, 10, 10], 3, 2)
    (((90, 1), (10, 1)), ((30, 1), (10, 1)))
    """
    if not redundant:
        per_rank = len(counts) // ranks
        shards = [list(counts[i : i + per_rank]) for i in range(0, per_rank * ranks, per_rank)]
    else:
        shards = _balanced(_copied(counts, redundant), ranks)
    return tokens_per_expert(max(shards, key=sum))


def _copied(counts: Sequence[int], redundant: int) -> list[int]:
    """Divide the tokens of the experts with the most per copy among further copies; return those of every copy."""
    heap: list[tuple[float, int, int]] = [(-count, 1, count) for count in counts]
    heapify(heap)
    for _ in range(redundant):
        _, copies, count = heap[0]
        heapreplace(heap, (-count / (copies + 1), copies + 1, count))
    return [count // copies + (i < count % copies) for _, copies, count in heap for i in range(copies)]


def _balanced(loads: Sequence[int], ranks: int) -> list[list[int]]:
    """Divide loads evenly in number among ranks, the largest first, each to the rank with the least so far."""
    room = len(loads) // ranks
    open_ranks: list[tuple[int, int, list[int]]] = [(0, rank, []) for rank in range(ranks)]
    full: list[list[int]] = []
    for load in sorted(loads, reverse=True):
        total, rank, shard = heappop(open_ranks)
        shard.append(load)
        if len(shard) < room:
            heappush(open_ranks, (total + load, rank, shard))
        else:
            full.append(shard)
    return full


def tokens_per_expert(counts: Iterable[int]) -> TokensPerExpert:
    """Summarise a known distribution of tokens over experts.

    Parameters
    ----------
    counts : iterable of int
        Tokens of each expert; 0 is allowed [-].

    Raises
    ------
    InputError
        A count is not an integer, or is negative.

    Examples
    --------
    >>> tokens_per_expert([3, 0, 3, 7])
    ((7, 1), (3, 2))
    """
    return _listed(Counter(as_integer("tokens", count, least=0) for count in counts))


def _listed(counted: Counter[int]) -> TokensPerExpert:
    """List the numbers of tokens, the largest first, each with the number of experts that have as many; none of 0."""
    return tuple((tokens, counted[tokens]) for tokens in sorted(counted, reverse=True) if tokens)
