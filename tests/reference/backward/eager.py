"""Standard attention as eager PyTorch runs it, backward: what autograd dispatches for the forward operations.

The four products and, where dropout was an operation, its gradient, as in Algorithm 3. The gradient of the softmax
multiplies P and dP in one kernel and makes dS in a second; the factor of the batched product multiplies dQ and
dK afterwards; the gradients of the three slices of the packed projection are stacked. Query heads that share keys
have no packed projection, and the sum over their group replaces the stack.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from ..extras import NONE, Extras
from ..grid import Program, split
from ..masks import BoolArray
from ..passes import dropout_gradient
from .gradients import KeyGradients
from .standard import Kernels
from .tiles import prepare


def multiply(machine: Machine, program: Program, kv_len: int) -> None:
    """P o dP, a row at a time."""
    hbm, sram = machine.hbm, machine.sram
    for row in split(program.length, 1):
        p = sram.alloc("P", (1, kv_len), "io")
        dp = sram.alloc("dP", (1, kv_len), "io")
        p[:], dp[:] = hbm.load("P", program.rows(row)), hbm.load("dP", program.rows(row))
        hbm.store("PdP", program.rows(row), p * dp)
        sram.free()


def softmax_gradient(machine: Machine, program: Program, kv_len: int) -> None:
    """dS = P o dP - P rowsum(P o dP), a row at a time; the scale is for the kernels of dQ and dK."""
    hbm, sram = machine.hbm, machine.sram
    for row in split(program.length, 1):
        p = sram.alloc("P", (1, kv_len), "io")
        g = sram.alloc("PdP", (1, kv_len), "fp32")
        p[:], g[:] = hbm.load("P", program.rows(row)), hbm.load("PdP", program.rows(row))
        hbm.store("dS", program.rows(row), g - p * g.sum())
        sram.free()


def rewrite(machine: Machine, name: str, factor: float) -> None:
    """Read every row of a tensor, multiply it, and write it."""
    hbm, sram = machine.hbm, machine.sram
    batch, heads, length, depth = hbm.arrays[name].shape
    for place in np.ndindex(batch, heads, length):
        row = sram.alloc(name, (depth,), "io")
        row[:] = hbm.load(name, place)
        hbm.store(name, place, factor * row)
        sram.free()


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    dO: FloatArray,
    saved: Mapping[str, FloatArray],
    *,
    left: int | None = None,
    right: int | None = None,
    align: str = "bottom-right",
    seen: BoolArray | None = None,
    packed: bool = False,
    capacity: int | None = None,
    extras: Extras = NONE,
    dropout_pass: bool = False,
) -> Run:
    """Run the operations on P and, with `dropout_pass`, on the dropped P and the mask of the forward pass."""
    rate = extras.dropout or 0.0
    if dropout_pass:
        extras = replace(extras, dropout=None)
    if extras.softcap is not None:
        raise ValueError("eager attention keeps no scores to take the derivative of the softcap at")
    call = prepare(
        (Q, K, V, dO), saved, ("P", "P_drop", "dropout_mask") if dropout_pass else ("P",),
        left=left, right=right, align=align, seen=seen, packed=packed, capacity=capacity, extras=extras,
    )  # fmt: skip
    machine, hbm = call.machine, call.machine.hbm
    kv_len = K.shape[2]
    gradients = KeyGradients(machine, Q, packed)
    kernels = Kernels(call, gradients, dropout_pass)
    square = (*Q.shape[:3], kv_len)
    gradients.alloc("dV")
    for program in call.programs:
        kernels.line_1(program, None)
    hbm.alloc(kernels.weights_gradient, square)
    for program in call.programs:
        kernels.line_2(program, None)
    if dropout_pass:
        hbm.alloc("dP", square)
        for program in call.programs:
            dropout_gradient(machine, rate, program, 1)
        hbm.free("dP_drop")
    hbm.alloc("PdP", square)
    for program in call.programs:
        multiply(machine, program, kv_len)
    hbm.alloc("dS", square)
    for program in call.programs:
        softmax_gradient(machine, program, kv_len)
    hbm.free("PdP")
    hbm.free("dP")  # an argument of the operator that launches both kernels
    scale = 1 / np.sqrt(Q.shape[-1])
    hbm.alloc("dQ", Q.shape)
    for program in call.programs:
        kernels.line_4(program, None)
    rewrite(machine, "dQ", scale)
    gradients.alloc("dK")
    for program in call.programs:
        kernels.line_5(program, None)
    hbm.free("dS")
    rewrite(machine, "dK" + gradients.suffix, scale)
    if not gradients.suffix:
        for name in ("dQ", "dK", "dV"):
            rewrite(machine, name, 1.0)
    gradients.finish()
    return machine.result(dQ=hbm.arrays["dQ"], dK=hbm.arrays["dK"], dV=hbm.arrays["dV"])
