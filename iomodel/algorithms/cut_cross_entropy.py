"""Cut cross-entropy (Wijmans et al. 2024, arXiv:2411.09009, Algorithms 1 and 2): no logits in HBM.

The logits of the labels alone are products of gathered columns of W. The log-sum-exp of each row is made by blocks of
rows and words, each of which adds its own to that in HBM, under a lock.
"""

from collections.abc import Iterator

from iomodel.algorithms._losses import LSE, W, X, labels, logits, loss, row, term, word
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Accumulate, Axis, Exp, Fill, Hold, Kernel, Load, Loop, MatMul, Store, Tensor
from iomodel.nests.symbols import ONE, B_k, B_m, B_n

single = Axis("single", ONE)
W_labels = Tensor("W", (row, term), per="call", inside=True)
"""The columns of W of the labels, one for each row."""
label_logits = Tensor("label_logits", (row,), "fp32", per="call")
part = Tensor("part", (row,), "fp32", per="call")
"""The log-sum-exp of some words."""


def declare() -> Iterator[Kernel]:
    """Declare the logits of the labels (Algorithm 1), the log-sum-exps (Algorithm 2), and their difference."""
    yield Kernel("logits of the labels", per="call", body=[
        Loop(row, B_m, [
            Load(labels), Hold(label_logits),
            Loop(term, B_k, [Load(X), Load(W_labels), MatMul(row, single, term)]),
            Store(label_logits),
        ]),
    ])  # fmt: skip
    yield Kernel("LSE = -inf", [Loop(row, B_m, [Fill(LSE)])], per="call")
    yield Kernel("log-sum-exps", per="call", body=[
        Loop(row, B_m, [
            Loop(word, B_n, [
                Hold(logits, "fp32"),
                Loop(term, B_k, [Load(X), Load(W), MatMul(row, word, term)]),
                Hold(part), Exp(row, word),
                Exp(row), Accumulate(LSE, held=part, atomic=False),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("losses", [Loop(row, B_m, [Load(LSE), Load(label_logits), Store(loss, held=LSE)])], per="call")


ALGORITHM = Algorithm(
    name="cut_cross_entropy",
    title="Cut cross-entropy",
    cite="Wijmans, Huval, Hertzberg, Koltun and Kraehenbuehl, Cut Your Losses in Large-Vocabulary Language Models, "
    "arXiv:2411.09009 (2024), Algorithms 1 and 2",
    answers="cross_entropy",
    declare=declare,
    replaces=("product log_softmax", "product log_softmax mean", "product log_softmax sum"),
)
