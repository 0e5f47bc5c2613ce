"""One forward step through a whole model: every layer as a sum of loop nests, and the time of each on a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.check import as_device
from iomodel.decoder.attention import attention_clock
from iomodel.decoder.given import as_layout, as_model, check_routing, linear_layers, types_of
from iomodel.decoder.layout import Layout, LinearLayer
from iomodel.decoder.links import all_to_all, link, send
from iomodel.decoder.parts import Part, Setting, layer_parts
from iomodel.decoder.result import StepPart, StepTime, part_of
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.hardware import Hardware
from iomodel.linear.time import linear_clock
from iomodel.model import ModelSpec
from iomodel.models.layers import DecoderLayer
from iomodel.parameters import DEFAULT, Parameters
from iomodel.validation import as_integer
from iomodel.workload import ELEMENT_SIZE

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
    page_size: int | None = None,
    attention_algorithm: str | None = None,
    logits: Logits = "last",
    routing: Sequence[int] | None = None,
    parameters: Parameters = DEFAULT,
) -> StepTime:
    """The time of one forward step: `batch` sequences, each with `q_len` new tokens and `kv_len` keys in all.

    Prefill is ``q_len = kv_len``, decoding ``q_len = 1``.

    Parameters
    ----------
    model : ModelSpec or str
        A model, or the name of one.
    hardware : Hardware or str
        A device, or the name of one.
    batch, q_len, kv_len : int
        Sequences, over all ranks [-]; new tokens and keys of each, the new ones among them [tokens].
    layout : Layout
        Ranks that share the model.
    dtype : str, optional
        Type of the activations; that of the released weights, bf16 if these are quantised or fp32.
    weight_dtype : str, optional
        Type of the matrices in HBM; as released if quantised, else `dtype`, where not given. Routers and the output
        layer stay in `dtype`.
    linear_dtype : str, optional
        Type in which linear layers multiply: fp8 for fp8 weights on a device that has such products, else `dtype`.
    kv_dtype : str, optional
        Type of the cache, `dtype` where not given.
    page_size : int, optional
        Tokens of a page of the cache [tokens].
    attention_algorithm : str, optional
        One of :func:`iomodel.list_algorithms`; the fastest of flash3, split_kv and flash2 where not given.
    logits : {"last", "all", "none"}
        The rows that the output layer is applied to.
    routing : sequence of int, optional
        Tokens of each expert of a layer; expected values of uniform routing where not given.
    parameters : Parameters
        What the time model assumes beside the device's figures.

    Raises
    ------
    UnknownNameError, InputError
        An unknown name; kv_len below q_len; a layout or a routing that does not fit the model.
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
        raise InputError(f"kv_len: {keys} given; allowed: from q_len = {queries} up, for new tokens are keys too")
    if logits not in get_args(Logits):
        raise UnknownNameError("logits", logits, get_args(Logits))
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.Parameters")
    shared.check(spec)
    if shared.devices > 1:
        link(device)
    types = types_of(spec, device, dtype, weight_dtype, linear_dtype, kv_dtype)
    routed = check_routing(spec, routing, sequences * queries)
    at = Setting(
        clock=linear_clock(device, parameters),
        attention=attention_clock(device, parameters, _algorithm(attention_algorithm)),
        layout=shared,
        hidden=spec.hidden_size,
        batch=-(-sequences // shared.data_parallel),
        q_len=queries,
        kv_len=keys,
        page_size=page_size,
        routing=routed,
        **types,
    )
    each = {layer: list(layer_parts(layer, at)) for layer in spec.counted}
    first, last = list(_before(at)), list(_after(spec, at, logits))
    sent: list[Part] = []
    if shared.pipeline_parallel > 1:
        size = at.tokens * at.hidden * ELEMENT_SIZE[at.dtype]
        sent.append(("send to the next stage", "communication", send(device, size)))
    stages = [_seconds(part for layer in stage for part in each[layer]) for stage in _stages(spec.layers, shared)]
    stages[0] += _seconds(first)
    stages[-1] += _seconds(last)
    parts: dict[Part, int] = {}
    repeated = [(each[layer], many) for layer, many in spec.counted.items()]
    for found, times in ((first, 1), *repeated, (last, 1), (sent, shared.pipeline_parallel - 1)):
        for part in found:
            parts[part] = parts.get(part, 0) + times
    listed = tuple(part_of(name, kind, times, span) for (name, kind, span), times in parts.items())
    hop = sent[0][2].seconds if sent else 0.0
    return StepTime(
        model=spec,
        hardware=device,
        layout=shared,
        batch=sequences,
        q_len=queries,
        kv_len=keys,
        dtype=types["dtype"],
        weight_dtype=types["weight_dtype"],
        kv_dtype=types["kv_dtype"],
        seconds=sum(part.seconds for part in listed),
        stage_seconds=max(stages) + hop,
        parts=listed,
    )


def _algorithm(name: object) -> str | None:
    """The attention algorithm asked for, or none."""
    return None if name is None else find_algorithm(name).name  # type: ignore[arg-type]


def _before(at: Setting) -> Iterator[Part]:
    yield at.rowwise("embedding", "embedding", at.hidden)


def _after(spec: ModelSpec, at: Setting, logits: Logits) -> Iterator[Part]:
    """The last norm and the output layer, on the rows that are wanted."""
    if logits == "none":
        return
    rows = at.tokens if logits == "all" else at.batch
    ranks = at.layout.tensor_parallel
    yield at.rowwise("norm of the last layer", "add_norm", at.hidden, rows=rows)
    vocabulary = -(-spec.vocab_size // ranks)
    yield at.product("output", at.wide(rows, at.hidden, vocabulary))
    if ranks > 1:
        size = ranks * rows * vocabulary * ELEMENT_SIZE[at.dtype]
        yield "gather logits", "communication", all_to_all(at.clock.device, ranks, size)


def _stages(layers: Sequence[DecoderLayer], layout: Layout) -> Iterator[Sequence[DecoderLayer]]:
    """Consecutive layers, as many to each stage, the first ones with one more."""
    many, more = divmod(len(layers), layout.pipeline_parallel)
    start = 0
    for stage in range(layout.pipeline_parallel):
        end = start + many + (stage < more)
        yield layers[start:end]
        start = end


def _seconds(parts: Iterable[Part]) -> float:
    return sum(span.seconds for _, _, span in parts)
