"""Shared memory and registers of a Triton kernel that decodes attention on latents, compiled for AMD without a device.

    python benchmarks/triton_mla_compiles.py > tests/measured/triton-mla-compile.csv

The kernel loads the 512 columns of a latent that are also V, and its 64 rotary columns, one after the other, as the
kernels of vLLM and SGLang do. Needs Triton.
"""

from __future__ import annotations

import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")
TILES = ((16, 16), (16, 32), (32, 16), (16, 64))
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


def compiled(architecture: str, rows: int, keys: int) -> tuple[int, int, int]:
    """Shared memory [B], vector registers of a lane, and those spilled [-]."""
    constants = {**CONSTANTS, "ROWS": rows, "KEYS": keys}
    signature = POINTERS | NUMBERS | dict.fromkeys(constants, "constexpr")
    aligned = {(place,): [["tt.divisibility", 16]] for place in ALIGNED}
    source = ASTSource(decode, signature, constants, attrs=aligned)
    options = {"num_warps": WARPS, "num_stages": 1, "waves_per_eu": 1, "matrix_instr_nonkdim": 16}
    kernel = triton.compile(source, target=GPUTarget("hip", architecture, 64), options=options)
    text = kernel.asm["amdgcn"]
    registers, spilled = (int(re.search(rf"\.vgpr_{name}:\s*(\d+)", text)[1]) for name in ("count", "spill_count"))
    return kernel.metadata.shared, registers, spilled


def main() -> None:
    print(
        f"# Decoding on latents of 512 + 64 columns in bf16, compiled by Triton {triton.__version__} without a device:"
    )
    print(
        "# LDS [B], vector registers with AccVGPRs and those spilled, per lane [-]; benchmarks/triton_mla_compiles.py."
    )
    print("architecture,block_q,block_kv,warps,stages,shared_bytes,registers,spilled")
    for architecture in ARCHITECTURES:
        for rows, keys in TILES:
            figures = compiled(architecture, rows, keys)
            print(architecture, rows, keys, WARPS, 1, *figures, sep=",")


if __name__ == "__main__":
    main()
