"""What an attention call is asked to do: lengths, heads, widths, dtype, mask."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.validation import Count, Distance, Model

DType = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8"]
Align = Literal["bottom-right", "top-left"]
MaskName = Literal["full", "causal"]

ELEMENT_SIZE: dict[str, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
"""Size of an element in HBM [B]; tf32 is a way to multiply fp32 data, which are 4 bytes wide."""


class Window(Model):
    """A band: query i sees the keys i + off - left .. i + off + right.

    Parameters
    ----------
    left, right : int or None
        Keys visible beside the diagonal [keys]; None is unbounded.
    align : {"bottom-right", "top-left"}
        Where the diagonal lies: off = kv_len - q_len, so that the last query sees the last key, or off = 0.

    Raises
    ------
    InputError
        A side is negative or no integer, or the alignment is unknown.

    Examples
    --------
    >>> Window(left=4095, right=0)  # Mistral 7B's sliding window
    Window(left=4095, right=0, align='bottom-right')
    """

    left: Distance | None = None
    right: Distance | None = None
    align: Align = "bottom-right"


def known_mask(mask: Any) -> Any:
    """Raise UnknownNameError unless this is a mask."""
    if isinstance(mask, dict) and all(isinstance(side, str) for side in mask):
        return Window(**mask)
    if isinstance(mask, Window) or (isinstance(mask, str) and mask in get_args(MaskName)):
        return mask
    raise UnknownNameError("mask", mask, [*get_args(MaskName), "Window(left=..., right=...)"])


def _known_dtype(dtype: Any) -> Any:
    if isinstance(dtype, str) and dtype in ELEMENT_SIZE:
        return dtype
    raise UnknownNameError("dtype", dtype, ELEMENT_SIZE)


Mask = Annotated[MaskName | Window, BeforeValidator(known_mask)]


FOLLOWERS = ("kv_heads", "kv_len", "value_dim")


class Attention(Model):
    """One attention call.

    Parameters
    ----------
    q_len, head_dim : int
        Queries a head [rows]; width of a row of Q and K [elements].
    batch, heads : int
        Sequences [-]; query heads [-].
    kv_heads, kv_len, value_dim : int, optional
        Key/value heads, which divide `heads` (GQA; 1 is MQA) [-]; keys a head [rows]; width of a row of V and O
        [elements]. They default to heads, q_len, head_dim.
    dtype : {"fp32", "tf32", "fp16", "bf16", "fp8", "int8"}
        Type of Q, K, V, O, S and P in HBM.
    mask : "full", "causal" or Window
        Which keys a query sees.
    direction : {"forward"}
        What is computed.

    Raises
    ------
    InputError
        A field is missing, unknown, no positive integer, or kv_heads does not divide heads.

    Examples
    --------
    >>> llama = Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    >>> llama.kv_len, llama.group, llama.element_size
    (8192, 4, 2)
    """

    batch: Count = 1
    heads: Count = 1
    kv_heads: Count = Field(default_factory=lambda data: data["heads"])
    q_len: Count
    kv_len: Count = Field(default_factory=lambda data: data["q_len"])
    head_dim: Count
    value_dim: Count = Field(default_factory=lambda data: data["head_dim"])
    dtype: Annotated[DType, BeforeValidator(_known_dtype)] = "bf16"
    mask: Mask = "full"
    direction: Literal["forward"] = "forward"

    @model_validator(mode="before")
    @classmethod
    def _none_is_absent(cls, data: Any) -> Any:
        """Let None mean the default in the fields that follow another."""
        if not isinstance(data, dict):
            return data
        return {field: given for field, given in data.items() if given is not None or field not in FOLLOWERS}

    @model_validator(mode="after")
    def _heads_divide(self) -> Attention:
        if self.heads % self.kv_heads:
            near = max(n for n in range(1, self.kv_heads + 1) if self.heads % n == 0) if self.kv_heads < 10**6 else 1
            raise InputError(
                f"kv_heads: {self.kv_heads} does not divide heads = {self.heads}; "
                f"allowed: a divisor of {self.heads}, such as {near}"
            )
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Attention:  # noqa: ARG002
        """A copy with some fields changed, validated like any other workload."""
        return Attention(**{**{name: getattr(self, name) for name in type(self).model_fields}, **(update or {})})

    @property
    def group(self) -> int:
        """Query heads that share a key/value head [-]."""
        return self.heads // self.kv_heads

    @property
    def element_size(self) -> int:
        """Size of an element of the workload's dtype [B]."""
        return ELEMENT_SIZE[self.dtype]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number for every workload symbol, by its Python name, in the order of the alphabet."""
        window = self.mask if isinstance(self.mask, Window) else Window()
        return {
            "batch": self.batch,
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "group": self.group,
            "q_len": self.q_len,
            "kv_len": self.kv_len,
            "head_dim": self.head_dim,
            "value_dim": self.value_dim,
            "element_size": self.element_size,
            "window_left": window.left or 0,
            "window_right": window.right or 0,
        }

    @cached_property
    def point(self) -> tuple[int, ...]:
        """The same numbers in the order of the alphabet, as compiled formulas take them."""
        return tuple(self.numbers.values())


def as_attention(workload: object) -> Attention:
    """The workload itself, or InputError."""
    if not isinstance(workload, Attention):
        raise InputError(f"workload: {shown(workload)} given; allowed: an iomodel.Attention")
    return workload
