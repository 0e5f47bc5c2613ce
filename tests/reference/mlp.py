"""Two-layer MLPs on a counting memory: SwiGLU (Shazeer 2020, arXiv:2002.05202, equation 6), in two kernels and in one.

`run` takes one list of rows per expert, so that experts may have different loads, as in a grouped kernel (Gale et al.
2022, arXiv:2211.15841, section 4); a block never holds rows of two experts.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

Inputs = dict[str, FloatArray]


def inputs(groups: int, width: int, hidden: int, loads: list[int], gated: bool) -> Inputs:
    """Draw rows, one expert after the other, and the weights of every expert."""
    rng = np.random.default_rng(0)
    made = {
        "X": rng.standard_normal((sum(loads), width)),
        "W_up": rng.standard_normal((groups, width, hidden)),
        "W_down": rng.standard_normal((groups, hidden, width)),
    }
    return made | ({"W_gate": rng.standard_normal((groups, width, hidden))} if gated else {})


def naive(given: Inputs, loads: list[int]) -> FloatArray:
    """Follow the definition, expert after expert."""
    parts, first = [], 0
    for expert, rows in enumerate(loads):
        x = given["X"][first : first + rows]
        up = x @ given["W_up"][expert]
        activated = _silu(x @ given["W_gate"][expert]) * up if "W_gate" in given else _silu(up)
        parts.append(activated @ given["W_down"][expert])
        first += rows
    return np.concatenate(parts)


def _silu(x: FloatArray) -> FloatArray:
    return x / (1 + np.exp(-x))


def _cut(start: int, stop: int, step: int) -> list[slice]:
    return [slice(at, min(at + step, stop)) for at in range(start, stop, step)]


class Layer:
    """The operands in HBM, and the tiles of a block."""

    def __init__(
        self,
        given: Inputs,
        loads: list[int],
        block: tuple[int, int, int],
        capacity: int | None,
        hidden: int | None = None,
        wraps: bool = False,
    ) -> None:
        self.machine = Machine(capacity=capacity)
        self.hbm, self.sram = self.machine.hbm, self.machine.sram
        for name, data in given.items():
            self.hbm.alloc(name, data.shape, data, "io" if name == "X" else "kv")  # weights have a width of their own
        self.m, self.n, self.k = block
        self.rows, self.width = given["X"].shape
        self.hidden, self.gated = hidden or given["W_up"].shape[2], "W_gate" in given
        self.wraps = wraps
        ends = np.cumsum([0, *loads]).tolist()
        self.tiles = [(e, rows) for e in range(len(loads)) for rows in _cut(ends[e], ends[e + 1], self.m)]

    def load(self, name: str, index: tuple[int | slice, ...], full: tuple[int, int], wraps: bool = False) -> FloatArray:
        """Load a tile into a buffer of whole size; one that `wraps` begins again where the columns end."""
        data = self.hbm.load(name, index)
        if wraps:
            every = np.arange(index[-1].start, index[-1].start + full[1]) % self.hbm.arrays[name].shape[-1]
            more = [self.hbm.load(name, (*index[:-1], slice(j, j + 1))) for j in every[data.shape[-1] :]]
            assert data.shape[-1] + len(more) == full[1]
        part = self.sram.alloc(name, full, self.hbm.widths[name])[: data.shape[0], : data.shape[1]]
        part[:] = data
        return part

    def activated(self, expert: int, rows: slice, columns: slice, x: FloatArray | None = None) -> FloatArray:
        """Make a tile of hidden rows, from rows of X on chip or slice by slice from HBM."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        names = ["W_gate", "W_up"] if self.gated else ["W_up"]
        sums = {}
        for name, buffer in zip(reversed(names), ("H", "G"), strict=False):
            sums[name] = self.sram.alloc(buffer, (self.m, self.n), "fp32")[: shape[0], : shape[1]]
            sums[name][:] = 0.0
        for terms in _cut(0, self.width, self.k):
            part = self.load("X", (rows, terms), (self.m, self.k)) if x is None else x[:, terms]
            for name in names:
                w = self.load(name, (expert, terms, columns), (self.k, self.n), wraps=self.wraps)
                sums[name] += self.machine.matmul(part, w)
            self.sram.free(*names, *(["X"] if x is None else []))
        z = sums[names[0]]
        z[:] = z / (1 + self.machine.exp(-z))
        if self.gated:
            sums["W_up"] *= z
        return sums["W_up"]


def split(
    given: Inputs,
    loads: list[int],
    *,
    block_m: int,
    block_n: int,
    block_k: int,
    separate_activation: bool = False,
    wrapped_columns: bool = False,
    capacity: int | None = None,
) -> Run:
    """Run two kernels, with the hidden rows in HBM between them; or three, with products in HBM before them too."""
    if separate_activation and "W_gate" in given:
        both = np.concatenate((given["W_gate"], given["W_up"]), axis=2)
        given = {"X": given["X"], "W_gate_up": both, "W_down": given["W_down"]}
    hidden = given["W_down"].shape[1]
    layer = Layer(given, loads, (block_m, block_n, block_k), capacity, hidden, wrapped_columns)
    machine, hbm, sram = layer.machine, layer.hbm, layer.sram

    def product(name: str, source: str, weights: str) -> None:
        wide, terms_of = hbm.arrays[weights].shape[2], hbm.arrays[weights].shape[1]
        hbm.alloc(name, (layer.rows, wide))
        for expert, rows in layer.tiles:
            for columns in _cut(0, wide, block_n):
                y = sram.alloc(name, (block_m, block_n), "fp32")[
                    : rows.stop - rows.start, : columns.stop - columns.start
                ]
                y[:] = 0.0
                for terms in _cut(0, terms_of, block_k):
                    h = layer.load(source, (rows, terms), (block_m, block_k))
                    w = layer.load(weights, (expert, terms, columns), (block_k, block_n), wraps=wrapped_columns)
                    y += machine.matmul(h, w)
                    sram.free(source, weights)
                hbm.store(name, (rows, columns), y)
                sram.free()

    if separate_activation:
        made, weights = ("GU", "W_gate_up") if "W_gate_up" in given else ("U", "W_up")
        product(made, "X", weights)
        hbm.alloc("H", (layer.rows, hidden))
        for i in range(layer.rows):
            row = layer.load(made, (slice(i, i + 1), slice(None)), (1, hbm.arrays[made].shape[1]))
            z = row[:, :hidden]
            activated = z / (1 + machine.exp(-z))
            hbm.store("H", (slice(i, i + 1),), activated * row[:, hidden:] if made == "GU" else activated)
            sram.free()
        hbm.free(made)
    else:
        hbm.alloc("H", (layer.rows, hidden))
        for expert, rows in layer.tiles:
            for columns in _cut(0, hidden, block_n):
                hbm.store("H", (rows, columns), layer.activated(expert, rows, columns))
                sram.free()
    product("Y", "H", "W_down")
    return machine.result(Y=hbm.arrays["Y"])


def naive_backward(given: Inputs, loads: list[int], dy: FloatArray) -> dict[str, FloatArray]:
    """Follow the chain rule, expert after expert, with the derivative of x sigmoid(x)."""
    parts: dict[str, list[FloatArray]] = {}
    ends = np.cumsum([0, *loads])
    for e in range(len(loads)):
        rows = slice(ends[e], ends[e + 1])
        x, slope = given["X"][rows], dy[rows]
        up = x @ given["W_up"][e]
        z = x @ given["W_gate"][e] if "W_gate" in given else up
        sigmoid = 1 / (1 + np.exp(-z))
        of_z = sigmoid * (1 + z * (1 - sigmoid))
        dh = slope @ given["W_down"][e].T
        if "W_gate" in given:
            made = np.concatenate((dh * up * of_z, dh * z * sigmoid), axis=1)
            weights = np.concatenate((given["W_gate"][e], given["W_up"][e]), axis=1)
            hidden = z * sigmoid * up
        else:
            made, weights, hidden = dh * of_z, given["W_up"][e], z * sigmoid
        for name, part in (("dX", made @ weights.T), ("dW", x.T @ made), ("dW_down", hidden.T @ slope)):
            parts.setdefault(name, []).append(part)
    return {name: np.concatenate(part) if name == "dX" else np.stack(part) for name, part in parts.items()}


def backward(
    given: Inputs,
    loads: list[int],
    dy: FloatArray,
    *,
    block_m: int,
    block_n: int,
    block_k: int,
    capacity: int | None = None,
) -> Run:
    """Run five kernels from the products before the activation, which a forward pass has left in HBM."""
    gated = "W_gate" in given
    ends = np.cumsum([0, *loads])
    weights = np.concatenate((given["W_gate"], given["W_up"]), axis=2) if gated else given["W_up"]
    saved = np.concatenate([given["X"][ends[e] : ends[e + 1]] @ weights[e] for e in range(len(loads))])
    made, name = ("GU", "W_gate_up") if gated else ("U", "W_up")
    machine = Machine(dY=dy, X=given["X"], capacity=capacity)
    hbm, sram = machine.hbm, machine.sram
    for weight, data in (("W_down", given["W_down"]), (name, weights)):
        hbm.alloc(weight, data.shape, data, "kv")
    hbm.alloc(made, saved.shape, saved)
    hidden = given["W_down"].shape[1]
    spans = [slice(ends[e], ends[e + 1]) for e in range(len(loads))]

    def tile(source: str, index: tuple[slice | int, ...], full: tuple[int, int]) -> FloatArray:
        data = hbm.load(source, index)
        part = sram.alloc(source, full, hbm.widths[source])[: data.shape[0], : data.shape[1]]
        part[:] = data
        return part

    def by_rows(result: str, left: str, right: str) -> None:
        """Multiply rows by the transpose of the weights of their expert."""
        out, terms_of = hbm.arrays[right].shape[1], hbm.arrays[right].shape[2]
        hbm.alloc(result, (ends[-1], out))
        for e, span in enumerate(spans):
            for rows in _cut(span.start, span.stop, block_m):
                for columns in _cut(0, out, block_n):
                    shape = rows.stop - rows.start, columns.stop - columns.start
                    y = sram.alloc(result, (block_m, block_n), "fp32")[: shape[0], : shape[1]]
                    y[:] = 0.0
                    for terms in _cut(0, terms_of, block_k):
                        a = tile(left, (rows, terms), (block_m, block_k))
                        y += machine.matmul(a, tile(right, (e, columns, terms), (block_n, block_k)).T)
                        sram.free(left, right)
                    hbm.store(result, (rows, columns), y)
                    sram.free()

    def by_columns(result: str, left: str, right: str) -> None:
        """Multiply the transposed rows of an expert by others of its rows."""
        high, wide = hbm.arrays[left].shape[1], hbm.arrays[right].shape[1]
        hbm.alloc(result, (len(loads), high, wide))
        for e, span in enumerate(spans):
            for m in _cut(0, high, block_m):
                for n in _cut(0, wide, block_n):
                    y = sram.alloc(result, (block_m, block_n), "fp32")[: m.stop - m.start, : n.stop - n.start]
                    y[:] = 0.0
                    for rows in _cut(span.start, span.stop, block_k):
                        a = tile(left, (rows, m), (block_k, block_m))
                        y += machine.matmul(a.T, tile(right, (rows, n), (block_k, block_n)))
                        sram.free(left, right)
                    hbm.store(result, (e, m, n), y)
                    sram.free()

    by_rows("dH", "dY", "W_down")
    hbm.alloc("H", (ends[-1], hidden))
    hbm.alloc(f"d{made}", saved.shape)
    for i in range(ends[-1]):
        slope = tile("dH", (slice(i, i + 1), slice(None)), (1, hidden))
        row = tile(made, (slice(i, i + 1), slice(None)), (1, saved.shape[1]))
        z = row[:, :hidden]
        sigmoid = 1 / (1 + machine.exp(-z))
        of_z = sigmoid * (1 + z * (1 - sigmoid))
        up = row[:, hidden:] if gated else 1.0
        hbm.store("H", (slice(i, i + 1),), z * sigmoid * up)
        both = np.concatenate((slope * up * of_z, slope * z * sigmoid), axis=1) if gated else slope * of_z
        hbm.store(f"d{made}", (slice(i, i + 1),), both)
        sram.free()
    hbm.free("dH")
    by_columns("dW_down", "H", "dY")
    hbm.free("H")
    by_rows("dX", f"d{made}", name)
    by_columns(f"d{name}", "X", f"d{made}")
    return machine.result(dX=hbm.arrays["dX"], dW=hbm.arrays[f"d{name}"], dW_down=hbm.arrays["dW_down"])


def fused(
    given: Inputs,
    loads: list[int],
    *,
    block_m: int,
    block_n: int,
    block_k: int,
    resident: bool = False,
    capacity: int | None = None,
) -> Run:
    """Run one kernel: sums of Y on chip with whole rows of X, or added up in HBM."""
    layer = Layer(given, loads, (block_m, block_n, block_k), capacity)
    machine, hbm, sram = layer.machine, layer.hbm, layer.sram
    if not resident:
        hbm.alloc("Y_acc", (layer.rows, layer.width), width="fp32")
        for i in range(layer.rows):
            hbm.store("Y_acc", (slice(i, i + 1),), 0.0)
    else:
        hbm.alloc("Y", (layer.rows, layer.width))
    for expert, rows in layer.tiles:
        count = rows.stop - rows.start
        x = layer.load("X", (rows, slice(None)), (block_m, layer.width)) if resident else None
        if resident:
            y = sram.alloc("Y", (block_m, layer.width), "fp32")[:count]
            y[:] = 0.0
        for slab in _cut(0, layer.hidden, block_n):
            h = layer.activated(expert, rows, slab, x)
            for columns in _cut(0, layer.width, block_k):
                w = layer.load("W_down", (expert, slab, columns), (block_n, block_k))
                if resident:
                    y[:, columns] += machine.matmul(h, w)
                    sram.free("W_down")
                    continue
                part = sram.alloc("Y", (block_m, block_k), "fp32")[:count, : columns.stop - columns.start]
                part[:] = machine.matmul(h, w)
                hbm.add("Y_acc", (rows, columns), part)
                sram.free("W_down", "Y")
            sram.free("H", *(["G"] if layer.gated else []))
        if resident:
            hbm.store("Y", (rows,), y)
        sram.free()
    if not resident:
        hbm.alloc("Y", (layer.rows, layer.width))
        for i in range(layer.rows):
            row = layer.load("Y_acc", (slice(i, i + 1), slice(None)), (1, layer.width))
            hbm.store("Y", (slice(i, i + 1),), row)
            sram.free()
    return machine.result(Y=hbm.arrays["Y"])
