"""Performer (Choromanski et al. 2020, arXiv:2009.14794): softmax attention by positive random features, FAVOR+.

phi(x) = exp(W x' - |x'|^2 / 2) / sqrt(r) with x' = x / d^(1/4), r orthogonal random rows of W (Lemma 1, section 2.4).
O = phi(Q) (phi(K)^T V), each row divided by phi(Q) times the sum of the rows of phi(K) (section 2.2, Algorithm 1).
Under the causal mask the sums go along the sequence in chunks.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.algorithms._kernelised import SAME_LENGTHS, kernels
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.language import Axis, Exp, Hold, Kernel, Load, MatMul, Statement, Tensor
from iomodel.nests.symbols import B_r, N_k, N_q, d, d_v, r_phi
from iomodel.nests.tensors import depth, key, query

feature = Axis("feature", r_phi)
W = Tensor("W", (feature, depth), per="call")
F_Q = Tensor("F_Q", (query, feature))
F_K = Tensor("F_K", (key, feature))


def declare(causal: bool, carry: bool) -> Iterator[Kernel]:
    """Declare the kernels with the random rows on chip while the features of a tile are computed."""
    of_queries: list[Statement] = [Hold(F_Q, "fp32"), MatMul(query, feature, depth), Exp(query, feature)]
    of_keys: list[Statement] = [Hold(F_K, "fp32"), MatMul(key, feature, depth), Exp(key, feature)]
    return kernels(causal, carry, feature, of_queries, of_keys, first=[Load(W)])


ALGORITHM = Algorithm(
    name="performer",
    title="Performer",
    cite="Choromanski et al., Rethinking Attention with Performers, arXiv:2009.14794 (2020), Lemma 1 and Algorithm 1",
    declare=declare,
    options={"features": 128, "carry": False},
    requires=(
        *(
            Requirement.at_most(r_phi, "features", N_k, "up to kv_len = {kv_len}, for more outgrow the keys", **given)
            for given in ({"mask": "full"}, {"mask": "causal", "carry": False})
        ),
        SAME_LENGTHS,
    ),
    approximates="attention with r positive random features of Q and K in place of exp(q k)",
    masks=("full", "causal"),
    published=(
        Published(
            (N_q + N_k) * (d + d_v) + r_phi * (d + d_v + 1) * (1 + ceiling(N_q / B_r)),
            "by hand: every operand once; the random rows and the sums once for the keys and once in each query tile",
        ),
    ),
)
