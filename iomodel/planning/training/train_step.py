"""Time and memory of one training step of a dense model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from typing import Any

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, shown
from iomodel.models.spec import ModelSpec
from iomodel.nests.algorithm import Algorithm
from iomodel.placement.implementations import implementation as find_implementation
from iomodel.planning.checked_numbers import as_real
from iomodel.planning.step.attention_clock import AttentionClock, PassClock, attention_clock
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.links import link, send, with_nodes
from iomodel.planning.step.setting import Part
from iomodel.planning.step.step_arguments import as_layout, as_model, as_parameters
from iomodel.planning.training.layout_search import fastest
from iomodel.planning.training.passes import Backward, Forward, loss_parts, pass_of_layer, recomputed, training_clock
from iomodel.planning.training.stage_times import Stage, stage_times
from iomodel.planning.training.strategy import Strategy, as_strategy, as_trained, check_precision, check_step
from iomodel.planning.training.training_memory import WEIGHT, StageLayers, stage_memory, stages_of
from iomodel.planning.training.training_result import TrainingStep
from iomodel.timing.parameters import DEFAULT, Parameters


@strict
def train_step(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    batch: int,
    seq_len: int,
    micro_batch: int = 1,
    count: int | None = None,
    data_parallel: int | None = None,
    layout: Layout | None = None,
    framework: str | None = None,
    shard: str | None = None,
    recompute: str | None = None,
    recompute_layers: int | None = None,
    gradient_dtype: str | None = None,
    precision: str | None = None,
    virtual_stages: int = 1,
    kernels: str | None = None,
    overlap: Collection[str] | None = None,
    attention_algorithm: AlgorithmLike | None = None,
    attention_implementation: str | None = None,
    nodes_per_token: int | None = None,
    measured: float | None = None,
    parameters: Parameters = DEFAULT,
) -> TrainingStep:
    """Estimate the time and the memory of one training step with Adam.

    Attention is causal and keeps no scores (flash attention). Tensor parallelism comes with sequence parallelism. The
    pipeline runs one forward and one backward pass in turn (1F1B), with several virtual stages interleaved.

    Parameters
    ----------
    model : ModelSpec or str
        A model with attention over all keys and an MLP, dense or with balanced experts, in every layer; or its name.
    hardware : Hardware or str
        A device, or the name of one.
    batch : int
        Sequences of a step on all devices [-].
    seq_len : int
        Tokens of a sequence.
    micro_batch : int
        Sequences of one pass of a group of tensor-parallel ranks [-].
    count : int, optional
        All devices, which give the replicas that are not given [-]; by default those that hold the step.
    data_parallel : int, optional
        Replicas; by default those of `count`, or of the layout that is taken, 1 with a given one [-].
    layout : Layout, optional
        Devices of one replica; by default the fastest layout that fits `count` devices, or the least power of two of
        devices that hold the step (:mod:`iomodel.planning.training.layout_search`). `devices_per_node` gives data
        parallelism its two networks as well. Ranks of `context_parallel` divide each sequence in pieces from both of
        its ends, and the weights as replicas do.
    framework : {"torchtitan", "fsdp", "megatron", "nemo"}, optional
        Framework whose settings `shard`, `recompute`, `gradient_dtype`, `kernels` and `overlap` have where they are not
        given: :data:`iomodel.planning.training.strategy.FRAMEWORKS`. Without one they are "parameters", "none", "fp32",
        "fused", and all but "experts".
    shard : {"none", "optimizer", "gradients", "parameters"}, optional
        What replicas divide, each with all before it: ZeRO stages 0 to 3, the last of which is FSDP.
    recompute : {"none", "attention", "selective", "early-stop", "full"}, optional
        What backward passes run again: nothing; attention (selective recomputation of Megatron-LM); every second
        product and all elementwise kernels (that of torchtitan); the forward pass of each layer up to its last product
        (PyTorch, `torch.utils.checkpoint` without reentry); or that pass (Megatron-LM).
    recompute_layers : int, optional
        Layers of each stage that `recompute` is for, the first ones; by default all [-]. It is --recompute-num-layers
        of Megatron-LM with --recompute-method block.
    gradient_dtype : {"fp32", "bf16"}, optional
        Type in which gradients are kept and reduced: 18 or 16 bytes per weight with weights and optimizer.
    precision : {"bf16", "fp8"}, optional
        Type in which the linear layers multiply, forward and backward; the output layer and attention stay in bf16, and
        so does what is kept. bf16 by default.
    virtual_stages : int
        Parts of the model on each device of a pipeline, each with as many consecutive layers [-]. The bubble is divided
        by their number; sends multiply, and so does memory, by 1 + (p - 1) / (p v) on the first of p devices.
    kernels : {"fused", "eager", "operators"}, optional
        Elementwise kernels and optimizer: fused, as in Megatron-LM, Transformer Engine and after `torch.compile`; one
        for each, with those of libraries for norms, activations and rotary embeddings; or one for each operator of
        PyTorch, as where Llama is written in these.
    overlap : collection of {"data", "tensor", "pipeline", "context", "experts"}, optional
        Collectives that run beside products: those of data parallelism (FSDP; --overlap-grad-reduce and
        --overlap-param-gather of Megatron-LM), those of tensor parallelism (--tp-comm-overlap), sends between virtual
        stages, keys and values of a divided sequence beside attention, and, if asked for, the exchange of experts
        (DualPipe; --overlap-moe-expert-parallel-comm).
    attention_algorithm : str or Algorithm, optional
        Attention with a backward pass that keeps no scores, such as flash2; by default the fastest of the device.
    attention_implementation : str, optional
        Its kernels: one of :func:`iomodel.list_implementations`.
    nodes_per_token : int, optional
        Most nodes whose experts a token visits, as node-limited routing sets (4 in DeepSeek-V3): its row then crosses
        the network once for each, and in fp8 at that precision (DeepEP). By default it crosses once for each expert.
    measured : float, optional
        A measured rate of one device, whose utilisation is told beside the predicted one [tokens/s].
    parameters : Parameters
        Parameters of the time model other than the device's figures.

    Raises
    ------
    UnknownNameError, InputError
        A name is unknown; batch or layers do not divide; the model has recurrent or sparse layers; the device has no
        products of the precision.
    SpecError
        The device lacks a figure: a matrix peak of bf16, a bandwidth, a link where devices share the work.

    References
    ----------
    Korthikanti et al. 2022, arXiv:2205.05198 (activations, sequence parallelism); Narayanan et al. 2021,
    arXiv:2104.04473 (pipeline); Rajbhandari et al. 2020, arXiv:1910.02054 (sharding).

    Examples
    --------
    >>> asked = {"batch": 64, "seq_len": 4096, "data_parallel": 8, "recompute": "full"}
    >>> step = train_step("llama-3-8b", "h100-sxm5", **asked)
    >>> 0.3 < step.mfu < 0.6, step.fits
    (True, True)
    >>> round(train_step("llama-3.1-8b", "h100-sxm5", batch=1, seq_len=8192, measured=9800).measured_mfu, 2)
    0.51
    """
    spec, device = as_model(model), as_device(hardware)
    sequences, length = as_integer("batch", batch), as_integer("seq_len", seq_len)
    passed = as_integer("micro_batch", micro_batch)
    shared = Layout() if layout is None else as_layout(layout)
    if layout is None or not shared.decided:

        def step(layout: Layout, replicas: int) -> TrainingStep:
            return train_step(
                spec,
                device,
                batch=sequences,
                seq_len=length,
                micro_batch=passed,
                data_parallel=replicas,
                layout=layout,
                framework=framework,
                shard=shard,
                recompute=recompute,
                recompute_layers=recompute_layers,
                gradient_dtype=gradient_dtype,
                precision=precision,
                virtual_stages=virtual_stages,
                kernels=kernels,
                overlap=overlap,
                attention_algorithm=attention_algorithm,
                attention_implementation=attention_implementation,
                nodes_per_token=nodes_per_token,
                measured=measured,
                parameters=parameters,
            )

        given = None if data_parallel is None else as_integer("data_parallel", data_parallel)
        return fastest(step, spec, device, shared, None if count is None else as_integer("count", count), given)
    replicas = _replicas(count, data_parallel, shared)
    as_parameters(parameters)
    precision = "bf16" if precision is None else precision
    strategy = as_strategy(
        framework,
        shard=shard,
        recompute=recompute,
        gradient_dtype=gradient_dtype,
        precision=precision,
        kernels=kernels,
        overlap=overlap,
    )
    algorithm = None if attention_algorithm is None else as_trained(attention_algorithm)
    chunks = as_integer("virtual_stages", virtual_stages)
    groups = replicas * shared.data_parallel
    check_step(spec, shared, sequences, passed * groups, chunks)
    check_precision(precision, device)
    shared = with_nodes(shared, device, replicas * shared.devices)
    if replicas * shared.devices > 1:
        link(device)
    micro_batches = sequences // (passed * groups)
    again = _again(spec, shared, strategy.recompute, recompute_layers)
    whole, divided = shared, shared.context_parallel
    if length % divided:
        raise InputError(
            f"seq_len: {length} given with context_parallel = {divided}; allowed: a multiple, such as "
            f"{length // divided * divided or divided}"
        )
    shared, holders, piece = shared.model_copy(update={"context_parallel": 1}), replicas * divided, length // divided
    limit = None if nodes_per_token is None else as_integer("nodes_per_token", nodes_per_token)
    common = {
        "clock": training_clock(device, parameters),
        "layout": shared,
        "batch": passed,
        "q_len": piece,
        "kv_len": piece,
        "nodes_per_token": limit,
        "sequence_ranks": divided,
        **_settings(spec, shared, strategy, passed * piece),
    }
    kernel = attention_implementation
    ahead = Forward(attention=_forward_clock(device, parameters, algorithm, kernel), **common)
    backwards = PassClock(device, parameters, algorithm, direction="backward", implementation=kernel)
    behind = Backward(attention=backwards, **common)
    stages = stages_of(spec, shared, again)
    border = _border(device, shared, passed * piece * spec.hidden_size * WEIGHT)
    built = [_stage(spec, stage, ahead, behind, strategy.recompute, border, chunks) for stage in stages]
    memories = [
        stage_memory(
            spec, stage, passed * piece, shared, holders, strategy,
            _in_flight(micro_batches, len(stages), stage.place, chunks),
        )
        for stage in stages
    ]  # fmt: skip
    timed = [stage_times(stage, strategy, micro_batches, chunks, holders, ahead) for stage in built]
    longest = max(timed, key=lambda times: sum(times.values()))
    alone = replace(strategy, overlap=())
    serial = (sum(stage_times(stage, alone, micro_batches, chunks, holders, ahead).values()) for stage in built)
    shards = shared.ranks * divided * micro_batches * replicas
    flops = sum(span.flops for stage in built for _, _, span in stage.forward) * shards
    repeated = sum(span.flops for stage in built for _, _, span in stage.again) * shards
    return TrainingStep(
        model=spec,
        hardware=device,
        layout=whole,
        batch=sequences,
        seq_len=length,
        micro_batch=passed,
        data_parallel=replicas,
        **vars(strategy),
        recompute_layers=recompute_layers,
        virtual_stages=chunks,
        attention_algorithm=None if algorithm is None else name_of(algorithm),
        attention_implementation=attention_implementation,
        seconds=sum(longest.values()),
        serial_seconds=max(serial),
        breakdown=FrozenDict(longest),
        memory=max(memories, key=lambda memory: memory.total),
        model_flops=3 * flops,
        recomputed_flops=repeated,
        measured=None if measured is None else as_real("measured", measured),
    )


def _settings(model: ModelSpec, layout: Layout, strategy: Strategy, tokens: int) -> dict[str, Any]:
    """Return the settings of kernels that a model and a strategy give."""
    return {
        **dict.fromkeys(("dtype", "kv_dtype"), "bf16"),
        **dict.fromkeys(("linear_dtype", "weight_dtype", "expert_dtype"), strategy.precision),
        "hidden": model.hidden_size,
        "page_size": None,
        "released": False,
        "narrow": frozenset(),
        "routing": _balanced(model, layout, tokens),
        "fused": strategy.fused,
        "operators": strategy.kernels == "operators",
        "rms": not any(layer.norm_bias for layer in model.layers),
    }


def _stage(
    model: ModelSpec, stage: StageLayers, ahead: Forward, behind: Backward, recompute: str, border: float, chunks: int
) -> Stage:
    """List the kernels of one micro-batch on a stage."""
    first, last = stage.place == 0, stage.place == ahead.layout.pipeline_parallel - 1
    forward: list[Part] = []
    repeated: list[Part] = []
    backward: list[Part] = []
    for layer, times in Counter(stage.layers).items():
        parts = pass_of_layer(layer, ahead)
        forward += parts * times
        repeated += recomputed(parts, recompute, layer) * stage.layers[: stage.again].count(layer)
        backward += pass_of_layer(layer, behind) * times
    for ends, at in ((forward, ahead), (backward, behind)):
        ends += [at.rowwise("embedding", "embedding", at.hidden)] * first
        ends += list(loss_parts(model.vocab_size, at)) if last else []
    sends = border * (2 * chunks - first - last)
    return Stage(forward, repeated, backward, len(stage.layers), sends, stage.weights)


def _replicas(count: int | None, data_parallel: int | None, layout: Layout) -> int:
    """Return the replicas that are given, or those of so many devices."""
    given = None if data_parallel is None else as_integer("data_parallel", data_parallel)
    if count is None:
        return given or 1
    devices, each = as_integer("count", count), layout.devices
    if devices % each or given not in (None, devices // each):
        nearest = each * (given or max(1, devices // each))
        raise InputError(
            f"count: {devices} given; allowed: {nearest}, or another multiple of the {each} devices of a replica"
            if given is None
            else f"count: {devices} given with data_parallel = {given}; allowed: {nearest}, or one of both alone"
        )
    return devices // each


def _again(spec: ModelSpec, layout: Layout, recompute: str, layers: int | None) -> int:
    """Return the layers of a stage that run again in backward passes [-]."""
    most = -(-len(spec.layers) // layout.pipeline_parallel)
    if recompute == "none":
        if layers is not None:
            raise InputError(
                f"recompute_layers: {shown(layers)} given with recompute = 'none'; allowed: with 'full' or 'early-stop'"
            )
        return 0
    count = most if layers is None else as_integer("recompute_layers", layers)
    if count > most:
        raise InputError(f"recompute_layers: {count} given; allowed: up to {most}, the layers of a stage")
    return count


def _balanced(spec: ModelSpec, layout: Layout, tokens: int) -> list[int] | None:
    """Return the rows of each expert if all have as many, as training balances them; None for experts of two kinds."""
    kinds = {
        (layer.mlp.experts, layer.mlp.experts_per_token)
        for layer in spec.layers
        if layer.mlp is not None and layer.mlp.experts
    }
    if len(kinds) != 1:
        return None
    experts, chosen = kinds.pop()
    return [-(-tokens * layout.data_parallel * chosen // experts)] * experts


def _forward_clock(
    device: Hardware, parameters: Parameters, algorithm: Algorithm | None, implementation: str | None
) -> AttentionClock:
    """Return the timer of the requested algorithm, by default of the fastest."""
    if implementation is None:
        return attention_clock(device, parameters, algorithm)
    if algorithm is None:
        raise InputError(
            f"attention_implementation: {shown(implementation)} given; allowed: with attention_algorithm, as in flash2"
        )
    find_implementation(algorithm, implementation)
    return PassClock(device, parameters, algorithm, implementation=implementation)


def _in_flight(micro_batches: int, stages: int, place: int, chunks: int) -> Fraction:
    """Count the micro-batches whose activations a stage holds at once, in parts of its layers [-].

    Narayanan et al. 2021, section 2.2; Korthikanti et al. 2022, section 4.2.3, for the first stage.

    >>> _in_flight(64, 8, 0, 1), _in_flight(64, 8, 7, 1), _in_flight(64, 8, 0, 4) == 8 * (1 + Fraction(7, 8 * 4))
    (Fraction(8, 1), Fraction(1, 1), True)
    """
    ahead = stages - place - 1
    held = ahead + 1 if chunks == 1 else 2 * ahead + (chunks - 1) * stages + 1
    return Fraction(min(held, micro_batches * chunks), chunks)


def _border(device: Hardware, layout: Layout, size: int) -> float:
    """Time the rows that one rank passes to the next stage, over the network if stages are on several nodes [s]."""
    if layout.pipeline_parallel == 1:
        return 0.0
    network = layout if layout.sends[1] else None
    return send(device, -(-size // layout.tensor_parallel), network).seconds
