"""Bounds of the reference programs of SOL-ExecBench, against NVIDIA's and against its published baselines on a B200.

    python -m benchmarks.sol_execbench CLONE [--workloads 3]

CLONE is a clone of github.com/williamqwu/sol-execbench-rocm, which keeps what can be read of them: NVIDIA's published
B200 times (reference/nvidia-b200/published.json), products and bytes by its tool SOLAR (artifacts/03-MI355X/t_sol.json)
and some reference programs (under artifacts/10). PyTorch is needed, a build for the CPU is enough: tensors are on the
meta device. The programs of the clone are executed.

FLOPs have to be twice SOLAR's products. Bytes are those of the inputs that a program reads and of its results; SOLAR
leaves out some of them, or counts an intermediate, in the programs that are listed. A bound above a baseline, which is
a measured time, would be false.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from subprocess import run
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from iomodel.torch import TrafficMode  # noqa: E402

DEVICE = "b200"
PUBLISHED = "reference/nvidia-b200/published.json"
SOLAR = "artifacts/03-MI355X/t_sol.json"
NEAR = 2e-3
"""Largest difference of bytes that are called equal [-]: biases and scales."""
SCALARS = {"eps": 1e-6}
"""Scalar inputs by a part of their name, which change no count; others are 0.1, or 1."""


class Checked(NamedTuple):
    """A workload of a program: ratios of FLOPs and bytes to SOLAR's, and of the bound to the published times."""

    program: str
    flops: float | None
    bytes: float
    sol: float | None
    baseline: float | None


def read(clone: Path, path: str) -> Any:
    """Read a file of a clone at its head; JSON as data."""
    text = run(["git", "-C", str(clone), "show", f"HEAD:{path}"], capture_output=True, text=True, check=True).stdout
    return json.loads(text) if path.endswith(".json") else text


def references(clone: Path, names: list[str]) -> dict[str, str]:
    """Return the sources of the reference programs by name."""
    listed = run(["git", "-C", str(clone), "ls-tree", "-r", "--name-only", "HEAD", "artifacts/10"], capture_output=True,
                 text=True, check=True).stdout  # fmt: skip
    found: dict[str, str] = {}
    for path in listed.splitlines():
        if path.endswith(("/reference.py", "/definition.json")):
            text = read(clone, path)
            source = text.get("reference", "") if isinstance(text, dict) else text
            label = f"{path} {text.get('name', '')}" if isinstance(text, dict) else path
            known = text.get("name") if isinstance(text, dict) else None
            name = next((each for each in names if each in label or (known and each.endswith(known))), None)
            if name is not None and "def run" in source:
                found.setdefault(name, source)
    return found


def argument(name: str, shape: list[int] | None, dtype: str, axes: dict[str, int]) -> Any:
    """Make an input: a tensor on the meta device, or a scalar."""
    import torch

    if shape is not None:
        return torch.empty(shape, dtype=getattr(torch, dtype.removeprefix("torch.")), device="meta")
    known = next((value for part, value in SCALARS.items() if part in name), None)
    return axes.get(name, known if known is not None else 0.1 if "float" in dtype else 1)


def checked(name: str, source: str, workload: dict[str, Any], published: list[dict[str, Any]]) -> Checked:
    """Record a program on a workload, and hold its bound against NVIDIA's."""
    import torch

    axes = workload["axes"]
    names: dict[str, Any] = {"__name__": "reference"}
    inputs = [argument(*each, axes) for each in json.loads(workload["shared_signature"])]
    with torch.device("meta"):
        exec(compile(source, name, "exec"), names)
        with TrafficMode(DEVICE) as mode:
            results = names["run"](*inputs)  # alive at the end of the block, so that the bound has their bytes
    del results
    report = mode.report()
    bound = report.bound()
    told = next((one for one in published if one["axes"].items() >= axes.items()), {})
    ratios = [bound.seconds * 1e3 / told[key] if told.get(key) else None for key in ("sol_ms", "baseline_latency_ms")]
    macs = workload["macs"]
    return Checked(name, report.flops / (2 * macs) if macs else None, bound.bytes / workload["memory_bytes"], *ratios)


def all_checked(clone: Path, most: int) -> Iterator[Checked]:
    """Yield the workloads of each program; print why a program is left out."""
    published, solar = read(clone, PUBLISHED)["kernels"], read(clone, SOLAR)["problems"]
    for name, source in sorted(references(clone, list(published)).items()):
        workloads = [each for each in solar.get(name, {}).get("workloads", {}).values() if each.get("shared_signature")]
        if not workloads:
            print(f"left out: {name}: SOLAR has no bound")
        try:
            for workload in workloads[:most]:
                yield checked(name, source, workload, published[name]["workloads"])
        except (RuntimeError, TypeError) as error:
            print(f"left out: {name}: {str(error).splitlines()[0][:90]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--workloads", type=int, default=3, help="most workloads of a program")
    given = parser.parse_args()
    rows = list(all_checked(given.clone, given.workloads))
    products = [row for row in rows if row.flops is not None]
    near = {name: all(abs(row.bytes - 1) < NEAR for row in rows if row.program == name) for name in dict.fromkeys(
        row.program for row in rows)}  # fmt: skip
    baselines = [row.baseline for row in rows if row.baseline is not None]
    print(f"{len(near)} programs, {len(rows)} workloads")
    print(f"FLOPs equal in {sum(row.flops == 1 for row in products)} of {len(products)} workloads with products")
    print(f"bytes equal in {sum(near.values())} programs; in others, over SOLAR's:")
    for name in (name for name, same in near.items() if not same):
        print(f"  {name}: {median(row.bytes for row in rows if row.program == name):.2f}")
    above = sum(ratio > 1 for ratio in baselines)
    print(f"bound over a published baseline: at most {max(baselines):.2f}, {above} of {len(baselines)} above 1")
    print(f"bound over NVIDIA's: median {median(row.sol for row in rows if row.sol):.2f}")


if __name__ == "__main__":
    main()
