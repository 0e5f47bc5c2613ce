"""One forward step through a model: the time of every layer, as a sum of loop nests, on a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, get_args

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.models.layers import DecoderLayer
from iomodel.models.registry import ModelSpec
from iomodel.planning.step.attention import attention_clock
from iomodel.planning.step.given import as_layout, as_model, check_routing, linear_layers, types_of
from iomodel.planning.step.layout import Layout, LinearLayer
from iomodel.planning.step.links import all_to_all, link, send, with_nodes
from iomodel.planning.step.lora import Lora, check_lora
from iomodel.planning.step.parts import Part, StepSetting, layer_parts
from iomodel.planning.step.precision import check_products, own_products, with_precision
from iomodel.planning.step.result import StepPart, StepTime, part_of
from iomodel.timing.layer_clock import layer_clock
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.workloads.call import ELEMENT_SIZE

Logits = Literal["last", "all", "none"]

__all__ = ["Layout", "LinearLayer", "StepPart", "StepTime", "linear_layers", "step"]


def step(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    batch: int,
    q_len: int,
    kv_len: int,
    layout: Layout = Layout(),  # noqa: B008 - frozen
    dtype: str | None = None,
    weight_dtype: str | None = None,
    linear_dtype: str | None = None,
    kv_dtype: str | None = None,
    precision: str | None = None,
    page_size: int | None = None,
    attention_algorithm: str | None = None,
    logits: Logits = "last",
    routing: Sequence[int] | None = None,
    shared_keys: int = 0,
    lora: Lora | None = None,
    parameters: Parameters = DEFAULT,
) -> StepTime:
    """Time one forward step: `batch` sequences, each with `q_len` new tokens and `kv_len` keys in total.

    Prefill is ``q_len = kv_len``, decoding ``q_len = 1``.

    Parameters
    ----------
    model : ModelSpec or str
        A model, or the name of one.
    hardware : Hardware or str
        A device, or the name of one.
    batch, q_len, kv_len : int
        Sequences on all ranks [-]; new tokens per sequence, and keys including the new tokens [tokens].
    layout : Layout
        Ranks that share the model.
    dtype : str, optional
        Type of the activations; by default that of the released weights, or bf16 if these are quantised or fp32.
    weight_dtype : str, optional
        Type of the matrices in HBM; by default as released if quantised, else `dtype`. Routers and the output layer
        stay in `dtype`.
    linear_dtype : str, optional
        Compute type of linear layers, "fp4" among others; by default that of fp8 and nvfp4 weights on a device with
        such products, else `dtype`.
    kv_dtype : str, optional
        Type of the cache, and of the keys of indexers; by default that which the checkpoint recommends, or `dtype`.
    precision : str, optional
        Weights, products and cache in one name: "bf16", "fp8", "int8" (W8A8), "fp4" (nvfp4), "mxfp4" or "int4"
        (weights alone); types given beside it take precedence.
    page_size : int, optional
        Tokens per page of the cache [tokens].
    attention_algorithm : str, optional
        One of :func:`iomodel.list_algorithms`; by default the fastest of flash3, split_kv and flash2.
    logits : {"last", "all", "none"}
        Rows to which the output layer is applied.
    routing : sequence of int, optional
        Tokens of each expert of a layer; by default expected values of uniform routing.
    shared_keys : int
        First keys that all sequences share. Attention without windows, chunks, indexers or latents then reads them once
        (cascade attention) where that is faster [tokens].
    lora : Lora, optional
        Adapters of low rank that the sequences use.
    parameters : Parameters
        Parameters of the time model other than the device's figures.

    Raises
    ------
    UnknownNameError, InputError
        A name is unknown; kv_len is below q_len; a layout or a routing does not fit the model.
    SpecError
        The device lacks a figure: a matrix peak of the dtype, a bandwidth, a link where ranks share the model.
    InfeasibleError
        No tile fits the device.

    Examples
    --------
    >>> t = step("llama-3-8b", "h100-sxm5", batch=1, q_len=1, kv_len=4096)
    >>> t.bound, 4.5e-3 < t.seconds < 6.5e-3
    ('hbm', True)
    """
    spec, device, shared = as_model(model), as_device(hardware), as_layout(layout)
    sequences, queries, keys = as_integer("batch", batch), as_integer("q_len", q_len), as_integer("kv_len", kv_len)
    if keys < queries:
        raise InputError(f"kv_len: {keys} given; allowed: from q_len = {queries} up, because new tokens are keys too")
    shared_prefix = as_integer("shared_keys", shared_keys, least=0)
    if shared_prefix > keys - queries:
        raise InputError(f"shared_keys: {shared_prefix} given; allowed: up to kv_len - q_len = {keys - queries}")
    if logits not in get_args(Logits):
        raise UnknownNameError("logits", logits, get_args(Logits))
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.devices.Parameters")
    shared.check(spec)
    check_lora(lora, spec)
    shared = with_nodes(shared, device)
    if min(shared.devices, shared.devices_per_node or shared.devices) > 1:
        link(device)
    asked: dict[str, Any] = {"weight_dtype": weight_dtype, "linear_dtype": linear_dtype, "kv_dtype": kv_dtype}
    asked = with_precision(precision, asked)
    weight_dtype, linear_dtype = asked["weight_dtype"], asked["linear_dtype"]
    types = types_of(spec, device, dtype, weight_dtype, linear_dtype, asked["kv_dtype"])
    check_products(device, linear_dtype)
    divided = shared.context_parallel
    if divided > 1 and (queries != keys or shared_prefix or queries < divided):
        raise InputError(
            f"context_parallel: {divided} given with q_len = {queries} and kv_len = {keys}; allowed: 1, or a prefill "
            "of all keys, of as many tokens as ranks or more, without shared_keys"
        )
    if shared_prefix and shared.decode_context_parallel > 1:
        raise InputError(
            f"shared_keys: {shared_prefix} given with decode_context_parallel = {shared.decode_context_parallel}; "
            "allowed: 0, because engines do not combine both"
        )
    routed = check_routing(spec, routing, sequences * queries)
    at = StepSetting(
        clock=layer_clock(device, parameters),
        attention=attention_clock(device, parameters, _algorithm(attention_algorithm)),
        layout=shared,
        hidden=spec.hidden_size,
        batch=-(-sequences // shared.data_parallel),
        q_len=-(-queries // divided),
        kv_len=keys,
        page_size=page_size,
        routing=routed,
        shared_keys=shared_prefix,
        released=weight_dtype is None,
        narrow=own_products(device) if linear_dtype is None else frozenset(),
        block_scales=spec.dtype == "fp8",
        lora=lora,
        **types,
    )
    repeated = [(list(layer_parts(layer, at)), repeats) for layer, repeats in spec.counted.items()]
    first, last = list(_before(spec, at)), list(_after(spec, at, logits))
    sent: list[tuple[list[Part], int]] = []
    size = at.tokens * at.hidden * ELEMENT_SIZE[at.dtype]
    for borders, name, network in zip(shared.sends, ("stage", "node"), (None, shared), strict=True):
        if borders:
            sent.append(([(f"send to the next {name}", "communication", send(device, size, network))], borders))
    parts: dict[Part, int] = {}
    for layer_group, times in ((first, 1), *repeated, (last, 1), *sent):
        for part in layer_group:
            parts[part] = parts.get(part, 0) + times
    listed = tuple(part_of(name, kind, times, span) for (name, kind, span), times in parts.items())
    seconds = longest = sum(part.seconds for part in listed)
    if sent:
        of_layer = {layer: _seconds(group) for layer, (group, _) in zip(spec.counted, repeated, strict=True)}
        stages = [sum(of_layer[layer] for layer in stage) for stage in _stages(spec.layers, shared)]
        stages[0] += _seconds(first)
        stages[-1] += _seconds(last)
        longest = max(stages) + max(_seconds(group) for group, _ in sent)
    return StepTime(
        model=spec,
        hardware=device,
        layout=shared,
        batch=sequences,
        q_len=queries,
        kv_len=keys,
        dtype=types["dtype"],
        linear_dtype=types["linear_dtype"],
        weight_dtype=types["weight_dtype"],
        kv_dtype=types["kv_dtype"],
        seconds=seconds,
        stage_seconds=longest,
        parts=listed,
    )


def _algorithm(name: object) -> str | None:
    """Validate the name of an attention algorithm, or return None."""
    return None if name is None else find_algorithm(name).name  # type: ignore[arg-type]


def _before(spec: ModelSpec, at: StepSetting) -> Iterator[Part]:
    """List the embedding, and the tables and linear layers beside it."""
    yield at.rowwise("embedding", "embedding", at.hidden)
    for side in spec.side:
        if side.lookup:
            yield at.rowwise(side.name, "embedding", side.out_features)
            continue
        for _ in range(side.times):
            yield at.product(side.name, at.wide(at.tokens, side.in_features, side.out_features))


def _after(spec: ModelSpec, at: StepSetting, logits: Logits) -> Iterator[Part]:
    """List the last norm and the output layer, on the requested rows."""
    if logits == "none":
        return
    rows = at.tokens if logits == "all" else at.batch
    ranks = at.layout.tensor_parallel
    yield at.rowwise("norm of the last layer", "add_norm", at.hidden, rows=rows)
    vocabulary = -(-spec.vocab_size // ranks)
    if spec.head_dtype is not None and at.released:
        yield at.product("output", at.linear(rows, at.hidden, vocabulary, weight_dtype=spec.head_dtype))
    else:
        yield at.product("output", at.wide(rows, at.hidden, vocabulary))
    if ranks > 1:
        size = ranks * rows * vocabulary * ELEMENT_SIZE[at.dtype]
        yield "gather logits", "communication", all_to_all(at.clock.device, ranks, size, at.layout)


def _stages(layers: Sequence[DecoderLayer], layout: Layout) -> Iterator[Sequence[DecoderLayer]]:
    """Divide the layers evenly into consecutive stages; the first stages take the remainder."""
    share, remainder = divmod(len(layers), layout.pipeline_parallel)
    start = 0
    for stage in range(layout.pipeline_parallel):
        end = start + share + (stage < remainder)
        yield layers[start:end]
        start = end


def _seconds(parts: Iterable[Part]) -> float:
    return sum(span.seconds for _, _, span in parts)
