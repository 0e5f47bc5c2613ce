"""Arguments of a step: model, layout, routing, and the types that precisions stand for.

Products of quantised weights run at the matrix rate of the type in which both operands are multiplied. Weights in fp8
and nvfp4 are multiplied with activations of their own type where the device has the rate on file; others
are converted to the type of the activations on chip ("w4a16").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from iomodel.common.spellings import dtype_name
from iomodel.common.validation import as_choice, as_integer, no_endless
from iomodel.devices.device import Hardware
from iomodel.devices.rates import has_rates
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.models.file_types import FILE_TYPES, file_type, quantised
from iomodel.models.registry import ModelSpec, scheme
from iomodel.models.registry import model as find_model
from iomodel.planning.step.layout import Layout, LinearLayer, layer_linears
from iomodel.timing.parameters import Parameters
from iomodel.workloads.call import ELEMENT_SIZE, KV_QUARTERS, PAIRED
from iomodel.workloads.dtypes import QUANTISED, WEIGHT_SIZE, WIDE, served
from iomodel.workloads.linear import WEIGHT_QUARTERS

TYPES = ("dtype", "weight_dtype", "linear_dtype", "kv_dtype")


def as_model(model: ModelSpec | str) -> ModelSpec:
    """Resolve a model or its name."""
    return model if isinstance(model, ModelSpec) else find_model(model)


def as_stored(model: ModelSpec | str, options: Mapping[str, Any]) -> tuple[ModelSpec, Mapping[str, Any]]:
    """Resolve a model, with its matrices as a file of llama.cpp has them if the options name a file type; the others.

    The file type is that of ``weight_dtype``, else of ``precision``; both also take the names of schemes of weights
    alone, such as "awq".
    """
    spec = as_model(model)
    for field, known in (("weight_dtype", WEIGHT_SIZE), ("precision", PRECISIONS)):
        given = options.get(field)
        if given is not None:
            if (kind := file_type(given)) is not None:
                return quantised(spec, kind), {**options, field: None}
            if not (isinstance(given, str) and given in known) and (dtype := scheme(given)) in SCHEMES:
                return spec, {**options, field: None, "weight_dtype": dtype}
            break
    return spec, options


def as_layout(layout: object) -> Layout:
    """Validate a layout, or raise InputError."""
    if not isinstance(layout, Layout):
        raise InputError(f"layout: {shown(layout)} given; allowed: an iomodel.Layout")
    return layout


def as_parameters(parameters: object) -> Parameters:
    """Validate parameters of the time model, or raise InputError."""
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.devices.Parameters")
    return parameters


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
    check_types(asked, WEIGHT_QUARTERS | WEIGHT_SIZE)
    check_cache(spec, kv_dtype)
    activations = dtype or run_in(spec, device)
    weights = weight_dtype or (spec.dtype if spec.dtype in QUANTISED else activations)
    own = MULTIPLIED[weights] if weights in own_products(device) else activations
    return {
        "dtype": activations,
        "linear_dtype": linear_dtype or own,
        "weight_dtype": weights,
        "expert_dtype": weight_dtype or spec.expert_dtype or weights,
        "kv_dtype": kv_dtype or spec.kv_dtype or activations,
    }


def run_in(spec: ModelSpec, device: Hardware) -> str:
    """Return the type that engines run a model in by default: fp16 in place of bf16 where a device lacks it.

    As vLLM does, which then falls back from torch.bfloat16 to torch.float16 (vllm/config/model.py).

    >>> from iomodel.devices.device import hardware
    >>> from iomodel.models.registry import model
    >>> run_in(model("llama-3-8b"), hardware("t4")), run_in(model("llama-3-8b"), hardware("a100-sxm4-80gb"))
    ('fp16', 'bf16')
    """
    usual = served(spec.dtype)
    return "fp16" if usual == WIDE and not has_rates(device, usual) and has_rates(device, "fp16") else usual


def check_types(types: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
    """Raise UnknownNameError for a type that is not known; `weights` are those of matrices."""
    known = {
        "linear_dtype": PRODUCTS,
        "dtype": tuple(ELEMENT_SIZE),
        "kv_dtype": KV_QUARTERS,
        "weight_dtype": tuple(weights),
    }
    for field, names in known.items():
        value = types.get(field)
        if value is None or (isinstance(value, str) and value in names):
            continue
        if isinstance(value, str) and field == "kv_dtype" and "/" in value:
            raise InputError(
                f"kv_dtype: {shown(value)} given; allowed: one type, or two different ones of {', '.join(PAIRED)}"
            )
        raise UnknownNameError(field, value, dict.fromkeys((*names, *FILE_TYPES) if field == "weight_dtype" else names))


def check_cache(spec: ModelSpec, kv_dtype: object) -> None:
    """Raise InputError for a cache in int4, or in two types, of rows that are both K and V or of two widths.

    No engine keeps the former with a zero point.
    """
    kept = [layer.attention for layer in spec.counted if layer.attention is not None]
    shared = any(attention.latent or attention.tied_kv for attention in kept)
    if kv_dtype == "int4" and shared:
        raise InputError(
            f"kv_dtype: int4 given for {spec.label}, whose rows are both K and V; allowed: bf16, fp8, nvfp4"
        )
    if "/" in str(kv_dtype) and (shared or any(attention.head_dim != attention.value_dim for attention in kept)):
        raise InputError(
            f"kv_dtype: {shown(kv_dtype)} given for {spec.label}, whose rows of K and of V differ; allowed: one type"
        )


def check_routing(spec: ModelSpec, routing: object, tokens: int) -> tuple[int, ...] | None:
    """Validate the tokens of each expert against every layer with experts, or raise InputError."""
    if routing is None:
        return None
    if isinstance(routing, str) or not isinstance(routing, Sequence):
        raise InputError(f"routing: {shown(routing)} given; allowed: the tokens of each expert, as a list")
    no_endless({"routing": routing})
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


class Precision(NamedTuple):
    """Types that a precision stands for; None where the default of the model or the device holds."""

    weight_dtype: str
    linear_dtype: str | None
    kv_dtype: str | None
    dtype: str | None = None


PRECISIONS = {
    "fp32": Precision("fp32", "fp32", "fp32", "fp32"),
    "tf32": Precision("fp32", "tf32", "fp32", "tf32"),
    "fp16": Precision("fp16", None, "fp16"),
    "bf16": Precision("bf16", None, "bf16"),
    "fp8": Precision("fp8", None, "fp8"),
    "int8": Precision("int8", "int8", None),
    "fp4": Precision("nvfp4", None, "fp8"),
    "nvfp4": Precision("nvfp4", None, "fp8"),
    "mxfp4": Precision("mxfp4", None, None),
    "int4": Precision("int4-g128", None, None),
}
"""Precisions by name: tf32 is fp32 with products in tf32, as where PyTorch may take them, fp4 is nvfp4 weights and
activations, int8 W8A8, mxfp4 and int4 weights only."""
SCHEMES = ("int4-g128", "uint4-g128", "nf4")
"""Types of weights alone whose schemes are taken as precisions."""
MULTIPLIED = {"fp8": "fp8", "nvfp4": "fp4"}
"""Type in which weights are multiplied with activations of their own type, if the device can."""
PRODUCTS = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
"""Types of products of linear layers."""
ROW_TYPE = {"fp4": "fp8"}
"""Type of the rows of a product in HBM, where a byte per element is the narrowest that is counted."""


def with_precision(precision: object, types: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the types that are not given from a precision; types may have the names of other libraries.

    Raises
    ------
    UnknownNameError
        The precision is unknown.

    Examples
    --------
    >>> with_precision("fp8", {"kv_dtype": "bf16", "weight_dtype": None})
    {'kv_dtype': 'bf16', 'weight_dtype': 'fp8', 'linear_dtype': None, 'dtype': None}
    >>> with_precision(None, {"kv_dtype": "Q8_0/q4_0", "dtype": "bfloat16"})
    {'kv_dtype': 'q8_0/q4_0', 'dtype': 'bf16'}
    """
    filled = {name: _own_name(value) if name in TYPES else value for name, value in types.items()}
    if precision is None:
        return filled
    for name, value in PRECISIONS[as_choice("precision", precision, PRECISIONS)]._asdict().items():
        filled[name] = value if filled.get(name) is None else filled[name]
    return filled


def _own_name(value: Any) -> Any:
    """Return a type under the name of this library; of a pair, both."""
    if isinstance(value, str) and "/" in value:
        return "/".join(map(dtype_name, value.split("/")))
    return dtype_name(value)


def own_products(device: Hardware) -> frozenset[str]:
    """List the types of weights that a device multiplies with activations of their own type."""
    return frozenset(weights for weights, kind in MULTIPLIED.items() if getattr(device.compute.peak, kind))


def check_products(device: Hardware, linear_dtype: str | None) -> None:
    """Raise InputError for a type of products without a rate on file."""
    if linear_dtype is None or getattr(device.compute.peak, linear_dtype, None):
        return
    known = [kind for kind in PRODUCTS if getattr(device.compute.peak, kind, None)]
    raise InputError(
        f"linear_dtype: {linear_dtype} given, but {device.label} has no such matrix peak on file; "
        f"allowed: {', '.join(known)}"
    )
