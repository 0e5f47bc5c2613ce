"""Compile the kernels of `triton_public_kernels.py` without a GPU, and write the TTIR that describes each.

    pip install triton==3.9.0 fla-core==0.6.0 liger-kernel==0.8.5  # and the files of Dao-AILab's and AITER's kernels
    python benchmarks/triton_described.py compiles.csv --texts FOLDER [--count 60] [--seed 0] [--kernels NAME ...]

Each compile goes as far as the allocation of memory and appends a row; `FOLDER/NAME.ttir` is the text of the described
config, `FOLDER/NAME.2.ttir` that of another one, for kernels with two extents of one size. The configs are drawn at
random, in the same order for the same seed, for eight architectures.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import multiprocessing
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from triton_compiles import StoppedError, instruction, watched
from triton_public_kernels import KERNELS, PublicKernel

FIELDS = ("kernel", "arch", "config", "warps", "stages", "instruction", "shared", "tmem", "error")
ARCHITECTURES = (80, 86, 89, 90, 100, 103, 120, 121)


def cases(kernel: PublicKernel, count: int, seed: int) -> Iterator[tuple[int, dict[str, int], int, int]]:
    """Distinct configs of a kernel, in the order of the seed."""
    rng, seen = random.Random(f"{kernel.name} {seed}"), set()
    while len(seen) < count:
        arch = rng.choices(ARCHITECTURES, [6, 3, 3, 6, 6, 2, 4, 1])[0]
        config = {name: rng.choice(values) for name, values in kernel.choices.items()}
        warps, stages = rng.choices([2, 4, 8], [1, 5, 4])[0], rng.choices([1, 2, 3, 4, 5], [3, 4, 4, 3, 1])[0]
        case = arch, tuple(config.items()), warps, stages
        if case not in seen:
            seen.add(case)
            yield arch, config, warps, stages


def another(config: dict[str, int]) -> dict[str, int]:
    """A config in which no two tiles have grown by one factor."""
    factors = 2, 0.5, 1, 4
    return {name: int(value * factor) for (name, value), factor in zip(config.items(), factors, strict=False)}


def source(kernel: PublicKernel, config: dict[str, int]) -> Any:
    """The kernel with its types and constants."""
    from triton import language
    from triton.compiler import ASTSource

    function = getattr(importlib.import_module(kernel.module), kernel.function)
    while type(function).__name__ != "JITFunction":
        function = function.fn
    names = [parameter.name for parameter in function.params]
    constants = {**kernel.constants, **config, **dict.fromkeys(kernel.ones, 1)}
    constants = {name: value for name, value in constants.items() if name in names}
    if constants.get("compute_type") == "bf16":
        constants["compute_type"] = language.bfloat16
    signature: dict[str, str] = {}
    for parameter in function.params:
        name = parameter.name
        if parameter.is_constexpr or name in constants or kernel.types.get(name) == "none":
            signature[name] = "constexpr"
            constants.setdefault(name, None)
        elif name in kernel.floats:
            signature[name] = "fp32"
        elif name in kernel.integers or name.startswith("stride") or name in ("T", "T_BUCKET"):
            signature[name] = "i32"
        else:
            signature[name] = kernel.types.get(name, "*bf16")
    aligned = [name for name in names if signature[name] not in ("fp32", "constexpr")]
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in aligned}
    return ASTSource(function, signature, constants, attributes)


def compiled(name: str, arch: int, config: dict[str, int], warps: int, stages: int, text: str = "") -> dict[str, Any]:
    """Compile a config as far as its memory; `text` is a file for the TTIR, which ends the compile."""
    from triton.backends.nvidia import compiler

    kernel = next(known for known in KERNELS if known.name == name)
    row: dict[str, Any] = {
        "kernel": name, "arch": arch, "config": json.dumps(config), "warps": warps, "stages": stages,
    }  # fmt: skip
    passes = compiler.nvidia.passes.ttgpuir
    lowering = passes.add_to_llvmir

    def stages_seen(*given: Any) -> tuple[str, str] | None:
        if not given:
            return "", ""
        stages = given[1]
        first, lower = stages["ttir"], stages["llir"]

        def ttir(module: Any, metadata: dict[str, Any]) -> Any:
            result = first(module, metadata)
            if text:
                Path(text).write_text(str(result))
                raise StoppedError
            return result

        def llir(module: Any, metadata: dict[str, Any]) -> Any:
            row["instruction"] = instruction(str(module))

            def stopped(manager: Any, *_: Any) -> None:
                manager.run(module, "allocation")
                if path := os.environ.get("TRITON_DESCRIBED_IR"):
                    Path(path).write_text(str(module))
                raise StoppedError

            passes.add_to_llvmir = stopped
            try:
                return lower(module, metadata)
            finally:
                passes.add_to_llvmir = lowering
                for figure, attribute in (("shared", "shared"), ("tmem", "tensor_memory_size")):
                    if (size := module.get_int_attr(f"ttg.{attribute}")) is not None:
                        row[figure] = size

        stages["ttir"], stages["llir"] = ttir, llir
        return None

    return row | watched(stages_seen, lambda: source(kernel, config), arch, warps, stages)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernels", nargs="*", default=[kernel.name for kernel in KERNELS])
    given = parser.parse_args()
    new = not given.file.exists()
    with given.file.open("a", newline="") as file, multiprocessing.Pool(1, maxtasksperchild=40) as pool:
        writer = csv.DictWriter(file, FIELDS, extrasaction="ignore")
        if new:
            writer.writeheader()
        for kernel in (known for known in KERNELS if known.name in given.kernels):
            for number, config in (("", kernel.described), (".2", another(kernel.described))):
                text = str(given.texts / f"{kernel.name}{number}.ttir")
                print(pool.apply(compiled, (kernel.name, 80, config, 4, 3, text)).get("error", text))
            for case in cases(kernel, given.count, given.seed):
                try:
                    writer.writerow(pool.apply_async(compiled, (kernel.name, *case)).get(120))
                except multiprocessing.TimeoutError:  # a worker that the compiler has ended
                    print("lost", kernel.name, case)
                    pool.terminate()
                    pool = multiprocessing.Pool(1, maxtasksperchild=40)
                file.flush()


if __name__ == "__main__":
    main()
