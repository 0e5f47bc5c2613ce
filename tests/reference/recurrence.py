"""Recurrences of keys and values on a counting memory: position by position, and in chunks.

Gated linear attention (Yang et al. 2023, arXiv:2312.06635, equations 3 to 8), the state space duality of Mamba-2 (Dao
and Gu 2024, arXiv:2405.21060, section 6), the delta rule (Yang et al. 2024, arXiv:2406.06484, equations 7 to 11) and
its gated form (Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464, equations 10 to 14). Gates come as logarithms: a
number per head, per position and head, or per position, head and element of a key.
"""

from collections.abc import Callable

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

Inputs = dict[str, FloatArray]
FP32 = ("g", "g_sums", "STATE")


def inputs(
    batch: int, heads: int, key_heads: int, tokens: int, d: int, d_v: int, *, gate: str, delta: bool, stateful: bool
) -> Inputs:
    """Draw the inputs of a call: keys of unit length, rates between 0 and 1, decays, a state from the past."""
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((batch, key_heads, tokens, d))
    made = {
        "Q": rng.standard_normal((batch, key_heads, tokens, d)),
        "K": keys / np.linalg.norm(keys, axis=-1, keepdims=True),
        "V": rng.standard_normal((batch, heads, tokens, d_v)),
    }
    shapes = {"constant": (heads,), "head": (batch, heads, tokens), "channel": (batch, heads, tokens, d)}
    if gate in shapes:
        made["g"] = -rng.uniform(0.0, 0.5, shapes[gate])
    if delta:
        made["beta"] = rng.uniform(0.0, 1.0, (batch, heads, tokens))
    if stateful:
        made["STATE"] = rng.standard_normal((batch, heads, d, d_v))
    return made


def naive(given: Inputs) -> tuple[FloatArray, FloatArray]:
    """Follow the recurrence without tiles: the outputs, and the state after the last position."""
    V = given["V"]
    batch, heads, tokens, d_v = V.shape
    Q, K = (np.repeat(given[name], heads // given[name].shape[1], axis=1) for name in ("Q", "K"))
    d = K.shape[-1]
    decay = np.ones((batch, heads, tokens, d))
    if "g" in given:
        g = given["g"]
        decay *= np.exp(g[None, :, None, None] if g.ndim == 1 else g if g.ndim == 4 else g[..., None])
    state = given["STATE"].copy() if "STATE" in given else np.zeros((batch, heads, d, d_v))
    O = np.empty_like(V)
    for t in range(tokens):
        state *= decay[:, :, t, :, None]
        v = V[:, :, t]
        if "beta" in given:
            v = given["beta"][:, :, t, None] * (v - np.einsum("bhdv,bhd->bhv", state, K[:, :, t]))
        state += np.einsum("bhd,bhv->bhdv", K[:, :, t], v)
        O[:, :, t] = np.einsum("bhdv,bhd->bhv", state, Q[:, :, t])
    return O, state


class Call:
    """The inputs of a call in HBM, and the moves of one head."""

    def __init__(self, given: Inputs, chunk: int, slab: int, capacity: int | None) -> None:
        self.machine = Machine(capacity=capacity)
        self.hbm, self.sram = self.machine.hbm, self.machine.sram
        for name, data in given.items():
            self.hbm.alloc(name, data.shape, data, "fp32" if name in FP32 else "io")
        self.batch, self.heads, self.tokens, self.d_v = given["V"].shape
        self.key_heads, self.d = given["K"].shape[1], given["K"].shape[-1]
        self.delta, self.stateful = "beta" in given, "STATE" in given
        self.gate = {None: "none", 1: "constant", 3: "head", 4: "channel"}[given["g"].ndim if "g" in given else None]
        self.chunk, self.slab = chunk, slab
        self.starts = list(range(0, self.tokens, chunk))
        self.slabs = [slice(j, min(j + slab, self.d_v)) for j in range(0, self.d_v, slab)]
        self.programs = list(np.ndindex(self.batch, self.heads))
        self.sums = False

    def rows(self, start: int) -> slice:
        """Positions of a chunk."""
        return slice(start, min(start + self.chunk, self.tokens))

    def load(self, name: str, b: int, h: int, rows: slice, columns: slice | None = None) -> FloatArray:
        """Load some rows of a tensor of positions into a buffer of a whole tile."""
        head = h // (self.heads // self.key_heads) if name in "QK" else h
        data = self.hbm.load(name, (b, head, rows) if columns is None else (b, head, rows, columns))
        whole = (self.chunk, *data.shape[1:]) if columns is None else (self.chunk, self.slab)
        buffer = self.sram.alloc(name, whole, "fp32" if name in FP32 else "io")
        part = buffer[: data.shape[0]] if columns is None else buffer[: data.shape[0], : data.shape[1]]
        part[:] = data
        return part

    def log_gates(self, b: int, h: int, rows: slice) -> FloatArray | None:
        """Load the gates of a chunk and sum them from its first position: (rows, 1), or (rows, d) per channel."""
        if self.gate == "none":
            return None
        if self.gate == "constant":
            g = self.sram.alloc("g", (1,), "fp32")
            g[:] = self.hbm.load("g", slice(h, h + 1))
            return np.cumsum(np.full((rows.stop - rows.start, 1), g[0]), axis=0)
        g = self.load("g_sums" if self.sums else "g", b, h, rows)
        if self.sums:
            return g if self.gate == "channel" else g[:, None]
        return np.cumsum(g if self.gate == "channel" else g[:, None], axis=0)

    def store_sums(self) -> None:
        """Sum the gates of each chunk in a kernel of its own; later kernels load the sums."""
        self.hbm.alloc("g_sums", self.hbm.arrays["g"].shape, width="fp32")
        for (b, h), start in ((program, start) for program in self.programs for start in self.starts):
            rows = self.rows(start)
            sums = self.log_gates(b, h, rows)
            assert sums is not None
            self.hbm.store("g_sums", (b, h, rows), sums if self.gate == "channel" else sums[:, 0])
            self.sram.free()
        self.sums = True

    def decayed_products(self, x: FloatArray, k: FloatArray, g: FloatArray | None) -> FloatArray:
        """Multiply x and k of a chunk: x_i^T k_j, decayed from j to i."""
        machine = self.machine
        if g is None:
            return machine.matmul(x, k.T)
        if self.gate == "channel":  # arXiv:2312.06635, equation 4: both sides are scaled
            return machine.matmul(x * machine.exp(g), (k * machine.exp(-g)).T)
        later = np.triu(np.ones((len(x), len(x)), bool), 1)
        return machine.matmul(x, k.T) * machine.exp(np.where(later, -np.inf, g - g.T))

    def first_state(self, b: int, h: int, columns: slice) -> FloatArray:
        """Begin with the state of an earlier call, or none."""
        whole = self.sram.alloc("STATE", (self.d, self.slab), "fp32")
        state = whole[:, : columns.stop - columns.start]
        state[:] = self.hbm.load("STATE", (b, h, slice(None), columns)) if self.stateful else 0.0
        return state

    def pass_on(
        self, state: FloatArray, k: FloatArray, v: FloatArray, g: FloatArray | None, at: tuple[int, int, int]
    ) -> None:
        """Take the state from before a chunk to after it; sums in HBM are looked up once more at its last position."""
        machine = self.machine
        if self.sums and g is not None:
            last = self.sram.alloc("last", (1, *self.hbm.arrays["g_sums"].shape[3:]), "fp32")
            last[:] = self.hbm.load("g_sums", (*at[:2], slice(at[2], at[2] + 1)))
            np.testing.assert_array_equal(last.reshape(1, -1), g[-1:])
        if g is None:
            state += machine.matmul(k.T, v)
            return
        to_end, whole = machine.exp(g[-1:] - g), machine.exp(g[-1:])
        state *= whole.T
        state += machine.matmul((k * to_end).T, v)

    def output(
        self, s: FloatArray, q: FloatArray, v: FloatArray, state: FloatArray, from_start: FloatArray | float
    ) -> FloatArray:
        """Add what positions see within the chunk to what they see in the state before it."""
        buffer = self.sram.alloc("O", (self.chunk, self.slab), "fp32")[: v.shape[0], : v.shape[1]]
        buffer[:] = self.machine.matmul(q * from_start, state) + self.machine.matmul(s, v)
        return buffer

    def result(self) -> Run:
        """Collect what was counted."""
        arrays = self.hbm.arrays
        return self.machine.result(O=arrays["O"], STATE=arrays.get("STATE"))


def _transform(call: Call, stored_inverse: bool) -> None:
    """Make W and U of each chunk by the inverse of a triangle, on chip or with all inverses in HBM between."""
    machine, hbm, sram = call.machine, call.hbm, call.sram
    if stored_inverse:
        hbm.alloc("T_stored", (call.batch, call.heads, call.tokens, call.chunk))
        for (b, h), start in ((program, start) for program in call.programs for start in call.starts):
            rows = call.rows(start)
            t, _, _ = _inverse(call, b, h, rows)
            whole = np.zeros((len(t), call.chunk))
            whole[:, : len(t)] = t
            hbm.store("T_stored", (b, h, rows), whole)
            sram.free()
    for name, width in (("W", call.d), ("U", call.d_v)):
        hbm.alloc(name, (call.batch, call.heads, call.tokens, width))
    for (b, h), start in ((program, start) for program in call.programs for start in call.starts):
        rows = call.rows(start)
        n = rows.stop - rows.start
        if stored_inverse:
            k, _, g = call.load("K", b, h, rows), call.load("beta", b, h, rows), call.log_gates(b, h, rows)
            t = sram.alloc("T", (call.chunk, call.chunk))[:n]
            t[:] = hbm.load("T_stored", (b, h, rows))
            t = t[:, :n]
            decayed = k if g is None else k * machine.exp(g)
        else:
            t, k, g = _inverse(call, b, h, rows)
            # Per channel the decayed keys of the products serve again; per head they are made here.
            decayed = k if g is None else k * (np.exp(g) if call.gate == "channel" else machine.exp(g))
        w = sram.alloc("W", (call.chunk, call.d), "fp32")[:n]
        w[:] = machine.matmul(t, decayed)
        hbm.store("W", (b, h, rows), w)
        for columns in call.slabs:
            v = call.load("V", b, h, rows, columns)
            u = sram.alloc("U", (call.chunk, call.slab), "fp32")[:n, : v.shape[1]]
            u[:] = machine.matmul(t, v)
            hbm.store("U", (b, h, rows, columns), u)
            sram.free("V", "U")
        sram.free()


def _inverse(call: Call, b: int, h: int, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Invert the triangle of a chunk, row by row; with its keys and its gates."""
    n = rows.stop - rows.start
    k, beta, g = call.load("K", b, h, rows), call.load("beta", b, h, rows), call.log_gates(b, h, rows)
    a = call.sram.alloc("A", (call.chunk, call.chunk), "fp32")[:n, :n]
    a[:] = beta[:, None] * np.tril(call.decayed_products(k, k, g), -1)
    t = call.sram.alloc("T", (call.chunk, call.chunk), "fp32")[:n, :n]
    t[:] = 0.0
    for i in range(n):
        t[i] = np.eye(n)[i] - call.machine.matmul(a[i : i + 1], t)[0]
    t *= beta
    return t, k, g


def _values(call: Call, b: int, h: int, rows: slice, columns: slice, state: FloatArray) -> FloatArray:
    """Values of a chunk: V, or what the delta rule writes in its place, U - W S."""
    if not call.delta:
        return call.load("V", b, h, rows, columns)
    w, u = call.load("W", b, h, rows), call.load("U", b, h, rows, columns)
    u -= call.machine.matmul(w, state)
    return u


def _scan(call: Call, materialize: bool) -> None:
    """Take the state through the chunks, for some columns of it: store the states, or compute the outputs."""
    hbm, sram = call.hbm, call.sram
    for (b, h), columns in ((program, columns) for program in call.programs for columns in call.slabs):
        state = call.first_state(b, h, columns)
        carried = {"STATE"}
        for t, start in enumerate(call.starts):
            rows = call.rows(start)
            n = rows.stop - rows.start
            if materialize:
                hbm.store("STATES", (b, h, t, slice(None), columns), state)
            else:
                q = call.load("Q", b, h, rows)
            k, g = call.load("K", b, h, rows), call.log_gates(b, h, rows)
            v = _values(call, b, h, rows, columns, state)
            if not materialize:
                s = sram.alloc("S", (call.chunk, call.chunk), "fp32")[:n, :n]
                s[:] = np.tril(call.decayed_products(q, k, g))
                hbm.store("O", (b, h, rows, columns), call.output(s, q, v, state, _from_start(call, g)))
            elif call.delta:
                hbm.store("V_new", (b, h, rows, columns), v)
            call.pass_on(state, k, v, g, (b, h, rows.stop - 1))
            sram.free(*(name for name in sram.buffers if name not in carried))
        if call.stateful:
            hbm.store("STATE", (b, h, slice(None), columns), state)
        sram.free()


def _from_start(call: Call, g: FloatArray | None) -> FloatArray | float:
    """Decays from the first position of a chunk; per channel they are known from the products."""
    if g is None:
        return 1.0
    return np.exp(g) if call.gate == "channel" else call.machine.exp(g)


def _outputs(call: Call) -> None:
    """Compute the outputs of each chunk from its stored state."""
    hbm, sram = call.hbm, call.sram
    for (b, h), (t, start) in ((program, at) for program in call.programs for at in enumerate(call.starts)):
        rows = call.rows(start)
        n = rows.stop - rows.start
        q, k, g = call.load("Q", b, h, rows), call.load("K", b, h, rows), call.log_gates(b, h, rows)
        s = sram.alloc("S", (call.chunk, call.chunk), "fp32")[:n, :n]
        s[:] = np.tril(call.decayed_products(q, k, g))
        from_start = _from_start(call, g)
        kept = set(sram.buffers)
        for columns in call.slabs:
            v = call.load("V_new" if call.delta else "V", b, h, rows, columns)
            state = sram.alloc("STATES", (call.d, call.slab))[:, : columns.stop - columns.start]
            state[:] = hbm.load("STATES", (b, h, t, slice(None), columns))
            hbm.store("O", (b, h, rows, columns), call.output(s, q, v, state, from_start))
            sram.free(*(name for name in sram.buffers if name not in kept))
        sram.free()


def chunked(
    given: Inputs,
    *,
    block_chunk: int,
    block_value: int,
    materialize: bool,
    stored_gates: bool = False,
    stored_inverse: bool = False,
    capacity: int | None = None,
) -> Run:
    """Run the scan in chunks; `materialize` stores the state before each chunk for outputs in parallel."""
    call = Call(given, block_chunk, block_value, capacity)
    hbm = call.hbm
    if stored_gates:
        call.store_sums()
    if call.delta:
        _transform(call, stored_inverse)
        if stored_inverse:
            hbm.free("T_stored")
    if not materialize:
        hbm.alloc("O", (call.batch, call.heads, call.tokens, call.d_v))
        _scan(call, materialize=False)
    else:
        hbm.alloc("STATES", (call.batch, call.heads, len(call.starts), call.d, call.d_v))
        if call.delta:
            hbm.alloc("V_new", (call.batch, call.heads, call.tokens, call.d_v))
        _scan(call, materialize=True)
    if call.delta:
        hbm.free("W")
        hbm.free("U")
    if materialize:
        hbm.alloc("O", (call.batch, call.heads, call.tokens, call.d_v))
        _outputs(call)
    return call.result()


def stepwise(given: Inputs, *, block_value: int, capacity: int | None = None) -> Run:
    """Run the recurrence position by position, with some columns of the state on chip."""
    call = Call(given, 1, block_value, capacity)
    machine, hbm, sram = call.machine, call.hbm, call.sram
    hbm.alloc("O", (call.batch, call.heads, call.tokens, call.d_v))
    for (b, h), columns in ((program, columns) for program in call.programs for columns in call.slabs):
        state = call.first_state(b, h, columns)
        for t in range(call.tokens):
            here: Callable[[int], slice] = call.rows
            q, k, v = (
                call.load("Q", b, h, here(t)),
                call.load("K", b, h, here(t)),
                call.load("V", b, h, here(t), columns),
            )
            g = call.log_gates(b, h, here(t))
            if g is not None:
                state *= machine.exp(g[-1:]).T
            if call.delta:
                beta = call.load("beta", b, h, here(t))
                v = beta[:, None] * (v - machine.matmul(k, state))
            state += machine.matmul(k.T, v)
            o = sram.alloc("O", (1, call.slab), "fp32")[:, : v.shape[1]]
            o[:] = machine.matmul(q, state)
            hbm.store("O", (b, h, here(t), columns), o)
            sram.free(*(name for name in sram.buffers if name != "STATE"))
        if call.stateful:
            hbm.store("STATE", (b, h, slice(None), columns), state)
        sram.free()
    return call.result()
