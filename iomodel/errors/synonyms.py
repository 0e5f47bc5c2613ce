"""Synonyms of names of fields, options, commands and values, for Python and the command line alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import chain

SAME = {
    # devices and layouts
    "hardware": "gpu device hw accelerator gpu_type gpu_name gpu_model device_name chip",
    "arch": "hardware gpu device hw accelerator gpu_type gpu_name gpu_arch architecture compute_capability sm",
    "tensor_parallel": "tp tp_size tensor_parallel_size tensor_model_parallel_size tensor_parallelism",
    "pipeline_parallel": "pp pp_size pipeline_parallel_size pipeline_model_parallel_size pipeline_parallelism",
    "expert_parallel": "ep ep_size expert_parallel_size expert_model_parallel_size expert_parallelism",
    "context_parallel": "cp cp_size context_parallel_size",
    "decode_context_parallel": "dcp dcp_size decode_context_parallel_size",
    "data_parallel": "dp dp_size data_parallel_size",
    "prefill_tensor_parallel": "prefill_tp prefill_tp_size",
    "decode_tensor_parallel": "decode_tp decode_tp_size",
    "prefill": "prefill_hardware prefill_gpu prefill_device hardware gpu device hw accelerator gpu_type",
    "decode": "decode_hardware decode_gpu decode_device",
    "count": "num_gpus n_gpus ngpus gpu_count num_devices n_devices device_count",
    "max_devices max_count": "max_gpus most_devices most_gpus",
    # requests
    "prompt": "input input_len input_length input_tokens isl prompt_len prompt_length prompt_tokens random_input_len "
    "input_sequence_length context_tokens contexttokens request_tokens num_prefill_tokens input_lens prompt_lens",
    "output": "output_len output_length output_tokens osl completion_tokens generated_tokens generatedtokens "
    "response_tokens output_sequence_length num_decode_tokens response_len output_lens new_tokens random_output_len "
    "max_new_tokens max_tokens completion",
    "load": "qps rps request_rate arrival_rate requests_per_second",
    "ttft": "time_to_first_token max_ttft ttft_slo slo_ttft",
    "tpot": "itl tbt time_per_output_token inter_token_latency max_tpot tpot_slo slo_tpot",
    "concurrency clients": "concurrency clients max_concurrency num_users users",
    "requests": "num_requests num_prompts n_requests limit max_requests",
    "arrivals trace": "trace_file",
    "arrival": "arrival_time arrived_at arrival_timestamp request_start request_start_time start_time start_times "
    "start_timestamp timestamp request_timestamp request_time submit_time created_at created time ts",
    "memory_utilization": "gpu_memory_utilization gmu",
    "weight_dtype": "quantization quantisation quant quantize weight_type wdtype w_dtype",
    "token_budget step_tokens": "max_num_batched_tokens max_batched_tokens chunked_prefill_size",
    "shared_tokens": "shared_prefix prefix_len prefix_tokens shared_prefix_tokens shared_prefix_len system_prompt "
    "system_prompt_tokens",
    "hit_rate": "cache_hit_rate prefix_hit_rate cached cached_share",
    "draft_tokens": "num_speculative_tokens speculative_tokens spec_tokens gamma",
    "acceptance": "acceptance_rate accept_rate",
    "draft": "draft_model speculative_model",
    "price price_per_hour prices": "hourly_price price_per_hour prices cost_per_hour price_per_gpu_hour",
    "measured": "tokens_per_second tokens_per_second_per_device tokens_per_second_per_gpu tps tgs tok_per_s",
    "micro_batch": "mbs micro_batch_size",
    # calls
    "q_len seq_len": "seqlen sequence_length seq_length seq",
    "q_len": "seq_len seqlen_q seq_len_q q_seq_len query_len num_queries n_q nq q_length",
    "kv_len": "seqlen_k seqlen_kv seq_len_k seq_len_kv kv_seq_len num_keys n_k nk k_len key_len cache_len kv_length "
    "context context_len context_length ctx",
    "head_dim": "d d_head head_size hdim headdim dim_head head_dimension d_k",
    "value_dim": "d_v dv v_dim dim_v v_head_dim head_dim_v headdim_v value_head_dim hdim_v v_head_size",
    "q_lens": "seq_lens seqlens lengths sequence_lengths seqlens_q query_lens",
    "kv_lens": "seqlens_k seqlens_kv context_lens key_lens",
    "heads": "hq num_heads n_heads nheads num_attention_heads q_heads num_q_heads num_query_heads n_head h",
    "kv_heads": "num_kv_heads n_kv_heads num_key_value_heads nheads_k nheads_kv n_head_kv h_kv h_k hkv",
    "batch": "batch_size bs bsz b max_num_seqs max_batch_size global_batch_size gbs",
    "batches": "batch_sizes",
    "dtype": "data_type datatype torch_dtype",
    "kv_dtype": "kv_cache_dtype cache_dtype kv_type kv_precision",
    "page_size": "kv_block_size page_block_size",
    "softcap": "logits_soft_cap logit_soft_cap logit_softcap logit_cap attn_logit_softcapping",
    "vocab_size": "vocab vocabulary vocabulary_size n_vocab num_classes",
    "rows": "tokens num_tokens n_tokens",
    "channels": "columns cols n_cols in_features",
    "in_features": "hidden_size d_model n_embd embed_dim",
    "hidden_features": "intermediate_size d_ff ffn_hidden_size ffn_dim",
    # tiles and kernels
    "block_q": "b_r br block_size_q q_block q_tile tile_q kblockm",
    "block_kv": "b_c bc block_size_kv kv_block kv_tile tile_kv kblockn",
    "warps": "num_warps n_warps",
    "stages": "num_stages n_stages",
    "splits": "num_splits n_splits num_kv_splits kv_splits",
    "implementation": "kernel impl",
    "sram_bytes shared_bytes": "smem smem_bytes shared_memory shared_memory_bytes sram_size",
    "registers": "regs num_regs maxrregcount registers_per_thread",
    "threads": "num_threads block_dim threads_per_block blocksize",
    "time seconds": "time seconds measured measured_time measured_seconds runtime elapsed time_s",
    # files
    "out": "output csv plot out_file output_file outfile save",
    # arguments of commands
    "algorithm algorithms": "algo",
    "model": "model_name model_path model_id",
    # values
    "norm": "rmsnorm rms_norm",
    "layer_norm": "layernorm",
    "bf16": "bfloat16",
    "fp16": "float16 half",
    "fp32": "float32 single",
    "causal": "is_causal lower_triangular tril",
    "forward": "fwd",
    "backward": "bwd",
    "both": "fwd_bwd fwd+bwd fwdbwd forward+backward",
    "trtllm tensorrt-llm": "trt_llm tensorrt_llm tensorrt trt",
    "llama.cpp": "llamacpp llama_cpp ollama lm_studio lmstudio",
}
"""Words that mean the same as a name, by that name; of several names, the first that a place takes is meant."""
LIKELY = {
    "max_devices replica_devices max_count": "count gpus devices num_gpus n_gpus ngpus gpu_count num_devices n_devices",
    "count data_parallel hardware": "gpus devices",
    "count data_parallel": "world_size",
    "micro_batch": "microbatches num_microbatches micro_batches gradient_accumulation gradient_accumulation_steps",
    "count expert_parallel": "dp data_parallel data_parallel_size replicas",
    "prompt output q_len": "max_model_len max_context max_seq_len",
    "tokens rows": "q_len",
    "prompt q_len": "prompt seq_len seqlen sequence_length tokens context length isl input context_length context_len",
    "expert_parallel": "data_parallel_attention dp_attention enable_dp_attention attention_dp",
    "link network_bandwidth": "bandwidth interconnect network nvlink link_bandwidth transfer transfer_bandwidth",
    "page_size": "paged paged_kv page pages",
    "sram_bytes": "sram_kb sram_kib smem_kb smem_size shared_mem shared_memory_kb",
    "context": "tokens kv_len ctx ctx_size context_length context_len n_ctx max_model_len length seq_len",
    "page_size block_q block_kv": "block_size",
    "block_q block_kv": "tiles tile tile_size block",
    "block_q": "block_m tile_m bm block_size_m",
    "block_kv": "block_n tile_n bn block_size_n",
    "sram_elements rows": "m",
    "q_lens document_lengths": "cu_seqlens cu_seqlens_q",
    "kv_dtype": "kv_cache cache kv_quant kv_quantization kv_bits kv_cache_bits",
    "sinks": "sink attention_sinks attn_sinks s_aux",
    "kv_len": "past past_len",
    "step_tokens token_budget": "chunk chunk_size chunk_tokens prefill_chunk prefill_chunk_size chunked_prefill",
    "draft draft_tokens": "speculative speculation spec_decode speculative_decoding",
    "draft_tokens acceptance": "speculative_config speculative_algorithm speculative_num_steps eagle",
    "kv_scales": "scale_dtype kv_scale kv_scale_dtype scales",
    "shared_tokens hit_rate": "prefix_cache prefix_caching enable_prefix_caching prefix cache_prefix",
    "loads groups": "experts num_experts n_experts experts_per_token",
    "in_features hidden_features head_dim": "width dim features",
    "hidden_features in_features head_dim": "hidden",
    "q_len out_features": "n",
    "in_features": "k",
    "weight_dtype": "weights",
    "implementation engine": "backend attention_backend",
    "recompute": "checkpointing activation_checkpointing gradient_checkpointing remat",
    "shard": "zero fsdp zero_stage",
    "tpot ttft": "latency slo",
    "price": "cost",
    "load": "rate throughput",
    "kv_heads": "gqa group_size gqa_group gqa_groups gqa_ratio gqa_group_size",
    "direction": "training backward_pass",
    "right": "causal",
    "window window_left": "sliding sliding_window swa local window_size attention_window window",
    "full": "none false no_mask bidirectional dense unmasked",
    "documents": "varlen document doc docs ragged packed",
    "blocks": "block_sparse block_mask",
    "out": "file",
    "json": "format as_json",
    "memory_utilization": "mem_fraction_static memory_fraction",
    "standard tiled_query": "naive vanilla unfused math textbook eager",
    "flash2 flash3": "flex_attention flexattention sdpa scaled_dot_product_attention "
    "flash_attention flashattention flash_attn fa attention mha gqa mqa prefill",
    "flash1": "fa1 flashattention1 flash_attention_1 flash_attn_1",
    "flash2": "fa2 flashattention2 flash_attention_2 flash_attn_2 flash4 fa4 flashattention4 flash_attention_4",
    "flash3": "fa3 flashattention3 flash_attention_3 flash_attn_3",
    "dsa": "flashmla_sparse flash_mla_sparse sparse_mla deepseek_sparse_attention",
    "split_kv": "flash_decoding flash_decode flashdecoding split_k paged_attention decode_attention decode "
    "mla mla_decode decode_mla multi_head_latent_attention latent_attention",
    "mamba1 mamba2": "mamba ssm selective_scan",
    "mamba2": "ssd",
    "chunked_scan": "gla deltanet gated_deltanet gated_delta_net kda lightning_attention retnet",
    "linear_transformer chunked_scan": "linear_attention",
    "gemm": "linear matmul mm",
    "activation": "gelu silu relu sigmoid exp",
    "gated_activation": "swiglu silu_and_mul geglu",
    "rotary": "rope",
    "copy": "memcpy clone elementwise",
    "add": "vector_add vecadd axpy residual",
    "fused_mlp split_mlp": "moe ffn mlp swiglu experts mixture_of_experts moe_layer grouped_gemm",
    "gemm split_mlp": "gemv matvec mv",
    "nvfp4 mxfp4": "fp4 float4 e2m1",
    "fp8": "e4m3 e5m2 fp8_e4m3 fp8_e5m2 float8 float8_e4m3 float8_e4m3fn",
    "int4 nvfp4": "4bit 4_bit w4 q4",
    "int8 fp8": "8bit 8_bit w8 q8 w8a8",
    "int4-g128": "awq gptq w4a16",
    "nf4": "bnb bitsandbytes qlora",
    "time": "speed fastest latency",
    "traffic": "bytes io hbm",
    "deepseek-v3": "deepseek_r1 deepseek_r1_0528 deepseek_v3_0324",
    "a100-sxm4-80gb": "ampere",
    "l40s rtx4090": "ada lovelace ada_lovelace",
    "h100-sxm5 h200-sxm": "hopper",
    "b200": "blackwell",
    "tiles": "tune autotune search optimize optimise",
    "check": "fit fits spill",
    "cost": "count flops traffic bytes",
    "estimate": "time latency predict runtime roofline",
    "diagnose": "explain profile why bottleneck",
    "plan": "serve capacity memory deploy size",
    "simulate": "bench benchmark",
    "disaggregate": "pd pd_disaggregation",
    "hardware": "list_hardware specs",
    "algorithms": "list list_algorithms kernels implementations",
    "model": "list_models",
    "plot": "draw picture figure",
}
"""Words that probably mean one of some names: a message suggests those that its place takes."""
COMMANDS = {
    "tiles": "solve",
    "formula": "expressions formulas expression",
    "crossover": "crossovers",
    "train": "train_step training",
    "bounds": "lower_bounds bound lower_bound",
    "hardware": "devices gpus gpu device",
    "model": "models",
    "algorithms": "algorithm",
    "--help": "help",
    "--version": "version",
}
"""Words that mean the same as a command."""
ABSENT = {
    "fp4 float4 e2m1 mxfp4 nvfp4 int4": "4-bit types are those of K and V (kv_dtype) and of weights (weight_dtype)",
    "gpt4 bert t5": "this model is not on file",
    "orin_nx orin_nano jetson_orin_nx jetson_orin_nano jetson_nano xavier jetson_thor": "this device is not on file",
    "ngl n_gpu_layers gpu_layers": "a plan has every layer on the GPU",
    "no_cuda verbose quiet debug log_level": "an answer depends on none",
    "dp_attention enable_dp_attention attention_dp data_parallel_attention": "attention is data parallel among the "
    "ranks of expert_parallel, each of which keeps the caches of its own requests",
    "dropout": "a pass beside attention, counted in a program (iomodel.torch.TrafficMode)",
    "sliding_window window window_size attention_window swa": "a window is a mask, such as Window(left=1023, right=0)",
    "torch testing": "a room of the library for Python, without a command",
}
"""Statements about words that name something known, where no name means it."""


def key(word: str) -> str:
    """Fold the spelling of a word: letters of one case, words joined by an underscore.

    >>> key("--Seq-Len"), key("Flash Attention")
    ('seq_len', 'flash_attention')
    """
    return word.strip().lstrip("-").lower().replace("-", "_").replace(" ", "_")


def same(word: str, names: Collection[str], table: Mapping[str, str] = SAME) -> str | None:
    """Return the one of some names that a synonym means for certain; None for any other word.

    >>> same("tp", ["pipeline_parallel", "tensor_parallel"]), same("seq-len", ["q_len"]), same("x", ["q_len"])
    ('tensor_parallel', 'q_len', None)
    """
    return next((name for name in _meanings(word, table) if name in names), None)


def meant(word: str, names: Collection[str]) -> list[str]:
    """List those of some names that a synonym means, for certain or probably.

    >>> meant("sliding", ["full", "causal", "window"]), meant("input", ["output", "prompt"])
    (['window'], ['prompt'])
    """
    found = (*_meanings(word, SAME), *_meanings(word, LIKELY), *_meanings(word, COMMANDS))
    return [name for name in dict.fromkeys(found) if name in names]


@lru_cache
def spellings(names: tuple[str, ...]) -> Mapping[str, list[str]]:
    """List the names that each long synonym of some names means.

    >>> spellings(("bf16", "int8"))
    {'bfloat16': ['bf16']}
    """
    words = chain(_names(id(SAME)), _names(id(LIKELY)))
    return {word: found for word in dict.fromkeys(words) if len(word) >= LONG and (found := meant(word, names))}


LONG = 8
"""Letters from which on a synonym is recognised with a mistake."""


def known(word: str) -> bool:
    """Check whether a word is in a table, so that no name is guessed from its letters."""
    return bool(absence(word)) or any(key(word) in _names(id(table)) for table in (SAME, LIKELY))


def absence(word: str) -> str:
    """Return the statement about a word that names something known without a name here; empty for any other word."""
    folded = key(word)
    return next((text for words, text in ABSENT.items() if folded in words.split()), "")


def _meanings(word: str, table: Mapping[str, str]) -> Iterable[str]:
    return _names(id(table)).get(key(word), ())


@lru_cache(maxsize=8)
def _names(place: int) -> Mapping[str, list[str]]:
    """List the names that each word of a table means, in the order of the table, which is a constant of this module."""
    table = next(each for each in (SAME, LIKELY, COMMANDS) if id(each) == place)
    found: dict[str, list[str]] = {}
    for names, words in table.items():
        for word in dict.fromkeys(words.split()):
            found.setdefault(word, []).extend(names.split())
    return found
