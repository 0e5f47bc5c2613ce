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

**product** (class "product": a linear layer Y = X W by classical products, each formed once; sums may spill), with P
products x_ik w_kj in all:

.. math:: \frac{2 P}{\sqrt M} - 2 M

This is the bound of Smith, Lowery, Langou and van de Geijn 2019 (arXiv:1702.02017), after Hong and Kung 1981 and Irony,
Toledo and Tiskin 2004. *Proof.* Call it a creation when a product of (i, j) is formed and no sum of (i, j) is on chip.
Between two creations of the same sum, and after the last, a store of it takes it off the chip; so there are no more
creations than stores, and loads and creations are no more than accesses. Cut the run into phases of 2M loads and
creations. The elements of X and W and the sums that a phase touches are on chip at its start, loaded, or created in it:
3M at most, so that by Loomis and Whitney (and the means of the three) it forms at most M sqrt(M) products, those of
several groups together included. P products need at least P / (M sqrt(M)) - 1 full phases. Of a gated layer
P counts both products; a pair of sums leaves the chip in one store, so that T C_out accesses a group are taken off.

Asymptotically tight bounds without constants: Saha and Ye 2024 (arXiv:2402.07443) prove d^2 N^2 / M optimal for
M >= d^2. The exact bound has that order, and N^2 d / sqrt(M) below d^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.results import Record
from iomodel.common.validation import as_integer
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.kinds import FormulaKind, check_answers, kind_of
from iomodel.counting.mask_kind import MaskKind
from iomodel.counting.options import check_options, structural
from iomodel.counting.store import obtain
from iomodel.nests.algorithm import Algorithm
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.varlen import VarlenAttention, as_call
from iomodel.workloads.workload import Workload, as_workload


@dataclass(frozen=True)
class Bound(Record):
    """A lower bound on the traffic of every algorithm of a class, in elements and bytes."""

    name: str
    elements: int
    bytes: int


@lru_cache(maxsize=256)
def counts_of(mask: MaskKind, direction: str, latent: bool) -> Formulas:
    """Return compulsory elements, compulsory bytes and visible pairs, compiled for a kind of call."""

    def build() -> Formulas:
        from iomodel.counting.bound_formulas import compiled_counts

        return compiled_counts(mask, direction, latent)

    return obtain("_bounds", "counts", (FormulaKind(mask, direction), latent), build)


def lower_bounds(algorithm: AlgorithmLike, workload: Workload, sram_elements: int) -> dict[str, Bound]:
    """Compute every bound that applies to an algorithm, by name; those of other classes are omitted.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`; its declaration names its classes.
    workload : Attention, VarlenAttention or Linear
        The workload.
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
    kind = kind_of(as_workload(workload))
    check_answers(find_algorithm(algorithm), kind.operation)
    if not isinstance(workload, Call):
        return _of_shape(find_algorithm(algorithm), workload, size)
    call = as_call(workload)
    formulas = counts_of(kind.mask, kind.direction, call.latent)
    calls = [call] if isinstance(call, Attention) else call.sequences
    if find_algorithm(algorithm).approximates:  # an approximation may skip inputs but writes its output
        written = sum(single.batch * single.heads * single.q_len * single.value_dim for single in calls)
        return {"compulsory": Bound("compulsory", written, written * call.element_size)}
    rows = [formulas.scalars(sequence, (), ()) for sequence in calls]
    compulsory, compulsory_bytes, pairs = map(sum, zip(*rows, strict=True))
    bounds = {"compulsory": Bound("compulsory", compulsory, compulsory_bytes)}
    narrowest = min(call.element_size, call.kv_element_size)
    for name in sorted(classes_of(algorithm, call)):
        value = VALUES[name](pairs, call.head_dim, call.value_dim, size)
        if value is not None and value > 0:
            bounds[name] = Bound(name, value, value * narrowest)
    return bounds


def classes_of(algorithm: AlgorithmLike, call: Attention | VarlenAttention) -> frozenset[str]:
    """Return the classes whose proofs hold for a call: forward passes only, and two need separate K and V."""
    classes = find_algorithm(algorithm).classes
    if call.direction != "forward":
        return frozenset()
    return classes & {"exact"} if call.latent else classes


def best_bound(algorithm: AlgorithmLike, workload: Workload, sram_elements: int) -> Bound:
    """Return the largest bound that holds."""
    return largest_bounds(algorithm, workload, sram_elements)[0]


def largest_bounds(algorithm: AlgorithmLike, workload: Workload, sram_elements: int) -> tuple[Bound, Bound]:
    """Return the largest bound that holds, and the largest for every schedule of classical products."""
    bounds = lower_bounds(algorithm, workload, sram_elements)
    general = [bounds[name] for name in ("compulsory", "exact", "product") if name in bounds]
    best, any_schedule = (max(each, key=lambda bound: bound.bytes) for each in (bounds.values(), general))
    return best, any_schedule


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


def _of_shape(declaration: Algorithm, workload: Workload, size: int) -> dict[str, Bound]:
    """Return the bounds of a workload other than attention: the compulsory traffic and the bound of a product."""
    sizes = _compulsory(declaration, kind_of(workload)).scalars(workload.longest, (), ())
    bounds = {"compulsory": Bound("compulsory", *sizes)}
    if "product" in declaration.classes and isinstance(workload, Linear):
        products = workload.flops // 2
        pairs = workload.groups * workload.rows * workload.out_features if workload.gated else 0
        value = isqrt(4 * products**2 // size) - 2 * size - pairs
        if value > 0:
            bounds["product"] = Bound("product", value, value * workload.narrowest // 32)
    return bounds


@lru_cache(maxsize=256)
def _compulsory(declaration: Algorithm, kind: FormulaKind) -> Formulas:
    """Elements and bytes of what a nest loads before it stores it, and of what it stores for good."""
    options = structural(check_options(declaration, {}))

    def build() -> Formulas:
        from iomodel.counting.compile import compiled_compulsory

        return compiled_compulsory(declaration, kind, options)

    return obtain(declaration.shipped, "compulsory", (kind, options), build)


VALUES = {"exact": _exact, "row-atomic": _row_atomic, "fixed-split": _fixed_split}
