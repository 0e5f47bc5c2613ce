"""Context parallelism: one attention call whose sequence is divided among ranks."""

from __future__ import annotations

from typing import Unpack

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms._ranks import SCHEDULES
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.option_groups import check_names
from iomodel.common.validation import as_integer
from iomodel.counting.messages import messages as messages  # noqa: PLC0414 - a public name of this room
from iomodel.counting.rank_calls import RankCalls
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, UnknownNameError
from iomodel.nests.ranks import SHARDINGS, Sharding
from iomodel.planning.context_result import Block, ContextParallel, RankWork
from iomodel.planning.service_options import NodeOptions, takes
from iomodel.planning.step.attention_clock import AttentionClock, attention_clock
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.rank_attention import RankTimes, rank_times, timed_blocks
from iomodel.planning.step.step_arguments import as_parameters
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.workloads.attention import Attention, as_attention


@strict
@takes(NodeOptions)
def context_parallel(
    workload: Attention,
    ranks: int,
    hardware: Hardware | str | None = None,
    *,
    method: str | None = None,
    sharding: Sharding | None = None,
    attention_algorithm: AlgorithmLike | None = None,
    parameters: Parameters = DEFAULT,
    **nodes: Unpack[NodeOptions],
) -> ContextParallel:
    """Count and time an attention call whose sequence is divided among ranks, by method.

    A ring passes K and V on while ranks attend to what they have (ring attention); an all-gather sends all K and V
    ahead of attention; Ulysses exchanges rows for heads and back. Bytes and messages are exact, the ragged last shard
    included. The time of a turn of the ring is the longer of its attention and its message; the messages of other
    methods overlap with nothing. Every rank waits for the busiest.

    Parameters
    ----------
    workload : Attention
        The forward call on all ranks: full or causal; with Ulysses any mask.
    ranks : int
        Ranks that divide the sequence [-].
    hardware : Hardware or str, optional
        The device of each rank, with a link; without it only counts are given.
    method : {"ring", "all_gather", "ulysses"}, optional
        By default each that takes the call.
    sharding : {"contiguous", "zigzag", "striped"}, optional
        Rows of each rank: a chunk; a chunk from either end of the sequence, or every R-th row, which divide causal work
        evenly. By default zigzag for a causal mask, contiguous otherwise and with Ulysses.
    attention_algorithm : str or Algorithm, optional
        As for :func:`iomodel.step`.
    parameters : Parameters
        Parameters of the time model other than the device's figures.
    **nodes

    Raises
    ------
    UnknownNameError, InputError
        A name is unknown; no method takes the call: a rank would have no token, heads do not divide.
    SpecError
        The device lacks a figure: a link, a matrix peak of the dtype, a bandwidth.

    References
    ----------
    Liu et al. 2023, arXiv:2310.01889 (ring); Brandon et al. 2023, arXiv:2311.09431 (stripes); Jacobs et al. 2023,
    arXiv:2309.14509 (Ulysses); Llama 3, arXiv:2407.21783, section 3.3.2 (all-gather, zigzag).

    Examples
    --------
    >>> llama = Attention(heads=32, kv_heads=8, q_len=131072, head_dim=128, mask="causal")
    >>> shared = context_parallel(llama, 8)
    >>> {work.method: work.sent_bytes for work in shared.methods}  # each rank, one layer
    {'ring': 469762048, 'all_gather': 469762048, 'ulysses': 293601280}
    """
    call, count = as_attention(workload), as_integer("ranks", ranks)
    device = None if hardware is None else as_device(hardware)
    check_names(context_parallel, nodes)
    layout, devices_per_node = Layout(**nodes), nodes.get("devices_per_node")
    if devices_per_node is not None and count % devices_per_node and devices_per_node % count:
        raise InputError(
            f"devices_per_node: {devices_per_node} given with ranks = {count}; allowed: a multiple or a divisor of it"
        )
    as_parameters(parameters)
    for field, name, known in (("method", method, tuple(SCHEDULES)), ("sharding", sharding, SHARDINGS)):
        if name is not None and (not isinstance(name, str) or name not in known):
            raise UnknownNameError(field, name, known)
    algorithm = None if attention_algorithm is None else find_algorithm(attention_algorithm)
    clock = None if device is None else attention_clock(device, parameters, algorithm)
    methods, refused = [], {}
    for name, schedule in SCHEDULES.items():
        if method is not None and name != method:
            continue
        try:
            calls = RankCalls(schedule, call, count, sharding)
        except InputError as error:
            if method is not None:
                raise
            refused[name] = error
            continue
        methods.append(_work(calls, clock, layout, parameters))
    if not methods:
        raise next(iter(refused.values()))
    reasons = FrozenDict({name: str(error) for name, error in refused.items()})
    return ContextParallel(call, count, device, tuple(methods), reasons)


def _work(calls: RankCalls, clock: AttentionClock | None, layout: Layout, parameters: Parameters) -> RankWork:
    """Count one method, and time it if there is a clock."""
    messages, rank = calls.messages, calls.busiest
    blocks = tuple(Block(call, number, None) for number, call in calls.blocks(rank))
    times: RankTimes | None = None
    if clock is not None:
        timed = timed_blocks(calls, clock, parameters)
        times = rank_times(calls, timed, clock.device, layout)
        blocks = tuple(Block(block.call, block.times, block.span.seconds) for block in timed)
    return RankWork(
        method=calls.schedule.name,
        sharding=calls.sharding,
        rank=rank,
        sent=FrozenDict(calls.tensors(messages.sent, rank)),
        received=FrozenDict(calls.tensors(messages.received, rank)),
        sent_bytes=max(calls.bytes_of(messages.sent)),
        received_bytes=max(calls.bytes_of(messages.received)),
        messages=sum(calls.tensors(messages.messages, rank).values()),
        shard_bytes=max(calls.bytes_of(calls.shards)),
        buffer_bytes=max(calls.bytes_of(messages.buffers)),
        share=calls.share,
        blocks=blocks,
        attention_seconds=None if times is None else times.attention,
        message_seconds=None if times is None else times.messages,
        seconds=None if times is None else times.total,
    )
