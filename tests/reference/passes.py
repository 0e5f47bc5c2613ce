"""Elementwise steps of standard attention as kernels of their own, as PyTorch runs it outside of fused attention.

Each reads a whole tensor of scores from HBM, a block of rows at a time, and writes one back.
"""

import numpy as np

from iomodel.testing.machine import HBM, FloatArray, Machine

from .extras import Extras, kept
from .grid import Program, split
from .masks import BoolArray


def add_mask(machine: Machine, program: Program, seen: BoolArray, block: int) -> None:
    """S plus 0 where it is visible and minus infinity elsewhere, in place."""
    hbm, sram = machine.hbm, machine.sram
    for rows in split(program.length, block):
        s = sram.alloc("S", (block, seen.shape[1]), "io")[: rows.stop - rows.start]
        s[:] = hbm.load("S", program.rows(rows))
        s[~seen[rows]] = -np.inf
        hbm.store("S", program.rows(rows), s)
        sram.free()


def alloc_dropped(hbm: HBM) -> None:
    """What dropout leaves for the backward pass, beside P."""
    shape = hbm.arrays["P"].shape
    hbm.alloc("P_drop", shape)
    hbm.alloc("dropout_mask", shape, width="bool")


def dropout(machine: Machine, extras: Extras, program: Program, block: int) -> None:
    """P_drop = P o Z / (1 - p) and the mask Z, a random number an element of it."""
    hbm, sram = machine.hbm, machine.sram
    kv_len = hbm.arrays["P"].shape[-1]
    for rows in split(program.length, block):
        p = sram.alloc("P", (block, kv_len), "io")[: rows.stop - rows.start]
        z = sram.alloc("dropout_mask", (block, kv_len), "bool")[: rows.stop - rows.start]
        p[:] = hbm.load("P", program.rows(rows))
        factor = kept(machine, extras, program, rows, slice(0, kv_len))
        z[:] = factor != 0
        p *= factor
        hbm.store("dropout_mask", program.rows(rows), z)
        hbm.store("P_drop", program.rows(rows), p)
        sram.free()


def dropout_gradient(machine: Machine, rate: float, program: Program, block: int) -> None:
    """dP = dP_drop o Z / (1 - p), by the mask that the forward pass left; nothing is drawn again."""
    hbm, sram = machine.hbm, machine.sram
    kv_len = hbm.arrays["dP_drop"].shape[-1]
    for rows in split(program.length, block):
        dp: FloatArray = sram.alloc("dP_drop", (block, kv_len), "io")[: rows.stop - rows.start]
        z = sram.alloc("dropout_mask", (block, kv_len), "bool")[: rows.stop - rows.start]
        dp[:] = hbm.load("dP_drop", program.rows(rows))
        z[:] = hbm.load("dropout_mask", program.rows(rows))
        dp *= z / (1 - rate)
        hbm.store("dP", program.rows(rows), dp)
        sram.free()
