"""Nothing beats a lower bound, and no bound is applied outside its class."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, sqrt
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sympy import lambdify

import iomodel
from iomodel.algorithms import discovered
from iomodel.counting.bound_formulas import FORMULAS, A, G, L
from iomodel.counting.bound_values import (
    VALUES,
    Pairs,
    created,
    created_in_bytes,
    formed,
    index_pairs,
    product_of,
    product_twice,
    with_arrivals,
)
from iomodel.counting.bounds import divided_keys
from iomodel.nests import N_k, d, d_v
from tests.support.inside import FEATURE_NAMES, M, Mask
from tests.support.strategies import VARIANTS, Case, cases, masks, workloads


def bounds_of(algorithm: Any, workload: Any, memory: Any) -> dict[str, iomodel.results.Bound]:
    """The bounds for an algorithm and a memory in elements."""
    return iomodel.lower_bounds(workload, algorithm=algorithm, sram_elements=memory)


@given(case=st.sampled_from(VARIANTS).flatmap(cases))
def test_no_count_beats_a_bound_at_the_memory_it_uses(case: Case) -> None:
    cost = case.cost()
    bounds = bounds_of(case.algorithm, case.workload, cost.footprint_elements)
    for bound in bounds.values():
        assert bound.elements <= cost.hbm_elements, bound
        assert bound.bytes <= cost.hbm_bytes, bound


@given(case=st.sampled_from(VARIANTS).flatmap(cases))
def test_no_reference_kernel_beats_a_bound(case: Case) -> None:
    run = case.run()
    moved = sum(run.reads.values()) + sum(run.writes.values())
    for bound in bounds_of(case.algorithm, case.workload, run.sram_peak).values():
        assert bound.elements <= moved, bound


def seen_by(w: iomodel.Attention) -> NDArray[np.bool_]:
    """Which query sees which key, from the definition of a mask."""
    if isinstance(w.mask, iomodel.BlockMask | iomodel.Documents):
        return w.mask.seen(w.q_len, w.kv_len)
    window = iomodel.Window(right=0) if w.mask == "causal" else iomodel.Window() if w.mask == "full" else w.mask
    offset = w.kv_len - w.q_len if window.align == "bottom-right" else 0
    distance = np.arange(w.kv_len)[None, :] - np.arange(w.q_len)[:, None] - offset
    left, right = (10**9 if side is None else side for side in (window.left, window.right))
    return (-left <= distance) & (distance <= right)


def compulsory(w: iomodel.Attention) -> tuple[int, int]:
    """Rows that take part, and results, one by one: elements and bytes."""
    seen = seen_by(w)
    elements = bytes_moved = 0
    for heads, rows, width, size in [
        (w.heads, seen.any(axis=1).sum(), w.head_dim, w.element_size),  # Q
        (w.kv_heads, seen.any(axis=0).sum(), w.head_dim, w.kv_element_size),  # K
        (0 if w.latent else w.kv_heads, seen.any(axis=0).sum(), w.value_dim, w.kv_element_size),  # V
        (w.heads * (w.direction != "backward"), w.q_len, w.value_dim, w.element_size),  # O
        (w.heads * (w.direction != "forward"), seen.any(axis=1).sum(), w.value_dim, w.element_size),  # dO
        (w.heads * (w.direction != "forward"), w.q_len, w.head_dim, w.element_size),  # dQ
        (w.kv_heads * (w.direction != "forward"), w.kv_len, w.head_dim + w.value_dim, w.element_size),  # dK, dV
    ]:
        elements += w.batch * heads * int(rows) * width
        bytes_moved += w.batch * heads * int(rows) * width * size
    return elements, bytes_moved


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@given(data=st.data())
def test_compulsory_by_looking_at_every_pair(direction: str, data: st.DataObject) -> None:
    lacked = frozenset() if direction == "forward" else frozenset({"softcap"})
    w = data.draw(workloads(direction=direction, without=lacked))
    bound = bounds_of("flash2", w, 10**6)["compulsory"]
    assert (bound.elements, bound.bytes) == compulsory(w)


@given(data=st.data())
def test_bounds_of_many_sequences_add_up(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=5))
    fields: dict[str, Any] = {
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 3,
        "value_dim": 2,
        "mask": data.draw(masks),
        "direction": data.draw(st.sampled_from(["forward", "backward", "both"])),
    }
    together = iomodel.VarlenAttention(**fields, q_lens=[q for q, _ in lengths], kv_lens=[k for _, k in lengths])
    apart = [iomodel.Attention(**fields, q_len=q, kv_len=k) for q, k in lengths]
    size = data.draw(st.integers(1, 100))
    found = bounds_of("flash1", together, size)
    sums = [sum(column) for column in zip(*map(compulsory, apart), strict=True)]
    assert [found["compulsory"].elements, found["compulsory"].bytes] == sums
    if "fixed-split" in found:  # a bound per pair is one of the pairs of all sequences
        pairs = 4 * sum(int(seen_by(w).sum()) for w in apart)
        assert found["fixed-split"].elements == -(-pairs * 25 // size)
    cost = iomodel.cost("flash1", together, {"block_q": 4, "block_kv": 3})
    for bound in bounds_of("flash1", together, cost.footprint_elements).values():
        assert bound.elements <= cost.hbm_elements
        assert bound.bytes <= cost.hbm_bytes


def test_bounds_of_a_latent_and_of_a_quantised_cache() -> None:
    """A latent is K and V in one, so what assumes them apart is left out; a byte bound counts the narrowest element."""
    w = iomodel.Attention(heads=16, kv_heads=1, q_len=2, kv_len=1000, head_dim=72, value_dim=64, latent=True)
    found = bounds_of("flash2", w, 500)
    assert set(found) <= {"compulsory", "exact", "recomputed"}
    assert found["compulsory"].elements == 16 * 2 * (72 + 64) + 1000 * 72
    quantised = iomodel.Attention(q_len=100, kv_len=5000, head_dim=64, kv_dtype="int8", kv_scales="token")
    found = bounds_of("flash2", quantised, 2000)
    assert found["compulsory"].bytes == 2 * 2 * 100 * 64 + 2 * 5000 * 64
    assert found["fixed-split"].bytes == found["fixed-split"].elements


def test_the_classes_speak_of_one_pass() -> None:
    w = iomodel.Attention(q_len=4096, head_dim=64, direction="backward")
    assert set(bounds_of("flash2", w, 2000)) == {
        "compulsory",
        "exact-backward",
        "recomputed-backward",
        "row-atomic-backward",
    }
    assert set(bounds_of("two_pass", w, 2000)) == {
        "compulsory",
        "recomputed-backward",
    }  # it forms S twice
    again = bounds_of("two_pass", w, 10**5)["recomputed-backward"]
    assert again.elements == ceil(4096**2 * (9 * 64**2 + 64) / 10**5 + 93_750)
    found = bounds_of("flash2", w, 10**5)["exact-backward"]
    gradients = 3 * 4096 * 64 - 4096 * 64  # less those of O, which D is made of
    most = 14 * 4096**2 * 64**2 / (10**5 + 1) + 15 / 16 * (10**5 + 1)  # 12 in place of 14 says less
    assert found.elements == ceil(most) - gradients
    rows = bounds_of("flash2", w, 10**5)["row-atomic-backward"]
    assert rows.elements == -(-16 * 4096**2 * 64**2 // 10**5) - gradients
    w = w.model_copy(update={"direction": "both"})
    assert set(bounds_of("flash2", w, 2000)) == {"compulsory"}
    assert bounds_of("flash2", w, 2000)["compulsory"].elements == 8 * 4096 * 64  # Q K V dO; O dQ dK dV


@given(
    lengths=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    widths=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    heads=st.integers(1, 3),
    size=st.integers(1, 5000),
)
def test_integers_round_the_formulas_towards_safety(
    lengths: tuple[int, int], widths: tuple[int, int], heads: int, size: int
) -> None:
    """The integer never exceeds the real bound rounded up, nor falls more than the rounding of a root below it."""
    (n_q, n_k), (width, value) = lengths, widths
    w = iomodel.Attention(heads=heads, q_len=n_q, kv_len=n_k, head_dim=width, value_dim=value)
    point = heads * n_q * n_k, heads, heads * n_q, n_k, width, value, size
    found = bounds_of("flash2", w, size)
    for name, formula in FORMULAS.items():
        if name.endswith("backward"):  # not of this pass
            continue
        if name == "row-atomic" and size <= max(width, value):
            assert name not in found
            continue
        real = float(lambdify((A, G, L, N_k, d, d_v, M), formula, "math")(*point))
        if name in found:
            assert found[name].elements <= ceil(real + 1e-9 * abs(real))
            slack = 2 + (real + 2 * heads * n_q * n_k * (width + value)) / sqrt(size)  # the root of M^3 is rounded down
            assert found[name].elements >= floor(real) - slack
        else:
            assert real <= 1 + 1e-9


def test_known_values() -> None:
    """N = 4096, d = 64, M = 51200: 4 N d, 4 N^2 d^2 / M, a fill or outputs that stay; at M = 128 4 N^2 d / sqrt M."""
    w = iomodel.Attention(q_len=4096, head_dim=64)
    found = bounds_of("flash2", w, 51200)
    assert {name: bound.elements for name, bound in found.items()} == {
        "compulsory": 4 * 4096 * 64,
        "fixed-split": ceil(4 * 4096**2 * 64**2 / 51200),
        "row-atomic": pytest.approx(2 * 4096**2 * 64**2 / (51200 - 64), abs=2),
        "exact": ceil(4 * 4096**2 * 64**2 / 51200 + (1 - 11_943 / 51200) ** 2 * 4096 * 64 / 2),
        "recomputed": ceil(4096**2 * (3 * 64**2 + 64) / 51200 + 48_000),
    }
    phases = 4096**2 * 4 * 64 / sqrt(128) - 4096**2 - 2 * 128
    assert bounds_of("flash2", w, 128)["exact"].elements == pytest.approx(phases, rel=1e-3)
    assert found["compulsory"].bytes == 2 * found["compulsory"].elements


def test_bounds_keep_to_their_class() -> None:
    w = iomodel.Attention(q_len=4096, head_dim=64)
    for name in iomodel.list_algorithms():
        algorithm = discovered()[name]
        if "forward" not in algorithm.directions:
            assert all(name.endswith("-backward") for name in algorithm.classes)
            continue
        also = {"recomputed"} if "exact" in algorithm.classes else set()
        found = set(bounds_of(name, w, 51200))
        assert found == {"compulsory", *algorithm.classes, *also} - {"exact-backward", "row-atomic-backward"}
    assert discovered()["standard"].classes == {"exact"}
    assert "fixed-split" not in discovered()["tiled_query"].classes  # K's buffer becomes V's


def test_compulsory_leaves_out_what_no_one_sees() -> None:
    """Bottom-right causal, 5 queries and 2 keys: the first 3 queries see nothing and need no load of Q."""
    w = iomodel.Attention(q_len=5, kv_len=2, head_dim=4, mask="causal")
    assert bounds_of("flash2", w, 10**6)["compulsory"].elements == 2 * 4 + 2 * 4 + 2 * 4 + 5 * 4
    top_left = iomodel.Attention(
        q_len=2, kv_len=5, head_dim=4, heads=4, kv_heads=2, mask=iomodel.Window(right=0, align="top-left")
    )
    seen = 2 * 4
    assert bounds_of("flash2", top_left, 10**6)["compulsory"].elements == 4 * 2 * seen + 2 * 2 * seen


FORMED_ONCE = [
    (8192, 64, 51_200, "full", 21_636_529),  # A P / M and (1 - Y / M)^2 / 2 of O, the least Y being 10,989
    (32_768, 128, 116_224, "full", 605_566_905),
    (65_536, 128, 116_224, "full", 2_421_940_740),
    (8192, 64, 51_200, "causal", 10_786_729),
    (4096, 128, 116_224, "full", 9_569_241),
    (8192, 64, 21_846, "full", 50_350_593),  # A P / M and 15/16 M: the chip starts empty
    (65_536, 64, 64, "full", 133_143_986_048),  # from here on phases of loads and creations
    (65_536, 64, 256, "full", 64_424_508_928),
    (65_536, 64, 1024, "full", 30_064_769_024),
    (65_536, 64, 2048, "full", 20_001_271_808),
    (65_536, 128, 8192, "full", 20_001_030_144),
    (8192, 64, 4096, "full", 201_318_400),
    (8192, 64, 8192, "full", 128_849_019),  # 48 A / 25, where M is P / 2
]
"""Length, width, M, mask, and the least accesses of schedules that form each product once, worked out apart."""


@pytest.mark.parametrize(
    ("w", "size", "least"),
    [
        (iomodel.Attention(heads=16, q_len=8192, head_dim=256), 116_224, 2_239_770_499),
        (
            iomodel.Attention(heads=128, kv_heads=1, q_len=4096, head_dim=576, value_dim=512, latent=True),
            116_224,
            9_304_531_968,  # 49,267 phases of 2 M: (A D - 0.525 A sqrt M) / M^(3/2) = 49,267.3
        ),
        (
            iomodel.Attention(heads=128, kv_heads=1, q_len=65_536, head_dim=576, value_dim=512, latent=True),
            16_777_216,
            22_421_625_432,  # A P / M and (1 - Y / M)^2 / 2 of O, the least Y being 1,053,259
        ),
    ],
)
def test_products_formed_once_by_many_heads(w: iomodel.Attention, size: int, least: int) -> None:
    assert iomodel.lower_bounds(w, sram_elements=size)["exact"].elements == least


@pytest.mark.parametrize(
    ("width", "length", "size", "least"),
    [
        (64, 8192, 200_000, 17_855_995),
        (128, 8192, 116_224, 129_297_058),
        (128, 32_768, 247_808, 981_522_128),
        (64, 65_536, 1_000_000, 234_644_948),
    ],
)
def test_gradients_that_return_pay_twice(width: int, length: int, size: int, least: int) -> None:
    w = iomodel.Attention(q_len=length, head_dim=width, direction="backward")
    read = length * width  # O, of which D is made
    assert iomodel.lower_bounds(w, sram_elements=size)["exact-backward"].elements == least + read


@pytest.mark.parametrize(("length", "size"), [(4096, 2**20), (4096, 256)])
def test_loads_of_o_come_on_top_of_what_has_an_index_or_is_created(length: int, size: int) -> None:
    """12 A d^2 / M and 15 M / 16 of one head near the size of the memory, and phases of 2 M loads and creations."""
    pairs, width = length**2, 128
    phases = ceil(pairs * (3 * sqrt(3) * width / 2 + 2 * width - Fraction(61, 50) * sqrt(size)) / size**1.5) - 1
    near = Fraction(12 * pairs * width**2, size) + Fraction(15 * size, 16)
    least = ceil(near) if size > width**2 else 2 * size * phases - 2 * pairs
    w = iomodel.Attention(q_len=length, head_dim=width, direction="backward")
    found = iomodel.lower_bounds(w, sram_elements=size)["exact-backward"].elements
    assert found == pytest.approx(least + length * width, rel=0 if size > width**2 else 1e-4)  # 4e-4 of it


@pytest.mark.parametrize("direction", ["forward", "backward"])
@given(data=st.data(), size=st.integers(16, 60_000))
def test_no_solved_tile_moves_less_than_a_bound(direction: Any, data: st.DataObject, size: int) -> None:
    w = data.draw(workloads(direction=direction, without=FEATURE_NAMES))
    names = [name for name in iomodel.list_algorithms() if "exact" in discovered()[name].classes or name == "flash2"]
    name = data.draw(st.sampled_from(["flash1", "flash2"] if direction == "backward" else names))
    try:
        solution = iomodel.solve(name, w, sram_elements=size, alignment=1)
    except (iomodel.InfeasibleError, iomodel.InputError):
        return
    for bound in iomodel.lower_bounds(w, sram_elements=size).values():
        assert bound.elements <= solution.cost.hbm_elements, bound


@given(
    widths=st.sampled_from([(2, 2), (2, 1), (1, 2), (4, 1)]),
    latent=st.booleans(),
    pairs=st.integers(1, 10**12),
    size=st.integers(1, 10**6),
)
def test_bytes_of_small_memories_weigh_what_elements_count(
    widths: tuple[int, int], latent: bool, pairs: int, size: int
) -> None:
    """With one byte an element, bytes are elements; wider elements of one side never lower the bound below that."""
    w = Pairs(pairs, 96, 0 if latent else 64, 64)
    assert created_in_bytes(w, (1, 1), size) == created(w, size)
    narrow = min(widths)
    real = 2 * pairs * 160 * sqrt(narrow * widths[0] * widths[1] / size / (1 if not latent else 2))
    assert created_in_bytes(w, widths, size) <= real * (1 + 1e-9) - narrow * pairs + 2


@pytest.mark.parametrize(("length", "width", "size", "mask", "least"), FORMED_ONCE)
def test_products_formed_once(length: int, width: int, size: int, mask: Mask, least: int) -> None:
    w = iomodel.Attention(q_len=length, head_dim=width, mask=mask)
    assert bounds_of("flash2", w, size)["exact"].elements == least
    assert iomodel.lower_bounds(w, sram_elements=size)["exact"].elements == least


@given(
    widths=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    latent=st.booleans(),
    size=st.integers(1, 3000),
    pairs=st.integers(1, 10**6),
)
def test_no_number_of_arrivals_bounds_more_than_the_one_chosen(
    widths: tuple[int, int], latent: bool, size: int, pairs: int
) -> None:
    width, values = (max(widths), min(widths)) if latent else widths
    w = Pairs(pairs, width, 0 if latent else values, values)
    backward = [] if latent else [product_of("exact-backward", w), product_twice(w)]
    for product in (product_of("exact", w), product_of("recomputed", w), *backward):
        many = range(1, 2 * product.cut + size + 2)
        assert formed(w, product, size) == max(with_arrivals(pairs, product, size, one) for one in many)


def test_the_best_tile_is_close_to_what_any_schedule_moves() -> None:
    for length, width, size, ratio in ((8192, 64, 51_200, 1.124), (32_768, 128, 116_224, 1.040)):
        w = iomodel.Attention(q_len=length, head_dim=width)
        found = iomodel.solve("flash2", w, sram_elements=size).cost.hbm_elements
        assert 1 <= found / iomodel.lower_bounds(w, sram_elements=size)["exact"].elements <= ratio


def test_rows_begun_once_are_close_to_what_any_backward_schedule_moves() -> None:
    n, d = 65_536, 256
    w = iomodel.Attention(q_len=n, head_dim=d, direction="backward")
    solution = iomodel.solve("flash1", w, sram_elements=64 * d**2, begin_once=True)
    trips = -(-n // solution.tiles["block_kv"])
    assert trips == 17
    visits, once = trips * (2 * d + 2) + (trips - 1) * (d + 1), trips * d + d + 1  # Q, dO, l, m, dQ, D; dQ, O, D
    assert solution.cost.hbm_elements == n * (visits + once + 4 * d)
    least = iomodel.lower_bounds(w, sram_elements=64 * d**2)["exact-backward"].elements
    assert 1 <= solution.cost.hbm_elements / least <= 1.34


def test_a_latent_and_a_layer_without_an_algorithm() -> None:
    w = iomodel.Attention(heads=16, kv_heads=1, q_len=64, kv_len=1000, head_dim=72, value_dim=64, latent=True)
    assert iomodel.lower_bounds(w, sram_elements=10**5)["exact"].elements == ceil(
        16 * 64000 * 72 * 136 / 10**5 + 15 / 16 * 10**5
    )
    layer = iomodel.Linear(rows=512, in_features=512, out_features=512)
    assert iomodel.lower_bounds(layer, sram_elements=500) == bounds_of("gemm", layer, 500)


@given(
    sizes=st.tuples(st.integers(1, 300), st.integers(1, 64), st.integers(1, 64)),
    types=st.sampled_from([("bf16", "int8"), ("fp32", "bf16"), ("fp32", "int8"), ("fp8", "bf16")]),
    latent=st.booleans(),
    memory=st.integers(1, 200_000),
)
def test_bytes_of_two_widths(sizes: tuple[int, int, int], types: tuple[str, str], latent: bool, memory: int) -> None:
    """In bytes the bound is at least that of the narrowest width, and never above the traffic of a solved tile."""
    length, width, value = sizes
    width += value if latent else 0
    w = iomodel.Attention(
        q_len=length, head_dim=width, value_dim=value, dtype=types[0], kv_dtype=types[1], latent=latent
    )
    narrow = min(w.element_size, w.kv_element_size)
    found = iomodel.lower_bounds(w, sram_bytes=memory)
    for name, bound in iomodel.lower_bounds(w, sram_elements=max(1, memory // narrow)).items():
        assert found[name].elements == bound.elements
        assert found[name].bytes >= bound.bytes
    try:
        solution = iomodel.solve("flash2", w, sram_bytes=memory)
    except iomodel.InfeasibleError:
        return
    assert all(bound.bytes <= solution.cost.hbm_bytes for bound in found.values())
    assert solution.certificate.any_schedule == max(found.values(), key=lambda bound: bound.bytes)


def test_known_bytes_of_a_narrow_cache() -> None:
    """Q and O of 2 bytes, K and V of 1: A (2 x 128) (1 x 128) / M bytes, twice what the narrowest width gives."""
    w = iomodel.Attention(q_len=8192, head_dim=64, kv_dtype="int8")
    bounds = iomodel.lower_bounds(w, sram_bytes=100_000)
    assert bounds["exact"].bytes == ceil(8192**2 * 256 * 128 / 100_000 + 93_750) == 22_083_983
    outputs = 64 * 8192 * (1 - Fraction(10_163, 100_000)) ** 2 / 2
    assert bounds["exact"].elements == ceil(Fraction(8192**2 * 128**2, 100_000) + outputs)
    assert iomodel.lower_bounds(w, sram_elements=100_000)["exact"].bytes == bounds["exact"].elements
    solution = iomodel.solve("flash2", w, sram_bytes=100_000)
    assert 1 <= solution.certificate.ratio < 2.4


def test_each_bound_says_in_words_what_it_holds_for() -> None:
    w = iomodel.Attention(q_len=4096, head_dim=64)
    for bound in bounds_of("flash2", w, 51200).values():
        assert len(bound.holds_for) > 20
        assert bound.to_dict()["holds_for"] == bound.holds_for


@given(
    widths=st.tuples(st.integers(1, 300), st.integers(1, 300)), size=st.integers(1, 10**6), pairs=st.integers(1, 10**9)
)
def test_scores_formed_again_bound_less(widths: tuple[int, int], size: int, pairs: int) -> None:
    """Every schedule that forms scores once is one that may form them again."""
    w = Pairs(pairs, *widths, widths[1])
    assert VALUES["recomputed"](w, size) <= VALUES["exact"](w, size)
    assert VALUES["recomputed-backward"](w, size) <= VALUES["exact-backward"](w, size)
    latent = Pairs(pairs, sum(widths), 0, widths[1])
    assert index_pairs("recomputed", latent) == index_pairs("exact", latent)


@pytest.mark.parametrize("size", [0, -1, 1.5, float("nan"), True])
def test_bad_memory_is_refused(size: object) -> None:
    w = iomodel.Attention(q_len=8, head_dim=4)
    with pytest.raises(iomodel.InputError, match="sram_elements"):
        bounds_of("flash2", w, size)  # type: ignore[arg-type]


def test_bad_workload_is_refused() -> None:
    with pytest.raises(iomodel.InputError, match="workload"):
        bounds_of("flash2", None, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("direction", ["backward", "both"])
def test_a_direction_that_the_algorithm_lacks_is_refused(direction: Literal["backward", "both"]) -> None:
    sizes = {"in_features": 8, "hidden_features": 16, "direction": direction}
    for layers in (iomodel.MLP(rows=4, **sizes), iomodel.Experts(loads=(1, 3), **sizes)):  # type: ignore[arg-type]
        with pytest.raises(iomodel.InputError, match=f"^direction: '{direction}' given; allowed: forward"):
            bounds_of("fused_mlp", layers, 100)


@given(
    groups=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    lengths=st.tuples(st.integers(1, 4), st.integers(1, 40)),
    widths=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    splits=st.integers(1, 6),
    block_kv=st.integers(1, 9),
)
def test_splits_move_two_outputs_a_group_more_than_they_must(
    groups: tuple[int, int, int], lengths: tuple[int, int], widths: tuple[int, int], splits: int, block_kv: int
) -> None:
    """A kernel of its own merges: it loads the partial result that the last processor would have kept."""
    (batch, kv_heads, group), (q_len, kv_len), (width, value) = groups, lengths, widths
    w = iomodel.Attention(
        batch=batch, heads=kv_heads * group, kv_heads=kv_heads, q_len=q_len, kv_len=kv_len, head_dim=width,
        value_dim=value,
    )  # fmt: skip
    tiles = {"block_q": q_len * group, "block_kv": block_kv}
    splits = min(splits, ceil(kv_len / block_kv))
    cost = iomodel.cost("split_kv", w, tiles, splits=splits, packed=True, lse=False)
    busy = ceil(kv_len / (ceil(ceil(kv_len / block_kv) / splits) * block_kv))  # the last splits may hold no key
    moved = cost.hbm_elements - sum(cost.reads.get(name, 0) + cost.writes.get(name, 0) for name in ("LSE_acc",))
    least = divided_keys(w, batch * kv_heads * busy)
    assert least.elements <= moved
    if splits == busy and splits > 1:
        assert moved - least.elements == 2 * batch * kv_heads * group * q_len * value


def test_a_cache_of_two_types_is_bounded_by_the_smaller() -> None:
    """By hand: two tiled products with fp32 statistics and the best tile of each move 861,074,882,560 bytes."""
    w = iomodel.Attention(q_len=65_536, head_dim=16_384, dtype="fp8", kv_dtype="fp16/q4_0")
    assert iomodel.lower_bounds(w, sram_bytes=131_072)["exact"].bytes <= 861_074_882_560


def test_the_memory_of_a_device_is_that_of_its_solutions() -> None:
    w = iomodel.Attention(heads=8, q_len=4096, head_dim=64)
    solved = iomodel.solve("flash2", w, "h100-sxm5")
    found = iomodel.lower_bounds(w, "h100-sxm5")
    assert found == iomodel.lower_bounds(w, sram_bytes=solved.certificate.memory)
    assert max(bound.bytes for bound in found.values()) == solved.certificate.any_schedule.bytes
    with pytest.raises(iomodel.InputError, match="2 values given; allowed: at most one"):
        iomodel.lower_bounds(w, "h100-sxm5", sram_bytes=5)


def test_the_old_order_works_and_warns_where_it_is_used() -> None:
    w = iomodel.Attention(q_len=4096, head_dim=64)
    with pytest.warns(DeprecationWarning, match=r"use iomodel.lower_bounds\(workload, algorithm=...\)") as warned:
        old = iomodel.lower_bounds("flash2", w, 51200)  # type: ignore[arg-type]
    assert old == bounds_of("flash2", w, 51200)
    assert warned[0].filename == __file__


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_a_cost_counts_the_pairs_that_are_seen(mask: Mask) -> None:
    call = iomodel.Attention(batch=2, heads=3, q_len=5, kv_len=7, head_dim=16, mask=mask)
    seen = sum(mask == "full" or key <= query + 2 for query in range(5) for key in range(7))
    counted = iomodel.cost("flash2", call, {"block_q": 16, "block_kv": 16})
    assert counted.visible_pairs == 6 * seen
    assert f"visible pairs {6 * seen} -" in " ".join(str(counted).split())
