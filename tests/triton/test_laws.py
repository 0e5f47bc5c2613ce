"""Laws of Triton counts and times: powers of two and e, ends of tensors, blocks of an SM, splits, replicated rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

import iomodel
from iomodel import InputError
from iomodel.triton import count
from iomodel.triton import seconds as timed
from iomodel.triton.kernel_memory import KernelMemory
from tests.support.inside import as_device, check_triton, compiled_fit, device_of, repeats

CALL = iomodel.Attention(batch=4, heads=32, q_len=4096, head_dim=128, dtype="fp16")
A100 = as_device("a100-sxm4-80gb")


@triton.jit
def exponentials(X, Y, n, BLOCK: tl.constexpr, BASE_2: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < n, other=0.0)
    y = tl.exp2(x) if BASE_2 else tl.exp(x)
    tl.store(Y + i, y, mask=i < n)


@pytest.mark.parametrize("base_2", [False, True])
def test_exponentials_of_either_base_count_alike(base_2: bool) -> None:
    x, y = np.linspace(-1, 1, 20, dtype=np.float32), np.empty(20, np.float32)
    counted = count(exponentials, 3, [x, y, 20], {"BLOCK": 8, "BASE_2": base_2})
    assert (counted.exps, dict(counted.reads)) == (24, {"X": 20})
    np.testing.assert_allclose(y, np.exp2(x) if base_2 else np.exp(x), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_an_access_is_inside_a_tensor_up_to_its_last_byte(dtype: Any) -> None:
    array = np.zeros(10, dtype)
    memory = KernelMemory()
    buffer = memory.add("X", array)
    inside = buffer.address + np.arange(10) * array.itemsize
    memory.access("loads", inside, np.ones(10, dtype=bool), "X")
    assert memory.counts()["X"].loads == 10
    for wrong in (inside[-1:] + array.itemsize, inside[-1:] + 1, inside[:1] - 1):
        with pytest.raises(InputError, match="outside the tensor"):
            memory.access("loads", wrong, np.ones(1, dtype=bool), "X")


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("tile", [(16, 16), (64, 32), (64, 64), (128, 32)])
def test_blocks_take_no_more_than_an_sm_has(tile: tuple[int, int], warps: int) -> None:
    limits = device_of(A100)
    outcome = check_triton(*tile, 128, warps=warps, stages=2, arch=80, version="3.9.0")
    for shared in {outcome.shared, limits.shared_per_sm // 4, limits.shared_per_sm // 3 - limits.shared_reserved}:
        layout = timed._layout(outcome)
        blocks = compiled_fit(limits, layout, replace(outcome, shared=shared), warps, tile[0]).blocks_per_sm
        assert blocks == 1 or blocks * (shared + limits.shared_reserved) <= limits.shared_per_sm
        assert blocks == 1 or blocks * warps <= limits.warps_per_sm


@pytest.mark.parametrize("batch", [1, 3, 8, 200])
@pytest.mark.parametrize("keys", [1, 100, 1000, 100_000])
def test_splits_have_keys_and_are_no_more_than_give_each_sm_a_block(batch: int, keys: int) -> None:
    call = iomodel.Attention(batch=batch, heads=8, kv_heads=2, q_len=1, kv_len=keys, head_dim=128, dtype="fp16")
    splits = timed._splits(call, A100)
    assert 1 <= splits <= -(-keys // 128)
    assert splits == 1 or batch * 2 * (splits - 1) < 108
    assert splits == -(-keys // 128) or batch * 2 * splits >= 108


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_warps_of_a_tile_with_fewer_rows_multiply_16_rows_each(arch: int) -> None:
    """Those of tcgen05 share out columns."""
    for rows in (16, 32, 64, 128):
        for warps in (1, 2, 4, 8):
            outcome = check_triton(rows, 64, 128, 16, warps=warps, stages=2, arch=arch, version="3.9.0")
            shares = outcome.instruction == "tcgen05"
            assert repeats(outcome, warps, rows) == (1 if shares else max(1, 16 * warps // rows))


def test_tiles_of_flex_attention_divide_a_block_of_its_mask() -> None:
    listed = iomodel.triton.flex_options(CALL, "h100-sxm5", top=1000, version="3.9.0")
    assert len(listed) > 50
    assert all(128 % option[name] == 0 for option in listed for name in ("BLOCK_M", "BLOCK_N"))
