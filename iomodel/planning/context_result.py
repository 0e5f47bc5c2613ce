"""Result of context parallelism: bytes, messages, memory and times of one attention call among ranks, by method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from iomodel.common.display import ANSWER, Mark, Result, Table
from iomodel.common.results import Record, column
from iomodel.common.tabular import Tabular
from iomodel.devices.device import Hardware
from iomodel.planning.formatting import seconds
from iomodel.workloads.attention import Attention


@dataclass(frozen=True)
class Block(Record):
    """Equal calls of attention of one rank: the call, their number, and the time of one, with its merge [s]."""

    call: Attention
    times: int
    seconds: float | None


@dataclass(frozen=True)
class RankWork(Record):
    """Work of the busiest rank under one method.

    Attributes
    ----------
    method, sharding : str
        "ring", "all_gather" or "ulysses"; rows of each rank: "contiguous", "zigzag" or "striped".
    rank : int
        The rank whose calls see most pairs, counted from 0 [-].
    sent, received : mapping of tensor name to int
        Elements that leave and reach this rank [elements].
    sent_bytes, received_bytes : int
        The most bytes that leave, and that reach, any one rank [B].
    messages : int
        Messages that leave each rank [-].
    shard_bytes, buffer_bytes : int
        Q, K, V and O of the rank with most rows; what any one rank reserves for rows of others [B].
    share : float
        Pairs that this rank sees, over those of a mean rank [-].
    blocks : tuple of Block
        Calls of attention of the rank, in the order in which they run.
    attention_seconds, message_seconds, seconds : float or None
        Time of the blocks, of the messages, and of both as far as they overlap; None without a device [s].
    """

    method: str = field(metadata=column("method"))
    sharding: str = field(metadata=column("sharding"))
    rank: int
    sent: Mapping[str, int]
    received: Mapping[str, int]
    sent_bytes: int = field(metadata=column(">sent [B]", ","))
    received_bytes: int
    messages: int = field(metadata=column(">messages", ","))
    shard_bytes: int
    share: float = field(metadata=column(">work over the mean", ".2f"))
    buffer_bytes: int = field(metadata=column(">buffers [B]", ","))
    blocks: tuple[Block, ...]
    attention_seconds: float | None = field(metadata=column(">attention", seconds))
    message_seconds: float | None = field(metadata=column(">sending", seconds))
    seconds: float | None = field(metadata=column(">time", seconds))


@dataclass(frozen=True)
class ContextParallel(Result, Tabular):
    """One attention call among ranks that divide its sequence.

    Attributes
    ----------
    workload : Attention
        The call on all ranks.
    ranks : int
        Number of ranks [-].
    hardware : Hardware or None
        The device of each rank.
    methods : tuple of RankWork
        Work of the busiest rank, by method.
    refused : mapping of method to str
        Methods that do not take the call, and why.
    fewest_bytes, fastest : str or None
        The method whose busiest sender sends least; the method of least time, None without a device.
    """

    derived = ("fewest_bytes", "fastest")

    workload: Attention
    ranks: int
    hardware: Hardware | None
    methods: tuple[RankWork, ...]
    refused: Mapping[str, str]

    @property
    def fewest_bytes(self) -> str:
        """Method whose busiest sender sends the fewest bytes; of several, the first."""
        return min(self.methods, key=lambda work: work.sent_bytes).method

    @property
    def fastest(self) -> str | None:
        """Method of least time; None without a device."""
        timed = [(work.seconds, place) for place, work in enumerate(self.methods) if work.seconds is not None]
        return self.methods[min(timed)[1]].method if timed else None

    def __getitem__(self, method: str) -> RankWork:
        return next(work for work in self.methods if work.method == method)

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per method: bytes, messages and times."""
        names = ("method", "sharding", "sent_bytes", "received_bytes", "messages", "shard_bytes", "buffer_bytes")
        times = ("attention_seconds", "message_seconds", "seconds")
        return [{name: getattr(work, name) for name in (*names, *times)} for work in self.methods]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        device = "" if self.hardware is None else f" x {self.hardware.name}"
        title = f"Attention of {self.workload.q_len:,} tokens among {self.ranks:,}{device}, the busiest rank of each"
        timed = () if self.hardware is None else ("attention_seconds", "message_seconds", "seconds")
        names = ("method", "sharding", "share", "sent_bytes", "messages", "buffer_bytes", *timed)
        best = self.fastest or self.fewest_bytes
        table = Table.of(title, RankWork, self.methods, [f"{name}: {why}" for name, why in self.refused.items()], names)
        marked = [[Mark(cell, ANSWER) if cell == best else cell for cell in row] for row in table.rows]
        return [replace(table, rows=marked)]
