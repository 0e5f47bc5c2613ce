"""Comparison of counted with predicted traffic, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from iomodel.common.display import Table, as_text, sizes_text
from iomodel.common.keywords import strict
from iomodel.common.validation import as_mapping, finite, index
from iomodel.counting.cost import Cost
from iomodel.errors import InputError, shown
from iomodel.testing.counted_run import Run
from iomodel.testing.hbm import HBM
from iomodel.testing.hints import Counts, Key, hints, moved, wrong_sizes, wrong_widths
from iomodel.testing.machine import Machine
from iomodel.testing.widths import WIDTHS, in_bytes
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear

KINDS = ("reads", "writes")
_EXAMPLE = "{'reads': {'K': 512}, 'writes': {'O': 64}}"


@runtime_checkable
class CountedKernel(Protocol):
    """Counts of a kernel with an element size per tensor, such as those of `iomodel.triton.count`."""

    @property
    def reads(self) -> Mapping[str, int]:
        """Elements read of each tensor [elements]."""

    @property
    def writes(self) -> Mapping[str, int]:
        """Elements written of each tensor [elements]."""

    @property
    def atomics(self) -> int:
        """Atomic operations [elements]."""

    @property
    def element_bytes(self) -> Mapping[str, int]:
        """Size of an element of each tensor [B]."""


Counted = Run | Machine | HBM | CountedKernel | Mapping[str, Mapping[str, int]]


@strict
def assert_traffic(
    cost: Cost, counted: Counted, *, names: Mapping[str, str | None] | None = None, rtol: float = 0
) -> None:
    """Fail unless a kernel moved the predicted traffic, tensor by tensor: exactly, unless a tolerance is given.

    Parameters
    ----------
    cost : Cost
        Result of :func:`iomodel.cost` for the call, tiles and options of the kernel.
    counted : Run, Machine, HBM, KernelCount, or mapping
        Traffic of the kernel, over all batches and heads [elements]: a counting memory or the result of
        `iomodel.triton.count`, whose atomic additions and bytes are compared too, or
        ``{"reads": {"K": 512, ...}, "writes": {"O": 64, ...}}``. A missing tensor counts 0; without "writes" only
        reads are compared, and vice versa.
    names : mapping of str to str or None, optional
        Map from your names to the model's, such as ``{"key_cache": "K"}``; counts of the same name are summed. A
        tensor mapped to None is not compared.
    rtol : float, optional
        The largest difference of a number, as a share of the predicted one [-], for the counters of a profiler: 0.02
        allows 2 %. Counts of a kernel on a counting memory are exact.

    Raises
    ------
    AssertionError
        The counts differ; the message is a table of the differences with possible explanations.
    InputError
        An argument has the wrong type, or `rtol` is not from 0 to below 1.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(heads=4, kv_heads=1, q_len=64, head_dim=8)
    >>> c = iomodel.cost("flash2", w, {"block_q": 16, "block_kv": 16})
    >>> assert_traffic(c, {"reads": {"Q": 2048, "K": 8192, "V": 8192}})
    >>> assert_traffic(c, {"reads": {"Q": 2048, "K": 6144, "V": 8192}})
    Traceback (most recent call last):
    ...
    AssertionError: flash2 at block_q=16, block_kv=16: counted traffic differs from the predicted [elements]
    <BLANKLINE>
      tensor    counted   predicted   ratio   hint
     ────────────────────────────────────────────────────────────────────
      reads K     6,144       8,192     3/4   16 tiles of 16 x 8 too few
    >>> assert_traffic(c, {"reads": {"Q": 2048, "K": 8200, "V": 8192}}, rtol=0.01)
    """
    __tracebackhide__ = True
    if not isinstance(cost, Cost):
        raise InputError(f"cost: {shown(cost)} given; allowed: a result of iomodel.cost")
    if not finite(rtol) or not 0 <= rtol < 1:
        raise InputError(f"rtol: {shown(rtol)} given; allowed: a share of the predicted numbers from 0 to below 1")
    actual, kinds = _counts(counted, names or {})
    predicted = {key: n for key, n in moved(cost).items() if key[0] in kinds}
    wrong = [key for key in predicted | actual if _differ(actual.get(key, 0), predicted.get(key, 0), rtol)]
    if wrong:
        raise AssertionError(_report(cost, actual, predicted, wrong, rtol))
    if not isinstance(counted, Mapping):
        _assert_bytes(cost, counted.hbm if isinstance(counted, Machine) else counted, names or {}, rtol)


def _differ(actual: int, predicted: int, tolerance: float) -> bool:
    """Compare without rounding: by the decimal as written, and for equality at a tolerance of 0."""
    return abs(actual - predicted) > Fraction(str(tolerance)) * predicted


def _counts(counted: object, names: Mapping[str, str | None]) -> tuple[Counts, set[str]]:
    """Collect the counts under the model's names, with the kinds of counts present."""
    names = as_mapping("names", names, "{'key_cache': 'K'}")
    memory = counted.hbm if isinstance(counted, Machine) else counted
    by_kind: dict[str, Any]
    if isinstance(memory, HBM | Run | CountedKernel):
        by_kind = {"reads": memory.reads, "writes": memory.writes, "": {"atomics": memory.atomics}}
    else:
        by_kind = as_mapping("counted", memory, _EXAMPLE)
        if not by_kind or not by_kind.keys() <= set(KINDS) or not all(isinstance(n, Mapping) for n in by_kind.values()):
            raise InputError(f"counted: {shown(memory)} given; allowed: a counting memory, or {_EXAMPLE}")
    totals: Counts = {}
    for kind, tensors in by_kind.items():
        for name, value in tensors.items():
            number = index(value)
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise InputError(f"{kind} {name}: {shown(value)} given; allowed: an integer from 0 up [elements]")
            if kind and names.get(name, name) is None:
                continue
            key = kind, str(names.get(name, name))
            totals[key] = totals.get(key, 0) + number
    return totals, set(by_kind)


def _report(cost: Cost, counted: Counts, predicted: Counts, wrong: list[Key], tolerance: float) -> str:
    """Format the table of differences; with a tolerance, each as a share of the predicted number too."""
    explanations, common_cause = dict.fromkeys(wrong, ""), ""
    if isinstance(cost.workload, Call | Linear):
        explanations, common_cause = hints(cost, counted, predicted, wrong)
    rows = []
    for key in wrong:
        actual, expected = counted.get(key, 0), predicted.get(key, 0)
        ratio = str(Fraction(actual, expected)) if expected and Fraction(actual, expected).denominator < 100 else ""
        ratio = ratio or (f"{actual / expected:.4g}" if expected else "-")
        share = [_share(actual, expected)] if tolerance else []
        rows.append((" ".join(key).strip(), f"{actual:,}", f"{expected:,}", ratio, *share, explanations[key]))
    hinted = ["hint"] if any(explanations.values()) else []
    columns = ("tensor", ">counted", ">predicted", ">ratio", *([">difference"] if tolerance else []), *hinted)
    tiles = sizes_text(cost.tiles)
    beyond = f" by more than {100 * tolerance:.4g} %" if tolerance else ""
    title = f"{cost.algorithm} at {tiles}: counted traffic differs from the predicted{beyond} [elements]"
    text = as_text(Table("", columns, [row[: len(columns)] for row in rows])).lstrip("\n")
    return "\n\n".join(
        [title, text, *([f"possible explanation of all differences: {common_cause}"] if common_cause else [])]
    )


def _share(actual: int, expected: int) -> str:
    """Write a difference as a share of the predicted number [%]."""
    return f"{100 * (actual - expected) / expected:+.3g} %" if expected else "-"


def _assert_bytes(
    cost: Cost, memory: HBM | Run | CountedKernel, names: Mapping[str, str | None], tolerance: float
) -> None:
    """Fail if the elements agree but their sizes differ."""
    __tracebackhide__ = True
    w = cost.workload.longest
    if isinstance(memory, HBM | Run):
        live = dict.fromkeys(WIDTHS, 0)
        for name, count in (memory.reads + memory.writes).items():
            live[memory.widths[name]] += count
        kv_size = Fraction(w.numbers.get("kv_size", 32 * w.element_size), 32)
        actual = in_bytes(tuple(live.values()), w.element_size, kv_size)
        wrong = wrong_widths(cost, {names.get(name) or name: width for name, width in memory.widths.items()})
    else:
        sizes = {name: size for name, size in memory.element_bytes.items() if names.get(name, name) is not None}
        actual = sum((memory.reads.get(name, 0) + memory.writes.get(name, 0)) * size for name, size in sizes.items())
        wrong = wrong_sizes(cost, {names.get(name) or name: size for name, size in sizes.items()})
    if _differ(actual, cost.hbm_bytes, tolerance):
        raise AssertionError(
            f"{cost.algorithm}: {actual:,} B counted, {cost.hbm_bytes:,} B predicted, though the elements agree: "
            f"{wrong}"
        )
