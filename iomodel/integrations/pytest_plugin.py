"""A plugin of pytest: counts of kernels held against predictions, with a line in the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from iomodel.counting.cost import Cost
    from iomodel.testing.traffic import Counted
    from iomodel.triton.kernel_count import KernelCount

CHECKED = "iomodel_checked"
"""Property of a test report: the comparisons that held, and their bytes."""


class Traffic:
    """Counts and comparisons of one test."""

    def __init__(self, record: Callable[[int], None]) -> None:
        self._record = record

    def count(
        self, kernel: Any, grid: Any, args: Sequence[Any] | Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> KernelCount:
        """Count a Triton kernel: :func:`iomodel.triton.count`."""
        from iomodel.triton import count

        return count(kernel, grid, args, meta)

    @contextmanager
    def launches(self) -> Iterator[list[KernelCount]]:
        """Count every kernel that a wrapper launches: :func:`iomodel.triton.launches`."""
        from iomodel.triton import launches

        with launches() as counts:
            yield counts

    def check(self, cost: Cost, counted: Counted, *, names: Mapping[str, str | None] | None = None) -> None:
        """Fail unless a count equals its prediction: :func:`iomodel.testing.assert_traffic`."""
        __tracebackhide__ = True
        from iomodel.testing import assert_traffic

        assert_traffic(cost, counted, names=names)
        self._record(cost.hbm_bytes)


@pytest.fixture
def traffic(record_property: Callable[[str, object], None]) -> Traffic:
    """Count kernels and hold the counts against predictions."""
    return Traffic(lambda size: record_property(CHECKED, size))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many counts equalled their predictions."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    sizes = [
        size
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, size in getattr(report, "user_properties", ())
        if name == CHECKED
    ]
    if sizes:
        counts = "count equals its prediction" if len(sizes) == 1 else "counts equal their predictions"
        terminalreporter.write_line(f"iomodel: {len(sizes):,} {counts}, {sum(sizes):,} B")
