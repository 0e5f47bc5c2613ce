"""DeltaNet's chunked forward pass (Yang et al. 2024, arXiv:2406.06484, section 3), as products of chunks.

S_t = S_(t-1) + beta_t k_t (v_t - S_(t-1)^T k_t)^T and o_t = S_t^T q_t, with a state S of d x d_v elements a head.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

Inputs = dict[str, FloatArray]


def inputs(rng: np.random.Generator, batch: int, heads: int, kv_heads: int, length: int, d: int, d_v: int) -> Inputs:
    """Draw the inputs of a call: keys of unit length, beta between 0 and 1, and a state from the past."""
    keys = rng.standard_normal((batch, kv_heads, length, d))
    return {
        "Q": rng.standard_normal((batch, heads, length, d)),
        "K": keys / np.linalg.norm(keys, axis=-1, keepdims=True),
        "V": rng.standard_normal((batch, kv_heads, length, d_v)),
        "beta": rng.uniform(0.0, 1.0, (batch, kv_heads, length)),
        "state": rng.standard_normal((batch, heads, d, d_v)),
    }


def transform(machine: Machine, chunk: int) -> None:
    """Make W = T K and U = T V of each chunk, T = (I + tril(diag(beta) K K^T, -1))^-1 diag(beta) (equations 10, 11)."""
    hbm, sram = machine.hbm, machine.sram
    batch, kv_heads, length, d = hbm.arrays["K"].shape
    d_v = hbm.arrays["V"].shape[-1]
    hbm.alloc("W", (batch, kv_heads, length, d))
    hbm.alloc("U", (batch, kv_heads, length, d_v))
    for b, g, start in np.ndindex(batch, kv_heads, length // chunk):
        place = (b, g, slice(start * chunk, (start + 1) * chunk))
        k, v = sram.alloc("K", (chunk, d)), sram.alloc("V", (chunk, d_v))
        beta = sram.alloc("beta", (chunk,), "fp32")
        k[:], v[:], beta[:] = hbm.load("K", place), hbm.load("V", place), hbm.load("beta", place)
        a, t = sram.alloc("A", (chunk, chunk), "fp32"), sram.alloc("T", (chunk, chunk), "fp32")
        a[:] = np.tril(beta[:, None] * machine.matmul(k, k.T), -1)
        t[:] = 0.0
        for i in range(chunk):  # forward substitution, a row of the inverse at a time
            t[i] = np.eye(chunk)[i] - machine.matmul(a[i : i + 1], t)[0]
        t *= beta
        w, u = sram.alloc("W", (chunk, d)), sram.alloc("U", (chunk, d_v))
        w[:], u[:] = machine.matmul(t, k), machine.matmul(t, v)
        hbm.store("W", place, w)
        hbm.store("U", place, u)
        sram.free()


def scan(machine: Machine, chunk: int, block_v: int, carry: bool) -> None:
    """Take the state through the chunks, `block_v` of its columns at a time (equations 8 and 9)."""
    hbm, sram = machine.hbm, machine.sram
    batch, heads, length, d = hbm.arrays["Q"].shape
    kv_heads, d_v = hbm.arrays["V"].shape[1], hbm.arrays["V"].shape[-1]
    hbm.alloc("O", (batch, heads, length, d_v))
    for b, h, first in np.ndindex(batch, heads, -(-d_v // block_v)):
        g, columns = h // (heads // kv_heads), slice(first * block_v, min(d_v, (first + 1) * block_v))
        n = columns.stop - columns.start
        state = sram.alloc("state", (d, block_v), "fp32")[:, :n]
        state[:] = hbm.load("state", (b, h, slice(None), columns)) if carry else 0.0
        q, k, w = (sram.alloc(name, (chunk, d)) for name in "QKW")
        u, o = sram.alloc("U", (chunk, block_v))[:, :n], sram.alloc("O", (chunk, block_v), "fp32")[:, :n]
        s = sram.alloc("S", (chunk, chunk), "fp32")
        for start in range(0, length, chunk):
            rows = slice(start, start + chunk)
            q[:], k[:] = hbm.load("Q", (b, h, rows)), hbm.load("K", (b, g, rows))
            w[:], u[:] = hbm.load("W", (b, g, rows)), hbm.load("U", (b, g, rows, columns))
            u -= machine.matmul(w, state)
            s[:] = np.tril(machine.matmul(q, k.T))
            o[:] = machine.matmul(q, state) + machine.matmul(s, u)
            hbm.store("O", (b, h, rows, columns), o)
            state += machine.matmul(k.T, u)
        if carry:
            hbm.store("state", (b, h, slice(None), columns), state)
        sram.free()


def run(given: Inputs, *, chunk: int, block_v: int, carry: bool = False, capacity: int | None = None) -> Run:
    """Run both kernels; the chunk divides the length."""
    machine = Machine(given["Q"], given["K"], given["V"], capacity)
    machine.hbm.alloc("beta", given["beta"].shape, given["beta"], "fp32")
    if carry:
        machine.hbm.alloc("state", given["state"].shape, given["state"], "fp32")
    transform(machine, chunk)
    scan(machine, chunk, block_v, carry)
    arrays = machine.hbm.arrays
    output, state = arrays["O"], arrays.get("state")
    machine.hbm.free("W")
    machine.hbm.free("U")
    return machine.result(O=output, state=state)


def naive(given: Inputs, carry: bool = False) -> tuple[FloatArray, FloatArray]:
    """Follow the recurrence position by position: the outputs, and the state after the last."""
    Q, V = given["Q"], given["V"]
    group = Q.shape[1] // V.shape[1]
    K, V, beta = (np.repeat(given[name], group, axis=1) for name in ("K", "V", "beta"))
    state = given["state"].copy() if carry else np.zeros((*Q.shape[:2], Q.shape[-1], V.shape[-1]))
    O = np.empty((*Q.shape[:3], V.shape[-1]))
    for t in range(Q.shape[2]):
        missing = V[:, :, t] - np.einsum("bhdv,bhd->bhv", state, K[:, :, t])
        state += np.einsum("bh,bhd,bhv->bhdv", beta[:, :, t], K[:, :, t], missing)
        O[:, :, t] = np.einsum("bhdv,bhd->bhv", state, Q[:, :, t])
    return O, state
