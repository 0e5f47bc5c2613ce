"""Axes and tensors of two-layer MLPs."""

from __future__ import annotations

from iomodel.nests.language import Axis, Tensor
from iomodel.nests.symbols import C_h, C_in, T, g

group = Axis("group", g)
row = Axis("row", T)
term = Axis("term", C_in)
hidden = Axis("hidden", C_h)
column = Axis("column", C_in)
joined = Axis("joined", 2 * C_h)
"""Columns of W_gate, then those of W_up."""

X = Tensor("X", (group, row, term), per="call")
W_gate = Tensor("W_gate", (group, term, hidden), "weight", per="call")
W_up = Tensor("W_up", (group, term, hidden), "weight", per="call")
W_down = Tensor("W_down", (group, hidden, column), "weight", per="call")
W_gate_up = Tensor("W_gate_up", (group, term, joined), "weight", per="call")
GU = Tensor("GU", (group, row, joined), per="call")
U = Tensor("U", (group, row, hidden), per="call")
G = Tensor("G", (group, row, hidden), "fp32", per="call")
H = Tensor("H", (group, row, hidden), per="call")
Y = Tensor("Y", (group, row, column), per="call")
Y_acc = Tensor("Y_acc", (group, row, column), "fp32", per="call")
"""Sums of Y over slabs of hidden columns."""

dY = Tensor("dY", (group, row, column), per="call")
dH = Tensor("dH", (group, row, hidden), per="call")
dX = Tensor("dX", (group, row, term), per="call")
dGU = Tensor("dGU", (group, row, joined), per="call")
dU = Tensor("dU", (group, row, hidden), per="call")
dW_gate_up = Tensor("dW_gate_up", (group, term, joined), per="call")
dW_up = Tensor("dW_up", (group, term, hidden), per="call")
dW_down = Tensor("dW_down", (group, hidden, column), per="call")
"""Gradients, in the type of X."""
