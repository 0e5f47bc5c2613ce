"""One of every public type, made as a user makes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import iomodel
from iomodel.algorithms import algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.devices.device_fields import Provenance

W = iomodel.Attention(heads=4, kv_heads=2, q_len=64, head_dim=64, mask="causal")
TILES = {"block_q": 64, "block_kv": 32}
GPU = "h100-sxm5"
REPORT = Path(__file__).parents[1] / "integrations" / "silu.csv"
LINEAR = iomodel.Linear(rows=128, in_features=256, out_features=512)


def timed_device() -> iomodel.Hardware:
    """A device whose file has timed a call."""
    data = iomodel.hardware(GPU).to_dict()
    sizes = {"batch": 4, "heads": 16, "kv_heads": 16, "head_dim": 128, "q_len": 512, "kv_len": 512, "dtype": "bf16"}
    call = {**sizes, "direction": "forward", "mask": "causal", "kernel": "torch flash"}
    data["measured"]["attention"] = [{**call, "time": {"value": 1e-4, "unit": "s", "source": "test"}}]
    return iomodel.Hardware(**data)


def crossed() -> iomodel.results.Crossovers:
    """Two algorithms at tiles, with a formula."""
    return iomodel.crossovers(["flash2", "flash1"], W, tiles={"block_q": 48, "block_kv": 100}, limit=300)


MADE: dict[str, Callable[[], Any]] = {
    "Attention": lambda: W,
    "VarlenAttention": lambda: iomodel.VarlenAttention(q_lens=[3, 20], head_dim=8, mask="causal"),
    "Window": lambda: iomodel.Window(left=3, right=0),
    "BlockMask": lambda: iomodel.BlockMask([[1, 0], [0, 1]], 4, 4),
    "Documents": lambda: iomodel.Documents([3, 5], causal=True),
    "Hardware": lambda: iomodel.hardware(GPU),
    "Cost": lambda: iomodel.cost("flash2", W, TILES),
    "CostArray": lambda: iomodel.cost_array("flash2", q_len=[64, 65], head_dim=8, **TILES),
    "EstimateArray": lambda: iomodel.estimate_array("flash2", None, GPU, q_len=[64, 65], head_dim=64, **TILES),
    "Expressions": lambda: iomodel.expressions("flash2", "causal"),
    "Bound": lambda: iomodel.lower_bounds(W, algorithm="flash2", sram_elements=5000)["compulsory"],
    "Optimum": lambda: iomodel.optimum("flash2"),
    "Solution": lambda: iomodel.solve("flash2", W, GPU),
    "Check": lambda: iomodel.check("flash2", W, GPU, TILES),
    "Comparison": lambda: iomodel.compare(W, sram_bytes=20_000),
    "Crossover": lambda: crossed().pairs[0],
    "Crossovers": crossed,
    "Estimate": lambda: iomodel.estimate("flash2", W, GPU, TILES),
    "Diagnosis": lambda: iomodel.diagnose("flash2", W, GPU, 1e-3, TILES),
    "Audit": lambda: iomodel.testing.audit(REPORT, {"silu": iomodel.estimate("flash2", W, GPU, TILES)}),
    "Judgement": lambda: iomodel.devices.judge(None, timed_device()),
    "Calibration": lambda: iomodel.results.Calibration(
        Provenance(device="a GPU"), FrozenDict(), FrozenDict(hbm="none"), iomodel.hardware(GPU), 1.0
    ),
    "Trace": lambda: iomodel.trace("flash2", W, GPU, TILES),
    "SolutionArray": lambda: iomodel.solve_array("flash2", sram_bytes=20_000, q_len=[64, 65], head_dim=8),
    "TileTimes": lambda: iomodel.kernels.tile_times("flash2", W, GPU),
    "Staircase": lambda: iomodel.staircase("flash2", W, alignment=8),
    "Linear": lambda: LINEAR,
    "MLP": lambda: iomodel.MLP(rows=64, in_features=16, hidden_features=32, weight_dtype="fp8"),
    "Experts": lambda: iomodel.Experts(loads=[3, 1], in_features=16, hidden_features=32, weight_dtype="fp8"),
    "CrossEntropy": lambda: iomodel.CrossEntropy(rows=3, in_features=16, vocab_size=32),
    "Recurrence": lambda: iomodel.Recurrence(tokens=64, heads=4, key_heads=2, head_dim=16, gate="head", delta=True),
    "ModelSpec": lambda: iomodel.model("llama-3-8b"),
    "Layout": lambda: iomodel.Layout(tensor_parallel=4),
    "PrefixCache": lambda: iomodel.PrefixCache(shared_tokens=64, hit_rate=0.5),
    "Speculation": lambda: iomodel.Speculation(tokens=3, acceptance=0.8),
    "Lora": lambda: iomodel.Lora(rank=16, adapters=4, active=2),
    "StepTime": lambda: iomodel.step("llama-3-8b", GPU, batch=1, q_len=1, kv_len=4096),
    "Plan": lambda: iomodel.plan("llama-3-8b", GPU, prompt=2048, output=256),
    "Fleet": lambda: iomodel.fleet(
        "llama-3-8b", GPU, load=20, prompt=2048, output=256, ttft=0.5, tpot=0.05, max_devices=2
    ),
    "EngineFlags": lambda: iomodel.planning.engine_flags(MADE["Plan"](), "vllm"),
    "Messages": lambda: iomodel.planning.messages("ring", "causal"),
    "ContextParallel": lambda: iomodel.planning.context_parallel(W, 2, GPU),
    "Disaggregation": lambda: iomodel.disaggregate("llama-3-8b", GPU, GPU, prompt=64, output=8, link=5e10),
    "Pareto": lambda: iomodel.pareto(
        "llama-3-8b", GPU, prompt=64, output=8, batches=[1, 4], replica_devices=1, tpot=1.0
    ),
    "ParetoPoint": lambda: MADE["Pareto"]().front[0],
    "Simulation": lambda: iomodel.simulate("llama-3-8b", GPU, prompt=64, output=8, load=20.0, requests=5),
    "TrainingStep": lambda: iomodel.train_step("llama-3-8b", GPU, batch=8, seq_len=128),
    "TrainingMemory": lambda: MADE["TrainingStep"]().memory,
    "Parameters": iomodel.devices.Parameters,
    "Execution": lambda: algorithm("flash2").execution["forward"],
    "Residency": lambda: algorithm("flash2").residency["forward"][0],
    "Implementation": lambda: iomodel.kernels.implementation("flash2", "flash-attention-2"),
}
