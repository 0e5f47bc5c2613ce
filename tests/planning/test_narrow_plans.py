"""Two large models in 8 and 4 bits on four devices: planned, with commands of the engines, or refused in one line."""

from itertools import product

import pytest

from iomodel import InfeasibleError, InputError, model
from iomodel.planning.engine_flags import engine_flags
from iomodel.planning.plan import plan
from iomodel.planning.step.layout import Layout

LAYOUTS = {"llama-3.1-70b": Layout(), "deepseek-v3": Layout(tensor_parallel=8)}
DEVICES = ("h100-sxm5", "h200-sxm", "b200", "mi300x")
TOO_LARGE = {("deepseek-v3", "h100-sxm5", "fp8")}
"""671 GB of weights for less than 620 GB, the usable part of eight devices."""
WITHOUT_FP4 = {("sglang", "h100-sxm5"), ("sglang", "h200-sxm"), ("trtllm", "h100-sxm5"), ("trtllm", "h200-sxm")}
FLAGS = {
    "vllm": {"--tensor-parallel-size", "--max-num-seqs", "--max-model-len", "--gpu-memory-utilization",
             "--quantization", "--kv-cache-dtype"},
    "sglang": {"--model-path", "--tp-size", "--max-running-requests", "--context-length", "--mem-fraction-static",
               "--quantization", "--kv-cache-dtype"},
    "trtllm": {"--tp_size", "--max_batch_size", "--max_seq_len", "--kv_cache_free_gpu_memory_fraction", "--config"},
}  # fmt: skip
"""Options in the documentation of the engines."""


def refused(engine, device, precision):
    """True if an engine does not run such weights on a device."""
    if (engine, device) == ("trtllm", "mi300x"):
        return True
    return precision == "fp4" and (engine, device) in WITHOUT_FP4


@pytest.mark.parametrize(("name", "device", "precision"), list(product(LAYOUTS, DEVICES, ("fp8", "fp4"))))
def test_a_large_model_in_few_bits_is_planned_or_refused(name, device, precision):
    layout = LAYOUTS[name]
    asked = {"count": layout.devices, "layout": layout, "prompt": 512, "output": 3, "batch": 4, "precision": precision}
    asked["engine"] = None  # 0.9 of the memory and 2 GiB hold them all, with the sampler of 1,024 requests not
    if (name, device, precision) in TOO_LARGE:
        assert model(name).parameters > 620e9
        with pytest.raises(
            InfeasibleError, match=r"^memory: deepseek-v3 and one request of 515 tokens do not fit by [^\n]*$"
        ):
            plan(name, device, **asked)
        return
    found = plan(name, device, **asked)
    # Of these devices only Blackwell multiplies in 4 bits; elsewhere the weights alone have 4 bits.
    products = "fp8" if precision == "fp8" else "fp4" if device == "b200" else "bf16"
    assert (found.decode.linear_dtype, found.decode.kv_dtype) == (products, "fp8")
    for engine, options in FLAGS.items():
        if refused(engine, device, precision):
            with pytest.raises(InputError, match=rf"^(engine|weight_dtype): [^\n]*{device}[^\n]*allowed: [^\n]*vllm"):
                engine_flags(found, engine)
            continue
        words = engine_flags(found, engine).command.split()
        assert {word for word in words if word.startswith("--")} <= options
