"""Stored counts of published Triton kernels against the predictions of the declared algorithms.

`benchmarks/triton_counts.py` made the record; neither Triton nor the kernels are needed here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel.testing import assert_traffic
from iomodel.triton import KernelCount

RECORD = Path(__file__).parents[1] / "measured" / "triton" / "counts.jsonl"
ROWS = [json.loads(line) for line in RECORD.read_text(encoding="utf-8").splitlines()]
CASES = list(dict.fromkeys(row["case"] for row in ROWS))

LENGTHS = dict.fromkeys((
    "B_Start_Loc", "B_Seqlen", "B_req_idx", "b_prompt_cache_len", "kv_indptr", "qo_indptr", "num_kv_splits",
    "seq_lens_ptr", "query_start_len_ptr",
))  # fmt: skip
"""Lengths, places of sequences and numbers of splits, a few scalars for each program: not in the model."""
SPLIT = {
    "K_Buffer": "K", "V_Buffer": "V", "kv_indices": "block_table", "Att_Out": "O_acc", "Att_Lse": "LSE_acc",
    "Mid_O": "O_acc", "Mid_O_1": "LSE_acc", **LENGTHS,
}  # fmt: skip
TUTORIAL = {"Delta": "D", "DO": "dO", "M": "LSE", "DQ": "dQ", "DK": "dK", "DV": "dV"}


@dataclass(frozen=True)
class Held:
    """Launches of a case, and the declared algorithm that predicts them together."""

    case: str
    kernels: tuple[str, ...]
    algorithm: str
    tiles: dict[str, int]
    options: dict[str, Any] = field(default_factory=dict)
    names: Mapping[str, str | None] = field(default_factory=dict)
    call: dict[str, Any] = field(default_factory=dict)


def tutorial(case: str, **options: bool) -> list[Held]:
    """Forward and backward pass of the tutorial, each with its tiles."""
    forward = {"desc_q": "Q", "desc_k": "K", "desc_v": "V", "desc_o": "O", "M": "LSE"}
    tiles = {"block_q": 32, "block_kv": 128, "dq_block_q": 128, "dq_block_kv": 32}
    backward = ("_attn_bwd_preprocess", "_attn_bwd")
    return [
        Held(case, ("_attn_fwd",), "flash2", {"block_q": 64, "block_kv": 32}, names=forward),
        Held(case, backward, "two_pass", tiles, options, TUTORIAL, {"direction": "backward"}),
    ]


def split(case: str, kernels: tuple[str, ...], block_kv: int, names: Mapping[str, str | None], **options: bool) -> Held:
    """Decode over splits; a split without keys leaves nothing, and the result has no log-sum-exp."""
    asked = {"splits": 4, "lse": False, "drop_empty_splits": True, **options}
    return Held(case, kernels, "split_kv", {"block_q": 16, "block_kv": block_kv}, asked, names)


def whole(case: str, kernel: str, block_kv: int, names: Mapping[str, str | None], **options: bool) -> Held:
    """Prefill by query tiles of 128 rows, without a log-sum-exp."""
    asked = {"lse": False, **options}
    return Held(case, (kernel,), "flash2", {"block_q": 128, "block_kv": block_kv}, asked, names)


EXTENDED = {
    "Q_Extend": "Q", "K_Extend": "K", "V_Extend": "V", "K_Buffer": "K", "V_Buffer": "V", "O_Extend": "O",
    "kv_indices": "block_table", **LENGTHS,
}  # fmt: skip
UNIFIED = {
    "query_ptr": "Q", "key_cache_ptr": "K", "value_cache_ptr": "V", "output_ptr": "O", "segm_output_ptr": "O_acc",
    "segm_max_ptr": "m_acc", "segm_expsum_ptr": "l_acc", "block_tables_ptr": "block_table", **LENGTHS,
}  # fmt: skip
FLA = {
    "q": "Q",
    "k": "K",
    "v": "V",
    "o": "O",
    "lse": "LSE",
    "do": "dO",
    "delta": "D",
    "dq": "dQ",
    "dk": "dK",
    "dv": "dV",
}
FLEX = {
    "arg_Q": "Q", "arg_K": "K", "arg_V": "V", "arg_LSE": "LSE", "arg_OUT": "O",
    **dict.fromkeys(f"arg_{name}" for name in ("KV_NUM_BLKS", "KV_IDX", "FULL_KV_NUM_BLKS", "FULL_KV_IDX")),
}  # fmt: skip
HELD = [
    *tutorial("tutorial-06 full"),
    *tutorial("tutorial-06 causal", delta_twice=True),
    whole("lightllm context", "_fwd_kernel", 128, {"Out": "O", "Req_to_tokens": "block_table", **LENGTHS}),
    whole("lightllm context without a cache", "_fwd_kernel_no_prompt_cache", 64, {"Out": "O", **LENGTHS}),
    split(
        "lightllm decode", ("_fwd_kernel_flash_decode_stage1", "_fwd_kernel_flash_decode_stage2"), 64,
        {"Mid_O": "O_acc", "Mid_O_LogExpSum": "LSE_acc", "Req_to_tokens": "block_table", **LENGTHS},
        packed=True, eager_loads=True,
    ),
    split("sglang decode", ("_fwd_kernel_stage1", "_fwd_kernel_stage2"), 32, SPLIT),
    split("sglang decode grouped", ("_fwd_grouped_kernel_stage1", "_fwd_kernel_stage2"), 32, SPLIT, packed=True),
    whole("sglang extend", "_fwd_kernel", 64, EXTENDED, masked_loads=True),
    whole("sglang prefill", "_fwd_kernel", 128, {"Out": "O", **LENGTHS}),
    Held("vllm unified prefill", ("kernel_unified_attention",), "flash2", {"block_q": 16, "block_kv": 32},
         {"lse": False, "packed": True, "masked_loads": True}, UNIFIED),
    split("vllm unified decode", ("kernel_unified_attention", "reduce_segments"), 16, UNIFIED,
          packed=True, two_statistics=True, masked_loads=True),
    Held("fla attention", ("parallel_attn_fwd_kernel",), "flash2", {"block_q": 128, "block_kv": 32}, names=FLA),
    Held("fla attention", ("parallel_attn_bwd_kernel_preprocess", "parallel_attn_bwd_kernel_dq",
                           "parallel_attn_bwd_kernel_dkv"), "two_pass",
         {"block_q": 32, "block_kv": 64, "dq_block_q": 64, "dq_block_kv": 32}, {}, FLA, {"direction": "backward"}),
    Held("flex attention", ("flex_attention",), "flash2", {"block_q": 64, "block_kv": 32}, {}, FLEX,
         {"mask": iomodel.BlockMask([[1, 0, 0], [1, 1, 0], [1, 1, 1]], 128, 128)}),
]  # fmt: skip
NOT_DECLARED = {
    "fla linear attention": "the state before each chunk passes through HBM between two kernels, in the forward and in "
    "the backward pass; linear_transformer keeps it on chip",
}
"""Reason for each case that no declared algorithm predicts."""
OTHER_TABLES = {
    "sglang extend": "only the keys of the prefix are located by a table",
    "vllm unified prefill": "each key of a tile loads the entry of its page, those beyond the last key too",
    "vllm unified decode": "each key of a tile loads the entry of its page, those beyond the last key too",
}
"""Reason for each case whose loads of the block table are not those of the model, one for each page of visited keys."""


def launches(case: str, kernels: tuple[str, ...]) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["case"] == case and row["count"]["kernel"] in kernels]


def workload(call: dict[str, Any]) -> iomodel.Attention | iomodel.VarlenAttention:
    kind = iomodel.VarlenAttention if "q_lens" in call else iomodel.Attention
    return kind(**call)


@pytest.mark.parametrize("held", HELD, ids=lambda held: f"{held.case}: {held.algorithm}")
def test_a_published_kernel_moves_what_is_predicted(held: Held) -> None:
    rows = launches(held.case, held.kernels)
    assert {row["count"]["kernel"] for row in rows} == set(held.kernels)
    cost = iomodel.cost(held.algorithm, workload({**rows[0]["call"], **held.call}), held.tiles, **held.options)
    sums: dict[str, Counter[str]] = {"reads": Counter(), "writes": Counter()}
    for row in rows:
        counted = KernelCount.from_dict(row["count"])
        for kind, total in sums.items():
            for name, number in getattr(counted, kind).items():
                if (model := held.names.get(name, name)) is not None:
                    total[model] += number
    if held.case in OTHER_TABLES:
        assert sums["reads"].pop("block_table") != cost.reads["block_table"]
        sums["reads"]["block_table"] = cost.reads["block_table"]
    assert_traffic(cost, sums)


@pytest.mark.parametrize("case", CASES)
def test_every_launch_is_predicted_or_has_a_reason(case: str) -> None:
    predicted = {kernel for held in HELD if held.case == case for kernel in held.kernels}
    recorded = {row["count"]["kernel"] for row in ROWS if row["case"] == case}
    assert predicted == (set() if case in NOT_DECLARED else recorded)


def test_the_state_of_linear_attention_passes_through_hbm() -> None:
    """The reason that no declared algorithm predicts it: each chunk's state is written once and read once."""
    rows = [KernelCount.from_dict(row["count"]) for row in ROWS if row["case"] in NOT_DECLARED]
    made, used = (
        next(row for row in rows if row.kernel == name) for name in ("chunk_fwd_kernel_h", "chunk_fwd_kernel_o")
    )
    chunks, heads, width = -(-150 // 64), 2, 32
    assert made.writes["h"] == used.reads["h"] == chunks * heads * width * width


def test_every_source_is_named() -> None:
    assert len({row["source"] for row in ROWS}) >= 6
    assert all(row["file"] and row["version"] and row["triton"] for row in ROWS)
