"""Strategy of a training step: sharding, recomputation, fusion and overlap; and what a step and a device allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iomodel.algorithms import AlgorithmLike, list_algorithms
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_choice
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, shown
from iomodel.models.spec import ModelSpec
from iomodel.nests.algorithm import Algorithm
from iomodel.planning.step.layout import Layout, has_experts

SHARDS = ("none", "optimizer", "gradients", "parameters")
"""Tensors that data-parallel ranks divide, each with all before it: ZeRO stages 0 to 3; the last is FSDP."""
RECOMPUTE = ("none", "attention", "selective", "early-stop", "full")
"""Kernels that backward passes run again, the fewest first: attention alone is selective recomputation of Megatron-LM,
and "selective" that of torchtitan, which keeps every second product."""
PRECISIONS = ("bf16", "fp8")
GRADIENT_SIZE = {"bf16": 2, "fp32": 4}
"""Bytes of a gradient by its type [B]."""
OVERLAPS = ("data", "tensor", "pipeline", "context", "experts")
"""Collectives that may run beside products: of data parallelism, of tensor parallelism, sends between stages, keys and
values of a divided sequence beside attention, and the exchange of the rows of experts."""
DEFAULT_OVERLAPS = ("data", "tensor", "pipeline", "context")
FRAMEWORKS: FrozenDict[str, FrozenDict[str, Any]] = FrozenDict(
    {
        "torchtitan": FrozenDict(
            {"recompute": "selective", "kernels": "operators", "overlap": ("data", "context"), "copies": True}
        ),
        "fsdp": FrozenDict({"kernels": "eager", "gradient_dtype": "bf16", "overlap": ("data",)}),
        "megatron": FrozenDict({"shard": "none", "overlap": ("context",)}),
        "nemo": FrozenDict({"shard": "optimizer", "overlap": DEFAULT_OVERLAPS}),
    }
)
"""Settings of frameworks that differ from those of :class:`Strategy`, as they are without further options.

torchtitan: ``activation_checkpoint.mode = "selective"``, ``compile.enable = false`` and ``mixed_precision_reduce =
"float32"`` (torchtitan/config). FSDP: ``MixedPrecision`` in bf16 for all three types, as in examples of PyTorch,
without checkpoints. Megatron-LM: neither ``--use-distributed-optimizer`` nor ``--overlap-grad-reduce`` nor
``--tp-comm-overlap``. NeMo and Megatron Bridge: the distributed optimizer with overlaps (their recipes).
"""
KERNELS = ("fused", "eager", "operators")


@dataclass(frozen=True)
class Strategy:
    """Strategy of a step, checked; the fields are those of :func:`iomodel.train_step`."""

    shard: str = "parameters"
    recompute: str = "none"
    gradient_dtype: str = "fp32"
    precision: str = "bf16"
    kernels: str = "fused"
    overlap: tuple[str, ...] = DEFAULT_OVERLAPS
    copies: bool = False
    """FSDP2 copies each gathered weight out of the buffer of its layer, and each gradient into one."""

    def __post_init__(self) -> None:
        """Raise an error if a name is unknown."""
        for field, known in (
            ("shard", SHARDS),
            ("recompute", RECOMPUTE),
            ("gradient_dtype", tuple(GRADIENT_SIZE)),
            ("precision", PRECISIONS),
            ("kernels", KERNELS),
        ):
            as_choice(field, getattr(self, field), known)

    @property
    def level(self) -> int:
        """Stage of ZeRO, 0 to 3."""
        return SHARDS.index(self.shard)

    @property
    def gradient_size(self) -> int:
        """Size of a gradient [B]."""
        return GRADIENT_SIZE[self.gradient_dtype]

    @property
    def fused(self) -> bool:
        """True if the framework fuses elementwise operators."""
        return self.kernels == "fused"


def as_strategy(framework: str | None, **given: Any) -> Strategy:
    """Return a strategy: what is given, else the settings of a framework, else those of :class:`Strategy`.

    >>> as_strategy("torchtitan", recompute="full").kernels
    'operators'
    """
    own = {} if framework is None else FRAMEWORKS[as_choice("framework", framework, tuple(FRAMEWORKS))]
    fields = {**own, **{name: value for name, value in given.items() if value is not None}}
    if "overlap" in fields:
        fields["overlap"] = as_overlap(fields["overlap"])
    return Strategy(**fields)


def as_overlap(overlap: Any) -> tuple[str, ...]:
    """Return the names of collectives that overlap, in one order.

    >>> as_overlap(["tensor", "data"])
    ('data', 'tensor')
    """
    if isinstance(overlap, str) or not isinstance(overlap, Sequence | set | frozenset):
        raise InputError(f"overlap: {shown(overlap)} given; allowed: a list of {', '.join(OVERLAPS)}, or an empty one")
    for name in overlap:
        as_choice("overlap", name, OVERLAPS)
    return tuple(name for name in OVERLAPS if name in overlap)


def check_step(spec: ModelSpec, layout: Layout, batch: int, passed: int, chunks: int) -> None:
    """Raise InputError unless a step can run the model, and layers and batch divide."""
    layout.check(spec)
    if layout.context_parallel > 1 and has_experts(spec):
        raise InputError(
            f"context_parallel: {layout.context_parallel} given for {spec.label}; allowed: 1, for a model with experts"
        )
    if layout.expert_parallel > 1 and not has_experts(spec):
        raise InputError(
            f"expert_parallel: {layout.expert_parallel} given; allowed: 1, for {spec.label}, which is dense"
        )
    if layout.redundant_experts:
        raise InputError(f"redundant_experts: {layout.redundant_experts} given; allowed: 0, in training")
    if layout.decode_context_parallel > 1:
        raise InputError(
            f"decode_context_parallel: {layout.decode_context_parallel} given; allowed: 1, in training without a cache"
        )
    for layer in spec.counted:
        attention, mlp = layer.attention, layer.mlp
        plain = attention is not None and not (attention.indexer or attention.tied_kv)
        beside = ", ".join(part.name for part in (*layer.side, *spec.side) if not part.lookup)
        if beside:
            raise InputError(
                f"model: {spec.label} given, whose weights beside attention and MLPs ({beside}) are not trained here; "
                "allowed: a model without them, such as llama-3-8b"
            )
        if not plain or layer.recurrent is not None or layer.reused:
            raise InputError(f"model: {spec.label} given; allowed: attention over all keys in every layer")
        if mlp is None:
            raise InputError(f"model: {spec.label} given; allowed: an MLP in every layer, such as llama-3-8b")
    stages, layers = layout.pipeline_parallel, len(spec.layers)
    if chunks > 1 and stages == 1:
        raise InputError(f"virtual_stages: {chunks} given; allowed: 1, without pipeline_parallel")
    if stages * chunks > layers:
        raise InputError(
            f"virtual_stages: {chunks} given; allowed: up to {layers // stages}, the layers of a stage of {layers}"
        )
    if batch % passed:
        near = passed * max(1, batch // passed)
        raise InputError(
            f"batch: {batch} given; allowed: a multiple of micro_batch on all replicas = {passed}, such as {near}"
        )
    if chunks > 1 and batch // passed % stages:
        near = passed * stages * max(1, batch // passed // stages)
        raise InputError(
            f"batch: {batch} given; allowed: with virtual_stages, a multiple of micro_batch on all replicas * "
            f"pipeline_parallel = {passed * stages}, such as {near}"
        )


def check_precision(precision: str, device: Hardware) -> None:
    """Raise InputError unless a device multiplies in a precision."""
    known = _peaks(device)
    if precision not in known:
        raise InputError(
            f"precision: {precision} given, but {device.label} has no such matrix peak on file; allowed: "
            f"{', '.join(known) or 'none'}"
        )


def _peaks(device: Hardware) -> tuple[str, ...]:
    """List the types that a device's matrix units multiply."""
    return tuple(name for name in PRECISIONS if getattr(device.compute.peak, name, None))


def as_trained(algorithm: AlgorithmLike) -> Algorithm:
    """Look up an algorithm of attention with a backward pass that keeps no scores."""
    if isinstance(algorithm, Algorithm):
        declaration = find_algorithm(algorithm)
        if not _trains(declaration):
            raise InputError(
                f"attention_algorithm: {declaration.name!r} given; allowed: one with forward and backward passes that "
                "keep no scores, such as flash2"
            )
        return declaration
    if not isinstance(algorithm, str) or algorithm not in list_algorithms() or not _trains(find_algorithm(algorithm)):
        as_choice("attention_algorithm", algorithm, tuple(filter(_trains_by_name, list_algorithms())))
    return find_algorithm(algorithm)


def _trains_by_name(name: str) -> bool:
    return _trains(find_algorithm(name))


def _trains(algorithm: Algorithm) -> bool:
    """Check that an algorithm has both passes, and stores no tensor of queries and keys."""
    from iomodel.nests.language import Store, walk
    from iomodel.nests.tensors import key, query

    if "both" not in algorithm.directions:
        return False
    stored = (leaf.tensor for leaf, _ in walk(algorithm.nest("forward")) if isinstance(leaf, Store))
    return not any({query, key} <= {*tensor.axes} for tensor in stored)
