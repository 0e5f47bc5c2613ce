"""Laws of the algorithms that approximate attention: what is solved, refused, linear, and equal to flash2."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sympy import Integer, ceiling, limit, oo

import iomodel
from iomodel.algorithms import algorithm
from iomodel.errors import InfeasibleError, InputError, IOModelError
from iomodel.nests.symbols import BY_NAME, N_k, N_q
from tests.support.strategies import APPROXIMATE, Case, Variant, bounds, cases, extras, fraction_of_examples
from tests.support.tile_names import tile_names

NAMES = sorted({variant.algorithm for variant in APPROXIMATE})
each_variant = pytest.mark.parametrize("variant", APPROXIMATE, ids=str, scope="module")
CALL: dict[str, Any] = {"q_len": 64, "heads": 2, "head_dim": 8}
LINEAR = ["linformer", "linear_transformer", "performer", "mamba1", "mamba2"]
OPTIONS: dict[str, dict[str, int]] = {
    "linformer": {"projected": 16},
    "performer": {"features": 16},
    "loki": {"rank": 4, "top_k": 8},
    "dsa": {"index_heads": 4, "index_queries": 3, "index_dim": 4, "top_k": 8},
    "sparse_transformer": {"stride": 8, "summary": 2},
    "reformer": {"buckets": 8, "rounds": 2},
    "routing_transformer": {"clusters": 4},
    "nsa": {"compress_block": 8, "compress_stride": 4, "select_block": 8, "selected": 2, "local": 16},
    "moba": {"select_block": 8, "selected": 3},
}
"""Options that go together at 64 positions."""


def call(name: str, mask: str | None = None, **more: Any) -> iomodel.Attention:
    return iomodel.Attention(**{**CALL, "mask": mask or algorithm(name).masks[0], **more})


@each_variant
@fraction_of_examples(4)
@given(data=st.data())
def test_its_reference_kernel_computes_what_the_paper_defines(variant: Variant, data: st.DataObject) -> None:
    """The counting kernel against the naive form, with random input."""
    case = data.draw(cases(variant))
    w, kernel = case.workload, import_module(f"tests.reference.{case.algorithm}")
    draw = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal
    keys = (w.batch, w.kv_heads, w.kv_len)
    tensors = draw((w.batch, w.heads, w.q_len, w.head_dim)), draw((*keys, w.head_dim)), draw((*keys, w.value_dim))
    asked = {
        **bounds(w),
        **{
            name: value
            for name, value in case.options.items()
            if name not in ("packed", *algorithm(case.algorithm).as_written)
        },
    }
    if w.latent:
        tensors = (*tensors[:2], tensors[1][..., : w.value_dim])
    expected = kernel.naive(*tensors, **asked)
    more = {"extras": extras(w)} if w.features else {}
    np.testing.assert_allclose(kernel.run(*tensors, **asked, **case.tiles, **more).O, expected, rtol=1e-9, atol=1e-12)


def runs(case: Case, tiles: Mapping[str, int]) -> int:
    """How many splits may have a tile of chosen keys."""
    return -(-int(case.options.get("top_k", 1)) // tiles.get("block_kv", 1))


def with_tiles_of(case: Case, least: int) -> dict[str, Any]:
    """The options of a case, with no more splits than there are of the least tiles."""
    most = {
        name: min(value, runs(case, {"block_kv": least})) for name, value in case.options.items() if name == "splits"
    }
    return {**case.options, **most}


@each_variant
@fraction_of_examples(4)
@given(data=st.data())
def test_solver_equals_exhaustive_search(variant: Variant, data: st.DataObject) -> None:
    """The least traffic of all tiles that fit, every combination tried."""
    case = data.draw(cases(variant))
    w, step = case.workload, data.draw(st.sampled_from([3, 4, 5]))
    options = with_tiles_of(case, step)
    budget = data.draw(st.integers(20, 400))
    longest = max(w.q_len, w.kv_len, 3 * w.heads * w.value_dim)
    sizes = range(step, longest + step, step)
    if len(sizes) ** len(case.tiles) > 4000:
        sizes = range(step, 3 * step, step)  # small enough to try all; the solver must then do as well or better
    every = [dict(zip(case.tiles, found, strict=True)) for found in product(sizes, repeat=len(case.tiles))]
    tried = [
        iomodel.cost(case.algorithm, w, tiles, **options)
        for tiles in every
        if options.get("splits", 1) <= runs(case, tiles)
    ]
    fitting = [cost.hbm_bytes for cost in tried if cost.footprint_elements <= budget]
    try:
        found = iomodel.solve(case.algorithm, w, sram_elements=budget, alignment=step, **options)
    except InfeasibleError as error:
        least = error.least
    else:
        least = None
    if least is not None:
        assert not fitting
        assert least == min(cost.footprint_elements for cost in tried)
        return
    assert found.cost == iomodel.cost(case.algorithm, w, found.tiles, **options)
    assert found.cost.footprint_elements <= budget
    assert all(size % step == 0 for size in found.tiles.values())
    assert not fitting or found.cost.hbm_bytes <= min(fitting)
    if sizes.stop > longest:
        assert found.cost.hbm_bytes == min(fitting)


@each_variant
@fraction_of_examples(4)
@given(data=st.data())
def test_more_sram_never_costs_traffic(variant: Variant, data: st.DataObject) -> None:
    case = data.draw(cases(variant))
    options = with_tiles_of(case, 4)
    amounts = sorted(data.draw(st.lists(st.integers(20, 2000), min_size=2, max_size=4)))
    found = []
    for amount in amounts:
        try:
            solution = iomodel.solve(case.algorithm, case.workload, sram_elements=amount, alignment=4, **options)
        except InfeasibleError:
            assert not found  # what fits a smaller memory fits a larger one
        else:
            found.append(solution.cost.hbm_bytes)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_methods_are_linear(name: str) -> None:
    """By the formulas: traffic and FLOPs over N tend to a number that does not hold N."""
    for mask in algorithm(name).masks:
        e = iomodel.expressions(name, mask)
        for formula in (e.hbm_elements, e.flops):
            smooth = formula.replace(ceiling, lambda inside: inside).subs(N_k, N_q)
            slope = limit(smooth / N_q, N_q, oo)
            assert slope.is_finite is not False
            assert slope != 0
            assert N_q not in slope.free_symbols
            assert not slope.has(oo)


@pytest.mark.parametrize("name", LINEAR)
def test_twice_the_length_is_twice_the_work(name: str) -> None:
    """In exact integers, where the tiles divide the length: what does not grow is the same at any length."""
    tiles = dict.fromkeys(tile_names(name, algorithm(name).masks[0]), 16)
    counted = [
        iomodel.cost(name, call(name, q_len=n), tiles, **OPTIONS.get(name, {})) for n in (4096, 8192, 12288, 16384)
    ]
    for quantity in ("hbm_bytes", "flops", "exps"):
        values = np.array([getattr(cost, quantity) for cost in counted])
        assert (np.diff(values, 2) == 0).all()
        assert (np.diff(values) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_of_attention_alone_is_refused(name: str) -> None:
    w = call(name)
    other = "causal" if "causal" not in algorithm(name).masks else "full"
    asked: list[tuple[iomodel.Attention, dict[str, Any]]] = [
        (w.model_copy(update={"sinks": True}), {}),
        (w.model_copy(update={"mask": iomodel.Window(left=3, right=0)}), {}),
        (w.model_copy(update={"direction": "backward"}), {}),
        (w, {"packed": True}),
    ]
    if other not in algorithm(name).masks:
        asked.append((w.model_copy(update={"mask": other}), {}))
    for workload, options in asked:
        with pytest.raises(IOModelError, match=r"allowed: "):
            iomodel.cost(name, workload, {}, **OPTIONS.get(name, {}), **options)
    with pytest.raises(InputError, match="several lengths given; allowed: an Attention"):
        iomodel.cost(name, iomodel.VarlenAttention(q_lens=[3, 4], head_dim=2), {})


WRONG = [
    ("linformer", {"projected": 65}, "projected: 65 given; allowed: up to kv_len = 64"),
    ("linformer", {"projected": 0}, "projected: 0 given; allowed: an integer from 1"),
    ("performer", {"features": 65}, "features: 65 given; allowed: up to"),
    ("loki", {"rank": 9, "top_k": 8}, "rank: 9 given; allowed: up to"),
    ("loki", {"rank": 8, "top_k": 65}, "top_k: 65 given; allowed: up to"),
    ("dsa", {"top_k": 65}, "top_k: 65 given; allowed: up to kv_len = 64, all keys"),
    ("dsa", {"index_heads": 0}, "index_heads: 0 given; allowed: an integer from 1"),
    ("sparse_transformer", {"stride": 65}, "stride: 65 given; allowed: up to"),
    ("sparse_transformer", {"stride": 8, "summary": 9, "fixed": True, "second": True}, "summary: 9 given; allowed: up"),
    ("sparse_transformer", {"stride": 9, "summary": 2, "fixed": True, "second": True}, "allowed: a multiple of"),
    ("reformer", {"buckets": 0}, "buckets: 0 given; allowed: an integer from 1"),
    ("reformer", {"buckets": 7}, "buckets: 7 given; allowed: "),
    ("reformer", {"buckets": 66}, "buckets: 66 given; allowed: "),
    ("routing_transformer", {"clusters": 65}, "clusters: 65 given; allowed: up to"),
    ("nsa", {**OPTIONS["nsa"], "compress_block": 6}, "compress_block: 6 given; allowed: a multiple of"),
    ("nsa", {**OPTIONS["nsa"], "select_block": 20}, "q_len: 64 given; allowed: a multiple of"),
    ("nsa", {**OPTIONS["nsa"], "local": 65}, "local: 65 given; allowed: up to"),
    ("moba", {"select_block": 24}, "q_len: 64 given; allowed: a multiple of select_block = 24"),
    ("moba", {"select_block": 8, "selected": 0}, "selected: 0 given; allowed: an integer from 1"),
]


@pytest.mark.parametrize(("name", "options", "said"), WRONG, ids=str)
def test_numbers_that_do_not_go_together(name: str, options: dict[str, Any], said: str) -> None:
    """The same words from every question, and from arrays with the place."""
    w = call(name)
    for ask in (iomodel.cost, iomodel.solve, iomodel.estimate):
        with pytest.raises(InputError, match=said):
            ask(name, w, "h100-sxm5" if ask is not iomodel.cost else {}, **options)
    with pytest.raises(InputError, match=said.split(" given", maxsplit=1)[0]):
        iomodel.cost_array(name, **CALL, mask=w.mask, **dict.fromkeys(tiles_of(name, options), 16), **options)


def tiles_of(name: str, options: dict[str, Any]) -> tuple[str, ...]:
    switches = {option: value for option, value in options.items() if isinstance(value, bool)}
    return tile_names(name, algorithm(name).masks[0], **switches)


def test_lengths_of_self_attention_agree() -> None:
    for name in NAMES:
        if algorithm(name).masks == ("causal",):
            with pytest.raises(InputError, match="kv_len: 65 given; allowed: q_len = 64"):
                iomodel.cost(name, call(name, kv_len=65), {}, **OPTIONS.get(name, {}))


@given(
    blocks=st.integers(1, 6),
    size=st.integers(1, 4),
    group=st.integers(1, 3),
    widths=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_nsa_that_selects_everything_reads_what_flash2_reads(
    blocks: int, size: int, group: int, widths: tuple[int, int]
) -> None:
    """A position at a time for the whole group: packed flash2, a position a query tile, a block a key tile."""
    n = blocks * size
    w = iomodel.Attention(q_len=n, heads=2 * group, kv_heads=2, head_dim=widths[0], value_dim=widths[1], mask="causal")
    options = {"compress_stride": 1, "compress_block": 1, "select_block": size, "local": n}
    tiles = {"block_q": 3, "block_kv": 2, "block_proj": 2, "block_sum": 2}
    every, none = (iomodel.cost("nsa", w, tiles, selected=count, **options) for count in (blocks, 1))
    exact = iomodel.cost("flash2", w, {"block_q": group, "block_kv": size}, packed=True, lse=False)
    own = iomodel.cost(  # with one block selected, each position reads its own alone
        "sparse_transformer", w, {"block_q": 1, "block_kv": size}, stride=size, fixed=True
    )
    for tensor in ("K", "V"):
        assert every.reads[tensor] - none.reads[tensor] == exact.reads[tensor] - own.reads[tensor] // group
    window = iomodel.cost("flash2", w, {"block_q": 3, "block_kv": 2}, lse=False)
    strided = iomodel.cost("sparse_transformer", w, {"block_q": 3, "block_kv": 2}, stride=n)
    assert strided.reads == window.reads  # the window that shows everything is flash2
    assert strided.writes == window.writes
    assert (strided.flops, strided.exps) == (window.flops, window.exps)


def test_a_requirement_is_no_matter_of_order() -> None:
    """Options are symbols in a formula until they are given."""
    e = iomodel.expressions("linformer")
    assert BY_NAME["projected"] in e.flops.free_symbols
    given_there = iomodel.expressions("linformer", projected=16)
    assert given_there.flops == e.flops.subs(BY_NAME["projected"], Integer(16))


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_asks_again(name: str) -> None:
    """What a result says of tiles and options is what was asked; and a diagnosis knows it too."""
    w, options = call(name), OPTIONS.get(name, {})
    solved = iomodel.solve(name, w, "h100-sxm5", **options)
    assert iomodel.cost(name, w, solved.tiles, **solved.cost.options) == solved.cost
    arrays = iomodel.cost_array(name, **{**CALL, "q_len": [64, 128]}, mask=w.mask, **solved.tiles, **options)
    assert arrays[0] == solved.cost
    assert iomodel.diagnose(name, w, "h100-sxm5", 1e-3, tiles=solved.tiles, **options).to_dict()
    found = iomodel.estimate(name, w, "h100-sxm5", **options)
    assert found.seconds <= iomodel.estimate(name, w, "h100-sxm5", solved.tiles, **options).seconds


@given(chosen=st.integers(2, 40), splits=st.integers(2, 6), budget=st.integers(250, 600))
@example(chosen=36, splits=2, budget=534)  # a tile of all chosen keys, which left a split without any
def test_every_split_of_the_chosen_keys_has_a_tile(chosen: int, splits: int, budget: int) -> None:
    shape: Any = {"heads": 3, "kv_heads": 1, "head_dim": 5, "q_len": 5, "kv_len": 41, "dtype": "fp32", "latent": True}
    options = {"top_k": chosen, "splits": splits, "index_heads": 3, "index_queries": 2, "index_dim": 3}
    w = iomodel.Attention(**shape)
    if -(-chosen // 4) < splits:
        with pytest.raises(iomodel.InputError, match=f"splits: {splits} given; allowed: up to "):
            iomodel.solve("dsa", w, sram_elements=budget, alignment=4, **options)
        return
    found = iomodel.solve("dsa", w, sram_elements=budget, alignment=4, **options)
    assert -(-chosen // found.tiles["block_kv"]) >= splits
    many = iomodel.solve_array("dsa", sram_elements=[budget, budget], alignment=4, **shape, **options)
    assert {name: int(sizes[1]) for name, sizes in many.tiles.items()} == found.tiles
    least = None
    for block_kv, block_q in product(range(4, 44, 4), (4, 8)):
        if -(-chosen // block_kv) >= splits:
            tiles = {**found.tiles, "block_kv": block_kv, "block_q": block_q}
            cost = iomodel.cost("dsa", w, tiles, **options)
            if cost.footprint_elements <= budget:
                least = min(cost.hbm_bytes, least or cost.hbm_bytes)
    assert found.cost.hbm_bytes == least
