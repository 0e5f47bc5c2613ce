"""Sampling of tokens from logits on a counting memory, as in FlashInfer (Ye et al. 2025, arXiv:2501.01005).

github.com/flashinfer-ai/flashinfer, include/flashinfer/sampling.cuh: OnlineSoftmaxFusedKernel keeps a row of up to
4,096 words in shared memory; OnlineSoftmaxMapKernel takes a slice of a row, and OnlineSoftmaxReduceKernel joins the
slices. TopKTopPSamplingFromProbKernel draws tokens without a sort, and rejects those outside of the k likeliest or of
the mass.
"""

from dataclasses import dataclass

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run


def _slices(length: int, many: int) -> list[slice]:
    each = -(-length // many)
    return [slice(min(at * each, length), min((at + 1) * each, length)) for at in range(many)]


def softmax(logits: FloatArray, temperature: FloatArray, splits: int) -> Run:
    """Probabilities of words: of a row at once, or of slices whose largest logits and sums are joined afterwards."""
    machine = Machine()
    hbm, sram = machine.hbm, machine.sram
    rows, words = logits.shape
    hbm.alloc("logits", logits.shape, logits, "fp32")
    hbm.alloc("temperature", (rows,), temperature, "fp32")
    each = -(-words // splits)
    if splits > 1:
        hbm.alloc("partial", (splits, rows, 2), width="fp32")
        for i in range(rows):
            for j, words_of in enumerate(_slices(words, splits)):
                heat = sram.alloc("temperature", (1,), "fp32")
                heat[:] = hbm.load("temperature", slice(i, i + 1))
                pair, tile = sram.alloc("partial", (2,), "fp32"), sram.alloc("logits", (each,), "fp32")
                values = tile[: words_of.stop - words_of.start]
                pair[:] = -np.inf, 0.0  # of a slice beyond the end
                if len(values):
                    values[:] = hbm.load("logits", (i, words_of)) / heat
                    pair[0] = values.max()
                    pair[1] = machine.exp(values - pair[0]).sum()
                hbm.store("partial", (j, i), pair)
                sram.free()
    hbm.alloc("probs", logits.shape, width="fp32")
    for i in range(rows):
        heat = sram.alloc("temperature", (1,), "fp32")
        heat[:] = hbm.load("temperature", slice(i, i + 1))
        if splits > 1:
            pairs = sram.alloc("partial", (splits, 2), "fp32")
            pairs[:] = hbm.load("partial", (slice(0, splits), i))
            top = pairs[:, 0].max()
            total = (pairs[:, 1] * machine.exp(pairs[:, 0] - top)).sum()
        tile = sram.alloc("logits", (each,), "fp32")
        for words_of in _slices(words, splits):
            values = tile[: words_of.stop - words_of.start]
            if not len(values):
                continue
            values[:] = hbm.load("logits", (i, words_of)) / heat
            if splits == 1:
                top = values.max()
                total = machine.exp(values - top).sum()
            hbm.store("probs", (i, words_of), machine.exp(values - top) / total)
        sram.free()
    if splits > 1:
        hbm.free("partial")
    return machine.result(probs=hbm.arrays["probs"])


@dataclass(frozen=True)
class Drawn:
    """What a sampler did: its counts, rounds [-] of each row, words [-] that draws did not read after they ended."""

    run: Run
    rounds: list[int]
    unread: int


def sample(probs: FloatArray, top_k: list[int], top_p: list[float], seed: int) -> Drawn:
    """Draw a word among those above a threshold; raise the threshold until the word is allowed.

    A draw ends at the word where the sum passes a uniform number; the check that follows reads the whole row.
    """
    machine, draw = Machine(), np.random.default_rng(seed).random
    hbm, sram = machine.hbm, machine.sram
    rows, words = probs.shape
    hbm.alloc("probs", probs.shape, probs, "fp32")
    hbm.alloc("top_k", (rows,), np.array(top_k, dtype=float), "int32")
    hbm.alloc("top_p", (rows,), np.array(top_p), "fp32")
    hbm.alloc("token", (rows,), width="int32")
    rounds, unread = [], 0
    for i in range(rows):
        most, mass = sram.alloc("top_k", (1,), "int32"), sram.alloc("top_p", (1,), "fp32")
        most[:], mass[:] = hbm.load("top_k", slice(i, i + 1)), hbm.load("top_p", slice(i, i + 1))
        token = sram.alloc("token", (1,), "int32")
        low, high, left, many = 0.0, 1.0, 1.0, 0
        while True:
            many += 1
            u, passed, p = draw() * left, 0.0, sram.alloc("probs", (1,), "fp32")
            for word in range(words):
                p[:] = hbm.load("probs", (i, slice(word, word + 1)))
                if p[0] > low:
                    passed, token[:] = passed + p[0], word  # the last one above the threshold, if the sum falls short
                if passed > u:
                    unread += words - word - 1
                    break
            sram.free("probs")
            pivot = sram.alloc("pivot", (1,), "fp32")
            pivot[:] = hbm.load("probs", (i, slice(int(token[0]), int(token[0]) + 1)))
            middle = (pivot[0] + high) / 2
            above = {pivot[0]: [0, 0.0], middle: [0, 0.0]}
            p = sram.alloc("probs", (1,), "fp32")
            for word in range(words):
                p[:] = hbm.load("probs", (i, slice(word, word + 1)))
                for threshold, count in above.items():
                    if p[0] > threshold:
                        count[0], count[1] = count[0] + 1, count[1] + p[0]
            sram.free("probs", "pivot")
            accepted = [count[0] < most[0] and count[1] < mass[0] for count in (above[pivot[0]], above[middle])]
            if accepted[0]:
                break
            if accepted[1]:
                low, high, left = pivot[0], middle, above[pivot[0]][1]
            else:
                low, left = middle, above[middle][1]
            if low >= high:
                break
        hbm.store("token", slice(i, i + 1), token)
        sram.free()
        rounds.append(many)
    return Drawn(machine.result(token=hbm.arrays["token"]), rounds, unread)
