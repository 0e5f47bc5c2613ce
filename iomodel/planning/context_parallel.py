"""Context parallelism: one attention call whose sequence is divided among ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms._ranks import SCHEDULES
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer
from iomodel.counting.rank_calls import RankCalls
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.nests.ranks import SHARDINGS, Send, Sharding
from iomodel.planning.context_result import Block, ContextParallel, RankWork
from iomodel.planning.step.attention import AttentionClock, attention_clock
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.links import all_to_all, send
from iomodel.studies.estimate import estimate
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.elementwise import Elementwise


def context_parallel(
    workload: Attention,
    ranks: int,
    hardware: Hardware | str | None = None,
    *,
    method: str | None = None,
    sharding: Sharding | None = None,
    devices_per_node: int | None = None,
    network_bandwidth: float | None = None,
    attention_algorithm: str | None = None,
    parameters: Parameters = DEFAULT,
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
    devices_per_node : int, optional
        Devices of a node, which exchange by their own links; nodes exchange by a network [-].
    network_bandwidth : float, optional
        Bandwidth of the network for each device, in one direction [B/s]; that of :class:`iomodel.Layout` by default.
    attention_algorithm : str, optional
        One of :func:`iomodel.list_algorithms`; by default the fastest of flash3, split_kv and flash2.
    parameters : Parameters
        Parameters of the time model other than the device's figures.

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
    layout = Layout(devices_per_node=devices_per_node, network_bandwidth=network_bandwidth)
    if devices_per_node is not None and count % devices_per_node and devices_per_node % count:
        raise InputError(
            f"devices_per_node: {devices_per_node} given with ranks = {count}; allowed: a multiple or a divisor of it"
        )
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.Parameters")
    for field, name, known in (("method", method, tuple(SCHEDULES)), ("sharding", sharding, SHARDINGS)):
        if name is not None and (not isinstance(name, str) or name not in known):
            raise UnknownNameError(field, name, known)
    algorithm = None if attention_algorithm is None else find_algorithm(attention_algorithm).name
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
    sent = calls.tensors(messages.sent, rank)
    times: dict[str, Any] = dict.fromkeys(("attention_seconds", "message_seconds", "seconds"))
    blocks = tuple(Block(call, number, None) for number, call in calls.blocks(rank))
    if clock is not None:
        blocks = tuple(_timed(calls, clock, parameters))
        times = _times(calls, blocks, clock.device, layout)
    return RankWork(
        method=calls.schedule.name,
        sharding=calls.sharding,
        rank=rank,
        sent=FrozenDict(sent),
        received=FrozenDict(calls.tensors(messages.received, rank)),
        sent_bytes=max(calls.bytes_of(messages.sent)),
        received_bytes=max(calls.bytes_of(messages.received)),
        messages=sum(calls.tensors(messages.messages, rank).values()),
        shard_bytes=max(calls.bytes_of(calls.shards)),
        buffer_bytes=max(calls.bytes_of(messages.buffers)),
        blocks=blocks,
        **times,
    )


def _timed(calls: RankCalls, clock: AttentionClock, parameters: Parameters) -> Iterator[Block]:
    """Time the blocks of the busiest rank; on a ring each after the first is merged with what its rows have seen."""
    first = True
    for times, call in calls.blocks(calls.busiest):
        seconds = clock.fastest(call)[1].seconds
        if not calls.schedule.overlaps:
            yield Block(call, times, seconds)
            continue
        rows = Elementwise(rows=call.batch * call.heads * call.q_len, channels=call.value_dim, dtype=call.dtype)
        merged = seconds + estimate("merge_states", rows, clock.device, parameters=parameters).seconds
        if first:
            yield Block(call, 1, seconds)
        if times > first:
            yield Block(call, times - first, merged)
        first = False


def _times(calls: RankCalls, blocks: tuple[Block, ...], device: Hardware, layout: Layout) -> dict[str, float]:
    """Time attention, messages, and both as far as they overlap [s]."""
    listed = [(block.times, block.seconds or 0.0) for block in blocks]
    attention = sum(times * seconds for times, seconds in listed)
    if calls.ranks == 1:
        return {"attention_seconds": attention, "message_seconds": 0.0, "seconds": attention}
    if not calls.schedule.overlaps:
        sent = sum(_exchange(calls, group, device, layout) for group in _groups(calls))
        return {"attention_seconds": attention, "message_seconds": sent, "seconds": attention + sent}
    turns = calls.ranks - 1
    largest = max(calls.bytes_of(calls.shards_of_cache))
    between = layout if layout.nodes(calls.ranks) > 1 else None  # a neighbour of some rank is in another node
    message = send(device, int(largest), between).seconds
    idle = calls.ranks - sum(times for times, _ in listed)
    last = 0.0 if idle else listed[-1][1]
    overlapped = sum(times * max(message, seconds) for times, seconds in listed) + idle * message
    return {
        "attention_seconds": attention,
        "message_seconds": turns * message,
        "seconds": overlapped - max(message, last) + last,  # nothing is sent in the last turn
    }


def _groups(calls: RankCalls) -> Iterator[tuple[str, ...]]:
    """Group the tensors that are sent together: before attention, and after it."""
    group: list[str] = []
    for statement in calls.schedule.body:
        if isinstance(statement, Send):
            group.append(statement.tensor.name)
        else:
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)


def _exchange(calls: RankCalls, group: tuple[str, ...], device: Hardware, layout: Layout) -> float:
    """Time the messages of some tensors from each rank to all others [s]."""
    sent = {name: count for name, count in calls.messages.sent.items() if name in group}
    most = int(max(calls.bytes_of(sent)))
    return all_to_all(device, calls.ranks, -(-most * calls.ranks // (calls.ranks - 1)), layout).seconds
