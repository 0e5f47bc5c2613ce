"""Attention by feature maps, phi(Q) (phi(K)^T V): the sum phi(K)^T V is computed once, or carried along the sequence.

Katharopoulos et al. 2020 (arXiv:2006.16236), equation 6 without a mask, 9 to 12 under the causal mask.
"""

from collections.abc import Iterator, Sequence

from iomodel.algorithms._streaming import chunks
from iomodel.nests.algorithm import Requirement
from iomodel.nests.language import Axis, Cut, Hold, Kernel, Load, Loop, MatMul, Statement, Store, Tensor
from iomodel.nests.symbols import B_r, B_s, N_k, N_q
from iomodel.nests.tensors import K, O, Q, S, V, key, query, value

Statements = Sequence[Statement]
SAME_LENGTHS = Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for the scan goes over both", mask="causal")


def kernels(
    causal: bool, carry: bool, feature: Axis, of_queries: Statements, of_keys: Statements, first: Statements = ()
) -> Iterator[Kernel]:
    """Declare two kernels without a mask, or one scan under the causal mask.

    Parameters
    ----------
    causal, carry
        True for the causal mask; True if the scan loads the state of an earlier call and stores its final state.
    feature
        Axis of phi(x).
    of_queries, of_keys
        Statements that compute the features of the query tile and of the key tile on chip.
    first
        Statements that load their other inputs.
    """
    if causal:
        yield _scan(carry, feature, of_queries, of_keys, first)
        return
    sums = Tensor("KV", (feature, value), "fp32", per="kv_head"), Tensor("z", (feature,), "fp32", per="kv_head")
    yield Kernel("KV = phi(K)^T V", [
        *first, *map(Hold, sums),
        Loop(key, B_s, [Load(K), Load(V), *of_keys, MatMul(feature, value, key)]),
        *map(Store, sums),
    ], per="kv_head")  # fmt: skip
    yield Kernel("O = phi(Q) KV", [
        Loop(query, B_r, [
            *first, *map(Load, sums), Load(Q), *of_queries,
            Hold(O, "fp32"), MatMul(query, value, feature),
            Store(O),
        ]),
    ])  # fmt: skip


def _scan(carry: bool, feature: Axis, of_queries: Statements, of_keys: Statements, first: Statements) -> Kernel:
    """Declare a scan: a chunk attends to itself and to the sums over all earlier chunks, then is added to them."""
    state = Tensor("KV", (feature, value), "fp32"), Tensor("z", (feature,), "fp32")
    return Kernel("causal scan", [
        *first, *(map(Load, state) if carry else map(Hold, state)),
        Cut(chunks(B_r), [
            Load(Q), Load(K), Load(V), *of_queries, *of_keys,
            Hold(S, "fp32"), MatMul(query, key, feature),
            Hold(O, "fp32"), MatMul(query, value, key), MatMul(query, value, feature),
            MatMul(feature, value, key),
            Store(O),
        ]),
        *(map(Store, state) if carry else ()),
    ])  # fmt: skip
