"""Shared memory and registers of a Triton kernel that decodes attention on latents, compiled without a device.

    python benchmarks/triton_mla_compiles.py > tests/measured/triton-mla-compile.csv

The kernel loads the 512 columns of a latent that are also V, and its 64 rotary columns, one after the other, as the
kernels of vLLM and SGLang do. Needs Triton.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.path.insert(0, str(Path(__file__).parent))

from triton_compiles import assembled

AMD = ("gfx90a", "gfx942", "gfx950")
NVIDIA = (80, 89, 90, 100, 120)
TILES = ((16, 16), (16, 32), (32, 16), (16, 64))
STAGES = (1, 2, 3)
"""Stages of the kernels for NVIDIA; those for AMD have one."""
WARPS = 4
POINTERS = {"Q": "*bf16", "C": "*bf16", "Out": "*fp32", "Lse": "*fp32"}
NUMBERS = {"scale": "fp32", "keys": "i32", "q_row": "i32", "c_row": "i32", "o_row": "i32"}
CONSTANTS = {"WIDTH": 512, "ROPE": 64, "SPLITS": 4}
ALIGNED = (0, 1, 2, 3, 6, 7, 8)
"""Arguments that are multiples of 16: the pointers and the strides."""


@triton.jit
def decode(
    Q, C, Out, Lse, scale, keys, q_row, c_row, o_row,
    WIDTH: tl.constexpr, ROPE: tl.constexpr, SPLITS: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    wide, rope = tl.arange(0, WIDTH), WIDTH + tl.arange(0, ROPE)
    q = tl.load(Q + rows[:, None] * q_row + wide[None, :])
    q_rope = tl.load(Q + rows[:, None] * q_row + rope[None, :])
    each = tl.cdiv(keys, SPLITS)
    end = tl.minimum((split + 1) * each, keys)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(split * each, end, KEYS):
        key = start + tl.arange(0, KEYS)
        seen = key < end
        latent = tl.load(C + key[None, :] * c_row + wide[:, None], mask=seen[None, :], other=0.0)
        scores = tl.dot(q, latent)
        turned = tl.load(C + key[None, :] * c_row + rope[:, None], mask=seen[None, :], other=0.0)
        scores += tl.dot(q_rope, turned)
        scores = tl.where(seen[None, :], scores * scale, float("-inf"))
        values = tl.load(C + key[:, None] * c_row + wide[None, :], mask=seen[:, None], other=0.0)
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - higher)
        weights = tl.exp(scores - higher[:, None])
        out = out * shrink[:, None] + tl.dot(weights.to(values.dtype), values)
        total = total * shrink + tl.sum(weights, 1)
        top = higher
    place = rows * SPLITS + split
    tl.store(Out + place[:, None] * o_row + wide[None, :], out / total[:, None])
    tl.store(Lse + place, top + tl.log(total))


def compiled(target: GPUTarget, rows: int, keys: int, **options: int) -> Any:
    """Compile the kernel for a tile."""
    constants = {**CONSTANTS, "ROWS": rows, "KEYS": keys}
    signature = POINTERS | NUMBERS | dict.fromkeys(constants, "constexpr")
    aligned = {(place,): [["tt.divisibility", 16]] for place in ALIGNED}
    source = ASTSource(decode, signature, constants, attrs=aligned)
    return triton.compile(source, target=target, options={"num_warps": WARPS, **options})


def on_amd(architecture: str, rows: int, keys: int) -> tuple[int, int, int]:
    """LDS [B], vector registers of a lane, and those spilled [-]."""
    target = GPUTarget("hip", architecture, 64)
    kernel = compiled(target, rows, keys, num_stages=1, waves_per_eu=1, matrix_instr_nonkdim=16)
    text = kernel.asm["amdgcn"]
    registers, spilled = (int(re.search(rf"\.vgpr_{name}:\s*(\d+)", text)[1]) for name in ("count", "spill_count"))
    return kernel.metadata.shared, registers, spilled


def on_nvidia(architecture: int, rows: int, keys: int, stages: int) -> tuple[int, int, int]:
    """Shared memory [B], registers of a thread, and spill stores [B]."""
    kernel = compiled(GPUTarget("cuda", architecture, 32), rows, keys, num_stages=stages)
    found = assembled(kernel.asm["ptx"], architecture, kernel.metadata)
    return kernel.metadata.shared, found["registers"], found["spill"]


def main() -> None:
    print(
        f"# Decoding on latents of 512 + 64 columns in bf16, compiled by Triton {triton.__version__} without a device:"
    )
    print(
        "# shared memory [B]; vector registers with AccVGPRs and those spilled, per lane, or registers per thread [-]"
    )
    print("# and spill stores [B]; benchmarks/triton_mla_compiles.py.")
    print("architecture,block_q,block_kv,warps,stages,shared_bytes,registers,spilled")
    for rows, keys in TILES:
        for architecture in AMD:
            print(architecture, rows, keys, WARPS, 1, *on_amd(architecture, rows, keys), sep=",")
        for capability in NVIDIA:
            for stages in STAGES:
                found = on_nvidia(capability, rows, keys, stages)
                print(f"sm_{capability}", rows, keys, WARPS, stages, *found, sep=",")


if __name__ == "__main__":
    main()
