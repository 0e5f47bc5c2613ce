"""Lower bound on the time of a whole PyTorch program, whatever its kernels and their fusion.

A program reads each byte of its inputs and parameters that it uses, writes each byte of its results, and computes its
products. Between them it may keep everything on the chip. So its time is at least the bytes over the bandwidth of the
memory, and at least the FLOPs over the peaks of their types, both of the datasheet.

FLOPs are those of the operators as they were recorded, of convolutions those of Winograd's algorithm: a program with
another algorithm, or one whose result does not depend on some of its operators, can do with fewer. Products of operands
that were widened count at the peak of the type that they were stored in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.counting.bounds import lower_bounds
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.rates import has_rates, product_rates, rates
from iomodel.errors import InputError, SpecError, shown_name
from iomodel.torch.moved_bytes import GATHERS, OVERWRITES, SCATTERS, results_of
from iomodel.torch.operator_call import TYPES, OperatorCall, TensorArgument, checked_calls
from iomodel.torch.operator_work import may_multiply, multiplying, product_type, work_of
from iomodel.torch.regions import covered

SPLIT = 3
"""Products of TF32 that make one of fp32, by the usual split of both factors into two parts (H. Ootomo and R. Yokota,
arXiv:2203.03341) [-]."""
WIDTHS: Mapping[str, int] = FrozenDict(fp32=4, tf32=4, bf16=2, fp16=2, fp8=1, int8=1)
"""Size of an element of each type of products [B]."""
NO_RESULT = "no result is alive at the end of the block, as in out = model(x); the bound is at least this"
"""Note on a program that writes nothing for its caller."""
LARGEST = 8
"""Products whose traffic is bounded by the capacity of the caches, those with the most FLOPs [-]."""


@dataclass(frozen=True)
class ProgramBound(Result):
    """The least time of a program on a device.

    Attributes
    ----------
    hardware : Hardware
        The device.
    read_bytes, written_bytes : int
        Inputs and parameters that are read, and results that are alive at the end, each byte once [B].
    gathered_bytes : int
        Part of what is read that gathers take, as if no two took the same row [B].
    capacity_bytes : int
        Traffic that a product or a call of attention needs at least, because its reuse exceeds the caches [B].
    warm_bytes : int
        Part of the bytes that may be in the last cache when the program begins and ends [B].
    flops : mapping of str to int
        Least FLOPs by the type of the products [FLOP].
    terms : mapping of str to float
        Time that each limit alone would take [s]: `memory`, `matrix`, and `fp32` outside the matrix units.
    least_memory : float
        The term of the memory if all rows that a gather takes are one row [s].
    at_least : tuple of str
        What the bound leaves out.
    seconds : float
        The bound [s].
    binds : str
        The limit that sets it.
    bytes : int
        Bytes behind the bound [B].
    """

    derived = ("seconds", "binds", "bytes")

    hardware: Hardware
    read_bytes: int
    written_bytes: int
    gathered_bytes: int
    capacity_bytes: int
    warm_bytes: int
    flops: Mapping[str, int]
    terms: Mapping[str, float]
    least_memory: float
    at_least: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The bound [s]."""
        return max(self.terms.values())

    @property
    def binds(self) -> str:
        """The limit that sets the bound."""
        return max(self.terms, key=lambda name: self.terms[name])

    @property
    def bytes(self) -> int:
        """Bytes that have to move between the memory and the chip [B]."""
        return max(0, max(self.read_bytes + self.written_bytes, self.capacity_bytes) - self.warm_bytes)

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        rows = [(name, f"{seconds * 1e6:,.1f}") for name, seconds in self.terms.items()]
        moved = [
            ("read", f"{self.read_bytes / 1e6:,.3f}"),
            ("of this by gathers, as different rows", f"{self.gathered_bytes / 1e6:,.3f}"),
            ("written", f"{self.written_bytes / 1e6:,.3f}"),
            ("at the capacity of the caches", f"{self.capacity_bytes / 1e6:,.3f}"),
            ("may stay in the last cache", f"{self.warm_bytes / 1e6:,.3f}"),
        ]
        return [
            Table(
                f"the program takes at least {self.seconds * 1e6:,.1f} us on {self.hardware.name}: {self.binds} binds",
                ("limit", ">time [us]"),
                rows,
            ),
            Table("bytes", ("", ">[MB]"), moved),
            Table("least FLOPs", ("type", ">GFLOP"), [(t, f"{flops / 1e9:,.3f}") for t, flops in self.flops.items()]),
            "FLOPs of the operators as recorded, of convolutions by Winograd's algorithm",
            *self.at_least,
        ]


@dataclass
class StorageUse:
    """Views of one storage that a program reads and writes."""

    outside: bool
    before: list[TensorArgument] = field(default_factory=list)
    after: list[TensorArgument] = field(default_factory=list)
    written: list[TensorArgument] = field(default_factory=list)
    taken: int = 0
    row: int = 0
    whole: int = 0
    scattered: int = 0
    kept: bool = False
    kept_bytes: int | None = None

    def read(self) -> tuple[int, int, int]:
        """Return the bytes read that the program did not write, those of gathers among them, and of one row [B]."""
        if not self.outside:
            return 0, 0, 0
        first = covered(self.before)
        every = max(first, covered([*self.before, *self.after]) - covered(self.written))
        gathered = max(0, min(self.taken, self.whole) - every)
        return every + gathered, gathered, min(gathered, self.row)

    def results(self) -> int:
        """Return the bytes written that are alive at the end [B]."""
        every = max(covered(self.written), self.scattered) if self.kept else 0
        return every if self.kept_bytes is None else min(every, self.kept_bytes)


def storages(calls: Iterable[OperatorCall]) -> dict[int, StorageUse]:
    """Collect the views of every storage.

    Raises
    ------
    InputError
        A tensor has no storage: the calls were not recorded, or by an older version.
    """
    uses: dict[int, StorageUse] = {}

    def of(call: OperatorCall, tensor: TensorArgument) -> StorageUse:
        if tensor.storage is None:
            raise InputError(
                f"calls: a tensor of {shown_name(call.operator)} without a storage given; allowed: calls that "
                "TrafficMode recorded, as mode.save() writes them"
            )
        return uses.setdefault(tensor.storage, StorageUse(tensor.outside))

    for call in calls:
        scatter = SCATTERS.get(call.operator)
        overwritten = next(iter(call.inputs), "") if call.operator in OVERWRITES else ""
        for name, tensor in call.inputs.items():
            use = of(call, tensor)
            if name == overwritten or (name == "out" and "out" in call.written) or _replaced(scatter, name):
                continue
            if GATHERS.get(call.operator) == name:
                _gather(use, call, tensor)
            elif not (scatter and name == scatter[0]):
                (use.after if use.written else use.before).append(tensor)
        for tensor in results_of(call):
            use = of(call, tensor)
            use.kept |= tensor.kept
            use.kept_bytes = tensor.kept_bytes
            if scatter and tensor is call.inputs.get(scatter[0]):
                source = call.inputs.get(scatter[1])
                use.scattered += 0 if source is None else min(source.elements * tensor.element_bytes, tensor.bytes)
            else:
                use.written.append(tensor)
    return uses


def _replaced(scatter: tuple[str, str, bool] | None, name: str) -> bool:
    """Check whether a scatter writes rows of an input without reading them."""
    return scatter is not None and name == scatter[0] and not scatter[2]


def _gather(use: StorageUse, call: OperatorCall, table: TensorArgument) -> None:
    """Note the rows that a gather takes."""
    taken = sum(tensor.elements for tensor in call.outputs) * table.element_bytes
    rows = max(1, table.shape[0] if table.shape else 1)
    use.taken += taken
    use.row = max(use.row, min(taken, table.bytes // rows))
    use.whole = max(use.whole, table.distinct_bytes)


@strict
def bound(calls: Iterable[OperatorCall], hardware: Hardware | str, warm: bool = False) -> ProgramBound:
    """Bound the time of recorded calls from below; their own times are not computed.

    Parameters
    ----------
    calls : iterable of OperatorCall
        The calls, in order, such as those of `read_calls`.
    hardware : Hardware or str
        The device.
    warm : bool
        The last cache may hold bytes of the program when it begins and ends, as where a benchmark repeats it.

    Raises
    ------
    InputError, SpecError
        Calls that were not recorded; a device without a bandwidth.

    Examples
    --------
    >>> from iomodel.torch import OperatorCall, TensorArgument, bound
    >>> x, w = (TensorArgument((64, 64), "bfloat16", 2, storage=place, outside=True) for place in (0, 1))
    >>> y = TensorArgument((64, 64), "bfloat16", 2, storage=2, kept=True)
    >>> least = bound([OperatorCall("aten.mm", {"self": x, "mat2": w}, (y,))], "h100-sxm5")
    >>> least.read_bytes, least.written_bytes, least.binds
    (16384, 8192, 'memory')
    """
    hardware, listed = as_device(hardware), checked_calls(calls)
    known = rates(hardware, "")
    read = written = gathered = single = 0
    uses = storages(listed).values()
    for use in uses:
        each, taken, row = use.read()
        read, written, gathered, single = read + each, written + use.results(), gathered + taken, single + row
    flops: dict[str, int] = {}
    left_out: dict[str, None] = {}
    narrowest = narrowest_types(listed)
    for (_, stored), (call, times) in alike(zip(listed, narrowest, strict=True)).items():
        work = work_of(call)
        least = 0 if work is None else work.least_flops
        if least:
            dtype = _fastest_type(product_type(call), stored, hardware)
            flops[dtype] = flops.get(dtype, 0) + times * least
        elif may_multiply(call.operator):
            left_out[f"{call.operator}: its products are not counted; the bound is at least this"] = None
    capacity = _at_capacity(listed, hardware)
    cache = (known.last_cache or 0) if warm else 0
    moved = max(read + written, capacity)
    compute, missing = _compute_terms(flops, hardware)
    terms = {"memory": max(0, moved - cache) / known.hbm_peak, **compute}
    fewer = max(0, max(read - gathered + single + written, capacity) - cache) / known.hbm_peak
    return ProgramBound(
        hardware=hardware,
        read_bytes=read,
        written_bytes=written,
        gathered_bytes=gathered,
        capacity_bytes=capacity,
        warm_bytes=min(cache, moved),
        flops=FrozenDict(flops),
        terms=FrozenDict(terms),
        least_memory=fewer,
        at_least=(*left_out, *missing, *(() if any(use.kept for use in uses) else (NO_RESULT,))),
    )


def alike(calls: Iterable[tuple[OperatorCall, str]]) -> dict[tuple[Any, str], tuple[OperatorCall, int]]:
    """Count equal calls, with a label of each."""
    counts: dict[tuple[Any, str], tuple[OperatorCall, int]] = {}
    for call, label in calls:
        key = call.alike, label
        counts[key] = call, counts.get(key, (call, 0))[1] + 1
    return counts


def narrowest_types(calls: Iterable[OperatorCall]) -> list[str]:
    """Return the narrowest type that an operand of each call was stored in, seen through operators without products.

    A program that widens bf16 or fp8 before its products may form the products in the narrow type.
    """
    stored: dict[int | None, TensorArgument] = {}
    types = []
    for call in calls:
        known = [
            _narrower(tensor, stored.get(tensor.storage)) for tensor in call.inputs.values() if tensor.dtype in TYPES
        ]
        least = min(known, key=lambda tensor: tensor.element_bytes, default=None)
        types.append("" if least is None else TYPES[least.dtype])
        passed = None if multiplying(call.operator) else least
        stored.update({result.storage: _narrower(result, passed) for result in results_of(call)})
    return types


def _narrower(tensor: TensorArgument, other: TensorArgument | None) -> TensorArgument:
    return tensor if other is None or other.element_bytes >= tensor.element_bytes else other


def _fastest_type(dtype: str, stored: str, hardware: Hardware) -> str:
    """Return the type of products at the highest rate: that of the operator, or a narrower one of its operands."""
    size = WIDTHS.get(dtype, 4)
    if WIDTHS.get(stored, 4) >= size:
        return dtype
    return next((name for name in (stored, "bf16") if WIDTHS[name] < size and has_rates(hardware, name)), dtype)


def _compute_terms(flops: Mapping[str, int], hardware: Hardware) -> tuple[dict[str, float], list[str]]:
    """Time the products at the peaks of their types [s]; those of fp32 run on both kinds of units."""
    matrix, vector, missing = 0.0, 0, []
    reduced = next((name for name in ("tf32", "bf16") if has_rates(hardware, name)), None)  # no slower than TF32
    for dtype, number in flops.items():
        if dtype == "tf32" and reduced is not None:
            matrix += number / rates(hardware, reduced).peak
        elif dtype in ("fp32", "tf32"):
            vector += number
        elif has_rates(hardware, dtype):
            matrix += number / product_rates(hardware, dtype).peak
        else:
            missing.append(f"no peak of {dtype} on file: its products are left out")
    terms = {"matrix": matrix} if matrix else {}
    if vector and has_rates(hardware, "fp32"):
        plain = rates(hardware, "fp32").peak
        split = 0.0 if reduced is None else rates(hardware, reduced).peak / SPLIT
        terms["fp32"] = (vector + matrix * split) / (plain + split)
    return terms, missing


def _at_capacity(calls: list[OperatorCall], hardware: Hardware) -> int:
    """Return the most traffic that one product needs because its operands exceed all memories of the chip [B].

    The theorems take operands that are loaded and results that are stored, so products of a program's own inputs whose
    results it keeps. What the chip holds before and after a product may spare it as much of both.
    """
    known = rates(hardware, "")
    try:
        chip = (known.cached or 0) + (known.units or 1) * hardware.on_chip_per_block
    except SpecError:
        return 0
    alone = alike((call, "") for call in calls if _stands_alone(call))
    products = [(work, call) for call, _ in alone.values() if (work := work_of(call))]
    products.sort(key=lambda each: -each[0].least_flops)
    most = 0
    for work, call in products[:LARGEST]:
        workload = work.workload(call) if work.least_flops else None
        if workload is not None:
            bounds = lower_bounds(workload, sram_bytes=chip)
            most = max(most, *(each.bytes - 2 * chip for each in bounds.values()))
    return most


def _stands_alone(call: OperatorCall) -> bool:
    """Check whether a call reads inputs of the program alone, and makes a result of it."""
    return all(tensor.outside for tensor in call.inputs.values()) and all(tensor.kept for tensor in call.outputs)
