"""Times of the programs of KernelBench in eager PyTorch, against its published times.

    python -m benchmarks.kernelbench CLONE FOLDER [--version v1] [--judging]

CLONE is a clone of github.com/ScalingIntelligence/KernelBench with all branches, FOLDER a place for recorded streams,
one of each program; those that are missing are recorded first. PyTorch is needed to record; a build for the CPU is
enough, as tensors are on the meta device. The programs of the clone are executed.

A program judges where the first hexadecimal digit of the SHA-256 of its name, such as
``level1/19_ReLU``, is below 8; the constants of eager kernels were chosen on the others. This rule was committed before
the first of these constants. A published time counts where its problem is that of the version, byte for byte, and where
it is 1 ms or more: shorter programs wait for their host.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from subprocess import run
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402

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


class Row(NamedTuple):
    """A published time [s] of a program on a device."""

    program: str
    device: str
    seconds: float


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


def rows(clone: Path, version: str) -> Iterator[Row]:
    """Yield the times of the problems of a version on devices that are on file."""
    asked = problems(clone, VERSIONS[version])
    for blob, commit in TIMES[version].items():
        timed, times = problems(clone, commit), json.loads(git(clone, "cat-file", "-p", blob))
        for level in LEVELS:
            for file, found in (times.get(level) or {}).items():
                name = f"{level}/{file[:-3]}"
                if found and found.get("hardware") in DEVICES and timed.get(name) == asked.get(name):
                    yield Row(name, DEVICES[found["hardware"]], found["mean"] / 1e3)


def record(source: str, path: Path) -> None:
    """Record the operators that a problem calls, on the meta device, and save them."""
    import torch

    from iomodel.torch import TrafficMode

    def to_meta(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.empty_like(value, device="meta")
        return type(value)(map(to_meta, value)) if isinstance(value, list | tuple) else value

    names: dict[str, Any] = {"__name__": "problem"}
    with torch.device("meta"), torch.no_grad():
        exec(compile(source.replace("'cuda'", "'meta'").replace('"cuda"', '"meta"'), path.name, "exec"), names)
        model = names["Model"](*names["get_init_inputs"]()).to("meta")
        inputs = [to_meta(value) for value in names["get_inputs"]()]
        with TrafficMode() as mode:
            model(*inputs)
    mode.save(path)


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


def ratios(clone: Path, version: str, folder: Path, judging: bool) -> dict[str, list[float]]:
    """Return the predicted over the measured times, with convolutions and without."""
    from iomodel.torch import read_calls, traffic

    found: dict[str, list[float]] = defaultdict(list)
    by_program = defaultdict(list)
    for row in rows(clone, version):
        if row.seconds >= LEAST and judges(row.program) == judging and stream(folder, row.program).exists():
            by_program[row.program].append(row)
    for name, ones in sorted(by_program.items()):
        calls = read_calls(stream(folder, name))
        for row in ones:
            report = traffic(calls, row.device)
            if report.seconds is not None:
                kind = "with convolutions" if any("convolution" in one for one in report.by_operator()) else "others"
                found[kind].append(report.seconds / row.seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--version", choices=list(VERSIONS), default="v1")
    parser.add_argument("--judging", action="store_true", help="the programs that judge")
    given = parser.parse_args()
    for refused in recorded(given.clone, given.version, given.folder):
        print(f"not recorded: {refused}")
    print(f"iomodel {iomodel.__version__}: error of eager times of 1 ms and more, {given.version}")
    print("| programs | median | 90th percentile | sign | rows |\n| --- | ---: | ---: | ---: | ---: |")
    for kind, values in ratios(given.clone, given.version, given.folder, given.judging).items():
        errors = np.abs(np.array(values) - 1)
        sign = 100 * (np.median(values) - 1)
        print(f"| {kind} | {np.median(errors):.0%} | {np.quantile(errors, 0.9):.0%} | {sign:+.0f} | {len(values)} |")


if __name__ == "__main__":
    main()
