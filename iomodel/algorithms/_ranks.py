"""Context parallelism: ring attention, gathered keys, and heads exchanged for rows.

Ring attention (Liu, Zaharia and Abbeel 2023, arXiv:2310.01889, Algorithm 1) passes keys round a ring; causal work is
balanced by stripes (Brandon et al. 2023, arXiv:2311.09431) or by a chunk from either end of the sequence. Llama 3
(arXiv:2407.21783, section 3.3.2) gathers all keys first. DeepSpeed-Ulysses (Jacobs et al. 2023, arXiv:2309.14509,
section 3) exchanges rows for heads, and back.
"""

from __future__ import annotations

from sympy import Expr, Max, Min, ceiling

from iomodel.errors import UnknownNameError
from iomodel.nests.language import Piece
from iomodel.nests.ranks import Attend, RankSchedule, Send, Turn, chunk, rows, second_chunk
from iomodel.nests.symbols import ONE, H, H_kv, N_k, N_q, R, i
from iomodel.nests.tensors import K, O, Q, V

mine = rows(N_q, "contiguous")
before = i * chunk(N_k)
"""Keys of the ranks before rank i."""
of_last = N_k - (R - 1) * chunk(N_k)
both, first, second = rows(N_q, "zigzag"), chunk(N_q, "zigzag"), second_chunk(N_q)
has_second = Min(ONE, second)
"""1 if the sequence does not end before the second chunk of rank i."""
stripe = rows(N_q, "striped")


def _square(side: Expr, times: Expr = ONE) -> Piece:
    """Attend from rows to as many keys, the last of which is that of the last row."""
    return Piece(times, {N_q: side, N_k: side}, "causal")


def _up_to(queries: Expr, keys: Expr, times: Expr = ONE) -> Piece:
    """Attend from rows to all keys up to the last row's."""
    return Piece(times, {N_q: queries, N_k: keys}, "causal")


RING = RankSchedule(
    name="ring",
    title="Ring attention",
    cite="arXiv:2310.01889, Algorithm 1; stripes: arXiv:2311.09431",
    body=(Turn((Send(K), Send(V), Attend())),),
    pieces={
        "full": {
            "contiguous": (
                Piece(R - 1, {N_q: mine, N_k: chunk(N_k)}),
                Piece(ONE, {N_q: mine, N_k: of_last}),
            ),
        },
        "causal": {
            "zigzag": (
                _square(both),
                Piece(i, {N_q: both, N_k: first}),  # of the ranks before, the first chunk
                Piece((R - 1 - i) * has_second, {N_q: Max(ONE, second), N_k: 2 * first}),  # of those after, both
            ),
            "striped": (
                _square(stripe, i + 1),
                _square(Max(ONE, stripe - 1), (R - 1 - i) * Min(ONE, stripe - 1)),  # the first row sees none
            ),
            "contiguous": (_square(mine), Piece(i, {N_q: mine, N_k: chunk(N_k)})),
        },
    },
)  # fmt: skip

ALL_GATHER = RankSchedule(
    name="all_gather",
    title="All-gather of K and V",
    cite="arXiv:2407.21783, section 3.3.2",
    body=(Send(K), Send(V), Attend()),
    pieces={
        "full": {"contiguous": (Piece(ONE, {N_q: mine, N_k: N_k}),)},
        "causal": {
            "zigzag": (
                _up_to(first, (i + 1) * first),
                _up_to(Max(ONE, second), (2 * R - 1 - i) * first + Max(ONE, second), has_second),
            ),
            "contiguous": (_up_to(mine, before + mine),),
        },
    },
)

_heads = {H: ceiling(H / R), H_kv: ceiling(H_kv / R)}

ULYSSES = RankSchedule(
    name="ulysses",
    title="DeepSpeed-Ulysses",
    cite="arXiv:2309.14509, section 3",
    body=(Send(Q, into="heads"), Send(K, into="heads"), Send(V, into="heads"), Attend(), Send(O, into="rows")),
    pieces={"any": {"contiguous": (Piece(ONE, _heads),)}},
)

SCHEDULES = {schedule.name: schedule for schedule in (RING, ALL_GATHER, ULYSSES)}


def schedule_of(method: object) -> RankSchedule:
    """Look up a schedule by its name, or raise UnknownNameError."""
    if not isinstance(method, str) or method not in SCHEDULES:
        raise UnknownNameError("method", method, SCHEDULES)
    return SCHEDULES[method]
