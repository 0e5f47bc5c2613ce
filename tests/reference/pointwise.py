"""The elementwise kernels of a decoder layer, a row at a time on the counting machine."""

from collections.abc import Callable

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .linear import silu


def norm(x: FloatArray, gamma: FloatArray, keeps_rstd: bool = False) -> Run:
    """Rows divided by their root mean square, which a backward pass may need (Zhang and Sennrich 2019, equation 4)."""
    machine = Machine(x=x, gamma=gamma)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("y", x.shape)
    if keeps_rstd:
        hbm.alloc("rstd", (len(x),), width="fp32")
    for i in range(len(x)):
        row, weight = (sram.alloc(name, (x.shape[1],), "io") for name in ("x", "gamma"))
        row[:], weight[:] = hbm.load("x", i), hbm.load("gamma", slice(None))
        scale = 1 / np.sqrt(np.mean(row**2))
        if keeps_rstd:
            kept = sram.alloc("rstd", (1,), "fp32")
            kept[:] = scale
            hbm.store("rstd", slice(i, i + 1), kept)
        hbm.store("y", i, row * scale * weight)
        sram.free()
    return machine.result(y=hbm.arrays["y"], rstd=hbm.arrays.get("rstd"))


def norm_backward(x: FloatArray, gamma: FloatArray, dy: FloatArray, splits: int) -> Run:
    """The chain rule of a row: dx = r (m - x r^2 mean(m x)) with m = dy gamma; dgamma is a sum over all rows of dy x r.

    Every program adds up its rows on chip, and leaves a sum in fp32; a second kernel adds those up.
    """
    machine = Machine(x=x, gamma=gamma, dy=dy)
    hbm, sram = machine.hbm, machine.sram
    rows, channels = x.shape
    hbm.alloc("rstd", (rows,), 1 / np.sqrt(np.mean(x**2, axis=1)), "fp32")
    hbm.alloc("dx", x.shape)
    hbm.alloc("dgamma_parts", (splits, channels), width="fp32")
    each = -(-rows // splits)
    for program in range(splits):
        weight, total = sram.alloc("gamma", (channels,), "io"), sram.alloc("dgamma", (channels,), "fp32")
        weight[:], total[:] = hbm.load("gamma", slice(None)), 0.0
        for i in range(program * each, min(rows, (program + 1) * each)):
            given, row = sram.alloc("dy", (channels,), "io"), sram.alloc("x", (channels,), "io")
            r = sram.alloc("rstd", (1,), "fp32")
            given[:], row[:], r[:] = hbm.load("dy", i), hbm.load("x", i), hbm.load("rstd", slice(i, i + 1))
            total += given * row * r
            m = given * weight
            row[:] = r * (m - row * r**2 * np.mean(m * row))
            hbm.store("dx", i, row)
            sram.free("dy", "x", "rstd")
        hbm.store("dgamma_parts", program, total)
        sram.free()
    hbm.alloc("dgamma", (channels,))
    total = sram.alloc("dgamma", (channels,), "fp32")
    total[:] = 0.0
    for program in range(splits):
        some = sram.alloc("dgamma_parts", (channels,), "fp32")
        some[:] = hbm.load("dgamma_parts", program)
        total += some
        sram.free("dgamma_parts")
    hbm.store("dgamma", slice(None), total)
    sram.free()
    return machine.result(dx=hbm.arrays["dx"], dgamma=hbm.arrays["dgamma"])


def activation_backward(gate: FloatArray, dhidden: FloatArray, up: FloatArray | None = None) -> Run:
    """The derivative of x sigmoid(x) from a new sigmoid; of a gated activation both factors have a gradient."""
    machine = Machine(dhidden=dhidden, gate=gate, **({} if up is None else {"up": up}))
    hbm, sram = machine.hbm, machine.sram
    names = ("gate",) if up is None else ("gate", "up")
    for name in names:
        hbm.alloc(f"d{name}", gate.shape)
    for i in range(len(gate)):
        rows = {name: sram.alloc(name, (gate.shape[1],), "io") for name in ("dhidden", *names)}
        for name, row in rows.items():
            row[:] = hbm.load(name, i)
        sigmoid = 1 / (1 + machine.exp(-rows["gate"]))
        slope = sigmoid * (1 + rows["gate"] * (1 - sigmoid))
        if up is not None:
            hbm.store("dup", i, rows["dhidden"] * rows["gate"] * sigmoid)
        hbm.store("dgate", i, rows["dhidden"] * slope * (1.0 if up is None else rows["up"]))
        sram.free()
    return machine.result(**{f"d{name}": hbm.arrays[f"d{name}"] for name in names})


def copy(x: FloatArray) -> Run:
    return _of_rows(x, lambda row, machine: row)


def add(x: FloatArray, residual: FloatArray) -> Run:
    machine = Machine(x=x, residual=residual)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("y", x.shape)
    for i in range(len(x)):
        row, rest = (sram.alloc(name, (x.shape[1],), "io") for name in ("x", "residual"))
        row[:], rest[:] = hbm.load("x", i), hbm.load("residual", i)
        hbm.store("y", i, row + rest)
        sram.free()
    return machine.result(y=hbm.arrays["y"])


def softmax(x: FloatArray) -> Run:
    """The exponentials of a row without its maximum, divided by their sum."""

    def normalised(row: FloatArray, machine: Machine) -> FloatArray:
        powers = machine.exp(row - np.max(row))
        return powers / np.sum(powers)

    return _of_rows(x, normalised)


def _of_rows(
    x: FloatArray, function: Callable[[FloatArray, Machine], FloatArray], read: str = "x", written: str = "y"
) -> Run:
    """A function of each row, which stays on chip."""
    machine = Machine(**{read: x})
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc(written, x.shape)
    for i in range(len(x)):
        row = sram.alloc(read, (x.shape[1],), "io")
        row[:] = hbm.load(read, i)
        hbm.store(written, i, function(row, machine))
        sram.free()
    return machine.result(**{written: hbm.arrays[written]})


def layer_norm(x: FloatArray, gamma: FloatArray, beta: FloatArray) -> Run:
    """Rows without their mean, divided by their deviation, weighted and shifted."""
    machine = Machine(x=x, gamma=gamma, beta=beta)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("y", x.shape)
    for i in range(len(x)):
        row, weight, shift = (sram.alloc(name, (x.shape[1],), "io") for name in ("x", "gamma", "beta"))
        row[:], weight[:], shift[:] = hbm.load("x", i), hbm.load("gamma", slice(None)), hbm.load("beta", slice(None))
        row -= np.mean(row)
        hbm.store("y", i, row / np.sqrt(np.mean(row**2) + 1e-5) * weight + shift)
        sram.free()
    return machine.result(y=hbm.arrays["y"])


def gather_rows(slots: list[int], x: FloatArray) -> Run:
    """Rows of tokens in the order of their experts, each from the place that an index names."""
    machine = Machine(x=x)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("slots", (len(slots), 1), np.array(slots, dtype=float)[:, None], "int64")
    hbm.alloc("y", (len(slots), x.shape[1]))
    for i in range(len(slots)):
        slot, row = sram.alloc("slots", (1,), "int64"), sram.alloc("x", (x.shape[1],), "io")
        slot[:] = hbm.load("slots", i)
        row[:] = hbm.load("x", int(slot[0]))
        hbm.store("y", i, row)
        sram.free()
    return machine.result(y=hbm.arrays["y"])


def add_norm(x: FloatArray, residual: FloatArray, gamma: FloatArray) -> Run:
    """The residual grows by x; its rows are normalised, weighted and stored."""
    machine = Machine(x=x, residual=residual, gamma=gamma)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("y", x.shape)
    for i in range(len(x)):
        row, rest, weight = (sram.alloc(name, (x.shape[1],), "io") for name in ("x", "residual", "gamma"))
        row[:], rest[:] = hbm.load("x", i), hbm.load("residual", i)
        rest += row
        hbm.store("residual", i, rest)
        weight[:] = hbm.load("gamma", slice(None))
        hbm.store("y", i, rest / np.sqrt(np.mean(rest**2)) * weight)
        sram.free()
    return machine.result(y=hbm.arrays["y"], residual=hbm.arrays["residual"])


def gated_activation(gate: FloatArray, up: FloatArray) -> Run:
    machine = Machine(gate=gate, up=up)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("hidden", gate.shape)
    for i in range(len(gate)):
        a, b = (sram.alloc(name, (gate.shape[1],), "io") for name in ("gate", "up"))
        a[:], b[:] = hbm.load("gate", i), hbm.load("up", i)
        hbm.store("hidden", i, silu(a, machine) * b)
        sram.free()
    return machine.result(hidden=hbm.arrays["hidden"])


def append(slots: list[int], places: int, **news: FloatArray) -> Run:
    """New rows of K, and of V if it is beside it, go to their slots of caches, each as wide as its rows."""
    machine = Machine(**news)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("slots", (len(slots), 1), np.array(slots, dtype=float)[:, None], "int64")
    for name, rows in news.items():
        hbm.alloc(f"{name}_cache", (places, rows.shape[1]), width="kv")
    for i in range(len(slots)):
        slot = sram.alloc("slots", (1,), "int64")
        slot[:] = hbm.load("slots", i)
        for name, rows in news.items():
            row = sram.alloc(name, (rows.shape[1],), "io")
            row[:] = hbm.load(name, i)
            hbm.store(f"{name}_cache", int(slot[0]), row)
        sram.free()
    return machine.result(**{name: hbm.arrays[f"{name}_cache"] for name in news})


def merge_states(o_a: FloatArray, lse_a: FloatArray, o_b: FloatArray, lse_b: FloatArray) -> Run:
    """Rows of attention over two sets of keys become those over both: a mean by the sums of exponentials."""
    machine = Machine(O_a=o_a, O_b=o_b)
    hbm, sram = machine.hbm, machine.sram
    rows, channels = o_a.shape
    for name, values in (("LSE_a", lse_a), ("LSE_b", lse_b), ("LSE", None)):
        hbm.alloc(name, (rows,), values, "fp32")
    hbm.alloc("O", o_a.shape)
    for i in range(rows):
        a, b = (sram.alloc(name, (1,), "fp32") for name in ("LSE_a", "LSE_b"))
        x, y = (sram.alloc(name, (channels,), "io") for name in ("O_a", "O_b"))
        a[:], b[:] = hbm.load("LSE_a", slice(i, i + 1)), hbm.load("LSE_b", slice(i, i + 1))
        x[:], y[:] = hbm.load("O_a", i), hbm.load("O_b", i)
        top = np.maximum(a, b)
        of_a, of_b = machine.exp(a - top), machine.exp(b - top)
        hbm.store("O", i, (of_a * x + of_b * y) / (of_a + of_b))
        hbm.store("LSE", slice(i, i + 1), top + np.log(of_a + of_b))
        sram.free()
    return machine.result(O=hbm.arrays["O"], LSE=hbm.arrays["LSE"])


def combine_experts(outputs: FloatArray, weights: FloatArray) -> Run:
    machine = Machine(outputs=outputs)
    hbm, sram = machine.hbm, machine.sram
    tokens, experts, channels = outputs.shape
    hbm.alloc("router_weights", (tokens, experts), weights, "fp32")
    hbm.alloc("y", (tokens, channels))
    for i in range(tokens):
        share = sram.alloc("router_weights", (experts,), "fp32")
        share[:] = hbm.load("router_weights", i)
        y = sram.alloc("y", (channels,), "fp32")
        y[:] = 0.0
        for j in range(experts):
            row = sram.alloc("outputs", (channels,), "io")
            row[:] = hbm.load("outputs", (i, j))
            y += share[j] * row
            sram.free("outputs")
        hbm.store("y", i, y)
        sram.free()
    return machine.result(y=hbm.arrays["y"])


def activation(x: FloatArray) -> Run:
    return _of_rows(x, silu, "gate", "hidden")


def rotary(rows: FloatArray, angles: FloatArray, name: str = "Q") -> Run:
    """Every head of a row is rotated in place by the row's table: cosines, then sines (Su et al. 2021, 3.4.2)."""
    machine = Machine(**{name: rows})
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("angles", angles.shape, angles, "fp32")
    half = angles.shape[1] // 2
    for i in range(len(rows)):
        turn = sram.alloc("angles", (2 * half,), "fp32")
        turn[:] = hbm.load("angles", i)
        row = sram.alloc(name, (rows.shape[1],), "io")
        row[:] = hbm.load(name, i)
        for head in row.reshape(-1, 2 * half):
            first, second = head[:half].copy(), head[half:].copy()
            head[:half] = first * turn[:half] - second * turn[half:]
            head[half:] = second * turn[:half] + first * turn[half:]
        hbm.store(name, i, row)
        sram.free()
    return machine.result(**{name: hbm.arrays[name]})


def rotary_append(
    queries: FloatArray, angles: FloatArray, slots: list[int], places: int, k: FloatArray, v: FloatArray | None = None
) -> Run:
    """Queries are rotated in place; keys, rotated, and values go to their slots of the caches.

    Of a wider row of keys, a latent, the last elements, as many as the angles, are rotated.
    """
    machine = Machine(Q=queries, K=k, **({} if v is None else {"V": v}))
    hbm, sram = machine.hbm, machine.sram
    width, latent = angles.shape[1], v is None
    hbm.alloc("angles", angles.shape, angles, "fp32")
    hbm.alloc("slots", (len(slots), 1), np.array(slots, dtype=float)[:, None], "int64")
    news = {"K": k} if v is None else {"K": k, "V": v}
    for name, rows in news.items():
        hbm.alloc(f"{name}_cache", (places, rows.shape[1]), width="kv")

    def turned(row: FloatArray, turn: FloatArray) -> None:
        half = width // 2
        for head in row.reshape(-1, width):
            first, second = head[:half].copy(), head[half:].copy()
            head[:half] = first * turn[:half] - second * turn[half:]
            head[half:] = second * turn[:half] + first * turn[half:]

    for i in range(len(slots)):
        turn, slot = sram.alloc("angles", (width,), "fp32"), sram.alloc("slots", (1,), "int64")
        turn[:], slot[:] = hbm.load("angles", i), hbm.load("slots", i)
        for name, rows in {"Q": queries, **news}.items():
            row = sram.alloc(name, (rows.shape[1],), "io")
            row[:] = hbm.load(name, i)
            if name != "V":
                turned(row[-width:] if latent and name == "K" else row, turn)
            if name == "Q":
                hbm.store("Q", i, row)
            else:
                hbm.store(f"{name}_cache", int(slot[0]), row)
        sram.free()
    return machine.result(Q=hbm.arrays["Q"], **{name: hbm.arrays[f"{name}_cache"] for name in news})


def embedding(tokens: list[int], table: FloatArray) -> Run:
    """The rows of the table that the tokens name, copied."""
    machine = Machine(embeddings=table)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("tokens", (len(tokens), 1), np.array(tokens, dtype=float)[:, None], "int64")
    hbm.alloc("x", (len(tokens), table.shape[1]))
    for i in range(len(tokens)):
        token = sram.alloc("tokens", (1,), "int64")
        token[:] = hbm.load("tokens", i)
        row, made = (sram.alloc(name, (table.shape[1],), "io") for name in ("embeddings", "x"))
        row[:] = hbm.load("embeddings", int(token[0]))
        made[:] = row
        hbm.store("x", i, made)
        sram.free()
    return machine.result(x=hbm.arrays["x"])
