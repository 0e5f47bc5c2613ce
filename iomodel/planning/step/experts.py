"""Experts hit by a step, and their tokens: expected values under uniform routing, and the busiest of several ranks.

Loads of experts are taken as distributed evenly in their logarithm, from one token to 80 % of all: the power law with
exponent 1 by which aiconfigurator samples the routing of its measurements (github.com/ai-dynamo/aiconfigurator,
collector/helper.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log, sqrt
from statistics import NormalDist

from iomodel.common.validation import as_integer
from iomodel.errors import InputError

TokensPerExpert = tuple[tuple[int, int], ...]
"""Pairs of a number of tokens and the number of experts with it."""


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
    """Distribute tokens evenly among the experts hit on one rank.

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
    ((3, 2), (2, 5))
    """
    among = as_integer("ranks", ranks)
    visits = -(-experts_per_token * tokens // among)
    hit = max(1, min(visits, round(approximate_experts_hit(experts, experts_per_token, tokens) / among)))
    rows, more = divmod(visits, hit)
    return tuple((tokens_each, count) for tokens_each, count in ((rows + 1, more), (rows, hit - more)) if count)


LARGEST = 0.8
"""Share of all tokens that the busiest expert may have [-]."""


def approximate_skew(experts: int, tokens: int, ranks: int) -> float:
    """Compute the load of the busiest rank over the mean load [-], for experts that ranks divide by chance.

    Loads between 1 and M that are even in their logarithm have a squared coefficient of variation of ln(M) / 2 - 1. The
    sum over the experts of a rank is nearly normal, and the largest of R sums is expected at the quantile
    (R - 3/8) / (R + 1/4) (G. Blom, *Statistical Estimates and Transformed Beta-Variables*, 1958).

    Parameters
    ----------
    experts, tokens, ranks : int
        Number of experts, of tokens of all ranks, and of ranks that divide the experts [-].

    Raises
    ------
    InputError
        A number is not a positive integer.

    Examples
    --------
    >>> approximate_skew(256, 4096, 1), round(approximate_skew(256, 4096, 8), 2)
    (1.0, 1.44)
    """
    total, among = as_integer("experts", experts), as_integer("ranks", ranks)
    most = LARGEST * as_integer("tokens", tokens)
    if among == 1 or most <= 1:
        return 1.0
    variation = sqrt(max(0.0, log(most) / 2 - 1))
    largest = NormalDist().inv_cdf((among - 3 / 8) / (among + 1 / 4))
    return min(float(among), 1 + largest * variation / sqrt(max(1.0, total / among)))


def busiest(counts: Sequence[int], ranks: int) -> TokensPerExpert:
    """Find the experts of the rank with the most tokens, for ranks with equal numbers of consecutive experts."""
    per_rank = len(counts) // ranks
    return tokens_per_expert(max((counts[i : i + per_rank] for i in range(0, per_rank * ranks, per_rank)), key=sum))


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
    histogram = Counter(as_integer("tokens", count, least=0) for count in counts)
    return tuple((tokens, histogram[tokens]) for tokens in sorted(histogram, reverse=True) if tokens)
