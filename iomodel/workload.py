"""What an attention call is asked to do: lengths, heads, widths, dtype, mask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, model_validator

from iomodel.block_mask import BlockMask
from iomodel.documents import Documents
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.frozen import FrozenDict
from iomodel.validation import LARGEST, Count, Distance, Model, as_integer

DType = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8"]
Align = Literal["bottom-right", "top-left"]
MaskName = Literal["full", "causal"]
Direction = Literal["forward", "backward", "both"]

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
        kinds = (BlockMask, Documents, Window)
        return next(kind for kind in kinds if kind.model_fields.keys() & mask.keys() or kind is Window)(**mask)
    if isinstance(mask, Window | BlockMask | Documents) or (isinstance(mask, str) and mask in get_args(MaskName)):
        return mask
    raise UnknownNameError(
        "mask",
        mask,
        [*get_args(MaskName), "Window(left=..., right=...)", "BlockMask(blocks=...)", "Documents(lengths=...)"],
    )


def _one_of(field: str, names: Iterable[str]) -> BeforeValidator:
    def known(value: Any) -> Any:
        if isinstance(value, str) and value in names:
            return value
        raise UnknownNameError(field, value, names)

    return BeforeValidator(known)


Mask = Annotated[MaskName | Window | BlockMask | Documents, BeforeValidator(known_mask)]


def _lengths(given: Any) -> tuple[int, ...]:
    """Many positive integers, checked all at once."""
    try:
        array = np.asarray(given)
    except Exception:  # ragged; nested too deep; an __array__ that fails
        array = np.empty((0, 0))
    switches = () if isinstance(given, np.ndarray) or array.ndim != 1 else (n for n in given if isinstance(n, bool))
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or any(True for _ in switches):
        raise ValueError(f"Input should be a sequence of positive integers, at least one, given {shown(given)}")
    if array.min() < 1 or array.max() > LARGEST:
        wrong = int(array[(array < 1) | (array > LARGEST)][0])
        raise ValueError(f"Every length should be from 1 to {LARGEST}; one is {wrong}")
    return tuple(array.tolist())


IntArray = NDArray[np.int64]
Switch = Annotated[bool, Field(strict=True)]
Lengths = Annotated[tuple[int, ...], PlainValidator(_lengths), PlainSerializer(list, when_used="json")]

FOLLOWERS = ("kv_heads", "kv_len", "value_dim", "kv_dtype", "kv_lens")
CACHE_ONLY = ("latent", "kv_dtype", "head_scales", "token_scales", "paged")
"""Features of serving: no backward pass goes with them."""


class Call(Model):
    """What an attention call has beside its lengths; the fields are those of :class:`Attention`."""

    heads: Count = 1
    kv_heads: Count = Field(default_factory=lambda data: data["heads"])
    head_dim: Count
    value_dim: Count = Field(default_factory=lambda data: data["head_dim"])
    dtype: Annotated[DType, _one_of("dtype", ELEMENT_SIZE)] = "bf16"
    mask: Mask = "full"
    direction: Annotated[Direction, _one_of("direction", get_args(Direction))] = "forward"
    kv_dtype: Annotated[DType, _one_of("kv_dtype", ELEMENT_SIZE)] = Field(default_factory=lambda data: data["dtype"])
    kv_scales: Literal["head", "token"] | None = None
    page_size: Count | None = None
    latent: Switch = False
    bias: Switch = False
    softcap: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] | None = None
    alibi: Switch = False
    sinks: Switch = False
    dropout: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _none_is_absent(cls, data: Any) -> Any:
        """Let None mean the default in the fields that follow another."""
        if not isinstance(data, dict):
            return data
        return {field: given for field, given in data.items() if given is not None or field not in FOLLOWERS}

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.heads % self.kv_heads:
            near = max(n for n in range(1, self.kv_heads) if self.heads % n == 0) if self.kv_heads < 10**6 else 1
            raise InputError(
                f"kv_heads: {self.kv_heads} does not divide heads = {self.heads}; "
                f"allowed: a divisor of {self.heads}, such as {near}"
            )
        return self

    @model_validator(mode="after")
    def _features_agree(self) -> Self:
        if self.latent and self.kv_heads != 1:
            raise InputError(f"kv_heads: {self.kv_heads} given with latent = True; allowed: 1, for all heads share it")
        if self.latent and self.value_dim > self.head_dim:
            raise InputError(
                f"value_dim: {self.value_dim} given with latent = True; allowed: up to head_dim = {self.head_dim}, "
                "for V is a part of the latent"
            )
        if self.latent and self.kv_scales is not None:
            raise InputError("kv_scales: given with latent = True; allowed: with K and V that are apart")
        serving = [name for name in CACHE_ONLY if name in self.features]
        if serving and self.direction != "forward":
            field = {"head_scales": "kv_scales", "token_scales": "kv_scales", "paged": "page_size"}.get(
                serving[0], serving[0]
            )
            raise InputError(f"{field}: given with direction {self.direction}; allowed: with direction forward")
        if self.page_size is not None and isinstance(self.mask, BlockMask | Documents):
            raise InputError(f"page_size: given with mask {shown(self.mask)}; allowed: with full, causal or a Window")
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """A copy with some fields changed, validated like any other workload."""
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **(update or {})})

    def shard(self, ranks: int) -> Self:
        """The part of one of `ranks` ranks under tensor parallelism: its share of the heads.

        Key/value heads are shared out too, and repeated where there are fewer of them than ranks: a latent (MLA) is
        on every rank.

        Parameters
        ----------
        ranks : int
            How many ranks share the heads [-].

        Raises
        ------
        InputError
            The heads do not divide among the ranks.

        Examples
        --------
        >>> Attention(heads=64, kv_heads=8, q_len=1, kv_len=8192, head_dim=128).shard(16).kv_heads
        1
        """
        count = as_integer("ranks", ranks)
        uneven = self.heads % count or (self.kv_heads % count and count % self.kv_heads)
        if uneven:
            near = [n for n in range(1, min(count, self.heads) + 1) if self.heads % n == 0 and not self.kv_heads % n]
            raise InputError(
                f"ranks: {count} given; allowed: a number that heads = {self.heads} and kv_heads = {self.kv_heads} "
                f"divide among, such as {near[-1]}"
            )
        heads = {"heads": self.heads // count, "kv_heads": max(1, self.kv_heads // count)}
        return self.model_copy(update=heads)

    @cached_property
    def memo(self) -> dict[str, Any]:
        """Room for what others derive from the call and would derive again."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what is derived: it holds compiled code."""
        state = super().__getstate__()
        fields = {name: value for name, value in state["__dict__"].items() if name in type(self).model_fields}
        return {**state, "__dict__": fields}

    @property
    def group(self) -> int:
        """Query heads that share a key/value head [-]."""
        return self.heads // self.kv_heads

    @property
    def element_size(self) -> int:
        """Size of an element of the workload's dtype [B]."""
        return ELEMENT_SIZE[self.dtype]

    @property
    def kv_element_size(self) -> int:
        """Size of an element of K and V in HBM [B]."""
        return ELEMENT_SIZE[self.kv_dtype]

    @cached_property
    def features(self) -> tuple[str, ...]:
        """What the call has of :data:`iomodel.features.FEATURES`."""
        has = {
            "latent": self.latent,
            "kv_dtype": self.kv_dtype != self.dtype,
            "head_scales": self.kv_scales == "head",
            "token_scales": self.kv_scales == "token",
            "paged": self.page_size is not None,
            "bias": self.bias,
            "softcap": self.softcap is not None,
            "alibi": self.alibi,
            "sinks": self.sinks,
            "dropout": self.dropout > 0,
        }
        return tuple(name for name, given in has.items() if given)

    def at(self, batch: Any, q_len: Any, kv_len: Any) -> dict[str, Any]:
        """The number for every workload symbol, by its Python name, in the order of the alphabet."""
        window = self.mask if isinstance(self.mask, Window) else Window()
        return {
            "batch": batch,
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "group": self.group,
            "q_len": q_len,
            "kv_len": kv_len,
            "head_dim": self.head_dim,
            "value_dim": self.value_dim,
            "element_size": self.element_size,
            "kv_element_size": self.kv_element_size,
            "page_size": self.page_size or 1,
            "window_left": window.left or 0,
            "window_right": window.right or 0,
        }


class Attention(Call):
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
    mask : "full", "causal", Window, BlockMask or Documents
        Which keys a query sees.
    direction : {"forward", "backward", "both"}
        What is computed; "both" is a forward pass and the backward pass after it.
    kv_dtype : str, optional
        Type of K and V in HBM where it is not `dtype`: a quantised cache.
    kv_scales : {"head", "token"}, optional
        The scales of such a cache: one fp32 number for K and one for V a head, or a key.
    page_size : int, optional
        K and V lie in pages of so many keys [rows], found through a block table.
    latent : bool
        K and V are one latent that all heads share (MLA): V is its first value_dim columns.
    bias, alibi, sinks : bool
        An additive bias to the scores is read; a slope a head; a logit a head joins the softmax denominator.
    softcap : float, optional
        Scores s become softcap * tanh(s / softcap).
    dropout : float
        The share of P that is dropped, from 0 to below 1 [-]. The state of the random numbers moves, no mask does.

    Raises
    ------
    InputError
        A field is missing, unknown, no positive integer; kv_heads does not divide heads; a mask has not the shape of
        the call; features that do not go together.

    Examples
    --------
    >>> llama = Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    >>> llama.kv_len, llama.group, llama.element_size
    (8192, 4, 2)
    >>> Attention(heads=128, kv_heads=1, q_len=1, kv_len=4096, head_dim=576, value_dim=512, latent=True).features
    ('latent',)
    """

    batch: Count = 1
    q_len: Count
    kv_len: Count = Field(default_factory=lambda data: data["q_len"])

    @model_validator(mode="after")
    def _mask_fits(self) -> Self:
        if isinstance(self.mask, BlockMask | Documents):
            self.mask.check(self.q_len, self.kv_len)
        return self

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number for every workload symbol, by its Python name, in the order of the alphabet."""
        return FrozenDict(self.at(self.batch, self.q_len, self.kv_len))

    @cached_property
    def point(self) -> tuple[int, ...]:
        """The same numbers in the order of the alphabet, as compiled formulas take them."""
        return tuple(self.numbers.values())


class VarlenAttention(Call):
    """A batch of sequences that differ in length, in one call.

    Parameters
    ----------
    q_lens : sequence of int
        Queries of each sequence [rows].
    kv_lens : sequence of int, optional
        Keys of each sequence [rows]; as q_lens where not given.
    head_dim, heads, kv_heads, value_dim, dtype, mask, direction, ... :
        As for :class:`Attention`, the same for all; a mask given by data has no place here.

    Raises
    ------
    InputError
        No sequence; as many q_lens as kv_lens are needed; whatever Attention refuses.

    Examples
    --------
    >>> import iomodel
    >>> w = VarlenAttention(q_lens=[100, 1], kv_lens=[100, 900], head_dim=64)
    >>> iomodel.cost("flash2", w, {"block_q": 64, "block_kv": 64}).reads["K"]  # two tiles of queries, then one
    70400
    """

    q_lens: Lengths
    kv_lens: Lengths = Field(default_factory=lambda data: data["q_lens"])

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        if len(self.q_lens) != len(self.kv_lens):
            raise InputError(
                f"kv_lens: {len(self.kv_lens)} lengths given, for {len(self.q_lens)} in q_lens; "
                "allowed: one for each sequence"
            )
        if isinstance(self.mask, BlockMask | Documents):
            raise InputError(f"mask: {shown(self.mask)} given; allowed: full, causal or a Window")
        return self

    @cached_property
    def counted(self) -> tuple[IntArray, IntArray, IntArray]:
        """The pairs of lengths that occur, as q_lens and kv_lens, and how often each does."""
        times = Counter(zip(self.q_lens, self.kv_lens, strict=True))
        q_lens, kv_lens = np.array(list(times), dtype=np.int64).T
        found = q_lens, kv_lens, np.array(list(times.values()), dtype=np.int64)
        for array in found:
            array.flags.writeable = False  # kept beside the workload
        return found

    @cached_property
    def sequences(self) -> tuple[Attention, ...]:
        """Every pair of lengths that occurs, as a call of its own with as many sequences."""
        fields = {name: getattr(self, name) for name in Call.model_fields}
        triples = zip(*(lengths.tolist() for lengths in self.counted), strict=True)
        return tuple(Attention(**fields, q_len=q, kv_len=k, batch=times) for q, k, times in triples)


def as_attention(workload: object) -> Attention:
    """The workload itself, or InputError."""
    if not isinstance(workload, Attention):
        raise InputError(f"workload: {shown(workload)} given; allowed: an iomodel.Attention")
    return workload


def as_call(workload: object) -> Attention | VarlenAttention:
    """The workload itself, of one length or many, or InputError."""
    if not isinstance(workload, Attention | VarlenAttention):
        raise InputError(f"workload: {shown(workload)} given; allowed: an iomodel.Attention or VarlenAttention")
    return workload
