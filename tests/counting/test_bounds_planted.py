"""Errors planted in the bound for every schedule are caught: by worked numbers, small optima, or solved problems."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import pytest

import iomodel
from iomodel.counting import bound_values, bounds
from iomodel.counting.bound_values import Pairs, Product, filled, index_pairs, product_of, with_arrivals
from tests.support.optima import ELEMENTS

Ask = Callable[[iomodel.Attention, int], int]
SOLVED = 1000
"""The number of random solved problems."""


WORKED: list[tuple[dict[str, Any], int, int]] = [
    ({"q_len": 8192, "head_dim": 64}, 51_200, 21_636_529),  # A P / M and (1 - 10,989 / M)^2 / 2 of O
    ({"q_len": 8192, "head_dim": 64, "mask": "causal"}, 51_200, 10_786_729),
    ({"q_len": 4096, "head_dim": 64, "heads": 8, "kv_heads": 2, "batch": 3}, 51_200, 130_698_354),
    ({"q_len": 1000, "head_dim": 64, "value_dim": 128}, 60_000, 670_650),  # 1000^2 192^2 / 60,000 + 15/16 60,000
    ({"q_len": 1000, "head_dim": 128, "value_dim": 64}, 60_000, 670_650),
    ({"q_len": 8192, "head_dim": 64}, 10_923, 100_670_465),  # the least M of A P / M + 15 M / 16
    ({"q_len": 100, "head_dim": 64}, 8192, 19_200),  # 8 A P (2 P - M) / (2 P + M)^2 = 48 A / 25 at M = P / 2
    ({"q_len": 100, "head_dim": 64}, 4096, 28_285),  # A sqrt(2 P / M) = 28,284.3
    ({"q_len": 2, "kv_len": 5, "head_dim": 64}, 1024, 40),  # 4 A
    ({"q_len": 65_536, "head_dim": 64}, 256, 64_424_508_928),  # phases of 2 M loads and creations
    ({"q_len": 8192, "head_dim": 64}, 2048, 312_516_608),
]
"""Calls, memories and bounds, worked out apart."""


@cache
def solved() -> list[tuple[iomodel.Attention, int, int]]:
    """Random calls with a memory and the least traffic of an algorithm there [elements]."""
    draw, rows = Random(17), []
    while len(rows) < SOLVED:
        kv_heads = draw.choice([1, 1, 2])
        w = iomodel.Attention(
            batch=draw.choice([1, 1, 2]),
            heads=kv_heads * draw.choice([1, 1, 3]),
            kv_heads=kv_heads,
            q_len=int(2 ** draw.uniform(0, 8)),
            kv_len=int(2 ** draw.uniform(0, 8)),
            head_dim=draw.randint(1, 12),
            value_dim=draw.randint(1, 12),
            mask=draw.choice(["full", "full", "causal"]),
        )
        size = int(2 ** draw.uniform(2, 13))
        try:
            tiles = iomodel.solve(
                draw.choice(["flash2", "flash2", "small_cache", "two_products"]), w, sram_elements=size, alignment=1
            )
        except iomodel.InfeasibleError:
            continue
        rows.append((w, size, tiles.cost.hbm_elements))
    return rows


def faults(ask: Ask) -> set[str]:
    """Name the witnesses that a bound contradicts."""
    caught = set()
    if any(ask(iomodel.Attention(**call), size) != least for call, size, least in WORKED):
        caught.add("worked")
    for (queries, keys, width, values, size), least in ELEMENTS.items():
        if ask(iomodel.Attention(q_len=queries, kv_len=keys, head_dim=width, value_dim=values), size) > least:
            caught.add("optimum")
    if any(ask(w, size) > moved for w, size, moved in solved()):
        caught.add("solved")
    return caught


def test_no_witness_contradicts_the_bound() -> None:
    assert faults(_any) == set()


def test_no_solved_problem_moves_less_than_any_of_its_bounds() -> None:
    for w, size, moved in solved():
        for bound in iomodel.lower_bounds(w, sram_elements=size).values():
            assert bound.elements <= moved, (w, size, bound)


def _any(w: iomodel.Attention, size: int) -> int:
    """The bound of class exact, 0 where it says nothing."""
    bound = iomodel.lower_bounds(w, sram_elements=size).get("exact")
    return 0 if bound is None else bound.elements


def of_phases(risen: Callable[[Product, int, int], int]) -> Callable[..., int]:
    """The bound with another denominator, from (P, M, Y)."""

    def planted(pairs: int, product: Product, size: int, many: int) -> int:
        return -(-4 * many * pairs * product.together // max(1, risen(product, size, many)))

    return planted


def counted(count: Callable[[int, int], int]) -> Callable[..., Pairs]:
    return lambda pairs, width, keys, values, *rest: Pairs(count(pairs, values), width, keys, values, *rest)


PLANTED: dict[str, tuple[Any, str, Any]] = {
    "P = 4 d^2": (bound_values, "index_pairs", lambda _, w: 4 * w.width**2),
    "P = 2 (d^2 + d_v^2)": (bound_values, "index_pairs", lambda _, w: 2 * (w.width**2 + w.value_width**2)),
    "P one larger": (bound_values, "index_pairs", lambda name, w: index_pairs(name, w) + 1),
    "no term of spilled scores": (
        bound_values,
        "with_arrivals",
        of_phases(lambda product, size, many: max(_grown(size, many), many**2, 4 * many * product.moved)),
    ),
    "no term of the arrivals that meet": (
        bound_values,
        "with_arrivals",
        of_phases(
            lambda product, size, many: max(_grown(size, many), 4 * product.cut * size, 4 * many * product.moved)
        ),
    ),
    "no room of arrivals above M": (
        bound_values,
        "with_arrivals",
        of_phases(
            lambda product, size, many: max(4 * many * size, many**2 + 4 * product.cut * size, 4 * many * product.moved)
        ),
    ),
    "no cost of a score's own accesses": (
        bound_values,
        "with_arrivals",
        of_phases(lambda product, size, many: max(_grown(size, many), many**2 + 4 * product.cut * size)),
    ),
    "half of the memory": (
        bound_values,
        "with_arrivals",
        lambda pairs, product, size, many: with_arrivals(pairs, product, -(-size // 2), many),
    ),
    "rounded up twice": (
        bound_values,
        "with_arrivals",
        lambda pairs, product, size, many: with_arrivals(pairs, product, size, many) + 1,
    ),
    "arrivals of M alone": (
        bound_values,
        "formed",
        lambda w, product, size: with_arrivals(w.count, product, size, size),
    ),
    "pairs whose products are divided lack a third": (
        bound_values,
        "product_of",
        lambda name, w: (found := product_of(name, w))._replace(cut=found.together // 3),
    ),
    "pairs of a mask doubled": (bounds, "Pairs", counted(lambda pairs, _: 2 * pairs)),
    "a fill for each of several groups too many": (
        bound_values,
        "filled",
        lambda together, groups, size: filled(together, 2 * groups, size),
    ),
    "one pair more": (bounds, "Pairs", counted(lambda pairs, _: pairs + 1)),
}
"""Errors by name: where they are planted, and what they put there."""


def _grown(size: int, many: int) -> int:
    return 4 * many * size if many <= size else (many + size) ** 2


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_caught(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, planted = PLANTED[error]
    monkeypatch.setattr(module, name, planted)
    assert "worked" in faults(_any)


TOO_LARGE = {
    "the arrivals alone, however small M": lambda w, product, size: -(-w.count * product.together // size),
    "a chip that is full at once": lambda w, product, size: -(-w.count * product.together // size) + 2 * size,
    "twice the bound": lambda w, product, size: 2 * bound_values.with_arrivals(w.count, product, size, size),
}


@pytest.mark.parametrize("error", TOO_LARGE)
def test_a_bound_too_large_is_caught_without_worked_numbers(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_values, "formed", TOO_LARGE[error])
    assert faults(_any) & {"optimum", "solved"}
