"""Hold the time model against a measured GPU: the error of each section, backend, direction and regime.

    python benchmarks/gpu_accuracy.py [--device h100-sxm5] [--judging] [--each] [--section attention ...]

The records of tests/measured/gpu, asked as a newcomer asks (the algorithm, the call and the device
alone) and as told (the kernel behind the backend, its determinism, its tiles). Working curves may choose parameters;
--judging shows the others alone. Beside them are two naive guesses: 60 % of a roofline, and one share of it for each
row of the table, the median of the working curves; those of the H200 where another device has none.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf, isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402
from benchmarks import gpu_sections  # noqa: E402
from benchmarks.accuracy import spread_of  # noqa: E402
from benchmarks.gpu_sections import Figure  # noqa: E402
from iomodel.algorithms.eager import LAUNCHED  # noqa: E402
from iomodel.devices.rates import rates  # noqa: E402
from iomodel.timing.error_interval import SHORT, Place, place_of  # noqa: E402
from iomodel.timing.parameters import DEFAULT  # noqa: E402
from tests.support.gpu_records import DEVICES, Record, attention, timed  # noqa: E402

SECTIONS = ("attention", "short", "deterministic", "linear", "tiles")
NEW = ("fa3", "flashinfer", "experts", "grouped", "convolution", "program")
"""Sections of the H100 alone."""
BACKENDS = {"flash": "flash-attention-2", "efficient": "xformers", "cudnn": "cudnn-hopper"}
"""Kernels behind the backends of PyTorch that are declared."""
UNWRITTEN = replace(DEFAULT, dirty_l2=0)


class Asked(NamedTuple):
    """A measured time beside those that a newcomer and a caller told more are given; None if refused."""

    record: Record
    newcomer: iomodel.results.Estimate | Figure
    told: iomodel.results.Estimate | Figure | None

    @property
    def told_ratio(self) -> float | None:
        """Told over measured time, with the kernels that PyTorch launches beside [-]."""
        return None if self.told is None else (self.told.seconds + beside(self.record)) / self.record.seconds

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Section, backend or kernel, direction, regime."""
        case = self.record.case
        direction = "decode" if case.get("q_len", 8) <= 4 else str(case.get("direction", "forward"))
        kernel = kernel_name(case)
        if self.record.section in ("experts", "convolution", "program"):
            direction = str(case.get("part", case.get("kind")))
        if case.get("deterministic"):
            kernel += ", deterministic"
        if case.get("packed_group") == 4:
            kernel += ", packed by the caller"
        return self.record.section, kernel, direction, "short" if self.record.seconds < SHORT else "long"


def kernel_name(case: Mapping[str, Any]) -> str:
    """Name the kernel of a record, or what it multiplies."""
    if "axes" in case:
        return f"{gpu_sections.product_type(case)}{', channels last' if case['channels_last'] else ''}"
    if "page" in case:
        return "paged" if case["page"] else "not paged"
    words = [str(case[name]) for name in ("kernel", "backend", "model", "weights") if case.get(name)]
    if case.get("weights") == "bf16" and case["split_k"] == "one":
        words.append("not split")
    return " ".join(words) or str(case["dtype"])


def asked(record: Record) -> Asked:
    """Ask for the time of a record as a newcomer, and with what is known of its kernel."""
    case = record.case
    if record.section == "linear":
        found = iomodel.estimate("gemm", layer(case), record.device)
        return Asked(record, found, found)
    if record.section in ("fa3", "flashinfer"):
        return served(record)
    if record.section == "grouped":
        return Asked(record, gpu_sections.grouped(record, told=False), gpu_sections.grouped(record, told=True))
    if record.section == "convolution":
        return Asked(record, *(gpu_sections.convolution(record, told) for told in (False, True)))
    if record.section in NEW:
        figure = (gpu_sections.experts if record.section == "experts" else gpu_sections.program)(record)
        return Asked(record, figure, figure)
    name = case["kernel"] if "kernel" in case else algorithm_of(case)
    return Asked(record, iomodel.estimate(name, attention(case), record.device), told(record))


def served(record: Record) -> Asked:
    """Ask for a record of the kernels of serving engines; those of decoding read a cache of pages.

    Kernels with a scheduler ahead of the call are asked as those that divide the keys in the call.
    """
    case = record.case
    call, paged = attention(case), case.get("page") or case.get("page_size")
    decodes = case["q_len"] == 1
    newest = record.section == "fa3" or case.get("backend") == "fa3"
    name = "split_kv" if decodes else "flash3" if newest else "flash2"
    known = "flash-attention-3" if record.section == "fa3" else "flashinfer"
    here = iomodel.Attention(**{**call.to_dict(), "page_size": paged}) if paged else call
    given = {"implementation": known} if known in iomodel.list_implementations(name, record.device, here) else {}
    newcomer = iomodel.estimate(name, call, record.device)
    try:
        return Asked(record, newcomer, iomodel.estimate(name, here, record.device, parameters=UNWRITTEN, **given))
    except (iomodel.InputError, iomodel.InfeasibleError):
        return Asked(record, newcomer, None)


def layer(case: Mapping[str, Any]) -> iomodel.Linear:
    """Return the layer of a record."""
    return iomodel.Linear(**{name: case[name] for name in ("rows", "in_features", "out_features", "dtype")})


def told(record: Record) -> iomodel.results.Estimate | None:
    """Estimate a record of attention with its kernel, options and tiles; None where the library refuses them.

    No benchmark has left lines of its own in the L2 before these calls. PyTorch multiplies matrices of the backend
    `math` in fp32 (aten/src/ATen/native/transformers/attention.cpp), whatever the type of its inputs.
    """
    case = record.case
    call, tiles, options = attention(case), None, {}
    if "kernel" in case:
        name = case["kernel"]
        options["implementation"] = "triton" if name == "flash2" else "textbook"
        tiles = {"block_q": case["block_q"], "block_kv": case["block_kv"]}
        if name == "flash2":
            tiles |= {"warps": case["num_warps"], "stages": case["num_stages"]}
    else:
        name, known = algorithm_of(case), BACKENDS.get(case["backend"])
        if name == "eager":
            call = attention({**case, "dtype": "fp32"})
        if known in iomodel.list_implementations(name, record.device, call):
            options["implementation"] = known
        if case.get("deterministic"):
            options["deterministic"] = True
    try:
        return iomodel.estimate(name, call, record.device, tiles, parameters=UNWRITTEN, **options)
    except (iomodel.InputError, iomodel.InfeasibleError):
        return None


def beside(record: Record) -> float:
    """Time the kernels that PyTorch launches beside a backward pass [s], by the kernels in the traffic records.

    FlashAttention's O and dO, and CUTLASS's dO, are copied to another layout, which takes the address of each element.
    Deterministic algorithms fill each empty tensor first (torch.utils.deterministic.fill_uninitialized_memory): dQ, dK,
    dV, and the slabs of dQ in fp32.
    """
    case = record.case
    if case.get("direction") != "backward" or case.get("backend") not in ("flash", "efficient"):
        return 0.0
    known = rates(iomodel.hardware(record.device), case["dtype"])
    elements = case["batch"] * case["heads"] * case["q_len"] * case["head_dim"]
    addresses = 2 * elements * LAUNCHED.address_clocks / ((known.units or 1) * (known.clock or inf))
    copies = [max(4 * elements / known.hbm, addresses)] * (1 if case["backend"] == "efficient" else 2)
    filled = []
    if case.get("deterministic"):
        slabs = -(-(known.units or 1) // (case["batch"] * case["heads"]))
        filled = [2 * elements, 2 * elements, 2 * elements, 4 * slabs * elements]
    return sum(time + (known.launch or 0.0) for time in [*copies, *(size / known.hbm for size in filled)])


def algorithm_of(case: Mapping[str, Any]) -> str:
    """Return the algorithm to ask for a backend of PyTorch: FlashAttention-2 splits few queries on many keys.

    cuDNN splits the keys of one query, the kernel of CUTLASS never does.
    """
    backend, few = case["backend"], case["direction"] == "forward" and 4 * case["q_len"] <= case["kv_len"]
    if backend == "math":
        return "eager"
    if few and (backend == "flash" or (backend == "cudnn" and case["q_len"] == 1)):
        return "split_kv"
    return "flash3" if backend == "cudnn" else "flash2"


def all_asked(judging: bool, sections: tuple[str, ...] = SECTIONS, device: str = DEVICES[0]) -> list[Asked]:
    """Ask for every timed record of some sections of a device."""
    return [asked(record) for record in timed(judging, *sections, device=device)]


def gpu_ratios() -> list[tuple[Place, float]]:
    """Return the place and the ratio to the measured time of the working rows whose kernel is declared.

    The rows of the backend `math` stay out: eager attention stands for it.
    """
    found = all_asked(False, ("attention", "short", "deterministic", "linear"))
    kept = [one for one in found if one.record.case.get("backend", "flash") in BACKENDS]
    return [
        (place_of(iomodel.hardware(one.record.device), one.told.workload, one.told.seconds), one.told_ratio)
        for one in kept
        if isinstance(one.told, iomodel.results.Estimate) and one.told_ratio is not None
    ]


def shares_of(working: list[Asked]) -> dict[tuple[str, ...], float]:
    """Fit one share of the roofline to each group and to each direction."""
    shares: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for one in working:
        for key in (one.group, (one.group[2],), ()):
            shares[key].append(one.newcomer.floor / one.record.seconds)
    return {key: float(np.median(values)) for key, values in shares.items()}


def table(found: list[Asked], working: list[Asked]) -> Iterator[str]:
    """Tabulate the errors by section, kernel, direction and regime, beside two naive guesses."""
    shares = shares_of(working)
    columns = "section", "kernel", "direction", "regime", "newcomer", "told", "60 % of the peak", "one share each"
    yield f"| {' | '.join(columns)} | rows | in interval |"
    yield f"|{' --- |' * len(columns)} ---: | ---: |"
    groups = [("all",) * 4, *((name, "all", "all", "all") for name in dict.fromkeys(one.group[0] for one in found))]
    for group in [*groups, *sorted({one.group for one in found})]:
        ones = [one for one in found if all(a in ("all", b) for a, b in zip(group, one.group, strict=True))]
        intervals = [(one.record.seconds, one.newcomer.error) for one in ones if not isnan(one.newcomer.error[0])]
        inside = [low <= seconds <= high for seconds, (low, high) in intervals]
        share = [next(shares[key] for key in (one.group, (one.group[2],), ()) if key in shares) for one in ones]
        cells = [
            spread_of([one.newcomer.seconds / one.record.seconds for one in ones]),
            spread_of([one.told_ratio for one in ones]),
            spread_of([one.newcomer.floor / 0.6 / one.record.seconds for one in ones]),
            spread_of([one.newcomer.floor / part / one.record.seconds for one, part in zip(ones, share, strict=True)]),
        ]
        yield f"| {' | '.join((*group, *cells))} | {len(ones)} | {f'{np.mean(inside):.0%}' if inside else '-'} |"


def each(found: list[Asked]) -> Iterator[str]:
    """List the ratios of predicted to measured time by record."""
    for one in found:
        ratio = "refused" if one.told_ratio is None else f"{one.told_ratio:.2f}"
        bound = one.newcomer.limited_by if one.told is None else one.told.limited_by
        newcomer = one.newcomer.seconds / one.record.seconds
        yield f"{one.record.seconds * 1e6:9.1f} us {newcomer:.2f} told {ratio} {bound:13} {one.record}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judging", action="store_true", help="the judging curves in place of the working ones")
    parser.add_argument("--each", action="store_true", help="each record of the working curves")
    parser.add_argument("--device", choices=DEVICES, default=DEVICES[0])
    every = (*SECTIONS, *NEW)
    parser.add_argument("--section", action="append", choices=every, help="sections to show, all by default")
    given = parser.parse_args()
    sections = tuple(given.section or every)
    working = all_asked(False, sections, given.device)
    found = all_asked(True, sections, given.device) if given.judging else working
    if given.device != DEVICES[0]:
        working = [*working, *all_asked(False, sections)]
    print("\n".join([*table(found, working), *(each(found) if given.each and not given.judging else ())]))


if __name__ == "__main__":
    main()
