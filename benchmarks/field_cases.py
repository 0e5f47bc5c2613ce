"""Questions from public threads, put to the command line: those with the right answer, and those that are open.

    python benchmarks/field_cases.py [--all]

A case states the words of a command and what its output must contain. A case without a mark must hold, and one that is
marked as open must not: when it starts to hold, its mark goes. `.ci/run` runs all of them.
"""

from __future__ import annotations

import argparse
import io
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from iomodel.cli.app import main as iomodel  # noqa: E402

H100 = "--hardware h100-sxm5"
VLLM = "--tensor-parallel 1 --engine vllm"
LLAMA = "plan llama-3-8b --hardware"
W = "--q-len 8192 --head-dim 128 --heads 32 --kv-heads 8 --mask causal"
CALL = "--q-len 4096 --head-dim 64"
CHAT = "--prompt 2048 --output 256"
TRACES = ROOT / "tests" / "planning" / "traces"
PROFILES = ROOT / "tests" / "torch" / "profiles"
RESULTS = ROOT / "tests" / "planning" / "results"


class Case(NamedTuple):
    """A command line, a pattern that its output contains, and the fault that is left, if there is one."""

    words: str
    wanted: str
    open: str = ""


CASES = (
    # fits, fast, runs
    Case(f"check flash3 --hardware h100-sxm5 {W} --block-q 128 --block-kv 128", r"fits\s+yes"),
    Case(f"estimate flash3 --hardware mi300x {W}", r"no kernel|nor has"),
    Case(f"compare standard flash1 flash2 --hardware sim-a100 {CALL}", r"flash2"),
    Case("tiles flash2 --hardware t4 --q-len 2048 --head-dim 512 --heads 16 --kv-heads 8 --dtype fp16", r"T4|t4"),
    Case(f"tiles flash4 --hardware b200 {W}", r"flash-attention-4"),
    # memory of engines
    Case(f"plan gpt-oss-120b {H100} {VLLM} --memory-utilization 0.95 {CHAT}", r"weights (69|70)\.\d"),
    Case(f"plan qwen2.5-7b --hardware l4 {VLLM} --prompt 3840 --output 256", r"requests that fit a replica\s+19"),
    Case("plan deepseek-v3.2 --hardware b200 --tensor-parallel 8 --kv-dtype fp8 --engine sglang --prompt 2048 "
         "--output 256", r"48,068"),
    # files
    Case(f"simulate llama-3-8b --hardware h100-sxm5 --arrivals {TRACES / 'azure-2023-code.csv'}",
         r"arrivals of a trace"),
    Case(f"simulate llama-3-8b --hardware h100-sxm5 --trace {TRACES / 'mooncake-tool.jsonl'} --limit 2", r"hash ids"),
    Case(f"judge {RESULTS / 'sglang-start.log'} --hardware h100-sxm5", r"every figure is within its interval"),
    Case(f"judge {RESULTS / 'guidellm-synchronous.json'} --hardware arc-pro-b60 --tensor-parallel 4 --engine vllm",
         r"GuideLLM: gpt-oss-20b .*clients 1.* TTFT \[ms\] 48\.84"),
    # parts
    Case("plan deepseek-v4-pro --hardware b200 --tensor-parallel 8 --prompt 8192 --output 256", r"TTFT of one"),
    Case("plan llama-3-8b --hardware gb10 --prompt 1024 --output 128", r"requests that fit"),
    Case("plan llama-3-70b --hardware ascend-910b --prompt 1024 --output 128", r"try more devices per replica"),
    Case("plan llama-3-8b --hardware p40 --prompt 1024 --output 128", r"missing: times"),
    Case("check chunked_scan --hardware h100-sxm5 --tokens 1024 --heads 4 --head-dim 256 --value-dim 512 --delta "
         "--block-value 32 --block-chunk 64", r"fits|no kernel"),
    Case(f"{LLAMA} rtx4090 --prompt 1024 --output 128 --kv-dtype q8_0 --weight-dtype q4_K", r"69,632 B"),
    Case(f"{LLAMA} h100-sxm5 {CHAT} --kv-dtype q8_0/q4_0", r"53,248 B"),
    Case(f"estimate flash2 --hardware a100-sxm4-80gb {CALL} --dtype tf32",
         r"xformers.* each product in fp32 as 3 in TF32"),
    Case("plan llama-3-8b --hardware apple-m4-max --prompt 1024 --output 128", r"as 'apple-m4-max 64GB'"),
    Case("plan llama-3-8b --hardware 'M4 Max 64GB' --prompt 1024 --output 128", r"tokens of cache that fit 214,978"),
    Case(f"judge {PROFILES / 'sdpa-gb10.json'}", r"flash-attention-2 matrix -7 yes"),
    Case(f"check fused_mlp {H100} --rows 1024 --in-features 256 --hidden-features 512 --block-m 64 --block-n 64 "
         "--block-k 64", r"fits (yes|no)"),
    Case(f"check cut_cross_entropy {H100} --rows 1024 --in-features 4096 --vocab-size 32000 --block-m 128 "
         "--block-n 128 --block-k 64", r"fits (yes|no)"),
    Case(f"estimate split_mlp {H100} --rows 1024 --in-features 4096 --hidden-features 11008", r"time [\d.,]+ us"),
    Case(f"tiles stepwise_scan {H100} --tokens 1024 --heads 4 --head-dim 64 --value-dim 64", r"block_value \d+"),
    Case(f"{LLAMA} rtx4090 --prompt 1024 --output 128 --kv-dtype iq4_nl --weight-dtype iq4_xs", r"36,864 B"),
    Case(f"{LLAMA} h100-sxm5 --prompt 1024 --output 128 --precision tf32", r"262,144 B"),
    Case(f"{LLAMA} h100-sxm5 --prompt 1024 --output 128 --precision int4", r"131,072 B"),
    Case("cost flash2 --hardware p40 --q-len 4096 --head-dim 64 --block-q 64 --block-kv 64",
         r"counted without the device: compute\.peak\.bf16: p40 lacks it.*requests 68,173,824 B"),
    # words
    Case(f"plan llama-3-8b --hardware h100-sxm5 {CHAT} --tp 2", r"TP 2|tensor-parallel"),
    Case("plan llama-3-8b --hardware h100-sxm5 --input 2048 --output 256", r"2,048 \+ 256 tokens"),
    Case(f"plan llama-3-8b --gpu h100-sxm5 {CHAT}", r"h100-sxm5|--hardware"),
    Case(f"estimate flash2 --hardware h100-sxm5 {CALL} --mask sliding", r"window"),
    Case(f"estimate flash2 --hardware h100-sxm5 {CALL} --tiles 128x64", r"block_q=128, block_kv=64"),
    Case(f"estimate flash2 {H100} --hardware b200 {CALL}", r"algorithms on 2 devices"),
    Case(f"estimate flash2 {H100} {CALL} --dtype fp4", r"allowed: fp32, tf32, fp16, bf16, fp8, int8"),
    Case(f"fleet llama-3-8b {H100} {CHAT} --load 5 --ttft 500 --tpot 50", r"500\.0 given without a unit"),
    Case("diagnose flash2 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --time 1.2", r"1\.2 given without a unit"),
    Case("tiles split_kv --hardware h100-sxm5 --q-len 1 --kv-len 131072 --heads 32 --kv-heads 8 --head-dim 128",
         r"splits 15"),
    Case(f"tiles flash3 --hardware b200 {W}", r"FlashAttention-4|flash-attention-4"),
    Case("formula flash-attention", r"did you mean 'flash2' or 'flash3'"),
    Case("version", r"^iomodel \d"),
    Case("plan meta-llama/Llama-9 --hardware h100-sxm5 --prompt 64 --output 8",
         r"raw/main/config\.json, which is not fetched"),
    Case("model gpt2", r"124,439,808"),
    Case("model gptj", r"did you mean 'gpt2'"),
)  # fmt: skip


def output(words: str) -> str:
    """Run a command line, and return all that it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        iomodel(shlex.split(words))
    return " ".join(printed.getvalue().split())


def main() -> int:
    """Put all cases, and print those that do not hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="print the outputs too")
    shown, broken = parser.parse_args().all, 0
    for case in CASES:
        said = output(case.words)
        holds = re.search(case.wanted, said) is not None
        broken += holds == bool(case.open)
        mark = "open" if case.open else "holds" if holds else "BROKEN"
        mark = "MENDED: take the mark away" if case.open and holds else mark
        if shown or mark != "holds":
            reason = f" ({case.open})" if case.open else ""
            print(
                f"{mark}: iomodel {case.words}{reason}",
                *([f"  {said[:400]}"] if shown or mark == "BROKEN" else []),
                sep="\n",
            )
    print(f"{len(CASES)} cases, {sum(bool(case.open) for case in CASES)} open, {broken} not as stated")
    return min(broken, 1)


if __name__ == "__main__":
    sys.exit(main())
