"""Answers of aiconfigurator or llm-analysis to questions about serving, for benchmarks/serving_peers.py.

    python benchmarks/peer_answers.py aiconfigurator < questions.json > answers.json

Runs in the peer's own environment and imports nothing of this project. Each answer is a figure in the unit of the
question, or the reason of a refusal. The peers keep their defaults; they are told the layout, the lengths, the clients,
the types of weights and cache, the engine, and the most requests and tokens of a step where the run sets them.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Question = dict[str, Any]

SYSTEMS = {
    "a100-sxm4-80gb": "a100_sxm",
    "b200": "b200_sxm",
    "b300": "b300_sxm",
    "h100-sxm5": "h100_sxm",
    "h200-sxm": "h200_sxm",
}
PATHS = {
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "kimi-k2.5": "moonshotai/Kimi-K2.5",
    "llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.3-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama-4-maverick": "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    "minimax-m2.5": "MiniMaxAI/MiniMax-M2.5",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B",
}
"""Names of the configurations that aiconfigurator ships; Llama 3.3 70B has the shape of 3.1."""
PRODUCTS = {"fp4": "nvfp4", "int8": "int8_wo", "int4": "int4_wo", "bf16": "bfloat16"}
EXPERTS = {"mxfp4": "w4a16_mxfp4"}
STEP_TOKENS = 8192
"""Tokens of a step of TensorRT-LLM by default."""
MOST = 4096
"""Largest batch that is tried."""


def most(asked: Question) -> int:
    """Return the largest batch of an attention rank that a question allows: its limit, and its requests."""
    each = -(-asked["requests"] // asked["replicas"]) if asked["requests"] else MOST
    return min(each, asked["most"] or MOST)


def largest(answer: Callable[[int], float | None], most: int) -> float:
    """Answer at the largest batch that has an answer, to a sixteenth of it, by halving."""
    low, high = 0, most + 1
    best = None
    while high - low > max(1, low // 16):
        batch = (low + high) // 2 if low or high <= 2 else max(1, high // 8)
        value = answer(batch)
        low, high, best = (batch, high, value) if value is not None else (low, batch, best)
    if best is None:
        raise ValueError("not one request fits")
    return best


def aiconfigurator() -> Callable[[Question], float]:
    """Prepare to ask aiconfigurator by `cli_estimate`, from its tables first and from its formulas beside them next."""
    from aiconfigurator.cli.api import cli_estimate
    from aiconfigurator_core.sdk.memory import estimate_kv_cache
    from aiconfigurator_core.sdk.perf_database import get_latest_database_version

    folder = Path(tempfile.mkdtemp())

    def path(asked: Question) -> str:
        if asked["model"] in PATHS:
            return PATHS[asked["model"]]
        place = folder / asked["model"]
        place.mkdir(exist_ok=True)
        (place / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], **asked["config"]}))
        return str(place)

    def common(asked: Question) -> dict[str, Any]:
        if asked["engine"] not in ("trtllm", "vllm", "sglang"):
            raise ValueError(f"no tables for the engine {asked['engine']}")
        if asked["gpu"] not in SYSTEMS:
            raise ValueError(f"no tables for {asked['gpu']}")
        told: dict[str, Any] = {
            "tp_size": asked["tensor"],
            "pp_size": asked["pipeline"],
            "attention_dp_size": asked["replicas"],
            "kvcache_quant_mode": "fp8" if asked["kv_bytes"] == 1 else "bfloat16",
        }
        if asked["gemm"] != "mxfp4":  # the configuration states it
            told["gemm_quant_mode"] = PRODUCTS.get(asked["gemm"], asked["gemm"])
        if asked["experts"]:
            told["moe_ep_size"] = asked["expert"]
            told["moe_tp_size"] = asked["tensor"] * asked["replicas"] // asked["expert"]
            mode = asked["moe"] or asked["gemm"]
            told["moe_quant_mode"] = EXPERTS.get(mode, PRODUCTS.get(mode, mode))
        return told

    def ask(asked: Question, database: str) -> float:
        told = {"model_path": path(asked), **common(asked)}
        engine, system = asked["engine"], SYSTEMS[asked["gpu"]]
        if asked["kind"] == "kv tokens":
            kind = "of_free" if engine == "trtllm" else "of_total"
            found = estimate_kv_cache(
                system=system, backend=engine, backend_version=get_latest_database_version(system, engine),
                max_num_tokens=STEP_TOKENS, max_batch_size=256, memory_fraction_kind=kind,
                memory_fraction_value=asked["utilization"], **told,
            )  # fmt: skip
            return float(found["total_kv_size_tokens"])
        told |= {"system_name": system, "backend_name": engine, "database_mode": database}
        told |= {"isl": asked["prompt"], "osl": asked["output"]}
        if asked["kind"] == "engine ttft":
            return cli_estimate(mode="static_ctx", batch_size=1, **told).ttft / 1e3
        batch = asked["clients"]
        if asked["static"]:
            return float(cli_estimate(mode="static", batch_size=batch, **told).raw["tokens/s"])
        if batch is not None:
            result = cli_estimate(batch_size=max(1, batch // asked["replicas"]), **told)
            return (result.ttft if asked["kind"] == "served ttft" else result.tpot) / 1e3

        def rate(batch: int) -> float | None:
            try:
                result = cli_estimate(
                    batch_size=batch,
                    ctx_tokens=asked["step_tokens"],
                    free_gpu_memory_fraction=asked["utilization"],
                    **told,
                )
            except RuntimeError as error:
                if "OOM" in str(error):
                    return None
                raise
            return None if result.kv_cache_warning else float(result.raw["tokens/s"])

        return largest(rate, most(asked))

    def first_answer(asked: Question) -> float:
        try:
            return ask(asked, "SILICON")
        except Exception:
            return ask(asked, "HYBRID")

    return first_answer


def llm_analysis() -> Callable[[Question], float]:
    """Prepare to ask llm-analysis by `LLMAnalysis.inference`; devices that it lacks are given by their data sheets."""
    from llm_analysis.analysis import LLMAnalysis
    from llm_analysis.config import DtypeConfig, GPUConfig, ModelConfig, ParallelismConfig, get_gpu_config_by_name

    shipped = {"h100-sxm5": "h100-sxm-80gb", "a100-sxm4-80gb": "a100-sxm-80gb"}
    gib = 2**30

    def device(asked: Question) -> Any:
        if asked["gpu"] in shipped:
            return get_gpu_config_by_name(shipped[asked["gpu"]])
        sheet = asked["device"]
        return GPUConfig(
            name=asked["gpu"],
            mem_per_GPU_in_GB=sheet["capacity"] / gib,
            hbm_bandwidth_in_GB_per_sec=sheet["bandwidth"] / 1e9,
            intra_node_bandwidth_in_GB_per_sec=sheet["link"] / 1e9,
            intra_node_min_message_latency=8e-6,  # of its own A100 and H100
            peak_fp16_TFLOPS=sheet["bf16"] / 1e12,
            peak_i8_TFLOPS=sheet["8 bits"] / 1e12,
            peak_i4_TFLOPS=sheet["4 bits"] / 1e12,
        )

    def ask(asked: Question) -> float:
        shape = asked["shape"]
        if shape is None:
            raise ValueError("a model of other parts than heads of hidden_size / heads channels and one kind of MLP")
        weight = asked["weight_bits"]
        told = LLMAnalysis(
            ModelConfig(name=asked["model"], **shape, expansion_ratio=shape["ffn_embed_dim"] / shape["hidden_dim"]),
            device(asked),
            DtypeConfig(weight_bits=weight, activation_bits=16 if asked["gemm"].startswith("int") else weight),
            ParallelismConfig(tp_size=asked["tensor"], pp_size=asked["pipeline"], ep_size=asked["expert"]),
        )
        if asked["kind"] == "kv tokens":
            weights = told.inference(kv_cache_dtype_bytes=asked["kv_bytes"])["weight_memory_per_gpu"]
            token = told.get_memory_kv_cache_per_layer(1, 1, asked["kv_bytes"]) * shape["num_layers"]
            return (device(asked).mem_per_GPU_in_GB * gib * asked["utilization"] - weights) / token
        lengths = {"seq_len": asked["prompt"], "num_tokens_to_generate": asked["output"]}
        lengths |= {"kv_cache_dtype_bytes": asked["kv_bytes"]}
        if "ttft" in asked["kind"]:
            return float(told.inference(1, **lengths)["prefill_latency"])
        if asked["clients"] is not None:
            summary = told.inference(asked["clients"], **lengths)
            return float(summary["total_tokens_per_sec" if asked["static"] else "total_per_token_latency"])

        def rate(batch: int) -> float | None:
            try:
                return float(told.inference(batch, **lengths)["total_tokens_per_sec"])
            except AssertionError:
                return None

        return largest(rate, most(asked))

    return ask


PEERS = {"aiconfigurator": aiconfigurator, "llm-analysis": llm_analysis}


def main() -> None:
    logging.disable(logging.CRITICAL)
    output, sys.stdout = sys.stdout, sys.stderr
    ask = PEERS[sys.argv[1]]()
    answers = {}
    for asked in json.load(sys.stdin):
        try:
            answers[asked["id"]] = ask(asked)
        except Exception as error:
            answers[asked["id"]] = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    json.dump(answers, output)


if __name__ == "__main__":
    main()
