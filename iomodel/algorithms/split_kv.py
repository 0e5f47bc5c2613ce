"""Split-KV attention, or flash-decoding: keys are split among thread blocks, and a second kernel combines the parts.

The partial outputs are fp32. FlashAttention-2 (Dao 2023, arXiv:2307.08691) on each part; the combination is that of
Dao, Haziza, Massa and Sizov, Flash-Decoding for long-context inference (PyTorch blog, 2023).
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import Expr, Integer, Min, ceiling

from iomodel.algorithms._flash3_residency import FORWARD as FLASH3
from iomodel.algorithms._flashinfer_residency import FLASHINFER_SPLIT
from iomodel.algorithms._flashmla_residency import FLASHMLA
from iomodel.algorithms._tiles import SPLITS, shipped_tiles
from iomodel.algorithms.flash2 import FORWARD
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.language import Drop, Exp, Hold, Kernel, Live, Load, Loop, MatMul, Scores, Sink, Store, When
from iomodel.nests.symbols import B_c, B_r, N_k, N_q, d, d_v, s
from iomodel.nests.tensors import LSE, K, LSE_acc, O, O_acc, Q, S, V, depth, key, l, m, query, split, value

ONE = Integer(1)


def declare(splits: Expr, lse: bool) -> Iterator[Kernel]:
    """Divide whole key tiles among splits; a split without tiles still writes a partial result of zero."""
    assert split.length == splits
    many = Min(1, splits - 1)
    yield Kernel("flash2 on each split", [
        Loop(query, B_r, [
            Hold(O, "fp32"), Hold(l), Hold(m),
            Loop(split, ONE, [
                Live(key, [
                    Load(Q),
                    Loop(key, B_c, masked=True, body=[
                        Load(K), Load(V),
                        Hold(S, "fp32"), MatMul(query, key, depth), Scores(query, key),
                        Exp(query, key), Exp(query), Drop(query, key),
                        MatMul(query, value, key),
                    ]),
                ]),
                When(many, [Store(O_acc, held=O), Store(LSE_acc, held=m)]),
            ]),
            When(many, unless=True, body=[Sink(query), Store(O), *([Store(LSE, held=m)] if lse else [])]),
        ]),
    ])  # fmt: skip
    yield Kernel("combine", [
        When(many, [
            Loop(query, ONE, [
                Load(LSE_acc), Exp(split, query), Hold(O, "fp32"),
                Loop(split, ONE, [Load(O_acc)]),
                Sink(query), Store(O), *([Store(LSE, held=LSE_acc)] if lse else []),
            ]),
        ]),
    ])  # fmt: skip


FLASH_ATTENTION_2 = Implementation(
    "flash-attention-2",
    "FlashAttention-2 (CUDA), split-KV",
    "github.com/Dao-AILab/flash-attention, csrc/flash_attn: flash_fwd_kernel.h, flash_api.cpp",
    residency={"forward": (FORWARD,)},
    searched={"splits": SPLITS, "packed": (False, True)},
    tiles=shipped_tiles("flash-attention-2", "split_kv"),
)
FLASH_ATTENTION_3 = Implementation(
    "flash-attention-3",
    "FlashAttention-3 (CUDA, Hopper), split-KV",
    "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_combine_kernel.h, heuristics.h",
    residency={"forward": tuple(layout for layout in FLASH3 if layout.capability == ("9.0", "9.0"))},
    searched=FLASH_ATTENTION_2.searched,
    tiles=shipped_tiles("flash-attention-3", "split_kv"),
)

_T_c = ceiling(N_k / B_c)
_many = Min(1, s - 1)

ALGORITHM = Algorithm(
    name="split_kv",
    title="Split-KV attention",
    cite="Dao, Haziza, Massa and Sizov, Flash-Decoding for long-context inference (PyTorch blog, 2023); each split as "
    "in FlashAttention-2, arXiv:2307.08691 (2023), Algorithm 1",
    declare=declare,
    options={"splits": 1, "lse": True},
    requires=(
        Requirement.at_most(s, "splits", ceiling(N_k / B_c), "up to {most}, the tiles of {block_kv} keys in {kv_len}"),
    ),
    classes=frozenset({"exact", "row-atomic", "fixed-split"}),
    implementations=(FLASHMLA, FLASH_ATTENTION_3, FLASH_ATTENTION_2, FLASHINFER_SPLIT),
    execution={"forward": replace(PIPELINED, spread=(split,))},
    published=(
        Published(
            N_q * d * ceiling(N_k / (B_c * ceiling(_T_c / s)))
            + N_k * (d + d_v) * ceiling(N_q / B_r)
            + 2 * _many * s * N_q * (d_v + 1)
            + N_q * (d_v + 1),
            "by hand: Q once a split that has keys, K and V once a query tile, the partial O and LSE of every split "
            "written and read, O and LSE once",
        ),
    ),
)
