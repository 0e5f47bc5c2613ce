"""Public kernels that judge descriptions read from TTIR: where each is, its types, constants and the configs drawn.

The first list and its division into open and judging kernels were fixed before the reader of TTIR was written. What a
list missed was mended after it had judged, and the next list, with kernels that no rule had seen, was fixed before; the
last one judges what the page states. Nothing of a kernel's text is stored; `triton_described.py` imports the packages
named here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FLA, LIGER = "fla-core 0.6.0", "liger-kernel 0.8.5"
DAO, AITER = "Dao-AILab/flash-attention 0251105", "ROCm/aiter e404860"


@dataclass(frozen=True)
class PublicKernel:
    """A kernel of a public package, with what its launch would give it.

    `described` is the config whose TTIR is read; `choices` are the values of the others. A pointer is of bf16 unless
    `types` names another type; an integer is a multiple of 16, and a stride named in `ones` is 1.
    """

    name: str
    source: str
    module: str
    function: str
    constants: dict[str, Any]
    described: dict[str, int]
    choices: dict[str, tuple[int, ...]]
    types: dict[str, str] = field(default_factory=dict)
    integers: tuple[str, ...] = ()
    floats: tuple[str, ...] = ("scale",)
    ones: tuple[str, ...] = ()
    judging: bool = True
    round: int = 1


SIZES, WIDE = (32, 64, 128), (16, 32, 64, 128, 256)
FLA_ATTENTION = {
    "W": None, "B": 2, "H": 4, "HQ": 16, "G": 4, "K": 256, "V": 512, "USE_SINK_BIAS": False, "USE_WINDOW": False,
    "IS_VARLEN": False,
}  # fmt: skip
CHUNK = {"H": 4, "HV": 4, "IS_VARLEN": False, "STATE_V_FIRST": False, "USE_G_GAMMA": False}
NONE = {"cu_seqlens": "none", "chunk_indices": "none", "sink_bias": "none", "g_gamma": "none"}
FP32 = dict.fromkeys(("lse", "delta", "g_cumsum", "dg_cumsum", "g", "beta", "A"), "*fp32")
ATTENTION_CONFIGS = {
    "described": {"BT": 128, "BS": 32, "BK": 64, "BV": 256},
    "choices": {"BT": SIZES, "BS": SIZES, "BK": (32, 64, 128, 256), "BV": (32, 64, 128)},
}
LIGER_UP = {"H_dim": 4096, "I_dim": 2048, "stride_x_H": 1, "stride_w_K": 1, "stride_pre_N": 1, "stride_post_N": 1}
LIGER_DOWN = {"H_dim": 4096, "I_dim": 2048, "stride_post_I": 1, "stride_w_I": 1, "stride_Y_H": 1}
LIGER_DX = {"H_dim": 4096, "I_dim": 2048, "stride_d_pre_N": 1, "stride_w_K": 1, "stride_dxe_H": 1}
LIGER_TYPES = dict.fromkeys(("x_gather_idx_ptr", "expert_start_ptr", "tile_row_start_ptr", "tile_expert_ptr"), "*i32")
PRODUCT_CONFIGS = {
    "described": {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32},
    "choices": {"BLOCK_M": WIDE, "BLOCK_N": SIZES, "BLOCK_K": SIZES},
}
AITER_PRODUCT = {
    "described": {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 32},
    "choices": {"BLOCK_SIZE_M": WIDE, "BLOCK_SIZE_N": (32, 64, 128, 256), "BLOCK_SIZE_K": SIZES},
}
ROWS_AND_KEYS = {
    "described": {"BLOCK_M": 128, "BLOCK_N": 32},
    "choices": {"BLOCK_M": SIZES, "BLOCK_N": SIZES},
}
DAO_CONSTANTS = {
    "BIAS_TYPE": "none", "IS_CAUSAL": True, "BLOCK_HEADDIM": 64, "EVEN_M": True, "EVEN_N": True, "EVEN_HEADDIM": True,
}  # fmt: skip
PREFILL = {"kv_group_num": 4, "BLOCK_DMODEL": 64, "IS_CAUSAL": True, "Lk": 64}

KERNELS = (
    PublicKernel(
        "fla_attention", FLA, "fla.ops.attn.parallel", "parallel_attn_fwd_kernel", {**FLA_ATTENTION, "USE_G": False},
        types=NONE | FP32 | {"g_cumsum": "none"}, judging=False, **ATTENTION_CONFIGS,
    ),
    PublicKernel(
        "fla_attention_dq", FLA, "fla.ops.attn.parallel", "parallel_attn_bwd_kernel_dq",
        {**FLA_ATTENTION, "USE_G": False}, types=NONE | FP32 | {"g_cumsum": "none", "dg_cumsum": "none"},
        **ATTENTION_CONFIGS,
    ),
    PublicKernel(
        "fla_attention_dkv", FLA, "fla.ops.attn.parallel", "parallel_attn_bwd_kernel_dkv",
        {**FLA_ATTENTION, "USE_G": False}, types=NONE | FP32 | {"g_cumsum": "none", "dg_cumsum": "none"},
        **ATTENTION_CONFIGS,
    ),
    PublicKernel(
        "fla_gated_attention", FLA, "fla.ops.attn.parallel", "parallel_attn_fwd_kernel",
        {**FLA_ATTENTION, "USE_G": True}, types=NONE | FP32, **ATTENTION_CONFIGS,
    ),
    PublicKernel(
        "fla_wall", FLA, "fla.ops.wall_attn.parallel", "parallel_wall_attn_fwd_kernel",
        {**FLA_ATTENTION, "USE_SCALAR_G": False}, types=NONE | FP32 | {"g_scalar_cumsum": "none"},
        **ATTENTION_CONFIGS,
    ),
    PublicKernel(
        "fla_chunk_o", FLA, "fla.ops.common.chunk_o", "chunk_fwd_kernel_o",
        {**CHUNK, "K": 256, "V": 512, "USE_G": True}, types=NONE | FP32, judging=False,
        described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64, 128), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_chunk_dv", FLA, "fla.ops.common.chunk_o", "chunk_bwd_kernel_dv",
        {**CHUNK, "K": 256, "V": 512, "USE_G": True}, types=NONE | FP32,
        described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64, 128), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_chunk_dqkwg", FLA, "fla.ops.common.chunk_o", "chunk_bwd_kernel_dqkwg",
        {**CHUNK, "B": 2, "K": 256, "V": 512, "USE_G": True, "USE_DW": False},
        types=NONE | FP32 | {"w": "none", "dw": "none", "dg": "*fp32"},
        described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_chunk_h", FLA, "fla.ops.common.chunk_h", "chunk_fwd_kernel_h",
        {**CHUNK, "BS": 256, "K": 256, "V": 512, "USE_G": True, "USE_GK": False, "USE_GV": False,
         "USE_INITIAL_STATE": False, "STORE_FINAL_STATE": True},
        types=NONE | FP32 | {"gk": "none", "gv": "none", "h0": "none", "ht": "*fp32", "split_offsets": "none"},
        judging=False, described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64, 128), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_scaled_dot_kkt", FLA, "fla.ops.common.chunk_scaled_dot_kkt", "chunk_scaled_dot_kkt_fwd_kernel",
        {**CHUNK, "K": 256, "USE_G": True}, types=NONE | FP32, described={"BT": 64, "BK": 32},
        choices={"BT": (16, 32, 64, 128), "BK": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_gla_o", FLA, "fla.ops.gla.chunk", "chunk_gla_fwd_kernel_o",
        {**CHUNK, "K": 256, "V": 512, "USE_GRAPH": False}, types=NONE | FP32 | {"A": "*bf16"},
        described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "liger_up", LIGER, "liger_kernel.ops.fused_moe_kernels", "_fused_up_proj_swiglu_kernel", LIGER_UP,
        types=LIGER_TYPES, judging=False, **PRODUCT_CONFIGS,
    ),
    PublicKernel(
        "liger_down", LIGER, "liger_kernel.ops.fused_moe_kernels", "_fused_down_proj_kernel", LIGER_DOWN,
        types=LIGER_TYPES, **PRODUCT_CONFIGS,
    ),
    PublicKernel(
        "liger_dx", LIGER, "liger_kernel.ops.fused_moe_kernels", "_moe_bwd_dX_expanded_kernel", LIGER_DX,
        types=LIGER_TYPES, **PRODUCT_CONFIGS,
    ),
    PublicKernel(
        "dao_forward", DAO, "dao_triton", "_fwd_kernel", DAO_CONSTANTS, floats=("softmax_scale",),
        types={"Lse": "*fp32", "TMP": "*fp32", "Bias": "*bf16"},
        integers=("nheads", "seqlen_q", "seqlen_k", "seqlen_q_rounded", "headdim", "CACHE_KEY_SEQLEN_Q",
                  "CACHE_KEY_SEQLEN_K"),
        judging=False, **ROWS_AND_KEYS,
    ),
    PublicKernel(
        "dao_backward", DAO, "dao_triton", "_bwd_kernel",
        {**DAO_CONSTANTS, "SEQUENCE_PARALLEL": True}, floats=("softmax_scale",),
        types={"LSE": "*fp32", "D": "*fp32", "DQ": "*fp32"},
        integers=("nheads", "seqlen_q", "seqlen_k", "seqlen_q_rounded", "headdim", "CACHE_KEY_SEQLEN_Q",
                  "CACHE_KEY_SEQLEN_K"),
        **ROWS_AND_KEYS,
    ),
    PublicKernel(
        "aiter_prefill", AITER, "aiter.ops.triton._triton_kernels.attention.prefill_attention", "_fwd_kernel", PREFILL,
        floats=("sm_scale",), types={"B_Start_Loc": "*i32", "B_Seqlen": "*i32"}, **ROWS_AND_KEYS,
    ),
    PublicKernel(
        "aiter_extend", AITER, "aiter.ops.triton._triton_kernels.attention.extend_attention", "_fwd_kernel",
        {"logit_cap": 0.0, "Lq": 64, "Lv": 64, "BLOCK_DMODEL": 64, "BLOCK_DPE": 0, "BLOCK_DV": 64,
         "USE_CUSTOM_MASK": False, "IS_CAUSAL": True, "SKIP_PREFIX_CUSTOM_MASK": True, "STORE_TRANSPOSE": False,
         "NUM_Q_HEADS": 16, "NUM_BLOCKS": 64, "NUM_XCDS": 1},
        floats=("sm_scale",), integers=("kv_group_num",),
        types={"qo_indptr": "*i32", "kv_indptr": "*i32", "kv_indices": "*i32", "mask_ptr": "none",
               "mask_indptr": "none"},
        **ROWS_AND_KEYS,
    ),
    PublicKernel(
        "aiter_product", AITER, "aiter.ops.triton._triton_kernels.gemm.basic.gemm_a16w16", "_gemm_a16_w16_kernel",
        {"GROUP_SIZE_M": 8, "NUM_KSPLIT": 1, "SPLITK_BLOCK_SIZE": 4096, "EVEN_K": True, "EVEN_MN": True,
         "cache_modifier": "", "activation": "", "use_activation": False, "ADD_BIAS": False, "SKIP_REDUCE": False},
        ones=("stride_ak", "stride_bk", "stride_cn"), integers=("M", "N", "K"), types={"bias_ptr": "none"},
        **AITER_PRODUCT,
    ),
    PublicKernel(
        "aiter_gated_product", AITER, "aiter.ops.triton._triton_kernels.gemm.basic.gemm_a16w16_gated",
        "_gemm_a16_w16_gated_kernel",
        {"GROUP_SIZE_M": 8, "EVEN_K": True, "GRID_MN": 256, "cache_modifier": "", "activation": "",
         "use_activation": False},
        ones=("stride_ak", "stride_bk", "stride_cn"), integers=("M", "N", "K"), **AITER_PRODUCT,
    ),
    PublicKernel(
        "aiter_hstu", AITER, "aiter.ops.triton._triton_kernels.attention.hstu_attention", "_hstu_attn_fwd",
        {"CAUSAL": True, "HAS_MULTIPLE_TARGETS": False, "IS_DELTA_Q": False, "ALLOW_TF32": False, "BLOCK_D_Q": 64,
         "BLOCK_D_V": 64, "HAS_CONTEXTUAL_SEQ_LEN": False, "HAS_MAX_ATTN_LEN": False,
         "HAS_SORT_BY_LENGTH_INDICES": False},
        floats=("alpha",),
        integers=("H", "MAX_SEQ_LEN", "DeltaSize", "contextual_seq_len", "max_attn_len"),
        types={"sort_by_length_indices": "none", "seq_offsets": "*i64", "num_targets": "none"},
        **ROWS_AND_KEYS,
    ),
    PublicKernel(
        "fla_wall_dq", FLA, "fla.ops.wall_attn.parallel", "parallel_wall_attn_bwd_kernel_dq",
        {**FLA_ATTENTION, "USE_SCALAR_G": False},
        types=NONE | FP32 | {"g_scalar_cumsum": "none", "dg_scalar_cumsum": "none"}, round=2, **ATTENTION_CONFIGS,
    ),
    PublicKernel(
        "fla_chunk_dh", FLA, "fla.ops.common.chunk_h", "chunk_bwd_kernel_dh",
        {**CHUNK, "HQ": 4, "BS": 256, "K": 256, "V": 512, "NG": 1, "USE_G": True, "USE_GK": False, "USE_GV": False,
         "STORE_INITIAL_STATE_GRADIENT": False, "USE_FINAL_STATE_GRADIENT": False},
        types=NONE | FP32 | {"gk": "none", "gv": "none", "dht": "none", "dh0": "none", "split_offsets": "none"},
        round=2, described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64, 128), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_delta_h", FLA, "fla.ops.common.chunk_delta_h", "chunk_gated_delta_rule_fwd_kernel_h_blockdim64",
        {**CHUNK, "K": 128, "V": 512, "USE_G": True, "USE_GK": False, "USE_INITIAL_STATE": False,
         "STORE_FINAL_STATE": True, "SAVE_NEW_VALUE": True},
        types=NONE | FP32 | {"gk": "none", "h0": "none", "ht": "*fp32", "chunk_offsets": "none"}, round=2,
        described={"BT": 16, "BV": 32}, choices={"BT": (16, 32, 64), "BV": (16, 32, 64)},
    ),
    PublicKernel(
        "fla_wy", FLA, "fla.ops.gated_delta_rule.wy_fast", "recompute_w_u_fwd_kernel",
        {**CHUNK, "K": 256, "V": 512, "USE_G": True}, types=NONE | FP32 | {"A": "*bf16"}, round=2,
        described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_nsa", FLA, "fla.ops.nsa.parallel", "parallel_nsa_fwd_kernel",
        {"H": 4, "HQ": 64, "G": 16, "K": 256, "V": 512, "S": 16, "IS_VARLEN": False, "USE_BLOCK_COUNTS": False},
        types={"lse": "*fp32", "block_indices": "*i32", "block_counts": "none", "cu_seqlens_q": "none",
               "cu_seqlens_k": "none", "token_indices_q": "none"},
        integers=("TQ", "TK"), round=2, described={"BS": 32, "BK": 64, "BV": 128},
        choices={"BS": SIZES, "BK": (32, 64, 128, 256), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_path", FLA, "fla.ops.path_attn.parallel_path_fwd", "parallel_path_fwd_kernel",
        {"G": 4, "HQ": 16, "H": 4, "K": 64, "V": 512, "USE_GATE": False, "IS_VARLEN": False},
        types={"g_cumsum": "none", "cu_seqlens": "none", "indices": "none", "L": "*fp32", "M": "*fp32",
               "L_new": "*fp32"},
        round=2, described={"BT": 128, "BS": 32, "BK": 64, "BV": 256},
        choices={"BT": (64, 128), "BS": (16, 32, 64), "BK": (64,), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "liger_dw1", LIGER, "liger_kernel.ops.fused_moe_kernels", "_moe_bwd_dW1_kernel",
        {"H_dim": 4096, "I_dim": 2048, "stride_x_H": 1, "stride_d_pre_N": 1, "stride_dW1_H": 1},
        types=LIGER_TYPES, round=2, **PRODUCT_CONFIGS,
    ),
    PublicKernel(
        "liger_dw2", LIGER, "liger_kernel.ops.fused_moe_kernels", "_moe_bwd_dW2_kernel",
        {"H_dim": 4096, "I_dim": 2048, "stride_wact_I": 1, "stride_dout_H": 1, "stride_dW2_I": 1},
        types=LIGER_TYPES, round=2, **PRODUCT_CONFIGS,
    ),
    PublicKernel(
        "liger_bwd_down", LIGER, "liger_kernel.ops.fused_moe_kernels", "_moe_bwd_down_proj_kernel",
        {"H_dim": 4096, "I_dim": 2048, "stride_dO_H": 1, "stride_w_I": 1, "stride_pre_N": 1, "stride_d_pre_N": 1,
         "stride_wact_I": 1},
        types=LIGER_TYPES | {"s_scatter_idx_ptr": "*i32", "dS_ptr": "*fp32"}, round=2, **PRODUCT_CONFIGS,
    ),
    PublicKernel(
        "aiter_unified", AITER, "aiter.ops.triton._triton_kernels.attention.unified_attention",
        "kernel_unified_attention_2d",
        {"scale": 0.125, "num_query_heads": 32, "num_queries_per_kv": 8, "BLOCK_SIZE": 64, "HEAD_SIZE": 64,
         "HEAD_SIZE_PADDED": 64, "USE_ALIBI_SLOPES": False, "USE_QQ_BIAS": False, "USE_SOFTCAP": False,
         "USE_SINKS": False, "SLIDING_WINDOW": 0, "stride_k_cache_3": 1, "stride_v_cache_3": 1, "BLOCK_Q": 2,
         "FP8_MIN": -448.0, "FP8_MAX": 448.0, "ALL_DECODE": False, "SHUFFLED_KV_CACHE": False, "K_WIDTH": 8},
        floats=("softcap",), integers=("block_table_stride", "num_seqs", "query_stride_0", "query_stride_1",
                                       "output_stride_0", "output_stride_1", "qq_bias_stride_0"),
        types={"sink_ptr": "none", "block_tables_ptr": "*i32", "seq_lens_ptr": "*i32", "alibi_slopes_ptr": "none",
               "qq_bias_ptr": "none", "q_descale_ptr": "none", "k_descale_ptr": "none", "v_descale_ptr": "none",
               "out_scale_ptr": "none", "query_start_len_ptr": "*i32"},
        round=2, described={"BLOCK_M": 128, "TILE_SIZE": 32},
        choices={"BLOCK_M": WIDE[:4], "TILE_SIZE": (16, 32, 64, 128)},
    ),
    PublicKernel(
        "aiter_a8w8", AITER, "aiter.ops.triton._triton_kernels.gemm.basic.gemm_a8w8", "_gemm_a8w8_kernel",
        {"HAS_BIAS": False, "GROUP_SIZE_M": 8, "NUM_KSPLIT": 1, "SPLITK_BLOCK_SIZE": 4096, "EVEN_K": True,
         "GRID_MN": 256, "cache_modifier": ""},
        ones=("stride_ak", "stride_bk", "stride_cn"), integers=("M", "N", "K"),
        types={"a_ptr": "*i8", "b_ptr": "*i8", "a_scale_ptr": "*fp32", "b_scale_ptr": "*fp32", "bias_ptr": "none"},
        round=2, **AITER_PRODUCT,
    ),
    PublicKernel(
        "aiter_moe", AITER, "aiter.ops.triton._triton_kernels.moe.moe_op", "_fused_moe_kernel",
        {"group_n": 0, "group_k": 0, "GROUP_SIZE_M": 8, "EVEN_K": True, "MUL_ROUTED_WEIGHT": False, "top_k": 8,
         "compute_type": "bf16", "use_fp8_w8a8": False, "use_int8_w8a16": False, "NUM_XCDS": 1},
        ones=("stride_ak", "stride_bk", "stride_cn"), integers=("N", "K", "num_valid_tokens"),
        types={"a_scale_ptr": "none", "b_scale_ptr": "none", "topk_weights_ptr": "*fp32",
               "sorted_token_ids_ptr": "*i32", "expert_ids_ptr": "*i32", "num_tokens_post_padded_ptr": "*i32"},
        round=2, **AITER_PRODUCT,
    ),
    PublicKernel(
        "aiter_ff_gated", AITER, "aiter.ops.triton._triton_kernels.gemm.feed_forward.ff_a16w16_fused_gated",
        "_ff_a16w16_fused_gated",
        {"GROUP_SIZE_M": 8, "EVEN_K": True, "GRID_MN": 256, "cache_modifier": "", "activation": "",
         "use_activation": False},
        ones=("stride_xk", "stride_w1k", "stride_w2n", "stride_yk"), integers=("M", "N", "K"), round=2,
        described={"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 32},
        choices={"BLOCK_SIZE_M": WIDE, "BLOCK_SIZE_N": (32, 64, 128, 256), "BLOCK_SIZE_K": SIZES},
    ),
    PublicKernel(
        "aiter_batched", AITER, "aiter.ops.triton._triton_kernels.gemm.batched.batched_gemm_bf16",
        "_batched_gemm_bf16_kernel",
        {"HAS_BIAS": False, "GROUP_SIZE_M": 8, "NUM_KSPLIT": 1, "SPLITK_BLOCK_SIZE": 4096, "EVEN_K": False,
         "cache_modifier": "", "num_warps": 4, "num_stages": 2, "waves_per_eu": 0},
        ones=("stride_ak", "stride_bk", "stride_cn"), integers=("M", "N", "K"), types={"bias_ptr": "none"},
        round=2, **AITER_PRODUCT,
    ),
    PublicKernel(
        "fla_wall_dkv", FLA, "fla.ops.wall_attn.parallel", "parallel_wall_attn_bwd_kernel_dkv",
        {**FLA_ATTENTION, "USE_SCALAR_G": False, "DIAG_BF16": False},
        types=NONE | FP32 | {"g_scalar_cumsum": "none", "dg_scalar_cumsum": "none"}, round=3, **ATTENTION_CONFIGS,
    ),
    PublicKernel(
        "fla_gated_dkv", FLA, "fla.ops.attn.parallel", "parallel_attn_bwd_kernel_dkv",
        {**FLA_ATTENTION, "USE_G": True}, types=NONE | FP32, round=3, **ATTENTION_CONFIGS,
    ),
    PublicKernel(
        "fla_gated_dq", FLA, "fla.ops.attn.parallel", "parallel_attn_bwd_kernel_dq",
        {**FLA_ATTENTION, "USE_G": True}, types=NONE | FP32, round=3, **ATTENTION_CONFIGS,
    ),
    PublicKernel(
        "fla_gla_dv", FLA, "fla.ops.gla.chunk", "chunk_gla_bwd_kernel_dv", {**CHUNK, "K": 256, "V": 512},
        types=NONE | FP32 | {"A": "*bf16"}, round=3, described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_gla_inter", FLA, "fla.ops.gla.chunk", "chunk_gla_bwd_kernel_inter", {**CHUNK, "K": 256, "V": 512},
        types=NONE | FP32 | {"dg": "*fp32", "dq": "*fp32", "dk": "*fp32"}, round=3,
        described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_rwkv6_dh", FLA, "fla.ops.rwkv6.chunk", "chunk_rwkv6_bwd_kernel_dh",
        {**CHUNK, "HQ": 4, "K": 256, "V": 512, "NG": 1, "STORE_INITIAL_STATE_GRADIENT": False,
         "USE_FINAL_STATE_GRADIENT": False},
        types=NONE | {"gi": "*fp32", "ge": "*fp32", "dht": "none", "dh0": "none", "chunk_offsets": "none"}, round=3,
        described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_delta_dh", FLA, "fla.ops.common.chunk_delta_h", "chunk_gated_delta_rule_bwd_kernel_dhu_blockdim64",
        {**CHUNK, "K": 128, "V": 512, "USE_G": True, "USE_GK": False, "USE_INITIAL_STATE": False,
         "USE_FINAL_STATE_GRADIENT": False},
        types=NONE | FP32 | {"gk": "none", "dht": "none", "dh0": "none", "chunk_offsets": "none"}, round=3,
        described={"BT": 16, "BV": 32}, choices={"BT": (16, 32, 64), "BV": (16, 32, 64)},
    ),
    PublicKernel(
        "fla_wy_bwd", FLA, "fla.ops.gated_delta_rule.wy_fast", "prepare_wy_repr_bwd_kernel",
        {**CHUNK, "K": 256, "V": 512, "USE_G": True}, types=NONE | FP32 | {"A": "*bf16", "db": "*fp32", "dg": "*fp32"},
        round=3, described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "aiter_blockscale", AITER, "aiter.ops.triton._triton_kernels.gemm.basic.gemm_a8w8_blockscale",
        "_gemm_a8w8_blockscale_kernel",
        {"GROUP_K": 128, "GROUP_N": 128, "GROUP_SIZE_M": 8, "NUM_KSPLIT": 1, "SPLITK_BLOCK_SIZE": 4096, "EVEN_K": True,
         "GRID_MN": 256, "cache_modifier": "", "num_stages": 2},
        ones=("stride_ak", "stride_bk", "stride_cn"), integers=("M", "N", "K"),
        types={"a_ptr": "*bf16", "b_ptr": "*bf16", "a_scale_ptr": "*fp32", "b_scale_ptr": "*fp32"}, round=3,
        **AITER_PRODUCT,
    ),
    PublicKernel(
        "fla_dv_local", FLA, "fla.ops.common.chunk_o", "chunk_bwd_kernel_dv_local",
        {**CHUNK, "K": 256, "V": 512, "USE_G": True, "USE_A": False}, types=NONE | FP32 | {"A": "none"}, round=4,
        described={"BT": 64, "BK": 32, "BV": 128},
        choices={"BT": (16, 32, 64, 128), "BK": (32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_gla_da", FLA, "fla.ops.gla.chunk", "chunk_gla_bwd_kernel_dA", {**CHUNK, "V": 512},
        types=NONE | {"dA": "*fp32"}, round=4, described={"BT": 64, "BV": 32},
        choices={"BT": (16, 32, 64, 128), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "fla_nsa_dq", FLA, "fla.ops.nsa.parallel", "parallel_nsa_bwd_kernel_dq",
        {"B": 2, "H": 4, "HQ": 64, "G": 16, "K": 256, "V": 512, "S": 16, "IS_VARLEN": False,
         "USE_BLOCK_COUNTS": False},
        types={"lse": "*fp32", "delta": "*fp32", "block_indices": "*i32", "block_counts": "none", "cu_seqlens": "none",
               "token_indices": "none"},
        round=4, described={"BS": 32, "BK": 64, "BV": 128},
        choices={"BS": SIZES, "BK": (32, 64, 128, 256), "BV": (32, 64, 128)},
    ),
    PublicKernel(
        "aiter_atomic", AITER, "aiter.ops.triton._triton_kernels.gemm.basic.gemm_a16w16_atomic",
        "_gemm_a16_w16_atomic_kernel",
        {"GROUP_SIZE_M": 8, "NUM_KSPLIT": 1, "SPLITK_BLOCK_SIZE": 4096, "EVEN_K": True, "cache_modifier": "",
         "GRID_MN": 256},
        ones=("stride_ak", "stride_bk", "stride_cn"), integers=("M", "N", "K"), types={"c_ptr": "*fp32"}, round=4,
        **AITER_PRODUCT,
    ),
    PublicKernel(
        "aiter_moe_persistent", AITER, "aiter.ops.triton._triton_kernels.moe.moe_op", "_fused_moe_persistent_kernel",
        {"group_n": 0, "group_k": 0, "GROUP_SIZE_M": 8, "EVEN_K": True, "NUM_SMS": 132, "MUL_ROUTED_WEIGHT": True,
         "top_k": 8, "compute_type": "bf16", "use_fp8_w8a8": False, "use_int8_w8a16": False, "NUM_XCDS": 1},
        ones=("stride_ak", "stride_bk", "stride_cn"), integers=("N", "K", "num_valid_tokens"),
        types={"a_scale_ptr": "none", "b_scale_ptr": "none", "topk_weights_ptr": "*fp32",
               "sorted_token_ids_ptr": "*i32", "expert_ids_ptr": "*i32", "num_tokens_post_padded_ptr": "*i32"},
        round=4, **AITER_PRODUCT,
    ),
)  # fmt: skip
