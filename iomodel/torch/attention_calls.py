"""Attention operators of PyTorch as attention calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from iomodel.common.validation import finite
from iomodel.errors import InputError, shown, shown_name
from iomodel.torch.operator_call import TYPES, OperatorCall, OperatorWork
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import known_mask
from iomodel.workloads.window import Window

FLEX = "higher_order.flex_attention"
"""Name of the operator behind FlexAttention."""


@dataclass(frozen=True)
class AttentionCalls(OperatorWork):
    """The workloads of an attention operator, each with the bytes of a mask tensor that it reads beside [B]."""

    parts: tuple[tuple[Attention, int], ...]

    @property
    def flops(self) -> int:
        """FLOPs of visible pairs, scores formed once [FLOP]."""
        from iomodel.counting.cost import cost

        return sum(int(cost("standard", workload).useful_flops) for workload, _ in self.parts)

    def workload(self, _: OperatorCall) -> Attention | None:
        """Return the workload, if there is one alone."""
        return self.parts[0][0] if len(self.parts) == 1 else None


def is_attention(name: str) -> bool:
    """Check whether an operator is one fused attention kernel, forward or backward."""
    fused = name.startswith("aten._scaled_dot_product_") and "attention" in name and "math" not in name
    return fused or name.startswith(FLEX) or name == "aten.scaled_dot_product_attention"


def attention_of(call: OperatorCall) -> AttentionCalls:
    """Return the workloads of an attention operator.

    A block mask that differs by sequence or head gives one workload for each different mask.

    Raises
    ------
    InputError
        The type has no attention workload; masks differ among heads that share keys.
    """
    query, key, value = (call.tensor(name, 4) for name in ("query", "key", "value"))
    if query.dtype not in TYPES:
        raise InputError(
            f"{shown_name(call.operator)}: query of type {shown(query.dtype)} given; allowed: {', '.join(TYPES)}"
        )
    batch, heads, queries, width = query.shape
    shape = {
        "batch": batch,
        "heads": heads,
        "kv_heads": key.shape[1],
        "q_len": queries,
        "kv_len": key.shape[2],
        "head_dim": width,
        "value_dim": value.shape[3],
        "dtype": TYPES[query.dtype],
        "direction": "backward" if call.operator.endswith("_backward") else "forward",
    }
    masks = call.arguments.get("masks")
    if masks is None:
        return AttentionCalls((_dense(call, shape),))
    masks = _pairs(masks)
    if len(masks) > 1 and shape["kv_heads"] != heads:
        raise InputError(
            f"block_mask: {len(masks)} different masks given for {heads} heads that share {shape['kv_heads']}; "
            "allowed: one mask for all heads, or a key head per head"
        )
    sizes = [{} if len(masks) == 1 else {"batch": times, "heads": 1, "kv_heads": 1} for times, _ in masks]
    kinds = zip(sizes, masks, strict=True)
    return AttentionCalls(tuple((Attention(**{**shape, **size, "mask": mask_from(m)}), 0) for size, (_, m) in kinds))


def _pairs(masks: object) -> Sequence[tuple[int, Any]]:
    """Return masks with the number of calls of each; raise InputError for anything else."""
    if _is_list(masks) and masks and all(_is_list(each) and len(each) == 2 and type(each[0]) is int for each in masks):
        return masks
    raise InputError(f"arguments.masks: {shown(masks)} given; allowed: pairs of a number of calls and a mask")


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def mask_from(plain: Any) -> Any:
    """Rebuild a mask from its plain form."""
    if not isinstance(plain, Mapping):
        return known_mask(plain)
    table = plain.get("blocks")
    rows = {"blocks": [list(row) for row in table]} if _is_list(table) and all(map(_is_list, table)) else {}
    return known_mask({str(name): item for name, item in plain.items()} | rows)


def _dense(call: OperatorCall, shape: dict[str, Any]) -> tuple[Attention, int]:
    """Return the workload of scaled_dot_product_attention; its causal mask begins at the top left."""
    mask: Any = "full"
    if call.arguments.get("is_causal"):
        mask = "causal" if shape["q_len"] == shape["kv_len"] else Window(right=0, align="top-left")
    tensor = call.inputs.get("attn_mask", call.inputs.get("attn_bias"))
    dropped = call.arguments.get("dropout_p") or 0
    if not finite(dropped):
        raise InputError(f"arguments.dropout_p: {shown(dropped)} given; allowed: a probability from 0 to below 1")
    workload = Attention(**shape, mask=mask, bias=tensor is not None, dropout=float(dropped))
    # The bias of a workload has the workload's type; a tensor of booleans is narrower.
    return workload, 0 if tensor is None else tensor.element_bytes
