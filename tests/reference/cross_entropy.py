"""The cross-entropy of a language model on a counting memory: through logits, and cut.

Cut cross-entropy: Wijmans et al. 2024, arXiv:2411.09009, Algorithm 1 for the logits of the labels, Algorithm 2 for the
log-sum-exps. The softmax of a row in one pass: Milakov and Gimelshein 2018, arXiv:1805.02867, Algorithm 3.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

Inputs = dict[str, FloatArray]


def inputs(rows: int, width: int, words: int) -> Inputs:
    """Draw rows, weights and labels."""
    rng = np.random.default_rng(0)
    return {
        "X": rng.standard_normal((rows, width)),
        "W": rng.standard_normal((width, words)),
        "labels": rng.integers(0, words, rows).astype(float),
    }


def naive(given: Inputs) -> tuple[FloatArray, FloatArray]:
    """Follow the definition: log-sum-exps and losses."""
    scores = given["X"] @ given["W"]
    lse = np.log(np.exp(scores).sum(axis=1))
    return lse, lse - scores[np.arange(len(scores)), given["labels"].astype(int)]


def naive_gradients(given: Inputs) -> tuple[FloatArray, FloatArray]:
    """Gradients of the sum of the losses: those of the logits are the softmax less 1 at the label."""
    scores = given["X"] @ given["W"]
    slopes = np.exp(scores - naive(given)[0][:, None])
    slopes[np.arange(len(scores)), given["labels"].astype(int)] -= 1.0
    return slopes @ given["W"].T, given["X"].T @ slopes


def _cut(stop: int, step: int) -> list[slice]:
    return [slice(at, min(at + step, stop)) for at in range(0, stop, step)]


class Loss:
    """The operands in HBM, and the tiles of a block."""

    def __init__(self, given: Inputs, block: tuple[int, int, int], capacity: int | None) -> None:
        self.machine = Machine(X=given["X"], W=given["W"], capacity=capacity)
        self.hbm, self.sram = self.machine.hbm, self.machine.sram
        self.hbm.alloc("labels", given["labels"].shape, given["labels"], "int64")
        self.m, self.n, self.k = block
        self.rows, self.width = given["X"].shape
        self.words = given["W"].shape[1]

    def scores(self, rows: slice, words: slice) -> FloatArray:
        """Make a tile of logits on chip."""
        shape = rows.stop - rows.start, words.stop - words.start
        tile = self.sram.alloc("logits", (self.m, self.n), "fp32")[: shape[0], : shape[1]]
        tile[:] = 0.0
        for terms in _cut(self.width, self.k):
            count = terms.stop - terms.start
            x = self.sram.alloc("X", (self.m, self.k))[: shape[0], :count]
            w = self.sram.alloc("W", (self.k, self.n))[:count, : shape[1]]
            x[:], w[:] = self.hbm.load("X", (rows, terms)), self.hbm.load("W", (terms, words))
            tile += self.machine.matmul(x, w)
            self.sram.free("X", "W")
        return tile


def through_logits(
    given: Inputs,
    *,
    block_m: int,
    block_n: int,
    block_k: int,
    gradients: bool = False,
    adds_dw: bool = False,
    separate_label: bool = False,
    capacity: int | None = None,
) -> Run:
    """Store all logits, then take each row in one pass; for gradients in two, which leave those of the logits."""
    made = Loss(given, (block_m, block_n, block_k), capacity)
    machine, hbm, sram = made.machine, made.hbm, made.sram
    hbm.alloc("logits", (made.rows, made.words))
    for rows in _cut(made.rows, block_m):
        for words in _cut(made.words, block_n):
            hbm.store("logits", (rows, words), made.scores(rows, words))
            sram.free()
    if not gradients:
        hbm.alloc("LSE", (made.rows,), width="fp32")
    hbm.alloc("loss", (made.rows,), width="fp32")
    for i in range(made.rows):
        label, lse, loss = sram.alloc("labels", (1,), "int64"), *(sram.alloc(n, (1,), "fp32") for n in ("LSE", "loss"))
        label[:] = hbm.load("labels", slice(i, i + 1))
        top, total, wanted = -np.inf, 0.0, np.nan
        if separate_label:
            alone = sram.alloc("alone", (1,))
            alone[:] = hbm.load("logits", (slice(i, i + 1), int(label[0])))
            wanted = float(alone[0])
        for words in _cut(made.words, block_n):
            slab = sram.alloc("logits", (block_n,))[: words.stop - words.start]
            slab[:] = hbm.load("logits", (i, words))
            above = max(top, float(slab.max()))
            total = total * float(machine.exp(np.array([top - above]))[0]) + float(machine.exp(slab - above).sum())
            top = above
            if not separate_label and words.start <= label[0] < words.stop:
                wanted = float(slab[int(label[0]) - words.start])
            sram.free("logits")
        lse[:] = top + np.log(total)
        loss[:] = lse - wanted
        for words in _cut(made.words, block_n) if gradients else ():
            slab = sram.alloc("logits", (block_n,))[: words.stop - words.start]
            slab[:] = machine.exp(hbm.load("logits", (i, words)) - lse)
            if not separate_label and words.start <= label[0] < words.stop:
                slab[int(label[0]) - words.start] -= 1.0
            hbm.store("logits", (i, words), slab)
            sram.free("logits")
        if gradients and separate_label:
            hbm.store("logits", (slice(i, i + 1), int(label[0])), machine.exp(np.array([wanted]) - lse) - 1.0)
        if not gradients:
            hbm.store("LSE", slice(i, i + 1), lse)
        hbm.store("loss", slice(i, i + 1), loss)
        sram.free()
    if gradients:
        _gradients(made, adds_dw)
    names = ("loss", "dX", "dW") if gradients else ("LSE", "loss")
    return machine.result(**{name: hbm.arrays[name] for name in names})


def _gradients(made: Loss, adds_dw: bool) -> None:
    """Multiply the gradients of the logits by W and by X; a dW of earlier rows, here of none, is added to."""
    machine, hbm, sram = made.machine, made.hbm, made.sram
    hbm.alloc("dX", (made.rows, made.width))
    for rows in _cut(made.rows, made.m):
        for terms in _cut(made.width, made.n):
            shape = rows.stop - rows.start, terms.stop - terms.start
            tile = sram.alloc("dX", (made.m, made.n), "fp32")[: shape[0], : shape[1]]
            tile[:] = 0.0
            for words in _cut(made.words, made.k):
                count = words.stop - words.start
                slopes, w = sram.alloc("logits", (made.m, made.k)), sram.alloc("W", (made.n, made.k))
                slopes[: shape[0], :count] = hbm.load("logits", (rows, words))
                w[: shape[1], :count] = hbm.load("W", (terms, words))
                tile += machine.matmul(slopes[: shape[0], :count], w[: shape[1], :count].T)
                sram.free("logits", "W")
            hbm.store("dX", (rows, terms), tile)
            sram.free()
    hbm.alloc("dW", (made.width, made.words), np.zeros((made.width, made.words)) if adds_dw else None)
    for terms in _cut(made.width, made.m):
        for words in _cut(made.words, made.n):
            shape = terms.stop - terms.start, words.stop - words.start
            tile = sram.alloc("dW", (made.m, made.n), "io" if adds_dw else "fp32")[: shape[0], : shape[1]]
            tile[:] = hbm.load("dW", (terms, words)) if adds_dw else 0.0
            for rows in _cut(made.rows, made.k):
                count = rows.stop - rows.start
                x, slopes = sram.alloc("X", (made.k, made.m)), sram.alloc("logits", (made.k, made.n))
                x[:count, : shape[0]] = hbm.load("X", (rows, terms))
                slopes[:count, : shape[1]] = hbm.load("logits", (rows, words))
                tile += machine.matmul(x[:count, : shape[0]].T, slopes[:count, : shape[1]])
                sram.free("X", "logits")
            hbm.store("dW", (terms, words), tile)
            sram.free()


def cut(given: Inputs, *, block_m: int, block_n: int, block_k: int, capacity: int | None = None) -> Run:
    """Keep every tile of logits on chip."""
    made = Loss(given, (block_m, block_n, block_k), capacity)
    machine, hbm, sram = made.machine, made.hbm, made.sram
    hbm.alloc("label_logits", (made.rows,), width="fp32")
    for rows in _cut(made.rows, block_m):
        n = rows.stop - rows.start
        label = sram.alloc("labels", (block_m,), "int64")[:n]
        wanted = sram.alloc("label_logits", (block_m,), "fp32")[:n]
        label[:], wanted[:] = hbm.load("labels", rows), 0.0
        for terms in _cut(made.width, block_k):
            count = terms.stop - terms.start
            x, w = (sram.alloc(name, (block_m, block_k))[:n, :count] for name in "XW")
            x[:] = hbm.load("X", (rows, terms))
            for i in range(n):
                w[i] = hbm.load("W", (terms, int(label[i])))
                wanted[i] += machine.matmul(x[i : i + 1], w[i][:, None])[0, 0]
            sram.free("X", "W")
        hbm.store("label_logits", rows, wanted)
        sram.free()
    hbm.alloc("LSE", (made.rows,), width="fp32")
    for rows in _cut(made.rows, block_m):
        hbm.store("LSE", rows, -np.inf)
    for rows in _cut(made.rows, block_m):
        for words in _cut(made.words, block_n):
            part = sram.alloc("part", (block_m,), "fp32")[: rows.stop - rows.start]  # a block has it from its start
            tile = made.scores(rows, words)
            top = tile.max(axis=1, keepdims=True)
            part[:] = (top + np.log(machine.exp(tile - top).sum(axis=1, keepdims=True)))[:, 0]
            known = hbm.arrays["LSE"][rows]
            more = (
                np.maximum(known, part)
                + np.log1p(machine.exp(-np.abs(known - part)))
                - np.where(np.isinf(known), 0.0, known)
            )
            if np.isinf(known).any():
                hbm.arrays["LSE"][rows] = 0.0  # the first sum replaces the constant
            hbm.add("LSE", rows, more, atomic=False)
            sram.free()
    hbm.alloc("loss", (made.rows,), width="fp32")
    for rows in _cut(made.rows, block_m):
        n = rows.stop - rows.start
        lse, wanted = (sram.alloc(name, (block_m,), "fp32")[:n] for name in ("LSE", "label_logits"))
        lse[:], wanted[:] = hbm.load("LSE", rows), hbm.load("label_logits", rows)
        hbm.store("loss", rows, lse - wanted)
        sram.free()
    return machine.result(LSE=hbm.arrays["LSE"], loss=hbm.arrays["loss"])
