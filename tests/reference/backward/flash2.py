"""FlashAttention-2, backward (Dao 2023, arXiv:2307.08691, section 3.1.2, Algorithm 2), as its public kernels do it.

Lines 3 and 4, D and the zeros of dQ, are a kernel of their own, and so is the conversion of dQ, which is added
up in fp32: the key tiles of line 5 run side by side.
"""

from collections.abc import Mapping

from iomodel.testing.machine import FloatArray, Run

from ..extras import NONE, Extras
from ..grid import Program, Visit
from ..masks import BoolArray
from ..written import PLAIN, Written
from .gradients import KeyGradients
from .keys import run_keys
from .rows import preprocess, sum_slabs
from .tiles import prepare


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    dO: FloatArray,
    saved: Mapping[str, FloatArray],
    *,
    left: int | None = None,
    right: int | None = None,
    align: str = "bottom-right",
    seen: BoolArray | None = None,
    packed: bool = False,
    capacity: int | None = None,
    extras: Extras = NONE,
    written: Written = PLAIN,
    block_q: int,
    block_kv: int,
    deterministic: bool = False,
    dq_buffers: int = 1,
    accumulate: bool = False,
) -> Run:
    """Run Algorithm 2 on O and LSE; dQ is added up atomically in one slab.

    Deterministic, key tile j adds to slab j modulo `dq_buffers`, in its turn and so without atomics.
    """
    call = prepare(
        (Q, K, V, dO), saved, ("O", "LSE"),
        left=left, right=right, align=align, seen=seen, packed=packed, capacity=capacity, extras=extras,
        written=written, rows=(block_q,),
    )  # fmt: skip
    machine, hbm = call.machine, call.machine.hbm
    gradients = KeyGradients(machine, Q, packed, accumulate)
    slabs = dq_buffers if deterministic else 1

    hbm.alloc("dQ_acc", (slabs, *Q.shape), width="fp32")
    hbm.store("dQ_acc", ..., 0.0)  # line 3
    if gradients.accumulated:
        gradients.alloc()
        gradients.zero()
    preprocess(call, block_q)  # line 4

    def add_dq(program: Program, visit: Visit, number: int, dq: FloatArray) -> None:
        hbm.add("dQ_acc", (number % slabs, *program.rows(visit.rows)), dq, atomic=not deterministic)

    if not gradients.accumulated:
        gradients.alloc()
    run_keys(call, gradients, block_q, block_kv, add_dq)
    hbm.free("D")
    sum_slabs(call)
    gradients.finish()
    return machine.result(dQ=hbm.arrays["dQ"], dK=hbm.arrays["dK"], dV=hbm.arrays["dV"])
