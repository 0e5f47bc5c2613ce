"""Sampling of tokens from logits, as FlashInfer's kernels do (github.com/flashinfer-ai/flashinfer, sampling.cuh).

A softmax with a temperature reads a row of logits once where the row stays on chip; else slices of it, each of which
leaves its largest logit and its sum of exponentials, and a second kernel reads all logits again. A token is drawn
without a sort: a draw walks the probabilities until their sum passes a uniform number, and a second walk checks
whether the word is among the k likeliest and within the mass p; if it is not, a higher threshold begins the next round.
Formulas call the rounds n_h.
"""

from collections.abc import Iterator

from sympy import Expr, Integer, Min, ceiling

from iomodel.nests.algorithm import Algorithm, Requirement
from iomodel.nests.language import Axis, Exp, Hold, Kernel, Load, Loop, Statement, Store, Tensor, When
from iomodel.nests.symbols import ONE, C, T, n_h, s

row = Axis("row", T)
word = Axis("word", C)
one = Axis("one", ONE)
pair = Axis("pair", Integer(2))
"""The largest logit of a slice, and its sum of exponentials."""
part = Axis("part", s, of=word, chunk=ceiling(C / s))
"""Slices of a row of logits."""
draw = Axis("draw", n_h)
_many = Min(1, s - 1)

logits, probs = (Tensor(name, (row, word), "fp32", per="call") for name in ("logits", "probs"))
temperature, top_p = (Tensor(name, (row,), "fp32", per="call") for name in ("temperature", "top_p"))
top_k, token = (Tensor(name, (row,), "int32", per="call") for name in ("top_k", "token"))
partial = Tensor("partial", (row, part, pair), "fp32", per="call")
drawn = Tensor("probs", (row, one), "fp32", per="call", inside=True)
"""The probability of the word of a draw, the next threshold."""


def declare_softmax(splits: Expr) -> Iterator[Kernel]:
    """Declare the probabilities of a row at once, or slice by slice in two kernels."""
    assert splits == part.length
    whole: list[Statement] = [
        Load(temperature),
        Load(logits),
        Exp(row, word),
        Exp(row, word),
        Store(probs, held=logits),
    ]
    yield Kernel("probs = softmax(logits / temperature)", per="call", body=[
        When(_many, unless=True, body=[Loop(row, ONE, whole)]),
    ])  # fmt: skip
    yield Kernel("largest logits and sums", per="call", body=[
        When(_many, [
            Loop(row, ONE, [
                Loop(part, ONE, [
                    Load(temperature), Hold(partial),
                    Loop(word, part.chunk, [Load(logits), Exp(row, word)]),
                    Store(partial),
                ]),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("probs", per="call", body=[
        When(_many, [
            Loop(row, ONE, [
                Load(temperature), Load(partial), Exp(row, part),
                Loop(part, ONE, [
                    Loop(word, part.chunk, [Load(logits), Exp(row, word), Store(probs, held=logits)]),
                ]),
            ]),
        ]),
    ])  # fmt: skip


def declare_sample() -> Iterator[Kernel]:
    """Declare a token of each row from draws that walk its probabilities twice."""
    yield Kernel("draw tokens", per="call", body=[
        Loop(row, ONE, [
            Load(top_k), Load(top_p), Hold(token),
            Loop(draw, ONE, [
                Loop(word, ONE, [Load(probs)]),
                Load(drawn),
                Loop(word, ONE, [Load(probs)]),
            ]),
            Store(token),
        ]),
    ])  # fmt: skip


_CITE = "Z. Ye and others, FlashInfer: Efficient and Customizable Attention Engine for LLM Inference Serving, "
_CITE += "arXiv:2501.01005 (2025); github.com/flashinfer-ai/flashinfer, include/flashinfer/sampling.cuh"
SOFTMAX = Algorithm(
    name="temperature_softmax",
    title="probs = softmax(logits / temperature)",
    cite=_CITE,
    answers="elementwise",
    declare=declare_softmax,
    options={"splits": 1},
    requires=(Requirement.at_most(s, "splits", C, "up to {most}, the words"),),
)
SAMPLE = Algorithm(
    name="sample",
    title="draw tokens among the likeliest words",
    cite=_CITE,
    answers="elementwise",
    declare=declare_sample,
    options={"rounds": 1},
)
ALGORITHMS = (SOFTMAX, SAMPLE)
