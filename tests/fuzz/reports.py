"""Reports of a profiler, recorded streams of operators and command lines of engines, nearly right."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import iomodel
from tests.fuzz.files import write
from tests.fuzz.law import Case, answered
from tests.fuzz.texts import TEXTS, hostile, nearly, scribble, text_changed

TESTS = Path(__file__).parents[1]
METRICS = (
    "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sectors_srcunit_tex_op_read.sum", "gpu__time_duration.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum", "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum", "launch__grid_size",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
)  # fmt: skip
UNITS = ("byte", "Kbyte", "Mbyte", "Gbyte", "sector", "Ksector", "usecond", "ns", "", "%", "byte/block", "Xbyte")
CELLS = (
    "0", "1", "1,048,576", "2.5", "-3", "nan", "inf", "1e400", "9" * 400, "", "n/a", "1.2.3", "0x10", "1e", '"', ",",
    "1_0", "1e308",
)  # fmt: skip
PATTERNS = ("flash", "k", ".", "^", "(", "[", "(a+)+$", "x" * 5000, "", "\\", "(?i)K", "a{99999}", "\ud800", "(?P<n>x)")
W = iomodel.Attention(batch=2, heads=4, q_len=256, head_dim=64)
SIZES = {"block_q": 64, "block_kv": 64}


@cache
def predicted(algorithm: str) -> iomodel.Estimate:
    """An estimate that a report is held against."""
    return iomodel.estimate(algorithm, W, "a100-sxm4-80gb", None if algorithm == "standard" else SIZES)


def _table(rng: Random) -> str:
    """The text of a table, right or with cells changed."""
    names = rng.sample(METRICS, rng.randrange(1, len(METRICS)))
    kinds = ("flash_fwd_kernel",) * 4 + ("void k<int, 64>(T*)", "", "softmax")
    kernels = [rng.choice(kinds) for _ in range(rng.choice((1, 1, 2, 3, 6, 0)))]
    cell = lambda: rng.choice(CELLS) if rng.random() < 0.05 else str(rng.randrange(10**9))  # noqa: E731
    units = [rng.choice(UNITS) if rng.random() < 0.1 else "byte" for _ in names]
    if rng.random() < 0.5:
        rows = [["ID", "Kernel Name", *names], ["", "", *units]]
        rows += [[str(place), kernel, *(cell() for _ in names)] for place, kernel in enumerate(kernels)]
    else:
        rows = [["ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"]]
        rows += [
            [str(place), kernel, name, unit, cell()]
            for place, kernel in enumerate(kernels)
            for name, unit in zip(names, units, strict=True)
        ]
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        row = rng.choice(rows)
        row[rng.randrange(len(row))] = rng.choice((*CELLS, *TEXTS, scribble(rng)))
    return "==PROF== Connected\n" + "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows) + "\n"


def report(rng: Random) -> Case:
    """A report of Nsight Compute: a table, or bytes in place of a binary file."""
    content = _table(rng).encode("utf-8", "surrogatepass")
    for _ in range(rng.choice((0, 0, 0, 1, 3))):
        content = text_changed(content, rng)
    if rng.random() < 0.1:
        content = hostile(rng)
    ending = "csv" if rng.random() < 0.85 else rng.choice(("ncu-rep", "ncu-repz", "txt"))
    name = write(content, f"report.{ending}", rng)
    pattern = "flash|k|x" if rng.random() < 0.8 else rng.choice(PATTERNS)
    algorithm = rng.choice(("flash2",) * 5 + ("standard",))

    def run() -> object:
        found = iomodel.testing.audit(name, {pattern: predicted(algorithm)})
        return str(found), found.to_json(), found.records()

    return Case(
        "reports", f"audit({content[:2500]!r}, {pattern[:80]!r}, {algorithm}, .{ending})", lambda: answered(run)
    )


@cache
def streams() -> tuple[bytes, ...]:
    """The first calls of each recorded stream."""
    files = sorted((TESTS / "torch" / "streams").glob("*.jsonl"))
    return tuple(b"\n".join(file.read_bytes().splitlines()[:12]) + b"\n" for file in files)


def stream(rng: Random) -> Case:
    """A recorded stream of PyTorch operators, with a line or a value changed; it is counted and timed."""
    lines = rng.choice(streams()).split(b"\n")
    for place in rng.sample(range(len(lines) - 1), min(len(lines) - 1, rng.choice((0, 1, 1, 2)))):
        lines[place] = nearly(lines[place], rng, json.dumps).replace(b"\n", b" ")
    name = write(b"\n".join(lines), "calls.jsonl", rng)
    device = rng.choice((None, None, "h100-sxm5", "h100", 7))
    choices: dict[str, Any] = {}
    if rng.random() < 0.3:
        choices["tiles"] = {rng.choice(("block_m", "block_q", "block_n", "x")): rng.choice((1, 64, 0, 10**30, "x"))}
    if rng.random() < 0.3:
        choices["attention"] = rng.choice(("flash2", "eager", "standard", "gemm", "x", 3))

    def run() -> object:
        found = iomodel.torch.traffic(iomodel.torch.read_calls(name), device, **choices)
        return str(found), found.to_json(), found.by_module()

    told = f"traffic({b' '.join(lines)[:2500]!r}, {device}, {choices})"
    return Case("streams", told, lambda: answered(run))


WORDS = (
    "-tp", "--tensor-parallel-size", "-pp", "-dp", "--data-parallel-size", "--enable-expert-parallel", "--max-num-seqs",
    "--gpu-memory-utilization", "--kv-cache-dtype", "--dtype", "--quantization", "--block-size", "--port", "--tp-size",
    "--enable-prefix-caching", "--ep-size", "--enable-dp-attention", "--mem-fraction-static", "--max-running-requests",
    "--page-size", "--cpu-offload-gb", "--model", "--model-path", "--speculative-config",
)  # fmt: skip
VALUES = (
    "1",
    "2",
    "4",
    "8",
    "0",
    "-1",
    "1.5",
    "0.9",
    "2",
    "fp8",
    "auto",
    "bfloat16",
    "int4",
    "9" * 30,
    "x",
    "",
    "=",
    "٣",
)


def command(rng: Random) -> Case:
    """The command line of an engine, read into the arguments of a plan and written again."""
    model = rng.choice(("meta-llama/Llama-3.1-8B-Instruct", "llama-3-8b", "deepseek-ai/DeepSeek-V3", "no/such", "."))
    words = [rng.choice(("vllm serve", "python -m sglang.launch_server --model-path", "sglang serve", "trtllm")), model]
    for _ in range(rng.randrange(6)):
        word, entry = rng.choice(WORDS), rng.choice(VALUES)
        words.append(rng.choice((f"{word} {entry}", f"{word}={entry}", word, f"{word.replace('-', '_')} {entry}")))
    typed = " ".join(words)
    if rng.random() < 0.25:
        typed = text_changed(typed.encode(), rng).decode("utf-8", "replace")
    if rng.random() < 0.05:
        typed = rng.choice(TEXTS)
    engine = rng.choice(("vllm", "sglang", "trtllm", "tensorrt-llm", "x", None))

    def run() -> object:
        fields = iomodel.planning.engine_arguments(typed)
        if rng.random() < 0.6:
            return fields
        found = iomodel.plan(hardware="h100-sxm5", prompt=64, output=4, **fields)
        flags = iomodel.planning.engine_flags(found, engine)  # type: ignore[arg-type]
        return str(flags), flags.to_json()

    return Case("engines", f"{typed!r:.1500}, engine={engine!r}", lambda: answered(run))
