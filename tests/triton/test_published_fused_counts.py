"""Stored counts of published Triton kernels beyond attention against the predictions of the declared algorithms.

`benchmarks/triton_counts.py --cases triton_count_fused` made the record; neither Triton nor the kernels are needed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.nests import Algorithm
from iomodel.testing import assert_traffic
from iomodel.triton import KernelCount
from tests.support.inside import BoundCall, Elementwise

RECORD = Path(__file__).parents[1] / "measured" / "triton" / "fused_counts.jsonl"
ROWS = [json.loads(line) for line in RECORD.read_text(encoding="utf-8").splitlines()]
Call = dict[str, Any]


@cache
def part_of(name: str, titles: tuple[str, ...]) -> Algorithm:
    """The kernels of a shipped algorithm with these titles, as an algorithm."""
    whole = algorithm(name)

    def some(declare: Callable[..., Iterable[Any]]) -> Callable[..., Iterator[Any]]:
        @wraps(declare)
        def declared(**options: Any) -> Iterator[Any]:
            kernels = [kernel for kernel in declare(**options) if kernel.title in titles]
            assert {kernel.title for kernel in kernels} == set(titles)
            yield from kernels

        return declared

    backward = some(whole.backward) if whole.backward else None
    return replace(whole, name=f"part of {name}", declare=some(whole.declare), backward=backward)


@dataclass(frozen=True)
class Held:
    """A launch of a kernel, the first of its name in a case or a later one, and kernels that predict it.

    `reads` and `writes` name the tensor of the model for an argument; arguments without a name are not in the model.
    `absent` are tensors of the prediction that the launch does not move, with a reason.
    """

    kernel: str
    algorithm: str
    call: Callable[[Call, Any], Any]
    titles: tuple[str, ...] = ()
    tiles: Callable[[Any], dict[str, int]] = lambda _: {}
    options: Mapping[str, Any] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    writes: Mapping[str, str] = field(default_factory=dict)
    place: int | None = None
    absent: Mapping[str, str] = field(default_factory=dict)


def elementwise(call: Call, _: Any) -> Elementwise:
    return Elementwise(**call)


def backward(call: Call, _: Any) -> Elementwise:
    return Elementwise(**call, direction="backward")


def rotated(call: Call, _: Any) -> Elementwise:
    """Query and key heads of a token beside each other; a cosine and a sine for each pair of a head."""
    width = (call["heads"] + call["kv_heads"]) * call["head_dim"]
    return Elementwise(rows=call["tokens"], channels=width, others=call["head_dim"], dtype=call["dtype"])


def chunk_of_rows(call: Call, count: KernelCount) -> iomodel.CrossEntropy:
    """The rows of one chunk, a program for each."""
    return iomodel.CrossEntropy(**{**call, "rows": count.grid[0]}, gradients=True)


def recurrence(call: Call, _: Any) -> iomodel.Recurrence:
    return iomodel.Recurrence(**call)


def experts(call: Call, _: Any) -> iomodel.Experts:
    return iomodel.Experts(**call)


def blocks(count: KernelCount) -> dict[str, int]:
    return {f"block_{name.lower()}": count.meta.get(f"BLOCK_SIZE_{name}", 16) for name in "MNK"}


def chunks(_: KernelCount) -> dict[str, int]:
    return {"block_chunk": 64, "block_value": 32}


def norm_backward(splits: int) -> Held:
    return Held(
        "_rms_norm_backward_kernel", "norm", backward, ("dx, parts of dgamma",), options={"splits": splits},
        reads={"dY_ptr": "dy", "X_ptr": "x", "W_ptr": "gamma", "RSTD_ptr": "rstd"},
        writes={"dX_ptr": "dx", "dW_ptr": "dgamma_parts"}, place=0 if splits == 1 else 1,
    )  # fmt: skip


def scan(kernel: str, title: str, reads: Mapping[str, str], writes: Mapping[str, str], **more: Any) -> Held:
    options = {"stored_gates": True, **more.pop("options", {})}
    return Held(kernel, "chunked_scan", recurrence, (title,), chunks, options, reads, writes, **more)


DELTA = {"options": {"stored_inverse": True}}
KEYS = {"k": "K", "beta": "beta", "g": "g_sums"}
STATE = {"h0": "STATE", "k": "K"}
MOE = {"options": {"separate_activation": True, "wrapped_columns": True}, "tiles": blocks}
HELD: dict[str, tuple[Held, ...]] = {
    "liger norm": (
        Held("_rms_norm_forward_kernel", "norm", elementwise, options={"keeps_rstd": True},
             reads={"X_ptr": "x", "W_ptr": "gamma"}, writes={"Y_ptr": "y", "RSTD_ptr": "rstd"}),
        norm_backward(1),
        norm_backward(4),
    ),
    "liger swiglu": (
        Held("_swiglu_forward_kernel", "gated_activation", elementwise, reads={"a_ptr": "gate", "b_ptr": "up"},
             writes={"c_ptr": "hidden"}),
        Held("_swiglu_backward_kernel", "gated_activation", backward,
             reads={"dc_ptr": "dhidden", "a_ptr": "gate", "b_ptr": "up"}, writes={"a_ptr": "dgate", "b_ptr": "dup"}),
    ),
    "liger rope": (
        Held("_triton_rope", "rotary", rotated, reads={"q_ptr": "Q", "k_ptr": "Q", "cos": "angles", "sin": "angles"},
             writes={"q_ptr": "Q", "k_ptr": "Q"}),
    ),
    "liger loss": (
        Held("liger_cross_entropy_kernel", "logits_cross_entropy", chunk_of_rows, ("losses",), blocks,
             {"separate_label": True}, {"X_ptr": "logits", "Y_ptr": "labels"}, {"X_ptr": "logits", "loss_ptr": "loss"}),
    ),
    "fla gated delta rule": (
        scan("chunk_local_cumsum_scalar_kernel", "sums of gates", {"s": "g"}, {"o": "g_sums"}),
        scan("chunk_gated_delta_rule_fwd_kkt_solve_kernel", "T", KEYS, {"A": "T_stored"}, **DELTA),
        scan("recompute_w_u_fwd_kernel", "W = T K, U = T V", {**KEYS, "A": "T_stored", "v": "V"},
             {"w": "W", "u": "U"}, **DELTA),
        scan("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "states",
             {**STATE, "g": "g_sums", "w": "W", "v": "U"}, {"h": "STATES", "ht": "STATE", "v_new": "V_new"}),
        scan("chunk_fwd_kernel_o", "outputs",
             {"q": "Q", "k": "K", "v": "V_new", "h": "STATES", "g": "g_sums"}, {"o": "O"}),
    ),
    "fla gated linear attention": (
        scan("chunk_local_cumsum_vector_kernel", "sums of gates", {"s": "g"}, {"o": "g_sums"}),
        scan("chunk_fwd_kernel_h", "states", {**STATE, "gk": "g_sums", "v": "V"}, {"h": "STATES", "ht": "STATE"}),
        scan("chunk_gla_fwd_kernel_o", "outputs", {"q": "Q", "v": "V", "h": "STATES", "g": "g_sums"}, {"o": "O"},
             absent={"K": "the scores come from HBM"}),
    ),
    "sglang experts": (
        Held("fused_moe_kernel", "split_mlp", experts, ("GU = X W_gate_up",), **MOE,
             reads={"a_ptr": "X", "b_ptr": "W_gate_up"}, writes={"c_ptr": "GU"}, place=0),
        Held("act_and_mul_kernel", "split_mlp", experts, ("H = act(G) * U",), **{**MOE, "tiles": lambda _: {}},
             reads={"gateup_output": "GU"}, writes={"down_input": "H"}),
        Held("fused_moe_kernel", "split_mlp", experts, ("Y = H W_down",), **MOE,
             reads={"a_ptr": "H", "b_ptr": "W_down"}, writes={"c_ptr": "Y"}, place=1),
        Held("_moe_sum_reduce_kernel", "combine_experts",
             lambda call, count: Elementwise(rows=count.grid[0], channels=call["in_features"],
                                             others=sum(call["loads"]) // count.grid[0], dtype=call["dtype"]),
             reads={"input_ptr": "outputs"}, writes={"output_ptr": "y"},
             absent={"router_weights": "the second product applies them"}),
    ),
}  # fmt: skip
NOT_DECLARED = {
    "chunk_gla_fwd_A_kernel_intra_sub_inter": "scores between pieces of 16 positions; each piece of queries and gates "
    "is loaded again for each earlier piece",
    "chunk_gla_fwd_A_kernel_intra_sub_intra": "scores within pieces of 16 positions",
}
"""Reason for each kernel that no declared one predicts."""
OTHER = ("fla gated delta rule", "T_stored")
"""A case that stores less than all of a tensor: its blocks on and below the diagonal."""


def blocks_of_triangles(tokens: int, chunk: int = 64, block: int = 16) -> int:
    """Count the elements of whole blocks on and below the diagonal of each chunk, up to the last row."""
    return sum(block * (1 + position % chunk // block) for position in range(tokens))


def launches(held: Held, family: str) -> Iterator[tuple[dict[str, Any], KernelCount]]:
    """Find the launches of a kernel in all cases of a family."""
    for case in dict.fromkeys(row["case"] for row in ROWS if row["case"].startswith(family)):
        own = [row for row in ROWS if row["case"] == case and row["count"]["kernel"] == held.kernel]
        for row in own if held.place is None else own[held.place :][:1]:
            yield row, KernelCount.from_dict(row["count"])


def named(counts: Mapping[str, int], names: Mapping[str, str]) -> Counter[str]:
    total: Counter[str] = Counter()
    for argument, count in counts.items():
        if argument in names:
            total[names[argument]] += count
    return total


@pytest.mark.parametrize(
    ("family", "held"), [(family, held) for family, some in HELD.items() for held in some],
    ids=lambda each: each if isinstance(each, str) else f"{each.kernel} {each.place}",
)  # fmt: skip
def test_a_published_kernel_moves_what_is_predicted(family: str, held: Held) -> None:
    found = list(launches(held, family))
    assert len({row["case"] for row, _ in found}) == 2
    for row, counted in found:
        declared = part_of(held.algorithm, held.titles) if held.titles else held.algorithm
        call, tiles = held.call(row["call"], counted), held.tiles(counted)
        needed = BoundCall.bind(declared, call, held.options).tiles
        cost = iomodel.cost(declared, call, {name: tiles[name] for name in needed}, **held.options)
        sums = {"reads": named(counted.reads, held.reads), "writes": named(counted.writes, held.writes)}
        for name in held.absent:
            sums["reads"][name] = cost.reads[name]
        case, tensor = OTHER
        if family == case and tensor in sums["writes"]:
            assert sums["writes"][tensor] == row["call"]["heads"] * blocks_of_triangles(row["call"]["tokens"])
            assert sums["writes"][tensor] < cost.writes[tensor]
            sums["writes"][tensor] = cost.writes[tensor]
        assert_traffic(cost, sums)


def test_every_launch_is_predicted_or_has_a_reason() -> None:
    for row in ROWS:
        family = next(name for name in HELD if row["case"].startswith(name))
        kernel = row["count"]["kernel"]
        assert (kernel in NOT_DECLARED) != (kernel in {held.kernel for held in HELD[family]}), kernel


def test_every_counted_argument_is_named_or_known_to_be_left_out() -> None:
    """Indices of tokens and experts, the weights of the router, and scores between the kernels of GLA."""
    left = {"sorted_token_ids_ptr", "expert_ids_ptr", "num_tokens_post_padded_ptr", "topk_weights_ptr"}
    for family, some in HELD.items():
        for held in some:
            for _, counted in launches(held, family):
                unnamed = (counted.reads.keys() - held.reads.keys()) | (counted.writes.keys() - held.writes.keys())
                assert unnamed <= (left if family == "sglang experts" else {"A"} if "gla" in held.kernel else set())


def test_every_source_is_named() -> None:
    assert len({row["source"] for row in ROWS}) == 3
    assert all(row["file"] and row["version"] and row["triton"] for row in ROWS)
