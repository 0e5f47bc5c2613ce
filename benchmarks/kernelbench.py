"""Times of the programs of KernelBench in eager PyTorch, against its published times.

    python -m benchmarks.kernelbench CLONE FOLDER [--version v1] [--judging] [--small | --bounds | --speed]

CLONE is a clone of github.com/ScalingIntelligence/KernelBench with all branches, FOLDER a place for recorded streams,
one of each program; those that are missing are recorded first. PyTorch is needed to record; a build for the CPU is
enough, as tensors are on the meta device. The programs of the clone are executed.

A program judges where the first hexadecimal digit of the SHA-256 of its name, such as
``level1/19_ReLU``, is below 8; the constants of eager kernels were chosen on the others. This rule was committed before
the first of these constants. A published time counts where its problem is that of the version, byte for byte, and where
it is 1 ms or more: shorter programs wait for their host. `--small` takes those, with one host time for each machine,
which is read off its programs that do not judge. `--bounds` holds all published times, eager and compiled, against the
bounds of their programs with a warm L2, counts the programs whose FLOPs are whole, and the times that are named
impossible: half of each bound, and a tenth of the best time of a program on a device. `--speed` runs each program on
the meta device, bare and recorded in turn, and prices and bounds what it recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from statistics import median
from subprocess import run
from time import process_time
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402
from iomodel.devices.device import as_device  # noqa: E402
from iomodel.torch import OperatorCall, ProgramGap, read_calls, traffic  # noqa: E402
from iomodel.torch.accounting import Accounting  # noqa: E402
from iomodel.torch.eager_clock import queued  # noqa: E402
from iomodel.torch.eager_kernels import launches  # noqa: E402
from iomodel.torch.products import PRODUCTS  # noqa: E402

VERSIONS = {"v0": "a147f37", "v1": "129232e"}
"""Commits of two versions of the problems; the sizes of the second fill a GPU."""
TIMES = {
    "v1": {"14a3f7bd": "6e6fca9", "28f51ced": "ff3b0d8", "51016817": "1e2c63f", "533f9552": "4082b87",
           "9a4f42c2": "15c880c", "ef57aaa8": "7c914ea"},
    "v0": dict.fromkeys(("fdc195e4", "5ee06e2c", "794df481", "6ab28fcb", "edd9c340", "bb9a23d5", "dcf44398",
                         "1ef18010", "0b6fa3f2", "c123ef83", "f1e90aa3"), "a147f37"),
}  # fmt: skip
"""Files of times (results/timing/*/baseline_time_torch.json) by the hash of their content, and the commit of the
problems that were timed."""
DEVICES = {
    "NVIDIA H100 80GB HBM3": "h100-sxm5", "NVIDIA H100 PCIe": "h100-pcie", "NVIDIA H200": "h200-sxm",
    "NVIDIA L40S": "l40s", "NVIDIA L4": "l4", "NVIDIA RTX A6000": "rtx-a6000", "NVIDIA A10G": "a10g",
    "NVIDIA A10": "a10", "NVIDIA A100-SXM4-80GB": "a100-sxm4-80gb", "NVIDIA A100-SXM4-40GB": "a100-sxm4-40gb",
    "NVIDIA B200": "b200", "Tesla T4": "t4",
}  # fmt: skip
LEVELS = ("level1", "level2", "level3")
LEAST = 1e-3
"""Shortest time of a program that counts [s]."""


FEWEST = 10
"""Fewest programs that a machine's host time is read off [-]."""
HOSTS = np.arange(2e-6, 60e-6, 1e-6)
"""Host times of a launch that are tried for a machine [s]."""
MOST = 0.5
"""Most that the error of one program counts for in the choice of a host time [-]: fitted on one half of the programs
that do not judge, the rule has the least 90th percentile of four on the other, a median within 0.001 of the least."""


RUNS = 3
"""Runs of each program that the least time is taken of [-]."""


class Speed(NamedTuple):
    """The CPU time [s] of a program without recording, recorded, and of pricing and bounding its operators."""

    program: str
    operators: int
    bare: float
    recorded: float
    priced: float


class Row(NamedTuple):
    """A published time [s] of a program on a device of one machine."""

    program: str
    device: str
    seconds: float
    machine: str


def judges(name: str) -> bool:
    """Check whether a program is held out from the choice of constants."""
    return sha256(name.encode()).hexdigest()[0] < "8"


def git(clone: Path, *words: str) -> str:
    """Return what git prints of a clone."""
    return run(["git", "-C", str(clone), *words], capture_output=True, text=True, check=True).stdout


@cache
def problems(clone: Path, commit: str) -> dict[str, str]:
    """Return the hash of each problem of a commit by its name."""
    lines = (line.split() for line in git(clone, "ls-tree", "-r", commit, "KernelBench/").splitlines())
    return {path.removeprefix("KernelBench/")[:-3]: blob for _, _, blob, path in lines if path.endswith(".py")}


def rows(clone: Path, version: str, compiled: bool = False) -> Iterator[Row]:
    """Yield the times of the problems of a version on devices that are on file: eager, or of compilers too."""
    asked = problems(clone, VERSIONS[version])
    for blob, commit in TIMES[version].items():
        timed = problems(clone, commit)
        for file in {blob, *(beside(clone, blob, commit) if compiled else ())}:
            times = json.loads(git(clone, "cat-file", "-p", file))
            for level in LEVELS:
                for problem, found in (times.get(level) or {}).items():
                    name = f"{level}/{problem[:-3]}"
                    if found and found.get("hardware") in DEVICES and timed.get(name) == asked.get(name):
                        yield Row(name, DEVICES[found["hardware"]], found["mean"] / 1e3, blob)


def beside(clone: Path, blob: str, commit: str) -> list[str]:
    """List the files of times in the folder of one, if the commit has it."""
    lines = [line.split() for line in git(clone, "ls-tree", "-r", commit, "results/timing/").splitlines()]
    folders = {path.rpartition("/")[0] for _, _, file, path in lines if file.startswith(blob)}
    return [file for _, _, file, path in lines if path.rpartition("/")[0] in folders and path.endswith(".json")]


def loaded(source: str, name: str) -> tuple[Callable[..., Any], list[Any]]:
    """Return the model of a problem and its inputs, on the meta device."""
    import torch

    def to_meta(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.empty_like(value, device="meta")
        return type(value)(map(to_meta, value)) if isinstance(value, list | tuple) else value

    names: dict[str, Any] = {"__name__": "problem"}
    with torch.device("meta"):
        exec(compile(source.replace("'cuda'", "'meta'").replace('"cuda"', '"meta"'), name, "exec"), names)
        model = names["Model"](*names["get_init_inputs"]()).to("meta")
        return model, [to_meta(value) for value in names["get_inputs"]()]


def record(source: str, path: Path) -> None:
    """Record the operators that a problem calls, on the meta device, and save them."""
    import torch

    from iomodel.torch import TrafficMode

    with torch.device("meta"), torch.no_grad():
        model, inputs = loaded(source, path.name)
        with TrafficMode() as mode:
            results = model(*inputs)  # alive at the end of the block, so that the bound has their bytes
        del results
    mode.save(path)


def speed(source: str, name: str) -> Speed:
    """Measure a problem bare and recorded, in turn, and the pricing and bounding of its calls."""
    import torch

    from iomodel.torch import TrafficMode
    from iomodel.torch import bound as bounded

    def least(*runs: Callable[[], Any]) -> list[float]:
        best = [float("inf")] * len(runs)
        for _ in range(RUNS):
            for at, each in enumerate(runs):
                start = process_time()
                kept = each()
                best[at] = min(best[at], process_time() - start)
                del kept
        return best

    with torch.device("meta"), torch.no_grad():
        model, inputs = loaded(source, name)

        def recording() -> tuple[OperatorCall, ...]:
            with TrafficMode() as mode:
                results = model(*inputs)
            del results
            return mode.calls

        calls = recording()
        bare, taken = least(lambda: model(*inputs), recording)
        priced, bound = least(lambda: traffic(calls, "h100-sxm5"), lambda: bounded(calls, "h100-sxm5"))
    return Speed(name, len(calls), bare, taken, priced + bound)


def recorded(clone: Path, version: str, folder: Path) -> Iterator[str]:
    """Record the programs that the folder lacks; yield those that PyTorch cannot record."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, blob in problems(clone, VERSIONS[version]).items():
        path = stream(folder, name)
        if not path.exists() and name.startswith(LEVELS):
            try:
                record(git(clone, "cat-file", "-p", blob), path)
            except Exception as error:
                yield f"{name}: {type(error).__name__}"


def stream(folder: Path, name: str) -> Path:
    """Return the file of the stream of a program."""
    return folder / f"{name.replace('/', '__')}.jsonl"


@cache
def calls_of(path: Path) -> tuple[OperatorCall, ...]:
    """Read the stream of a program."""
    return read_calls(path)


class Judged(NamedTuple):
    """The rows of a version whose programs are recorded, each with its calls."""

    clone: Path
    version: str
    folder: Path

    def rows(self, compiled: bool = False) -> Iterator[tuple[Row, tuple[OperatorCall, ...]]]:
        """Yield the published times, those of a program together."""
        for row in sorted(rows(self.clone, self.version, compiled)):
            path = stream(self.folder, row.program)
            if path.exists():
                yield row, calls_of(path)

    def ratios(self, judging: bool) -> dict[str, list[float]]:
        """Return the predicted over the measured times, with convolutions and without."""
        found: dict[str, list[float]] = defaultdict(list)
        for row, calls in self.rows():
            if row.seconds >= LEAST and judges(row.program) == judging:
                report = traffic(calls, row.device)
                kind = "with convolutions" if any("convolution" in call.operator for call in calls) else "others"
                found[kind].append((report.seconds or 0.0) / row.seconds)
        return found

    def small(self, judging: bool) -> dict[str, list[float]]:
        """Return the same of programs below 1 ms, with the host's time of each machine."""
        short: dict[str, list[tuple[Row, list[tuple[float, int]]]]] = defaultdict(list)
        for row, calls in self.rows():
            if row.seconds < LEAST:
                short[row.machine].append((row, kernel_times(calls, row.device)))
        found: dict[str, list[float]] = {}
        for machine, ones in short.items():
            working = [(row.seconds, times) for row, times in ones if not judges(row.program)]
            if len(working) >= FEWEST:
                host = min(HOSTS, key=lambda each: sum(min(abs(queued(t, each) / s - 1), MOST) for s, t in working))
                found[f"{ones[0][0].device} {machine}, host {host * 1e6:.0f} us"] = [
                    queued(times, host) / row.seconds for row, times in ones if judges(row.program) == judging
                ]
        return found

    def bounds(self) -> None:
        """Print the times below the bound with a warm L2, times that are named impossible, and the headroom."""
        below, whole, halves = [], {}, []
        best: dict[tuple[str, str, str], ProgramGap] = {}
        for row, calls in self.rows(compiled=True):
            report = traffic(calls, row.device)
            whole[row.program] = not report.flops_at_least
            gap = report.gap(row.seconds, warm=True)
            place = kind_of(row.program, calls), row.program, row.device
            best[place] = min(best.get(place, gap), gap, key=lambda each: each.seconds)
            half = replace(gap, seconds=gap.bound.seconds / 2) if gap.bound.seconds else None
            halves.append(half is None or gap.bound.binds in half.violated)
            if gap.below_bound:
                below.append(f"{row.program} on {row.device}: {dict(gap.violated)}")
        print(f"{len(halves):,} times, {len(below)} below the bound", *below, sep="\n  ")
        print(f"half of the bound is named impossible by its term in {sum(halves)} of {len(halves)}")
        print(f"{sum(whole.values())} of {len(whole)} programs with all FLOPs")
        print("| programs | best times | headroom, median | a tenth is impossible |\n| --- | ---: | ---: | ---: |")
        for kind in sorted({kind for kind, _, _ in best}):
            gaps = [gap for (each, _, _), gap in best.items() if each == kind]
            tenths = sum(replace(gap, seconds=gap.seconds / 10).below_bound for gap in gaps)
            headroom = median(gap.headroom for gap in gaps)
            print(f"| {kind} | {len(gaps)} | {headroom:.2f} | {tenths / len(gaps):.0%} |")


def print_speed(clone: Path, version: str) -> None:
    """Print the CPU time of recording over the bare programs, and of pricing and bounding over recording.

    A recurrent layer is one operator where it is recorded, and one for each step of a bare program; programs with such
    layers are counted apart.
    """
    found = []
    for name, blob in problems(clone, VERSIONS[version]).items():
        if name.startswith(LEVELS):
            try:
                found.append(speed(git(clone, "cat-file", "-p", blob), name))
            except Exception as error:
                print(f"not recorded: {name}: {type(error).__name__}")
    alike = [each for each in found if each.recorded >= each.bare]
    bare, recorded, priced = (sum(column) for column in list(zip(*alike, strict=True))[2:])
    print(f"{len(alike)} programs, {sum(each.operators for each in alike):,} operators: recording takes "
          f"{recorded / bare:.2f} of the bare programs")  # fmt: skip
    print(f"pricing and bounding {priced / recorded:.2f} of recording")
    print(f"{len(found) - len(alike)} others take less time recorded, as a recurrent layer is one operator")
    longest = max(found, key=lambda each: each.operators)
    print(f"{longest.program}, {longest.operators:,} operators: {longest.recorded / longest.bare:.2f} and "
          f"{longest.priced / longest.recorded:.2f}")  # fmt: skip


def kind_of(program: str, calls: tuple[OperatorCall, ...]) -> str:
    """Name the level of a program, and what it multiplies by."""
    level, names = program.partition("/")[0], [call.operator.removeprefix("aten.") for call in calls]
    if any("convolution" in name for name in names):
        return f"{level}, convolutions"
    if any("rnn" in name for name in names):
        return f"{level}, recurrent layers"
    if any("attention" in name for name in names):
        return f"{level}, attention"
    products = [call for call in calls if call.operator in PRODUCTS]
    if products:
        return f"{level}, a lone product" if len(calls) == 1 else f"{level}, products"
    return f"{level}, others"


def kernel_times(calls: tuple[OperatorCall, ...], device: str) -> list[tuple[float, int]]:
    """Return the time of each operator of a program [s], and its launches."""
    counted = Accounting(hardware=as_device(device), warm=True).each(calls)
    return [(each.seconds or 0.0, launches(call)) for call, each in zip(calls, counted, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--version", choices=list(VERSIONS), default="v1")
    parser.add_argument("--judging", action="store_true", help="the programs that judge")
    parser.add_argument("--small", action="store_true", help="programs below 1 ms, with a host time for each machine")
    parser.add_argument("--bounds", action="store_true", help="all times against the bounds of their programs")
    parser.add_argument("--speed", action="store_true", help="CPU time of recording, pricing and bounding")
    given = parser.parse_args()
    if given.speed:
        print_speed(given.clone, given.version)
        return
    for refused in recorded(given.clone, given.version, given.folder):
        print(f"not recorded: {refused}")
    judged = Judged(given.clone, given.version, given.folder)
    if given.bounds:
        judged.bounds()
        return
    length = "below 1 ms" if given.small else "of 1 ms and more"
    print(f"iomodel {iomodel.__version__}: error of eager times {length}, {given.version}")
    print("| programs | median | 90th percentile | sign | rows |\n| --- | ---: | ---: | ---: | ---: |")
    for kind, values in (judged.small if given.small else judged.ratios)(given.judging).items():
        errors = np.abs(np.array(values) - 1)
        sign = 100 * (np.median(values) - 1)
        print(f"| {kind} | {np.median(errors):.0%} | {np.quantile(errors, 0.9):.0%} | {sign:+.0f} | {len(values)} |")


if __name__ == "__main__":
    main()
