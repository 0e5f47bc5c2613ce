"""Attention of a step: groups of heads take the time of as many sequences, and the choice is the fastest candidate."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel
from iomodel import hardware
from iomodel.planning.step.attention_clock import AttentionClock, _one_head, _whole_tiles
from tests.support.inside import DEFAULT

TILES = {"flash2": {"block_q": 64, "block_kv": 64, "warps": 4}, "split_kv": {"block_q": 64, "block_kv": 64, "warps": 4}}
calls = st.builds(
    iomodel.Attention,
    batch=st.integers(1, 40),
    heads=st.sampled_from([8, 16]),
    kv_heads=st.sampled_from([1, 2, 8]),
    q_len=st.sampled_from([1, 4, 300]),
    kv_len=st.integers(300, 5000),
    head_dim=st.sampled_from([64, 128]),
    mask=st.sampled_from(["causal", "full"]),
    page_size=st.sampled_from([None, 16]),
)


@given(st.sampled_from(sorted(TILES)), calls, st.sampled_from(["h100-sxm5", "a100-sxm4-80gb"]), st.booleans())
def test_a_group_of_heads_takes_the_time_of_a_sequence(name, call, device, packed):
    one, other = (
        iomodel.estimate(
            name, each, device, TILES[name], packed=packed, **({"splits": 4} if name == "split_kv" else {})
        )
        for each in (call, _one_head(call))
    )
    table = 1e-3 if call.page_size else 1e-12  # the heads of a sequence share its table of pages
    assert one.seconds == pytest.approx(other.seconds, rel=table)
    assert one.requested_bytes == other.requested_bytes
    assert one.cost.useful_flops == other.cost.useful_flops


PREFILL = iomodel.Attention(heads=16, kv_heads=1, q_len=2048, head_dim=256, mask="causal")
masks = st.sampled_from(["causal", "full", iomodel.Window(left=511, right=0), iomodel.Window(left=4095, right=0)])


@example(PREFILL, iomodel.Window(left=511, right=0), "h200-sxm")
@example(PREFILL, iomodel.BlockMask([[True]], 2048, 2048), "a100-sxm4-80gb")
@given(calls, masks, st.sampled_from(["h100-sxm5", "a100-sxm4-80gb"]))
def test_a_time_depends_on_no_earlier_call(call, earlier, device):
    clock = AttentionClock(hardware(device))
    clock.fastest(call.model_copy(update={"mask": earlier}))
    assert clock.fastest(call) == AttentionClock(hardware(device)).fastest(call)


def test_what_has_an_entry_per_head_stays_as_it_is():
    call = iomodel.Attention(heads=8, kv_heads=2, q_len=1, kv_len=64, head_dim=64, mask="causal")
    assert _one_head(call).batch == 2
    for change in ({"sinks": True}, {"alibi": True}, {"kv_dtype": "fp8", "kv_scales": "head"}, {"kv_heads": 1}):
        kept = call.model_copy(update=change)
        assert _one_head(kept) is kept


@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "l40s", "h100-sxm5", "rtx-pro-6000"])
def test_an_engine_runs_its_own_kernels(device):
    """TensorRT-LLM has prefills of its own there, slower than those of other engines, and none for one query."""
    served = replace(DEFAULT, in_graph=1.0)
    own, others = (AttentionClock(hardware(device), served, engine=name) for name in ("tensorrt-llm", "vllm"))
    prompt = PREFILL.model_copy(update={"head_dim": 128, "value_dim": 128})
    assert own.fastest(prompt)[1].seconds > others.fastest(prompt)[1].seconds
    token = prompt.model_copy(update={"q_len": 1})
    assert own.fastest(token) == others.fastest(token)
    name = own.fastest(prompt)[0]
    with pytest.raises(iomodel.InputError, match="q_len: 1 given; allowed: from 2 up"):
        iomodel.estimate(name, token, device, implementation=f"trtllm-fmha-{FMHA[device]}")


FMHA = {"a100-sxm4-80gb": "tiled", "l40s": "whole", "h100-sxm5": "hopper", "rtx-pro-6000": "whole"}


def test_the_fastest_candidate_is_chosen():
    device = hardware("h100-sxm5")
    clock = AttentionClock(device)
    call = iomodel.Attention(batch=2, heads=8, kv_heads=1, q_len=1, kv_len=8192, head_dim=128, mask="causal")
    name, span = clock.fastest(call)
    each = {
        (algorithm.name, options.get("splits")): clock._timed(
            algorithm, call, (tiles, _whole_tiles(options, tiles, call), kernels)
        ).seconds
        for algorithm in clock._algorithms(call)[:2]
        for options in clock._options(algorithm, call)
        for tiles, kernels in clock._tiles(algorithm, call, options)
    }
    assert span.seconds == min(each.values())
    assert name == min(each, key=each.__getitem__)[0]
    assert len(each) > 4


@pytest.mark.parametrize(
    ("name", "expected"), [("h100-sxm5", "flash3"), ("b200", "flash2"), ("mi300x", "flash2"), ("tpu-v5e", "flash3")]
)
def test_a_prefill_runs_in_a_kernel_of_its_device(name, expected):
    """FlashAttention-4 and CK are kernels of flash2; no kernel at all leaves the textbook's of flash3."""
    call = iomodel.Attention(batch=1, heads=8, kv_heads=1, q_len=4096, kv_len=4096, head_dim=128, mask="causal")
    assert AttentionClock(hardware(name)).fastest(call)[0] == expected
