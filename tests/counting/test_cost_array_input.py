"""Whatever is wrong with the arguments of `cost_array` is said in one line that names the field, before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.counting.cost_array import cost_array
from tests.support.array_calls import same
from tests.support.inside import LARGEST

GOOD: dict[str, Any] = {"q_len": np.array([64, 100]), "head_dim": 8, "block_q": 16, "block_kv": 16}
FIELDS = ["q_len", "kv_len", "head_dim", "value_dim", "batch", "heads", "kv_heads", "block_q", "block_kv", "page_size"]

BAD: list[Any] = [
    1.5, 2.0, 0, -1, True, "7", b"x", float("nan"), {}, range, LARGEST + 1, 2**63, 10**30, 1 + 0j,
    [1.0, 2.0], [1, 2.5], [1, 0], [1, -2], [True, True], [1, None], ["1", "2"], [[1, 2], [3]], [1, 10**30],
    np.array([1.0]), np.array([True]), np.array([1, 0]), np.array([-1, 5]), np.array([1, None]), np.array("7"),
    np.array([2**63, 1], dtype=np.uint64), np.array([2**64 - 1], dtype=np.uint64), np.array([1 + 0j]),
    np.array([1], dtype="datetime64[s]"), np.array([1], dtype="timedelta64[s]"), np.float64(3), np.bool_(True),
    np.array([LARGEST + 1, 1]), np.array([1, True], dtype=object), np.array([1, 2.0], dtype=object),
    np.ma.masked_array([1, 2], mask=[True, False]),
]  # fmt: skip


def refused(name: str = "flash2", **arguments: Any) -> str:
    """The one line with which a call is refused."""
    with pytest.raises(iomodel.IOModelError) as caught:
        cost_array(name, **arguments)
    text = str(caught.value)
    assert text
    assert "\n" not in text
    return text


@pytest.mark.parametrize("value", BAD, ids=repr)
@pytest.mark.parametrize("field", FIELDS)
def test_what_is_no_positive_integer_is_refused(field: str, value: Any) -> None:
    text = refused(**{**GOOD, field: value})
    assert text.startswith(f"{field}: ")


@pytest.mark.parametrize("field", ["q_len", "head_dim", "block_q", "block_kv", "batch", "heads"])
def test_what_must_be_there_cannot_be_none(field: str) -> None:
    assert refused(**{**GOOD, field: None}).startswith(f"{field}: ")


@pytest.mark.parametrize("field", ["block_q", "block_kv"])
def test_a_missing_tile_is_named(field: str) -> None:
    text = refused(**{name: value for name, value in GOOD.items() if name != field})
    assert text.startswith(f"{field}: flash2 needs this tile")


@pytest.mark.parametrize("field", ["q_len", "head_dim"])
def test_a_missing_length_is_named(field: str) -> None:
    with pytest.raises((iomodel.InputError, TypeError), match=field):
        cost_array("flash2", **{name: value for name, value in GOOD.items() if name != field})


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("block_k", "block_kv"), ("qlen", "q_len"), ("head_dims", "head_dim"), ("pagesize", "page_size"), ("lsee", "lse")],
)
def test_an_unknown_name_is_named_with_its_neighbour(wrong: str, near: str) -> None:
    text = refused(**GOOD, **{wrong: 3})
    assert repr(wrong) in text
    assert f"did you mean {near!r}" in text


def test_a_tile_of_another_algorithm_is_refused() -> None:
    assert "gemm1_m" in refused(**GOOD, gemm1_m=4)
    assert "bwd_block_q" in refused(**GOOD, bwd_block_q=4)
    assert "splits" in refused(**GOOD, splits=4)
    assert "dq_buffers" in refused(**GOOD, dq_buffers=4)
    assert "deterministic" in refused(**GOOD, deterministic=True)


def test_widths_are_checked() -> None:
    window = iomodel.Window(left=3, right=None)
    assert refused(**GOOD, mask=window, window_left=np.array([1, -1])).startswith("window_left: -1 given")
    assert refused(**GOOD, mask=window, window_left=1.5).startswith("window_left: ")
    assert refused(**GOOD, mask=window, window_right=5).startswith("window_right: ")
    assert refused(**GOOD, mask="causal", window_left=5).startswith("window_left: ")
    text = refused(**GOOD, mask=window, window_left=np.array([1, 2, 3]))
    assert "window_left" in text
    assert "(3,)" in text


def test_words_are_checked() -> None:
    assert refused("flash", **GOOD).startswith("algorithm: 'flash' is unknown; did you mean 'flash")
    assert refused(**GOOD, dtype="bf8").startswith("dtype: 'bf8' is unknown; did you mean ")
    assert "'bf8'" in refused(**GOOD, dtype=np.array(["bf16", "bf8"]))
    assert refused(**GOOD, dtype=[2, 4]).startswith("dtype: ")
    for wrong in (2, None, ["bf16", None], [["bf16"], []], [[], [0]], {"bf16"}, b"bf16", np.array([b"bf16"])):
        assert refused(**GOOD, dtype=wrong).startswith("dtype: ")
    assert refused(**GOOD, kv_dtype=[["bf16"], []]).startswith("kv_dtype: ")
    assert refused(**GOOD, kv_dtype=["fp8", "nf4"]).startswith("kv_dtype: ")
    assert refused(**GOOD, mask="casual").startswith("mask: 'casual' is unknown; did you mean 'causal'")
    assert refused(**GOOD, direction="back").startswith("direction: 'back' is unknown")
    assert "forward" in refused("small_cache", **GOOD, direction="backward")


@pytest.mark.parametrize("value", [1, 0, "yes", None, np.array([True, False]), 1.0], ids=repr)
@pytest.mark.parametrize("field", ["lse", "packed", "bias", "latent"])
def test_a_switch_is_true_or_false(field: str, value: Any) -> None:
    assert refused(**GOOD, **{field: value}).startswith(f"{field}: ")


@pytest.mark.parametrize("value", [0, -1.0, "x", float("nan"), True], ids=repr)
def test_a_real_number_is_checked(value: Any) -> None:
    assert refused(**GOOD, softcap=value).startswith("softcap: ")
    assert refused(**GOOD, dropout=1.0).startswith("dropout: ")


def test_arrays_that_do_not_broadcast_are_named_with_their_shapes() -> None:
    text = refused(**{**GOOD, "q_len": np.arange(1, 4), "kv_len": np.arange(1, 5)})
    for part in ("q_len", "kv_len", "(3,)", "(4,)"):
        assert part in text
    text = refused(**{**GOOD, "q_len": np.ones((2, 3), dtype=int), "block_kv": np.ones((2,), dtype=int)})
    for part in ("q_len", "block_kv", "(2, 3)", "(2,)"):
        assert part in text
    text = refused(**{**GOOD, "dtype": np.array(["bf16", "fp8", "fp32"])})
    for part in ("q_len", "dtype", "(2,)", "(3,)"):
        assert part in text


def test_key_heads_that_do_not_divide_are_found() -> None:
    heads, kv_heads = np.array([8, 16, 16, 12, 24]), np.array([8, 8, 4, 5, 24])
    text = refused(q_len=64, head_dim=8, heads=heads, kv_heads=kv_heads, block_q=16, block_kv=16)
    assert text.startswith("kv_heads: 5 ")
    assert "12" in text
    assert "3" in text.replace("12", "")  # where
    text = refused(
        q_len=64, head_dim=8, heads=np.array([[8], [9]]), kv_heads=np.array([1, 3, 2]), block_q=1, block_kv=1
    )
    assert text.startswith("kv_heads: 3 does not divide")
    assert "(0, 1)" in text or "[0, 1]" in text


def test_the_place_of_a_wrong_element_in_a_long_array_is_named() -> None:
    q_len = np.full(50_000, 64)
    q_len[41_234] = 0
    text = refused(**{**GOOD, "q_len": q_len})
    assert text.startswith("q_len: ")
    assert "41234" in text.replace(",", "").replace("_", "")


def test_splits_beyond_the_tiles_are_refused() -> None:
    point = {"q_len": 1, "kv_len": np.array([4096, 128]), "head_dim": 8, "block_q": 1, "block_kv": 64}
    same("split_kv", {**point, "splits": np.array([64, 2])})
    assert refused("split_kv", **point, splits=3).startswith("splits: 3 given")
    assert refused("split_kv", **point, splits=np.array([3, 3])).startswith("splits: 3 given")
    assert refused("split_kv", **point, splits=np.array([0, 1])).startswith("splits: ")


def test_what_a_call_refuses_an_array_of_calls_refuses() -> None:
    one = {name: int(np.max(value)) for name, value in GOOD.items()}
    fields = {name: value for name, value in one.items() if not name.startswith("block")}
    for more in (
        {"latent": True, "heads": 4, "kv_heads": 2},
        {"latent": True, "kv_heads": 1, "value_dim": 9},
        {"latent": True, "kv_scales": "head"},
        {"page_size": 16, "direction": "backward"},
        {"kv_dtype": "fp8", "direction": "backward"},
        {"page_size": 16, "mask": iomodel.Documents([100])},
        {"mask": iomodel.Documents([99])},
        {"mask": iomodel.BlockMask([[1]], 50, 100)},
        {"kv_scales": "row"},
    ):
        with pytest.raises(iomodel.IOModelError):
            iomodel.cost("flash2", iomodel.Attention(**{**fields, **more}), {"block_q": 16, "block_kv": 16})
        refused(**{**GOOD, **more})
    values = {"latent": True, "kv_heads": 1, "value_dim": np.array([8, 9])}
    assert refused(**{**GOOD, **values}).startswith("value_dim: 9 given")
    assert refused(**{**GOOD, "latent": True, "heads": 4, "kv_heads": np.array([1, 2])}).startswith("kv_heads: 2 ")


def test_data_masks_must_fit_every_element() -> None:
    documents = iomodel.Documents([40, 60])
    same("flash2", {**GOOD, "q_len": np.array([100, 100]), "mask": documents})
    assert refused(**GOOD, mask=documents).startswith("mask: ")


def test_a_mask_that_is_an_array_of_lengths_is_no_mask() -> None:
    for mask in (np.array([1, 2]), ["causal", 3], None, 5):
        assert refused(**GOOD, mask=mask).startswith("mask: ")


junk = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3), st.binary(max_size=2),
    st.lists(st.integers(-3, 5) | st.floats() | st.none() | st.text(max_size=2), max_size=4),
    st.lists(st.lists(st.integers(-1, 3), max_size=2), max_size=3),
    st.sampled_from([object(), {}, {"a": 1}, (), set(), iomodel.Window(left=1), np.array([]), np.array(None)]),
)  # fmt: skip
EVERY = [
    *FIELDS,
    "backend",
    "dtype",
    "kv_dtype",
    "mask",
    "direction",
    "kv_scales",
    "softcap",
    "dropout",
    "bias",
    "lse",
    "packed",
]


@given(field=st.sampled_from(EVERY), value=junk)
def test_junk_is_answered_or_refused_in_one_line(field: str, value: Any) -> None:
    said = ""
    try:
        found = cost_array("flash2", **{**GOOD, field: value})
        assert found.hbm_bytes.shape == found.shape
    except iomodel.IOModelError as error:
        said = str(error)
    assert "\n" not in said
    assert not said or field in said


@given(name=junk)
def test_junk_for_an_algorithm_is_refused(name: Any) -> None:
    with pytest.raises(iomodel.IOModelError, match=r"^algorithm: "):
        cost_array(name, **GOOD)


def test_a_list_of_integers_is_never_made_of_floats() -> None:
    for listed in ([np.uint64(2**53 + 1), np.int64(3)], [np.uint64(2**53 + 1), 3]):
        found = same("flash2", {"q_len": listed, "head_dim": 1, "block_q": 2**53, "block_kv": 2**53})
        assert found.reads["Q"][0] == 2**53 + 1


@pytest.mark.parametrize("make", [np.int8, np.int16, np.uint8])
def test_narrow_integers_meet_larger_ones(make: Any) -> None:
    point = {"q_len": 100, "head_dim": 64, "block_q": 64, "block_kv": 70_000}
    same("flash2", {**point, "heads": 2**17, "kv_heads": np.array([1, 2], dtype=make), "packed": True})
    keys = np.array([100, 120], dtype=make)
    same("split_kv", {**point, "q_len": 1, "kv_len": keys, "splits": [1, 1]})
    same("split_kv", {**point, "q_len": 1, "kv_len": 70_000, "block_kv": keys, "splits": 2})


def test_more_axes_than_numpy_broadcasts_are_refused() -> None:
    assert refused(**{**GOOD, "q_len": np.ones((1,) * 33, dtype=int)}).startswith("q_len: an array of 33 axes given")
