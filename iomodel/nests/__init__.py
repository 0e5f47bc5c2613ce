"""The language for declaring algorithms: statements, axes and tensors, symbols, and the declaration itself.

An :class:`Algorithm` built from these names is accepted in place of the name of an algorithm:
``iomodel.cost(mine, workload, tiles)``. The grammar is in :mod:`iomodel.nests.language`. Every name is imported on
first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iomodel.nests.algorithm import Algorithm as Algorithm
    from iomodel.nests.algorithm import Published as Published
    from iomodel.nests.algorithm import Requirement as Requirement
    from iomodel.nests.alphabet import ALPHABET as ALPHABET
    from iomodel.nests.alphabet import Entry as Entry
    from iomodel.nests.execution import Execution as Execution
    from iomodel.nests.implementation import Implementation as Implementation
    from iomodel.nests.language import Accumulate as Accumulate
    from iomodel.nests.language import Axis as Axis
    from iomodel.nests.language import Cut as Cut
    from iomodel.nests.language import Drop as Drop
    from iomodel.nests.language import Exp as Exp
    from iomodel.nests.language import Fill as Fill
    from iomodel.nests.language import Hold as Hold
    from iomodel.nests.language import Idle as Idle
    from iomodel.nests.language import Kernel as Kernel
    from iomodel.nests.language import Live as Live
    from iomodel.nests.language import Load as Load
    from iomodel.nests.language import Lookup as Lookup
    from iomodel.nests.language import Loop as Loop
    from iomodel.nests.language import MatMul as MatMul
    from iomodel.nests.language import Piece as Piece
    from iomodel.nests.language import Random as Random
    from iomodel.nests.language import Scores as Scores
    from iomodel.nests.language import Sight as Sight
    from iomodel.nests.language import Sink as Sink
    from iomodel.nests.language import Store as Store
    from iomodel.nests.language import Tanh as Tanh
    from iomodel.nests.language import Tensor as Tensor
    from iomodel.nests.language import When as When
    from iomodel.nests.own_symbols import symbol as symbol
    from iomodel.nests.residency import Residency as Residency
    from iomodel.nests.rules import DeclarationError as DeclarationError
    from iomodel.nests.rules import check as check
    from iomodel.nests.symbols import B as B
    from iomodel.nests.symbols import B_c as B_c
    from iomodel.nests.symbols import B_e as B_e
    from iomodel.nests.symbols import B_p as B_p
    from iomodel.nests.symbols import B_r as B_r
    from iomodel.nests.symbols import B_s as B_s
    from iomodel.nests.symbols import G as G
    from iomodel.nests.symbols import H as H
    from iomodel.nests.symbols import H_kv as H_kv
    from iomodel.nests.symbols import N_k as N_k
    from iomodel.nests.symbols import N_q as N_q
    from iomodel.nests.symbols import W_l as W_l
    from iomodel.nests.symbols import W_r as W_r
    from iomodel.nests.symbols import b_kv as b_kv
    from iomodel.nests.symbols import d as d
    from iomodel.nests.symbols import d_v as d_v
    from iomodel.nests.symbols import e as e
    from iomodel.nests.symbols import p as p
    from iomodel.nests.symbols import s as s
    from iomodel.nests.tensors import LSE as LSE
    from iomodel.nests.tensors import D as D
    from iomodel.nests.tensors import K as K
    from iomodel.nests.tensors import LSE_acc as LSE_acc
    from iomodel.nests.tensors import O as O
    from iomodel.nests.tensors import O_acc as O_acc
    from iomodel.nests.tensors import P as P
    from iomodel.nests.tensors import P_drop as P_drop
    from iomodel.nests.tensors import Q as Q
    from iomodel.nests.tensors import S as S
    from iomodel.nests.tensors import V as V
    from iomodel.nests.tensors import bias as bias
    from iomodel.nests.tensors import block_table as block_table
    from iomodel.nests.tensors import depth as depth
    from iomodel.nests.tensors import dK as dK
    from iomodel.nests.tensors import dK_acc as dK_acc
    from iomodel.nests.tensors import dO as dO
    from iomodel.nests.tensors import dP as dP
    from iomodel.nests.tensors import dQ as dQ
    from iomodel.nests.tensors import dQ_acc as dQ_acc
    from iomodel.nests.tensors import dropout_mask as dropout_mask
    from iomodel.nests.tensors import dS as dS
    from iomodel.nests.tensors import dV as dV
    from iomodel.nests.tensors import dV_acc as dV_acc
    from iomodel.nests.tensors import group as group
    from iomodel.nests.tensors import grouped as grouped
    from iomodel.nests.tensors import head as head
    from iomodel.nests.tensors import key as key
    from iomodel.nests.tensors import l as l
    from iomodel.nests.tensors import m as m
    from iomodel.nests.tensors import query as query
    from iomodel.nests.tensors import sinks as sinks
    from iomodel.nests.tensors import slopes as slopes
    from iomodel.nests.tensors import split as split
    from iomodel.nests.tensors import value as value

_PUBLIC = {
    "algorithm": ("Algorithm", "Published", "Requirement"),
    "alphabet": ("ALPHABET", "Entry"),
    "execution": ("Execution",),
    "language": (
        "Accumulate", "Axis", "Cut", "Drop", "Exp", "Fill", "Hold", "Idle", "Kernel", "Live", "Load", "Lookup", "Loop",
        "MatMul", "Piece", "Random", "Scores", "Sight", "Sink", "Store", "Tanh", "Tensor", "When",
    ),
    "own_symbols": ("symbol",),
    "implementation": ("Implementation",),
    "residency": ("Residency",),
    "rules": ("DeclarationError", "check"),
    "symbols": (
        "B", "B_c", "B_e", "B_p", "B_r", "B_s", "G", "H", "H_kv", "N_k", "N_q", "W_l", "W_r", "d",
        "b_kv", "d_v", "e", "p", "s",
    ),
    "tensors": (
        "D", "K", "LSE", "LSE_acc", "O", "O_acc", "P", "P_drop", "Q", "S", "V", "bias", "block_table", "dK", "dK_acc",
        "dO", "dP", "dQ", "dQ_acc", "dS", "dV", "dV_acc", "depth", "dropout_mask", "group", "grouped", "head", "key",
        "l", "m", "query", "sinks", "slopes", "split", "value",
    ),
}  # fmt: skip
"""The public names of each module."""
_HOMES = {name: f"{__name__}.{module}" for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a computed list


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
