"""What a step is given, checked: a model, a layout, types, a routing."""

from __future__ import annotations

from collections.abc import Sequence

from iomodel.decoder.layout import Layout, LinearLayer, layer_linears
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.hardware import Hardware
from iomodel.linear.layer import WEIGHT_QUARTERS
from iomodel.model import ModelSpec
from iomodel.model import model as find_model
from iomodel.models.dtypes import QUANTISED, served
from iomodel.validation import as_integer
from iomodel.workload import ELEMENT_SIZE


def as_model(model: ModelSpec | str) -> ModelSpec:
    """A model by its name, or itself."""
    return model if isinstance(model, ModelSpec) else find_model(model)


def as_layout(layout: object) -> Layout:
    """The layout itself, or InputError."""
    if not isinstance(layout, Layout):
        raise InputError(f"layout: {shown(layout)} given; allowed: an iomodel.Layout")
    return layout


def linear_layers(model: ModelSpec | str, layout: Layout = Layout()) -> tuple[LinearLayer, ...]:  # noqa: B008 - frozen
    """Every linear layer of a model as one rank of a stage has it, over all pipeline stages.

    Parameters
    ----------
    model : ModelSpec or str
        A model, or the name of one.
    layout : Layout
        How it is shared out.

    Raises
    ------
    UnknownNameError, InputError
        An unknown model; a layout that its heads or widths do not divide among.

    Examples
    --------
    >>> layers = linear_layers("llama-3-8b")
    >>> layers[0], layers[-1]  # doctest: +NORMALIZE_WHITESPACE
    (LinearLayer(name='q', in_features=4096, out_features=4096, times=32, sharing='columns'),
     LinearLayer(name='output', in_features=4096, out_features=128256, times=1, sharing='columns'))
    >>> sum(one.in_features * one.out_features * one.times for one in layers)  # all but embeddings and norms
    7504658432
    """
    spec, shared = as_model(model), as_layout(layout)
    shared.check(spec)
    found: dict[LinearLayer, int] = {}
    for layer, times in spec.counted.items():
        for one in layer_linears(layer, spec.hidden_size, shared):
            key = one._replace(times=1)
            found[key] = found.get(key, 0) + times * one.times
    vocabulary = -(-spec.vocab_size // shared.tensor_parallel)
    head = LinearLayer("output", spec.hidden_size, vocabulary, 1, "columns")
    return (*(one._replace(times=times) for one, times in found.items()), head)


def types_of(
    spec: ModelSpec,
    device: Hardware,
    dtype: str | None,
    weight_dtype: str | None,
    linear_dtype: str | None,
    kv_dtype: str | None,
) -> dict[str, str]:
    """The types of activations, products, matrices and cache, those not given filled in."""
    given = {"dtype": dtype, "linear_dtype": linear_dtype, "kv_dtype": kv_dtype}
    for field, value in given.items():
        if value is not None and (not isinstance(value, str) or value not in ELEMENT_SIZE):
            raise UnknownNameError(field, value, ELEMENT_SIZE)
    if weight_dtype is not None and (not isinstance(weight_dtype, str) or weight_dtype not in WEIGHT_QUARTERS):
        raise UnknownNameError("weight_dtype", weight_dtype, WEIGHT_QUARTERS)
    activations = dtype or served(spec.dtype)
    weights = weight_dtype or (spec.dtype if spec.dtype in QUANTISED else activations)
    multiplied = linear_dtype or ("fp8" if weights == "fp8" and device.compute.peak.fp8 else activations)
    return {
        "dtype": activations,
        "linear_dtype": multiplied,
        "weight_dtype": weights,
        "expert_dtype": weight_dtype or spec.expert_dtype or weights,
        "kv_dtype": kv_dtype or activations,
    }


def check_routing(spec: ModelSpec, routing: object, tokens: int) -> tuple[int, ...] | None:
    """The tokens of each expert, or InputError unless they are those of every layer that has experts."""
    if routing is None:
        return None
    if isinstance(routing, str) or not isinstance(routing, Sequence):
        raise InputError(f"routing: {shown(routing)} given; allowed: the tokens of each expert, as a list")
    counts = tuple(as_integer("routing", count, least=0) for count in routing)
    for layer in spec.counted:
        mlp = layer.mlp
        wanted = (mlp.experts, mlp.experts_per_token * tokens)
        if mlp.experts and (len(counts), sum(counts)) != wanted:
            raise InputError(
                f"routing: {len(counts)} experts with {sum(counts)} tokens given; allowed: {wanted[0]} experts with "
                f"{wanted[1]} in all, {mlp.experts_per_token} for each of {tokens} tokens"
            )
    return counts
