"""How many experts a step meets, and with how many tokens: expected values under uniform routing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from iomodel.errors import InputError
from iomodel.validation import as_integer

TokensPerExpert = tuple[tuple[int, int], ...]
"""Pairs of tokens and of how many experts have as many."""


def approximate_experts_hit(experts: int, experts_per_token: int, tokens: int) -> float:
    """Distinct experts that tokens meet, expected where each token picks its experts uniformly and by itself.

    Parameters
    ----------
    experts, experts_per_token, tokens : int
        Experts of the layer, those of one token, tokens [-].

    Raises
    ------
    InputError
        No positive integers, or more experts a token than there are.

    Examples
    --------
    >>> approximate_experts_hit(8, 2, 1), round(approximate_experts_hit(8, 2, 8), 2)
    (2.0, 7.2)
    """
    total, each = as_integer("experts", experts), as_integer("experts_per_token", experts_per_token)
    if each > total:
        raise InputError(f"experts_per_token: {each} given; allowed: from 1 to experts = {total}")
    return total * (1 - (1 - each / total) ** as_integer("tokens", tokens))


def approximate_tokens_per_expert(experts: int, experts_per_token: int, tokens: int, ranks: int = 1) -> TokensPerExpert:
    """The experts that are met on one rank, with the tokens dealt out evenly among them.

    Parameters
    ----------
    experts, experts_per_token, tokens : int
        Experts of the layer, those of one token, tokens [-].
    ranks : int
        Ranks that share the experts [-].

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
    every = -(-experts_per_token * tokens // among)
    hit = max(1, min(every, round(approximate_experts_hit(experts, experts_per_token, tokens) / among)))
    rows, more = divmod(every, hit)
    return tuple((each, many) for each, many in ((rows + 1, more), (rows, hit - more)) if many)


def busiest(counts: Sequence[int], ranks: int) -> TokensPerExpert:
    """The experts of the rank that has most tokens, of ranks that have as many experts in a row."""
    own = len(counts) // ranks
    return tokens_per_expert(max((counts[i : i + own] for i in range(0, own * ranks, own)), key=sum))


def tokens_per_expert(counts: Iterable[int]) -> TokensPerExpert:
    """A distribution that is known: the tokens of each expert.

    Parameters
    ----------
    counts : iterable of int
        Tokens of each expert; none is fine [-].

    Raises
    ------
    InputError
        A count that is no integer, or below 0.

    Examples
    --------
    >>> tokens_per_expert([3, 0, 3, 7])
    ((7, 1), (3, 2))
    """
    found = Counter(as_integer("tokens", count, least=0) for count in counts)
    return tuple((tokens, found[tokens]) for tokens in sorted(found, reverse=True) if tokens)
