"""Sparse Transformer (Child, Gray, Radford and Sutskever 2019, arXiv:1904.10509): one factor of factorised attention.

Sections 4.2 and 4.3. Query i sees the keys A_i; with i and j counted from 0 and j <= i, these are

* strided, first: i - l <= j; strided, second: (i - j) mod l = 0;
* fixed, first: floor(j / l) = floor(i / l); fixed, second: j mod l >= l - c.

Each is FlashAttention-2 (arXiv:2307.08691) on the visible keys: in a window, on every l-th position, in a section, or
over the c summary positions of each section. The layers of a network alternate between the first and the second.
"""

from collections.abc import Iterator

from sympy import Mul, ceiling, floor

from iomodel.algorithms._streaming import chunks, flash, streamed
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.language import Axis, Cut, Hold, Kernel, Load, Loop, Piece, Store, Tensor
from iomodel.nests.symbols import ONE, B_r, N_k, N_q, W_l, c_s, d, d_v, l_s
from iomodel.nests.tensors import K, O, Q, V, depth, key, query, value

place = Axis("place", l_s)
"""The positions of a section."""
summary = Axis("summary", c_s)
"""The positions of a section visible to all later ones."""

Q_section = Tensor("Q", (query, place, depth), inside=True)
K_summary = Tensor("K", (key, summary, depth), per="kv_head", inside=True)
V_summary = Tensor("V", (key, summary, value), per="kv_head", inside=True)
O_section = Tensor("O", (query, place, value), inside=True)
S_section = Tensor("S", (place, summary))
l_section = Tensor("l", (place,), "fp32")
m_section = Tensor("m", (place,), "fp32")


def declare(fixed: bool, second: bool) -> Iterator[Kernel]:
    """Declare the factor of one layer."""
    if fixed and second:
        yield _summaries()
    elif fixed:
        yield Kernel("each section", [Cut(chunks(l_s, "causal"), [flash()])])
    elif second:
        yield Kernel("every l-th position", [Cut(_residues(), [flash()])])
    else:
        yield Kernel("the last l positions", [Cut([Piece(ONE, {N_k: N_q, W_l: l_s}, "window")], [flash()])])


def _residues() -> list[Piece]:
    """Split positions by their remainder modulo l; some remainders have one more position than the others."""
    least, most = floor(N_q / l_s), ceiling(N_q / l_s)
    longer = N_q - l_s * least
    return [Piece(longer, {N_q: most, N_k: most}, "causal"), Piece(l_s - longer, {N_q: least, N_k: least}, "causal")]


def _summaries() -> Kernel:
    """Split into whole sections of queries and keys, causal among themselves: a section sees all summaries so far."""
    sections = N_q / l_s
    return Kernel("summaries of sections", [
        Cut([Piece(ONE, {N_q: sections, N_k: sections}, "causal")], [
            Loop(query, ONE, [
                Loop(place, B_r, [
                    Hold(O_section, "fp32"), Hold(l_section), Hold(m_section), Load(Q_section),
                    Loop(key, ONE, masked=True, body=streamed(
                        place, summary, S_section, [Load(K_summary), Load(V_summary)],
                    )),
                    Store(O_section),
                ]),
            ]),
        ]),
    ], keeps=(Q, K, V, O))  # fmt: skip


_T = N_q / l_s

ALGORITHM = Algorithm(
    name="sparse_transformer",
    title="Sparse Transformer",
    cite="Child, Gray, Radford and Sutskever, Generating Long Sequences with Sparse Transformers, arXiv:1904.10509 "
    "(2019), sections 4.2 and 4.3",
    declare=declare,
    options={"stride": 128, "summary": 8, "fixed": False, "second": False},
    requires=(
        Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for a position sees positions of its own sequence"),
        Requirement.at_most(l_s, "stride", N_q, "up to q_len = {q_len}"),
        Requirement.at_most(
            c_s, "summary", l_s, "up to stride = {stride}, the positions of a section", fixed=True, second=True
        ),
        Requirement.multiple(
            "q_len",
            N_q,
            l_s,
            "a multiple of stride = {stride}, for the second fixed factor has whole sections only",
            fixed=True,
            second=True,
        ),
    ),
    approximates="attention to one of two sparse sets of positions; layers take turns between the two",
    masks=("causal",),
    published=(
        Published(
            N_q * (d + d_v) + Mul(ceiling(l_s / B_r), c_s, d + d_v) * _T * (_T + 1) / 2,
            "by hand: Q and O once; each tile of a section reads the summaries of its section and of all before",
            options={"fixed": True, "second": True},
        ),
    ),
)
