"""Times of the records of experts, convolutions and whole programs, which are no calls of one declared kernel.

`benchmarks/gpu_accuracy.py` prints them beside attention and linear layers. A told caller states what a record knows:
the tokens of each expert of grouped products, the types of weights; whole programs are asked as steps alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from math import ceil, inf, nan
from typing import Any, NamedTuple

import iomodel
from benchmarks.layers import alone
from iomodel.devices.rates import has_rates, rates
from iomodel.planning.step.expert_loads import approximate_tokens_per_expert, tokens_per_expert
from iomodel.timing.layer_clock import layer_clock
from iomodel.timing.parameters import DEFAULT
from iomodel.torch import OperatorCall, TensorArgument
from iomodel.torch.accounting import Accounting
from iomodel.torch.last_cache import Saved
from tests.support.gpu_records import Record

ROUTED = "choose experts", "count tokens of experts", "sort tokens by expert", "offsets of experts"
PARTS: Mapping[str, tuple[str, ...]] = {
    "routing": ROUTED,
    "gate_up": ("rows in the order of experts", "expert gate up", "expert activation"),
    "down": ("expert down", "add up experts"),
}
"""Parts of a step of the library by the calls of triton_kernels that do their work."""
AROUND = "kernels around experts of converted weights"
MODELS = {"llama-1b": "llama-3.2-1b", "llama-8b": "llama-3.1-8b"}
"""Models on file of the sizes of two programs."""
TORCH_TYPES = {"fp32": ("float32", 4), "bf16": ("bfloat16", 2)}


class Figure(NamedTuple):
    """A time [s], the roofline under it [s], and the interval of eight in ten measured times [s] if there is one."""

    seconds: float
    floor: float
    error: tuple[float, float] = (nan, nan)
    bound: str = "-"


def experts(record: Record) -> Figure:
    """Time the experts of a layer, or one of their calls, as parts of a step."""
    case = record.case
    step = expert_step(case["model"], case["weights"], case["tokens"], record.device)
    names = {name for part in PARTS.values() for name in part} | {AROUND}
    wanted = names if case["part"] == "whole" else PARTS[case["part"]]
    seconds = sum(part.seconds / part.times for part in step.parts if part.name in wanted)
    return Figure(seconds, floor_of(record, "bf16"))


@cache
def expert_step(model: str, weights: str, tokens: int, device: str) -> iomodel.results.StepTime:
    """Return one step that decodes a token of each sequence."""
    with alone():
        return iomodel.step(model, device, batch=tokens, q_len=1, kv_len=16, weight_dtype=weights)


def grouped(record: Record, told: bool) -> Figure:
    """Time the product of a layer of experts: with the tokens of each, or as the library expects them."""
    case = record.case
    groups = (
        tokens_per_expert(counts(case["experts"], case["top_k"], case["tokens"]))
        if told
        else approximate_tokens_per_expert(case["experts"], case["top_k"], case["tokens"])
    )
    layers = [
        iomodel.Linear(
            rows=rows, groups=count, in_features=case["in_features"], out_features=case["out_features"], dtype="bf16"
        )
        for rows, count in groups
    ]
    span = layer_clock(iomodel.hardware(record.device), DEFAULT, True).linear(*layers)
    return Figure(span.seconds, floor_of(record, "bf16"))


@cache
def counts(experts: int, top_k: int, tokens: int) -> tuple[int, ...]:
    """Return the tokens of each expert as they were drawn for the measurement."""
    drawn, found = random.Random(0), [0] * experts
    for _ in range(tokens):
        for expert in drawn.sample(range(experts), top_k):
            found[expert] += 1
    return tuple(found)


def convolution(record: Record, told: bool = False) -> Figure:
    """Time a convolution as an operator of eager PyTorch; told, with the tensors that rotate in the L2."""
    call = convolution_call(record.case)
    size = sum(tensor.bytes for tensor in call.inputs.values())
    sets = min(4, ceil((1 << 28) / call.inputs["input"].bytes))
    device = iomodel.hardware(record.device)
    kept = told and sets * size + call.outputs[0].bytes <= (rates(device, "fp32").last_cache or 0)
    report = Accounting(hardware=device).traffic(call, Saved(size if kept else 0))
    return Figure(report.seconds or nan, floor_of(record, product_type(record.case)))


def product_type(case: Mapping[str, Any]) -> str:
    """Return the type of the products of a convolution."""
    return "tf32" if case["dtype"] == "fp32" and case["tf32"] else str(case["dtype"])


def convolution_call(case: Mapping[str, Any]) -> OperatorCall:
    """Return the call of a record."""
    axes, kernel, stride, padding = case["axes"], case["kernel"], case["stride"], case["padding"]
    source = (case["batch"], case["in_channels"], *[case["size"]] * axes)
    transposed = case["kind"] == "transposed"
    length = case["size"]
    ends = (length - 1) * stride - 2 * padding + kernel if transposed else (length + 2 * padding - kernel) // stride + 1
    channels = case["in_channels"], case["out_channels"]
    first, second = channels if transposed else channels[::-1]
    shapes = {"input": source, "weight": (first, second // case["groups"], *[kernel] * axes)}
    result = (case["batch"], case["out_channels"], *[ends] * axes)
    arguments: dict[str, Any] = {"groups": case["groups"], "stride": (stride,) * axes, "transposed": transposed}
    if product_type(case) == "tf32":
        arguments["tf32"] = True
    inputs = {name: tensor(shape, case) for name, shape in shapes.items()}
    return OperatorCall("aten.convolution", inputs, (tensor(result, case),), arguments=arguments)


def tensor(shape: tuple[int, ...], case: Mapping[str, Any]) -> TensorArgument:
    """Return a tensor in the layout of a record: contiguous, or with its channels as the last axis."""
    strides = None
    if case["channels_last"] and len(shape) > 3:
        steps, size = [0] * len(shape), 1
        for axis in (1, *range(len(shape) - 1, 1, -1), 0):
            steps[axis], size = size, size * shape[axis]
        strides = tuple(steps)
    return TensorArgument(shape, *TORCH_TYPES[case["dtype"]], strides=strides)


def program(record: Record) -> Figure:
    """Time a step of decoding, or a prefill, of a program that launches its kernels eagerly."""
    case = record.case
    prefill = case["kind"] == "prefill"
    step = iomodel.step(
        MODELS[case["model"]],
        record.device,
        batch=case["batch"],
        q_len=case["prompt"] if prefill else 1,
        kv_len=case["prompt"] + (0 if prefill else 12),
    )
    known = rates(iomodel.hardware(record.device), "bf16")
    return Figure(step.seconds, max(step.flops / known.peak, step.hbm_bytes / known.hbm))


def floor_of(record: Record, dtype: str) -> float:
    """Return the time of the FLOPs and bytes of a record at the peaks of its device [s]."""
    device, values = iomodel.hardware(record.device), record.values
    known = rates(device, dtype if has_rates(device, dtype) else "fp32")
    flops = values.get("useful_flops", values.get("flops", 0))
    size = values.get("compulsory_bytes", values.get("bytes", 0))
    return max(flops / (known.peak or inf), size / known.hbm)
