"""Every algorithm without its nests and formulas; written by `python -m tests.support.shipped_formulas`."""

from typing import Any

CATALOGUE: dict[str, dict[str, Any]] = {
    "chunked_scan": {
        "module": "chunked_scan",
        "name": "chunked_scan",
        "title": "Chunked scan",
        "cite": "Yang, Wang, Shen, Panda and Kim, Gated Linear "
        "Attention Transformers with Hardware-Efficient "
        "Training, arXiv:2312.06635 (2023), section 4 and "
        "Algorithm 1; with the delta rule Yang, Wang, Zhang, "
        "Shen and Kim, arXiv:2406.06484 (2024), equations 8 "
        "to 11, and Yang, Kautz and Hatamizadeh, Gated Delta "
        "Networks, arXiv:2412.06464 (2024), section 3.3",
        "answers": "recurrence",
        "features": ("constant_decay", "head_decay", "channel_decay", "delta", "stateful"),
        "exclusive": ("constant_decay", "head_decay", "channel_decay"),
        "options": {"materialize": True},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ("materialize",)},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "cut_cross_entropy": {
        "module": "cut_cross_entropy",
        "name": "cut_cross_entropy",
        "title": "Cut cross-entropy",
        "cite": "Wijmans, Huval, Hertzberg, Koltun and "
        "Kraehenbuehl, Cut Your Losses in "
        "Large-Vocabulary Language Models, "
        "arXiv:2411.09009 (2024), Algorithms 1 and 2",
        "answers": "cross_entropy",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "dsa": {
        "module": "dsa",
        "name": "dsa",
        "title": "DeepSeek sparse attention",
        "cite": "DeepSeek-AI, DeepSeek-V3.2: Pushing the Frontier of Open "
        "Large Language Models, arXiv:2512.02556 (2025), section 2.1, "
        "equations 1 and 2",
        "answers": "attention",
        "features": ("latent",),
        "exclusive": (),
        "options": {"index_heads": 64, "index_queries": 2, "index_dim": 128, "top_k": 2048},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "attention to the k keys of the largest scores by an indexer of its own, the same in all heads",
        "masks": ("full", "causal"),
        "as_written": (),
        "taken": {"forward": ("index_heads", "index_queries", "index_dim", "top_k")},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {
            "forward": {
                "cite": "github.com/deepseek-ai/DeepGEMM: "
                "the kernels of the indexer divide "
                "the keys of a query among blocks",
                "phases": (("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",), ("atomics",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": True,
            }
        },
        "kernels": (),
    },
    "eager": {
        "module": "eager",
        "name": "eager",
        "title": "Eager attention",
        "cite": "Dao, Fu, Ermon, Rudra and Re, arXiv:2205.14135 (2022), "
        "Algorithms 0 and 3, by the operations that PyTorch 2 "
        "(github.com/pytorch/pytorch) launches for "
        "attention_pytorch in github.com/Dao-AILab/flash-attention, "
        "benchmarks/benchmark_flash_attention.py",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"dropout_pass": False},
        "saved": {},
        "classes": frozenset({"exact"}),
        "without": {
            "forward": frozenset({"head_scales", "kv_dtype", "latent", "paged", "token_scales"}),
            "backward": frozenset({"head_scales", "kv_dtype", "latent", "paged", "softcap", "token_scales"}),
        },
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ("dropout_pass",), "backward": ("dropout_pass",), "both": ("dropout_pass",)},
        "written_in": {"forward": ("bias_vector",), "backward": (), "both": ("bias_vector",)},
        "residencies": {},
        "executions": {
            "forward": {
                "cite": "github.com/pytorch/pytorch, "
                "aten/src/ATen/native/cuda: "
                "softmax_backward_cuda_out "
                "multiplies gradient and output "
                "in a kernel before that of the "
                "softmax; the elementwise kernel "
                "of tensors with different "
                "shapes computes the address of "
                "each element. Both costs were "
                "read off rows in sight: see "
                "docs/accuracy.md",
                "phases": (("hbm", "l2", "addresses"), ("matrix",), ("exp", "softmax"), ("gradient",), ("random",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.25,
                "host_launch": 3.5e-05,
                "axes": False,
            },
            "backward": {
                "cite": "github.com/pytorch/pytorch, "
                "aten/src/ATen/native/cuda: "
                "softmax_backward_cuda_out "
                "multiplies gradient and output "
                "in a kernel before that of the "
                "softmax; the elementwise "
                "kernel of tensors with "
                "different shapes computes the "
                "address of each element. Both "
                "costs were read off rows in "
                "sight: see docs/accuracy.md",
                "phases": (("hbm", "l2", "addresses"), ("matrix",), ("exp", "softmax"), ("gradient",), ("random",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.25,
                "host_launch": 3.5e-05,
                "axes": False,
            },
        },
        "kernels": (),
    },
    "norm": {
        "module": "elementwise",
        "name": "norm",
        "title": "y = norm(x) * gamma",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "add_norm": {
        "module": "elementwise",
        "name": "add_norm",
        "title": "residual += x; y = norm(residual) * gamma",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "layer_norm": {
        "module": "elementwise",
        "name": "layer_norm",
        "title": "y = layer_norm(x) * gamma + beta",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "gather_rows": {
        "module": "elementwise",
        "name": "gather_rows",
        "title": "y = rows of x, in the order of their experts",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "rotary": {
        "module": "elementwise",
        "name": "rotary",
        "title": "rotate Q and K",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "append": {
        "module": "elementwise",
        "name": "append",
        "title": "append K and V to the cache",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "append_latent": {
        "module": "elementwise",
        "name": "append_latent",
        "title": "append the latent to the cache",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "gated_activation": {
        "module": "elementwise",
        "name": "gated_activation",
        "title": "act(gate) * up",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "activation": {
        "module": "elementwise",
        "name": "activation",
        "title": "act(x)",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "embedding": {
        "module": "elementwise",
        "name": "embedding",
        "title": "look up embeddings",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "combine_experts": {
        "module": "elementwise",
        "name": "combine_experts",
        "title": "add up the experts of a token",
        "cite": "kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        "answers": "elementwise",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "flash1": {
        "module": "flash1",
        "name": "flash1",
        "title": "FlashAttention",
        "cite": "Dao, Fu, Ermon, Rudra and Re, FlashAttention: Fast and "
        "Memory-Efficient Exact Attention with IO-Awareness, "
        "arXiv:2205.14135 (2022), Algorithms 1 and 4",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset({"exact", "exact-backward", "fixed-split", "row-atomic"}),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": (), "backward": (), "both": ()},
        "written_in": {
            "forward": ("padded_statistics", "eager_loads", "unskipped_window", "padded_queries", "bias_vector"),
            "backward": ("padded_statistics", "eager_loads", "unskipped_window", "padded_queries", "bias_vector"),
            "both": ("padded_statistics", "eager_loads", "unskipped_window", "padded_queries", "bias_vector"),
        },
        "residencies": {
            "forward": (
                {
                    "title": "FlashAttention forward: K "
                    "and V pass through shared "
                    "memory to registers; "
                    "partial sums of O meet "
                    "there",
                    "cite": "github.com/HazyResearch/flash-attention "
                    "at 2ed471ec, "
                    "csrc/flash_attn/src/fmha_fprop_fp16_kernel.sm80.cu",
                    "overhead": 24,
                    "warps": (4, 8),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (32, 64, 96, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "fp32"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "value"}), frozenset({"depth", "key"})}),
                },
                {
                    "title": "FlashAttention forward: K in registers, V in shared memory; partial sums of O meet there",
                    "cite": "github.com/HazyResearch/flash-attention "
                    "at 2ed471ec, "
                    "csrc/flash_attn/src/fmha_fprop_fp16_kernel.sm80.cu",
                    "overhead": 24,
                    "warps": (4, 8),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (32, 64, 96, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"query", "value"}), "fp32"),
                        (frozenset({"key", "value"}), None),
                    ),
                    "operand_axes": frozenset({frozenset({"depth", "key"})}),
                },
            ),
            "backward": (
                {
                    "title": "FlashAttention backward: K "
                    "and V in registers; Q, dO, "
                    "P, dS in shared memory; "
                    "partial sums of dQ meet "
                    "there",
                    "cite": "github.com/HazyResearch/flash-attention "
                    "at 2ed471ec, "
                    "csrc/flash_attn/src/fmha_dgrad_fp16_kernel_loop.sm80.cu",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (32, 64, 96, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "query"}), "fp32"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "value"}), frozenset({"depth", "key"})}),
                },
            ),
        },
        "executions": {
            "forward": {
                "cite": "arXiv:2205.14135, section 3.1 "
                "and Algorithm 1: all warps of "
                "a block wait for each other "
                "between the steps of a tile, "
                "for each has a part of the "
                "keys of every row",
                "phases": (("matrix",), ("shared memory",), ("exp", "softmax"), ("gradient",), ("random",), ("l2",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": True,
            },
            "backward": {
                "cite": "arXiv:2205.14135, section 3.1 "
                "and Algorithm 1: all warps of "
                "a block wait for each other "
                "between the steps of a tile, "
                "for each has a part of the "
                "keys of every row",
                "phases": (("matrix",), ("shared memory",), ("exp", "softmax"), ("gradient",), ("random",), ("l2",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": True,
            },
        },
        "kernels": (
            {
                "name": "flash-attention-1",
                "title": "FlashAttention of 2022 (CUDA): one thread block per head",
                "cite": "github.com/HazyResearch/flash-attention at 2ed471ec, csrc/flash_attn",
                "searched": {},
                "places": {"forward": (0, 1), "backward": (0,)},
                "executions": {},
            },
            {
                "name": "flash-attention-1-2023",
                "title": "FlashAttention of 2023 (CUDA): thread blocks also divide the sequence of a head",
                "cite": "github.com/Dao-AILab/flash-attention, v0.2.8 "
                "and later, csrc/flash_attn: blocks also "
                "divide the sequence, as benchmarked in "
                "arXiv:2307.08691, Figures 4 and 7",
                "searched": {},
                "places": {"forward": (0, 1), "backward": (0,)},
                "executions": {
                    "forward": {
                        "cite": "github.com/Dao-AILab/flash-attention, "
                        "v0.2.8 and later, "
                        "csrc/flash_attn: "
                        "blocks also "
                        "divide the "
                        "sequence, as "
                        "benchmarked in "
                        "arXiv:2307.08691, "
                        "Figures 4 and 7",
                        "phases": (
                            ("matrix",),
                            ("shared memory",),
                            ("exp", "softmax"),
                            ("gradient",),
                            ("random",),
                            ("l2",),
                        ),
                        "order": "grid",
                        "in_flight": None,
                        "waiting": 0,
                        "address_clocks": 0.0,
                        "host_launch": 0.0,
                        "axes": False,
                    },
                    "backward": {
                        "cite": "github.com/Dao-AILab/flash-attention, "
                        "v0.2.8 and "
                        "later, "
                        "csrc/flash_attn: "
                        "blocks also "
                        "divide the "
                        "sequence, as "
                        "benchmarked in "
                        "arXiv:2307.08691, "
                        "Figures 4 and 7",
                        "phases": (
                            ("matrix",),
                            ("shared memory",),
                            ("exp", "softmax"),
                            ("gradient",),
                            ("random",),
                            ("l2",),
                        ),
                        "order": "grid",
                        "in_flight": None,
                        "waiting": 0,
                        "address_clocks": 0.0,
                        "host_launch": 0.0,
                        "axes": False,
                    },
                },
            },
        ),
    },
    "flash2": {
        "module": "flash2",
        "name": "flash2",
        "title": "FlashAttention-2",
        "cite": "Dao, FlashAttention-2: Faster Attention with Better "
        "Parallelism and Work Partitioning, arXiv:2307.08691 "
        "(2023), Algorithms 1 and 2",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"lse": True, "deterministic": False, "dq_buffers": 1, "accumulate": False},
        "saved": {"lse": True},
        "classes": frozenset({"exact", "exact-backward", "fixed-split", "row-atomic"}),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": ("two_statistics", "value_slabs"),
        "taken": {
            "forward": ("lse",),
            "backward": ("deterministic", "dq_buffers", "accumulate"),
            "both": ("lse", "deterministic", "dq_buffers", "accumulate"),
        },
        "written_in": {
            "forward": (
                "two_statistics",
                "value_slabs",
                "padded_statistics",
                "masked_loads",
                "eager_loads",
                "unskipped_window",
                "padded_queries",
                "bias_vector",
                "order",
            ),
            "backward": (
                "two_statistics",
                "padded_statistics",
                "eager_loads",
                "unskipped_window",
                "padded_queries",
                "bias_vector",
            ),
            "both": (
                "two_statistics",
                "value_slabs",
                "padded_statistics",
                "masked_loads",
                "eager_loads",
                "unskipped_window",
                "padded_queries",
                "bias_vector",
                "order",
            ),
        },
        "residencies": {
            "forward": (
                {
                    "title": "FlashAttention-4 forward, "
                    "two query tiles: Q, O, a "
                    "ring of K and V in shared "
                    "memory; S, O in tensor "
                    "memory",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (10,),
                    "producers": 8,
                    "producer_registers": 64,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (128, 16),
                    "sizes": ((256,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, "
                    "two query tiles: Q, O, a "
                    "ring of K and V in shared "
                    "memory; S, O in tensor "
                    "memory",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (5,),
                    "producers": 8,
                    "producer_registers": 64,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (96,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (128, 16),
                    "sizes": ((256,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, "
                    "two query tiles: Q, O, a "
                    "ring of K and V in shared "
                    "memory; S, O in tensor "
                    "memory",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (3,),
                    "producers": 8,
                    "producer_registers": 64,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (128,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (128, 16),
                    "sizes": ((256,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, "
                    "one query tile: Q, O, a "
                    "ring of K and V in shared "
                    "memory; S, O in tensor "
                    "memory",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (4,),
                    "stages": (12,),
                    "producers": 12,
                    "producer_registers": 104,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (128, 16),
                    "sizes": ((128,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, "
                    "one query tile: Q, O, a "
                    "ring of K and V in shared "
                    "memory; S, O in tensor "
                    "memory",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (4,),
                    "stages": (7,),
                    "producers": 12,
                    "producer_registers": 104,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (96,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (128, 16),
                    "sizes": ((128,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, "
                    "one query tile: Q, O, a "
                    "ring of K and V in shared "
                    "memory; S, O in tensor "
                    "memory",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (4,),
                    "stages": (5,),
                    "producers": 12,
                    "producer_registers": 104,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (128,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (128, 16),
                    "sizes": ((128,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, a "
                    "pair of blocks with two "
                    "query tiles each: half of K "
                    "and V in each block",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (6,),
                    "producers": 8,
                    "producer_registers": 64,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (128,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (128, 16),
                    "sizes": ((256,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, "
                    "two query tiles: Q, O, a "
                    "ring of K and V in shared "
                    "memory; S, O in tensor "
                    "memory; rows of 192 and "
                    "128, O in the place of Q, "
                    "three uneven stages",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (3,),
                    "producers": 8,
                    "producer_registers": 64,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (192,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (128,),
                    "step": (128, 16),
                    "sizes": ((256,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, "
                    "one query tile: Q, O, a "
                    "ring of K and V in shared "
                    "memory; S, O in tensor "
                    "memory; rows of 192 and "
                    "128, O in the place of Q, "
                    "three uneven stages",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (4,),
                    "stages": (3,),
                    "producers": 12,
                    "producer_registers": 104,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (192,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (128,),
                    "step": (128, 16),
                    "sizes": ((128,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, a "
                    "pair of blocks with two "
                    "query tiles each: half of K "
                    "and V in each block; rows "
                    "of 192 and 128, O in the "
                    "place of Q",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: interface.py, flash_fwd_sm100.py",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (5,),
                    "producers": 8,
                    "producer_registers": 64,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (192,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (128,),
                    "step": (128, 16),
                    "sizes": ((256,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-4 forward, "
                    "rows of 256, a pair of "
                    "blocks: Q, half of K and V "
                    "in each; S, O in tensor "
                    "memory",
                    "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute: sm100_hd256_2cta_fmha_forward.py",
                    "overhead": 24,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 8,
                    "producer_registers": 128,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (256,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (128, 16),
                    "sizes": ((128,), (128,)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-2 forward: Q, K, V in shared memory, S and O in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "csrc/flash_attn: "
                    "kernel_traits.h and "
                    "flash_fwd_kernel.h",
                    "overhead": 48,
                    "warps": (4, 8),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (32, 64, 96, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashInfer prefill, rows shared out: Q, K, V in shared memory; S and O in registers",
                    "cite": "github.com/flashinfer-ai/flashinfer, "
                    "include/flashinfer/attention/prefill.cuh: "
                    "KernelTraits, "
                    "SharedStorageQKVO",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((64, 128), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashInfer prefill, keys "
                    "shared out: Q, K, V in "
                    "shared memory; S and an O "
                    "of each warp in registers",
                    "cite": "github.com/flashinfer-ai/flashinfer, "
                    "include/flashinfer/attention/prefill.cuh: "
                    "KernelTraits, "
                    "SharedStorageQKVO",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((16,), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "fp32"),
                        (frozenset({"query"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashInfer prefill, rows of "
                    "512: keys, then columns of "
                    "O shared out; P in shared "
                    "memory, V in place of K",
                    "cite": "github.com/flashinfer-ai/flashinfer, "
                    "include/flashinfer/attention/prefill.cuh: "
                    "KernelTraits, "
                    "SharedStorageQKVO",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (512,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((16,), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashInfer prefill, rows of "
                    "512: rows and keys, then "
                    "columns of O shared out by "
                    "two warps each",
                    "cite": "github.com/flashinfer-ai/flashinfer, "
                    "include/flashinfer/attention/prefill.cuh: "
                    "KernelTraits, "
                    "SharedStorageQKVO",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "tile",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (512,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((32,), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "CUTLASS fused attention: "
                    "slices of Q and K, then P "
                    "and slices of V in shared "
                    "memory; S and O in "
                    "registers",
                    "cite": "github.com/facebookresearch/xformers, "
                    "xformers/csrc/attention/cuda/fmha: "
                    "kernel_forward.h, "
                    "generate_kernels.py",
                    "overhead": 64,
                    "warps": (4, 8),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "tile",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 128),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 32),
                    "sizes": ((64,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "fp32"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "CUTLASS fused attention: "
                    "slices of Q and K, then P "
                    "and slices of V in shared "
                    "memory; S and O in "
                    "registers, in fp32",
                    "cite": "github.com/facebookresearch/xformers, "
                    "xformers/csrc/attention/cuda/fmha: "
                    "kernel_forward.h, "
                    "generate_kernels.py",
                    "overhead": 64,
                    "warps": (4, 8),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "tile",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 128),
                    "dtypes": ("fp32",),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 32),
                    "sizes": ((64,), (64, 128)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "fp32"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "SageAttention 2 with V in fp16: Q, K, V in shared memory; S and O in registers",
                    "cite": "github.com/thu-ml/SageAttention, csrc/qattn: qk_int_sv_f16_cuda_sm80.cu",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 128),
                    "dtypes": ("int8",),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 16),
                    "sizes": ((128,), (64,)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "SageAttention 2 with V in fp8: Q, K, V in shared memory; S and O in registers",
                    "cite": "github.com/thu-ml/SageAttention, csrc/qattn: sm89_qk_int8_sv_f8_accum_f32_attn.cu",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 128),
                    "dtypes": ("int8",),
                    "exposed": 1.0,
                    "capability": ("8.9",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 16),
                    "sizes": ((128,), (64,)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "SageAttention 2 on Hopper "
                    "with V in fp8: Q, K, V in "
                    "shared memory; S, P and two "
                    "O in registers",
                    "cite": "github.com/thu-ml/SageAttention, csrc/qattn: qk_int_sv_f8_cuda_sm90.cu",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64, 128),
                    "dtypes": ("int8",),
                    "exposed": 1.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((64,), (128,)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), None),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "query"})}),
                },
                {
                    "title": "Composable Kernel forward: three slices of K or V in LDS; Q, S, P and O in registers",
                    "cite": "github.com/ROCm/composable_kernel: "
                    "example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py, "
                    "include/ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs_async.hpp",
                    "overhead": 64,
                    "warps": (2,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (32,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("gfx90a", "gfx942", "gfx950"),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 32),
                    "sizes": ((128,), (64,)),
                    "padded": False,
                    "shared_axes": ((frozenset({"depth", "key"}), None), (frozenset({"key", "value"}), None)),
                    "operand_axes": frozenset({frozenset({"depth", "query"}), frozenset({"key", "query"})}),
                },
                {
                    "title": "Composable Kernel forward: three slices of K or V in LDS; Q, S, P and O in registers",
                    "cite": "github.com/ROCm/composable_kernel: "
                    "example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py, "
                    "include/ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs_async.hpp",
                    "overhead": 64,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("gfx90a", "gfx942", "gfx950"),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 32),
                    "sizes": ((128,), (64,)),
                    "padded": False,
                    "shared_axes": ((frozenset({"depth", "key"}), None), (frozenset({"key", "value"}), None)),
                    "operand_axes": frozenset({frozenset({"depth", "query"}), frozenset({"key", "query"})}),
                },
                {
                    "title": "Composable Kernel forward: three slices of K or V in LDS; Q, S, P and O in registers",
                    "cite": "github.com/ROCm/composable_kernel: "
                    "example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py, "
                    "include/ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs_async.hpp",
                    "overhead": 64,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (128,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("gfx90a", "gfx942", "gfx950"),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 32),
                    "sizes": ((128,), (128,)),
                    "padded": False,
                    "shared_axes": ((frozenset({"depth", "key"}), None), (frozenset({"key", "value"}), None)),
                    "operand_axes": frozenset({frozenset({"depth", "query"}), frozenset({"key", "query"})}),
                },
                {
                    "title": "Composable Kernel forward: a slice of K or V in LDS; Q, S, P and O in registers",
                    "cite": "github.com/ROCm/composable_kernel: "
                    "example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py, "
                    "include/ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs.hpp",
                    "overhead": 64,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (256,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("gfx90a", "gfx942", "gfx950"),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 32),
                    "sizes": ((128,), (128,)),
                    "padded": False,
                    "shared_axes": ((frozenset({"depth", "key"}), None), (frozenset({"key", "value"}), None)),
                    "operand_axes": frozenset({frozenset({"depth", "query"}), frozenset({"key", "query"})}),
                },
                {
                    "title": "Composable Kernel forward in fp8: a slice of K or V in LDS; Q, S, P and O in registers",
                    "cite": "github.com/ROCm/composable_kernel: "
                    "example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py, "
                    "include/ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs.hpp",
                    "overhead": 64,
                    "warps": (2,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64,),
                    "dtypes": ("fp8",),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("gfx90a", "gfx942", "gfx950"),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 32),
                    "sizes": ((128,), (64,)),
                    "padded": False,
                    "shared_axes": ((frozenset({"depth", "key"}), None), (frozenset({"key", "value"}), None)),
                    "operand_axes": frozenset({frozenset({"depth", "query"}), frozenset({"key", "query"})}),
                },
                {
                    "title": "Composable Kernel forward in fp8: a slice of K or V in LDS; Q, S, P and O in registers",
                    "cite": "github.com/ROCm/composable_kernel: "
                    "example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py, "
                    "include/ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs.hpp",
                    "overhead": 64,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (128, 256),
                    "dtypes": ("fp8",),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("gfx90a", "gfx942", "gfx950"),
                    "features": (),
                    "value_dims": (),
                    "step": (32, 32),
                    "sizes": ((128,), (128,)),
                    "padded": False,
                    "shared_axes": ((frozenset({"depth", "key"}), None), (frozenset({"key", "value"}), None)),
                    "operand_axes": frozenset({frozenset({"depth", "query"}), frozenset({"key", "query"})}),
                },
                {
                    "title": "Triton attention on CDNA 3: K and V in LDS; Q, S and O in registers",
                    "cite": "Triton 3.9.0 for gfx942, "
                    "read off compiled kernels; "
                    "tiles: "
                    "github.com/ROCm/aiter, "
                    "aiter/ops/triton",
                    "overhead": 72,
                    "warps": (1, 2, 4, 8),
                    "stages": (1, 2, 3),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (16, 32, 64, 128, 192, 256),
                    "dtypes": ("fp16", "bf16", "fp8", "fp32"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("gfx90a", "gfx942"),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((16, 32, 64, 128, 256), (16, 32, 64, 128, 256)),
                    "padded": True,
                    "shared_axes": (
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                    ),
                    "operand_axes": frozenset(
                        {
                            frozenset({"key", "query"}),
                            frozenset({"key", "value"}),
                            frozenset({"depth", "query"}),
                            frozenset({"depth", "key"}),
                        }
                    ),
                },
                {
                    "title": "Triton attention on CDNA 4: K and V in LDS; Q, S and O in registers",
                    "cite": "Triton 3.9.0 for gfx950, "
                    "read off compiled kernels; "
                    "tiles: "
                    "github.com/ROCm/aiter, "
                    "aiter/ops/triton",
                    "overhead": 72,
                    "warps": (1, 2, 4, 8),
                    "stages": (1, 2, 3, 4, 5),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (16, 32, 64, 128, 192, 256),
                    "dtypes": ("fp16", "bf16", "fp8", "fp32"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("gfx950",),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((16, 32, 64, 128, 256), (16, 32, 64, 128, 256)),
                    "padded": True,
                    "shared_axes": (
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                    ),
                    "operand_axes": frozenset(
                        {
                            frozenset({"key", "query"}),
                            frozenset({"key", "value"}),
                            frozenset({"depth", "query"}),
                            frozenset({"depth", "key"}),
                        }
                    ),
                },
                {
                    "title": "Triton attention by mma.sync: Q, K, V in shared memory; S and O in registers",
                    "cite": "Triton 3.9.0, read off "
                    "compiled kernels; "
                    "triton-lang/triton, "
                    "python/tutorials/06-fused-attention.py",
                    "overhead": 45,
                    "warps": (4, 8),
                    "stages": (2, 3, 4),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "tile",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (16, 32, 64, 128, 256),
                    "dtypes": ("fp16", "bf16", "fp8"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_80", "sm_86", "sm_89", "sm_120"),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((64, 128), (32, 64, 128)),
                    "padded": True,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"key", "query"}), "io"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "value"}), frozenset({"depth", "key"})}),
                },
                {
                    "title": "Triton attention by wgmma: Q, K, V in shared memory; S and O in registers",
                    "cite": "Triton 3.9.0, read off "
                    "compiled kernels; "
                    "triton-lang/triton, "
                    "python/tutorials/06-fused-attention.py",
                    "overhead": 5,
                    "warps": (4, 8),
                    "stages": (2, 3, 4),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (16, 32, 64, 128, 256),
                    "dtypes": ("fp16", "bf16", "fp8"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_90",),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((64, 128), (32, 64, 128)),
                    "padded": True,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "value"}), frozenset({"depth", "key"})}),
                },
                {
                    "title": "Triton attention by tcgen05: Q, K, V in shared memory; S, P and O in tensor memory",
                    "cite": "Triton 3.9.0, read off "
                    "compiled kernels; "
                    "triton-lang/triton, "
                    "python/tutorials/06-fused-attention.py",
                    "overhead": 31,
                    "warps": (4, 8),
                    "stages": (2, 3, 4),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (16, 32, 64, 128, 256),
                    "dtypes": ("fp16", "bf16", "fp8"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (64, 16),
                    "sizes": ((128,), (32, 64, 128)),
                    "padded": True,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "value"}), frozenset({"depth", "key"})}),
                },
                {
                    "title": "Triton attention by "
                    "tcgen05, 64 query rows: Q, "
                    "K, V in shared memory; S, P "
                    "and O in tensor memory",
                    "cite": "Triton 3.9.0, read off "
                    "compiled kernels; "
                    "triton-lang/triton, "
                    "python/tutorials/06-fused-attention.py",
                    "overhead": 31,
                    "warps": (4, 8),
                    "stages": (2, 3, 4),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (16, 32, 64, 128, 256),
                    "dtypes": ("fp16", "bf16", "fp8"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": ("sm_100", "sm_103"),
                    "features": (),
                    "value_dims": (),
                    "step": (64, 16),
                    "sizes": ((64,), (32, 64, 128)),
                    "padded": True,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "value"}), frozenset({"depth", "key"})}),
                },
            ),
            "backward": (
                {
                    "title": "FlashAttention-2 backward: "
                    "Q, dO, K, V, P, dS in "
                    "shared memory; S, dP, dK, "
                    "dV, dQ in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "csrc/flash_attn: "
                    "kernel_traits.h and "
                    "flash_bwd_kernel.h",
                    "overhead": 48,
                    "warps": (4, 8),
                    "stages": (1, 2),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "tile",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (32, 64, 96, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-2 backward: "
                    "Q, dO, K, V, P, dS in "
                    "shared memory; S, dP, dK, "
                    "dV, dQ in registers, V too",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "csrc/flash_attn: "
                    "kernel_traits.h and "
                    "flash_bwd_kernel.h",
                    "overhead": 48,
                    "warps": (4, 8),
                    "stages": (1, 2),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "tile",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (32, 64, 96, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "value"})}),
                },
            ),
        },
        "executions": {
            "forward": {
                "cite": "arXiv:2307.08691, sections 3.1 "
                "and 3.3: tiles are fetched "
                "while others are multiplied; a "
                "warp takes its exponentials "
                "between its products",
                "phases": (("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",), ("atomics",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": False,
            },
            "backward": {
                "cite": "arXiv:2307.08691, sections "
                "3.1 and 3.3: tiles are "
                "fetched while others are "
                "multiplied; a warp takes its "
                "exponentials between its "
                "products",
                "phases": (("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",), ("atomics",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": False,
            },
        },
        "kernels": (
            {
                "name": "flash-attention-4",
                "title": "FlashAttention-4 (CuTe, Blackwell)",
                "cite": "github.com/Dao-AILab/flash-attention, flash_attn/cute",
                "searched": {},
                "places": {"forward": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)},
                "executions": {
                    "forward": {
                        "cite": "arXiv:2307.08691, "
                        "sections 3.1 and "
                        "3.3: tiles are "
                        "fetched while "
                        "others are "
                        "multiplied; a "
                        "warp takes its "
                        "exponentials "
                        "between its "
                        "products",
                        "phases": (
                            ("matrix", "shared memory"),
                            ("exp", "softmax"),
                            ("gradient",),
                            ("random",),
                            ("atomics",),
                        ),
                        "order": "longest first",
                        "in_flight": None,
                        "waiting": 0,
                        "address_clocks": 0.0,
                        "host_launch": 0.0,
                        "axes": False,
                    }
                },
            },
            {
                "name": "flash-attention-2",
                "title": "FlashAttention-2 (CUDA)",
                "cite": "github.com/Dao-AILab/flash-attention, csrc/flash_attn",
                "searched": {},
                "places": {"forward": (11,), "backward": (0, 1)},
                "executions": {},
            },
            {
                "name": "flashinfer",
                "title": "FlashInfer's prefill template (CUDA)",
                "cite": "github.com/flashinfer-ai/flashinfer, "
                "include/flashinfer/attention/prefill.cuh: "
                "KernelTraits, SharedStorageQKVO",
                "searched": {"packed": (False, True)},
                "places": {"forward": (12, 13, 14, 15)},
                "executions": {},
            },
            {
                "name": "xformers",
                "title": "CUTLASS's fused attention, as in xFormers and PyTorch (CUDA)",
                "cite": "github.com/facebookresearch/xformers, "
                "xformers/csrc/attention/cuda/fmha: "
                "kernel_forward.h, generate_kernels.py",
                "searched": {},
                "places": {"forward": (16, 17)},
                "executions": {},
            },
            {
                "name": "sageattention",
                "title": "SageAttention 2 (CUDA), int8 Q and K",
                "cite": "github.com/thu-ml/SageAttention, csrc/qattn",
                "searched": {},
                "places": {"forward": (18, 19, 20)},
                "executions": {},
            },
            {
                "name": "ck",
                "title": "Composable Kernel's fused attention (HIP)",
                "cite": "github.com/ROCm/composable_kernel: "
                "example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py, "
                "include/ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs_async.hpp",
                "searched": {},
                "places": {"forward": (21, 22, 23, 24, 25, 26)},
                "executions": {},
            },
            {
                "name": "triton-amd",
                "title": "Plain Triton attention on AMD, with the tiles of AITER",
                "cite": "Triton 3.9.0 for gfx942, read off compiled "
                "kernels; tiles: github.com/ROCm/aiter, "
                "aiter/ops/triton",
                "searched": {},
                "places": {"forward": (27, 28)},
                "executions": {},
            },
            {
                "name": "triton",
                "title": "The plain attention kernel of Triton's tutorial, at the configurations that it tunes over",
                "cite": "Triton 3.9.0, read off compiled kernels; "
                "triton-lang/triton, "
                "python/tutorials/06-fused-attention.py",
                "searched": {},
                "places": {"forward": (29, 30, 31, 32)},
                "executions": {},
            },
        ),
    },
    "flash3": {
        "module": "flash3",
        "name": "flash3",
        "title": "FlashAttention-3",
        "cite": "Shah, Bikshandi, Zhang, Thakkar, Ramani and Dao, "
        "FlashAttention-3: Fast and Accurate Attention with "
        "Asynchrony and Low-precision, arXiv:2407.08608 (2024), "
        "Algorithms 1 and 2, Appendix B.1",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"lse": True},
        "saved": {"lse": True},
        "classes": frozenset({"exact", "exact-backward", "fixed-split", "row-atomic"}),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ("lse",), "backward": (), "both": ("lse",)},
        "written_in": {
            "forward": (
                "padded_statistics",
                "masked_loads",
                "eager_loads",
                "unskipped_window",
                "padded_queries",
                "bias_vector",
                "order",
            ),
            "backward": ("padded_statistics", "eager_loads", "unskipped_window", "padded_queries", "bias_vector"),
            "both": (
                "padded_statistics",
                "masked_loads",
                "eager_loads",
                "unskipped_window",
                "padded_queries",
                "bias_vector",
                "order",
            ),
        },
        "residencies": {
            "forward": (
                {
                    "title": "FlashAttention-3 forward: "
                    "Q, two stages of K and V in "
                    "shared memory; S, P and O "
                    "in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
                    "overhead": 24,
                    "warps": (4, 8, 12),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256, 512),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.85,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "query"})}),
                },
                {
                    "title": "FlashAttention-3 forward: "
                    "Q, P, two stages of K and V "
                    "in shared memory; S and O "
                    "in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
                    "overhead": 24,
                    "warps": (4, 8, 12),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256, 512),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.85,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-3 forward without overlap: P takes the place of S in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
                    "overhead": 24,
                    "warps": (4, 8, 12),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256, 512),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-3 forward in fp8: V is transposed to another two stages of shared memory",
                    "cite": "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
                    "overhead": 24,
                    "warps": (4, 8, 12),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256, 512),
                    "dtypes": ("fp8",),
                    "exposed": 0.85,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "query"})}),
                },
                {
                    "title": "FlashAttention-3 forward "
                    "with wide values: one warp "
                    "group computes S, two share "
                    "out the columns of O",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "mainloop_fwd_sm90_tma_gmma_ws.hpp, "
                    "tile_size.h",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "values",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (512,),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-3 forward on "
                    "a latent: V is part of K; "
                    "two warp groups share out "
                    "the columns of O",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "mainloop_fwd_sm90_tma_gmma_ws.hpp, "
                    "tile_size.h",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "values",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (576,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": ("latent",),
                    "value_dims": (512,),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-3 forward on sm_8x: Q, K, V in shared memory, S and O in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "mainloop_fwd_sm80.hpp, "
                    "flash_fwd_kernel_sm80.h, "
                    "tile_size.h",
                    "overhead": 24,
                    "warps": (4, 8),
                    "stages": (1, 2),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0", "8.9"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-3 forward on "
                    "sm_8x: K and V in shared "
                    "memory, where V takes the "
                    "place of Q; Q in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "mainloop_fwd_sm80.hpp, "
                    "flash_fwd_kernel_sm80.h, "
                    "tile_size.h",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (1, 2),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0", "8.9"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"key", "value"}), None),
                    ),
                    "operand_axes": frozenset({frozenset({"depth", "query"})}),
                },
            ),
            "backward": (
                {
                    "title": "FlashAttention-3 backward, rows of 64: as those of 128",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "flash_bwd_launch_template.h, "
                    "flash_bwd_kernel_sm90.h, "
                    "mainloop_bwd_sm90_tma_gmma_ws.hpp",
                    "overhead": 24,
                    "warps": (8, 12),
                    "stages": (1, 2),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warpgroup",
                    "transposed": True,
                    "head_dims": (64,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.5,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"depth", "query"}), "fp32"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "query"})}),
                },
                {
                    "title": "FlashAttention-3 backward, rows of 96: as those of 128, with V in registers too",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "flash_bwd_launch_template.h, "
                    "flash_bwd_kernel_sm90.h, "
                    "mainloop_bwd_sm90_tma_gmma_ws.hpp",
                    "overhead": 24,
                    "warps": (8, 12),
                    "stages": (1, 2),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warpgroup",
                    "transposed": True,
                    "head_dims": (96,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.25,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"depth", "query"}), "fp32"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "value"}), frozenset({"key", "query"})}),
                },
                {
                    "title": "FlashAttention-3 backward, "
                    "rows of 128: K, V, Q, dO, "
                    "dS, dQ in shared memory; "
                    "S, dP, dK, dV in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "flash_bwd_launch_template.h, "
                    "flash_bwd_kernel_sm90.h, "
                    "mainloop_bwd_sm90_tma_gmma_ws.hpp",
                    "overhead": 24,
                    "warps": (8, 12),
                    "stages": (1, 2),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warpgroup",
                    "transposed": True,
                    "head_dims": (128,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"depth", "query"}), "fp32"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "query"})}),
                },
                {
                    "title": "FlashAttention-3 backward, "
                    "rows of 192: K, V, Q, dO, "
                    "P, dS, dQ in shared "
                    "memory; S, dP, dK, dV in "
                    "registers",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "flash_bwd_launch_template.h, "
                    "flash_bwd_kernel_sm90.h, "
                    "mainloop_bwd_sm90_tma_gmma_ws.hpp",
                    "overhead": 24,
                    "warps": (12,),
                    "stages": (1, 2),
                    "producers": 4,
                    "producer_registers": 32,
                    "split": "columns",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (192,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"depth", "query"}), "fp32"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-3 backward, "
                    "rows of 256: as those of "
                    "192, but half of dQ at a "
                    "time, in registers alone",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "flash_bwd_launch_template.h, "
                    "flash_bwd_kernel_sm90.h, "
                    "mainloop_bwd_sm90_tma_gmma_ws.hpp",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (1, 2),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (256,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"query", "value"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"query"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
            ),
        },
        "executions": {
            "forward": {
                "cite": "arXiv:2407.08608, sections 3.1 "
                "and 3.2; "
                "github.com/Dao-AILab/flash-attention, "
                "hopper: tile_scheduler.hpp, "
                "which starts the longest tiles "
                "of a mask first; the kernels "
                "of the paper start them in the "
                "order of the grid",
                "phases": (("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",), ("atomics",)),
                "order": "longest first",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": False,
            },
            "backward": {
                "cite": "arXiv:2407.08608, Appendix "
                "B.1; "
                "github.com/Dao-AILab/flash-attention, "
                "hopper: "
                "mainloop_bwd_sm90_tma_gmma_ws.hpp: "
                "one warp loads, another adds "
                "tiles of dQ to HBM while the "
                "next ones are made",
                "phases": (("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": False,
            },
        },
        "kernels": (
            {
                "name": "flash-attention-3",
                "title": "FlashAttention-3 (CUDA, Hopper)",
                "cite": "github.com/Dao-AILab/flash-attention, hopper",
                "searched": {"packed": (False, True)},
                "places": {"forward": (0, 1, 2, 3, 4, 5, 6, 7), "backward": (0, 1, 2, 3, 4)},
                "executions": {},
            },
            {
                "name": "flash-attention-3-2024",
                "title": "FlashAttention-3 of the paper (CUDA, Hopper): blocks start in the order of the grid",
                "cite": "arXiv:2407.08608, section 4",
                "searched": {"packed": (False, True)},
                "places": {"forward": (0, 1, 2, 3, 4, 5, 6, 7), "backward": (0, 1, 2, 3, 4)},
                "executions": {
                    "forward": {
                        "cite": "arXiv:2307.08691, "
                        "sections 3.1 and "
                        "3.3: tiles are "
                        "fetched while "
                        "others are "
                        "multiplied; a "
                        "warp takes its "
                        "exponentials "
                        "between its "
                        "products",
                        "phases": (
                            ("matrix", "shared memory"),
                            ("exp", "softmax"),
                            ("gradient",),
                            ("random",),
                            ("atomics",),
                        ),
                        "order": "grid",
                        "in_flight": None,
                        "waiting": 0,
                        "address_clocks": 0.0,
                        "host_launch": 0.0,
                        "axes": False,
                    },
                    "backward": {
                        "cite": "arXiv:2407.08608, "
                        "Appendix B.1; "
                        "github.com/Dao-AILab/flash-attention, "
                        "hopper: "
                        "mainloop_bwd_sm90_tma_gmma_ws.hpp: "
                        "one warp loads, "
                        "another adds "
                        "tiles of dQ to "
                        "HBM while the "
                        "next ones are "
                        "made",
                        "phases": (("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",)),
                        "order": "grid",
                        "in_flight": None,
                        "waiting": 0,
                        "address_clocks": 0.0,
                        "host_launch": 0.0,
                        "axes": False,
                    },
                },
            },
        ),
    },
    "fused_mlp": {
        "module": "fused_mlp",
        "name": "fused_mlp",
        "title": "MLP in one kernel",
        "cite": "Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202 (2020), equation 6, in one kernel",
        "answers": "mlp",
        "features": ("gated",),
        "exclusive": (),
        "options": {"resident": False},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ("resident",)},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "gemm": {
        "module": "gemm",
        "name": "gemm",
        "title": "Tiled GEMM",
        "cite": "Goto and van de Geijn, Anatomy of high-performance matrix "
        "multiplication, ACM Transactions on Mathematical Software "
        "34:12 (2008), sections 4 and 5; split-K as in CUTLASS "
        "(NVIDIA, efficient_gemm.md)",
        "answers": "linear",
        "features": ("gated", "scaled", "bias"),
        "exclusive": (),
        "options": {"splits": 1},
        "saved": {},
        "classes": frozenset({"product"}),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": ("wrapped_edges",),
        "taken": {"forward": ("splits",)},
        "written_in": {"forward": ("wrapped_edges",)},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "linear_transformer": {
        "module": "linear_transformer",
        "name": "linear_transformer",
        "title": "Linear Transformer",
        "cite": "Katharopoulos, Vyas, Pappas and Fleuret, "
        "Transformers are RNNs: Fast Autoregressive "
        "Transformers with Linear Attention, "
        "arXiv:2006.16236 (2020), equations 6 and 9 to "
        "12",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"carry": False},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "attention with the kernel phi(q) phi(k), phi(x) = elu(x) + 1, in place of exp(q k)",
        "masks": ("full", "causal"),
        "as_written": (),
        "taken": {"forward": ("carry",)},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "linformer": {
        "module": "linformer",
        "name": "linformer",
        "title": "Linformer",
        "cite": "Wang, Li, Khabsa, Fang and Ma, Linformer: "
        "Self-Attention with Linear Complexity, "
        "arXiv:2006.04768 (2020), equation 7",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"projected": 256, "shared": False},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "attention to k projections of all keys and values",
        "masks": ("full",),
        "as_written": (),
        "taken": {"forward": ("projected", "shared")},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "logits_cross_entropy": {
        "module": "logits_cross_entropy",
        "name": "logits_cross_entropy",
        "title": "Cross-entropy of stored logits",
        "cite": "Wijmans, Huval, Hertzberg, Koltun and "
        "Kraehenbuehl, Cut Your Losses in "
        "Large-Vocabulary Language Models, "
        "arXiv:2411.09009 (2024), section 3; Milakov "
        "and Gimelshein, arXiv:1805.02867 (2018), "
        "Algorithm 3",
        "answers": "cross_entropy",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "loki": {
        "module": "loki",
        "name": "loki",
        "title": "Loki",
        "cite": "Singhania, Singh, He, Feizi and Bhatele, Loki: Low-rank "
        "Keys for Efficient Sparse Attention, arXiv:2406.02542 "
        "(2024), Algorithm 1",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"rank": 32, "top_k": 256},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "attention to the k keys of the largest scores by their leading principal components",
        "masks": ("full",),
        "as_written": (),
        "taken": {"forward": ("rank", "top_k")},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "mamba1": {
        "module": "mamba1",
        "name": "mamba1",
        "title": "Mamba",
        "cite": "Gu and Dao, Mamba: Linear-Time Sequence Modeling with "
        "Selective State Spaces, arXiv:2312.00752 (2023), "
        "Algorithm 2 and section 3.3.2",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"state": 16, "expand": 2, "carry": False},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "a selective state space model in place of attention, n elements of state a channel",
        "masks": ("causal",),
        "as_written": (),
        "taken": {"forward": ("state", "expand", "carry")},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "mamba2": {
        "module": "mamba2",
        "name": "mamba2",
        "title": "Mamba-2",
        "cite": "Dao and Gu, Transformers are SSMs: Generalized Models and "
        "Efficient Algorithms Through Structured State Space "
        "Duality, arXiv:2405.21060 (2024), section 6 and Listing 1",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"carry": False},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "a state space model in place of attention: products C B with a decay instead of exp(q k)",
        "masks": ("causal",),
        "as_written": (),
        "taken": {"forward": ("carry",)},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "nsa": {
        "module": "nsa",
        "name": "nsa",
        "title": "Native Sparse Attention",
        "cite": "Yuan et al., Native Sparse Attention: Hardware-Aligned and "
        "Natively Trainable Sparse Attention, arXiv:2502.11089 "
        "(2025), equations 5 and 7 to 12",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"compress_block": 32, "compress_stride": 16, "select_block": 64, "selected": 16, "local": 512},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "attention to compressed, selected and local keys, added up by gates",
        "masks": ("causal",),
        "as_written": ("future_blocks",),
        "taken": {"forward": ("compress_block", "compress_stride", "select_block", "selected", "local")},
        "written_in": {"forward": ("future_blocks",)},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "performer": {
        "module": "performer",
        "name": "performer",
        "title": "Performer",
        "cite": "Choromanski et al., Rethinking Attention with "
        "Performers, arXiv:2009.14794 (2020), Lemma 1 and "
        "Algorithm 1",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"features": 128, "carry": False},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "attention with r positive random features of Q and K in place of exp(q k)",
        "masks": ("full", "causal"),
        "as_written": (),
        "taken": {"forward": ("features", "carry")},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "reformer": {
        "module": "reformer",
        "name": "reformer",
        "title": "Reformer",
        "cite": "Kitaev, Kaiser and Levskaya, Reformer: The Efficient Transformer, arXiv:2001.04451 (2020), section 2",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"buckets": 64, "rounds": 4},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "attention to the positions with the same hash, each position's key being its own query",
        "masks": ("full", "causal"),
        "as_written": (),
        "taken": {"forward": ("buckets", "rounds")},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "routing_transformer": {
        "module": "routing_transformer",
        "name": "routing_transformer",
        "title": "Routing Transformer",
        "cite": "Roy, Saffar, Vaswani and Grangier, Efficient "
        "Content-Based Sparse Attention with Routing "
        "Transformers, arXiv:2003.05997 (2020), "
        "Algorithm 1",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"clusters": 32},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "attention of each query to the keys of its cluster",
        "masks": ("full", "causal"),
        "as_written": (),
        "taken": {"forward": ("clusters",)},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "small_cache": {
        "module": "small_cache",
        "name": "small_cache",
        "title": "Small-cache attention",
        "cite": "Saha and Ye, The I/O Complexity of Attention, or How "
        "Optimal is FlashAttention?, ICML 2024, "
        "arXiv:2402.07443 (the regime M < d^2)",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset({"exact"}),
        "without": {
            "forward": frozenset(
                {
                    "alibi",
                    "bias",
                    "dropout",
                    "head_scales",
                    "kv_dtype",
                    "latent",
                    "paged",
                    "sinks",
                    "softcap",
                    "token_scales",
                }
            )
        },
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ("masked_loads", "unskipped_window", "padded_queries")},
        "residencies": {},
        "executions": {
            "forward": {
                "cite": "arXiv:2205.14135, section "
                "3.1 and Algorithm 1: all "
                "warps of a block wait for "
                "each other between the "
                "steps of a tile, for each "
                "has a part of the keys of "
                "every row",
                "phases": (("matrix",), ("shared memory",), ("exp", "softmax"), ("gradient",), ("random",), ("l2",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": False,
            }
        },
        "kernels": (),
    },
    "sparse_transformer": {
        "module": "sparse_transformer",
        "name": "sparse_transformer",
        "title": "Sparse Transformer",
        "cite": "Child, Gray, Radford and Sutskever, "
        "Generating Long Sequences with Sparse "
        "Transformers, arXiv:1904.10509 (2019), "
        "sections 4.2 and 4.3",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"stride": 128, "summary": 8, "fixed": False, "second": False},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "attention to one of two sparse sets of positions; layers take turns between the two",
        "masks": ("causal",),
        "as_written": (),
        "taken": {"forward": ("stride", "summary", "fixed", "second")},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "split_kv": {
        "module": "split_kv",
        "name": "split_kv",
        "title": "Split-KV attention",
        "cite": "Dao, Haziza, Massa and Sizov, Flash-Decoding for "
        "long-context inference (PyTorch blog, 2023); each split "
        "as in FlashAttention-2, arXiv:2307.08691 (2023), "
        "Algorithm 1",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"splits": 1, "lse": True},
        "saved": {},
        "classes": frozenset({"exact", "fixed-split", "row-atomic"}),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": ("two_statistics", "drop_empty_splits", "combine_one_split"),
        "taken": {"forward": ("splits", "lse")},
        "written_in": {
            "forward": (
                "two_statistics",
                "drop_empty_splits",
                "combine_one_split",
                "padded_statistics",
                "masked_loads",
                "eager_loads",
                "unskipped_window",
                "padded_queries",
                "bias_vector",
            )
        },
        "residencies": {
            "forward": (
                {
                    "title": "FlashMLA decoding: Q, two "
                    "stages of the latent, P "
                    "in shared memory; S and O "
                    "by columns in registers",
                    "cite": "github.com/deepseek-ai/FlashMLA, "
                    "csrc/sm90/decode/dense: "
                    "config.h, traits.h, "
                    "splitkv_mla.cuh",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (2,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "values",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (576,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": ("latent",),
                    "value_dims": (512,),
                    "step": None,
                    "sizes": ((64,), (64,)),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "query"})}),
                },
                {
                    "title": "FlashAttention-3 forward: "
                    "Q, two stages of K and V "
                    "in shared memory; S, P "
                    "and O in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
                    "overhead": 24,
                    "warps": (4, 8, 12),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256, 512),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.85,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "query"})}),
                },
                {
                    "title": "FlashAttention-3 forward: "
                    "Q, P, two stages of K and "
                    "V in shared memory; S and "
                    "O in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
                    "overhead": 24,
                    "warps": (4, 8, 12),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256, 512),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 0.85,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-3 forward without overlap: P takes the place of S in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
                    "overhead": 24,
                    "warps": (4, 8, 12),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256, 512),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-3 forward in fp8: V is transposed to another two stages of shared memory",
                    "cite": "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
                    "overhead": 24,
                    "warps": (4, 8, 12),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64, 96, 128, 192, 256, 512),
                    "dtypes": ("fp8",),
                    "exposed": 0.85,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset({frozenset({"key", "query"})}),
                },
                {
                    "title": "FlashAttention-3 forward "
                    "with wide values: one "
                    "warp group computes S, "
                    "two share out the columns "
                    "of O",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "mainloop_fwd_sm90_tma_gmma_ws.hpp, "
                    "tile_size.h",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "values",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (64,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": (),
                    "value_dims": (512,),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-3 forward "
                    "on a latent: V is part of "
                    "K; two warp groups share "
                    "out the columns of O",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "hopper: "
                    "mainloop_fwd_sm90_tma_gmma_ws.hpp, "
                    "tile_size.h",
                    "overhead": 24,
                    "warps": (8,),
                    "stages": (2,),
                    "producers": 4,
                    "producer_registers": 24,
                    "split": "values",
                    "mma": "warpgroup",
                    "transposed": False,
                    "head_dims": (576,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("9.0", "9.0"),
                    "architectures": (),
                    "features": ("latent",),
                    "value_dims": (512,),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashAttention-2 forward: Q, K, V in shared memory, S and O in registers",
                    "cite": "github.com/Dao-AILab/flash-attention, "
                    "csrc/flash_attn: "
                    "kernel_traits.h and "
                    "flash_fwd_kernel.h",
                    "overhead": 48,
                    "warps": (4, 8),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (32, 64, 96, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": None,
                    "sizes": ((), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashInfer prefill, rows shared out: Q, K, V in shared memory; S and O in registers",
                    "cite": "github.com/flashinfer-ai/flashinfer, "
                    "include/flashinfer/attention/prefill.cuh: "
                    "KernelTraits, "
                    "SharedStorageQKVO",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "rows",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((64, 128), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashInfer prefill, keys "
                    "shared out: Q, K, V in "
                    "shared memory; S and an O "
                    "of each warp in registers",
                    "cite": "github.com/flashinfer-ai/flashinfer, "
                    "include/flashinfer/attention/prefill.cuh: "
                    "KernelTraits, "
                    "SharedStorageQKVO",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (64, 128, 192, 256),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((16,), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "fp32"),
                        (frozenset({"query"}), None),
                        (frozenset({"query", "value"}), "io"),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashInfer prefill, rows "
                    "of 512: keys, then "
                    "columns of O shared out; "
                    "P in shared memory, V in "
                    "place of K",
                    "cite": "github.com/flashinfer-ai/flashinfer, "
                    "include/flashinfer/attention/prefill.cuh: "
                    "KernelTraits, "
                    "SharedStorageQKVO",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "columns",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (512,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((16,), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
                {
                    "title": "FlashInfer prefill, rows "
                    "of 512: rows and keys, "
                    "then columns of O shared "
                    "out by two warps each",
                    "cite": "github.com/flashinfer-ai/flashinfer, "
                    "include/flashinfer/attention/prefill.cuh: "
                    "KernelTraits, "
                    "SharedStorageQKVO",
                    "overhead": 48,
                    "warps": (4,),
                    "stages": (1,),
                    "producers": 0,
                    "producer_registers": 24,
                    "split": "tile",
                    "mma": "warp",
                    "transposed": False,
                    "head_dims": (512,),
                    "dtypes": ("fp16", "bf16"),
                    "exposed": 1.0,
                    "capability": ("8.0",),
                    "architectures": (),
                    "features": (),
                    "value_dims": (),
                    "step": (16, 16),
                    "sizes": ((32,), ()),
                    "padded": False,
                    "shared_axes": (
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"depth", "key"}), None),
                        (frozenset({"depth", "query"}), None),
                        (frozenset({"key", "value"}), None),
                        (frozenset({"query", "value"}), "io"),
                        (frozenset({"key", "query"}), "io"),
                        (frozenset({"query"}), None),
                    ),
                    "operand_axes": frozenset(),
                },
            )
        },
        "executions": {
            "forward": {
                "cite": "arXiv:2307.08691, sections "
                "3.1 and 3.3: tiles are "
                "fetched while others are "
                "multiplied; a warp takes its "
                "exponentials between its "
                "products",
                "phases": (("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",), ("atomics",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": True,
            }
        },
        "kernels": (
            {
                "name": "flashmla",
                "title": "FlashMLA's dense decoding (CUDA, Hopper)",
                "cite": "github.com/deepseek-ai/FlashMLA, csrc/sm90/decode/dense: config.h, traits.h, splitkv_mla.cuh",
                "searched": {"splits": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128), "packed": (False, True)},
                "places": {"forward": (0,)},
                "executions": {},
            },
            {
                "name": "flash-attention-3",
                "title": "FlashAttention-3 (CUDA, Hopper), split-KV",
                "cite": "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_combine_kernel.h, heuristics.h",
                "searched": {"splits": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128), "packed": (False, True)},
                "places": {"forward": (1, 2, 3, 4, 5, 6)},
                "executions": {},
            },
            {
                "name": "flash-attention-2",
                "title": "FlashAttention-2 (CUDA), split-KV",
                "cite": "github.com/Dao-AILab/flash-attention, csrc/flash_attn: flash_fwd_kernel.h, flash_api.cpp",
                "searched": {"splits": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128), "packed": (False, True)},
                "places": {"forward": (7,)},
                "executions": {},
            },
            {
                "name": "flashinfer",
                "title": "FlashInfer's prefill template (CUDA)",
                "cite": "github.com/flashinfer-ai/flashinfer, "
                "include/flashinfer/attention/prefill.cuh: "
                "KernelTraits, SharedStorageQKVO",
                "searched": {"splits": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128), "packed": (False, True)},
                "places": {"forward": (8, 9, 10, 11)},
                "executions": {},
            },
        ),
    },
    "split_mlp": {
        "module": "split_mlp",
        "name": "split_mlp",
        "title": "MLP in two kernels",
        "cite": "Shazeer, GLU Variants Improve Transformer, "
        "arXiv:2002.05202 (2020), equation 6; grouped as in "
        "Gale, Narayanan, Young and Zaharia, MegaBlocks, "
        "arXiv:2211.15841 (2022), section 4",
        "answers": "mlp",
        "features": ("gated",),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "standard": {
        "module": "standard",
        "name": "standard",
        "title": "Standard attention",
        "cite": "Dao, Fu, Ermon, Rudra and Re, FlashAttention: Fast and "
        "Memory-Efficient Exact Attention with IO-Awareness, "
        "arXiv:2205.14135 (2022), Algorithms 0 and 3",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"tiled": False, "mask_pass": False, "dropout_pass": False},
        "saved": {},
        "classes": frozenset({"exact"}),
        "without": {"forward": frozenset({"paged"}), "backward": frozenset({"softcap"})},
        "tiled_by": "tiled",
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {
            "forward": ("tiled", "mask_pass", "dropout_pass"),
            "backward": ("tiled", "dropout_pass"),
            "both": ("tiled", "mask_pass", "dropout_pass"),
        },
        "written_in": {"forward": ("bias_vector",), "backward": (), "both": ("bias_vector",)},
        "residencies": {},
        "executions": {
            "forward": {
                "cite": "arXiv:2205.14135, Algorithm "
                "0: a kernel for each product "
                "and each elementwise step; a "
                "product over as few as d "
                "terms has no loop to hide "
                "its loads and stores in",
                "phases": (("hbm", "l2"), ("matrix",), ("exp", "softmax"), ("gradient",), ("random",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": False,
            },
            "backward": {
                "cite": "arXiv:2205.14135, Algorithm "
                "0: a kernel for each "
                "product and each "
                "elementwise step; a product "
                "over as few as d terms has "
                "no loop to hide its loads "
                "and stores in",
                "phases": (("hbm", "l2"), ("matrix",), ("exp", "softmax"), ("gradient",), ("random",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": False,
            },
        },
        "kernels": (),
    },
    "stepwise_scan": {
        "module": "stepwise_scan",
        "name": "stepwise_scan",
        "title": "Stepwise scan",
        "cite": "Yang, Wang, Shen, Panda and Kim, Gated Linear "
        "Attention Transformers with Hardware-Efficient "
        "Training, arXiv:2312.06635 (2023), section 2.1; "
        "Yang, Kautz and Hatamizadeh, Gated Delta Networks, "
        "arXiv:2412.06464 (2024), equation 10",
        "answers": "recurrence",
        "features": ("constant_decay", "head_decay", "channel_decay", "delta", "stateful"),
        "exclusive": ("constant_decay", "head_decay", "channel_decay"),
        "options": {},
        "saved": {},
        "classes": frozenset(),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ()},
        "residencies": {},
        "executions": {},
        "kernels": (),
    },
    "tiled_query": {
        "module": "tiled_query",
        "name": "tiled_query",
        "title": "Tiled-query attention",
        "cite": "Kao, Subramanian, Agrawal, Yazdanbakhsh and Krishna, "
        "FLAT: An Optimized Dataflow for Mitigating Attention "
        "Bottlenecks, ASPLOS 2023, arXiv:2107.06419 (the "
        "row-granular fusion)",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {},
        "saved": {},
        "classes": frozenset({"exact", "row-atomic"}),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": (),
        "taken": {"forward": ()},
        "written_in": {"forward": ("masked_loads", "eager_loads", "unskipped_window", "padded_queries", "bias_vector")},
        "residencies": {},
        "executions": {
            "forward": {
                "cite": "arXiv:2307.08691, "
                "sections 3.1 and 3.3: "
                "tiles are fetched while "
                "others are multiplied; a "
                "warp takes its "
                "exponentials between its "
                "products",
                "phases": (("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",), ("atomics",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": False,
            }
        },
        "kernels": (),
    },
    "two_pass": {
        "module": "two_pass",
        "name": "two_pass",
        "title": "Two-pass backward",
        "cite": "Triton tutorial 06, fused attention "
        "(github.com/triton-lang/triton, python/tutorials), "
        "after Dao, FlashAttention-2, arXiv:2307.08691 (2023), "
        "Algorithm 2",
        "answers": "attention",
        "features": (),
        "exclusive": (),
        "options": {"accumulate": False},
        "saved": {},
        "classes": frozenset({"recomputed-backward"}),
        "without": {},
        "tiled_by": None,
        "approximates": "",
        "masks": (),
        "as_written": ("delta_twice", "two_statistics"),
        "taken": {"backward": ("accumulate",)},
        "written_in": {
            "backward": (
                "delta_twice",
                "two_statistics",
                "padded_statistics",
                "masked_loads",
                "eager_loads",
                "unskipped_window",
                "padded_queries",
                "bias_vector",
                "order",
            )
        },
        "residencies": {},
        "executions": {
            "backward": {
                "cite": "arXiv:2307.08691, sections "
                "3.1 and 3.3: tiles are "
                "fetched while others are "
                "multiplied; a warp takes "
                "its exponentials between "
                "its products",
                "phases": (("matrix", "shared memory"), ("exp", "softmax"), ("gradient",), ("random",), ("atomics",)),
                "order": "grid",
                "in_flight": None,
                "waiting": 0,
                "address_clocks": 0.0,
                "host_launch": 0.0,
                "axes": False,
            }
        },
        "kernels": (),
    },
}
