"""Kernels of matrix products and of elementwise steps whose operands and results lie in HBM."""

from collections.abc import Sequence
from typing import NamedTuple

from sympy import Expr

from iomodel.nests.language import Axis, Hold, Kernel, Load, Loop, MatMul, Statement, Store, Tensor
from iomodel.nests.symbols import ONE, m_1, m_2, m_3, m_4, m_5, m_6, n_1, n_2, n_3, n_4, n_5, n_6
from iomodel.nests.tensors import K, O, P, P_drop, Q, S, V, depth, dK, dO, dP, dP_drop, dQ, dS, dV, key, query, value


class TiledProduct(NamedTuple):
    """The product C = A B with C over (m, n) and A, B sharing the axis k, in tiles of m_tile x n_tile."""

    title: str
    result: Tensor
    operands: tuple[Tensor, Tensor]
    m: Axis
    n: Axis
    k: Axis
    m_tile: Expr
    n_tile: Expr


def gemm(
    product: TiledProduct,
    tiled: bool,
    done: Sequence[Statement] | None = None,
    each: Sequence[Statement] = (),
    loads: Sequence[Statement] | None = None,
    masked: bool = False,
) -> Kernel:
    """Declare the kernel of a product; `each` applies to loaded operands, `done` to the result.

    `loads` stand in place of the loads of the operands. A `masked` tile streams what the rows of its result see.
    """
    done = [Store(product.result)] if done is None else done
    loads = [Load(operand) for operand in product.operands] if loads is None else loads
    inner = [*loads, *each, MatMul(product.m, product.n, product.k)]
    if not tiled:
        return Kernel(product.title, [Hold(product.result, "fp32"), *inner, *done])
    tile = [Hold(product.result, "fp32"), Loop(product.k, ONE, inner, masked), *done]
    return Kernel(product.title, [Loop(product.m, product.m_tile, [Loop(product.n, product.n_tile, tile)])])


SCORES = TiledProduct("S = Q K^T", S, (Q, K), query, key, depth, m_1, n_1)
OUTPUT = TiledProduct("O = P V", O, (P, V), query, value, key, m_2, n_2)
DROPPED_OUTPUT = OUTPUT._replace(title="O = P_drop V", operands=(P_drop, V))
BACKWARD = (
    TiledProduct("dV = P^T dO", dV, (P, dO), key, value, query, m_3, n_3),
    TiledProduct("dP = dO V^T", dP, (dO, V), query, key, value, m_4, n_4),
    TiledProduct("dQ = dS K", dQ, (dS, K), query, depth, key, m_5, n_5),
    TiledProduct("dK = dS^T Q", dK, (dS, Q), key, depth, query, m_6, n_6),
)
DROPPED_BACKWARD = (
    BACKWARD[0]._replace(title="dV = P_drop^T dO", operands=(P_drop, dO)),
    BACKWARD[1]._replace(title="dP_drop = dO V^T", result=dP_drop),
    *BACKWARD[2:],
)


def elementwise(title: str, body: Sequence[Statement], by_rows: bool = True) -> Kernel:
    """Declare a kernel over rows of queries, one by one or all at once."""
    return Kernel(title, [Loop(query, ONE, body)] if by_rows else body)
