"""Most requests and tokens of a step that `trtllm-bench throughput` sets itself.

The benchmark of TensorRT-LLM takes both from an estimate of the requests whose cache fits, unless its command states
`--max_batch_size` and `--max_num_tokens`: `calc_engine_setting` and `finetune_setting` in
tensorrt_llm/bench/build/tuning.py at commit 04cba88, and `get_settings` in
tensorrt_llm/bench/benchmark/utils/general.py at commit 0171265 (github.com/NVIDIA/TensorRT-LLM). The estimate takes
hidden_size / heads channels where a configuration names none, and so counts the latents of DeepSeek as 128 heads, 25
times too large; pull request 16707 of 2026 corrected it.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from iomodel.devices.device import Hardware
from iomodel.devices.edits import capacity
from iomodel.models.registry import ModelSpec

GIB = 2**30
ENTRY_BYTES = {"fp8": 1.0, "nvfp4": 0.5, "bf16": 2.0, "fp16": 2.0}
"""Bytes that the benchmark takes an entry of a checkpoint for, by the type of the weights [B]; no other is tuned."""
STORED = {"nvfp4": 1 / 2 + 1 / 16}
"""Entries of a checkpoint per weight [-]: two weights of 4 bits are one, and 16 have a scale."""
MOST_REQUESTS = 4096
MOST_TOKENS = 32768
CACHE_SHARE = 0.95
"""Share of the free memory for the cache that the estimate takes [-]."""


class Limits(NamedTuple):
    """Most tokens of a step [tokens], and most requests of each attention rank in it [-]."""

    tokens: int
    requests: int


def bench_limits(
    model: ModelSpec, device: Hardware, devices: int, weights: str, cache_bytes: float, prompt: int, output: int
) -> Limits | None:
    """Compute the limits that the benchmark sets; None for weights of a type that it leaves to the engine.

    Parameters
    ----------
    model : ModelSpec
        The model.
    device : Hardware
        The device.
    devices : int
        Devices of the run, all of which it gives as tensor parallel.
    weights : str
        Type of the weights.
    cache_bytes : float
        Bytes of an entry of the cache [B].
    prompt, output : int
        Tokens of a prompt, and of its output.

    Examples
    --------
    >>> from iomodel.devices.device import hardware
    >>> from iomodel.models.registry import model
    >>> bench_limits(model("llama-3.1-70b"), hardware("h200-sxm"), 1, "fp8", 1, 1000, 1000)
    Limits(tokens=2048, requests=256)
    """
    attention = next((layer.attention for layer in model.layers if layer.attention is not None), None)
    if weights not in ENTRY_BYTES or attention is None:
        return None
    plain = not attention.latent
    heads = attention.kv_heads if plain else attention.heads
    width = attention.head_dim if plain else model.hidden_size // attention.heads
    token = 2 * len(model.layers) * max(devices, heads) * width * cache_bytes / GIB
    entries = model.parameters * STORED.get(weights, 1.0)
    free = capacity(device) * devices / GIB - entries * ENTRY_BYTES[weights] / GIB
    fitting = max(0.0, min(free * CACHE_SHARE / (token * (prompt + output)), MOST_REQUESTS))
    tokens = min(fitting * (1 + prompt / output), MOST_TOKENS)
    requests = _rounded(fitting, ((256, 32), (1024, 128)), 256)
    most = max(2048, _rounded(tokens, ((4096, 256), (8192, 512)), 1024))
    requests = max(64, requests)
    return Limits(max(most, prompt + requests), requests)  # a prompt takes one step: chunks are off by default


def _rounded(value: float, steps: tuple[tuple[int, int], ...], last: int) -> int:
    """Round up to a multiple of the step of the first bound that is larger, or of the last one."""
    step = next((step for bound, step in steps if value < bound), last)
    return step * ceil(value / step)
