"""The shape of a model: its layers one by one, and what follows from them in parameters and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from iomodel.frozen import FrozenDict
from iomodel.models.dtypes import WIDE, WeightType, in_bytes, known_dtype, known_kv_dtype, wide
from iomodel.models.layers import DecoderLayer
from iomodel.quantity import PRINTABLE, UNVERIFIED, Group, Text
from iomodel.show import Shown
from iomodel.sources import Source
from iomodel.validation import Count
from iomodel.workload import ELEMENT_SIZE, Switch

if TYPE_CHECKING:
    from iomodel.models.file import ModelFile

MOST_LAYERS = 10_000
"""Far above any model, and few enough to list."""

ALL = "all figures"
Name = Annotated[str, Field(max_length=200, pattern=PRINTABLE)]


class ModelSource(Source):
    """Where figures of a model come from.

    Parameters
    ----------
    kind, publisher, title, version, url, note : as of any source; `from-memory` was read nowhere.
    fields : the fields it is about; all where none is named.
    """

    fields: tuple[Text, ...] = ()


class ModelFacts(Group):
    """What a model has beside its layers, and a file of it too; see :class:`ModelSpec`."""

    name: Name | None = None
    title: Name
    hidden_size: Count
    vocab_size: Count
    tied_embeddings: Switch = False
    dtype: WeightType = "bf16"
    expert_dtype: WeightType | None = None
    max_positions: Count | None = None
    lm_head_bias: Switch = False
    sources: tuple[ModelSource, ...] = ()
    notes: tuple[Text, ...] = ()


class ModelSpec(Shown, ModelFacts):
    """A decoder-only language model, layer by layer.

    Parameters
    ----------
    name, title : what it is called: for typing, and for reading.
    hidden_size, vocab_size : width of a row between layers; rows of the embedding [elements].
    tied_embeddings : the output layer is the embedding.
    dtype, expert_dtype : type of the released matrices; of the experts' where it differs.
    max_positions : the longest context it was made for [tokens].
    layers : every decoder layer, in order.
    lm_head_bias : the output layer adds a bias.
    sources, notes : where the figures come from; what to beware of.

    Examples
    --------
    >>> from iomodel.model import model
    >>> llama = model("llama-3-8b")
    >>> len(llama.layers), llama.parameters, llama.kv_bytes_per_token()
    (32, 8030261248, 131072)
    """

    layers: tuple[DecoderLayer, ...] = Field(min_length=1, max_length=MOST_LAYERS)

    @cached_property
    def counted(self) -> Mapping[DecoderLayer, int]:
        """How many layers there are of each kind, in order of appearance."""
        return FrozenDict(Counter(self.layers))

    @property
    def parameters(self) -> int:
        """All weights, embeddings included [elements]."""
        return self._outside + sum(n * layer.parameters(self.hidden_size) for layer, n in self.counted.items())

    @property
    def active_parameters(self) -> int:
        """Weights without the routed experts that a token does not visit, embeddings included [elements]."""
        return self._outside + sum(n * layer.parameters(self.hidden_size, True) for layer, n in self.counted.items())

    @property
    def embedding_parameters(self) -> int:
        """Weights of the embedding, which a token looks up and multiplies nothing by [elements]."""
        return self.vocab_size * self.hidden_size

    @property
    def _outside(self) -> int:
        """Embedding, output layer, last norm."""
        tables = self.embedding_parameters * (1 if self.tied_embeddings else 2)
        last = self.layers[-1]
        norm = self.hidden_size * (1 + last.norm_bias) if last.norms else 0
        return tables + self.vocab_size * self.lm_head_bias + norm

    def weight_bytes(self, dtype: str | None = None) -> int:
        """What the weights occupy [B].

        Parameters
        ----------
        dtype : str, optional
            Every weight in this type; as released where not given: matrices in `dtype` and `expert_dtype`, and
            embeddings, norms, biases and routers of a quantised model in bf16.

        Raises
        ------
        UnknownNameError
            No such type.

        Examples
        --------
        >>> from iomodel.model import model
        >>> model("llama-3-8b").weight_bytes(), model("llama-3-8b").weight_bytes("fp8")
        (16060522496, 8030261248)
        """
        if dtype is not None:
            return in_bytes(self.parameters, known_dtype(dtype))
        dense = experts = 0
        for layer, times in self.counted.items():
            mlp = times * layer.mlp.matrices(self.hidden_size)
            dense += times * layer.attention.matrices(self.hidden_size) + mlp * (not layer.mlp.experts)
            experts += mlp * bool(layer.mlp.experts)
        rest = self.parameters - dense - experts
        matrices = in_bytes(dense, self.dtype) + in_bytes(experts, self.expert_dtype or self.dtype)
        return matrices + in_bytes(rest, wide(self.dtype))

    def kv_bytes_per_token(self, kv_dtype: str | None = None) -> int:
        """What a token adds to the cache, before any window is full [B].

        >>> from iomodel.model import model
        >>> model("deepseek-v3").kv_bytes_per_token()  # 61 layers, 576 elements, 2 B
        70272
        """
        return self.kv_bytes(1, kv_dtype)

    def kv_bytes(self, context: int, kv_dtype: str | None = None, page_size: int | None = None) -> int:
        """The cache of one request after `context` tokens [B].

        Parameters
        ----------
        context : int
            Tokens so far.
        kv_dtype : str, optional
            Type of the cache; bf16 where not given.
        page_size : int, optional
            Tokens of a page, of which a layer holds whole ones.

        Raises
        ------
        InputError, UnknownNameError
            A count is no such integer; no such type.

        Examples
        --------
        >>> from iomodel.model import model
        >>> model("gemma-3-27b").kv_bytes(131072) // 2**20  # a global layer keeps them all, a local one the last 1024
        10656
        """
        elements = sum(
            times * layer.attention.cached_tokens(context, page_size) * layer.attention.kv_elements_per_token
            for layer, times in self.counted.items()
        )
        return elements * ELEMENT_SIZE[known_kv_dtype(WIDE if kv_dtype is None else kv_dtype)]

    @property
    def unverified(self) -> list[str]:
        """Fields that were only remembered, not read in any source."""
        remembered = [source for source in self.sources if source.kind == UNVERIFIED]
        return sorted({field for source in remembered for field in source.fields or (ALL,)})

    def to_dict(self) -> dict[str, Any]:
        """The model as plain data, layers in groups, without what is as by default; it reads back the same."""
        return self._file.to_dict()

    def to_yaml(self) -> str:
        """The same as text of a model file."""
        return self._file.to_yaml()

    @property
    def _file(self) -> ModelFile:
        from iomodel.models.file import file_of

        return file_of(self)

    def __repr__(self) -> str:
        return f"ModelSpec({self.name or self.title!r}, {len(self.layers)} layers, {self.parameters:,} parameters)"

    def __str__(self) -> str:
        return Shown.__str__(self)

    def __rich__(self) -> Any:
        """Return what the terminal shows."""
        from iomodel.models.table import one

        return one(self)
