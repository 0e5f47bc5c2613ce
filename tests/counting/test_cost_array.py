"""What `cost_array` answers is what `cost` answers, element by element, and what the formulas say."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from sympy import Integer

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.cost_array import cost_array
from iomodel.counting.evaluation.array_engine import exact_ratio
from iomodel.counting.quantities import SUMS
from tests.support.array_calls import COUNTS, at, calls, same, whole
from tests.support.inside import BY_NAME
from tests.support.strategies import EXACT, FORWARD, VARIANTS, Variant

BANDS = [
    iomodel.Window(left=left, right=right, align=align)
    for left, right in ((5, 3), (5, None), (None, 3), (0, 0), (None, None))
    for align in ("bottom-right", "top-left")
]
LENGTHS = {"q_len": np.array([[1], [7], [64], [130]]), "kv_len": np.array([1, 5, 64, 200])}


def tiles(variant: Variant) -> dict[str, Any]:
    """Arrays of tiles, of other sizes for each name."""
    return {name: np.array([1, 7 + i, 16, 70]) for i, name in enumerate(variant.tiles)}


WAYS = [(variant, mask) for variant in VARIANTS for mask in ("full", "causal")]
WAYS += [
    (Variant(name, direction), iomodel.Window(left=9, right=4))
    for name in EXACT
    for direction in algorithm(name).directions
    if direction != "both"
]


@pytest.mark.parametrize(("variant", "mask"), WAYS, ids=str)
def test_every_algorithm(variant: Variant, mask: Any) -> None:
    heads = {"heads": 6, "kv_heads": np.array([[[1]], [[3]]]), "head_dim": 8, "value_dim": 3}
    arguments = {**LENGTHS, **heads, **tiles(variant), **variant.options, "mask": mask, "direction": variant.direction}
    found = same(variant.algorithm, arguments, most=14)
    assert found.shape == (2, 4, 4)


@pytest.mark.parametrize("mask", BANDS, ids=str)
@pytest.mark.parametrize("name", ["flash1", "flash2"])
def test_every_band(name: str, mask: Any) -> None:
    for packed in (False, True):
        arguments = {**LENGTHS, "heads": 4, "kv_heads": 2, "head_dim": 8, "mask": mask, "packed": packed}
        same(name, {**arguments, "block_q": np.array([1, 7, 16, 70]), "block_kv": np.array([[3], [16], [2], [65]])})


BOTH = [name for name in iomodel.list_algorithms() if "both" in algorithm(name).directions]


@pytest.mark.parametrize("name", BOTH)
def test_both_directions(name: str) -> None:
    found = iomodel.expressions(name, direction="both", **({"tiled": True} if name == "standard" else {}))
    sizes = {tile: np.array([4, 16, 70, 3 + i]) for i, tile in enumerate(found.own_tiles)}
    arguments = {**LENGTHS, "head_dim": 8, "mask": "causal", "direction": "both", **sizes}
    same(name, arguments, most=8)
    if "bwd_block_q" in found.tiles:
        same(name, {**arguments, "bwd_block_q": np.array([8, 9, 10, 11])}, most=8)


@pytest.mark.parametrize(("name", "mask"), [("flash2", "causal"), ("flash1", BANDS[0]), ("standard", "full")], ids=str)
def test_every_quantity(name: str, mask: Any) -> None:
    same(name, {**LENGTHS, "head_dim": 8, "mask": mask, **tiles(Variant(name))}, most=6, every=True)
    backward = Variant(name, "backward")
    same(name, {**LENGTHS, "head_dim": 8, "mask": mask, "direction": "backward", **tiles(backward)}, most=6, every=True)


def test_plain_data_are_those_of_every_point() -> None:
    sizes = {"q_len": np.array([7, 64]), "kv_len": 64, "head_dim": 8, "block_q": np.array([4, 16]), "block_kv": 16}
    found = iomodel.cost_array("flash2", **sizes)
    data = found.to_dict()
    for place in range(2):
        one = found[place].to_dict()
        assert {name: rows[place] for name, rows in data["reads"].items()} == one["reads"]
        assert {name: rows[place] for name, rows in data["writes"].items()} == one["writes"]
        assert {name: data[name][place] for name in SUMS} == {name: one[name] for name in SUMS}
    assert (data["shape"], data["tiles"]) == ([2], {"block_q": [4, 16], "block_kv": 16})


@pytest.mark.parametrize("scale", [1, 2**53, 2**61, 10**30])
def test_ratios_are_the_nearest_floats(scale: int) -> None:
    over, under = [scale + 1, 7 * scale + 3, 5], [3, scale, 4]
    dtype = np.int64 if 8 * scale < 2**63 else object
    found = exact_ratio(np.array(over, dtype=dtype), np.array(under, dtype=dtype))
    assert found.tolist() == [a / b for a, b in zip(over, under, strict=True)]  # of Python's integers: rounded once
    assert found.dtype == np.float64


def test_standard_attention_goes_without_tiles() -> None:
    for direction in ("forward", "backward"):
        same("standard", {**LENGTHS, "head_dim": [4, 8, 16, 5], "mask": "causal", "direction": direction})


@given(call=calls())
def test_any_call(call: tuple[str, dict[str, Any]]) -> None:
    name, arguments = call
    same(name, arguments, most=6)


FEATURES: list[dict[str, Any]] = [
    {"bias": True, "softcap": 30.0, "alibi": True, "sinks": True, "dropout": 0.5},
    {"page_size": np.array([1, 16, 3, 256]), "kv_dtype": "fp8", "kv_scales": "token"},
    {"kv_dtype": "fp8", "kv_scales": "head", "sinks": True},
    {"latent": True, "kv_heads": 1, "head_dim": 9, "value_dim": np.array([1, 8, 5, 9])},
    {"latent": True, "kv_heads": 1, "page_size": 7, "kv_dtype": "fp8"},
]


@pytest.mark.parametrize("fields", FEATURES, ids="-".join)
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_features(fields: dict[str, Any], mask: str) -> None:
    arguments = {**LENGTHS, "heads": 4, "head_dim": 8, "mask": mask, "block_q": [4, 7, 16, 64], "block_kv": 16}
    same("flash2", {**arguments, **fields})


DTYPES = ["fp32", "tf32", "fp16", "bf16", "fp8", "int8"]


def test_dtypes_may_be_an_array() -> None:
    arguments = {"q_len": 50, "kv_len": 70, "head_dim": 8, "block_q": np.array([[7], [64]]), "block_kv": 16}
    for given_as in (np.array(DTYPES), np.array(DTYPES, dtype=object), DTYPES):
        found = same("flash2", {**arguments, "dtype": given_as, "mask": "causal"})
        assert found.shape == (2, 6)


def test_dtypes_of_the_cache_may_be_an_array() -> None:
    # Some calls have a cache in another dtype, some have not: one formula answers for both.
    arguments = {"q_len": 50, "kv_len": 70, "heads": 4, "kv_heads": 2, "head_dim": 8, "block_q": 7, "block_kv": 16}
    for mask in ("full", "causal"):
        same("flash2", {**arguments, "mask": mask, "dtype": "bf16", "kv_dtype": np.array(DTYPES)}, every=True)
        same("flash1", {**arguments, "mask": mask, "dtype": np.array(DTYPES)[:, None], "kv_dtype": DTYPES})
        same("split_kv", {**arguments, "mask": mask, "dtype": np.array(DTYPES), "kv_dtype": "fp8", "splits": 3})
    same("flash2", {**arguments, "dtype": DTYPES, "kv_dtype": DTYPES, "direction": "backward"})
    with pytest.raises(iomodel.InputError, match=r"^kv_dtype: given with direction backward"):
        cost_array("flash2", **arguments, dtype="bf16", kv_dtype=["bf16", "fp8"], direction="backward")


@pytest.mark.parametrize("align", ["bottom-right", "top-left"])
@pytest.mark.parametrize(("left", "right"), [(True, True), (True, False), (False, True)])
def test_widths_of_a_window_may_be_arrays(left: bool, right: bool, align: Any) -> None:
    mask = iomodel.Window(left=3 if left else None, right=4 if right else None, align=align)
    widths: dict[str, Any] = {}
    widths |= {"window_left": np.array([0, 3, 10**18, 64])} if left else {}
    widths |= {"window_right": np.array([[5], [0], [7], [200]])} if right else {}
    arguments = {**LENGTHS, "head_dim": 8, "mask": mask, "block_q": 16, "block_kv": np.array([3, 16, 1, 70])}
    found = cost_array("flash2", **arguments, **widths)
    assert found.shape == (4, 4)
    for index in np.ndindex(found.shape):
        sides = {name[7:]: int(np.broadcast_to(width, found.shape)[index]) for name, width in widths.items()}
        one = at("flash2", {**arguments, "mask": mask.model_copy(update=sides)}, index, found.shape)
        assert found.hbm_bytes[index] == one.hbm_bytes
        assert found.exps[index] == one.exps
        assert found[index] == one


def test_options_may_be_arrays() -> None:
    arguments = {"q_len": np.array([1, 5, 30]), "kv_len": 4096, "head_dim": 8, "block_q": 4, "block_kv": 64}
    same("split_kv", {**arguments, "splits": np.array([[1], [7], [64]]), "heads": 4, "kv_heads": 2, "packed": True})
    buffers = np.array([[1], [2], [5]])
    same("flash2", {**arguments, "direction": "backward", "deterministic": True, "dq_buffers": buffers})


@pytest.mark.parametrize("mask", ["full", "causal", iomodel.Window(left=5, right=1)], ids=str)
@pytest.mark.parametrize("option", [{"order": "serpentine"}, {"padded_statistics": True}], ids=str)
def test_options_as_written(option: dict[str, Any], mask: Any) -> None:
    for packed in (False, True):
        arguments = {**LENGTHS, "heads": 4, "kv_heads": 2, "head_dim": 8, "mask": mask, "packed": packed, **option}
        same("flash2", {**arguments, "block_q": np.array([1, 7, 16, 70]), "block_kv": np.array([[3], [16], [2], [65]])})


def test_what_follows_another_field_follows_its_array() -> None:
    q_len, head_dim, heads = np.array([5, 70, 300]), np.array([[8], [16]]), np.array([4, 6, 1])
    sizes = {"block_q": 16, "block_kv": np.array([8, 16, 32])}
    bare = {"q_len": q_len, "head_dim": head_dim, "heads": heads, **sizes}
    told = {**bare, "kv_len": q_len, "value_dim": head_dim, "kv_heads": heads}
    none = {**bare, "kv_len": None, "value_dim": None, "kv_heads": None}
    answers = [cost_array("flash2", mask="causal", **arguments).hbm_bytes for arguments in (bare, told, none)]
    assert all(np.array_equal(answers[0], other) for other in answers[1:])
    same("flash2", {**bare, "mask": "causal"})
    backward = {**bare, "direction": "backward"}
    assert np.array_equal(
        cost_array("two_pass", **backward).hbm_bytes,
        cost_array("two_pass", **backward, dq_block_q=16, dq_block_kv=sizes["block_kv"]).hbm_bytes,
    )


TABLE = np.random.default_rng(1).random((5, 7)) < 0.4
DATA = [
    iomodel.BlockMask(TABLE, block_q=13, block_kv=9),
    iomodel.BlockMask(np.zeros((5, 7), dtype=bool), block_q=13, block_kv=9),
    iomodel.Documents([3, 17, 1, 29, 10]),
    iomodel.Documents([3, 17, 1, 29, 10], causal=True),
]


@pytest.mark.parametrize("mask", DATA, ids=lambda mask: type(mask).__name__)
@pytest.mark.parametrize("name", ["flash1", "flash2"])
def test_masks_given_by_data(name: str, mask: Any) -> None:
    kv_len = 60 if isinstance(mask, iomodel.Documents) else 61
    sizes = {"block_q": np.array([[1], [7], [16], [100]]), "block_kv": np.array([1, 9, 13, 61])}
    arguments = {"q_len": 60, "kv_len": kv_len, "head_dim": np.array([[[4]], [[8]]]), "mask": mask, **sizes}
    found = same(name, {**arguments, "heads": 4, "kv_heads": np.array([4, 2, 1, 4]), "packed": True}, most=12)
    assert found.shape == (2, 4, 4)
    same(name, {**arguments, "q_len": np.full(4, 60), "kv_len": np.full((4, 1), kv_len)}, most=4)


MANY = 100_000


def many(seed: int) -> dict[str, Any]:
    """Random calls of the sizes in use, with extremes among them."""
    draw = np.random.default_rng(seed)
    kv_heads = draw.integers(1, 9, MANY)
    lengths = [2 ** draw.uniform(0, 20, MANY) for _ in range(2)]
    fields: dict[str, Any] = {
        "batch": draw.integers(1, 65, MANY),
        "heads": kv_heads * draw.integers(1, 9, MANY),
        "kv_heads": kv_heads,
        "q_len": lengths[0].astype(np.int64),
        "kv_len": lengths[1].astype(np.int64),
        "head_dim": draw.integers(1, 257, MANY),
        "value_dim": draw.integers(1, 257, MANY),
        "block_q": draw.integers(1, 300, MANY),
        "block_kv": draw.integers(1, 300, MANY),
    }
    return fields


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_many_points_against_the_scalar_formulas(mask: str) -> None:
    fields = many(seed=len(mask))
    found = cost_array("flash2", **fields, mask=mask)
    tally = BoundCall.bind("flash2", iomodel.Attention(q_len=1, head_dim=1, mask=mask), {}).compiled
    inputs = [str(symbol) for symbol in tally.compiled.compiled.inputs]
    letters = {"B": "batch", "H": "heads", "H_kv": "kv_heads", "N_q": "q_len", "N_k": "kv_len", "d": "head_dim"}
    letters |= {"d_v": "value_dim", "B_r": "block_q", "B_c": "block_kv"}
    fixed = {"G": fields["heads"] // fields["kv_heads"], "e": 2, "b_kv": 64, "p": 1, "W_l": 0, "W_r": 0, "n_dQ": 1}
    columns = [np.broadcast_to(fixed[i] if i in fixed else fields[letters[i]], MANY).tolist() for i in inputs]
    scalar = tally.compiled.compiled.scalars
    rows = np.array([scalar(*point) for point in zip(*columns, strict=True)], dtype=object)
    values = tally.split(list(rows.T))
    for tensor, column in zip(tally.formulas.reads, values.reads, strict=True):
        assert np.array_equal(whole(found.reads[tensor], (MANY,)), column)
    for tensor, column in zip(tally.formulas.writes, values.writes, strict=True):
        assert np.array_equal(whole(found.writes[tensor], (MANY,)), column)
    for quantity, column in zip(SUMS, values.sums, strict=True):
        assert np.array_equal(whole(getattr(found, quantity), (MANY,)), column), quantity
    for quantity, column in zip(("footprint_elements", "footprint_bytes"), values.peaks, strict=True):
        assert np.array_equal(whole(getattr(found, quantity), (MANY,)), column), quantity
    assert np.array_equal(found.peak_hbm_bytes, reduce(np.maximum, values.allocated_bytes))


def by_hand(fields: dict[str, int], causal: bool) -> int:
    """Traffic of flash2 in bf16 [B], by a loop over the query tiles: no line is shared with the formulas."""
    q_len, kv_len, d, d_v = (fields[name] for name in ("q_len", "kv_len", "head_dim", "value_dim"))
    u, v, off = fields["block_q"], fields["block_kv"], fields["kv_len"] - fields["q_len"]
    elements = q_len * d + q_len * d_v  # Q and O
    for first in range(0, q_len, u):
        seen = min(kv_len, max(0, min(first + u, q_len) + off)) if causal else kv_len
        if seen == 0:
            elements -= d * (min(first + u, q_len) - first)  # rows of Q that nobody asks for
        streamed = min(kv_len, -(-seen // v) * v)
        elements += streamed * (d + d_v)
    return fields["batch"] * fields["heads"] * (2 * elements + 4 * q_len)


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_some_points_against_a_loop_over_tiles(mask: str) -> None:
    fields = many(seed=7)
    fields = {name: column[:3000] for name, column in fields.items()}
    fields["q_len"] %= 3000
    fields["q_len"] += 1
    found = cost_array("flash2", **fields, mask=mask).hbm_bytes
    for i in range(3000):
        point = {name: int(column[i]) for name, column in fields.items()}
        assert found[i] == by_hand(point, mask == "causal"), point


@pytest.mark.parametrize("mask", ["full", "causal", BANDS[0]], ids=str)
@pytest.mark.parametrize("name", ["flash1", "flash2", "split_kv"])
def test_the_symbolic_formula_says_the_same(name: str, mask: Any) -> None:
    arguments: dict[str, Any] = {"q_len": np.array([9, 70]), "kv_len": np.array([[33], [64]]), "mask": mask}
    arguments |= {"heads": 6, "kv_heads": 2, "head_dim": 8, "value_dim": np.array([5, 3])}
    arguments |= {"block_q": 4, "block_kv": np.array([7, 16])} | ({"splits": 3} if name == "split_kv" else {})
    found = cost_array(name, **arguments)
    formula = iomodel.expressions(name, mask)
    for index in ((0, 0), (1, 1)):
        point = at_point(arguments, index, found.shape)
        symbols = {BY_NAME[field]: Integer(value) for field, value in point.items()}
        for quantity in ("hbm_bytes", "footprint_bytes"):
            expression = getattr(formula, quantity)
            assert getattr(found, quantity)[index] == expression.xreplace(symbols)
            assert getattr(found, quantity)[index] == iomodel.theory.evaluate(expression, point)


def at_point(arguments: dict[str, Any], index: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, int]:
    """The value of every symbol at one element."""
    columns = {name: np.asarray(value, dtype=object) for name, value in arguments.items() if name != "mask"}
    point = {name: int(np.broadcast_to(column, shape)[index]) for name, column in columns.items()}
    fields = {name: value for name, value in point.items() if name in iomodel.Attention.model_fields}
    workload = iomodel.Attention(**fields, mask=arguments["mask"])
    return {**workload.numbers, **{name: value for name, value in point.items() if name not in fields}}


# Laws.


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("variant", FORWARD, ids=str)
def test_traffic_is_at_least_compulsory(variant: Variant, mask: str) -> None:
    draw = np.random.default_rng(11)
    q_len, kv_heads, group = draw.integers(1, 3000, 300), draw.integers(1, 5, 300), draw.integers(1, 5, 300)
    fields: dict[str, Any] = {"batch": 2, "q_len": q_len, "kv_len": draw.integers(q_len, 4000), "kv_heads": kv_heads}
    fields |= {"heads": kv_heads * group, "head_dim": draw.integers(1, 200, 300), "value_dim": 64}
    sizes = {name: draw.integers(1, 300, 300) for name in variant.tiles}
    found = cost_array(variant.algorithm, **fields, **sizes, **variant.options, mask=mask)
    queries, keys = fields["heads"] * q_len, fields["kv_heads"] * fields["kv_len"]  # every row takes part
    assert np.all(found.hbm_bytes >= 2 * 2 * (queries + keys) * (fields["head_dim"] + 64))


@pytest.mark.parametrize("mask", ["full", "causal", iomodel.Window(left=300, right=0)], ids=str)
@pytest.mark.parametrize("name", ["flash2", "tiled_query"])
def test_a_query_tile_twice_as_large_moves_no_more(name: str, mask: Any) -> None:
    lengths = np.random.default_rng(5).integers(1, 5000, 200)
    sizes = 2 ** np.arange(9)[:, None]
    found = cost_array(name, q_len=lengths, head_dim=64, mask=mask, block_q=sizes, block_kv=16)
    assert np.all(np.diff(found.hbm_bytes, axis=0) <= 0)


def test_traffic_grows_with_every_length() -> None:
    lengths = np.arange(1, 2000)
    for mask in ("full", "causal"):
        found = cost_array("flash2", q_len=lengths, head_dim=64, mask=mask, block_q=48, block_kv=32)
        assert np.all(np.diff(found.hbm_bytes) > 0)
        assert np.all(found.useful_flops <= found.flops)


def test_batch_and_heads_multiply() -> None:
    point = {"q_len": np.arange(1, 300), "head_dim": 64, "mask": "causal", "block_q": 64, "block_kv": 32}
    one, many_ = cost_array("flash2", **point), cost_array("flash2", batch=3, heads=5, **point)
    for quantity in COUNTS:
        factor = 1 if quantity.startswith("footprint") else 15
        assert np.array_equal(getattr(many_, quantity), factor * getattr(one, quantity)), quantity
