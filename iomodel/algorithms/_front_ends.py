"""Front ends of public kernels: what their sources accept, read at the commits that each names."""

from __future__ import annotations

from dataclasses import replace

from iomodel.nests.division import Division
from iomodel.nests.front_end import FrontEnd

_FLASH = "github.com/Dao-AILab/flash-attention at 0251105a"
_GENERATED = "github.com/NVIDIA/TensorRT-LLM at 01c84c67, cpp/tensorrt_llm/kernels/trtllmGenKernels/fmha/fmhaKernels.h"
_MASKS = ("full", "causal", "window", "documents")
FLASH_ATTENTION_2 = FrontEnd(
    # Lines 398 (one dtype), 420 (softcap without dropout), 431 and 1319 (seqlenq_ngroups_swapped), 613, 1305 (pages).
    cite=f"{_FLASH}, csrc/flash_attn/flash_api.cpp",
    features=("paged", "softcap", "alibi", "dropout"),
    backward=("softcap", "alibi", "dropout"),
    exclusive=("softcap", "dropout"),
    masks=_MASKS,
    page_step=256,
    packs="one query",
    # num_splits_heuristic, with two places on an SM and rows in 64s (set_params_splitkv).
    division=Division(rows=64, per_sm=2, filled=0.8, enough=0.85, most=128),
)
_FLASH_ATTENTION_2_2023 = replace(
    FLASH_ATTENTION_2,
    cite="github.com/Dao-AILab/flash-attention, before 9eb3d099 (7 April 2024), csrc/flash_attn/flash_api.cpp",
    division=Division(rows=64, per_sm=1, filled=0.8, enough=0.85, most=128),
)
_FLASH_ATTENTION_2_VLLM = replace(
    FLASH_ATTENTION_2,
    cite="github.com/vllm-project/flash-attention at 04325b67, csrc/flash_attn/flash_api.cpp: mha_varlen_fwd",
    features=("paged", "softcap", "alibi"),
    backward=(),
    page_step=16,
    last=True,
)
_FLASH_ATTENTION_3 = FrontEnd(
    # Lines 381 and 431 (rows are packed with several splits), 721 (one dtype), 1370 (deterministic).
    cite=f"{_FLASH}, hopper/flash_api.cpp; sinks: github.com/vllm-project/flash-attention, hopper/flash_api.cpp, s_aux",
    features=("latent", "head_scales", "paged", "softcap", "sinks"),
    backward=("softcap",),
    masks=_MASKS,
    splits="packed",
    deterministic=256,
    # hopper/heuristics.h, and seqlen_k_loaded of get_num_splits.
    division=Division(rows=128, per_sm=1, filled=0.8, enough=0.85, most=128, whole=4, windowed=True),
)
_FLASH_ATTENTION_1 = FrontEnd(
    cite="github.com/HazyResearch/flash-attention at 2ed471ec, csrc/flash_attn/fmha_api.cpp: q, k and v have as many "
    "heads",
    features=("dropout",),
    backward=("dropout",),
    masks=("full", "causal", "documents"),
    packs="never",
    grouped=False,
)

_CUDNN = FrontEnd(
    # After FlashAttention in PyTorch's priority_order (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp). In
    # fp8 a backward pass with a window of 128 keys takes as long as one without (published_3.csv, working rows).
    cite="docs.nvidia.com/deeplearning/cudnn/frontend, Attention: SDPA forward and backward, F16/BF16 and FP8",
    features=("paged", "bias", "softcap", "alibi", "sinks", "dropout"),
    backward=("bias", "softcap", "alibi", "sinks", "dropout"),
    masks=_MASKS,
    windowed_backward=("fp16", "bf16"),
    packs="never",
    last=True,
)

_FMHA = FrontEnd(
    # setupLaunchParams (masks), checkIfKernelExist; pages of a power of two (setSeparateQKvTmaDescriptors). K and V
    # are rows of the step itself, in the type of the products whatever that of the cache.
    cite="github.com/NVIDIA/TensorRT-LLM at 00dbe288, cpp/tensorrt_llm/kernels/contextFusedMultiHeadAttention: "
    "fmhaRunner.cpp, fused_multihead_attention_v2.cpp",
    features=("kv_dtype", "paged", "softcap", "alibi", "sinks"),
    masks=("full", "causal", "left window", "documents"),
    pages=(16, 32, 64, 128),
    packs="never",
    prompts=True,
    last=True,
    served=("tensorrt-llm",),
)

FRONT_ENDS: dict[str, FrontEnd] = {
    "flash-attention-1": _FLASH_ATTENTION_1,
    "flash-attention-1-2023": _FLASH_ATTENTION_1,
    "flash-attention-2": FLASH_ATTENTION_2,
    "flash-attention-2-2023": _FLASH_ATTENTION_2_2023,
    "flash-attention-2-vllm": _FLASH_ATTENTION_2_VLLM,
    "flash-attention-3": _FLASH_ATTENTION_3,
    "flash-attention-3-2024": _FLASH_ATTENTION_3,
    "flash-attention-4": FrontEnd(
        # Lines 641 (one dtype), 656 (sinks), 694 (packed by default), 868 (block sparsity).
        cite=f"{_FLASH}, flash_attn/cute/interface.py",
        features=("paged", "softcap", "sinks"),
        backward=("softcap", "sinks"),
        masks=(*_MASKS, "blocks"),
        # num_splits_heuristic, with two tiles of 128 rows in a block; _get_fwd_config.
        division=Division(rows=256, per_sm=1, filled=1.0, enough=1.0, most=128, whole=4, fills=True),
    ),
    "flashinfer": FrontEnd(
        # Rows of a group are always packed (packed_qo_len); windows are window_left alone.
        cite="github.com/flashinfer-ai/flashinfer at fb28d724, include/flashinfer/attention/prefill.cuh; sinks: "
        "flashinfer/attention.py; block masks: flashinfer/sparse.py",
        features=("kv_dtype", "head_scales", "paged", "softcap", "alibi", "sinks"),
        masks=("full", "causal", "left window", "documents", "blocks"),
        packs="always",
        # vLLM and SGLang launch trtllm-gen in its place where it takes a call (use_trtllm_attention of
        # github.com/vllm-project/vllm, vllm/utils/flashinfer.py).
        behind=("trtllm-gen-decode",),
        # The shortest chunks of keys, of 128 or more, with a place for each on an SM (PrefillBinarySearchKVChunkSize in
        # include/flashinfer/attention/scheduler.cuh).
        division=Division(rows=16, per_sm=2, filled=1.0, enough=1.0, most=264, fills=True),
    ),
    "xformers": FrontEnd(
        # Last of _dispatch_fw_priority_list (xformers/ops/fmha/dispatch.py), and after FlashAttention in PyTorch's
        # priority_order (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
        # A deterministic backward pass, in which one block walks all key tiles of a head, has no time here.
        cite="github.com/facebookresearch/xformers, xformers/csrc/attention/cuda/fmha/attention_forward_generic.cu, "
        "kernel_forward.h; github.com/pytorch/pytorch, aten/src/ATen/native/transformers/cuda/attention_backward.cu",
        features=("bias", "dropout"),
        backward=("bias", "dropout"),
        deterministic=0,
        masks=_MASKS,
        packs="never",
        last=True,
    ),
    **dict.fromkeys(("cudnn-hopper", "cudnn-blackwell"), _CUDNN),
    "trtllm-gen": FrontEnd(
        # TllmGenFmhaRunnerParams (windows, sinks), FmhaDispatcher::isSupported (no ALiBi); pages of 16 to 128 (hashID).
        cite=f"{_GENERATED}; github.com/flashinfer-ai/flashinfer, flashinfer/prefill.py: "
        "trtllm_batch_context_with_kv_cache",
        features=("paged", "sinks"),
        masks=("full", "causal", "left window", "documents"),
        pages=(16, 32, 64, 128),
        packs="never",
        last=True,
        served=("any",),
    ),
    **dict.fromkeys(("trtllm-fmha-whole", "trtllm-fmha-tiled", "trtllm-fmha-hopper"), _FMHA),
    "trtllm-gen-decode": FrontEnd(
        # computeNumCtas: as many blocks as SMs, in key tiles of 128; hashFromRunnerParams: 8 or 16 rows of a group.
        cite=f"{_GENERATED}; github.com/flashinfer-ai/flashinfer, flashinfer/decode.py: "
        "trtllm_batch_decode_with_kv_cache",
        features=("kv_dtype", "head_scales", "paged", "sinks"),
        masks=("full", "causal", "left window"),
        pages=(16, 32, 64, 128),
        packs="always",
        queries=16,
        served=("any",),
        division=Division(rows=16, per_sm=1, filled=1.0, enough=1.0, most=264, fills=True),
    ),
    "sageattention": FrontEnd(
        cite="github.com/thu-ml/SageAttention, sageattention/core.py: is_causal alone",
        features=(),
        masks=("full", "causal"),
        packs="never",
    ),
    "flashmla": FrontEnd(
        # Line 67 (pages); a cache in fp8: the kernel of vLLM's fork, with products in 16 bits.
        cite="github.com/deepseek-ai/FlashMLA at 9241ae3e, csrc/api/dense_decode.h; github.com/vllm-project/FlashMLA",
        features=("latent", "kv_dtype", "paged"),
        masks=("full", "causal"),
        pages=(64,),
        packs="always",
    ),
    "cutlass-mla": FrontEnd(
        # Queries for a cache in fp8 are converted by vLLM's front end.
        cite="github.com/NVIDIA/cutlass at 0a664ab, examples/77_blackwell_fmha/77_blackwell_mla.cu; "
        "github.com/vllm-project/vllm, vllm/v1/attention/backends/mla/cutlass_mla.py",
        features=("latent", "kv_dtype", "paged"),
        masks=("full", "causal"),
        packs="always",
    ),
    "triton": FrontEnd(
        cite="github.com/triton-lang/triton, python/tutorials/06-fused-attention.py: as many heads of K and V as of Q; "
        "a tutorial, which no library launches",
        features=(),
        masks=("full", "causal"),
        packs="never",
        grouped=False,
        last=True,
    ),
    "triton-amd": FrontEnd(
        cite="github.com/ROCm/aiter at 00c3bdaf, aiter/ops/triton/mha.py",
        features=("alibi", "dropout"),
        masks=("full", "causal", "documents"),
        packs="never",
        behind=("aiter-assembly", "ck"),
    ),
    "triton-mla": FrontEnd(
        cite="github.com/vllm-project/vllm at 0f49065, vllm/attention/ops/triton_decode_attention.py; sinks: "
        "github.com/sgl-project/sglang, python/sglang/srt/layers/attention/triton_ops/decode_attention.py",
        features=("latent", "paged", "softcap", "sinks"),
        masks=("full", "causal"),
        packs="always",
    ),
    "aiter-mla": FrontEnd(
        # Pages of 1 or 64 (use_hk); queries have the type of the latents.
        cite="github.com/ROCm/aiter at e4048607, aiter/mla.py: mla_decode_fwd",
        features=("latent", "paged"),
        masks=("full", "causal"),
        pages=(1, 64),
        packs="always",
        # get_mla_metadata_v1_2_device: as many keys for each CU.
        division=Division(rows=128, per_sm=1, filled=1.0, enough=1.0, most=304, fills=True),
    ),
    "aiter-gluon": FrontEnd(
        # pa_decode_gluon, and get_recommended_splits: two places on a CU, rounded up.
        cite="github.com/ROCm/aiter at e4048607, aiter/ops/triton/gluon/pa_decode_gluon.py",
        features=("kv_dtype", "head_scales", "token_scales", "paged", "sinks"),
        masks=("full", "causal", "left window"),
        pages=(16, 64, 1024),
        packs="always",
        queries=4,
        rows=64,
        division=Division(rows=64, per_sm=2, filled=1.0, enough=1.0, most=8, fills=True, rounds_up=True),
    ),
    "ck": FrontEnd(
        # AITER prefers its assembly (github.com/ROCm/aiter at e4048607, aiter/ops/mha.py, _flash_attn_forward).
        cite="github.com/ROCm/composable_kernel at 01ab82ef, example/ck_tile/01_fmha: fmha_fwd.hpp, fmha_bwd.hpp",
        features=("paged", "bias", "softcap", "alibi", "sinks", "dropout"),
        backward=("bias", "alibi", "dropout"),
        masks=_MASKS,
        packs="never",
        behind=("aiter-assembly",),
    ),
}


def front_end(implementation: str) -> FrontEnd:
    """Return what an implementation accepts; anything, unless its source is on file."""
    return FRONT_ENDS.get(implementation, FrontEnd())
