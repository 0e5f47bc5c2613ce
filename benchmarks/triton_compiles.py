"""Compile the kernels of `triton_kernels.py`, `..._more.py`, `..._masked.py` and FlexAttention's without a GPU.

    pip install triton==3.9.0
    python benchmarks/triton_compiles.py compiles.csv [--count 3600] [--seed 0] [--seconds 3600] [--kernels NAME ...]
        [--arch 100 ...] [--to-the-end]

With `--kernels` only those are drawn, for all architectures but sm_120, and every case is compiled to the end.
FlexAttention's, `flex_forward`, `flex_decode`, `flex_backward` and `flex_backward_four`, are PyTorch's own templates
(`triton_templates.py`); they are drawn by name, for eight architectures, and one in twelve is compiled to the end, or
every one with `--to-the-end`. `--arch` draws cases of these architectures.

Each compile appends a row. The cases are drawn at random, in the same order for the same seed; cases that the file
already has are left out, so an interrupted run goes on where it stopped. A worker process compiles, because a failed
assertion of the compiler ends it. A kernel that asks for more shared memory than a block may have is not handed to
ptxas: it has no registers in the file.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

LIMITS = {
    75: 65_536,
    80: 166_912,
    86: 101_376,
    89: 101_376,
    120: 101_376,
    121: 101_376,
    90: 232_448,
    100: 232_448,
    103: 232_448,
}
"""Shared memory that a block may have, by architecture [B]."""

FORWARD = "Q K V O : LSE : scale ~ q_len kv_len stride"
KERNELS = {
    "forward": FORWARD,
    "forward_early": FORWARD,
    "forward_two": FORWARD,
    "forward_descriptor": FORWARD,
    "decode": "Q K V : PART LSE : scale TABLE ~ kv_len splits group stride",
    "mla_decode": "Q C : PART LSE : scale TABLE ~ kv_len splits group stride",
    "backward_dkdv": "Q K V DO DK DV : LSE DELTA : scale ~ q_len kv_len stride",
    "backward_dq": "Q K V DO DQ : LSE DELTA : scale ~ q_len kv_len stride",
    "matmul": "A B C : : ~ rows columns depth stride_a stride_b stride_c",
    "forward_persistent": FORWARD + " tiles",
    "forward_flex": "Q K V O : LSE : scale PART_COUNT PART_LIST FULL_COUNT FULL_LIST ~ q_len kv_len stride",
    "decode_dense": "Q K V : PART LSE : scale ~ kv_len splits group stride",
    "backward_flex": "Q K V DO DQ DK DV : LSE DELTA : scale PART_COUNT PART_LIST FULL_COUNT FULL_LIST "
    "~ q_len kv_len key_tiles stride",
    "forward_selected": "Q K V O : LSE : scale SELECTED COUNT ~ q_len kv_len stride",
    "forward_banded": "Q K V O : LSE : scale IDS ~ q_len kv_len stride",
}
"""Arguments by kernel: tensors in the dtype, fp32 tensors, others; after ~ the integers."""
SHARES = {
    "forward": 12, "forward_early": 5, "forward_two": 8, "forward_descriptor": 5, "decode": 7, "mla_decode": 3,
    "backward_dkdv": 9, "backward_dq": 9, "matmul": 4, "forward_persistent": 10, "forward_flex": 14,
    "decode_dense": 4, "backward_flex": 10,
}  # fmt: skip
DECODE = ("decode", "decode_dense", "mla_decode")
CAUSAL = (
    "forward", "forward_early", "forward_descriptor", "backward_dkdv", "backward_dq", "forward_persistent",
    "forward_flex", "forward_selected", "forward_banded",
)  # fmt: skip
FLEX = ("forward_flex", "backward_flex")
TEMPLATES = ("flex_forward", "flex_decode", "flex_backward", "flex_backward_four")
"""Kernels that PyTorch's templates make; the tiles of the second kind of programs of the last are drawn too."""
NAMED = "TRITON_COMPILES_NAMED"
"""The variable of the environment that tells a worker that kernels are named."""
SPARSE_BLOCK = 128
"""Rows of a block of a sparse mask; the tiles of a loop divide it."""
KEY = ("kernel", "arch", "M", "N", "d", "dtype", "warps", "stages", "causal", "M2", "N2")
MEASURED = ("instruction", "shared", "tmem", "registers", "stack", "spill", "error")
FIELDS = ("triton", *KEY, *MEASURED)


def drawn(rng: random.Random, kernels: Sequence[str] = ()) -> tuple[Any, ...]:
    """One case: a kernel, an architecture and a tile whose fp32 accumulators are not absurdly large."""
    while True:
        kernel = rng.choice(kernels) if kernels else rng.choices(list(SHARES), list(SHARES.values()))[0]
        arch = rng.choices([80, 86, 89, 90, 100, 120], [20, 4, 16, 24, 20, 0 if kernels else 16])[0]
        m, n = (
            rng.choices([16, 32, 64, 128, 256], [1, 1, 3, 4, 2])[0],
            rng.choices([16, 32, 64, 128, 256], [1, 2, 4, 4, 1])[0],
        )
        d = rng.choices([32, 64, 128, 256], [1, 4, 5, 2])[0]
        warps, stages = rng.choices([2, 4, 8, 16], [1, 5, 5, 1])[0], rng.choices([1, 2, 3, 4, 5], [3, 5, 4, 3, 1])[0]
        dtype = rng.choices(["fp16", "bf16", "fp8"], [4, 4, 1])[0]
        causal = int(kernel in CAUSAL and rng.random() < 0.4)
        wide = m * (n + d)
        if kernel in DECODE:
            m, n, warps = rng.choice([16, 16, 32, 64]), rng.choice([16, 32, 64, 128]), rng.choice([1, 2, 4, 4, 8])
            d = d if kernel != "mla_decode" else rng.choice([128, 256, 512])
            wide = m * (n + d)
        elif kernel.startswith("backward"):
            wide = m * d + 2 * m * n if kernel == "backward_dq" else 2 * n * d + 2 * m * n
            dtype = "bf16" if dtype == "fp8" else dtype
        elif kernel == "matmul":
            d = rng.choice([32, 64, 128])
            wide = m * n
        if kernel in FLEX and max(m, n) > SPARSE_BLOCK:
            continue
        if wide <= 320 * 32 * warps and (dtype != "fp8" or arch >= 89):
            return kernel, arch, m, n, d, dtype, warps, stages, causal


def drawn_template(rng: random.Random, kernel: str) -> tuple[Any, ...]:
    """One case of a template; tiles divide the blocks of the mask, and a program steps by a part of its own tile."""
    while True:
        arch = rng.choices([80, 86, 89, 90, 100, 103, 120, 121], [6, 4, 2, 6, 5, 2, 4, 1])[0]
        m, n, m2, n2 = (rng.choices([16, 32, 64, 128], [1, 3, 5, 4])[0] for _ in range(4))
        if kernel == "flex_decode":
            m = rng.choice([16, 16, 32, 64])
        d, warps = rng.choices([32, 64, 128, 256], [1, 4, 5, 2])[0], rng.choices([2, 4, 8], [1, 5, 4])[0]
        stages, dtype = rng.choices([1, 2, 3, 4, 5], [3, 4, 4, 2, 1])[0], rng.choice(["fp16", "bf16"])
        case = kernel, arch, m, n, d, dtype, warps, stages, int(rng.random() < 0.5)
        wide = n * 2 * d + 2 * m * n if "backward" in kernel else m * (n + d)
        if wide > 320 * 32 * warps:
            continue
        if not kernel.startswith("flex_backward"):
            return case
        if n % m == 0 and kernel == "flex_backward":
            return (*case, n, m)
        if n % m == 0 == m2 % n2 and (m2, n2) != (n, m):
            return (*case, m2, n2)


def cases(
    count: int, seed: int, kernels: Sequence[str] = (), architectures: Sequence[int] = ()
) -> Iterator[tuple[Any, ...]]:
    """Distinct cases, in the order of the seed."""
    rng, seen = random.Random(seed), set()
    while len(seen) < count:
        kernel = rng.choice(kernels) if kernels else ""
        case = drawn_template(rng, kernel) if kernel in TEMPLATES else drawn(rng, kernels)
        if architectures:
            case = (case[0], rng.choice(architectures), *case[2:])
        if case not in seen and (case[5] != "fp8" or case[1] >= 89):
            seen.add(case)
            yield case


def source(case: tuple[Any, ...]) -> Any:
    """The kernel with its types; pointers, lengths and strides are multiples of 16, as a launch would find them."""
    import triton_kernels
    import triton_kernels_masked
    import triton_kernels_more
    from triton.compiler import ASTSource

    kernel, _, m, n, d, dtype, _, _, causal, *further = case
    if kernel in TEMPLATES:
        import triton_templates

        return triton_templates.source(kernel.removesuffix("_four"), (m, n, *further), d, dtype, bool(causal))
    typed = {"fp16": "fp16", "bf16": "bf16", "fp8": "fp8e4nv"}[dtype]
    pointers, integers = KERNELS[kernel].split("~")
    tensors, floats, others = ([*part.split()] for part in pointers.split(":"))
    types = (
        dict.fromkeys(tensors, f"*{typed}") | dict.fromkeys(floats, "*fp32") | dict.fromkeys(integers.split(), "i32")
    )
    types |= {name: "fp32" if name == "scale" else "*i32" for name in others}
    if kernel in DECODE:
        types |= {"PART": "*fp32"}
    if dtype == "fp8":
        types |= dict.fromkeys([name for name in ("O", "C") if name in types and kernel != "mla_decode"], "*bf16")
    constants: dict[str, Any] = {"M": m, "N": n, "D": d}
    constants |= {"CAUSAL": bool(causal)} if kernel in CAUSAL else {"R": 64} if kernel == "mla_decode" else {}
    modules = triton_kernels, triton_kernels_more, triton_kernels_masked
    function = next(getattr(module, kernel) for module in modules if hasattr(module, kernel))
    names = function.arg_names
    aligned = {name for name in names if types.get(name, "fp32") != "fp32" and name not in ("splits", "group")}
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in aligned}
    signature = {name: types.get(name, "constexpr") for name in names}
    return ASTSource(function, signature, constants, attributes)


class StoppedError(Exception):
    """The compile went as far as was wanted."""


def assembled_too(case: tuple[Any, ...]) -> bool:
    """Compile one case of five to the end, the others until memory is allocated, in a third of the time.

    Where kernels are named, all of their cases are; of the templates, one in twelve; none of sm_75, where ptxas takes
    minutes for products without matrix instructions.
    """
    if case[1] == 75:
        return False
    if os.environ.get(NAMED) == "to the end":
        return True
    if case[0] in TEMPLATES:
        return zlib.crc32(repr(case).encode()) % 12 == 0
    return NAMED in os.environ or zlib.crc32(repr(case).encode()) % 5 == 0


def watched(seen: Callable[..., Any], made: Callable[[], Any], arch: int, warps: int, stages: int) -> dict[str, str]:
    """Compile a kernel whose stages a hook sees; return the compiler's error, nothing where it was stopped."""
    import triton
    from triton import knobs
    from triton.backends.compiler import GPUTarget

    knobs.runtime.add_stages_inspection_hook = seen
    options = {"num_warps": warps, "num_stages": stages}
    try:
        triton.compile(made(), target=GPUTarget("cuda", arch, 32), options=options)
    except StoppedError:
        pass
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        return {"error": f"{type(error).__name__}: {lines[-1].strip()[:100]}"}
    return {}


def compiled(case: tuple[Any, ...]) -> dict[str, Any]:
    """Compile a case: the memory that a launch asks for, registers and spills, or the compiler's error."""
    from triton.backends.nvidia import compiler

    passes = compiler.nvidia.passes.ttgpuir
    lowering = passes.add_to_llvmir
    arch, row = case[1], dict(zip(KEY, case)) | {"triton": version("triton")}  # noqa: B905

    def stages_seen(*given: Any) -> tuple[str, str] | None:
        if not given:
            return "", ""
        _, stages, options, *_ = given
        lower = stages["llir"]

        def llir(module: Any, metadata: dict[str, Any]) -> Any:
            text = str(module)
            row["instruction"] = instruction(text)
            if path := os.environ.get("TRITON_COMPILES_IR"):
                with Path(path).open("a") as file:
                    file.write(json.dumps({"case": case, "lines": buffers(text)}) + "\n")

            def stopped(manager: Any, *_: Any) -> None:
                manager.run(module, "allocation")
                raise StoppedError

            passes.add_to_llvmir = lowering if assembled_too(case) else stopped
            try:
                return lower(module, metadata)
            finally:
                passes.add_to_llvmir = lowering
                sizes = [module.get_int_attr(f"ttg.{name}") for name in ("shared", "tensor_memory_size")]
                row.update(
                    (name, size) for name, size in zip(("shared", "tmem"), sizes, strict=True) if size is not None
                )

        def cubin(ptx: str, _: dict[str, Any]) -> Any:
            if row["shared"] > LIMITS[arch]:
                return b""
            row.update(assembled(ptx, arch, options))
            return b""

        stages["llir"], stages["cubin"] = llir, cubin
        return None

    return row | watched(stages_seen, lambda: source(case), arch, case[6], case[7])


def instruction(text: str) -> str:
    """The matrix instruction of a module: the widest that it holds."""
    for name, mark in (("tcgen05", "ttng.tc_gen5_mma"), ("wgmma", "ttng.warp_group_dot "), ("mma.sync", "tt.dot ")):
        if mark in text:
            return name
    return ""


def buffers(text: str) -> list[str]:
    """The lines of a module that take memory, for the study of a row."""
    marks = ("local_alloc", "tmem_alloc", "convert_layout", "tt.reduce", "tt.trans", "global_scratch")
    return [line.strip() for line in text.splitlines() if any(mark in line for mark in marks)]


def assembled(ptx: str, arch: int, options: Any) -> dict[str, Any]:
    """Registers, stack and spill stores of ptxas [-], [B], [B], with the options that Triton gives it."""
    from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.ptx"
        file.write_text(ptx)
        fused = [] if options.enable_fp_fusion else ["--fmad=false"]
        command = [get_ptxas(arch).path, "-lineinfo", *fused, "-v", "--regAllocOptLevel=2"]
        command += [f"--gpu-name={sm_arch_from_capability(arch)}", str(file), "-o", str(file) + ".o"]
        try:
            log = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        except subprocess.TimeoutExpired:
            return {"error": "ptxas: more than 90 s"}
    if log.returncode:
        return {"error": "ptxas: " + (log.stderr.strip().splitlines() or [str(log.returncode)])[-1][:100]}
    numbers = [
        re.search(words, log.stderr) for words in (r"Used (\d+) reg", r"(\d+) bytes stack", r"(\d+) bytes spill stores")
    ]
    return dict(zip(("registers", "stack", "spill"), (int(each[1]) if each else "" for each in numbers), strict=True))


def work(pipe: Any) -> None:
    os.environ["TRITON_CACHE_DIR"] = folder = tempfile.mkdtemp()
    while case := pipe.recv():
        pipe.send(compiled(case))
        shutil.rmtree(folder, ignore_errors=True)


def rows(wanted: list[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """Compile the cases one after the other in a worker, which is started anew after a crash."""
    context = multiprocessing.get_context("spawn")
    worker = pipe = None
    for case in wanted:
        if worker is None:
            pipe, theirs = context.Pipe()
            worker = context.Process(target=work, args=(theirs,), daemon=True)
            worker.start()
            theirs.close()
        assert pipe is not None
        try:
            pipe.send(case)
            yield pipe.recv()
        except (EOFError, OSError):
            worker.join()
            worker = None
            yield dict(zip(KEY, case)) | {  # noqa: B905
                "triton": version("triton"),
                "error": "crash of the compiler",
            }
    if worker is not None and pipe is not None:
        pipe.send(None)
        worker.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=3600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--kernels", nargs="*", default=(), choices=[*KERNELS, *TEMPLATES])
    parser.add_argument("--arch", nargs="*", type=int, default=(), choices=[*LIMITS])
    parser.add_argument("--to-the-end", action="store_true")
    given = parser.parse_args()
    if given.kernels or given.to_the_end:
        os.environ[NAMED] = "to the end" if given.to_the_end else "1"
    done = set()
    if given.file.exists():
        with given.file.open(newline="") as file:
            done = {tuple(row[name] for name in KEY if row.get(name)) for row in csv.DictReader(file)}
    drawn_cases = cases(given.count, given.seed, given.kernels, given.arch)
    wanted = [case for case in drawn_cases if tuple(map(str, case)) not in done]
    print(f"{len(done)} done, {len(wanted)} to compile")
    end = time.monotonic() + given.seconds
    with given.file.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for row in rows(wanted):
            writer.writerow(row)
            file.flush()
            if time.monotonic() > end:
                break


if __name__ == "__main__":
    main()
