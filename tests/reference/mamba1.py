"""Mamba's selective scan (Gu and Dao 2023, arXiv:2312.00752, Algorithm 2, section 3.3.2), fused: h never leaves SRAM.

h_t = exp(dt A) h_(t-1) + (dt x) B and y = C h + SKIP x (eq. 2) for each channel: A is discretised by zero-order hold
(eq. 4) and B by Euler's step, as the paper's code does. Of Q, K and V only the shape matters here.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import split

Inputs = dict[str, FloatArray]
ONE_PRECISION = ("A", "SKIP", "H_STATE")  # fp32 whatever the call's type


def weights(
    Q: FloatArray, K: FloatArray, V: FloatArray, *, state: int = 16, expand: int = 2, carry: bool = False
) -> Inputs:
    """All inputs of the scan, of expand x heads x value_dim channels; DT before softplus."""
    rng = np.random.default_rng(1)
    batch, length, channels = V.shape[0], V.shape[2], expand * Q.shape[1] * V.shape[3]
    made = {
        "X": rng.standard_normal((batch, length, channels)),
        "DT": rng.standard_normal((batch, length, channels)),
        "A": -rng.uniform(0.1, 2.0, (channels, state)),
        "B": rng.standard_normal((batch, length, state)),
        "C": rng.standard_normal((batch, length, state)),
        "SKIP": rng.standard_normal(channels),
    }
    return made | ({"H_STATE": rng.standard_normal((batch, channels, state))} if carry else {})


def scan(machine: Machine, b: int, channels: slice, block_channels: int, block_kv: int) -> None:
    """One batch and tile of channels, along all positions."""
    hbm, sram = machine.hbm, machine.sram
    n_e, n_state = channels.stop - channels.start, hbm.arrays["A"].shape[1]
    a = sram.alloc("A", (block_channels, n_state), "fp32")[:n_e]
    skip = sram.alloc("SKIP", (block_channels,), "fp32")[:n_e]
    h = sram.alloc("h", (block_channels, n_state), "fp32")[:n_e]
    wide = {name: sram.alloc(name, (block_kv, block_channels)) for name in ("X", "DT")}
    narrow = {name: sram.alloc(name, (block_kv, n_state)) for name in ("B", "C")}
    y_tile = sram.alloc("Y", (block_kv, block_channels), "fp32")
    a[:], skip[:] = hbm.load("A", channels), hbm.load("SKIP", channels)
    h[:] = hbm.load("H_STATE", (b, channels)) if "H_STATE" in hbm.arrays else 0.0
    for rows in split(hbm.arrays["X"].shape[1], block_kv):
        n = rows.stop - rows.start
        for name, tile in wide.items():
            tile[:n, :n_e] = hbm.load(name, (b, rows, channels))
        for name, tile in narrow.items():
            tile[:n] = hbm.load(name, (b, rows))
        x, dt = wide["X"][:n, :n_e], wide["DT"][:n, :n_e]
        y = y_tile[:n, :n_e]
        dt[:] = np.log1p(machine.exp(dt))  # softplus
        for t in range(n):
            h *= machine.exp(dt[t][:, None] * a)
            h += machine.matmul((dt[t] * x[t])[:, None], narrow["B"][t][None, :])
            y[t] = machine.matmul(h, narrow["C"][t][:, None])[:, 0] + skip * x[t]
        hbm.store("Y", (b, rows, channels), y)
    if "H_STATE" in hbm.arrays:
        hbm.store("H_STATE", (b, channels), h)
    sram.free()


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = 0,
    capacity: int | None = None,
    block_channels: int,
    block_kv: int,
    state: int = 16,
    expand: int = 2,
    carry: bool = False,
    inputs: Inputs | None = None,
) -> Run:
    """Tiles of channels outside, tiles of positions inside, position by position in each."""
    if right != 0:
        raise ValueError("a scan is causal")
    machine = Machine(capacity=capacity)
    hbm = machine.hbm
    for name, data in (inputs or weights(Q, K, V, state=state, expand=expand, carry=carry)).items():
        if carry or name != "H_STATE":
            hbm.alloc(name, data.shape, data, "fp32" if name in ONE_PRECISION else "io")
    hbm.alloc("Y", hbm.arrays["X"].shape)
    for b in range(V.shape[0]):
        for channels in split(hbm.arrays["X"].shape[2], block_channels):
            scan(machine, b, channels, block_channels, block_kv)
    return machine.result(O=hbm.arrays["Y"], H_STATE=hbm.arrays.get("H_STATE"))


def naive(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = 0,
    state: int = 16,
    expand: int = 2,
    carry: bool = False,
    inputs: Inputs | None = None,
) -> FloatArray:
    """Eq. 2, all channels of all batches at once."""
    given = inputs or weights(Q, K, V, state=state, expand=expand, carry=carry)
    X, delta = given["X"], np.logaddexp(0.0, given["DT"])
    A_bar = np.exp(np.einsum("ble,en->blen", delta, given["A"]))
    B_bar_x = np.einsum("ble,bln,ble->blen", delta, given["B"], X)
    h = given["H_STATE"] if carry else np.zeros_like(A_bar[:, 0])
    Y = np.empty_like(X)
    for t in range(X.shape[1]):
        h = A_bar[:, t] * h + B_bar_x[:, t]
        Y[:, t] = np.einsum("ben,bn->be", h, given["C"][:, t])
    return Y + given["SKIP"] * X
