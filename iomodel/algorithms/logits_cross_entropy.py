"""Cross-entropy through logits in HBM: a product, then a softmax over each row.

The usual form, with which arXiv:2411.09009 (Wijmans et al. 2024, section 3) compares; the softmax of a row is taken in
one pass, with a running maximum (Milakov and Gimelshein 2018, arXiv:1805.02867, Algorithm 3).
"""

from collections.abc import Iterator

from iomodel.algorithms._losses import LSE, ONE, W, X, labels, logits, loss, row, term, word
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Exp, Hold, Kernel, Load, Loop, MatMul, Store
from iomodel.nests.symbols import B_k, B_m, B_n


def declare() -> Iterator[Kernel]:
    """Declare the product, then the losses; the logit of the label is kept as it passes."""
    yield Kernel("logits = X W", per="call", body=[
        Loop(row, B_m, [
            Loop(word, B_n, [
                Hold(logits, "fp32"),
                Loop(term, B_k, [Load(X), Load(W), MatMul(row, word, term)]),
                Store(logits),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("losses", per="call", body=[
        Loop(row, ONE, [
            Load(labels), Hold(LSE), Hold(loss),
            Loop(word, B_n, [Load(logits), Exp(row, word), Exp(row)]),
            Store(LSE), Store(loss),
        ]),
    ])  # fmt: skip


ALGORITHM = Algorithm(
    name="logits_cross_entropy",
    title="Cross-entropy of stored logits",
    cite="Wijmans, Huval, Hertzberg, Koltun and Kraehenbuehl, Cut Your Losses in Large-Vocabulary Language Models, "
    "arXiv:2411.09009 (2024), section 3; Milakov and Gimelshein, arXiv:1805.02867 (2018), Algorithm 3",
    answers="cross_entropy",
    declare=declare,
)
