r"""Lower bounds on HBM accesses, each for a class of algorithms, each proved here or in the paper that is cited.

Notation: A visible (query, key) pairs over all batches and heads, widths d and d_v, M elements of on-chip memory.

**compulsory** (every algorithm): each query and key row that takes part is read, each output row is written.

**exact** (class "exact": softmax(Q K^T) V with classical products q_it k_jt and w_ij v_ju, each formed once, in any
order and any association; the share of M for each operand may vary in time, partial sums may spill). With
P = (d + d_v)^2, and for any integer Y >= 1:

.. math:: \frac{A P}{C}, \quad C = \max\Bigl(\frac{\max(G, Y^2 / 4 + P M / 2)}{Y}, \frac P 4\Bigr), \quad
    G = Y M \text{ if } Y \le M, \text{ else } (Y + M)^2 / 4

The best Y gives A (d + d_v)^2 / M for M >= 2 P / 3, the leading term of FlashAttention-2. *Proof.* Query i has the D =
d + d_v indices of its rows of Q and O, key j those of K and V. An index is present while the chip holds it, or a
partial sum of it. An arrival is a change from absent to present. Each stay of an index has an access of its own: the
load with which it begins, or, of a sum that begins with a product, the store before it ends. So the arrivals and the
accesses to scores are no more than the accesses. Cut the run before arrivals, so that every phase but the first has Y
of them. Count the pairs of an index of a query and one of a key that are ever in one phase together. A visible pair
whose products fall into c + 1 phases has at least P / (c + 1), as x of its products in a phase have x indices on either
side that no other product has. Before each of these phases but the first a value of it is on chip, where it takes one
of the M places (sigma pairs at that cut), or none is, r times: its values then take r + 1 accesses at least, r loads
and a store. So it lacks at most P / 2 for each time on chip and P / 4 for each access. A phase adds at most n_q n_k +
n_q r_k + n_k r_q pairs of indices, with n_q + n_k <= Y arrivals and r_q + r_k <= M - sigma present at the cut: at most
Y m, or (Y + m)^2 / 4 for m = M - sigma < Y. Over all phases these and what pairs lack make up A P; the terms are convex
in sigma, so largest at sigma = 0 or M.

*Scores formed again* (classes "recomputed" and "recomputed-backward"). The bound holds with another P where scores may
be formed any number of times. Drop what never reaches the output; stays then have accesses of their own as before. Call
a pair pure if no value of it passes a cut or is loaded. In the phase of each product w_ij v_ju of a pure pair, s_ij is
formed from nothing, so that query i and o_iu are there with key j and v_ju. The pairs of an index of i and one of j
that are ever in one phase together are thus d^2 of Q and K, d d_v of Q and V, d d_v of O and K, and the d_v pairs
(o_iu, v_ju): P = d^2 + 2 d d_v + d_v, and d (d + d_v) where V is a part of K, as for products formed once. Other pairs
lack all of it, P for a time on chip and P / 2 for an access. Backward, dQ, dK and dV take the place of O, each with all
that makes dS_ij or P_ij anew: P = (d + d_v)(3 d + d_v) + (d + 1) d_v, which is 9 d^2 + d for d_v = d.

*Bytes.* Let an element take e bytes in HBM in Q and O, e' in K and V, at least w = min(e, e') in S, and no less on
chip. Weigh indices with their bytes: the proof holds with all three terms of P times e e', a memory of M bytes, and M /
w places for scores. Arrivals weigh more than Y - max(e, e') in all phases but the first, and the three terms of C are
taken at both ends of this range. For large M: A P e e' / M bytes, where the bound in elements, times w, gives A P w^2 /
M.

The same proof holds where V is a part of K, with P = d (d + d_v), of which a divided pair lacks (2 d + d_v)^2 / 8 for a
time on chip and P / 3 for an access, and backward (class "exact-backward": S is formed once) with P = (2 d + d_v)(2 d +
2 d_v), as Q, dO, dQ belong to a query and K, V, dK, dV to a key, and P / 3 and P / 4 for d_v <= d (`docs/paper.md`,
divided products); a load of each element of O, of which D is made, comes on top, as it does on top of the compulsory
traffic.

*Outputs that stay* (class "exact"): where L rows see keys of T elements each, key units have D' indices (D, or d where
V is a part of K), kappa = T - M - Y and phi = M / (2 kappa) < 1, also

.. math:: \frac{A P}{M} + \frac12 \Bigl(1 - \frac Y M\Bigr)^2 d_v L, \quad
    Y \Bigl(1 - \frac Y M\Bigr)(1 - \varphi) \ge \frac P 2 + \varphi D' d_v

accesses are needed. *Proof idea.* An arrival that meets other rows of queries in place of keys loses what the theorem
grants it. An output that stays until it is complete shares the chip with u other query indices, which is u / 2 lost,
and its keys arrive beside them, M - u lost for each of u: M / 2 at least. One that leaves pays two accesses more
(`docs/paper.md`, Theorem 9).

*Gradients that return* (class "exact-backward"). With R the elements of dQ, dK, dV less those of O, of which D is made,
and C = C(P, M) from above

.. math:: \frac{A P'}{C(P', M + 1)} - R, \quad P' = (2 d + d_v)(2 d + 2 d_v) + d (d + d_v)

accesses are needed too: 14 d^2 in place of 12 d^2 for d_v = d; for d_v <= d a divided pair lacks 2 d^2 + 3 d d_v for a
time on chip and P' / 4 for an access. *Proof.* A sum that leaves and returns pays a store and
a load. Drop the stays of a sum in which no product is added to it. A sum with n stays left has 2 n - 1 accesses at
least: each of its stays stores a value with its products (one of them the result), and each value but the result is
loaded in another stay. So an arrival may weigh 1 for an input and 2 for a sum: these weights, the accesses to scores
and a load of each element of O are no more than the accesses and the elements of the gradients. Let layer 1 hold all
indices and layer 2 the sums once more; a sum arrives in layer 1, then in layer 2. Cut the run, from its end, into
phases of Y arrivals in layers; where a cut divides an arrival, its half in layer 1 belongs to the phase before. At a
cut layer 1 then has at most M + 1 - sigma indices, as an index may arrive in a place that its operand leaves, and layer
2 none that layer 1 lacks. Count the pairs of indices in layer 1 as above and those in
layer 2: P' for a contained pair. With n', r' for layer 2, r' <= r, a phase adds at most N_q N_k + N_q r_k + N_k r_q for
N = n + n', and N_q + N_k <= Y. The rest is as above.

*From an empty chip* (all of these, for M at least 4/3 of what a pair lacks for a time on chip and 8/3 of that for an
access). A group of heads that share keys, of A_g pairs with A_g P >= 9 M^2 / 16, needs 15 M / 16 accesses more.
*Proof.* What a schedule does to the values of one group is a schedule of that group on M places, so the groups add up.
Take Y = M, and let the first phase have y arrivals, 3 M / 2 < y <= 5 M / 2. The chip is empty before it, so it adds at
most y^2 / 4 <= y M - 15 M^2 / 16. A run of fewer than 3 M / 2 arrivals has one phase, in which A_g P <= a^2 / 4 < 9 M^2
/ 16 (`docs/paper.md`, Theorem 7).

*Small memories* (class "exact"): also

.. math:: \frac{2 A (d + d_v)}{\sqrt M} - A - 2 M

accesses are needed, more than above for M < 0.34 P and 4 A d / sqrt M for small M and d_v = d. *Proof.* Call it a
creation when a product is formed that adds to s_ij, or to o_iu, while no value of that pair, or no sum of that o_iu, is
on chip. Between two creations of the same pair one of its values is stored, since its sum is not yet complete; between
two creations of an output, and after the last, a sum of it is stored. So creations are no more than stores and A, and
loads and creations no more than accesses and A. Cut the run into phases of 2 M loads and creations. The q, k, v, o, s
elements of Q, K, V, O and pairs that take part in products of a phase are on chip at its start, loaded, or created in
it: 3 M at most. By Loomis and Whitney it forms at most

.. math:: \sqrt{q k s} + \sqrt{s v o} \le \tfrac12 \sqrt s\, (q + k + v + o)
    \le \tfrac12 \sqrt s\, (3 M - s) \le M \sqrt M

products, and all A (d + d_v) need that many phases, all of them full but one. Where V is a part of K, v <= k and
sqrt(q k s) + sqrt(s k o) <= sqrt(2 s k (q + o)) <= sqrt(2) M sqrt(M), so that the first term is divided by sqrt(2). A
pair is in both products in one phase at most, though, as its products with K precede those with V. With b such pairs a
phase forms at most sqrt(k (q + o)(s + b)) <= M sqrt(M) + 21/40 sqrt(M) b products, and all b sum to A: the first term
stays as it is, and A becomes 2.05 A.
With elements of e bytes in Q and O, e' in K and V and at least w = min(e, e') in S, weigh loads and creations with
their bytes: a phase of M bytes, twice, forms M sqrt(M / (w e e')) products at most, phases but one weigh more than
2 M - max(e, e'), and A w is taken off. The schedule of :mod:`two_products <iomodel.algorithms.two_products>` attains
the constant.

Backward (class "exact-backward") at least

.. math:: \frac{A (3 \sqrt 3\, d + 4 d_v)}{\sqrt M} - 4.44 A - 2 M

accesses and those loads of O are needed: the same with five products, of which q k, dS k and dS q share operands, and a
phase forms at most 2 / sqrt(3) times as many of them (`docs/paper.md`, Theorem 10).

**row-atomic** (class "row-atomic": rows of Q, K, V and O move whole, in any order):

.. math:: A \left( \frac{d^2}{M - d} + \frac{d_v^2}{M - d_v} \right)

*Proof.* The pair (q_i, k_j) must be on chip together. Every such meeting begins with the load of one of the two, when
at most M / d - 1 other rows are there; so there are at least A / (M / d - 1) loads of d elements. Likewise for
(v_j, o_i): a meeting begins with a load, or with the creation of o_i, whose final store is then to be counted.

**row-atomic-backward** (class "row-atomic-backward": rows of Q, dO, dQ, K, V, dK, dV move whole, and a pair is taken
while its seven rows are on chip), for d_v = d:

.. math:: \frac{16 A d^2}{M} - R

accesses; for other widths 2 (3 d + d_v)(d + d_v) - max(0, d - d_v) d_v in place of 16 d^2, and M + max(0, d_v - d) / 2
in place of M. *Proof.* For each row of the query and each of the key let the later one to arrive pay one, a sum two: 16
for a pair whose key is there first. One less is paid where K (or V) arrives after dQ, though then dK (or dV) arrives
before Q (or dO), else that pays one more. Of two pairs that share such an arrival, one has rows on chip when the other
arrives, on the side of the arrival, whose room is wasted; a count of ranks shows that this makes up for what is not
paid (`docs/paper.md`, Theorem 8). FlashAttention-2 attains it to leading order.

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

M counts every cell on chip that holds operands, scores or sums: on a GPU shared memory, tensor memory and registers.

*Several processors*, each with a memory of M: apply a proof to each, with the products that it forms, and add. Bounds
in proportion to the products keep their value; a term that a proof subtracts once is subtracted for each processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.deprecation import warn_renamed
from iomodel.common.keywords import strict
from iomodel.common.results import Record
from iomodel.common.validation import as_integer
from iomodel.counting.bound_values import (
    ANY_SCHEDULE,
    FORMED_ONCE,
    HOLDS_FOR,
    VALUES,
    Pairs,
    bound_bytes_of,
    classes_of,
)
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.kinds import FormulaKind, check_answers, check_kind, kind_of
from iomodel.counting.mask_kind import MaskKind
from iomodel.counting.options import check_options, structural
from iomodel.counting.store import obtain
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import KV_QUARTERS, Call, halves
from iomodel.workloads.linear import Linear
from iomodel.workloads.varlen import VarlenAttention, as_call
from iomodel.workloads.workload import Workload, as_workload


@dataclass(frozen=True)
class Bound(Record):
    """A lower bound on the traffic of every algorithm of a class, in elements and bytes."""

    derived = ("holds_for",)

    name: str
    elements: int
    bytes: int

    @property
    def holds_for(self) -> str:
        """The schedules that the bound holds for, in words."""
        return HOLDS_FOR[self.name]


@lru_cache(maxsize=256)
def counts_of(mask: MaskKind, direction: str, latent: bool) -> Formulas:
    """Return compulsory elements and bytes, visible pairs, gradients less O and O [elements], compiled for a call."""

    def build() -> Formulas:
        from iomodel.counting.bound_formulas import compiled_counts

        return compiled_counts(mask, direction, latent)

    return obtain("_bounds", "counts", (FormulaKind(mask, direction), latent), build)


def _memory(
    call: Workload, hardware: Hardware | str | None, sram_elements: int | None, sram_bytes: int | str | None
) -> tuple[int, int | None]:
    """Return the on-chip memory [elements], 0 if none is given, and [B] where it is in bytes; refuse several."""
    sources = [value for value in (hardware, sram_elements, sram_bytes) if value is not None]
    if len(sources) > 1:
        raise InputError(
            f"hardware, sram_elements, sram_bytes: {len(sources)} values given; allowed: at most one, such as "
            "'h100-sxm5'"
        )
    if not sources:
        return 0, None
    if sram_elements is not None:
        return as_integer("sram_elements", sram_elements), None
    given = sram_bytes if hardware is None else as_device(hardware).on_chip_per_block
    size = as_integer("sram_bytes", given)
    return max(1, 32 * size // call.narrowest), size


@strict
def lower_bounds(
    workload: Workload,
    hardware: Hardware | str | None = None,
    sram_elements: int | None = None,
    *,
    algorithm: AlgorithmLike | None = None,
    sram_bytes: int | str | None = None,
    units: int = 1,
) -> dict[str, Bound]:
    """Compute every bound that applies to a call, by name; those of other classes are omitted.

    Parameters
    ----------
    workload : Attention, VarlenAttention or Linear
        The workload.
    hardware : Hardware or str, optional
        A device, of which one thread block may hold the shared memory, the registers and the accumulators of an SM.
    algorithm : str or Algorithm, optional
        One of :func:`iomodel.list_algorithms`; its declaration names its classes. Without one the bounds hold for
        every schedule that forms each product once.
    sram_elements : int, optional
        On-chip memory M [elements]: all cells that hold operands, scores or sums, registers among them.
    sram_bytes : int, optional
        The memory in bytes, in place of `sram_elements`. An element takes no less on chip than in HBM, which makes the
        bounds in bytes larger where K and V have a width of their own.
    units : int
        The number of processors that share the work, each with a memory of its own of this size: the bounds are on
        their traffic together. Only the bound of a product, `exact` and `exact-backward` for small M depend on it.

    Returns
    -------
    dict of str to Bound
        ``compulsory`` always, and alone where no memory is given; others where the algorithm is in the class and M is
        large enough for the proof; the `holds_for` of each names the class in words. For an approximation of attention
        only the output is a bound.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> bounds = iomodel.lower_bounds(w, algorithm="flash2", sram_elements=51200)
    >>> bounds["compulsory"].elements, bounds["fixed-split"].elements  # 4 N d and 4 N^2 d^2 / M
    (1048576, 5368710)
    >>> iomodel.lower_bounds(w, sram_elements=51200)["exact"].elements
    5445765
    >>> list(iomodel.lower_bounds(w))
    ['compulsory']
    """
    first: Any = workload
    second: Any = hardware
    if algorithm is None and isinstance(second, Workload) and not isinstance(first, Workload):
        warn_renamed("lower_bounds(algorithm, workload)", "iomodel.lower_bounds(workload, algorithm=...)")
        workload, hardware, algorithm = second, None, first
    call = as_workload(workload)
    if algorithm is None and isinstance(call, Linear):
        algorithm = "gemm"
    if algorithm is None and not isinstance(call, Call):
        raise InputError(f"algorithm: none given for {shown(call)}; allowed: one, unless for attention or a Linear")
    declaration = None if algorithm is None else find_algorithm(algorithm)
    (size, in_bytes), kind = _memory(call, hardware, sram_elements, sram_bytes), kind_of(call)
    units = as_integer("units", units)
    if declaration is not None:
        check_answers(declaration, kind.operation)
    if not isinstance(call, Call):
        assert declaration is not None
        return _of_shape(declaration, call, size, units)
    call = as_call(call)
    compulsory, numbers = _of_call(declaration, call)
    bounds = {"compulsory": compulsory}
    if not size or (declaration is not None and declaration.approximates):
        return bounds
    counted = Pairs(*numbers, units)
    # Of a cache of two types the proofs hold with the smaller, not with the mean.
    widths = 32 * call.element_size, min(KV_QUARTERS[half] for half in halves(call.kv_dtype))
    classes = FORMED_ONCE if declaration is None else declaration.classes
    for name in classes_of(classes, call.direction, call.latent):
        value = VALUES[name](counted, size)
        if value is not None and value > 0:
            bounds[name] = Bound(name, value, bound_bytes_of(name, counted, value, widths, in_bytes))
    return bounds


Numbers = tuple[int, int, int, int, int, int, tuple[tuple[int, int], ...], int, int, int]
"""The fields of :class:`Pairs` but for the number of processors."""


def _of_call(declaration: Algorithm | None, call: Attention | VarlenAttention) -> tuple[Bound, Numbers]:
    """Return the compulsory traffic of a call and the numbers of its visible pairs; an approximation has no pairs."""
    if declaration is not None and declaration.approximates:  # it may skip inputs but writes its output
        calls = [call] if isinstance(call, Attention) else call.sequences
        written = sum(single.batch * single.heads * single.q_len * single.value_dim for single in calls)
        return Bound("compulsory", written, written * call.element_size), (0, call.head_dim, *(0,) * 4, (), *(0,) * 3)
    # Neither tiles nor exact algorithms change it.
    known: tuple[Bound, Numbers] | None = call.memo.get("compulsory")
    if known is None:
        known = call.memo["compulsory"] = _counted(call)
    return known


def _counted(call: Attention | VarlenAttention) -> tuple[Bound, Numbers]:
    calls, kind = [call] if isinstance(call, Attention) else call.sequences, kind_of(call)
    formulas = counts_of(kind.mask, kind.direction, call.latent)
    sizes = [formulas.scalars(sequence, (), ()) for sequence in calls]
    elements, size, pairs, gradients, read = map(sum, zip(*sizes, strict=True))
    heads = calls[0].batch * calls[0].kv_heads
    each = sorted(-one[2] // heads for one in sizes)
    groups = tuple((heads * number, pairs) for number, pairs in enumerate(each, 1))
    rows = [single.batch * single.heads * single.q_len for single in calls]
    full = pairs == sum(number * single.kv_len for number, single in zip(rows, calls, strict=True))
    widths = call.head_dim, 0 if call.latent else call.value_dim, call.value_dim
    least_keys = min(single.kv_len for single in calls)
    return Bound("compulsory", elements, size), (
        pairs, *widths, gradients, read, groups, sum(rows) if full else 0, least_keys, elements,
    )  # fmt: skip


def visible_pairs(workload: Workload) -> int | None:
    """Count the pairs of a query and a key that it sees, over all batches and heads [-]; None but for attention.

    >>> visible_pairs(Attention(heads=2, q_len=4, head_dim=64, mask="causal"))
    20
    """
    return _of_call(None, as_call(workload))[1][0] if isinstance(workload, Call) else None


def compulsory(algorithm: AlgorithmLike, workload: Workload) -> Bound:
    """Return the bound that every algorithm meets, without those that depend on the memory."""
    declaration = find_algorithm(algorithm)
    if isinstance(workload, Call):
        return _of_call(declaration, as_call(workload))[0]
    return _least_of_shape(declaration, workload)


def divided_keys(call: Attention, processors: int) -> Bound:
    """Return the least traffic of busy processors of which each takes a key of a group for all of its rows.

    Every one of u processors that work on a group of r rows reads the r queries and stores a partial sum of each of the
    r d_v outputs, one of them the result; each of the others is loaded by another one: 2 u - 1 accesses an output, so
    that each processor beyond one a group costs r d + 2 r d_v accesses on top of what every algorithm moves.

    Parameters
    ----------
    call : Attention
        A forward pass in which all rows of a group see the same keys: of one query, or without a mask.
    processors : int
        The number of busy processors; those beyond one for each key of each group have nothing to take.

    Examples
    --------
    >>> call = Attention(heads=32, kv_heads=8, q_len=1, kv_len=131072, head_dim=128, mask="causal")
    >>> [divided_keys(call, processors).elements for processors in (8, 128)]  # 120 more of 4 x 128 x 3 elements
    [268443648, 268627968]
    """
    least, groups, rows = _of_call(None, call)[0], call.batch * call.kv_heads, call.group * call.q_len
    more = max(0, min(processors, groups * call.kv_len) - groups) * rows * (call.head_dim + 2 * call.value_dim)
    return Bound("divided-keys", least.elements + more, least.bytes + more * call.element_size)


def best_bound(algorithm: AlgorithmLike, workload: Workload, **memory: Any) -> Bound:
    """Return the largest bound that holds, in ``sram_elements=`` or ``sram_bytes=``."""
    return largest_bounds(algorithm, workload, **memory)[0]


def largest_bounds(algorithm: AlgorithmLike, workload: Workload, **memory: Any) -> tuple[Bound, Bound]:
    """Return the largest bound that holds, and the largest for every schedule of the products that it forms."""
    bounds = lower_bounds(workload, algorithm=algorithm, **memory)
    general = [bound for name, bound in bounds.items() if name in ANY_SCHEDULE]
    best, any_schedule = (max(each, key=lambda bound: bound.bytes) for each in (bounds.values(), general))
    return best, any_schedule


def _of_shape(declaration: Algorithm, workload: Workload, size: int, units: int) -> dict[str, Bound]:
    """Return the bounds of a workload other than attention: the compulsory traffic and the bound of a product."""
    bounds = {"compulsory": _least_of_shape(declaration, workload)}
    if size and "product" in declaration.classes and isinstance(workload, Linear):
        products = workload.flops // 2
        pairs = workload.groups * workload.rows * workload.out_features if workload.gated else 0
        value = isqrt(4 * products**2 // size) - 2 * size * units - pairs
        if value > 0:
            bounds["product"] = Bound("product", value, value * workload.narrowest // 32)
    return bounds


def _least_of_shape(declaration: Algorithm, workload: Workload) -> Bound:
    formulas = compulsory_formulas(declaration, kind_of(workload))
    sizes = map(sum, zip(*(formulas.scalars(part, (), ()) for part in workload.sequences), strict=True))
    return Bound("compulsory", *sizes)


@lru_cache(maxsize=256)
def compulsory_formulas(declaration: Algorithm, kind: FormulaKind) -> Formulas:
    """Count the elements and bytes that a nest loads before any store, and those that it stores last."""
    check_kind(declaration, kind)
    options = structural(check_options(declaration, {}))

    def build() -> Formulas:
        from iomodel.counting.compile import compiled_compulsory

        return compiled_compulsory(declaration, kind, options)

    return obtain(declaration.shipped, "compulsory", (kind, options), build)
