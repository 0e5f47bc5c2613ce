r"""Lower bounds on HBM accesses, each for a class of algorithms, each proved here or in the paper that is cited.

Notation: A visible (query, key) pairs over all batches and heads, widths d and d_v, M elements of on-chip memory.

**compulsory** (every algorithm): each query and key row that takes part is read, each output row is written.

**exact** (class "exact": softmax(Q K^T) V with classical products, each product q_it k_jt formed once; S may spill):

.. math:: \frac{A d^2}{M + \sqrt 3\, d \sqrt M} - M

*Proof.* Cut the run into phases of M accesses. At most 2M elements of Q and K are at hand in a phase: M from its start
and M read. Pairs (i, j) with all d products in the phase need a whole rows of Q and c whole rows of K with
(a + c) d <= 2M, so there are at most (M / d)^2 and they hold M^2 / d products. Any other active pair has a partial sum
that crosses the start or the end of the phase (at most M each) or is moved (at most M): 3M pairs, hence by Loomis and
Whitney at most sqrt(|Q| |K| |S|) <= M sqrt(3M) products. A d products in all need at least
A d / (M^2 / d + M sqrt(3M)) - 1 full phases.

**row-atomic** (class "row-atomic": rows of Q, K, V and O move whole, in any order):

.. math:: A \left( \frac{d^2}{M - d} + \frac{d_v^2}{M - d_v} \right)

*Proof.* The pair (q_i, k_j) must be on chip together. Every such meeting begins with the load of one of the two, when
at most M / d - 1 other rows are there; so there are at least A / (M / d - 1) loads of d elements. Likewise for
(v_j, o_i): a meeting begins with a load, or with the creation of o_i, whose final store is then to be counted.

**fixed-split** (class "fixed-split": as before, and the part of M that Q and K may use never changes):

.. math:: \frac{A (d + d_v)^2}{M}

*Proof.* With m_1 + m_2 <= M for (Q, K) and (V, O) the meetings cost at least A (d^2 / m_1 + d_v^2 / m_2), least at
m_1 : m_2 = d : d_v by Cauchy and Schwarz.

Asymptotically tight bounds without constants: Saha and Ye 2024 (arXiv:2402.07443) prove d^2 N^2 / M optimal for
M >= d^2. The exact bound has that order, and N^2 d / sqrt(M) below d^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import Any

from sympy import Expr, Integer, Symbol, sqrt

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.coverage import View
from iomodel.expressions import kind_of
from iomodel.masks import MaskKind, Tiled
from iomodel.symbols import B, H, H_kv, M, N_k, N_q, d, d_v, e, e_kv
from iomodel.tally import Formulas, compile_formulas
from iomodel.tensors import key, query
from iomodel.validation import as_integer
from iomodel.workload import Attention, VarlenAttention, as_call

A = Symbol("A", integer=True, nonnegative=True)
"""Visible (query, key) pairs over all batches and heads."""

FORMULAS: dict[str, Expr] = {
    "exact": A * d**2 / (M + sqrt(3) * d * sqrt(M)) - M,
    "row-atomic": A * (d**2 / (M - d) + d_v**2 / (M - d_v)),
    "fixed-split": A * (d + d_v) ** 2 / M,
}
"""The bound of every class [elements]; proofs in the text of this module."""


@dataclass(frozen=True)
class Bound:
    """No algorithm of the class moves fewer elements, or bytes."""

    name: str
    elements: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {"name": self.name, "elements": self.elements, "bytes": self.bytes}


@lru_cache(maxsize=256)
def counts_of(mask: MaskKind, direction: str, latent: bool) -> Formulas:
    """Compulsory elements, compulsory bytes and visible pairs, compiled for a kind of call."""
    view = View(mask)
    one, other = Tiled(N_q), Tiled(N_k)
    seeing = H * view.visits(query, one, key, other).live_outer_rows
    seen = H_kv * view.visits(key, other, query, one).live_outer_rows
    inputs, outputs = seeing * d, Integer(0)
    if direction != "forward":
        inputs += seeing * d_v
        outputs += H * N_q * d + H_kv * N_k * (d + d_v)
    if direction != "backward":
        outputs += H * N_q * d_v
    keys = seen * (d if latent else d + d_v)
    sizes = [B * (inputs + outputs + keys), B * (e * (inputs + outputs) + e_kv * keys)]
    return compile_formulas([*sizes, B * H * view.visible_pairs], (), ())


def lower_bounds(algorithm: str, workload: Attention | VarlenAttention, sram_elements: int) -> dict[str, Bound]:
    """Every bound that holds for this algorithm, by name; those of other classes are left out.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`; its declaration names its classes.
    workload : Attention
        The attention call.
    sram_elements : int
        On-chip memory M [elements].

    Returns
    -------
    dict of str to Bound
        ``compulsory`` always; others where the algorithm is in the class and M is large enough for the proof. Of one
        that approximates attention it is the output alone.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> bounds = iomodel.lower_bounds("flash2", w, sram_elements=51200)
    >>> bounds["compulsory"].elements, bounds["fixed-split"].elements  # 4 N d and 4 N^2 d^2 / M
    (1048576, 5368710)
    """
    size = as_integer("sram_elements", sram_elements)
    call = as_call(workload)
    kind = kind_of(call)
    formulas = counts_of(kind.mask, kind.direction, call.latent)
    each = [call] if isinstance(call, Attention) else call.sequences
    if find_algorithm(algorithm).approximates:  # it may leave out inputs, but it writes its output
        written = sum(one.batch * one.heads * one.q_len * one.value_dim for one in each)
        return {"compulsory": Bound("compulsory", written, written * call.element_size)}
    rows = [formulas.scalars(sequence, (), ()) for sequence in each]
    compulsory, compulsory_bytes, pairs = map(sum, zip(*rows, strict=True))
    found = {"compulsory": Bound("compulsory", compulsory, compulsory_bytes)}
    narrowest = min(call.element_size, call.kv_element_size)
    for name in sorted(classes_of(algorithm, call)):
        value = VALUES[name](pairs, call.head_dim, call.value_dim, size)
        if value is not None and value > 0:
            found[name] = Bound(name, value, value * narrowest)
    return found


def classes_of(algorithm: str, call: Attention | VarlenAttention) -> frozenset[str]:
    """The classes whose proofs hold: all are of forward passes, two of K and V that are apart."""
    classes = find_algorithm(algorithm).classes
    if call.direction != "forward":
        return frozenset()
    return classes & {"exact"} if call.latent else classes


def best_bound(algorithm: str, workload: Attention | VarlenAttention, sram_elements: int) -> Bound:
    """The largest of the bounds that hold."""
    return max(lower_bounds(algorithm, workload, sram_elements).values(), key=lambda bound: bound.bytes)


def _exact(pairs: int, width: int, _value_width: int, size: int) -> int:
    root = isqrt(3 * size * width**2 - 1) + 1  # rounded up, so that the bound is rounded down
    return pairs * width**2 // (size + root) - size


def _row_atomic(pairs: int, width: int, value_width: int, size: int) -> int | None:
    if size <= max(width, value_width):
        return None
    return _ceil(pairs * width**2, size - width) + pairs * value_width**2 // (size - value_width)


def _fixed_split(pairs: int, width: int, value_width: int, size: int) -> int:
    return _ceil(pairs * (width + value_width) ** 2, size)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


VALUES = {"exact": _exact, "row-atomic": _row_atomic, "fixed-split": _fixed_split}
