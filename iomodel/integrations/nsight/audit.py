"""Audit of a profiler's report against predicted traffic."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from iomodel.common.counter_names import METRICS
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_mapping
from iomodel.errors import InputError, shown, shown_name
from iomodel.integrations.nsight.audit_result import Audit, AuditedCall, AuditedLevel
from iomodel.integrations.nsight.counters import KernelCounters, together
from iomodel.integrations.nsight.explanations import explanations, written_bytes
from iomodel.integrations.nsight.report_file import read_report
from iomodel.timing.estimate_result import Estimate

MARGIN = 0.01
"""Share of the bytes by which counters may lie outside: instructions, arguments, tables of pages."""
EXAMPLE = "{'flash_fwd': iomodel.estimate('flash2', ...)}"


def audit(report: str | os.PathLike[str], calls: Mapping[str, Estimate]) -> Audit:
    r"""Compare the bytes that Nsight Compute measured with the predicted ones, and explain what differs.

    Parameters
    ----------
    report : path
        The CSV that ``ncu --csv`` prints, with a row per metric or (``--page raw``) a column per metric; or an
        `.ncu-rep` file. It should hold the counters of :data:`iomodel.common.counter_names.METRICS`, at least
        dram__bytes_read.sum and dram__bytes_write.sum.
    calls : mapping of str to Estimate
        The prediction of each kernel, by a regular expression that its name contains, whatever the case:
        ``{"flash_fwd": iomodel.estimate("flash2", w, "a100-sxm4-80gb")}``. An algorithm of several kernels takes as
        many launches together.

    Returns
    -------
    Audit
        For each call: sectors of the L2 against the requests, DRAM traffic against its interval, and reasons.

    Raises
    ------
    InputError
        The report cannot be read, is cut short, or has no counter of bytes; a pattern selects no kernel; a wrong
        argument.

    Notes
    -----
    Written bytes that the L2 still holds when a kernel ends are not in its DRAM counters, so the least DRAM traffic is
    less by the output, or by the size of the L2.

    Examples
    --------
    >>> import tempfile, iomodel
    >>> from iomodel.workloads.elementwise import Elementwise
    >>> silu = iomodel.estimate("activation", Elementwise(rows=2048, channels=14336, dtype="fp16"), "h200-sxm")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "silu.csv"
    ...     _ = path.write_text('"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum"\n'
    ...                         '"","","byte","byte"\n"0","silu_kernel","58,731,520","37,068,800"\n')
    ...     found = audit(path, {"silu": silu})
    >>> found.inside, found.calls[0].explanations[0][:27]
    (True, 'write-back outside the wind')
    """
    predicted = as_mapping("calls", calls, EXAMPLE)
    patterns = {pattern: _compiled(pattern, estimate) for pattern, estimate in predicted.items()}
    launches = read_report(report)
    chosen: dict[str, list[tuple[int, KernelCounters]]] = {pattern: [] for pattern in patterns}
    unmatched: dict[str, int] = {}
    for place, launch in enumerate(launches):
        match = next((pattern for pattern, compiled in patterns.items() if compiled.search(launch.kernel)), None)
        if match is None:
            unmatched[launch.kernel] = unmatched.get(launch.kernel, 0) + 1
        else:
            chosen[match].append((place, launch))
    audited: list[tuple[int, AuditedCall]] = []
    for pattern, selected in chosen.items():
        if not selected:
            names = ", ".join(dict.fromkeys(launch.kernel for launch in launches))
            raise InputError(f"calls: no kernel contains {shown(pattern)}; the report has {shown(names, limit=300)}")
        for place, launch in _calls(pattern, selected, predicted[pattern]):
            audited.append((place, _audited(pattern, launch, predicted[pattern])))
    ordered = tuple(call for _, call in sorted(audited, key=lambda entry: entry[0]))
    return Audit(Path(os.fsdecode(report)).name, ordered, FrozenDict(unmatched))


def _compiled(pattern: object, estimate: object) -> re.Pattern[str]:
    """Validate a pattern and its prediction."""
    if not isinstance(estimate, Estimate):
        raise InputError(f"calls: {shown(estimate)} given for {shown(pattern)}; allowed: {EXAMPLE}")
    try:
        return re.compile(str(pattern), re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"calls: {shown(pattern)} is no regular expression: {error}") from None


def _calls(
    pattern: str, selected: list[tuple[int, KernelCounters]], estimate: Estimate
) -> Iterator[tuple[int, KernelCounters]]:
    """Put the launches of each call together."""
    kernels = 1 if len(estimate.kernels) <= 1 else len(estimate.kernels)
    if len(selected) % kernels:
        titles = ", ".join(kernel.title for kernel in estimate.kernels)
        raise InputError(
            f"calls: {shown(pattern)} selects {len(selected)} launches; allowed: a multiple of {kernels}, the kernels "
            f"of {estimate.algorithm} ({titles})"
        )
    for start in range(0, len(selected), kernels):
        group = selected[start : start + kernels]
        yield group[0][0], together([launch for _, launch in group])


def _audited(pattern: str, counters: KernelCounters, estimate: Estimate) -> AuditedCall:
    written = written_bytes(estimate.cost)
    levels = {level.name: level for level in _levels(counters, estimate, written)}
    if not levels:
        raise InputError(
            f"report: launch {shown_name(counters.launch)} of {shown(counters.kernel)} has no counter of bytes; "
            f"profile with ncu --metrics {','.join(METRICS)}"
        )
    return AuditedCall(
        pattern,
        counters.kernel,
        counters.launch,
        estimate.algorithm,
        tuple(levels.values()),
        tuple(explanations(estimate, counters, levels, written)),
        counters.seconds,
        estimate.seconds,
    )


def _levels(counters: KernelCounters, estimate: Estimate, written: int | None) -> Iterator[AuditedLevel]:
    if counters.l2_bytes is not None:
        yield _level("L2", (estimate.requested_bytes, estimate.requested_bytes), counters.l2_bytes)
    reads, writes = counters.dram_read, counters.dram_written
    low, high = estimate.dram_bytes
    kept = min(estimate.rates.l2_capacity or 0, estimate.requested_bytes if written is None else written)
    if counters.dram_bytes is not None:
        yield _level("DRAM", (max(0, low - kept), high), counters.dram_bytes)
    if reads is not None and written is not None:
        yield _level("DRAM reads", (max(0, low - written), max(0, high - written)), reads)
    if writes is not None and written is not None:
        yield _level("DRAM writes", (max(0, written - kept), written), writes)


def _level(name: str, predicted: tuple[int, int], measured: int) -> AuditedLevel:
    low, high = predicted
    if measured > high * (1 + MARGIN):
        return AuditedLevel(name, predicted, measured, "above")
    return AuditedLevel(name, predicted, measured, "inside" if measured >= low * (1 - MARGIN) else "below")
