"""Workloads: defaults, limits, and errors that name the field."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import iomodel
from tests.support.inside import WORKLOAD, shown


def test_defaults_follow_heads_q_len_and_head_dim() -> None:
    w = iomodel.Attention(heads=4, q_len=7, head_dim=3)
    assert (w.batch, w.kv_heads, w.kv_len, w.value_dim, w.dtype, w.mask) == (1, 4, 7, 3, "bf16", "full")


def test_numbers_stand_in_the_order_of_the_alphabet() -> None:
    w = iomodel.Attention(q_len=7, head_dim=3, mask=iomodel.Window(left=5, right=None))
    assert list(w.numbers) == [entry.name for entry in WORKLOAD]
    assert w.point == tuple(w.numbers.values())
    assert (w.numbers["window_left"], w.numbers["window_right"]) == (5, 0)


@pytest.mark.parametrize(
    ("dtype", "size"), [("fp32", 4), ("tf32", 4), ("fp16", 2), ("bf16", 2), ("fp8", 1), ("int8", 1)]
)
def test_element_sizes(dtype: Any, size: int) -> None:
    assert iomodel.Attention(q_len=1, head_dim=1, dtype=dtype).element_size == size


@pytest.mark.parametrize("align", ["bottom-right", "top-left"])
def test_a_window_open_on_both_sides_is_full(align: Any) -> None:
    window, call = iomodel.Window(align=align), {"q_len": 512, "head_dim": 64}
    for mask in (window, {"align": align}):
        assert iomodel.Attention(**call, mask=mask) == iomodel.Attention(**call)
    varlen = {"q_lens": (3, 5), "head_dim": 64}
    assert iomodel.VarlenAttention(**varlen, mask=window) == iomodel.VarlenAttention(**varlen)
    assert iomodel.expressions("flash2", window) == iomodel.expressions("flash2")
    fastest = iomodel.solve("flash2", iomodel.Attention(**call, mask=window), "h100-sxm5")
    assert fastest.tiles == iomodel.solve("flash2", iomodel.Attention(**call), "h100-sxm5").tiles
    for many in (
        lambda **mask: iomodel.estimate_array("linformer", None, "h100-sxm5", **call, **mask),  # full masks only
        lambda **mask: iomodel.solve_array("flash2", None, "h100-sxm5", objective="time", **call, **mask),
    ):
        assert many(mask=window).seconds == many().seconds


def test_numpy_integers_are_integers() -> None:
    w = iomodel.Attention(q_len=np.int64(7), head_dim=np.uint8(3))
    assert w == iomodel.Attention(q_len=7, head_dim=3)
    assert type(w.q_len) is int


def test_frozen_hashable_and_json() -> None:
    w = iomodel.Attention(q_len=7, head_dim=3, mask=iomodel.Window(left=5))
    assert hash(w) == hash(iomodel.Attention(q_len=7, head_dim=3, mask=iomodel.Window(left=5)))
    with pytest.raises(ValueError, match="frozen"):
        w.q_len = 8  # type: ignore[misc]
    assert iomodel.Attention(**json.loads(json.dumps(w.to_dict()))) == w


BAD: list[tuple[dict[str, Any], str]] = [
    ({"q_len": 0}, "q_len: "),
    ({"q_len": -4}, "q_len: -4 given; allowed: at least 1"),
    ({"q_len": 2.5}, "q_len: 2.5 given; allowed: an integer"),
    ({"q_len": 8.0}, "q_len: "),
    ({"q_len": float("nan")}, "q_len: nan given; allowed: an integer"),
    ({"q_len": "8"}, "q_len: '8' given; allowed: an integer"),
    ({"q_len": True}, "q_len: True given; allowed: an integer"),
    ({"q_len": 10**400}, "q_len: "),
    ({"q_len": 10**5000}, "q_len: "),
    ({"q_len": None}, "q_len: "),
    ({"head_dim": None}, "head_dim: "),
    ({"batch": 0}, "batch: "),
    ({"heads": 6, "kv_heads": 4}, "kv_heads: 4 does not divide heads = 6; allowed: a divisor of 6, such as 3"),
    ({"heads": 2, "kv_heads": 4}, "kv_heads: 4 does not divide heads = 2; allowed: a divisor of 2, such as 2"),
    ({"heads": 7, "kv_heads": 10**9}, "kv_heads: 1000000000 does not divide heads = 7"),
    ({"dtype": "bf61"}, "dtype: 'bf61' is unknown; did you mean 'bf16'?"),
    ({"dtype": 16}, "dtype: 16 is unknown"),
    ({"mask": "casual"}, "mask: 'casual' is unknown; did you mean 'causal'?"),
    ({"mask": None}, "mask: None is unknown"),
    ({"mask": {"left": -1}}, "mask: left: "),
    ({"mask": ["causal"]}, "mask: ['causal'] is unknown"),
    ({"mask": max}, "mask: the function max given; allowed: iomodel.torch.mask_of(max, q_len, kv_len)"),
    ({"mask": {"lengths": [8], "left": 3}}, "mask: left: 3 given for an unknown field"),
    ({"mask": {"blocks": [[1]], "block_q": 8}}, "mask: block_kv: not given, but required"),
    ({"mask": iomodel.Documents([3, 4])}, "mask: documents of 7 positions given for q_len = 8 and kv_len = 8"),
    ({"mask": iomodel.Documents([8]), "kv_len": 9}, "mask: documents of 8 positions given for q_len = 8 and kv_l"),
    ({"mask": iomodel.BlockMask([[1, 0]], 8, 8)}, "mask: blocks of shape (1, 2) given; allowed: shape (1, 1)"),
    ({"mask": iomodel.BlockMask([[1]], 8, 4)}, "mask: blocks of shape (1, 1) given; allowed: shape (1, 2)"),
    ({"direction": "sideways"}, "direction: 'sideways' is unknown; allowed: forward, backward, both"),
    ({"direction": None}, "direction: None is unknown"),
    ({"kv_dtype": "int5"}, "kv_dtype: 'int5' is unknown; did you mean 'int8' or 'int4'?"),
    ({"kv_scales": "block"}, "kv_scales: 'block' given; allowed: 'head' or 'token'"),
    ({"kv_scales": True}, "kv_scales: True given; allowed: 'head' or 'token'"),
    ({"page_size": 0}, "page_size: 0 given; allowed: at least 1"),
    ({"page_size": 2.5}, "page_size: 2.5 given; allowed: an integer"),
    ({"page_size": True}, "page_size: True given; allowed: an integer"),
    ({"page_size": 4, "mask": iomodel.Documents([8])}, "page_size: given with mask Documents"),
    ({"page_size": 4, "direction": "backward"}, "page_size: given with direction backward; allowed: only with"),
    ({"kv_scales": "head", "direction": "both"}, "kv_scales: given with direction both"),
    ({"kv_dtype": "fp8", "direction": "backward"}, "kv_dtype: given with direction backward"),
    ({"latent": True, "direction": "backward"}, "latent: given with direction backward"),
    ({"latent": 1}, "latent: 1 given; allowed: True or False"),
    ({"latent": True, "heads": 2, "kv_heads": 2}, "kv_heads: 2 given with latent = True; allowed: 1"),
    ({"latent": True, "value_dim": 5}, "value_dim: 5 given with latent = True; allowed: up to head_dim = 4"),
    ({"latent": True, "kv_scales": "head"}, "kv_scales: given with latent = True"),
    ({"dropout": 1}, "dropout: 1 given; allowed: below 1"),
    ({"dropout": -0.1}, "dropout: -0.1 given; allowed: at least 0"),
    ({"dropout": float("nan")}, "dropout: "),
    ({"dropout": True}, "dropout: True given; allowed: a number"),
    ({"dropout": "0.5"}, "dropout: '0.5' given; allowed: a number"),
    ({"softcap": 0}, "softcap: 0 given; allowed: above 0"),
    ({"softcap": float("inf")}, "softcap: inf given; allowed: a finite number"),
    ({"softcap": True}, "softcap: True given; allowed: a number"),
    ({"bias": 1}, "bias: 1 given; allowed: True or False"),
    ({"alibi": "yes"}, "alibi: 'yes' given; allowed: True or False"),
    ({"sinks": None}, "sinks: None given; allowed: True or False"),
    ({"q_lens": [8]}, "q_lens: [8] given for an unknown field"),
    ({"causal": 1}, "causal: 1 given; allowed: True or False"),
]


@pytest.mark.parametrize(("changes", "says"), BAD, ids=[shown(changes, 50) for changes, _ in BAD])
def test_bad_fields_are_named_in_one_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(iomodel.InputError) as caught:
        iomodel.Attention(**{"q_len": 8, "head_dim": 4, **changes})
    message = str(caught.value)
    assert message.startswith(says)
    assert "\n" not in message
    assert len(message) < 300


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(iomodel.InputError) as caught:
        iomodel.Attention(batch=0, q_len=0, head_dim=0)
    for name in ("batch", "q_len", "head_dim"):
        assert f"{name}: 0 given; allowed: at least 1" in str(caught.value)


VARLEN: list[tuple[dict[str, Any], str]] = [
    ({"q_lens": []}, "q_lens: [] given; allowed: a sequence of positive integers, at least one"),
    ({"q_lens": None}, "q_lens: "),
    ({"q_lens": 5}, "q_lens: 5 given; allowed: a sequence of positive integers, at least one"),
    ({"q_lens": "85"}, "q_lens: '85' given; allowed: a sequence of positive integers"),
    ({"q_lens": [3, 0]}, "q_lens: length 0 given; allowed: lengths from 1"),
    ({"q_lens": [3, 2.5]}, "q_lens: [3, 2.5] given; allowed: a sequence of positive integers, at least one"),
    ({"q_lens": [True, 1]}, "q_lens: [True, 1] given; allowed: a sequence of positive integers, at least one"),
    ({"q_lens": [[3], [4]]}, "q_lens: [[3], [4]] given; allowed: a sequence"),
    ({"q_lens": [[3], [4, 5]]}, "q_lens: [[3], [4, 5]] given; allowed: a sequence"),
    ({"q_lens": [10**18 + 1]}, "q_lens: length 1000000000000000001 given; allowed: lengths from 1 to 10^18"),
    ({"q_lens": [10**30, 1]}, "q_lens: "),
    ({"kv_lens": [3]}, "kv_lens: 1 lengths given, for 2 in q_lens; allowed: one per sequence"),
    ({"kv_lens": [3, 4, 5]}, "kv_lens: 3 lengths given, for 2 in q_lens"),
    ({"kv_lens": [3, -4]}, "kv_lens: length -4 given; allowed: lengths from 1"),
    ({"mask": iomodel.Documents([8])}, "mask: Documents(lengths=(8,), causal=False) given; allowed: full"),
    ({"mask": iomodel.BlockMask([[1]], 8, 8)}, "mask: BlockMask"),
    ({"batch": 2}, "batch: 2 given for an unknown field"),
    ({"q_len": 8}, "q_len: 8 given for an unknown field"),
    ({"heads": 6, "kv_heads": 4}, "kv_heads: 4 does not divide heads = 6"),
    ({"latent": True, "heads": 2, "kv_heads": 2}, "kv_heads: 2 given with latent = True"),
]


@pytest.mark.parametrize(("changes", "says"), VARLEN, ids=[shown(changes, 50) for changes, _ in VARLEN])
def test_bad_sequences_are_named_in_one_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(iomodel.InputError) as caught:
        iomodel.VarlenAttention(**{"q_lens": [8, 3], "head_dim": 4, **changes})
    message = str(caught.value)
    assert message.startswith(says)
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize("given", [[8, 3], (8, 3), np.array([8, 3]), np.array([8, 3], np.uint16), range(8, 2, -5)])
def test_sequences_are_any_integers(given: Any) -> None:
    w = iomodel.VarlenAttention(q_lens=given, head_dim=4)
    assert w == iomodel.VarlenAttention(q_lens=[8, 3], kv_lens=[8, 3], head_dim=4)
    assert hash(w) == hash(iomodel.VarlenAttention(q_lens=[8, 3], head_dim=4))
    assert [type(length) for length in w.q_lens] == [int, int]


def test_a_copy_of_sequences_follows_its_own_lengths() -> None:
    w = iomodel.VarlenAttention(q_lens=[8, 3], head_dim=4)
    tiles = {"block_q": 4, "block_kv": 4}
    before = iomodel.cost("flash2", w, tiles)
    longer = w.model_copy(update={"q_lens": [8, 3, 1], "kv_lens": [8, 3, 90]})
    one = iomodel.cost("flash2", iomodel.Attention(q_len=1, kv_len=90, head_dim=4), tiles)
    assert iomodel.cost("flash2", longer, tiles).hbm_bytes == before.hbm_bytes + one.hbm_bytes


ROUND_TRIPS: list[iomodel.Attention | iomodel.VarlenAttention] = [
    iomodel.Attention(q_len=7, head_dim=3),
    iomodel.Attention(q_len=7, head_dim=3, mask=iomodel.Window(left=2, right=None, align="top-left")),
    iomodel.Attention(q_len=7, kv_len=9, head_dim=3, mask=iomodel.BlockMask([[1, 0, 1], [0, 1, 0]], 4, 4)),
    iomodel.Attention(q_len=8, head_dim=3, mask=iomodel.Documents([3, 5], causal=True)),
    iomodel.Attention(heads=4, kv_heads=2, q_len=7, head_dim=3, kv_dtype="int8", kv_scales="token", page_size=16),
    iomodel.Attention(heads=4, kv_heads=1, q_len=7, head_dim=3, value_dim=2, latent=True, softcap=30, sinks=True),
    iomodel.Attention(q_len=7, head_dim=3, direction="both", dropout=0.1, bias=True, alibi=True),
    iomodel.VarlenAttention(q_lens=[7, 1], kv_lens=[9, 100], head_dim=3, mask="causal", dtype="fp8"),
    iomodel.VarlenAttention(q_lens=np.array([7, 1]), head_dim=3, mask=iomodel.Window(left=2), direction="backward"),
]


@pytest.mark.parametrize("w", ROUND_TRIPS, ids=lambda w: shown(w, 60))
def test_a_workload_comes_back_from_json(w: Any) -> None:
    again = type(w)(**json.loads(json.dumps(w.to_dict())))
    assert again == w
    assert hash(again) == hash(w)
    assert again.to_dict() == w.to_dict()
    tiles = {"block_q": 4, "block_kv": 4}
    assert iomodel.cost("flash2", again, tiles) == iomodel.cost("flash2", w, tiles)


@pytest.mark.parametrize("make", [lambda i=i: ROUND_TRIPS[i].model_copy() for i in range(len(ROUND_TRIPS))])
def test_workloads_that_were_used_are_equal_still(make: Callable[[], Any]) -> None:
    """What is kept from one question for the next is no part of the workload, on either side."""
    w, again = make(), make()
    for used in (w, again):
        iomodel.cost("flash2", used, {"block_q": 4, "block_kv": 4})
        iomodel.lower_bounds(used, algorithm="flash2", sram_elements=100)
    masks = [type(used.mask)(**used.mask.to_dict()) for used in (w, again) if not isinstance(used.mask, str)]
    for mask in masks:
        if isinstance(mask, iomodel.BlockMask | iomodel.Documents):
            mask.tiles("query", 2, 3, w.q_len, w.kv_len)
    assert len(set(masks)) <= 1
    assert (w, hash(w)) == (again, hash(again))
    assert w != w.model_copy(update={"head_dim": 5})
    assert w != "causal"


@pytest.mark.parametrize(
    ("changed", "features"),
    [
        ({}, ()),
        ({"kv_dtype": "bf16"}, ()),
        ({"kv_dtype": "fp8"}, ("kv_dtype",)),
        ({"kv_scales": "token", "page_size": 16}, ("token_scales", "paged")),
        ({"dropout": 0, "softcap": None, "bias": False}, ()),
        ({"dropout": 0.1, "softcap": 50, "bias": True, "alibi": True}, ("bias", "softcap", "alibi", "dropout")),
        ({"latent": True, "kv_scales": None, "sinks": True}, ("latent", "sinks")),
    ],
)
def test_features_are_what_the_fields_say(changed: dict[str, Any], features: tuple[str, ...]) -> None:
    assert iomodel.Attention(q_len=8, head_dim=4, **changed).features == features


@pytest.mark.parametrize(
    ("heads", "ranks", "part"),
    [
        ((12, 4), 1, (12, 4)),
        ((12, 4), 4, (3, 1)),
        ((12, 4), 12, (1, 1)),  # a key/value head on each of three ranks
        ((64, 8), 16, (4, 1)),
        ((128, 1), 8, (16, 1)),
    ],
)
def test_heads_are_shared_out_among_ranks(heads: tuple[int, int], ranks: int, part: tuple[int, int]) -> None:
    for w in (
        iomodel.Attention(heads=heads[0], kv_heads=heads[1], q_len=8, head_dim=4, mask="causal"),
        iomodel.VarlenAttention(heads=heads[0], kv_heads=heads[1], q_lens=[8, 2], head_dim=4),
    ):
        of_one = w.shard(ranks)
        assert of_one == w.model_copy(update={"heads": part[0], "kv_heads": part[1]})
        tiles = {"block_q": 4, "block_kv": 4}
        whole, piece = iomodel.cost("flash2", w, tiles), iomodel.cost("flash2", of_one, tiles)
        assert ranks * piece.flops == whole.flops
        assert ranks * piece.hbm_bytes == whole.hbm_bytes


@pytest.mark.parametrize("ranks", [0, -1, 2.5, True, None, "2", 3, 5, 8, 24])
def test_heads_that_do_not_divide_are_refused(ranks: Any) -> None:
    with pytest.raises(iomodel.InputError, match=r"ranks: .* given; allowed: an? "):
        iomodel.Attention(heads=12, kv_heads=4, q_len=8, head_dim=4).shard(ranks)


@pytest.mark.parametrize(("ranks", "near"), [(3, 2), (5, 4), (8, 4), (24, 4)])
def test_a_number_of_ranks_near_the_refused_one_is_named(ranks: int, near: int) -> None:
    w = iomodel.Attention(heads=12, kv_heads=4, q_len=8, head_dim=4)
    assert w.shard(near).kv_heads == 4 // near
    with pytest.raises(iomodel.InputError, match=f"divide among, such as {near}$"):
        w.shard(ranks)


@pytest.mark.parametrize("side", [{"left": -1}, {"right": 1.5}, {"align": "middle"}, {"left": float("inf")}])
def test_bad_windows_are_refused(side: dict[str, Any]) -> None:
    with pytest.raises(iomodel.InputError, match=next(iter(side))):
        iomodel.Window(**side)


def test_a_changed_copy_has_its_own_numbers() -> None:
    """A cached number must not outlive the field that it came from."""
    w = iomodel.Attention(q_len=64, head_dim=4)
    before = iomodel.cost("standard", w)
    longer = w.model_copy(update={"q_len": 128, "kv_len": 128})
    assert longer == iomodel.Attention(q_len=128, head_dim=4)
    assert iomodel.cost("standard", longer) == iomodel.cost("standard", iomodel.Attention(q_len=128, head_dim=4))
    assert iomodel.cost("standard", longer) != before
    with pytest.raises(iomodel.InputError, match="q_len"):
        w.model_copy(update={"q_len": 0})
