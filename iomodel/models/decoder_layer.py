"""Decoder layers: attention, a recurrent state, an MLP, or several of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import Count, Distance
from iomodel.devices.quantity import Group
from iomodel.errors import InputError
from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.indexer import Projection
from iomodel.models.mlp_layer import MLPLayer
from iomodel.models.recurrent import GatedDeltaNet, KimiDelta, LightningAttention, Mamba1, Mamba2, ShortConvolution
from iomodel.workloads.call import Switch
from iomodel.workloads.dtypes import WeightType

__all__ = ["DecoderLayer", "MLPLayer", "Matrix", "Projection", "Recurrent", "SideLayer"]

Recurrent = Annotated[
    GatedDeltaNet | KimiDelta | LightningAttention | Mamba2 | Mamba1 | ShortConvolution, Field(discriminator="kind")
]
"""A layer with a state of fixed size."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_ ]{0,39}$")]
Types = Annotated[Mapping[Name, WeightType], AfterValidator(FrozenDict)]


class Matrix(NamedTuple):
    """A weight matrix of a decoder layer.

    Attributes
    ----------
    name : name within the layer, such as "q" or "expert up".
    in_features, out_features : input and output width [elements].
    times, visited : number of such matrices stored with the layer, and of those that a token visits.
    expert : the matrix is part of a routed or shared expert.
    """

    name: str
    in_features: int
    out_features: int
    times: int = 1
    visited: int = 1
    expert: bool = False

    @property
    def elements(self) -> int:
        """Weights of all these matrices [elements]."""
        return self.in_features * self.out_features * self.times


class SideLayer(Group):
    """A linear layer beside attention and MLP, such as those of per-layer embeddings.

    Parameters
    ----------
    name : name within the layer, or the model.
    in_features, out_features : input and output width [elements].
    times : number of such layers.
    lookup : a table, of which a token reads one row of `out_features` elements.
    """

    name: Name
    in_features: Count
    out_features: Count
    times: Count = 1
    lookup: Switch = False


class DecoderLayer(Group):
    """One decoder layer.

    Parameters
    ----------
    attention, recurrent, mlp : the parts of the layer. Attention and a recurrent state run side by side.
    norms : number of normalisations of a whole row with weights.
    norm_bias : each normalisation adds a bias too (LayerNorm).
    reused : attention and MLP use the weights that an earlier layer stores.
    side : further linear layers.
    other_weights : weights that are in none of these [elements].
    dtypes : types of the released matrices by name, where they differ from those of the model.

    Examples
    --------
    >>> layer = DecoderLayer(attention={"heads": 32, "kv_heads": 8, "head_dim": 128}, mlp={"intermediate_size": 14336})
    >>> layer.parameters(4096)
    218112000
    """

    attention: AttentionLayer | None = None
    recurrent: Recurrent | None = None
    mlp: MLPLayer | None = None
    norms: Distance = 2
    norm_bias: Switch = False
    reused: Switch = False
    side: tuple[SideLayer, ...] = Field(default=(), max_length=100)
    other_weights: Distance = 0
    dtypes: Types = Field(default_factory=FrozenDict)

    @model_validator(mode="after")
    def _known_matrices(self) -> Self:
        if self.dtypes:
            names = [matrix.name for matrix in self.linears(1)]
            for name in self.dtypes:
                if name not in names:
                    raise InputError(f"dtypes.{name}: no such matrix; allowed: {', '.join(dict.fromkeys(names))}")
        return self

    def linears(self, hidden: int) -> tuple[Matrix, ...]:
        """List the weight matrices of the layer, except a router.

        >>> llama = DecoderLayer(attention={"heads": 2, "head_dim": 4}, mlp={"intermediate_size": 16})
        >>> [matrix.name for matrix in llama.linears(8)]
        ['q', 'k', 'v', 'o', 'gate', 'up', 'down']
        """
        return tuple(self._linears(hidden))

    def _linears(self, hidden: int) -> Iterator[Matrix]:
        stored = 0 if self.reused else 1
        if self.attention is not None:
            for projection in self.attention.projections(hidden):
                yield Matrix(*projection, stored, stored)
        if self.recurrent is not None:
            for name, width_in, width_out in self.recurrent.projections(hidden):
                yield Matrix(f"state {name}", width_in, width_out)
        if self.mlp is not None:
            for matrix in _mlp_linears(self.mlp, hidden):
                yield matrix if stored else matrix._replace(times=0, visited=0)
        for layer in self.side:
            yield Matrix(layer.name, layer.in_features, layer.out_features, layer.times, layer.times)

    def vectors(self, hidden: int, active: bool = False) -> int:
        """Count the weights outside the matrices: norms, biases, routers, convolutions [elements]."""
        count = self.norms * hidden * (1 + self.norm_bias) + self.other_weights
        count += 0 if self.recurrent is None else self.recurrent.vectors(hidden)
        if self.reused:
            return count
        count += 0 if self.attention is None else self.attention.vectors(hidden)
        return count + (0 if self.mlp is None else self.mlp.vectors(hidden, active))

    def parameters(self, hidden: int, active: bool = False) -> int:
        """Count the weights of the layer, or those that a token visits [elements]."""
        matrices = sum(
            matrix.in_features * matrix.out_features * (matrix.visited if active else matrix.times)
            for matrix in self.linears(hidden)
        )
        return matrices + self.vectors(hidden, active)

    def dtype_of(self, matrix: Matrix, dtype: str, expert_dtype: str | None) -> str:
        """Return the released type of a matrix, given the types of a model."""
        return self.dtypes.get(matrix.name) or (expert_dtype if matrix.expert and expert_dtype else dtype)

    @property
    def state_bytes(self) -> int:
        """State of one sequence [B]."""
        return 0 if self.recurrent is None else self.recurrent.state.bytes


def _mlp_linears(mlp: MLPLayer, hidden: int) -> Iterator[Matrix]:
    if not mlp.experts:
        yield from (Matrix(*projection) for projection in mlp.projections(hidden))
        return
    for name, width_in, width_out in mlp.latent_projections(hidden):
        yield Matrix(name, width_in, width_out)
    for name, width_in, width_out in mlp.projections(hidden):
        yield Matrix(f"expert {name}", width_in, width_out, mlp.experts, mlp.experts_per_token, True)
    for name, width_in, width_out in mlp.shared_projections(hidden):
        yield Matrix(f"shared {name}", width_in, width_out, mlp.shared_experts, mlp.shared_experts, True)
