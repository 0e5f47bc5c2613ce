"""Prune an autotune list that a public package ships, and compile all of it: the compile time that is saved.

    pip install triton==3.9.0 liger-kernel==0.8.5
    python benchmarks/triton_autotune.py [--kernels liger_up ...] [--arch 86]

The list is that of the package's own `triton.autotune`, unmodified; the kernel is described from the TTIR of one config
(`triton_public_kernels.py`). Each config is compiled to the end, as the autotuner does before it measures, and is timed
in CPU seconds of the compiler and the assembler.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from triton_compiles import LIMITS, watched  # noqa: E402
from triton_described import source  # noqa: E402
from triton_public_kernels import KERNELS  # noqa: E402

import iomodel.triton  # noqa: E402

DEVICES = {80: "a100-sxm4-80gb", 86: "rtx3090", 89: "rtx4090", 90: "h100-sxm5", 120: "rtx5090"}


def seconds() -> float:
    """CPU time of this process and of the assemblers that it has started [s]."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def compiled(kernel: Any, config: dict[str, int], arch: int, warps: int, stages: int) -> tuple[int, float, str]:
    """Compile a config to the end: its shared memory [B], its time [s], the TTIR."""
    start, seen = seconds(), {}

    def stages_seen(*given: Any) -> tuple[str, str] | None:
        if not given:
            return "", ""
        steps = given[1]
        first, last = steps["ttir"], steps["cubin"]

        def ttir(module: Any, metadata: dict[str, Any]) -> Any:
            result = first(module, metadata)
            seen["ttir"] = str(result)
            return result

        def cubin(ptx: str, metadata: dict[str, Any]) -> Any:
            seen["shared"] = metadata["shared"]
            return last(ptx, metadata)

        steps["ttir"], steps["cubin"] = ttir, cubin
        return None

    error = watched(stages_seen, lambda: source(kernel, config), arch, warps, stages)
    assert "shared" in seen, error
    return int(seen["shared"]), seconds() - start, str(seen["ttir"])


def report(name: str, arch: int, usual: dict[str, int]) -> str:
    """Prune the list of a kernel and compile every config of it; `usual` are tiles that the package sets itself."""
    kernel = next(known for known in KERNELS if known.name == name)
    configs = getattr(importlib.import_module(kernel.module), kernel.function).configs
    text = compiled(kernel, kernel.described, arch, 4, 2)[2]
    described = iomodel.triton.describe(text, kernel.described)
    keep = iomodel.triton.pruner(None, DEVICES[arch], kernel=described, version="3.9.0")
    kept = keep.pruned(configs, usual)
    taken = {id(config): compiled(kernel, {**usual, **config.kwargs}, arch, config.num_warps, config.num_stages)
             for config in configs}  # fmt: skip
    fitting = [config for config in configs if taken[id(config)][0] <= LIMITS[arch]]
    whole, spent = (sum(taken[id(config)][1] for config in part) for part in (configs, kept.kept))
    lost = [config for config in fitting if config not in kept.kept]
    needless = [config for config in kept.kept if config not in fitting]
    return (
        f"| {name} | sm_{arch} | {len(configs)} | {len(kept.kept)} | {len(fitting)} | {len(lost)} | {len(needless)} "
        f"| {whole:.0f} s | {1 - spent / whole:.0%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", nargs="*", default=["liger_up"])
    parser.add_argument("--arch", type=int, default=86, choices=[*DEVICES])
    parser.add_argument("--rows", type=int, default=64, help="BLOCK_M, which Liger sets itself as BLOCK_M_TOKEN")
    given = parser.parse_args()
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
    print("| kernel | architecture | configs | kept | fit | fitting dropped | others kept | compile time | saved |")
    for name in given.kernels:
        print(report(name, given.arch, {"BLOCK_M": given.rows}), flush=True)


if __name__ == "__main__":
    main()
