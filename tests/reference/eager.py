"""Standard attention as eager PyTorch runs it, forward: one kernel for each operation, its result in HBM.

Operations of `attention_pytorch` in FlashAttention's benchmark, as PyTorch dispatches them: Q, K and V are
copied from the packed projection (reshape after a permutation), a batched product makes S, a mask that is an
input is added (only where it hides something), then come the softmax and the second product. Query heads that
share keys get copies of K and V of their own, unless their rows are packed.
"""

from dataclasses import replace

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .backward.product import product
from .cache import forward
from .extras import NONE, Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, transform
from .grid import Program, programs, row_mask
from .masks import BoolArray
from .passes import alloc_dropped, dropout
from .standard import softmax
from .written import PLAIN, Written

ALL = slice(None)


def copy_rows(machine: Machine, source: str, target: str, places: list[tuple[int, int, int, int]]) -> None:
    """Copy rows, one at a time: the head and the row that each lies at, and those where it goes."""
    hbm, sram = machine.hbm, machine.sram
    for batch, head, to_head, length in places:
        for row in range(length):
            buffer = sram.alloc(source, (hbm.arrays[source].shape[-1],), "io")
            buffer[:] = hbm.load(source, (batch, head, row))
            hbm.store(target, (batch, to_head, row), buffer)
            sram.free()


def scores(machine: Machine, extras: Extras, program: Program, keys_of: str, off: int) -> None:
    """S = Q K^T / sqrt(d) of one program, with the terms that the call adds."""
    hbm, sram = machine.hbm, machine.sram
    kv_len, d = hbm.arrays[keys_of].shape[2:]
    rows, keys = slice(program.length), slice(0, kv_len)
    q = sram.alloc("Q_copy", (program.length, d), "io")
    k = sram.alloc(keys_of, (kv_len, d), "io")
    s = sram.alloc("S", (program.length, kv_len), "fp32")
    slope = alloc_per_head(machine, "slopes", program, "fp32")
    bias = alloc_bias(machine, program.length, kv_len, program)
    q[:] = hbm.load("Q_copy", program.rows(ALL))
    k[:] = hbm.load(keys_of, place(program, keys_of))
    load_per_head(machine, "slopes", program, slope)
    s[:] = machine.matmul(q, k.T) / np.sqrt(d)
    transform(machine, extras, s, program, rows=rows, keys=keys, offset=off, bias=bias, slope=slope)
    hbm.store("S", program.rows(ALL), s)
    sram.free()


def place(program: Program, name: str) -> tuple[int, int]:
    """Where a program's keys lie in the copy of K or V."""
    if name.endswith("_expanded"):
        assert program.head is not None
        return program.batch, program.head
    return program.batch, program.kv_head


def add_mask(machine: Machine, program: Program) -> None:
    """S_masked = S + mask, a row at a time; all heads of a sequence read the same mask."""
    hbm, sram = machine.hbm, machine.sram
    kv_len = hbm.arrays["mask"].shape[-1]
    for r in range(program.length):
        row = slice(r, r + 1)
        s = sram.alloc("S", (1, kv_len), "io")
        m = sram.alloc("mask", (1, kv_len), "io")
        s[:] = hbm.load("S", program.rows(row))
        _, query = program.positions(row)
        m[:] = hbm.load("mask", (program.batch, query))
        hbm.store("S_masked", program.rows(row), s + m)
        sram.free()


def output(machine: Machine, extras: Extras, program: Program, weights: str, values_of: str) -> None:
    """O = P V of one program."""
    hbm = machine.hbm
    kv_len, d_v = hbm.arrays[values_of].shape[2:]
    batch, head = place(program, values_of)

    def dropped(rows: slice, keys: slice) -> FloatArray:
        p: FloatArray = hbm.load(weights, (*program.rows(rows), keys))
        return p * kept(machine, extras, program, rows, keys)

    product(
        machine, (program.length, d_v, kv_len), None,
        load_a=dropped,
        load_b=lambda keys, columns: hbm.load(values_of, (batch, head, keys, columns)),
        store=lambda rows, columns, o: hbm.store("O", (*program.rows(rows), columns), o),
    )  # fmt: skip


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    left: int | None = None,
    right: int | None = None,
    align: str = "bottom-right",
    packed: bool = False,
    capacity: int | None = None,
    seen: BoolArray | None = None,
    extras: Extras | None = None,
    written: Written = PLAIN,
    dropout_pass: bool = False,
) -> Run:
    """Run the operations; dropout is part of the last product, or with `dropout_pass` an operation of its own."""
    dropped = replace(extras or NONE, dropout=(extras or NONE).dropout or 0.0)
    if dropout_pass:
        extras = replace(dropped, dropout=None)
    machine, _, extras = forward(Q, K, V, capacity, extras)
    if extras.page_size or extras.own_kv_dtype or extras.scales or extras.latent:
        raise ValueError("eager attention reads K and V as they are")
    if replace(written, bias_vector=False) != PLAIN:
        raise ValueError("eager attention skips nothing and keeps no statistics")
    hbm = machine.hbm
    batch, heads, q_len, _ = Q.shape
    kv_heads, kv_len = K.shape[1:3]
    group = heads // kv_heads
    everyone = programs(Q, K, packed)
    full = seen is None and left is None and right is None
    mask = row_mask(Q, K, left=left, right=right, align=align, packed=packed, seen=seen)
    if not full:
        shown = row_mask(Q, K, left=left, right=right, align=align, packed=False, seen=seen)
        hbm.alloc("mask", (batch, *shown.shape), np.broadcast_to(np.where(shown, 0.0, -np.inf), (batch, *shown.shape)))
    hbm.alloc("Q_copy", Q.shape)
    copy_rows(machine, "Q", "Q_copy", [(b, h, h, q_len) for b in range(batch) for h in range(heads)])
    suffix = "_expanded" if group > 1 and not packed else "_copy"
    each = 1 if suffix == "_copy" else group
    for name, data in ("K", K), ("V", V):
        hbm.alloc(name + suffix, (batch, kv_heads * each, *data.shape[2:]))
        places = [(b, h // each, h, kv_len) for b in range(batch) for h in range(kv_heads * each)]
        copy_rows(machine, name, name + suffix, places)
    hbm.alloc("S", (*Q.shape[:3], kv_len))
    for program in everyone:
        scores(machine, extras, program, "K" + suffix, offset(q_len, kv_len, align))
    if not full:
        hbm.alloc("S_masked", (*Q.shape[:3], kv_len))
        for program in everyone:
            add_mask(machine, program)
        hbm.free("S")
    hbm.alloc("P", (*Q.shape[:3], kv_len))
    for program in everyone:
        softmax(machine, program, np.ones_like(mask), 1, "S" if full else "S_masked")
    hbm.free("S" if full else "S_masked")
    if dropout_pass:
        alloc_dropped(hbm)
        for program in everyone:
            dropout(machine, dropped, program, 1)
    hbm.alloc("O", (*Q.shape[:3], V.shape[-1]))
    for program in everyone:
        output(machine, extras, program, "P_drop" if dropout_pass else "P", "V" + suffix)
    left_over = {name: hbm.arrays.get(name) for name in ("P", "P_drop", "dropout_mask")}
    return machine.result(O=hbm.arrays["O"], **left_over)
