"""Cross-entropy through logits in HBM: a product, then a softmax over each row; with gradients, in place of the logits.

The usual form, with which arXiv:2411.09009 (Wijmans et al. 2024, section 3) compares; the softmax of a row is taken in
one pass, with a running maximum (Milakov and Gimelshein 2018, arXiv:1805.02867, Algorithm 3). For gradients a second
pass over the row overwrites the logits with their own, from which dX and dW are two products (Hsu et al. 2024,
arXiv:2410.10989, section 3.2, which does so for some rows at a time and adds up dW).
"""

from collections.abc import Iterator

from iomodel.algorithms._losses import LSE, W, X, dW, dX, label_logit, labels, logits, loss, row, term, word
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Exp, Hold, Kernel, Load, Loop, MatMul, Statement, Store
from iomodel.nests.symbols import ONE, B_k, B_m, B_n


def declare(gradients: bool, adds_dw: bool, separate_label: bool) -> Iterator[Kernel]:
    """Declare the product, then the losses; the logit of the label is kept as it passes, or loaded by itself."""
    yield Kernel("logits = X W", per="call", body=[
        Loop(row, B_m, [
            Loop(word, B_n, [
                Hold(logits, "fp32"),
                Loop(term, B_k, [Load(X), Load(W), MatMul(row, word, term)]),
                Store(logits),
            ]),
        ]),
    ])  # fmt: skip
    slopes: list[Statement] = [Loop(word, B_n, [Load(logits), Exp(row, word), Store(logits)])]
    wanted: list[Statement] = [Load(label_logit)] if separate_label else []
    corrected: list[Statement] = [Exp(row), Store(label_logit)] if separate_label else []
    yield Kernel("losses", per="call", body=[
        Loop(row, ONE, [
            Load(labels), Hold(LSE), Hold(loss), *wanted,
            Loop(word, B_n, [Load(logits), Exp(row, word), Exp(row)]),
            *([*slopes, *corrected] if gradients else [Store(LSE)]),
            Store(loss),
        ]),
    ])  # fmt: skip
    if not gradients:
        return
    yield Kernel("dX", per="call", body=[
        Loop(row, B_m, [
            Loop(term, B_n, [
                Hold(dX, "fp32"),
                Loop(word, B_k, [Load(logits), Load(W), MatMul(row, term, word)]),
                Store(dX),
            ]),
        ]),
    ])  # fmt: skip
    begun = Load(dW) if adds_dw else Hold(dW, "fp32")
    yield Kernel("dW", per="call", body=[
        Loop(term, B_m, [
            Loop(word, B_n, [
                begun,
                Loop(row, B_k, [Load(X), Load(logits), MatMul(term, word, row)]),
                Store(dW),
            ]),
        ]),
    ])  # fmt: skip


ALGORITHM = Algorithm(
    name="logits_cross_entropy",
    title="Cross-entropy of stored logits",
    cite="Wijmans, Huval, Hertzberg, Koltun and Kraehenbuehl, Cut Your Losses in Large-Vocabulary Language Models, "
    "arXiv:2411.09009 (2024), section 3; Milakov and Gimelshein, arXiv:1805.02867 (2018), Algorithm 3; with gradients "
    "Hsu, Dai, Kothapalli, Song, Tang, Zhu, Shimizu, Sahni, Ning and Chen, Liger Kernel, arXiv:2410.10989 (2024), 3.2",
    answers="cross_entropy",
    declare=declare,
    options={"adds_dw": False},
    features=("gradients",),
    as_written=("separate_label",),
)
