"""The axes and tensors of attention, one head's worth, under the names of the papers."""

from __future__ import annotations

from iomodel.nest import Axis, Tensor
from iomodel.symbols import N_k, N_q, d, d_v

query = Axis("query", N_q)
key = Axis("key", N_k)
depth = Axis("depth", d)
value = Axis("value", d_v)

Q = Tensor("Q", (query, depth))
K = Tensor("K", (key, depth))
V = Tensor("V", (key, value))
O = Tensor("O", (query, value))
S = Tensor("S", (query, key))
P = Tensor("P", (query, key))
l = Tensor("l", (query,), "fp32")
m = Tensor("m", (query,), "fp32")
LSE = Tensor("LSE", (query,), "fp32")
