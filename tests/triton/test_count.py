"""Counts of unmodified Triton kernels: outputs against NumPy, traffic against the model."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from triton.tools.tensor_descriptor import TensorDescriptor

import iomodel
from iomodel.testing import assert_traffic
from iomodel.triton import count
from tests.support.strategies import at_most
from tests.triton import kernels
from tests.triton.language_state import state

DRAW = np.random.default_rng(0).standard_normal


def attention(
    w: iomodel.Attention, block_q: int, block_kv: int, *, causal: bool = False, lse: bool = True, **meta: Any
) -> tuple[iomodel.triton.KernelCount, dict[str, Any]]:
    """Count the small FlashAttention-2 on a call."""
    q, k, v = (
        DRAW((w.batch, heads, n, w.head_dim)).astype(np.float32)
        for heads, n in ((w.heads, w.q_len), (w.kv_heads, w.kv_len), (w.kv_heads, w.kv_len))
    )
    o, statistics = np.full_like(q, np.nan), np.full(q.shape[:3], np.nan, np.float32)
    arguments = {"Q": q, "K": k, "V": v, "O": o, "LSE": statistics, "scale": w.head_dim**-0.5}
    lengths = {"heads": w.heads, "kv_heads": w.kv_heads, "n_q": w.q_len, "n_k": w.kv_len}
    sizes = {"D": w.head_dim, "BLOCK_M": block_q, "BLOCK_N": block_kv, "CAUSAL": causal, "STORES_LSE": lse}
    grid = (-(-w.q_len // block_q), w.batch * w.heads)
    return count(kernels.flash2, grid, {**arguments, **lengths}, {**sizes, **meta}), arguments


def softmax_attention(a: dict[str, Any], causal: bool) -> tuple[Any, Any]:
    """Attention and its log-sum-exp in float64."""
    q, k, v = (a[name].astype(np.float64) for name in "QKV")
    k, v = (np.repeat(each, q.shape[1] // k.shape[1], axis=1) for each in (k, v))
    s = q @ k.swapaxes(-1, -2) * a["scale"]
    if causal:
        i, j = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])[None, :]
        s = np.where(j <= i + k.shape[2] - q.shape[2], s, -np.inf)
    lse = np.log(np.exp(s).sum(-1))
    return np.exp(s - lse[..., None]) @ v, lse


@at_most(12)
@given(
    shape=st.tuples(*(st.integers(1, high) for high in (2, 2, 2, 20, 12))),
    tile=st.tuples(st.sampled_from((4, 16)), st.sampled_from((4, 8, 16))),
    causal=st.booleans(),
    lse=st.booleans(),
)
def test_flash2_moves_what_is_predicted(shape: tuple[int, ...], tile: tuple[int, int], causal: bool, lse: bool) -> None:
    """Ragged tails, grouped heads, a diagonal at the bottom right: as many keys as queries at least."""
    batch, kv_heads, group, n_q, more = shape
    w = iomodel.Attention(
        batch=batch, heads=kv_heads * group, kv_heads=kv_heads, q_len=n_q, kv_len=n_q + more * (not causal or more % 2),
        head_dim=4, dtype="fp32", mask="causal" if causal else "full",
    )  # fmt: skip
    counted, arrays = attention(w, *tile, causal=causal, lse=lse)
    expected, statistics = softmax_attention(arrays, causal)
    np.testing.assert_allclose(arrays["O"], expected, rtol=1e-4, atol=1e-5)
    if lse:
        np.testing.assert_allclose(arrays["LSE"], statistics, rtol=1e-4, atol=1e-5)
    assert_traffic(iomodel.cost("flash2", w, {"block_q": tile[0], "block_kv": tile[1]}, lse=lse), counted)


def test_operations_are_those_of_whole_blocks() -> None:
    w = iomodel.Attention(heads=2, q_len=32, kv_len=48, head_dim=8, dtype="fp32")
    counted, _ = attention(w, 16, 16)
    c = iomodel.cost("flash2", w, {"block_q": 16, "block_kv": 16})
    assert (counted.flops, counted.exps, counted.dots) == (c.flops, c.exps, 2 * 2 * 2 * 3)


@at_most(12)
@given(sizes=st.tuples(*[st.integers(1, 40)] * 3), tile=st.tuples(*[st.sampled_from((8, 16))] * 3))
def test_a_matrix_product_moves_what_is_predicted(sizes: tuple[int, ...], tile: tuple[int, ...]) -> None:
    m, n, k = sizes
    x, w = DRAW((m, k)).astype(np.float32), DRAW((n, k)).astype(np.float32)
    y = np.full((m, n), np.nan, np.float32)
    names = ("block_m", "block_n", "block_k")
    meta = {name.upper(): size for name, size in zip(names, tile, strict=True)}
    counted = count(kernels.gemm, lambda a: (-(-m // a["BLOCK_M"]), -(-n // a["BLOCK_N"])), [x, w, y, m, n, k], meta)
    np.testing.assert_allclose(y, x @ w.T, rtol=1e-4, atol=1e-4)
    layer = iomodel.Linear(rows=m, in_features=k, out_features=n, dtype="fp32")
    c = iomodel.cost("gemm", layer, dict(zip(names, tile, strict=True)))
    assert_traffic(c, counted)


def test_the_tile_of_a_matrix_product_is_named() -> None:
    layer = iomodel.Linear(rows=40, in_features=8, out_features=40)
    small, large = (iomodel.cost("gemm", layer, {"block_m": m, "block_n": 16, "block_k": 8}) for m in (8, 16))
    with pytest.raises(AssertionError, match=r"explanation of all differences: block_m=8$"):
        assert_traffic(large, {"reads": small.reads, "writes": small.writes})


def test_masked_elements_are_asked_for_but_not_counted() -> None:
    x = DRAW((3, 13)).astype(np.float32)
    y = np.full_like(x, np.nan)
    counted = count(kernels.softmax, 3, [x, y, 13], {"BLOCK": 16, "num_warps": 4})
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
    assert (counted.tensors["X"].loads, counted.tensors["X"].asked_loads) == (3 * 13, 3 * 16)
    assert (counted.tensors["Y"].stores, counted.tensors["Y"].asked_stores) == (3 * 13, 3 * 16)
    assert (counted.exps, counted.flops, counted.hbm_bytes) == (3 * 16, 0, 2 * 4 * 3 * 13)


def test_block_pointers_are_clipped_to_the_tensor() -> None:
    x = DRAW((10, 7)).astype(np.float32)
    y = np.full((7, 10), np.nan, np.float32)
    counted = count(kernels.transposed_by_block_pointers, 3, [x, y, 10, 7], {"BLOCK": 4})
    np.testing.assert_array_equal(y, x.T)
    assert (counted.reads, counted.writes) == ({"X": 70}, {"Y": 70})
    assert counted.tensors["X"].asked_loads == counted.tensors["Y"].asked_stores == 3 * 2 * 16


class Tensor:
    """The parts of a PyTorch tensor on the CPU that a launch reads."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype, self.shape, self.device = array, array.dtype, array.shape, "cpu"

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> Tensor:
        return self

    def nbytes(self) -> int:
        return int(self.array.nbytes)

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def element_size(self) -> int:
        return int(self.array.itemsize)


def aligned(shape: tuple[int, ...]) -> Any:
    """An array whose address is a multiple of 64 B, as a descriptor requires."""
    size = 4 * int(np.prod(shape))
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(np.float32).reshape(shape)


@pytest.mark.parametrize("host", [False, True])
def test_descriptors_are_clipped_to_the_tensor(host: bool) -> None:
    x, y = aligned((10, 12)), aligned((10, 12))
    x[:] = DRAW((10, 12))
    y[:] = np.nan
    if host:
        pair = [TensorDescriptor.from_tensor(Tensor(each), [8, 8]) for each in (x, y)]
        counted = count(kernels.doubled_by_host_descriptors, (2, 2), pair, {"BLOCK": 8})
        assert (counted.reads, counted.writes) == ({"source": 120}, {"target": 120})
    else:
        counted = count(kernels.doubled_by_descriptors, (2, 2), [x, y, 10, 12], {"BLOCK": 8})
        assert (counted.reads, counted.writes) == ({"X": 120}, {"Y": 120})
    np.testing.assert_array_equal(y, 2 * x)
    assert [each.asked_loads for each in counted.tensors.values()] == [4 * 64, 0]


def test_atomics_read_and_write() -> None:
    x, h = np.array([0, 1, 1, 3, 1], np.int32), np.zeros(4, np.int32)
    counted = count(kernels.histogram, 2, {"X": x, "H": h, "n": 5}, {"BLOCK": 4})
    assert h.tolist() == [1, 3, 0, 1]
    assert (counted.reads, counted.writes, counted.atomics) == ({"X": 5, "H": 5}, {"H": 5}, 5)
    assert counted.tensors["H"].asked_atomics == 8


@pytest.mark.parametrize(
    ("meta", "block", "even"), [({}, 8, False), ({"BLOCK": 4}, 4, True), ({"BLOCK": 4, "EVEN": False}, 4, False)]
)
def test_an_autotuned_kernel_takes_its_first_config(meta: dict[str, Any], block: int, even: bool) -> None:
    x, y = np.arange(12, dtype=np.float32), np.full(12, np.nan, np.float32)
    counted = count(kernels.tuned, lambda a: -(-a["n"] // a["BLOCK"]), [x, y, 12], meta)
    np.testing.assert_array_equal(y, x * x)
    assert {name: counted.meta[name] for name in ("BLOCK", "EVEN")} == {"BLOCK": block, "EVEN": even}
    assert counted.tensors["X"].asked_loads == -(-12 // block) * block
    assert counted.reads == {"X": 12}


def test_tensors_that_share_memory_are_told_apart() -> None:
    both = np.arange(24, dtype=np.float32)
    counted = count(kernels.chosen, 3, [both[:12], both[12:], 12], {"BLOCK": 4, "EVEN": True})
    assert (counted.reads, counted.writes) == ({"X": 12}, {"Y": 12})
    np.testing.assert_array_equal(both[12:], both[:12] ** 2)


@pytest.mark.parametrize("shared", [False, True])
def test_a_choice_between_pointers_is_counted_by_address(shared: bool) -> None:
    both = np.arange(16, dtype=np.float32)
    x, y = (both[:8], both[8:]) if shared else (both[:8].copy(), both[8:].copy())
    o = np.full(8, np.nan, np.float32)
    counted = count(kernels.interleaved, 1, [x, y, o, 7], {"BLOCK": 8})
    assert o[:7].tolist() == [0, 9, 2, 11, 4, 13, 6]
    assert (counted.reads, counted.writes) == ({"X": 4, "Y": 3}, {"O": 7})
    assert sum(each.asked_loads for each in counted.tensors.values()) == 8


def test_a_pointer_that_was_loaded_is_counted_if_its_tensor_is_an_argument() -> None:
    x, o = np.arange(8, dtype=np.float32), np.full(8, np.nan, np.float32)
    table = np.array([x.ctypes.data, x.ctypes.data + 16], np.int64)
    with pytest.raises(iomodel.InputError, match=r"^args: the kernel accesses address 0x\w+, which is in none of"):
        count(kernels.through_addresses, 2, [table, o], {"BLOCK": 4})
    both = np.concatenate([o, x])
    table = np.array([both[8:].ctypes.data, both[12:].ctypes.data], np.int64)
    counted = count(kernels.through_addresses, 2, [table, both[:8]], {"BLOCK": 4})
    assert both[:8].tolist() == x.tolist()
    assert (counted.reads, counted.writes) == ({"TABLE": 2, "O": 8}, {"O": 8})


def test_a_count_is_a_value() -> None:
    x = np.arange(12, dtype=np.float32)
    counted = count(kernels.tuned, 3, [x, x.copy(), 12], {"BLOCK": 4})
    copied = pickle.loads(pickle.dumps(counted))
    assert iomodel.triton.KernelCount.from_json(counted.to_json()) == counted == copied
    assert hash(counted) == hash(copied)
    assert counted.rows()[0][0] == "X"


def test_the_launches_of_a_wrapper_are_counted() -> None:
    def squared(x: Any) -> Any:
        y = np.full_like(x, np.nan)
        kernels.tuned[lambda meta: (-(-x.size // meta["BLOCK"]),)](x, y, n=x.size)
        return y

    before, x = state(), np.arange(12, dtype=np.float32)
    with iomodel.triton.launches() as counts:
        np.testing.assert_array_equal(squared(squared(x)), x**4)
    assert [(each.kernel, each.reads, each.writes) for each in counts] == 2 * [("chosen", {"X": 12}, {"Y": 12})]
    with pytest.raises(ZeroDivisionError), iomodel.triton.launches():
        _ = 1 / 0
    assert state() == before


@pytest.mark.parametrize("language", [False, True])
def test_numbers_and_loop_variables_are_scalars(language: bool) -> None:
    """A compiled kernel may convert them; Triton's interpreter alone would refuse."""
    x, y = np.arange(10, dtype=np.float32), np.empty(1, np.float32)
    counted = count(kernels.scaled_sums, 1, [x, y, 0.5, 10], {"BLOCK": 4, "LANGUAGE": language})
    assert y[0] == 0.5 * 45 + (4 * (0 + 1) if language else 0)
    assert (counted.reads, counted.writes) == ({"X": 10}, {"Y": 1})
