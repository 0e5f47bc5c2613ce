"""Axes and tensors of attention per head, under the names of the papers."""

from __future__ import annotations

from sympy import Integer, Symbol, ceiling

from iomodel.nests.language import Axis, Tensor
from iomodel.nests.symbols import B_c, G, N_k, N_q, d, d_v, n_dQ, p, s

query = Axis("query", N_q)
key = Axis("key", N_k)
depth = Axis("depth", d)
value = Axis("value", d_v)
head = Axis("head", Integer(1))
"""The query heads of a program: one, or the entire group if packed."""
group = Axis("group", G)
"""The query heads that share a key/value head."""
split = Axis("split", s, of=key, chunk=B_c * ceiling(ceiling(N_k / B_c) / s))
"""Splits of the keys into equal numbers of whole key tiles; the last splits may have fewer or none."""
filled = Axis("filled", ceiling(N_k / split.chunk))
"""The splits that hold a key."""
grouped = Symbol("grouped", integer=True, nonnegative=True)
"""1 if several programs share a key/value head, 0 if each has a separate one; set by View."""
slab = Axis("slab", n_dQ)
"""Buffers of a deterministic backward pass, one per program that adds to dQ."""
state = Axis("state", Integer(2))

Q = Tensor("Q", (query, depth))
K = Tensor("K", (key, depth), per="kv_head")
V = Tensor("V", (key, value), per="kv_head")
O = Tensor("O", (query, value))
Q_copy = Tensor("Q_copy", (query, depth))
K_copy = Tensor("K_copy", (key, depth), per="kv_head")
V_copy = Tensor("V_copy", (key, value), per="kv_head")
K_expanded = Tensor("K_expanded", (key, depth))
V_expanded = Tensor("V_expanded", (key, value))
S = Tensor("S", (query, key))
S_masked = Tensor("S_masked", (query, key))
mask = Tensor("mask", (query, key), per="batch")
P = Tensor("P", (query, key))
P_drop = Tensor("P_drop", (query, key))
dropout_mask = Tensor("dropout_mask", (query, key), "bool")
l = Tensor("l", (query,), "fp32")
m = Tensor("m", (query,), "fp32")
LSE = Tensor("LSE", (query,), "fp32")
O_acc = Tensor("O_acc", (split, query, value), "fp32")
LSE_acc = Tensor("LSE_acc", (split, query), "fp32")
m_acc = Tensor("m_acc", (split, query), "fp32")
l_acc = Tensor("l_acc", (split, query), "fp32")

dO = Tensor("dO", (query, value))
dQ = Tensor("dQ", (query, depth))
dK = Tensor("dK", (key, depth), per="kv_head")
dV = Tensor("dV", (key, value), per="kv_head")
dP_drop = Tensor("dP_drop", (query, key))
dP = Tensor("dP", (query, key))
PdP = Tensor("PdP", (query, key))
dS = Tensor("dS", (query, key))
D = Tensor("D", (query,), "fp32")
LSE_log2 = Tensor("LSE_log2", (query,), "fp32")
dQ_acc = Tensor("dQ_acc", (query, depth), "fp32")
dQ_slabs = Tensor("dQ_acc", (slab, query, depth), "fp32")
dK_acc = Tensor("dK_acc", (key, depth), "fp32", per="kv_head")
dV_acc = Tensor("dV_acc", (key, value), "fp32", per="kv_head")
dK_expanded = Tensor("dK_expanded", (key, depth))
dV_expanded = Tensor("dV_expanded", (key, value))

bias = Tensor("bias", (query, key))
bias_rows = Tensor("bias", (head, key))
"""A bias that all queries of a head share."""
slopes = Tensor("slopes", (head,), "fp32", per="heads")
sinks = Tensor("sinks", (head,), per="heads")
R = Tensor("R", (state,), "int64", per="call")
K_scale = Tensor("K_scale", (), "fp32", per="kv_head")
V_scale = Tensor("V_scale", (), "fp32", per="kv_head")
K_scales = Tensor("K_scale", (key,), "fp32", per="kv_head")
V_scales = Tensor("V_scale", (key,), "fp32", per="kv_head")
block_table = Tensor("block_table", (Axis("page", ceiling(N_k / p)),), "int32", per="batch")
