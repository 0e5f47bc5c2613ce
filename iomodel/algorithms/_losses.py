"""Axes and tensors of the cross-entropy of a language model."""

from __future__ import annotations

from iomodel.nests.language import Axis, Tensor
from iomodel.nests.symbols import C_in, N_v, T

row = Axis("row", T)
term = Axis("term", C_in)
word = Axis("word", N_v)

X = Tensor("X", (row, term), per="call")
W = Tensor("W", (term, word), per="call")
labels = Tensor("labels", (row,), "int64", per="call")
logits = Tensor("logits", (row, word), per="call")
LSE = Tensor("LSE", (row,), "fp32", per="call")
loss = Tensor("loss", (row,), "fp32", per="call")
label_logit = Tensor("logits", (row,), per="call", inside=True)
"""The logit of the label of a row."""
dX = Tensor("dX", (row, term), per="call")
dW = Tensor("dW", (term, word), per="call")
