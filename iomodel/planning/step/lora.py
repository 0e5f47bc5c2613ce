"""Adapters of low rank (LoRA) beside the linear layers of a model: their weights, and their kernels in a step.

An adapter adds B (A x) to a product W x, with A of `rank` rows and B of `rank` columns (E. Hu et al., *LoRA: Low-rank
adaptation of large language models*, arXiv:2106.09685, section 4.1). Requests of a step may use different adapters: one
kernel computes A x for all of them, each row with its own A, and a second adds B (L. Chen et al., *Punica: Multi-tenant
LoRA serving*, arXiv:2310.18547, section 4). Layers of one input, such as Q, K and V, share both launches, as in vLLM.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from iomodel.common.validation import Count, Model
from iomodel.errors import InputError, shown
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.registry import ModelSpec
from iomodel.planning.step.layout import Layout, LinearLayer, attention_linears, mlp_linears

LARGEST = 1024
"""Largest rank [-]."""
ADAPTED = ("q", "k", "v", "o")
"""Projections of attention that have an adapter."""


class Lora(Model):
    """Adapters that an engine holds on the device beside the weights of a model.

    Adapters stand beside the projections of attention and the layers of dense MLPs. Of an adapter beside a layer that
    ranks divide by columns, each rank has all of A and its columns' share of B; beside a layer divided by rows, its
    share of A and all of B (vLLM without ``--fully-sharded-loras``). They have the type of the activations.

    Parameters
    ----------
    rank : int
        Rank of the adapters [-].
    adapters : int
        Adapters on the device at once [-].
    active : int, optional
        Different adapters among the requests of a step [-]; by default all, or one per row if there are fewer rows.

    Raises
    ------
    InputError
        A number is out of range.

    Examples
    --------
    >>> from iomodel.models.registry import model
    >>> llama = model("llama-3.1-8b")
    >>> Lora(rank=16).elements(llama.layers[0], llama.hidden_size, Layout())
    1310720
    """

    rank: Annotated[Count, Field(le=LARGEST)]
    adapters: Count = 1
    active: Count | None = None

    def check(self, model: ModelSpec) -> None:
        """Raise InputError for a model with layers without heads of K and V, or for too many active adapters."""
        if self.active is not None and self.active > self.adapters:
            raise InputError(f"lora.active: {self.active} given; allowed: up to adapters = {self.adapters}")
        for layer in model.counted:
            attention = layer.attention
            if attention is None or attention.latent or attention.tied_kv or layer.recurrent is not None:
                raise InputError(
                    f"lora: given for {model.label}; allowed: none, because some layers have no heads of K and V"
                )

    def linears(self, layer: DecoderLayer, hidden: int, layout: Layout) -> tuple[LinearLayer, ...]:
        """List the layers with an adapter on one rank."""
        assert layer.attention is not None
        found = [linear for linear in attention_linears(layer.attention, hidden, layout) if linear.name in ADAPTED]
        if layer.mlp is not None and not layer.mlp.experts:
            found += mlp_linears(layer.mlp, hidden, layout)
        return tuple(found)

    def elements(self, layer: DecoderLayer, hidden: int, layout: Layout) -> int:
        """Count the weights of one adapter in one layer on a rank [elements]."""
        linears = self.linears(layer, hidden, layout)
        return sum(linear.times * self.rank * (linear.in_features + linear.out_features) for linear in linears)


def check_lora(lora: object, model: ModelSpec) -> None:
    """Raise InputError unless adapters are None, or an object of this module that a model takes."""
    if lora is None:
        return
    if not isinstance(lora, Lora):
        raise InputError(f"lora: {shown(lora)} given; allowed: an iomodel.Lora")
    lora.check(model)
