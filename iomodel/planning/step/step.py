"""One forward step through a model: the time of every layer, as a sum of loop nests, on a device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Unpack, get_args

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice, as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, SpecError
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.registry import ModelSpec
from iomodel.planning.call_arguments import settled
from iomodel.planning.engines import as_engine
from iomodel.planning.layouts import MOST_RANKS, SERVER, default_layouts, too_small
from iomodel.planning.loaded_weights import as_backend, usual_backend
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_options import DEFAULTS, ServiceOptions, TimedStepOptions, takes
from iomodel.planning.step.attention_clock import attention_clock
from iomodel.planning.step.expert_loads import approximate_experts_hit
from iomodel.planning.step.layer_parts import layer_parts
from iomodel.planning.step.layout import Layout, LinearLayer
from iomodel.planning.step.links import all_to_all, link, send, with_nodes
from iomodel.planning.step.lora import check_lora
from iomodel.planning.step.setting import Part, StepSetting, rank_products, seconds_of
from iomodel.planning.step.step_arguments import (
    as_parameters,
    as_stored,
    check_products,
    check_routing,
    linear_layers,
    own_products,
    types_of,
    with_precision,
)
from iomodel.planning.step.step_result import OUTPUT, StepPart, StepTime, part_of
from iomodel.planning.weights import stage_layers
from iomodel.timing.layer_clock import layer_clock
from iomodel.workloads.call import ELEMENT_SIZE

SERVED = 0.88
"""Rate of the products of a server over that of a product alone, at the limit of power for minutes [-]: of 0.85, 0.88,
0.91 and 0.94 the one with the least signs of the 16 dense rates of tests/measured/serving.csv, asked as their runs."""

Logits = Literal["last", "all", "none"]

__all__ = ["Layout", "LinearLayer", "StepPart", "StepTime", "linear_layers", "step"]


@strict
@takes(TimedStepOptions)
def step(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    batch: int = 1,
    q_len: int,
    kv_len: int | None = None,
    **service: Unpack[TimedStepOptions],
) -> StepTime:
    """Time one forward step: `batch` sequences, each with `q_len` new tokens and `kv_len` keys in total.

    Prefill is ``q_len = kv_len``, decoding ``q_len = 1``. Without a layout it is one device where that holds the model
    and one sequence, else of the layouts of a plan that hold the batch the one with the most tokens per second and
    device. Options of memory, engines, prefix caches and drafts are those of a plan; of these, the kernels of an engine
    for experts in mxfp4 alone change the time of a step in a layout.

    Parameters
    ----------
    model : ModelSpec or str
        A model, or the name of one.
    hardware : Hardware or str
        A device, or the name of one.
    batch, q_len, kv_len : int
        Sequences on all ranks, by default one [-]; new tokens per sequence, and keys including the new tokens, by
        default those alone where there are several, a prefill [tokens].
    **service

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
    >>> t.limited_by, 4.5e-3 < t.seconds < 6.5e-3
    ('hbm', True)
    """
    asked = settled(step, service)
    spec, options = as_stored(model, {**DEFAULTS, **asked.service})
    device = as_device(hardware)
    sequences, queries = as_integer("batch", batch), as_integer("q_len", q_len)
    keys = queries if kv_len is None and queries > 1 else as_integer("kv_len", kv_len)
    if keys < queries:
        raise InputError(f"kv_len: {keys} given; allowed: from q_len = {queries} up, because new tokens are keys too")
    shape = sequences, queries, keys
    if asked.layout is not None:
        return _in_layout(spec, device, shape, asked.layout, options)
    return _searched(spec, device, shape, asked.start, options)


def _searched(
    spec: ModelSpec, device: Hardware, shape: tuple[int, int, int], start: Layout, options: Mapping[str, Any]
) -> StepTime:
    """Time a step in the layout with the most tokens per second and device, of those that hold the model."""
    longest = min(shape[-1], spec.max_positions or shape[-1])
    known = {name: value for name, value in options.items() if name in ServiceOptions.__annotations__}
    known |= {"prefix_cache": None, "speculation": None}
    service = as_service(spec, max(1, longest - 1), 1, start, **known).on(device)
    timed, refused = [], None
    for layout in _held(service, device, shape[0]):
        try:
            timed.append(_in_layout(spec, device, shape, layout, options))
        except InputError as error:  # some layouts divide neither shared keys nor the tokens of a prompt
            refused = error
    if refused is not None and not timed:
        raise refused
    best = max(timed, key=lambda each: each.tokens_per_second / each.layout.devices)
    return replace(best, assumed=too_small(service.laid_out(best.layout), device))


def _held(service: Service, device: Hardware, batch: int) -> list[Layout]:
    """List the layouts of a plan that hold some requests, or one, if one device holds none."""
    with suppress(SpecError, InputError):  # no memory on file; no cache to fill
        if not service.memory(device).fits:
            for most in (SERVER, MOST_RANKS):
                fits = {
                    one: service.laid_out(one).memory(device).fits for one in default_layouts(service, device, most)
                }
                for least in (batch, 1):
                    if held := [layout for layout, requests in fits.items() if requests >= least]:
                        return held
    return [service.layout]


def _in_layout(
    spec: ModelSpec, device: Hardware, shape: tuple[int, int, int], shared: Layout, options: Mapping[str, Any]
) -> StepTime:
    """Time a step of some sequences, queries and keys in a layout."""
    logits, parameters, (sequences, queries, keys) = options["logits"], options["parameters"], shape
    mixed = as_integer("prompt_tokens", options["prompt_tokens"], least=0)
    shared_prefix = as_integer("shared_keys", options["shared_keys"], least=0)
    if shared_prefix > keys - queries:
        raise InputError(f"shared_keys: {shared_prefix} given; allowed: up to kv_len - q_len = {keys - queries}")
    as_choice("logits", logits, get_args(Logits))
    as_parameters(parameters)
    shared.check(spec)
    check_lora(options.get("lora"), spec)
    shared = with_nodes(shared, device)
    if min(shared.devices, shared.devices_per_node or shared.devices) > 1:
        link(device)
    algorithm, engine = options.get("attention_algorithm"), as_engine(options.get("engine"))
    clock = layer_clock(device, parameters, True, SERVED)
    at = StepSetting(
        clock=clock,
        attention=attention_clock(
            device,
            clock.parameters,
            None if algorithm is None else find_algorithm(algorithm),
            "" if engine is None else engine.name,
        ),
        layout=shared,
        hidden=spec.hidden_size,
        batch=-(-sequences // shared.data_parallel),
        q_len=-(-queries // shared.context_parallel),
        kv_len=keys,
        page_size=options.get("page_size"),
        routing=check_routing(spec, options.get("routing"), sequences * queries + mixed),
        shared_keys=shared_prefix,
        block_scales=spec.dtype == "fp8",
        lora=options.get("lora"),
        expert_kernels=as_backend(options.get("moe_backend")) or usual_backend(engine, device),
        rows_apart=engine is not None and engine.rows_apart,
        scans=frozenset() if engine is None else engine.scans,
        chunk_work=1.0 if engine is None else dict(engine.chunk_work).get(device.architecture or "", 1.0),
        rotation_clocks=0.0 if engine is None else engine.rotation_clocks,
        **_types(spec, device, options),
    )
    _check_divided(shared, queries, keys, shared_prefix)
    if mixed:
        _check_mixed(spec, shared, mixed)
    parts, longest = _timed(spec, at, logits, mixed)
    return StepTime(
        model=spec,
        hardware=device,
        layout=shared,
        batch=sequences,
        q_len=queries,
        kv_len=keys,
        prompt_tokens=mixed,
        dtype=at.dtype,
        linear_dtype=at.linear_dtype,
        weight_dtype=at.weight_dtype,
        kv_dtype=at.kv_dtype,
        seconds=sum(part.seconds for part in parts),
        stage_seconds=longest,
        parts=parts,
        experts_hit=_experts_hit(spec, sequences * queries + mixed, at.routing),
    )


def _experts_hit(spec: ModelSpec, tokens: int, routing: Sequence[int] | None) -> float | None:
    """Return the experts of a layer that the tokens visit: those of a routing, else those to expect."""
    mlp = next((layer.mlp for layer in spec.counted if layer.mlp is not None and layer.mlp.experts), None)
    if mlp is None:
        return None
    if routing is not None:
        return float(sum(map(bool, routing)))
    return approximate_experts_hit(mlp.experts, mlp.experts_per_token, tokens)


def _types(spec: ModelSpec, device: Hardware, service: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve the types of a step, and how matrices of each are multiplied."""
    asked = with_precision(service.get("precision"), service)
    types = types_of(spec, device, asked)
    linear_dtype = asked.get("linear_dtype")
    check_products(device, linear_dtype)
    narrow = own_products(device) if linear_dtype is None else frozenset()
    return {**types, "released": asked.get("weight_dtype") is None, "narrow": narrow}


def _check_divided(layout: Layout, queries: int, keys: int, shared: int) -> None:
    """Raise InputError for a step that ranks do not divide by tokens."""
    divided, cached = layout.context_parallel, layout.decode_context_parallel
    if divided > 1 and (queries != keys or shared or queries < divided):
        raise InputError(
            f"context_parallel: {divided} given with q_len = {queries} and kv_len = {keys}; allowed: 1, or a prefill "
            "of all keys, of as many tokens as ranks or more, without shared_keys"
        )
    if shared and cached > 1:
        raise InputError(
            f"shared_keys: {shared} given with decode_context_parallel = {cached}; allowed: 0, because engines do not "
            "combine both"
        )


def _check_mixed(spec: ModelSpec, layout: Layout, tokens: int) -> None:
    """Raise InputError for tokens of a prompt beside others, where more than attention depends on a sequence."""
    alike = all(
        layer.recurrent is None and layer.attention is not None and not layer.attention.latent
        and layer.attention.indexer is None
        for layer in spec.counted
    )  # fmt: skip
    if not alike or max(layout.data_parallel, layout.context_parallel, layout.decode_context_parallel) > 1:
        raise InputError(
            f"prompt_tokens: {tokens} given; allowed: 0, but for models with plain attention in every layer whose "
            "ranks divide no sequences"
        )


def _timed(spec: ModelSpec, at: StepSetting, logits: Logits, prompt: int = 0) -> tuple[tuple[StepPart, ...], float]:
    """Time the parts of a step, with the tokens of a prompt beside its sequences, and its longest stage [s]."""
    together = replace(at, batch=at.tokens + prompt, q_len=1, kv_len=1) if prompt else at
    rank_products(together, lambda asking: _parts(spec, asking, logits))
    layers, first, last = _parts(spec, together, logits)
    if prompt:
        alone = replace(at, batch=1, q_len=prompt, kv_len=prompt, shared_keys=0)
        layers = {layer: _mixed(parts, layer, at, alone) for layer, parts in layers.items()}
        last = last if logits == "all" else list(_after(spec, replace(together, batch=at.batch + 1), logits))
    sent = dict(_sends(together))
    counted = [(first, 1), *((layers[layer], times) for layer, times in spec.counted.items()), (last, 1)]
    parts: Counter[Part] = Counter()
    for group, times in (*counted, *(([part], times) for part, times in sent.items())):
        for part in group:
            parts[part] += times
    listed = tuple(part_of(name, kind, times, span) for (name, kind, span), times in parts.items())
    if not sent:
        return listed, sum(part.seconds for part in listed)
    of_layer = {layer: seconds_of(group) for layer, group in layers.items()}
    stages = [sum(of_layer[layer] for layer in stage) for stage in stage_layers(spec, at.layout)]
    stages[0] += seconds_of(first)
    stages[-1] += seconds_of(last)
    return listed, max(stages) + max(seconds_of([part]) for part in sent)


def _mixed(parts: Iterable[Part], layer: DecoderLayer, at: StepSetting, prompt: StepSetting) -> list[Part]:
    """Replace the attention of a layer by that of the sequences and that of a prompt; the rest takes all rows."""
    told = ((at, ""), (prompt, " of the prompt"))
    calls = [
        (f"{name}{whose}", kind, span)
        for setting, whose in told
        for name, kind, span in layer_parts(layer, setting)
        if kind == "attention"
    ]
    return [*(part for part in parts if part[1] != "attention"), *calls]


def _parts(
    spec: ModelSpec, at: StepSetting, logits: Logits
) -> tuple[dict[DecoderLayer, list[Part]], list[Part], list[Part]]:
    """List the parts of each layer, and those before and after all layers."""
    layers = {layer: list(layer_parts(layer, at)) for layer in spec.counted}
    return layers, list(_before(spec, at)), list(_after(spec, at, logits))


def _sends(at: StepSetting) -> Iterator[tuple[Part, int]]:
    """List the sends between stages within a node and between nodes, with their numbers."""
    size = at.tokens * at.hidden * ELEMENT_SIZE[at.dtype]
    for borders, name, network in zip(at.layout.sends, ("stage", "node"), (None, at.layout), strict=True):
        if borders:
            yield (f"send to the next {name}", "communication", send(at.clock.device, size, network)), borders


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
    norm, layer, gather = OUTPUT
    rows = at.tokens if logits == "all" else at.batch
    ranks = at.layout.tensor_parallel
    yield at.rowwise(norm, "add_norm", at.hidden, rows=rows)
    vocabulary = -(-spec.vocab_size // ranks)
    if spec.head_dtype is not None and at.released:
        yield at.product(layer, at.linear(rows, at.hidden, vocabulary, weight_dtype=spec.head_dtype))
    else:
        yield at.product(layer, at.wide(rows, at.hidden, vocabulary))
    if ranks > 1:
        size = ranks * rows * vocabulary * ELEMENT_SIZE[at.dtype]
        yield gather, "communication", all_to_all(at.clock.device, ranks, size, at.layout)
