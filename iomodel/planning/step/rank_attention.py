"""Time of attention among ranks that divide a sequence: calls of the busiest rank, messages, and their overlap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from iomodel.algorithms._ranks import SCHEDULES
from iomodel.counting.rank_calls import RankCalls
from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.models.attention_layer import AttentionLayer
from iomodel.nests.ranks import Send
from iomodel.planning.step.attention_clock import AttentionClock
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.links import all_to_all, send
from iomodel.planning.step.setting import Part, StepSetting
from iomodel.studies.estimate import estimate
from iomodel.timing.parameters import Parameters
from iomodel.timing.span import Span
from iomodel.workloads.attention import Attention
from iomodel.workloads.elementwise import Elementwise


class TimedBlock(NamedTuple):
    """Equal calls of one rank: the call, their number, and time and traffic of one, with the merge that follows it."""

    call: Attention
    times: int
    span: Span


class RankTimes(NamedTuple):
    """Time of the calls of the busiest rank, of its messages, and of both as far as they overlap [s]."""

    attention: float
    messages: float
    total: float


def timed_blocks(calls: RankCalls, clock: AttentionClock, parameters: Parameters) -> tuple[TimedBlock, ...]:
    """Time the calls of the busiest rank; on a ring each after the first is merged with what its rows have seen."""
    return tuple(_timed_blocks(calls, clock, parameters))


def _timed_blocks(calls: RankCalls, clock: AttentionClock, parameters: Parameters) -> Iterator[TimedBlock]:
    first = True
    for times, call in calls.blocks(calls.busiest):
        span = clock.fastest(call)[1]
        if not calls.schedule.overlaps:
            yield TimedBlock(call, times, span)
            continue
        if first:
            yield TimedBlock(call, 1, span)
        if times > first:
            rows = Elementwise(rows=call.batch * call.heads * call.q_len, channels=call.value_dim, dtype=call.dtype)
            merge = estimate("merge_states", rows, clock.device, parameters=parameters)
            merged = span.hbm_bytes + merge.dram_bytes[1], span.requested_bytes + merge.requested_bytes
            yield TimedBlock(call, times - first, Span(span.seconds + merge.seconds, *merged, span.flops, ()))
        first = False


def rank_times(calls: RankCalls, blocks: tuple[TimedBlock, ...], device: Hardware, layout: Layout) -> RankTimes:
    """Time attention, messages, and both together; `layout` has the nodes of the ranks."""
    listed = [(block.times, block.span.seconds) for block in blocks]
    attention = sum(times * seconds for times, seconds in listed)
    if calls.ranks == 1:
        return RankTimes(attention, 0.0, attention)
    if not calls.schedule.overlaps:
        sent = sum(_exchange(calls, group, device, layout) for group in _groups(calls))
        return RankTimes(attention, sent, attention + sent)
    largest = int(max(calls.bytes_of(calls.shards_of_cache)))
    between = layout if layout.nodes(calls.ranks) > 1 else None  # a neighbour of some rank is in another node
    message = send(device, largest, between).seconds
    idle = calls.ranks - sum(times for times, _ in listed)
    last = 0.0 if idle else listed[-1][1]
    overlapped = sum(times * max(message, seconds) for times, seconds in listed) + idle * message
    # Nothing is sent in the last turn.
    return RankTimes(attention, (calls.ranks - 1) * message, overlapped - max(message, last) + last)


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


def context_parts(attention: AttentionLayer, at: StepSetting) -> Iterator[Part]:
    """List attention and messages of a prefill among ranks, by the fastest method that takes the call."""
    types = at.attention_dtype, at.kv_dtype, at.page_size
    layout = at.layout
    call = attention.call(at.batch, at.kv_len, at.kv_len, *types).shard(layout.tensor_parallel)  # type: ignore[arg-type]
    node = layout.devices_per_node
    beside = None if node is None else max(1, node // layout.tensor_parallel)
    nodes = Layout(devices_per_node=beside, network_bandwidth=layout.network_bandwidth)
    best: tuple[RankTimes, str, tuple[TimedBlock, ...]] | None = None
    refused: InputError | None = None
    for name, schedule in SCHEDULES.items():
        try:
            calls = RankCalls(schedule, call, layout.context_parallel)
        except InputError as error:
            refused = error
            continue
        blocks = timed_blocks(calls, at.attention, at.attention.parameters)
        times = rank_times(calls, blocks, at.clock.device, nodes)
        if best is None or times.total < best[0].total:
            best = times, name, blocks
    if best is None:
        raise refused or InputError("context_parallel: no method takes the call")
    times, name, blocks = best
    moved, requested, flops = (
        sum(block.times * counts for block, counts in zip(blocks, column, strict=True))
        for column in zip(*((b.span.hbm_bytes, b.span.requested_bytes, b.span.flops) for b in blocks), strict=True)
    )
    yield f"attention ({name})", "attention", Span(times.attention, moved, requested, flops, ())
    exposed = times.total - times.attention
    yield f"messages ({name})", "communication", Span(exposed, 0, 0, 0, (("network", times.messages),))
