"""Options that count what the source of a kernel does: reference kernels that do so compute attention, and count it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from iomodel.errors import InputError, UnknownNameError
from iomodel.nests.feature_names import APART, AS_WRITTEN, BAND_ONLY, default_of, other_of
from iomodel.testing.machine import Run
from iomodel.workloads.masks.tabulated import Tabulated
from tests.laws import test_reference_backward as gradients
from tests.laws import test_reference_features as outputs
from tests.laws.test_counts import measured, predicted
from tests.reference.written import PLAIN, Written
from tests.support.strategies import EXACT, VARIANTS, Case, Variant, cases, fraction_of_examples, switched_on


@dataclass(frozen=True)
class Option:
    """An option as written of an algorithm in a direction."""

    algorithm: str
    direction: str
    name: str

    def __str__(self) -> str:
        return f"{self.algorithm} {self.direction} {self.name}"


OPTIONS = [
    Option(name, way, option)
    for name in EXACT
    for way in algorithm(name).directions
    if way != "both"
    for option in algorithm(name).written(way)
]
each_option = pytest.mark.parametrize("option", OPTIONS, ids=str)
Attention, Window = iomodel.Attention, iomodel.Window


def written(draw: Callable[..., Any], name: str, direction: str, masked: bool) -> Written:
    """Some of the options of an algorithm; `masked`: under a mask given element by element."""
    names = [option for option in algorithm(name).written(direction) if not (masked and option in BAND_ONLY)]
    chosen = draw(st.sets(st.sampled_from(names), max_size=4)) if names else set()
    return Written(**switched_on(chosen))


@pytest.mark.parametrize("name", outputs.FEATURED)
@given(data=st.data())
def test_it_computes_attention(name: str, data: st.DataObject) -> None:
    call, chosen = data.draw(outputs.calls(name)), data.draw(outputs.options(name))
    as_read = written(data.draw, name, "forward", call.seen is not None)
    extras = call.extras
    if as_read.bias_vector and extras.bias is not None:
        of_keys = extras.bias[:, :, 0]
        call = replace(call, extras=replace(extras, bias=np.repeat(of_keys[:, :, None], call.shape.q_len, axis=2)))
        extras = replace(extras, bias=of_keys)
    if as_read.value_slabs:
        chosen |= {"block_value": data.draw(st.integers(1, 6))}
    run = replace(call, extras=extras).run(name, **chosen, written=as_read)
    output, lse, _ = call.dense()
    np.testing.assert_allclose(run.O, output, rtol=1e-9, atol=1e-11)
    if run.LSE is not None:
        np.testing.assert_allclose(run.LSE, lse, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", gradients.TILED)
@given(data=st.data(), shape=gradients.shapes())
def test_it_computes_the_gradients(name: str, data: st.DataObject, shape: gradients.Shape) -> None:
    as_read = written(data.draw, name, "backward", "seen" in shape.mask)
    told = shape
    if as_read.bias_vector and shape.extras.bias is not None:
        of_keys = shape.extras.bias[:, :, 0]
        whole = np.repeat(of_keys[:, :, None], shape.q_len, axis=2)
        shape = replace(shape, extras=replace(shape.extras, bias=whole))
        told = replace(shape, extras=replace(shape.extras, bias=of_keys))
    run: Run = gradients.KERNELS[name](
        *shape.tensors(), shape.saved(), **shape.mask, extras=told.extras,
        **data.draw(gradients.options(name)), written=as_read,
    )  # fmt: skip
    for output, gradient in shape.gradients().items():
        np.testing.assert_allclose(run.outputs[output], gradient, rtol=1e-9, atol=1e-11)


@st.composite
def with_option(draw: st.DrawFn, option: Option) -> Case:
    """A case with the option, where it has a meaning."""
    variants = [v for v in VARIANTS if (v.algorithm, v.direction) == (option.algorithm, option.direction)]
    variant: Variant = draw(st.sampled_from(variants))
    case = draw(cases(variant).filter(lambda case: not isinstance(case.workload.mask, Tabulated)))
    tiles = dict(case.tiles)
    if option.name == "value_slabs":
        tiles["block_value"] = draw(st.integers(1, 6))
    if option.name == "bias_vector":
        case = replace(case, workload=case.workload.model_copy(update={"bias": True}))
    apart = {*APART.get(option.name, ()), *(name for name, others in APART.items() if option.name in others)}
    options = {name: value for name, value in case.options.items() if name not in apart}
    return replace(case, tiles=tiles, options={**options, option.name: other_of(option.name)})


@each_option
@fraction_of_examples(5)
@given(data=st.data())
def test_each_option_counts_what_the_kernel_counts(option: Option, data: st.DataObject) -> None:
    case = data.draw(with_option(option))
    assert predicted(case) == measured(case, case.run())


TELLING = {
    "unskipped_window": Attention(q_len=9, kv_len=9, head_dim=2, mask=Window(left=1, right=0)),
    "padded_queries": Attention(q_len=5, kv_len=9, head_dim=2, mask=Window(right=0, align="top-left")),
    "masked_loads": Attention(q_len=6, kv_len=9, head_dim=2, mask="causal"),
    "order": Attention(q_len=9, head_dim=2),
    "bias_vector": Attention(q_len=5, kv_len=9, head_dim=2, bias=True),
    "eager_loads": Attention(q_len=9, kv_len=9, head_dim=2, mask=Window(left=0, right=0, align="top-left")).model_copy(
        update={"q_len": 12, "kv_len": 7}
    ),
}
"""Calls in which an option changes a count."""


@each_option
def test_each_option_changes_a_count(option: Option) -> None:
    call = TELLING.get(option.name, Attention(q_len=5, kv_len=9, head_dim=2, mask="causal"))
    if option.name == "eager_loads" and (option.direction == "backward" or option.algorithm == "flash1"):
        # key tiles that no query sees
        call = call.model_copy(update={"q_len": 7, "kv_len": 12})
    call = call.model_copy(update={"direction": option.direction})
    tiles = {"block_q": 4, "block_kv": 2}
    options: dict[str, Any] = {}
    if option.algorithm == "split_kv":
        options = {"splits": 1 if option.name == "combine_one_split" else 4}
    if option.algorithm in {"standard", "eager"}:
        tiles = {}
    if option.algorithm == "two_products":
        gemms = (1, 2) if option.direction == "forward" else (3, 4, 5, 6)
        tiles = {f"gemm{number}_{side}": size for number in gemms for side, size in (("m", 4), ("n", 2))}
    if option.name == "drop_empty_splits":
        call = call.model_copy(update={"kv_len": 10})
    slab = {"block_value": 1} if option.name == "value_slabs" else {}
    plain = iomodel.cost(option.algorithm, call, tiles, **options)
    other = iomodel.cost(option.algorithm, call, tiles | slab, **options, **{option.name: other_of(option.name)})
    assert (other.reads, other.writes) != (plain.reads, plain.writes)
    assert dict(other.options) == {**plain.options, option.name: other_of(option.name)}
    assert iomodel.cost(option.algorithm, call, tiles, **options, **{option.name: default_of(option.name)}) == plain


def test_a_reference_kernel_knows_every_option() -> None:
    known = {*Written.__dataclass_fields__}
    assert {option.name for option in OPTIONS} == known
    assert {*AS_WRITTEN} <= known
    assert vars(PLAIN) == {name: default_of(name) for name in known}


CALL = Attention(q_len=7, kv_len=10, head_dim=4, mask="causal")
TILES = {"block_q": 4, "block_kv": 4}


def moved(name: str, call: Any = CALL, tiles: Any = TILES, **options: Any) -> dict[str, int]:
    """Reads and writes by tensor."""
    cost = iomodel.cost(name, call, tiles, **options)
    return {**{f"r {k}": n for k, n in cost.reads.items()}, **{f"w {k}": n for k, n in cost.writes.items()}}


def test_statistics_of_whole_tiles_by_hand() -> None:
    assert moved("flash2")["w LSE"] == 7
    assert moved("flash2", padded_statistics=True)["w LSE"] == 8
    back = CALL.model_copy(update={"direction": "backward"})
    # Key tiles 0-3 and 4-7 are seen by both query tiles, 8-9 by the second: five visits of 4 rows.
    assert moved("flash2", back, padded_statistics=True)["r LSE"] == 5 * 4
    assert moved("flash2", back, padded_statistics=True)["w D"] == 8


def test_loads_masked_at_the_causal_edge_by_hand() -> None:
    # Queries 0-3 see keys 0-6, queries 4-6 keys 0-9.
    assert moved("flash2")["r K"] == (8 + 10) * 4
    assert moved("flash2", masked_loads=True)["r K"] == (7 + 10) * 4


def test_rows_that_pad_a_tile_see_keys_by_hand() -> None:
    call = Attention(q_len=5, kv_len=12, head_dim=1, mask=Window(right=0, align="top-left"))
    # Queries 0-3 see keys 0-3; query 4 sees keys 0-4, rows 5-7 would see keys up to 7; a tile has two keys.
    tiles = {"block_q": 4, "block_kv": 2}
    assert moved("flash2", call, tiles)["r K"] == 4 + 6
    assert moved("flash2", call, tiles, padded_queries=True)["r K"] == 4 + 8


def test_a_window_that_is_masked_but_not_skipped_by_hand() -> None:
    call = Attention(q_len=8, head_dim=1, mask=Window(left=1, right=0))
    # Queries 0-3 see keys 0-3; queries 4-7 see keys 3-7: tiles 0-3 and 4-7 both hold some of these.
    tiles = {"block_q": 4, "block_kv": 2}
    assert moved("flash2", call, tiles)["r K"] == 4 + 6
    assert moved("flash2", call, tiles, unskipped_window=True)["r K"] == 4 + 8


def test_splits_by_hand() -> None:
    call, tiles = Attention(q_len=3, kv_len=10, head_dim=4), {"block_q": 2, "block_kv": 2}
    # Five key tiles in four splits: two each, so that the third has one and the fourth none.
    whole = moved("split_kv", call, tiles, splits=4)
    fewer = moved("split_kv", call, tiles, splits=4, drop_empty_splits=True)
    assert (whole["w O_acc"], fewer["w O_acc"], fewer["r O_acc"]) == (4 * 12, 3 * 12, 3 * 12)
    assert (whole["r LSE_acc"], fewer["r LSE_acc"]) == (12, 9)
    eager = moved("split_kv", call, tiles, splits=4, eager_loads=True)
    assert (whole["r Q"], eager["r Q"]) == (3 * 12, 4 * 12)
    one = moved("split_kv", call, tiles, splits=1, combine_one_split=True, two_statistics=True)
    assert (one["w m_acc"], one["r l_acc"], one["w O_acc"], one["w LSE"]) == (3, 3, 12, 3)
    assert iomodel.cost("split_kv", call, tiles, splits=4, drop_empty_splits=True).peak_hbm_elements == (
        iomodel.cost("split_kv", call, tiles, splits=4).peak_hbm_elements
    )


def test_keys_up_and_down_by_hand() -> None:
    call = Attention(q_len=7, kv_len=9, head_dim=1)
    # Three tiles of 3, 3, 1 queries over tiles of 4, 4, 1 keys: up 9; down 9 but the last 1; up 9 but the first 4.
    turning = moved("flash2", call, {"block_q": 3, "block_kv": 4}, order="serpentine")
    assert (turning["r K"], turning["r V"], turning["r Q"], turning["w O"]) == (9 + 8 + 5, 22, 7, 7)
    # Causal: queries 0-3 see keys 0-6, queries 4-6 keys 0-9, in tiles of 4; the walks end at 7 and begin at 9.
    assert moved("flash2", order="serpentine")["r K"] == (8 + 10) * 4
    # In tiles of 5 the first walk ends, and the second begins, at keys 5-9.
    assert moved("flash2", tiles={"block_q": 4, "block_kv": 5}, order="serpentine")["r K"] == (10 + 5) * 4


def test_slabs_of_columns_by_hand() -> None:
    call = Attention(q_len=6, kv_len=4, head_dim=3, value_dim=5)
    slabs = moved("flash2", call, {"block_q": 3, "block_kv": 2, "block_value": 2}, value_slabs=True)
    # Three slabs of 2, 2 and 1 columns, each of which reads Q and K again and stores the statistics.
    assert slabs == {"r Q": 3 * 18, "r K": 3 * 2 * 12, "r V": 2 * 20, "w O": 30, "w LSE": 18}


def test_a_row_of_a_bias_for_each_head_by_hand() -> None:
    call = Attention(q_len=4, kv_len=6, head_dim=2, heads=6, kv_heads=2, bias=True)
    tiles = {"block_q": 2, "block_kv": 3}
    assert moved("flash2", call, tiles, bias_vector=True)["r bias"] == 6 * 2 * 6
    # Packed, 12 rows of 3 heads in tiles of 2: each has two heads.
    assert moved("flash2", call, tiles, bias_vector=True, packed=True)["r bias"] == 2 * 6 * 2 * 6


def test_heads_of_a_packed_tile_by_hand() -> None:
    call = Attention(heads=5, kv_heads=1, q_len=4, kv_len=16, head_dim=8, sinks=True, alibi=True)
    for block_q, loads in ((1, 20), (3, 6 * 3 + 2), (5, 20), (8, 2 * 5 + 4), (32, 5)):
        reads = moved("flash2", call, {"block_q": block_q, "block_kv": 4}, packed=True)
        assert (reads["r sinks"], reads["r slopes"]) == (loads, loads)


def test_scales_lie_in_the_pages_of_their_keys() -> None:
    call = Attention(q_len=1, kv_len=10, head_dim=8, kv_dtype="fp8", kv_scales="token", page_size=4)
    reads = moved("flash2", call, {"block_q": 1, "block_kv": 4})
    assert (reads["r K"], reads["r K_scale"], reads["r V_scale"]) == (12 * 8, 12, 12)
    assert moved("flash2", call, {"block_q": 1, "block_kv": 4}, masked_loads=True)["r K_scale"] == 10


def test_an_option_without_a_meaning_is_refused() -> None:
    for name, option in (
        ("tiled_query", "padded_statistics"),
        ("standard", "masked_loads"),
        ("flash1", "masked_loads"),
    ):
        with pytest.raises(InputError, match=f"{option}: True given; allowed: False, because {name} "):
            iomodel.expressions(name, **{option: True})
    with pytest.raises(InputError, match="masked_loads: 1 given; allowed: bool"):
        iomodel.expressions("flash2", masked_loads=1)
    with pytest.raises(UnknownNameError, match="drop_empty_splits"):
        iomodel.expressions("flash2", drop_empty_splits=True)
    for option in BAND_ONLY:
        with pytest.raises(InputError, match=f"{option}: {other_of(option)!r} given for a mask given by data"):
            iomodel.expressions("flash2", iomodel.Documents([3, 4]), **{option: other_of(option)})
    with pytest.raises(UnknownNameError, match="order: 'backwards' is unknown; allowed: plain, serpentine"):
        iomodel.expressions("flash2", order="backwards")
    for other in APART["order"]:
        with pytest.raises(InputError, match=f"order: 'serpentine' given with {other}; allowed: 'plain'"):
            iomodel.expressions("flash2", order="serpentine", bias=True, **{other: True})
