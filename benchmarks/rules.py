"""Time of a call of a written rule over that of an empty function, and its splits on measured sweeps.

    python benchmarks/rules.py [--calls 1600]

The sweeps are the lists of splits in tests/measured/decisions.csv, which no rule is learned from: a rule is learned
for their kernel, and takes the listed number nearest to its own. Beside it stand the rules of FlashAttention as the
library declares them, those of cuDNN's frontend and of SGLang, and a block for each SM. C++ needs a compiler.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from math import log
from pathlib import Path
from timeit import repeat
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402
from benchmarks.decisions import CUDA_CORES, REGISTERS, WARP  # noqa: E402
from iomodel.algorithms import algorithm  # noqa: E402
from iomodel.algorithms._front_ends import front_end  # noqa: E402
from iomodel.algorithms._tiles import SPLITS  # noqa: E402

DEVICE, KERNELS = "h100-sxm5", "flash-attention-3"
CALLED, TIMES = 256, 400
"""Drawn calls that are made one after the other, and rounds of them."""
MAIN = """
#include <chrono>
#include <cstdio>
using namespace choose_split_kv_rule;
__attribute__((noinline)) bool empty(int, ll, ll, ll, ll, ll, ll, bool, Launch&) { asm volatile(""); return true; }
__attribute__((noinline)) bool whole(int a, ll b, ll c, ll d, ll e, ll f, ll g, bool h, Launch& l) {
    return choose_split_kv(a, b, c, d, e, f, g, h, l);
}
static const ll CALLS[][7] = {%s};
template <class F> double timed(F call) {
    double least = 1e9; Launch l = {};
    for (int round = 0; round < 200; ++round) {
        auto start = std::chrono::steady_clock::now();
        for (const auto& a : CALLS) {
            call(0, a[0], a[1], a[2], a[3], a[4], a[5], a[6], l);
            asm volatile("" :: "m"(l));
        }
        double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (took < least) least = took;
    }
    return least;
}
int main() { std::printf("%%.9f %%.9f\\n", timed(empty), timed(whole)); }
"""


def drawn(rule: iomodel.results.Rule) -> list[dict[str, Any]]:
    calls = rule.domain.drawn(CALLED, 99)
    return [{name: column[i].item() for name, column in calls.items()} for i in range(CALLED)]


def python_ratio(rule: iomodel.results.Rule) -> tuple[float, float]:
    """Time a call of the Python function [s], and of an empty function of the same arguments."""
    names: dict[str, Any] = {}
    exec(compile(rule.text(), "rule", "exec"), names)
    calls = [tuple(call.values()) for call in drawn(rule)]

    def empty(device, q_len, kv_len, batch, heads, kv_heads, head_dim, causal=False):
        pass

    def made(function: Callable[..., Any]) -> float:
        def run() -> None:
            for call in calls:
                function(DEVICE, *call)

        return min(repeat(run, number=10, repeat=20)) / 10 / CALLED

    idle = min(repeat(lambda: [None for _ in calls], number=10, repeat=20)) / 10 / CALLED
    return made(names["choose_split_kv"]) - idle, made(empty) - idle


def cpp_ratio(rule: iomodel.results.Rule) -> tuple[float, float] | None:
    """Time a call of the C++ function [s], and of an empty function of the same arguments; None without a compiler."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        return None
    rows = ", ".join("{" + ", ".join(str(int(value)) for value in call.values()) + "}" for call in drawn(rule))
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "rule.cpp"), Path(folder, "rule")
        source.write_text(rule.text("cpp") + MAIN % rows, encoding="utf-8")
        subprocess.run([compiler, "-O2", str(source), "-o", str(program)], check=True)
        output = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    empty, whole = (float(word) / CALLED for word in output.split())
    return whole, empty


def sweeps() -> Iterator[list[dict[str, str]]]:
    with (ROOT / "tests" / "measured" / "decisions.csv").open(newline="", encoding="utf-8") as file:
        for _, rows in groupby(csv.DictReader(file), key=lambda row: row["list"]):
            listed = list(rows)
            if listed[0]["family"] == "splits" and listed[0]["device"] == DEVICE:
                yield listed


def of_the_sweeps(calls: int) -> iomodel.results.Rule:
    """Learn a rule of the kernel of the sweeps, as benchmarks/decisions.py describes it."""
    layout = replace(REGISTERS, sizes=((1, 2, 4, 8), (WARP,)))
    how = replace(algorithm("split_kv").execution["forward"], in_flight=CUDA_CORES)
    kernels = iomodel.kernels.Implementation(
        "cuda-decode",
        residency={"forward": (layout,)},
        execution={"forward": how},
        searched={"splits": SPLITS, "packed": (False, True)},
    )
    domain = iomodel.results.Domain(max_q_len=1, max_group=8, head_dims=(128,))
    return iomodel.rule("split_kv", DEVICE, implementation=kernels, domain=domain, calls=calls, progress=True)


def of_cudnn(blocks: int, kv_len: int, rows: int, units: int) -> int:
    """Splits of `choose_split_kv` of github.com/NVIDIA/cudnn-frontend, sdpa/fwd/heuristics.py, #720 of August 2026.

    Waves of blocks, each of its key tiles and 21 more, and waves of rows that sum the parts, a tenth for each part.
    """
    tiles, waves = -(-kv_len // 128), -(-rows // units)
    powers = [1 << i for i in range((units - 1).bit_length() + 1) if 1 << i <= max(1, tiles // 2)]
    return min(powers, key=lambda s: -(-blocks * s // units) * (-(-tiles // s) + 21) + waves * s / 10)


def of_sglang(blocks: int, units: int) -> int:
    """Splits of `_kv_splits_heuristic` of github.com/sgl-project/sglang, as #36094 of August 2026 set its constants."""
    return 1 << max(1, min(int(1.5 * units) // blocks, 16)).bit_length() - 1


def regrets(rule: iomodel.results.Rule) -> Iterator[str]:
    """Yield a row for each sweep: the splits and the measured regret of each rule."""
    names: dict[str, Any] = {}
    exec(compile(rule.text(), "rule", "exec"), names)
    units = rule.of(DEVICE).units
    for rows in sweeps():
        first = {name: int(rows[0][name]) for name in ("q_len", "kv_len", "batch", "heads", "kv_heads", "head_dim")}
        packed = rows[0]["packed"] == "yes"
        heads = first["batch"] * first["kv_heads" if packed else "heads"]
        best = min(float(row["value"]) for row in rows)
        chosen = {"rule": names["choose_split_kv"](DEVICE, **first)[5], "a block for each SM": -(-units // heads)}
        chosen |= {
            "cuDNN": of_cudnn(heads, first["kv_len"], first["batch"] * first["heads"], units),
            "SGLang": of_sglang(heads, units),
        }
        for kernels in ("flash-attention-3", "flash-attention-2"):
            division = front_end(kernels).division
            assert division is not None
            chosen[kernels] = division.splits(heads, 1, -(-first["kv_len"] // 128), units)
        cells = []
        for name, splits in chosen.items():
            taken = min(rows, key=lambda row: abs(log(int(row["splits"]) / splits)))
            cells.append(f"{name} {splits}: {float(taken['value']) / best - 1:.1%}")
        yield f"{rows[0]['list']} ({rows[0]['role']}): {'; '.join(cells)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1600, help="calls to learn from")
    rule = iomodel.rule("split_kv", DEVICE, implementation=KERNELS, calls=parser.parse_args().calls, progress=True)
    print(rule)
    for language, ratio in (("Python", python_ratio(rule)), ("C++", cpp_ratio(rule))):
        if ratio is not None:
            print(f"{language}: {ratio[0] * 1e9:.1f} ns a call, {ratio[0] / ratio[1]:.1f} empty calls")
    print("\n".join(regrets(of_the_sweeps(parser.parse_args().calls))))


if __name__ == "__main__":
    main()
