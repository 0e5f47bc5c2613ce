"""Linear Transformer (Katharopoulos, Vyas, Pappas and Fleuret 2020, arXiv:2006.16236): phi(x) = elu(x) + 1 for exp.

Without a mask (equation 6) the d x d_v sum of phi(K)^T V is computed once and read by every query tile. Under the
causal mask (equations 9 to 12) one block processes the sequence in chunks and keeps the sum on chip.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.algorithms._kernelised import SAME_LENGTHS, kernels
from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.language import Exp, Kernel
from iomodel.nests.symbols import B_r, N_k, N_q, d, d_v
from iomodel.nests.tensors import depth, key, query


def declare(causal: bool, carry: bool) -> Iterator[Kernel]:
    """Declare the kernels with d features, one exponential each."""
    return kernels(causal, carry, depth, of_queries=[Exp(query, depth)], of_keys=[Exp(key, depth)])


ALGORITHM = Algorithm(
    name="linear_transformer",
    title="Linear Transformer",
    cite="Katharopoulos, Vyas, Pappas and Fleuret, Transformers are RNNs: Fast Autoregressive Transformers with Linear "
    "Attention, arXiv:2006.16236 (2020), equations 6 and 9 to 12",
    declare=declare,
    options={"carry": False},
    requires=(SAME_LENGTHS,),
    approximates="attention with the kernel phi(q) phi(k), phi(x) = elu(x) + 1, in place of exp(q k)",
    masks=("full", "causal"),
    published=(
        Published(
            (N_q + N_k) * (d + d_v) + d * (d_v + 1) * (1 + ceiling(N_q / B_r)),
            "by hand: every operand once, the sum once out and once in for each query tile",
        ),
    ),
)
