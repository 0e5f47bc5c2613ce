"""The best tiles of a call on a device or under a budget, with a certificate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from iomodel.algorithms import AlgorithmLike
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.quantities import quantity
from iomodel.common.validation import finite
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.nests.implementation import TEXTBOOK, Implementation
from iomodel.solving.answer import answer
from iomodel.solving.question import Question
from iomodel.solving.solution import Solution
from iomodel.workloads.workload import Workload


@strict
def solve(
    algorithm: AlgorithmLike,
    workload: Workload,
    hardware: Hardware | str | None = None,
    *,
    implementation: str | Implementation | None = None,
    objective: Literal["traffic", "time"] | None = None,
    sram_bytes: int | str | None = None,
    sram_elements: int | None = None,
    alignment: int | None = None,
    min_block_kv: int | None = None,
    epsilon: float = 0.0,
    min_blocks_per_sm: int = 1,
    top: int = 1,
    **options: Any,
) -> Solution:
    """Find the best tiles of a call: the fastest that a device's kernels can run, or those of proven least traffic.

    On a device the tiles are laid out as the kernels of an implementation lay them out: shared memory, registers,
    threads and the shape of the matrix instructions bind, and warps, stages and the options that the kernels choose
    per call (splits, packing of grouped heads) are chosen too. The objective is then the time of the model of
    :func:`iomodel.estimate`, over every tile that fits. Of choices within 0.5 % of the fastest, which the model does
    not tell apart, the one that the library ships is taken, else the one that leaves the fewest SMs idle.

    A call in both directions has the tiles of both passes, each with its fastest launch.

    Under a bare budget, and where no implementation runs the call on the device, all live data of a thread block share
    one memory and the objective is the traffic, with proof. On such a device the numbers that the algorithm searches
    (splits) and packing are the fastest at these tiles, and the tiles of an approximation, and of a workload other than
    attention, are the fastest that a search near them finds, as their traffic decides little; ``objective="traffic"``
    gives those of the proof. Every integer tile that is a multiple of `alignment`
    competes, up to the first that covers its axis. Of tiles with equal traffic the one with the larger block_kv wins,
    then the smaller footprint, then the smaller block_q; of a linear layer block_n and block_m in their place, and
    block_k, which costs no traffic, is as small as it may be.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`. Standard attention is solved as tiled products.
    workload : Attention, VarlenAttention or Linear
        The call.
    hardware : Hardware or str, optional
        A device.
    implementation : str or Implementation, optional
        The kernels that run the algorithm: one of :func:`iomodel.list_implementations`, by default those of
        :func:`iomodel.estimate` without tiles. ``"textbook"`` is one memory for all live data of a block.
    objective : {"time", "traffic"}, optional
        The quantity minimised: the time, or the bytes that blocks request, with proof. The time by default, and the
        traffic with the textbook's implementation or an `epsilon`. The traffic of a linear layer is minimised on the
        textbook's machine alone; its time over the common tiles of libraries and those that a search near them finds.
    sram_bytes : int or str, optional
        On-chip memory, a bare budget in place of a device [B]; with a unit, such as "227 KiB", too.
    sram_elements : int, optional
        On-chip memory in elements, the papers' M.
    alignment : int, optional
        Tiles of the textbook's machine are multiples of it [rows]: that of the device (16) by default, 1 for a bare
        budget. It selects the textbook's implementation.
    min_block_kv : int, optional
        The least block_kv allowed [rows]; a tile that covers all keys always is.
    epsilon : float
        The share of the least traffic that may be given up for the largest block_kv [-].
    min_blocks_per_sm : int
        With an implementation, the least number of blocks per SM [-].
    top : int
        With the objective "time", the number of choices in the solution's `ranked` [-].
    **options
        Options of the algorithm, and ``packed=True``. The implementation chooses those that are not given and that it
        searches.

    Raises
    ------
    InfeasibleError
        No tile fits; its `least` is the smallest feasible budget.
    UnknownNameError, InputError
        An unknown name; a value out of range; not exactly one budget; an implementation that does not run the call on
        the device.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(batch=2, heads=16, q_len=8192, head_dim=128)
    >>> s = iomodel.solve("flash2", w, "a100-sxm4-80gb")
    >>> s.implementation, dict(s.tiles)
    ('flash-attention-2', {'block_q': 128, 'block_kv': 64, 'warps': 4, 'stages': 1})
    >>> layer = iomodel.Linear(rows=4096, in_features=4096, out_features=4096)
    >>> dict(iomodel.solve("gemm", layer, "h100-sxm5").tiles)
    {'block_m': 128, 'block_n': 256, 'block_k': 64, 'warps': 8, 'stages': 4}
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> s = iomodel.solve("flash2", w, sram_elements=51200, lse=False)
    >>> dict(s.tiles), s.cost.hbm_elements, s.certificate.binding
    ({'block_q': 373, 'block_kv': 5}, 6291456, 'sram')
    """
    share = share_of(epsilon)
    if objective is not None and (not isinstance(objective, str) or objective not in ("traffic", "time")):
        raise UnknownNameError("objective", objective, ["traffic", "time"])
    given = {"sram_bytes": quantity("sram_bytes", sram_bytes), "sram_elements": sram_elements, "alignment": alignment}
    memory = FrozenDict({name: value for name, value in given.items() if value is not None})
    if implementation is None and (hardware is None or memory):
        implementation = TEXTBOOK
    question = Question.ask(
        algorithm, workload, hardware, implementation, options, memory=memory,
        min_block_kv=min_block_kv, min_blocks_per_sm=min_blocks_per_sm,
    )  # fmt: skip
    return answer(question, objective, share, top)


def share_of(epsilon: object) -> Fraction:
    """Return the share of traffic as an exact fraction, or raise InputError."""
    if not finite(epsilon) or epsilon < 0:
        raise InputError(f"epsilon: {shown(epsilon)} given; allowed: a share of traffic from 0 up, such as 0.05")
    return Fraction(str(epsilon))  # the decimal as written, not the nearest binary fraction
