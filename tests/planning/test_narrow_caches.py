"""Caches of 4 bits: exact bytes, more requests, attention that converts them, commands of engines."""

import pytest

from iomodel import InputError, hardware, model
from iomodel.planning.engine_flags import engine_flags
from iomodel.planning.plan import plan
from iomodel.planning.service import as_service
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
from tests.support.inside import DEFAULT, KV_QUARTERS, rates

CHAT = {"prompt": 1024, "output": 128}
ROWS = 80 * 2 * 8
"""Rows of a token of llama-3.1-70b: layers, K and V, heads."""


def test_bytes_of_a_token_are_those_of_its_rows():
    """A row of 128 elements: 64 B and eight scales of a byte, or 64 B with a scale and a zero point of fp16."""
    llama = model("llama-3.1-70b")
    assert llama.kv_bytes_per_token("nvfp4") == ROWS * (64 + 8)
    assert llama.kv_bytes_per_token("int4") == ROWS * (64 + 2 * 2)
    assert model("deepseek-v3").kv_bytes_per_token("nvfp4") == 61 * (576 // 2 + 576 // 16)
    sparse = model("deepseek-v3.2")
    assert sparse.index_bytes(64, "nvfp4") == sparse.index_bytes(64, "fp8")


@pytest.mark.parametrize("name", ["llama-3.2-1b", "gemma-3-27b", "gpt-oss-20b", "deepseek-v2-lite"])
def test_fewer_bits_never_fit_fewer_requests(name):
    spec = model(name)
    sizes = {kept: spec.kv_bytes(1152, kept) for kept in KV_QUARTERS if kept != "int4" or name != "deepseek-v2-lite"}
    ranked = sorted(sizes, key=sizes.__getitem__)
    services = [as_service(spec, 1024, 128, kv_dtype=kept) for kept in ranked]
    fits = [service.memory(hardware("b200")).fits for service in services]
    assert fits == sorted(fits, reverse=True)
    assert fits[0] > fits[-1]
    assert sizes["nvfp4"] < sizes["fp8"]


@pytest.mark.parametrize("device", ["b200", "h100-sxm5", "mi300x"])
def test_long_decoding_reads_fewer_bytes(device):
    asked = {"batch": 16, "q_len": 1, "kv_len": 32768}
    attention = {
        kept: sum(
            part.seconds
            for part in step("llama-3-8b", device, kv_dtype=kept, **asked).parts
            if part.kind == "attention"
        )
        for kept in ("bf16", "fp8", "nvfp4", "int4")
    }
    assert attention["nvfp4"] < attention["fp8"] < attention["bf16"]
    assert attention["int4"] < attention["bf16"]


def test_attention_takes_at_least_the_conversion():
    asked = {"batch": 16, "q_len": 1, "kv_len": 32768}
    rate = rates(hardware("l4"), "bf16").fp32
    elements = 16 * 32768 * 2 * 8 * 64
    parts = step("llama-3.2-1b", "l4", kv_dtype="int4", **asked).parts
    seconds = next(part.seconds for part in parts if part.kind == "attention") / 16
    assert seconds >= elements * DEFAULT.convert_ops / rate


def test_engines_are_told_the_cache():
    found = plan("llama-3.1-70b", "b200", count=2, layout=Layout(tensor_parallel=2), batch=8, precision="fp4",
                 kv_dtype="nvfp4", **CHAT)  # fmt: skip
    assert (found.decode.weight_dtype, found.decode.kv_dtype) == ("nvfp4", "nvfp4")
    assert "--kv-cache-dtype nvfp4" in engine_flags(found, "vllm").command
    assert "--kv-cache-dtype nvfp4" in engine_flags(found, "sglang").command
    assert "dtype: nvfp4" in engine_flags(found, "trtllm").config


def test_int4_is_refused_where_no_engine_keeps_it():
    with pytest.raises(InputError, match=r"^kv_dtype: int4 given for deepseek-v3, whose [^\n]*nvfp4$"):
        plan("deepseek-v3", "b200", count=8, layout=Layout(tensor_parallel=8), kv_dtype="int4", **CHAT)
    found = plan("llama-3.2-1b", "b200", batch=1, kv_dtype="int4", **CHAT)
    with pytest.raises(InputError, match=r"^kv_dtype: 'int4' given; allowed with vllm: bf16, fp8, nvfp4$"):
        engine_flags(found, "vllm")
