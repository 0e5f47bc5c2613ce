"""The elementwise kernels of a decoder layer, a row at a time on the counting machine."""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .linear import silu


def norm(x: FloatArray, gamma: FloatArray) -> Run:
    machine = Machine(x=x, gamma=gamma)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("y", x.shape)
    for i in range(len(x)):
        row, weight = (sram.alloc(name, (x.shape[1],), "io") for name in ("x", "gamma"))
        row[:], weight[:] = hbm.load("x", i), hbm.load("gamma", slice(None))
        hbm.store("y", i, row / np.sqrt(np.mean(row**2)) * weight)
        sram.free()
    return machine.result(y=hbm.arrays["y"])


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
    machine = Machine(gate=x)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("hidden", x.shape)
    for i in range(len(x)):
        row = sram.alloc("gate", (x.shape[1],), "io")
        row[:] = hbm.load("gate", i)
        hbm.store("hidden", i, silu(row, machine))
        sram.free()
    return machine.result(hidden=hbm.arrays["hidden"])


def rotary(rows: FloatArray, angles: FloatArray) -> Run:
    """Every head of a row is rotated in place by the row's table: cosines, then sines (Su et al. 2021, 3.4.2)."""
    machine = Machine(Q=rows)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("angles", angles.shape, angles, "fp32")
    half = angles.shape[1] // 2
    for i in range(len(rows)):
        turn = sram.alloc("angles", (2 * half,), "fp32")
        turn[:] = hbm.load("angles", i)
        row = sram.alloc("Q", (rows.shape[1],), "io")
        row[:] = hbm.load("Q", i)
        for head in row.reshape(-1, 2 * half):
            first, second = head[:half].copy(), head[half:].copy()
            head[:half] = first * turn[:half] - second * turn[half:]
            head[half:] = second * turn[:half] + first * turn[half:]
        hbm.store("Q", i, row)
        sram.free()
    return machine.result(Q=hbm.arrays["Q"])


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
