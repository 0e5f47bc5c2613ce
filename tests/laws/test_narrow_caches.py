"""Caches of 4 bits, counted by the reference kernels: a row is whole bytes, so that no tile rounds."""

from hypothesis import given
from hypothesis import strategies as st

import iomodel
from tests.laws.test_counts import measured, predicted
from tests.support.strategies import Case


@given(
    name=st.sampled_from(["flash1", "flash2", "flash3", "split_kv"]),
    kept=st.sampled_from([("nvfp4", 16, None), ("int4", 2, "token"), ("int4", 2, None)]),
    sizes=st.tuples(*[st.integers(1, 14)] * 4),
    widths=st.tuples(*[st.integers(1, 2)] * 2),
    mask=st.sampled_from(["full", "causal"]),
    page=st.none() | st.integers(1, 5),
)
def test_counted_bytes_equal_the_predicted(name, kept, sizes, widths, mask, page):
    dtype, least, scales = kept
    q_len, kv_len, block_q, block_kv = sizes
    call = iomodel.Attention(
        heads=2, kv_heads=1, q_len=q_len, kv_len=kv_len, head_dim=least * widths[0], value_dim=least * widths[1],
        mask=mask, kv_dtype=dtype, kv_scales=scales, page_size=page,
    )  # fmt: skip
    options = {"splits": 1} if name == "split_kv" else {}
    case = Case(name, call, {"block_q": block_q, "block_kv": block_kv}, options)
    run = case.run()
    assert predicted(case) == measured(case, run)
    rows = run.reads["K"] // call.head_dim, run.reads["V"] // call.value_dim
    each = [width // 2 + width // 16 if dtype == "nvfp4" else width // 2 for width in (call.head_dim, call.value_dim)]
    others = sum(n for tensor, n in (run.reads + run.writes).items() if tensor in ("Q", "O")) * call.element_size
    small = run.hbm_bytes(0, 0)  # statistics, scales and tables, whose widths are fixed
    assert run.hbm_bytes(2, call.kv_element_size) == rows[0] * each[0] + rows[1] * each[1] + others + small
    bounds = iomodel.lower_bounds(call, sram_bytes=100_000)
    assert all(bound.bytes <= case.cost().hbm_bytes for bound in bounds.values())
