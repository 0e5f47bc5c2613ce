"""Names of the options of serving engines, with the pages that document them, and the devices that they run on.

Products of weights in nvfp4 run in 4 bits on Blackwell alone. Elsewhere vLLM converts such weights on chip, with the
kernels of Marlin on NVIDIA's devices and of Petit on AMD's (vllm/platforms/rocm.py at 001eda3). SGLang has those of
Petit alone, and TensorRT-LLM none (docs/source/features/quantization.md at 09d4c79, "Hardware Support Matrix").

The options were compared with the sources of the engines in 2026: vllm/config/parallel.py at 00193b8, the fields of
sglang/srt/server_args.py, and tensorrt_llm/commands/serve.py at 00209af.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iomodel.common.frozen_dict import FrozenDict


@dataclass(frozen=True)
class OptionNames:
    """Names of one engine.

    Attributes
    ----------
    name, launch, page : str
        Name; words before the model on the command line; the page of its options.
    options : mapping of str to str
        Option of each setting of a plan.
    aliases : mapping of str to str
        Other spellings of options.
    dtypes, kv_dtypes : mapping of str to str
        Names of activation and cache types.
    all_ranks : bool
        True if the degree of tensor parallelism counts all ranks, also those of data-parallel attention.
    nvfp4 : tuple of str
        First letters of the architectures on which the engine takes weights in nvfp4.
    """

    name: str
    launch: str
    page: str
    options: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=FrozenDict)
    dtypes: Mapping[str, str] = field(default_factory=FrozenDict)
    kv_dtypes: Mapping[str, str] = field(default_factory=FrozenDict)
    all_ranks: bool = True
    nvfp4: tuple[str, ...] = ("sm_", "gfx")


BLACKWELL = "sm_10", "sm_12"
DTYPES = FrozenDict({"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"})
VLLM = OptionNames(
    "vllm",
    "vllm serve",
    "https://docs.vllm.ai/en/latest/configuration/engine_args.html",
    FrozenDict(
        {
            "tensor": "--tensor-parallel-size",
            "pipeline": "--pipeline-parallel-size",
            "data": "--data-parallel-size",
            "context": "--decode-context-parallel-size",
            "experts": "--enable-expert-parallel",
            "batch": "--max-num-seqs",
            "tokens": "--max-model-len",
            "memory": "--gpu-memory-utilization",
            "dtype": "--dtype",
            "weights": "--quantization",
            "cache": "--kv-cache-dtype",
            "page": "--block-size",
            "step": "--max-num-batched-tokens",
            "prefix": "--enable-prefix-caching",
            "cache bytes": "--kv-cache-memory-bytes",
            "cache blocks": "--num-gpu-blocks-override",
            "adapters": "--enable-lora",
            "adapter slots": "--max-loras",
            "adapter rank": "--max-lora-rank",
        }
    ),
    FrozenDict(
        {
            "-tp": "--tensor-parallel-size",
            "-pp": "--pipeline-parallel-size",
            "-dp": "--data-parallel-size",
            "-dcp": "--decode-context-parallel-size",
            "-pcp": "--prefill-context-parallel-size",
            "-q": "--quantization",
        }
    ),
    DTYPES,
    FrozenDict({"fp8": "fp8", "nvfp4": "nvfp4"}),
    all_ranks=False,
)
SGLANG = OptionNames(
    "sglang",
    "python -m sglang.launch_server --model-path",
    "https://docs.sglang.io/docs/advanced_features/server_arguments",
    FrozenDict(
        {
            "tensor": "--tp-size",
            "pipeline": "--pp-size",
            "data": "--dp-size",
            "data attention": "--enable-dp-attention",
            "context": "--dcp-size",
            "copies": "--ep-num-redundant-experts",
            "experts": "--ep-size",
            "batch": "--max-running-requests",
            "tokens": "--context-length",
            "memory": "--mem-fraction-static",
            "dtype": "--dtype",
            "weights": "--quantization",
            "cache": "--kv-cache-dtype",
            "page": "--page-size",
            "step": "--chunked-prefill-size",
            "cache tokens": "--max-total-tokens",
            "state ratio": "--mamba-full-memory-ratio",
            "state places": "--max-mamba-cache-size",
            "window ratio": "--swa-full-tokens-ratio",
            "graph": "--cuda-graph-max-bs",
            "no prefixes": "--disable-radix-cache",
        }
    ),
    FrozenDict(
        {
            "--tensor-parallel-size": "--tp-size",
            "--tp": "--tp-size",
            "--pipeline-parallel-size": "--pp-size",
            "--pp": "--pp-size",
            "--data-parallel-size": "--dp-size",
            "--dp": "--dp-size",
            "--decode-context-parallel-size": "--dcp-size",
            "--expert-parallel-size": "--ep-size",
            "--ep": "--ep-size",
            "--model": "--model-path",
        }
    ),
    DTYPES,
    FrozenDict({"fp8": "fp8_e4m3", "nvfp4": "nvfp4"}),
    nvfp4=(*BLACKWELL, "gfx"),
)
TRTLLM = OptionNames(
    "trtllm",
    "trtllm-serve",
    "https://nvidia.github.io/TensorRT-LLM/commands/trtllm-serve.html",
    FrozenDict(
        {
            "tensor": "--tp_size",
            "pipeline": "--pp_size",
            "experts": "--ep_size",
            "batch": "--max_batch_size",
            "step": "--max_num_tokens",
            "tokens": "--max_seq_len",
            "memory": "--kv_cache_free_gpu_memory_fraction",
            "cache": "--kv_cache_dtype",
            "file": "--config",
        }
    ),
    FrozenDict(
        {
            "--tensor_parallel_size": "--tp_size",
            "--pipeline_parallel_size": "--pp_size",
            "--moe_expert_parallel_size": "--ep_size",
            "--free_gpu_memory_fraction": "--kv_cache_free_gpu_memory_fraction",
            "--kv_cache_free_gpu_mem_fraction": "--kv_cache_free_gpu_memory_fraction",
        }
    ),
    kv_dtypes=FrozenDict({"fp8": "fp8", "nvfp4": "nvfp4"}),
    nvfp4=BLACKWELL,
)
LLAMA_CPP = OptionNames(
    "llama.cpp",
    "llama-server",
    "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    FrozenDict({"batch": "--parallel", "tokens": "--ctx-size", "keys": "--cache-type-k", "values": "--cache-type-v"}),
    FrozenDict(
        {
            "-m": "--model",
            "-hf": "--hf-repo",
            "-c": "--ctx-size",
            "-np": "--parallel",
            "-ctk": "--cache-type-k",
            "-ctv": "--cache-type-v",
        }
    ),
)
"""The server of llama.cpp, whose command lines are read: one cache of all tokens, which its slots divide."""
ENGINES = FrozenDict({engine.name: engine for engine in (VLLM, SGLANG, TRTLLM)})
"""The engines whose command lines are written."""
