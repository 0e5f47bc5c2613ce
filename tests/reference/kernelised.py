"""Attention with a kernel phi(q) phi(k)^T in place of the softmax: its two loops, whatever the feature map phi.

Katharopoulos et al. 2020 (arXiv:2006.16236, section 3): without a mask the keys are summed up once (eq. 6); with a
causal one the sum is a state carried along the sequence (eq. 9 to 12), here a chunk of positions at a time.
"""

from typing import Protocol

import numpy as np

from iomodel.testing.machine import FloatArray, Machine

from .grid import split


class FeatureMap(Protocol):
    """phi, and what it needs on chip."""

    @property
    def width(self) -> int:
        """Of phi(x)."""

    def keep(self, machine: Machine) -> None:
        """Load what stays on chip as long as the buffers beside it."""

    def reserve(self, machine: Machine, name: str, block: int) -> None:
        """A buffer for the features of a tile of Q or K, if they do not overwrite it."""

    def apply(self, machine: Machine, name: str, x: FloatArray) -> FloatArray:
        """phi of the rows of a tile."""


def state(machine: Machine, width: int) -> tuple[FloatArray, FloatArray]:
    """Buffers of KV, the sum of phi(k) v^T, and z, the sum of phi(k); both zero."""
    kv = machine.sram.alloc("KV", (width, machine.hbm.arrays["V"].shape[-1]), "fp32")
    z = machine.sram.alloc("z", (width,), "fp32")
    kv[:], z[:] = 0.0, 0.0
    return kv, z


def full(machine: Machine, phi: FeatureMap, block_q: int, block_sum: int) -> None:
    """Sum up KV and z of each key head, then multiply the queries with them."""
    hbm, sram = machine.hbm, machine.sram
    batch, heads, q_len, d = hbm.arrays["Q"].shape
    _, kv_heads, kv_len, d_v = hbm.arrays["V"].shape
    hbm.alloc("KV", (batch, kv_heads, phi.width, d_v), width="fp32")
    hbm.alloc("z", (batch, kv_heads, phi.width), width="fp32")
    for b, g in np.ndindex(batch, kv_heads):
        phi.keep(machine)
        kv, z = state(machine, phi.width)
        k_tile, v_tile = sram.alloc("K", (block_sum, d)), sram.alloc("V", (block_sum, d_v))
        phi.reserve(machine, "K", block_sum)
        for keys in split(kv_len, block_sum):
            n = keys.stop - keys.start
            k_tile[:n] = hbm.load("K", (b, g, keys))
            v_tile[:n] = hbm.load("V", (b, g, keys))
            features = phi.apply(machine, "K", k_tile[:n])
            kv += machine.matmul(features.T, v_tile[:n])
            z += features.sum(axis=0)
        hbm.store("KV", (b, g), kv)
        hbm.store("z", (b, g), z)
        sram.free()
    hbm.alloc("O", (batch, heads, q_len, d_v))
    for b, h in np.ndindex(batch, heads):
        for rows in split(q_len, block_q):
            n, g = rows.stop - rows.start, h // (heads // kv_heads)
            phi.keep(machine)
            kv, z = state(machine, phi.width)
            kv[:], z[:] = hbm.load("KV", (b, g)), hbm.load("z", (b, g))
            q, o = sram.alloc("Q", (block_q, d))[:n], sram.alloc("O", (block_q, d_v), "fp32")[:n]
            phi.reserve(machine, "Q", block_q)
            q[:] = hbm.load("Q", (b, h, rows))
            features = phi.apply(machine, "Q", q)
            o[:] = machine.matmul(features, kv) / (features @ z)[:, None]
            hbm.store("O", (b, h, rows), o)
            sram.free()
    hbm.free("KV")
    hbm.free("z")


def causal(machine: Machine, phi: FeatureMap, block: int, carry: bool) -> None:
    """Carry KV and z along the chunks of each query head; with `carry`, from HBM and back to it."""
    hbm, sram = machine.hbm, machine.sram
    batch, heads, length, _ = hbm.arrays["Q"].shape
    _, kv_heads, kv_len, d_v = hbm.arrays["V"].shape
    if length != kv_len:
        raise ValueError("a causal scan is over the queries and keys of the same positions")
    hbm.alloc("O", (batch, heads, length, d_v))
    for b, h in np.ndindex(batch, heads):
        g = h // (heads // kv_heads)
        phi.keep(machine)
        kv, z = state(machine, phi.width)
        if carry:
            kv[:], z[:] = hbm.load("KV", (b, h)), hbm.load("z", (b, h))
        tiles = {name: sram.alloc(name, (block, hbm.arrays[name].shape[-1])) for name in ("Q", "K", "V")}
        phi.reserve(machine, "Q", block)
        phi.reserve(machine, "K", block)
        square, o_tile = sram.alloc("S", (block, block), "fp32"), sram.alloc("O", (block, d_v), "fp32")
        for chunk in split(length, block):
            n = chunk.stop - chunk.start
            for name, tile in tiles.items():
                tile[:n] = hbm.load(name, (b, h if name == "Q" else g, chunk))
            q, k, v = (tile[:n] for tile in tiles.values())
            q, k = phi.apply(machine, "Q", q), phi.apply(machine, "K", k)
            s, o = square[:n, :n], o_tile[:n]
            s[:] = np.tril(machine.matmul(q, k.T))
            o[:] = machine.matmul(s, v) + machine.matmul(q, kv)
            o /= (s.sum(axis=1) + q @ z)[:, None]
            kv += machine.matmul(k.T, v)
            z += k.sum(axis=0)
            hbm.store("O", (b, h, chunk), o)
        if carry:
            hbm.store("KV", (b, h), kv)
            hbm.store("z", (b, h), z)
        sram.free()


def past(Q: FloatArray, V: FloatArray, width: int) -> dict[str, FloatArray]:
    """What some earlier part of the sequence may have left, of each query head: KV and z, positive."""
    draw = np.random.default_rng(2).uniform
    return {
        "KV": draw(0.1, 1.0, (*Q.shape[:2], width, V.shape[-1])),
        "z": draw(0.1, 1.0, (*Q.shape[:2], width)),
    }


def place_past(machine: Machine, left: dict[str, FloatArray]) -> None:
    """Put it into HBM."""
    for name in ("KV", "z"):
        machine.hbm.alloc(name, left[name].shape, left[name], "fp32")
