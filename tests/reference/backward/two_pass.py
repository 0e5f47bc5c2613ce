"""FlashAttention-2's backward without atomics: dK and dV in one pass, dQ in another that makes P again.

The passes are those of Triton's fused attention tutorial (triton-lang.org, 06-fused-attention): D first, then
key tiles outside for dK and dV, then query tiles outside for dQ, with tiles of its own. Here each is a kernel.
"""

from collections.abc import Mapping

from iomodel.testing.machine import FloatArray, Run

from ..extras import NONE, Extras
from ..grid import Visit
from ..masks import BoolArray
from ..written import PLAIN, Written, in_order, turned
from .gradients import KeyGradients
from .keys import run_keys
from .rows import preprocess
from .tiles import Call, Scores, load_lse, prepare


def run_queries(call: Call, block_q: int, block_kv: int) -> None:
    """Run the kernel of dQ: query tiles outside, key tiles inside."""
    hbm, sram = call.machine.hbm, call.machine.sram
    d, d_v = hbm.arrays["K"].shape[-1], hbm.arrays["V"].shape[-1]
    for program in call.programs:
        q_tile = sram.alloc("Q", (block_q, d), "io")
        do_tile = sram.alloc("dO", (block_q, d_v), "io")
        lse_tile = sram.alloc("LSE", (block_q,), "fp32")
        d_tile = sram.alloc("D", (block_q,), "fp32")
        dq_tile = sram.alloc("dQ", (block_q, d), "fp32")
        k_tile = sram.alloc("K", (block_kv, d), "io")
        v_tile = sram.alloc("V", (block_kv, d_v), "io")
        scores = Scores(call, program, block_q, block_kv, by_rows=True)
        if call.written.two_statistics:
            sram.alloc("l", (block_q,), "fp32")
        last: Visit | None = None
        for rows, visited in in_order(call.by_queries(block_q, block_kv), call.written):
            n = rows.stop - rows.start
            q, do, lse, D, dq = q_tile[:n], do_tile[:n], lse_tile[:n], d_tile[:n], dq_tile[:n]
            at = program.rows(rows)
            if visited or call.written.eager_loads:  # a tile that sees nothing needs no queries, only its output
                q[:], do[:] = hbm.load("Q", at), hbm.load("dO", at)
                lse[:] = load_lse(call, program, rows, block_q)
                for _ in range(2 if call.written.delta_twice else 1):  # each call on some of the key tiles
                    D[:] = call.statistics.load("D", program, rows, block_q)
            if visited:
                scores.begin(rows)
            dq[:] = 0.0
            for visit in visited:
                n_k = visit.keys.stop - visit.keys.start
                k, v = k_tile[:n_k], v_tile[:n_k]
                if not turned(last, visit, call.written):
                    k[:], v[:] = 0.0, 0.0
                    loaded = visit.loaded.stop - visit.loaded.start
                    k[:loaded], v[:loaded] = (hbm.load(name, program.keys(visit.loaded)) for name in ("K", "V"))
                last = visit
                ds = scores.back(scores.remake(visit, q, k, lse), do, v, D)
                dq += call.machine.matmul(ds, k)
            hbm.store("dQ", at, dq)
        sram.free()


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
    dq_block_q: int | None = None,
    dq_block_kv: int | None = None,
    accumulate: bool = False,
) -> Run:
    """Run the three kernels on O and LSE; the tiles of the third are those of the second unless given."""
    call = prepare(
        (Q, K, V, dO), saved, ("O", "LSE"),
        left=left, right=right, align=align, seen=seen, packed=packed, capacity=capacity, extras=extras,
        written=written, rows=(block_q, dq_block_q or block_q),
    )  # fmt: skip
    machine, hbm = call.machine, call.machine.hbm
    gradients = KeyGradients(machine, Q, packed, accumulate)
    if gradients.accumulated:
        gradients.alloc()
        gradients.zero()
    preprocess(call, block_q, dq_block_q or block_q)
    if not gradients.accumulated:
        gradients.alloc()
    run_keys(call, gradients, block_q, block_kv)
    hbm.alloc("dQ", Q.shape)
    run_queries(call, dq_block_q or block_q, dq_block_kv or block_kv)
    hbm.free("D")
    gradients.finish()
    return machine.result(dQ=hbm.arrays["dQ"], dK=hbm.arrays["dK"], dV=hbm.arrays["dV"])
