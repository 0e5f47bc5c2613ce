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

Q = Tensor("Q", (query, depth))  #: queries
K = Tensor("K", (key, depth), per="kv_head")  #: keys
V = Tensor("V", (key, value), per="kv_head")  #: values
O = Tensor("O", (query, value))  #: output
Q_copy = Tensor("Q_copy", (query, depth))  #: Q as one matrix per head
K_copy = Tensor("K_copy", (key, depth), per="kv_head")  #: K as one matrix per head
V_copy = Tensor("V_copy", (key, value), per="kv_head")  #: V as one matrix per head
K_expanded = Tensor("K_expanded", (key, depth))  #: K, once for each query head that shares it
V_expanded = Tensor("V_expanded", (key, value))  #: V, once for each query head that shares it
S = Tensor("S", (query, key))  #: scores, Q K^T
S_masked = Tensor("S_masked", (query, key))  #: S plus the mask
mask = Tensor("mask", (query, key), per="batch")  #: 0 where a key is visible, minus infinity where it is hidden
P = Tensor("P", (query, key))  #: weights, softmax of S by rows
P_drop = Tensor("P_drop", (query, key))  #: weights after dropout in a separate pass
dropout_mask = Tensor("dropout_mask", (query, key), "bool")  #: weights that this pass keeps
l = Tensor("l", (query,), "fp32")  #: running sum of exponentials
m = Tensor("m", (query,), "fp32")  #: running maximum
LSE = Tensor("LSE", (query,), "fp32")  #: log-sum-exp, m + log l
O_acc = Tensor("O_acc", (split, query, value), "fp32")  #: outputs of the splits
LSE_acc = Tensor("LSE_acc", (split, query), "fp32")  #: log-sum-exps of the splits
m_acc = Tensor("m_acc", (split, query), "fp32")  #: maxima of the splits, with `two_statistics`
l_acc = Tensor("l_acc", (split, query), "fp32")  #: sums of the splits, with `two_statistics`

dO = Tensor("dO", (query, value))  #: gradient of O, given
dQ = Tensor("dQ", (query, depth))  #: gradient of Q
dK = Tensor("dK", (key, depth), per="kv_head")  #: gradient of K
dV = Tensor("dV", (key, value), per="kv_head")  #: gradient of V
dP_drop = Tensor("dP_drop", (query, key))  #: gradient of P_drop
dP = Tensor("dP", (query, key))  #: gradient of P
PdP = Tensor("PdP", (query, key))  #: P o dP
dS = Tensor("dS", (query, key))  #: gradient of S
D = Tensor("D", (query,), "fp32")  #: rowsum(dO o O)
LSE_log2 = Tensor("LSE_log2", (query,), "fp32")  #: LSE in base 2, LSE times log2(e)
dQ_acc = Tensor("dQ_acc", (query, depth), "fp32")  #: sums of dQ that key tiles add to
dQ_slabs = Tensor("dQ_acc", (slab, query, depth), "fp32")  #: one per slab, for adding in a fixed order
dK_acc = Tensor("dK_acc", (key, depth), "fp32", per="kv_head")  #: sums of dK over the query heads of a group
dV_acc = Tensor("dV_acc", (key, value), "fp32", per="kv_head")  #: sums of dV over the query heads of a group
dK_expanded = Tensor("dK_expanded", (key, depth))  #: dK of each query head
dV_expanded = Tensor("dV_expanded", (key, value))  #: dV of each query head

bias = Tensor("bias", (query, key))  #: additive bias of the scores
bias_rows = Tensor("bias", (head, key))  #: the same for all queries, with `bias_vector`
slopes = Tensor("slopes", (head,), "fp32", per="heads")  #: ALiBi slopes
sinks = Tensor("sinks", (head,), per="heads")  #: logits of the attention sinks
R = Tensor("R", (state,), "int64", per="call")  #: state of the random numbers, seed and offset
K_scale = Tensor("K_scale", (), "fp32", per="kv_head")  #: scale of K
V_scale = Tensor("V_scale", (), "fp32", per="kv_head")  #: scale of V
K_scales = Tensor("K_scale", (key,), "fp32", per="kv_head")  #: scales of K, one per key
V_scales = Tensor("V_scale", (key,), "fp32", per="kv_head")  #: scales of V, one per key
#: locations of the pages of K and V
block_table = Tensor("block_table", (Axis("page", ceiling(N_k / p)),), "int32", per="batch")
