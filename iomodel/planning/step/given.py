"""Validation of the arguments of a step: model, layout, types, routing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.models.registry import ModelSpec
from iomodel.models.registry import model as find_model
from iomodel.planning.step.layout import Layout, LinearLayer, layer_linears
from iomodel.planning.step.precision import MULTIPLIED, as_linear_dtype, own_products
from iomodel.workloads.call import ELEMENT_SIZE, KV_QUARTERS
from iomodel.workloads.dtypes import QUANTISED, WEIGHT_SIZE, served
from iomodel.workloads.linear import WEIGHT_QUARTERS

TYPES = ("dtype", "weight_dtype", "linear_dtype", "kv_dtype")


def as_model(model: ModelSpec | str) -> ModelSpec:
    """Resolve a model or its name."""
    return model if isinstance(model, ModelSpec) else find_model(model)


def as_layout(layout: object) -> Layout:
    """Validate a layout, or raise InputError."""
    if not isinstance(layout, Layout):
        raise InputError(f"layout: {shown(layout)} given; allowed: an iomodel.Layout")
    return layout


def linear_layers(model: ModelSpec | str, layout: Layout = Layout()) -> tuple[LinearLayer, ...]:  # noqa: B008 - frozen
    """List every linear layer of a model as seen by one rank, over all pipeline stages.

    Parameters
    ----------
    model : ModelSpec or str
        A model, or the name of one.
    layout : Layout
        Parallel layout of the model.

    Raises
    ------
    UnknownNameError, InputError
        The model is unknown; its heads or widths do not divide among the ranks of the layout.

    Examples
    --------
    >>> layers = linear_layers("llama-3-8b")
    >>> layers[0], layers[-1]  # doctest: +NORMALIZE_WHITESPACE
    (LinearLayer(name='q', in_features=4096, out_features=4096, times=32, sharing='columns'),
     LinearLayer(name='output', in_features=4096, out_features=128256, times=1, sharing='columns'))
    >>> sum(layer.in_features * layer.out_features * layer.times for layer in layers)  # all but embeddings and norms
    7504658432
    """
    spec, shared = as_model(model), as_layout(layout)
    shared.check(spec)
    counts: dict[LinearLayer, int] = {}
    for layer, times in spec.counted.items():
        for linear in layer_linears(layer, spec.hidden_size, shared):
            key = linear._replace(times=1)
            counts[key] = counts.get(key, 0) + times * linear.times
    vocabulary = -(-spec.vocab_size // shared.tensor_parallel)
    head = LinearLayer("output", spec.hidden_size, vocabulary, 1, "columns")
    return (*(linear._replace(times=times) for linear, times in counts.items()), head)


def types_of(spec: ModelSpec, device: Hardware, asked: Mapping[str, Any]) -> dict[str, str]:
    """Resolve the types of activations, products, matrices and cache, with defaults for missing ones."""
    dtype, weight_dtype, linear_dtype, kv_dtype = (asked.get(name) for name in TYPES)
    dtypes = {"dtype": (dtype, ELEMENT_SIZE), "kv_dtype": (kv_dtype, KV_QUARTERS)}
    as_linear_dtype(linear_dtype)
    for field, (value, known) in dtypes.items():
        if value is not None and (not isinstance(value, str) or value not in known):
            raise UnknownNameError(field, value, known)
    weight_types = WEIGHT_QUARTERS | WEIGHT_SIZE
    if weight_dtype is not None and (not isinstance(weight_dtype, str) or weight_dtype not in weight_types):
        raise UnknownNameError("weight_dtype", weight_dtype, weight_types)
    check_cache(spec, kv_dtype)
    activations = dtype or served(spec.dtype)
    weights = weight_dtype or (spec.dtype if spec.dtype in QUANTISED else activations)
    own = MULTIPLIED[weights] if weights in own_products(device) else activations
    return {
        "dtype": activations,
        "linear_dtype": linear_dtype or own,
        "weight_dtype": weights,
        "expert_dtype": weight_dtype or spec.expert_dtype or weights,
        "kv_dtype": kv_dtype or spec.kv_dtype or activations,
    }


def check_cache(spec: ModelSpec, kv_dtype: object) -> None:
    """Raise InputError for a cache in int4 of rows that are both K and V: no engine keeps these with a zero point."""
    shared = any(layer.attention and (layer.attention.latent or layer.attention.tied_kv) for layer in spec.counted)
    if kv_dtype == "int4" and shared:
        raise InputError(
            f"kv_dtype: int4 given for {spec.name or spec.title}, whose rows are both K and V; allowed: bf16, fp8, "
            "nvfp4"
        )


def check_routing(spec: ModelSpec, routing: object, tokens: int) -> tuple[int, ...] | None:
    """Validate the tokens of each expert against every layer with experts, or raise InputError."""
    if routing is None:
        return None
    if isinstance(routing, str) or not isinstance(routing, Sequence):
        raise InputError(f"routing: {shown(routing)} given; allowed: the tokens of each expert, as a list")
    counts = tuple(as_integer("routing", count, least=0) for count in routing)
    for layer in spec.counted:
        mlp = layer.mlp
        if mlp is None:
            continue
        expected = (mlp.experts, mlp.experts_per_token * tokens)
        if mlp.experts and (len(counts), sum(counts)) != expected:
            raise InputError(
                f"routing: {len(counts)} experts with {sum(counts)} tokens given; allowed: {expected[0]} experts with "
                f"{expected[1]} in all, {mlp.experts_per_token} for each of {tokens} tokens"
            )
    return counts
