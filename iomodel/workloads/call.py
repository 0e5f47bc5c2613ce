"""Fields shared by all attention calls."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from iomodel.common.spellings import renamed
from iomodel.common.validation import Count, as_integer
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.window import Window
from iomodel.workloads.workload import ELEMENT_SIZE as ELEMENT_SIZE  # noqa: PLC0414 - rooms import it from here
from iomodel.workloads.workload import Workload, one_of, stored

DType = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8"]
KVType = Literal[
    "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", "nvfp4", "mxfp8", "mxfp4", "q8_0", "q5_1", "q5_0", "q4_1",
    "q4_0", "iq4_nl"
]  # fmt: skip
MaskName = Literal["full", "causal"]
Direction = Literal["forward", "backward", "both"]
BLOCK_CACHES = {"q8_0": 34, "q5_1": 24, "q5_0": 22, "q4_1": 20, "q4_0": 18, "iq4_nl": 18}
"""Bytes of a block of 32 elements of a cache of llama.cpp, scales and minima included (ggml/src/ggml-common.h)."""
PAIRED = ("fp32", "fp16", "bf16", *BLOCK_CACHES)
"""Types of caches of which K and V may have two (`--cache-type-k`, `--cache-type-v` of llama.cpp)."""


def halves(kv_dtype: str) -> tuple[str, str]:
    """Return the types of K and of V.

    >>> halves("q8_0/q4_0"), halves("fp8")
    (('q8_0', 'q4_0'), ('fp8', 'fp8'))
    """
    keys, _, values = kv_dtype.partition("/")
    return keys, values or keys


class CacheSizes(dict[str, int]):
    """Sizes of elements by types of caches. Two types, of K and of V, as "q8_0/q4_0", have the mean of both sizes."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and _is_pair(name))

    def __missing__(self, name: str) -> int:
        if not _is_pair(name):
            raise KeyError(name)
        return sum(self[half] for half in halves(name)) // 2


def _is_pair(name: str) -> bool:
    keys, values = halves(name)
    return keys != values and keys in PAIRED and values in PAIRED


KV_QUARTERS = CacheSizes({
    **{name: 32 * size for name, size in ELEMENT_SIZE.items()}, "int4": 16, "nvfp4": 18, "mxfp8": 33,
    "mxfp4": 17, **BLOCK_CACHES,
})  # fmt: skip
"""Size of an element of a K/V cache in HBM, in quarters of a bit. Those of nvfp4 include their scales, a byte for 16
elements of a row, those of mxfp8 and mxfp4 a byte for 32, and those of blocks theirs; the scale and the zero point of a
row of int4 are those of `kv_scales`."""
KV_MULTIPLE = {"int4": 2, "nvfp4": 16, "mxfp8": 32, "mxfp4": 32, **dict.fromkeys(BLOCK_CACHES, 32)}
"""Elements whose multiples fill a row of a cache with elements narrower than a byte."""


def known_mask(mask: Any) -> Any:
    """Validate a mask, or raise UnknownNameError; a window that is open on both sides is full.

    An array with a value per query and key, dense or sparse, is read by :meth:`BlockMask.of`.
    """
    if isinstance(mask, np.ndarray) or hasattr(mask, "toarray"):
        mask = BlockMask.of(mask)
    if isinstance(mask, dict) and all(isinstance(side, str) for side in mask):
        kinds = (BlockMask, Documents, Window)
        mask = next(kind for kind in kinds if kind.model_fields.keys() & mask.keys() or kind is Window)(**mask)
    if isinstance(mask, Window) and mask.left is None and mask.right is None:
        return "full"
    if isinstance(mask, Window | BlockMask | Documents) or (isinstance(mask, str) and mask in get_args(MaskName)):
        return mask
    if callable(mask):
        named = getattr(mask, "__name__", type(mask).__name__)
        raise InputError(f"mask: the function {named} given; allowed: iomodel.torch.mask_of({named}, q_len, kv_len)")
    raise UnknownNameError(
        "mask",
        mask,
        [*get_args(MaskName), "Window(left=..., right=...)", "BlockMask(blocks=...)", "Documents(lengths=...)"],
    )


def with_mask(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a call with the mask that `causal` names; raise InputError for one beside another mask.

    >>> with_mask({"causal": True, "q_len": 64})
    {'q_len': 64, 'mask': 'causal'}
    """
    own = dict(fields)
    causal = own.pop("causal")
    if not isinstance(causal, bool):
        raise InputError(f"causal: {shown(causal)} given; allowed: True or False")
    if "mask" in own:
        raise InputError(f"causal: {causal} given beside mask; allowed: one of the two")
    return {**own, "mask": "causal" if causal else "full"}


Mask = Annotated[MaskName | Window | BlockMask | Documents, BeforeValidator(known_mask)]
Switch = Annotated[bool, Field(strict=True)]
ElementType = Annotated[DType, one_of(ELEMENT_SIZE)]
CacheType = Annotated[str, one_of(KV_QUARTERS)]
Pass = Annotated[Direction, one_of(get_args(Direction))]
FOLLOWERS = ("kv_heads", "kv_len", "value_dim", "kv_dtype", "kv_lens")
CACHE_ONLY = ("latent", "kv_dtype", "head_scales", "token_scales", "paged")
"""Features of serving, without a backward pass."""


class Call(Workload):
    """The fields of an attention call other than its lengths; see :class:`Attention`."""

    operation: ClassVar[str] = "attention"

    heads: Count = 1
    kv_heads: Count = Field(default_factory=lambda data: data["heads"])
    head_dim: Count
    value_dim: Count = Field(default_factory=lambda data: data["head_dim"])
    dtype: ElementType = "bf16"
    mask: Mask = "full"
    direction: Pass = "forward"
    kv_dtype: CacheType = Field(default_factory=lambda data: data["dtype"])
    kv_scales: Literal["head", "token"] | None = None
    page_size: Count | None = None
    latent: Switch = False
    bias: Switch = False
    softcap: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] | None = None
    alibi: Switch = False
    sinks: Switch = False
    dropout: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.0

    @classmethod
    def spelled_here(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return fields under the names of this library, `causal` as a mask; InputError for one under two names."""
        own = renamed(fields, [*cls.model_fields, "causal"])
        return with_mask(own) if "causal" in own else own

    @model_validator(mode="before")
    @classmethod
    def _spelled(cls, data: Any) -> Any:
        """Replace None by the default in fields with a default taken from another field; heads share a latent."""
        if not isinstance(data, dict):
            return data
        if not data.keys() <= cls.__pydantic_fields__.keys():
            data = dict(cls.spelled_here(data))
        if data.get("latent") is True and data.get("kv_heads") is None:
            data = {**data, "kv_heads": 1}
        absent = [name for name in FOLLOWERS if name in data and data[name] is None]
        return {name: value for name, value in data.items() if name not in absent} if absent else data

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
    def _rows_of_whole_bytes(self) -> Self:
        least = max(KV_MULTIPLE.get(half, 1) for half in halves(self.kv_dtype))
        for field, width in (("head_dim", self.head_dim), ("value_dim", self.value_dim)):
            if width % least:
                raise InputError(
                    f"{field}: {width} given with kv_dtype = {self.kv_dtype}; allowed: a multiple of {least}, such as "
                    f"{-(-width // least) * least}"
                )
        return self

    @model_validator(mode="after")
    def _two_types_have_equal_rows(self) -> Self:
        if "/" in self.kv_dtype and (self.latent or self.value_dim != self.head_dim):
            raise InputError(
                f"kv_dtype: {self.kv_dtype} given for rows of K and of V that differ; allowed: one type for both"
            )
        return self

    @model_validator(mode="after")
    def _features_agree(self) -> Self:
        if self.latent and self.kv_heads != 1:
            raise InputError(f"kv_heads: {self.kv_heads} given with latent = True; allowed: 1, because heads share it")
        if self.latent and self.value_dim > self.head_dim:
            raise InputError(
                f"value_dim: {self.value_dim} given with latent = True; allowed: up to head_dim = {self.head_dim}, "
                "because V is a part of the latent"
            )
        if self.latent and self.kv_scales is not None:
            raise InputError("kv_scales: given with latent = True; allowed: only with separate K and V")
        serving = [name for name in CACHE_ONLY if name in self.features]
        if serving and self.direction != "forward":
            field = {"head_scales": "kv_scales", "token_scales": "kv_scales", "paged": "page_size"}.get(
                serving[0], serving[0]
            )
            raise InputError(f"{field}: given with direction {self.direction}; allowed: only with direction forward")
        if self.page_size is not None and isinstance(self.mask, BlockMask | Documents):
            raise InputError(
                f"page_size: given with mask {shown(self.mask)}; allowed: only with full, causal or a Window"
            )
        return self

    def shard(self, ranks: int) -> Self:
        """Return the shard of one of `ranks` ranks under tensor parallelism.

        Key/value heads are divided too, and replicated if there are fewer of them than ranks; a latent (MLA) is on
        every rank.

        Parameters
        ----------
        ranks : int
            Number of ranks that divide the heads [-].

        Raises
        ------
        InputError
            The heads do not divide among the ranks.

        Examples
        --------
        >>> import iomodel
        >>> iomodel.Attention(heads=64, kv_heads=8, q_len=1, kv_len=8192, head_dim=128).shard(16).kv_heads
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

    @property
    def group(self) -> int:
        """Number of query heads per key/value head [-]."""
        return self.heads // self.kv_heads

    @property
    def kv_size(self) -> int:
        """Size of an element of K and V in HBM, of two types the mean, in quarters of a bit."""
        return KV_QUARTERS[self.kv_dtype]

    @property
    def kv_element_size(self) -> Fraction:
        """Size of an element of K and V in HBM [B]."""
        return Fraction(self.kv_size, 32)

    @property
    def narrowest(self) -> int:
        """Size of the narrowest element of Q, K, V and O in HBM, in quarters of a bit."""
        return min(32 * self.element_size, *(KV_QUARTERS[half] for half in halves(self.kv_dtype)))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Features of the call, from :data:`iomodel.nests.features.FEATURES`."""
        has = {
            "latent": self.latent,
            "kv_dtype": stored(self.kv_dtype) != stored(self.dtype),
            "head_scales": self.kv_scales == "head",
            "token_scales": self.kv_scales == "token",
            "paged": self.page_size is not None,
            "bias": self.bias,
            "softcap": self.softcap is not None,
            "alibi": self.alibi,
            "sinks": self.sinks,
            "dropout": self.dropout > 0,
        }
        return tuple(name for name, present in has.items() if present)

    def at(self, batch: Any, q_len: Any, kv_len: Any) -> dict[str, Any]:
        """Collect the value of every workload symbol, keyed by its Python name, in alphabet order."""
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
            "kv_size": self.kv_size,
            "page_size": self.page_size or 1,
            "window_left": window.left or 0,
            "window_right": window.right or 0,
        }
