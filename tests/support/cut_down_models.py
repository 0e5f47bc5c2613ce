"""Caches of cut-down models of Hugging Face transformers, run on the CPU.

`python -m tests.support.cut_down_models` writes `tests/models/cut_down.json`, in an environment with transformers and
PyTorch: for each model type with a recurrent state, the fields that are given, the parameters of the model, and the
shapes of what its cache holds after a prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "models" / "cut_down.json"
TOKENS = 7
BASE = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4}
BASE |= {"num_key_value_heads": 2, "vocab_size": 50, "head_dim": 16}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
SHARED = {**EXPERTS, "shared_expert_intermediate_size": 32}
DELTA = {"linear_key_head_dim": 8, "linear_value_head_dim": 12, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
LATENT = {"num_key_value_heads": 4, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 16}
CUT: dict[str, dict[str, Any]] = {
    "qwen3_next": {**BASE, **SHARED, **DELTA},
    "qwen3_5_text": {**BASE, **DELTA, "num_hidden_layers": 6, "linear_conv_kernel_dim": 3},
    "qwen3_5_moe_text": {**BASE, **SHARED, **DELTA, "linear_num_key_heads": 4},
    "olmo_hybrid": {**BASE, **DELTA, "linear_num_value_heads": 2},
    "kimi_linear": {**BASE, **LATENT, **EXPERTS, "linear_head_dim": 8, "linear_num_heads": 4, "num_hidden_layers": 5},
    "bailing_hybrid": {**BASE, **LATENT, **EXPERTS, "num_hidden_layers": 6} | {"num_expert_group": 1, "topk_group": 1},
    "mamba": {"hidden_size": 64, "state_size": 8, "num_hidden_layers": 2, "vocab_size": 50},
    "mamba2": {"hidden_size": 64, "num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 2, "vocab_size": 50}
    | {"num_hidden_layers": 2},
    "falcon_h1": {**BASE, **MAMBA, "mamba_d_ssm": 128},
    "bamba": {**BASE, **MAMBA, "attn_layer_indices": [1, 3]},
    "granitemoehybrid": {**BASE, **MAMBA, "num_local_experts": 4, "num_experts_per_tok": 2, "mamba_d_conv": 3}
    | {"shared_intermediate_size": 32, "layer_types": ["linear_attention", "full_attention"] * 2},
    "jamba": {**BASE, "mamba_d_state": 8, "mamba_dt_rank": 4, "attn_layer_period": 2, "attn_layer_offset": 1}
    | {"expert_layer_period": 2, "num_experts": 4, "num_experts_per_tok": 2},
    "lfm2": {**BASE, "layer_types": ["conv", "full_attention"] * 2},
    "minimax": {**BASE, "num_local_experts": 4, "num_experts_per_tok": 2, "block_size": 4},
    "nemotron_h": {**BASE, "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"]}
    | {"mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16, "n_groups": 2, "n_routed_experts": 4}
    | {"num_experts_per_tok": 2, "moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 32},
    "zamba2": {name: size for name, size in BASE.items() if name != "head_dim"}
    | {"layers_block_type": ["linear_attention", "hybrid"] * 2, "mamba_d_state": 16, "n_mamba_heads": 8}
    | {"num_mem_blocks": 1, "adapter_rank": 8},
}
"""Fields of the cut-down models; others have their defaults."""
NAMES = {"recurrent_states": "recurrent", "linear_cache": "recurrent", "conv_states": "conv", "keys": "kv"}
NAMES |= {"values": "kv"}
"""What the tensors of a cache are, by a part of their path."""


def tensors(value: Any, path: str = "") -> Iterator[tuple[str, list[int]]]:
    """Iterate over the tensors in an object, with the names that lead to them."""
    import torch

    if torch.is_tensor(value):
        yield path, list(value.shape)
    elif isinstance(value, dict | list | tuple):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors(part, f"{path}.{name}")
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        for name, part in vars(value).items():
            if name != "config":
                yield from tensors(part, f"{path}.{name}")


def measured(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """Run a prompt through a model, and return its parameters and the shapes in its cache by kind."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = CONFIG_MAPPING[kind](**given, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    built = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        result = built(torch.arange(3, 3 + TOKENS)[None], use_cache=True)
    cache = getattr(result, "past_key_values", None) or result.cache_params
    shapes: dict[str, list[list[int]]] = {"recurrent": [], "conv": [], "kv": []}
    for path, shape in tensors(cache):
        (held,) = {what for name, what in NAMES.items() if name in path}
        shapes[held].append(shape)
    stored = sum(parameter.numel() for parameter in built.parameters())
    return {"config": {"model_type": kind, **given}, "parameters": stored, "tokens": TOKENS, **shapes}


def main() -> None:
    """Write the file, one model a line."""
    import torch
    import transformers

    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(measured(kind, given))}" for kind, given in CUT.items())
    versions = json.dumps({"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]})
    FILE.write_text(f'{{\n"versions": {versions},\n"models": {{\n{lines}\n}}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
