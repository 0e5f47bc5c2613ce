"""Mamba-2's chunked scan (Dao and Gu 2024, arXiv:2405.21060, section 6, Listing 1): SSD.

h_t = exp(dt A) h_(t-1) + dt B_t x_t^T and y_t = C_t^T h_t, with one scalar A a head. K is B, V gives X its width; the
groups of B and C are the key heads.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import split

Inputs = dict[str, FloatArray]
ONE_PRECISION = ("A", "DT", "H_STATE")  # fp32 whatever the call's type


def weights(Q: FloatArray, K: FloatArray, V: FloatArray, *, carry: bool = False) -> Inputs:
    """All inputs of the scan; DT is positive, after softplus."""
    rng = np.random.default_rng(1)
    batch, heads, length, d = Q.shape
    made: Inputs = {
        "A": -rng.uniform(0.1, 2.0, (heads,)),
        "DT": rng.uniform(0.01, 1.0, (batch, heads, length)),
        "B": K,
        "C": rng.standard_normal(K.shape),
        "X": rng.standard_normal((batch, heads, length, V.shape[-1])),
    }
    return made | ({"H_STATE": rng.standard_normal((batch, heads, d, V.shape[-1]))} if carry else {})


class Chunks:
    """The chunks of a call, and its tiles in HBM."""

    def __init__(self, machine: Machine, block: int) -> None:
        self.machine, self.block = machine, block
        arrays = machine.hbm.arrays
        self.batch, self.heads, self.length, self.d_v = arrays["X"].shape
        self.kv_heads, self.d = arrays["B"].shape[1], arrays["B"].shape[-1]
        self.all = list(enumerate(split(self.length, block)))

    def load(self, b: int, h: int, rows: slice, *names: str) -> list[FloatArray]:
        """Tiles of a chunk, each in a new buffer; A is the scalar of the head."""
        hbm, sram = self.machine.hbm, self.machine.sram
        tiles = []
        for name in names:
            index = (b, h // (self.heads // self.kv_heads) if name in "BC" else h, rows)
            data = hbm.load(name, slice(h, h + 1) if name == "A" else index)
            shape = (1,) if name == "A" else (self.block, *data.shape[1:])
            buffer = sram.alloc(name, shape, hbm.widths[name])[: len(data)]
            buffer[:] = data
            tiles.append(buffer)
        return tiles


def chunk_states(chunks: Chunks) -> None:
    """Step 2 of the listing: the state that each chunk leaves if it starts with none, and its decay's logarithm."""
    machine, hbm, sram = chunks.machine, chunks.machine.hbm, chunks.machine.sram
    for b, h in np.ndindex(chunks.batch, chunks.heads):
        for t, rows in chunks.all:
            a, dt, k, x = chunks.load(b, h, rows, "A", "DT", "B", "X")
            state = sram.alloc("STATES", (chunks.d, chunks.d_v), "fp32")
            total = sram.alloc("DECAY", (1,), "fp32")
            step = np.cumsum(dt * a)
            total[:] = step[-1]
            state[:] = machine.matmul(k.T, (machine.exp(total - step) * dt)[:, None] * x)
            hbm.store("STATES", (b, h, t), state)
            hbm.store("DECAY", (b, h, slice(t, t + 1)), total)
            sram.free()


def pass_states(chunks: Chunks) -> None:
    """Step 3: in the place of each chunk's own state, the state before it."""
    machine, hbm, sram = chunks.machine, chunks.machine.hbm, chunks.machine.sram
    for b, h in np.ndindex(chunks.batch, chunks.heads):
        state = sram.alloc("h", (chunks.d, chunks.d_v), "fp32")
        own = sram.alloc("STATES", (chunks.d, chunks.d_v), "fp32")
        total = sram.alloc("DECAY", (1,), "fp32")
        state[:] = hbm.load("H_STATE", (b, h)) if "H_STATE" in hbm.arrays else 0.0
        for t, _ in chunks.all:
            own[:] = hbm.load("STATES", (b, h, t))
            total[:] = hbm.load("DECAY", (b, h, slice(t, t + 1)))
            hbm.store("STATES", (b, h, t), state)
            state[:] = machine.exp(total) * state + own
        if "H_STATE" in hbm.arrays:
            hbm.store("H_STATE", (b, h), state)
        sram.free()


def outputs(chunks: Chunks) -> None:
    """Steps 1 and 4: what a chunk's positions get from each other, and from the state before it."""
    machine, hbm, sram = chunks.machine, chunks.machine.hbm, chunks.machine.sram
    for b, h in np.ndindex(chunks.batch, chunks.heads):
        for t, rows in chunks.all:
            n = rows.stop - rows.start
            a, dt, q, k, x = chunks.load(b, h, rows, "A", "DT", "C", "B", "X")
            state = sram.alloc("STATES", (chunks.d, chunks.d_v), "fp32")
            s = sram.alloc("S", (chunks.block, chunks.block), "fp32")[:n, :n]
            y = sram.alloc("Y", (chunks.block, chunks.d_v), "fp32")[:n]
            state[:] = hbm.load("STATES", (b, h, t))
            step = np.cumsum(dt * a)
            later = np.arange(n) > np.arange(n)[:, None]
            s[:] = machine.matmul(q, k.T)
            s *= machine.exp(np.where(later, -np.inf, step[:, None] - step))
            y[:] = machine.matmul(s, dt[:, None] * x)
            y += machine.exp(step)[:, None] * machine.matmul(q, state)
            hbm.store("Y", (b, h, rows), y)
            sram.free()


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = 0,
    capacity: int | None = None,
    block_q: int,
    carry: bool = False,
    inputs: Inputs | None = None,
) -> Run:
    """Three kernels: the state of each chunk, the states passed on, the outputs."""
    if right != 0:
        raise ValueError("a scan is causal")
    machine = Machine(capacity=capacity)
    hbm = machine.hbm
    for name, data in (inputs or weights(Q, K, V, carry=carry)).items():
        if carry or name != "H_STATE":
            hbm.alloc(name, data.shape, data, "fp32" if name in ONE_PRECISION else "io")
    chunks = Chunks(machine, block_q)
    hbm.alloc("STATES", (chunks.batch, chunks.heads, len(chunks.all), chunks.d, chunks.d_v), width="fp32")
    hbm.alloc("DECAY", (chunks.batch, chunks.heads, len(chunks.all)), width="fp32")
    chunk_states(chunks)
    pass_states(chunks)
    hbm.free("DECAY")
    hbm.alloc("Y", hbm.arrays["X"].shape)
    outputs(chunks)
    hbm.free("STATES")
    return machine.result(O=hbm.arrays["Y"], H_STATE=hbm.arrays.get("H_STATE"))


def naive(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = 0,
    carry: bool = False,
    inputs: Inputs | None = None,
) -> FloatArray:
    """The recurrence, position by position."""
    given = inputs or weights(Q, K, V, carry=carry)
    X, DT = given["X"], given["DT"]
    B, C = (np.repeat(given[name], X.shape[1] // K.shape[1], axis=1) for name in ("B", "C"))
    decay = np.exp(DT * given["A"][:, None])
    h = given["H_STATE"] if carry else np.zeros((*X.shape[:2], B.shape[-1], X.shape[-1]))
    Y = np.empty_like(X)
    for t in range(X.shape[2]):
        new = np.einsum("bh,bhd,bhv->bhdv", DT[:, :, t], B[:, :, t], X[:, :, t])
        h = decay[:, :, t, None, None] * h + new
        Y[:, :, t] = np.einsum("bhd,bhdv->bhv", C[:, :, t], h)
    return Y
