"""Models as lists of layers, with their parameters and bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from iomodel.common.display import Shown, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import NamedData
from iomodel.common.validation import Count, Distance, as_integer
from iomodel.devices.quantity import PRINTABLE, UNVERIFIED, Group, Text
from iomodel.devices.sources import Source
from iomodel.models.decoder_layer import DecoderLayer, SideLayer
from iomodel.workloads.call import KVType, Switch
from iomodel.workloads.dtypes import (
    WIDE,
    WeightType,
    cache_bytes,
    in_bytes,
    index_dtype,
    known_dtype,
    known_kv_dtype,
    wide,
)

if TYPE_CHECKING:
    from iomodel.models.model_file import ModelFile

MOST_LAYERS = 10_000
"""Most layers of a model: far above any known model, and few enough to list."""

LONGEST_PREFILL = 1 << 30
"""Longest prefill searched [tokens]."""

ALL = "all figures"
Name = Annotated[str, Field(max_length=200, pattern=PRINTABLE)]


class ModelSource(Source):
    """A source of figures of a model.

    Parameters
    ----------
    kind, publisher, title, version, url, note : as for any source; `from-memory` has no source.
    fields : the fields that it supports; empty for all.
    """

    fields: tuple[Text, ...] = ()


class ModelFacts(Group):
    """Properties of a model other than its layers, shared with model files; see :class:`ModelSpec`."""

    name: Name | None = None
    title: Name
    hidden_size: Count
    vocab_size: Count
    tied_embeddings: Switch = False
    dtype: WeightType = "bf16"
    expert_dtype: WeightType | None = None
    head_dtype: WeightType | None = None
    embedding_dtype: WeightType | None = None
    kv_dtype: KVType | None = None
    state_dtype: WeightType | None = None
    max_positions: Count | None = None
    lm_head_bias: Switch = False
    side: tuple[SideLayer, ...] = Field(default=(), max_length=100)
    other_weights: Distance = 0
    further_layers: tuple[DecoderLayer, ...] = Field(default=(), max_length=100)
    sources: tuple[ModelSource, ...] = ()
    notes: tuple[Text, ...] = ()


class ModelSpec(Shown, ModelFacts, NamedData):
    """A decoder-only language model, layer by layer.

    Parameters
    ----------
    name, title : identifier, and display name.
    hidden_size, vocab_size : width of a row between layers; rows of the embedding [elements].
    tied_embeddings : the output layer shares the weights of the embedding.
    dtype, expert_dtype, head_dtype : type of the released matrices; of those of the experts, and of the output layer,
        if different. Layers name the types of single matrices.
    embedding_dtype : type of the embedding, if it is quantised too, as in GGUF files.
    kv_dtype : type of the KV cache that the checkpoint recommends; None if it recommends none.
    state_dtype : type of the states of recurrences that the checkpoint states; None if it states none.
    max_positions : longest supported context [tokens].
    layers : every decoder layer, in order.
    lm_head_bias : the output layer adds a bias.
    side, other_weights : linear layers and tables outside the layers, such as per-layer embeddings; further weights
        [elements].
    further_layers : layers of the modules that predict further tokens (MTP), where the config describes them. Neither
        `parameters` nor the caches count them.
    sources, notes : sources of the figures; caveats.

    Examples
    --------
    >>> from iomodel.models.registry import model
    >>> llama = model("llama-3-8b")
    >>> len(llama.layers), llama.parameters, llama.kv_bytes_per_token()
    (32, 8030261248, 131072)
    """

    layers: tuple[DecoderLayer, ...] = Field(min_length=1, max_length=MOST_LAYERS)

    @cached_property
    def counted(self) -> Mapping[DecoderLayer, int]:
        """Number of layers of each kind, in order of appearance."""
        return FrozenDict(Counter(self.layers))

    @property
    def parameters(self) -> int:
        """Number of weights, including embeddings [elements]."""
        return self._outside + sum(n * layer.parameters(self.hidden_size) for layer, n in self.counted.items())

    @property
    def active_parameters(self) -> int:
        """Number of weights without the routed experts that a token does not visit, including embeddings [elements]."""
        return self._outside + sum(n * layer.parameters(self.hidden_size, True) for layer, n in self.counted.items())

    @property
    def embedding_parameters(self) -> int:
        """Number of weights of the embedding, which is a lookup and not a product [elements]."""
        return self.vocab_size * self.hidden_size

    @property
    def _outside(self) -> int:
        """Weights of embedding, output layer, last norm, and side layers [elements]."""
        side = sum(layer.in_features * layer.out_features * layer.times for layer in self.side)
        tables = self.embedding_parameters * (1 if self.tied_embeddings else 2)
        last = self.layers[-1]
        norm = self.hidden_size * (1 + last.norm_bias) if last.norms else 0
        return tables + side + self.other_weights + self.vocab_size * self.lm_head_bias + norm

    @property
    def further_parameters(self) -> int:
        """Number of weights of the modules that predict further tokens, not part of `parameters` [elements]."""
        return sum(layer.parameters(self.hidden_size) for layer in self.further_layers)

    @property
    def attention_overtakes(self) -> int | None:
        """Length from which attention takes more FLOPs of a causal prefill than the matrices of the layers [tokens].

        None if there is none up to 2**30. Pairs of a query and a key are the visible ones, half the square without a
        window; the output layer is not counted, nor are states of recurrences and entries of several tokens.

        Examples
        --------
        >>> from iomodel.models.registry import model
        >>> model("llama-3-8b").attention_overtakes
        53247
        """

        def ahead(tokens: int) -> bool:
            pairs = sum(
                times * layer.attention.heads * (layer.attention.head_dim + layer.attention.value_dim)
                * layer.attention.prefilled_pairs(tokens)
                for layer, times in self.counted.items()
                if layer.attention is not None and layer.attention.compression is None
            )  # fmt: skip
            return pairs >= tokens * matrices

        matrices = sum(
            times * matrix.in_features * matrix.out_features * matrix.visited
            for layer, times in self.counted.items()
            for matrix in layer.linears(self.hidden_size)
        )
        place = bisect_left(range(1, LONGEST_PREFILL + 1), True, key=ahead) + 1
        return place if place <= LONGEST_PREFILL else None

    def weight_bytes(self, dtype: str | None = None) -> int:
        """Compute the size of the weights [B].

        Parameters
        ----------
        dtype : str, optional
            Type of every weight. By default as released: matrices in `dtype` and `expert_dtype`, and embeddings,
            norms, biases and routers of a quantised model in bf16.

        Raises
        ------
        UnknownNameError
            The type does not exist.

        Examples
        --------
        >>> from iomodel.models.registry import model
        >>> model("llama-3-8b").weight_bytes(), model("llama-3-8b").weight_bytes("fp8")
        (16060522496, 8030261248)
        """
        if dtype is not None:
            return in_bytes(self.parameters, known_dtype(dtype))
        by_type: Counter[str] = Counter()
        for layer, times in self.counted.items():
            for matrix in layer.linears(self.hidden_size):
                by_type[layer.dtype_of(matrix, self.dtype, self.expert_dtype)] += times * matrix.elements
        if self.head_dtype is not None:
            by_type[self.head_dtype] += self.embedding_parameters
        if self.embedding_dtype is not None and not (self.tied_embeddings and self.head_dtype is not None):
            by_type[self.embedding_dtype] += self.embedding_parameters
        by_type[wide(self.dtype)] += self.parameters - by_type.total()
        return sum(in_bytes(elements, name) for name, elements in by_type.items())

    def kv_bytes_per_token(self, kv_dtype: str | None = None) -> int:
        """Compute the bytes that one token adds to the KV cache, before any window is full [B].

        >>> from iomodel.models.registry import model
        >>> model("deepseek-v3").kv_bytes_per_token()  # 61 layers, 576 elements, 2 B
        70272
        """
        return self.kv_bytes(1, kv_dtype)

    def kv_bytes(self, context: int, kv_dtype: str | None = None, page_size: int | None = None) -> int:
        """Compute the KV cache of one request after `context` tokens [B].

        Parameters
        ----------
        context : int
            Tokens so far.
        kv_dtype : str, optional
            Type of the cache, such as "fp8" or "nvfp4"; bf16 by default. A row of int4 has four bytes of scales.
        page_size : int, optional
            Tokens per page; a layer holds whole pages.

        Raises
        ------
        InputError, UnknownNameError
            A count is not a positive integer; the type does not exist.

        Examples
        --------
        >>> from iomodel.models.registry import model
        >>> model("gemma-3-27b").kv_bytes(131072) // 2**20  # local layers keep the last 1024 tokens
        10656
        """
        kept = known_kv_dtype(WIDE if kv_dtype is None else kv_dtype)
        if not any(layer.attention for layer in self.counted):
            as_integer("context", context, least=0)
        return sum(
            times * cache_bytes(attention.kv_elements(context, page_size), kept, attention.kv_rows(context, page_size))
            for layer, times in self.counted.items()
            if (attention := layer.attention) is not None
        )

    def state_bytes(self) -> int:
        """Compute the states of one request, whatever its length: recurrences in fp32, convolutions in bf16 [B].

        >>> from iomodel.models.registry import model
        >>> model("llama-3-8b").state_bytes()
        0
        """
        return sum(times * layer.state_bytes for layer, times in self.counted.items())

    def index_bytes_per_token(self, dtype: str | None = None) -> int:
        """Compute the bytes that one token adds to the keys of indexers [B].

        A key that pools several tokens counts in full; `index_bytes` counts finished keys.

        >>> from iomodel.models.registry import model
        >>> model("llama-3-8b").index_bytes_per_token()
        0
        """
        elements = sum(
            times * layer.attention.indexer.head_dim
            for layer, times in self.counted.items()
            if layer.attention is not None and layer.attention.indexer is not None and layer.attention.indexer.keys
        )
        return cache_bytes(elements, index_dtype(known_kv_dtype(WIDE if dtype is None else dtype)))

    def index_bytes(self, context: int, dtype: str | None = None, page_size: int | None = None) -> int:
        """Compute the keys of indexers of one request after `context` tokens [B].

        Parameters
        ----------
        context : int
            Tokens so far.
        dtype : str, optional
            Type of the cache beside them; bf16 by default. Keys beside a cache of 4 bits stay in fp8.
        page_size : int, optional
            Tokens per page; a layer holds whole pages.

        Raises
        ------
        InputError, UnknownNameError
            A count is not a positive integer; the type does not exist.

        Examples
        --------
        >>> from iomodel.models.registry import model
        >>> model("llama-3-8b").index_bytes(8192)
        0
        """
        as_integer("context", context, least=0)
        elements = sum(
            times * layer.attention.index_elements(context, page_size)
            for layer, times in self.counted.items()
            if layer.attention is not None
        )
        return cache_bytes(elements, index_dtype(known_kv_dtype(WIDE if dtype is None else dtype, "dtype")))

    @property
    def unverified(self) -> list[str]:
        """Fields quoted from memory, without a source."""
        remembered = [source for source in self.sources if source.kind == UNVERIFIED]
        return sorted({field for source in remembered for field in source.fields or (ALL,)})

    def to_dict(self) -> dict[str, Any]:
        """Convert the model to plain data, layers in groups, defaults omitted; it reads back equal."""
        return self._file.to_dict()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelSpec:
        """Rebuild the model from its plain data, those of a model file.

        Raises
        ------
        InputError
            What a model file is refused for.
        """
        from iomodel.models.model_file import ModelFile

        return ModelFile.from_dict(data).spec()

    @property
    def label(self) -> str:
        """The name of the model, or its title."""
        return self.name or self.title

    @classmethod
    def shipped(cls, name: str) -> ModelSpec | None:
        """Find the shipped model of a name, if there is one."""
        from iomodel.models.registry import list_models, model

        return model(name) if name in list_models() else None

    def to_yaml(self) -> str:
        """Format the model as a model file."""
        return self._file.to_yaml()

    @property
    def _file(self) -> ModelFile:
        from iomodel.models.model_file import file_of

        return file_of(self)

    def __repr__(self) -> str:
        return f"ModelSpec({self.name or self.title!r}, {len(self.layers)} layers, {self.parameters:,} parameters)"

    def __str__(self) -> str:
        return Shown.__str__(self)

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        from iomodel.models.model_tables import model_table

        return [model_table(self)]
