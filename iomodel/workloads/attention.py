"""Attention calls: lengths, heads, widths, dtype, mask."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

from pydantic import Field, model_validator

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import Count
from iomodel.errors import InputError, shown
from iomodel.workloads.call import Call
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.workload import Shape


class Attention(Call, Shape):
    """One attention call.

    Parameters
    ----------
    q_len, head_dim : int
        Queries per head, by default those of the documents of a mask [rows]; width of a row of Q and K [elements].
    batch, heads : int
        Sequences [-]; query heads [-].
    kv_heads, kv_len, value_dim : int, optional
        Key/value heads, a divisor of `heads` (GQA; 1 is MQA) [-]; keys per head [rows]; width of a row of V and O
        [elements]. The defaults are heads, q_len, head_dim.
    dtype : {"fp32", "tf32", "fp16", "bf16", "fp8", "int8"}
        Type of Q, K, V, O, S and P in HBM; tf32 is fp32 there, and the products are those of TF32.
    mask : "full", "causal", Window, BlockMask or Documents
        Keys visible to each query.
    direction : {"forward", "backward", "both"}
        Pass to compute; "both" is a forward pass followed by the backward pass.
    kv_dtype : str, optional
        Type of K and V in HBM, if different from `dtype`: a quantised cache, in "int4" and "nvfp4" (with a scale of one
        byte for 16 elements of a row) too. Two types, of K and of V, as "q8_0/q4_0", count with the mean of both sizes:
        the sum of K and V is exact where both are loaded equally often, their shares are not.
    kv_scales : {"head", "token"}, optional
        Scales of a quantised cache: one fp32 number for K and one for V per head, or per key.
    page_size : int, optional
        Keys per page of K and V, located through a block table [rows].
    latent : bool
        K and V are one latent shared by all heads (MLA); V is its first value_dim columns.
    bias, alibi, sinks : bool
        Additive bias of the scores; one slope per head; one logit per head in the softmax denominator.
    softcap : float, optional
        Scores s become softcap * tanh(s / softcap).
    dropout : float
        Dropout probability of P, from 0 to below 1 [-]. The state of the random numbers is moved, but no mask.

    Raises
    ------
    InputError
        A field is missing, unknown, or not a positive integer; kv_heads does not divide heads; a mask has another shape
        than the call; features are incompatible.

    Examples
    --------
    >>> llama = Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    >>> llama.kv_len, llama.group, llama.element_size
    (8192, 4, 2)
    >>> Attention(heads=128, kv_heads=1, q_len=1, kv_len=4096, head_dim=576, value_dim=512, latent=True).features
    ('latent',)
    >>> Attention(head_dim=128, mask=Documents([512, 1024])).kv_len
    1536
    """

    batch: Count = 1
    q_len: Count
    kv_len: Count = Field(default_factory=lambda data: data["q_len"])

    @model_validator(mode="before")
    @classmethod
    def _as_long_as_documents(cls, data: Any) -> Any:
        mask = data.get("mask") if isinstance(data, Mapping) else None
        return {"q_len": mask.total, **data} if isinstance(mask, Documents) else data

    @model_validator(mode="after")
    def _mask_fits(self) -> Self:
        if isinstance(self.mask, BlockMask | Documents):
            self.mask.check(self.q_len, self.kv_len)
        return self

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Value of every workload symbol, keyed by its Python name, in alphabet order."""
        return FrozenDict(self.at(self.batch, self.q_len, self.kv_len))


def as_attention(workload: object) -> Attention:
    """Validate an Attention, or raise InputError."""
    if not isinstance(workload, Attention):
        raise InputError(f"workload: {shown(workload)} given; allowed: an iomodel.Attention")
    return workload
