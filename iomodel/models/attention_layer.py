"""Attention of one decoder layer: heads, widths, KV cache, and the attention call."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from iomodel.common.validation import Count, Distance, as_integer
from iomodel.devices.quantity import Group
from iomodel.errors import InputError
from iomodel.models.indexer import Compression, Indexer, Projection
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import DType, KVType, Mask, Switch
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.window import Window

MOST_CHUNKS = 10**6
"""Most chunks of one call; each is a document of its mask."""


class AttentionLayer(Group):
    """The attention of one decoder layer.

    Parameters
    ----------
    heads, kv_heads : query heads, and key/value heads, which divide `heads`.
    head_dim, value_dim : widths of a row of K and of V in a prefill call [elements].
    window : keys visible to a query on its left, including its own [keys]; None for all.
    chunk : length of the chunks of the sequence; a query sees only its own chunk [keys].
    sinks : one logit per head joins the softmax denominator.
    softcap : scores s become softcap * tanh(s / softcap).
    qkv_bias, o_bias : the projections to Q, K, V add a bias; the output projection adds one.
    qk_norm : rows of Q and K are normalised.
    qk_norm_weights : one weight per element of a head, shared by the heads ("head"); per element of all heads ("all");
        or no weights ("none").
    rope : rotary position embeddings are applied to Q and K.
    q_lora_rank, kv_lora_rank : widths of the compressed Q, and in MLA of the cached latent [elements].
    rope_dim : MLA: the rotated part of head_dim, shared by all heads and cached with the latent [elements].
    own_kv : the layer has K and V of its own; False if it uses those that an earlier layer cached.
    v_proj : V has a projection of its own; False if it is K before its norm and rotation. Both are cached.
    tied_kv : one cached row is both K and V, as in DeepSeek-V4.
    out_gate : a gate on the output, from the row between layers: one value per "element" of V, or per "head".
    o_groups, o_lora_rank : the output projection is two products: of each group of heads to `o_lora_rank` elements,
        and of all groups to the row between layers.
    indexer : selection of the keys that a query sees.
    compression : entries that summarise groups of tokens, cached beside the window.
    input_width : width of the rows that Q, K and V are projected from; 0 for the row between layers [elements].
    other_weights : weights that are in none of these [elements].

    Examples
    --------
    >>> AttentionLayer(heads=32, kv_heads=8, head_dim=128).kv_elements_per_token
    2048
    >>> mla = AttentionLayer(heads=128, head_dim=192, value_dim=128, kv_lora_rank=512, rope_dim=64)
    >>> mla.kv_elements_per_token
    576
    >>> mla.call(1, 1, 4096, absorbed=True).head_dim
    576
    """

    heads: Count
    kv_heads: Count = Field(default_factory=lambda data: data["heads"])
    head_dim: Count
    value_dim: Count = Field(default_factory=lambda data: data["head_dim"])
    window: Count | None = None
    chunk: Count | None = None
    sinks: Switch = False
    softcap: float | None = Field(default=None, strict=True, gt=0, allow_inf_nan=False)
    qkv_bias: Switch = False
    o_bias: Switch = False
    qk_norm: Switch = False
    qk_norm_weights: Literal["head", "all", "none"] = "head"
    rope: Switch = True
    q_lora_rank: Count | None = None
    kv_lora_rank: Count | None = None
    rope_dim: Distance | None = None
    own_kv: Switch = True
    v_proj: Switch = True
    tied_kv: Switch = False
    out_gate: Literal["element", "head"] | None = None
    o_groups: Count | None = None
    o_lora_rank: Count | None = None
    indexer: Indexer | None = None
    compression: Compression | None = None
    input_width: Distance = 0
    other_weights: Distance = 0

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.heads % self.kv_heads:
            raise InputError(
                f"kv_heads: {self.kv_heads} given; allowed: a divisor of heads = {self.heads}, such as "
                f"{next(n for n in range(min(self.kv_heads, 10**6), 0, -1) if self.heads % n == 0)}"
            )
        if self.window is not None and self.chunk is not None:
            raise InputError(f"chunk: {self.chunk} given with window = {self.window}; allowed: one of the two")
        self._agree_on_latent()
        if self.qk_norm_weights != "head" and not self.qk_norm:
            raise InputError(
                f"qk_norm_weights: {self.qk_norm_weights} given with qk_norm = False; allowed: with qk_norm"
            )
        if (self.o_groups is None) != (self.o_lora_rank is None):
            raise InputError(
                f"o_lora_rank: {self.o_lora_rank} given with o_groups = {self.o_groups}; allowed: both, or none"
            )
        if self.o_groups is not None and self.heads % self.o_groups:
            raise InputError(f"o_groups: {self.o_groups} given; allowed: a divisor of heads = {self.heads}")
        if self.compression is not None and not self.tied_kv:
            raise InputError(
                "compression: given with tied_kv = False; allowed: only where a cached row is both K and V"
            )
        row = self.kv_elements_per_token
        if self.own_kv and self.indexer is not None and self.indexer.keys and self.indexer.head_dim > row:
            raise InputError(
                f"indexer: keys of {self.indexer.head_dim} elements given; allowed: up to {row}, a row of the cache"
            )
        if self.tied_kv and (self.kv_lora_rank is not None or self.value_dim != self.head_dim):
            raise InputError(
                f"tied_kv: True given with value_dim = {self.value_dim}; allowed: with value_dim = head_dim = "
                f"{self.head_dim}, and without kv_lora_rank"
            )
        return self

    def _agree_on_latent(self) -> None:
        if self.kv_lora_rank is None:
            alone = ("rope_dim",) if self.tied_kv else ("q_lora_rank", "rope_dim")
            for field in alone:
                if getattr(self, field) is not None:
                    raise InputError(
                        f"{field}: {getattr(self, field)} given without kv_lora_rank; allowed: only with kv_lora_rank"
                    )
        elif self.rope_dim is None or self.rope_dim >= self.head_dim:
            raise InputError(
                f"rope_dim: {self.rope_dim} given with kv_lora_rank = {self.kv_lora_rank}; allowed: an integer from 0 "
                f"to head_dim - 1 = {self.head_dim - 1}"
            )
        elif self.kv_heads != self.heads:
            raise InputError(f"kv_heads: {self.kv_heads} given with kv_lora_rank; allowed: heads = {self.heads}")

    @property
    def latent(self) -> bool:
        """True if K and V are cached as one latent shared by all heads (MLA)."""
        return self.kv_lora_rank is not None

    @property
    def cached_heads(self) -> int:
        """Heads of the cache [-]: the key/value heads, or one latent."""
        return 1 if self.latent else self.kv_heads

    @property
    def kv_elements_per_token(self) -> int:
        """Elements that one token adds to the cache of this layer, before its window is full [elements]."""
        if not self.own_kv:
            return 0
        if self.tied_kv:
            return self.kv_heads * self.head_dim
        if self.kv_lora_rank is not None and self.rope_dim is not None:
            return self.kv_lora_rank + self.rope_dim
        return self.kv_heads * (self.head_dim + self.value_dim)

    @property
    def reach(self) -> int | None:
        """Most tokens that a query sees by a window or a chunk [tokens]; None for all."""
        return self.window or self.chunk

    def cached_tokens(self, context: int, page_size: int | None = None) -> int:
        """Count the tokens in the cache after `context` tokens: at most the window or the chunk, in whole pages.

        >>> local = AttentionLayer(heads=32, kv_heads=16, head_dim=128, window=1000)
        >>> local.cached_tokens(100), local.cached_tokens(8192), local.cached_tokens(8192, page_size=16)
        (100, 1000, 1008)
        """
        tokens = as_integer("context", context, least=0)
        tokens = min(tokens, self.window or tokens, self.chunk or tokens)
        if page_size is None:
            return tokens
        page = as_integer("page_size", page_size)
        return -(-tokens // page) * page

    def kv_elements(self, context: int, page_size: int | None = None) -> int:
        """Count the cached elements after `context` tokens, compressed entries included [elements].

        >>> AttentionLayer(heads=32, kv_heads=8, head_dim=128, window=100).kv_elements(1000)
        204800
        """
        tokens = self.cached_tokens(context, page_size)
        if self.compression is not None and self.own_kv:
            tokens += self.compression.entries(context, page_size)
        return tokens * self.kv_elements_per_token

    def kv_rows(self, context: int, page_size: int | None = None) -> int:
        """Count the cached rows of all heads after `context` tokens: of K and of V, or of both in one [rows].

        >>> AttentionLayer(heads=32, kv_heads=8, head_dim=128).kv_rows(10)
        160
        """
        width = self.kv_elements_per_token
        each = 1 if self.latent else self.kv_heads * (1 if self.tied_kv else 2)
        return self.kv_elements(context, page_size) // width * each if width else 0

    def index_elements(self, context: int, page_size: int | None = None) -> int:
        """Count the cached elements of the keys of the indexer after `context` tokens [elements]."""
        return 0 if self.indexer is None else self.indexer.elements(context, page_size)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer, from a row of `hidden` elements and back.

        >>> AttentionLayer(heads=32, kv_heads=8, head_dim=128).projections(4096)
        (('q', 4096, 4096), ('k', 4096, 1024), ('v', 4096, 1024), ('o', 4096, 4096))
        """
        queries, rank, wide = self.heads * self.head_dim, self.q_lora_rank, self.input_width or hidden
        to_q: tuple[Projection, ...] = (
            (("q", wide, queries),) if rank is None else (("q_a", wide, rank), ("q_b", rank, queries))
        )
        return *to_q, *self._to_kv(wide), *self._selecting(hidden), *self._gate(hidden), *self._out(hidden)

    def _to_kv(self, hidden: int) -> tuple[Projection, ...]:
        if not self.own_kv:
            return ()
        if self.kv_lora_rank is not None and self.rope_dim is not None:
            expanded = self.heads * (self.head_dim - self.rope_dim + self.value_dim)
            latent = self.kv_lora_rank
            return ("kv_a", hidden, latent + self.rope_dim), ("kv_b", latent, expanded)
        keys, values = self.kv_heads * self.head_dim, self.kv_heads * self.value_dim
        if self.tied_kv:
            return (("kv", hidden, keys),)
        return (("k", hidden, keys), ("v", hidden, values)) if self.v_proj else (("k", hidden, keys),)

    def _selecting(self, hidden: int) -> tuple[Projection, ...]:
        """List the linear layers of the compressor and of the indexer."""
        compressed = () if self.compression is None else self.compression.projections(hidden, self.head_dim)
        return *compressed, *(() if self.indexer is None else self.indexer.projections(hidden, self.q_lora_rank))

    def _gate(self, hidden: int) -> tuple[Projection, ...]:
        if self.out_gate is None:
            return ()
        return (("out gate", hidden, self.heads * (self.value_dim if self.out_gate == "element" else 1)),)

    def _out(self, hidden: int) -> tuple[Projection, ...]:
        width = self.heads * self.value_dim
        if self.o_groups is None or self.o_lora_rank is None:
            return (("o", width, hidden),)
        groups = self.o_groups * self.o_lora_rank
        return ("o_a", width // self.o_groups, groups), ("o_b", groups, hidden)

    def matrices(self, hidden: int) -> int:
        """Count the weights of the linear layers [elements]."""
        return sum(rows * columns for _, rows, columns in self.projections(hidden))

    def vectors(self, hidden: int) -> int:
        """Count the remaining weights: biases, norms, sinks [elements]."""
        biased = {*("q", "k", "v", "q_a", "kv_a") * self.qkv_bias, *("o",) * self.o_bias}
        count = sum(columns for name, _, columns in self.projections(hidden) if name in biased)
        if self.qk_norm and self.qk_norm_weights != "none":
            heads = (self.heads, self.kv_heads) if self.qk_norm_weights == "all" else (1, 1)
            count += sum(heads[: 1 + self.own_kv]) * self.head_dim
        count += (self.q_lora_rank or 0) + (self.kv_lora_rank or 0) + self.head_dim * self.tied_kv
        count += 0 if self.compression is None else self.compression.vectors(self.head_dim)
        count += 0 if self.indexer is None else self.indexer.vectors()
        return count + self.heads * self.sinks + self.other_weights

    def call(
        self,
        batch: int,
        q_len: int,
        kv_len: int,
        dtype: DType = "bf16",
        kv_dtype: KVType | None = None,
        page_size: int | None = None,
        absorbed: bool = False,
    ) -> Attention:
        """Build the attention call of this layer.

        Parameters
        ----------
        batch, q_len, kv_len : int
            Sequences, queries and keys; the last query sees the last key.
        dtype, kv_dtype, page_size : optional
            As for :class:`iomodel.Attention`. An int4 cache has scales per key.
        absorbed : bool
            MLA only: the form for decoding, in which all heads share the latent as K and V.

        Raises
        ------
        InputError
            Attention rejects the call; `absorbed` is set without a latent; the queries span several chunks but not
            the whole sequence.

        Examples
        --------
        >>> print(AttentionLayer(heads=32, kv_heads=8, head_dim=128, window=4096).call(1, 1, 8192).mask)
        left=4095 right=0 align='bottom-right'
        """
        queries, keys = as_integer("q_len", q_len), as_integer("kv_len", kv_len)
        mask, keys = self._mask(queries, keys)
        if absorbed and (self.kv_lora_rank is None or self.rope_dim is None):
            raise InputError("absorbed: True given for a layer without a latent; allowed: False, or kv_lora_rank set")
        kv_heads, head_dim, value_dim = self.kv_heads, self.head_dim, self.value_dim
        if absorbed and self.kv_lora_rank is not None and self.rope_dim is not None:
            kv_heads, head_dim, value_dim = 1, self.kv_lora_rank + self.rope_dim, self.kv_lora_rank
        return Attention(
            batch=batch,
            heads=self.heads,
            kv_heads=kv_heads,
            q_len=queries,
            kv_len=keys,
            head_dim=head_dim,
            value_dim=value_dim,
            dtype=dtype,
            kv_dtype=kv_dtype,
            kv_scales="token" if kv_dtype == "int4" and not absorbed else None,
            page_size=page_size,
            mask=mask,
            latent=absorbed,
            sinks=self.sinks,
            softcap=self.softcap,
        )

    def pieces(self, q_len: int, kv_len: int) -> tuple[tuple[int, int], ...]:
        """Divide the last queries of a sequence into those that one call computes, each with its keys [rows].

        Queries that begin within a chunk and go on behind it are three: the end of a chunk, whole chunks, and the last.

        >>> local = AttentionLayer(heads=32, kv_heads=8, head_dim=128, chunk=1000)
        >>> local.pieces(1, 4500), local.pieces(4500, 4500), local.pieces(2700, 4500)
        (((1, 4500),), ((4500, 4500),), ((200, 1000), (2000, 2000), (500, 500)))
        """
        if self.chunk is None or q_len == kv_len:
            return ((q_len, kv_len),)
        last = (kv_len - 1) % self.chunk + 1
        if q_len <= last:
            return ((q_len, kv_len),)
        whole, first = divmod(q_len - last, self.chunk)
        pieces = (first, self.chunk), (whole * self.chunk, whole * self.chunk), (last, last)
        return tuple(piece for piece in pieces if piece[0])

    def visible_keys(self, q_len: int, kv_len: int) -> int:
        """Count the keys from the first that any query sees: a window hides those before it [rows].

        Examples
        --------
        >>> AttentionLayer(heads=32, kv_heads=8, head_dim=128, window=4096).visible_keys(1, 8192)
        4096
        """
        return kv_len if self.window is None else min(kv_len, q_len + self.window - 1)

    def prefilled_pairs(self, tokens: int) -> int:
        """Count the pairs of a query and a key that one head sees in the prefill of a prompt [-].

        A window, a chunk, or the keys that an indexer keeps bound the keys of each query.

        Examples
        --------
        >>> AttentionLayer(heads=32, head_dim=128).prefilled_pairs(4)
        10
        >>> AttentionLayer(heads=32, head_dim=128, window=2).prefilled_pairs(4)
        7
        """
        if self.chunk is not None:
            full, rest = divmod(tokens, self.chunk)
            return full * _triangle(self.chunk) + _triangle(rest)
        most = tokens if self.window is None else self.window
        most = min(most, tokens if self.indexer is None else self.indexer.topk)
        return _triangle(min(most, tokens)) + max(0, tokens - most) * most

    def _mask(self, q_len: int, kv_len: int) -> tuple[Mask, int]:
        """Build the mask of a call, and the number of its keys; queries of a chunk see no key before the chunk."""
        if self.window is not None:
            return Window(left=self.window - 1, right=0), kv_len
        if self.chunk is None:
            return "causal", kv_len
        full_chunks, last = divmod(kv_len - 1, self.chunk)
        last += 1  # keys of the last chunk
        if not full_chunks or q_len <= last:
            return "causal", last if full_chunks else kv_len
        if q_len != kv_len or full_chunks >= MOST_CHUNKS:
            raise InputError(
                f"q_len: {q_len} given for kv_len = {kv_len} and chunks of {self.chunk}; allowed: kv_len itself, up to "
                f"{MOST_CHUNKS} chunks, or up to {last}, the queries of the last chunk"
            )
        return Documents(lengths=(*[self.chunk] * full_chunks, last), causal=True), kv_len


def _triangle(rows: int) -> int:
    return rows * (rows + 1) // 2
