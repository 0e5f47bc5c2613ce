"""Counts of unmodified Triton kernels: outputs against NumPy, traffic against the model."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction, KernelInterface
from triton.tools.tensor_descriptor import TensorDescriptor

import iomodel
from iomodel.testing import assert_traffic
from iomodel.triton import count
from tests.triton import kernels

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


@settings(max_examples=12)
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


@settings(max_examples=12)
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


# --- refusals


def state() -> list[dict[str, Any]]:
    """Everything that the interpreter patches."""
    homes: tuple[Any, ...] = (
        tl, tl.core, tl.math, tl.tensor, tl.dtype, tl.condition, tl.core.tensor_descriptor_base, JITFunction,
        interpreter.InterpretedFunction, KernelInterface, interpreter, kernels,
    )  # fmt: skip
    return [{name: value for name, value in vars(home).items() if name != "__annotations__"} for home in homes]


@pytest.mark.parametrize(
    ("kernel", "grid", "args", "meta", "message"),
    [
        ("chosen", 4, [12], {"EVEN": True}, r"^X: the kernel accesses element 15, outside the tensor of 12 elements"),
        ("chosen", 3, [12], {}, "^args: chosen needs EVEN; give them in args or meta"),
        ("chosen", 3, [12], {"EVEN": True, "WIDE": 3}, "^meta: chosen has no argument 'WIDE'; allowed: X, Y"),
        ("chosen", 0, [12], {"EVEN": True}, "^grid: 0 given; allowed: up to three positive integers"),
        ("chosen", (1, 1, 1, 1), [12], {"EVEN": True}, r"^grid: \(1, 1, 1, 1\) given"),
        ("chosen", 3, ["twelve"], {"EVEN": False}, "^n: 'twelve' given; allowed: a tensor, a number or None"),
        ("helper", 1, [], {}, "^args: 2 given; allowed: at most 1, the arguments of helper"),
        ("aligned", 1, [], {}, "^kernel: the Python function aligned given; allowed: a function under @triton.jit"),
        ("refused", 1, [], {}, r"^kernel: refused is refused by Triton's interpreter in program \(0, 0, 0\): .*inline"),
        ("writes_first", 1, [], {}, r"^kernel: writes_first is refused"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(
    kernel: str, grid: Any, args: list[Any], meta: dict[str, Any], message: str
) -> None:
    x, y = np.arange(12, dtype=np.float32), np.full(12, -1, np.float32)
    asked = {"aligned": aligned, "refused": refused, "writes_first": writes_first}.get(kernel)
    before = state()
    if kernel == "chosen":
        meta = {"BLOCK": 4, **meta}
    with pytest.raises(iomodel.InputError, match=message) as error:
        count(asked or getattr(kernels, kernel), grid, [x, y, *args], meta)
    assert "\n" not in str(error.value)
    assert state() == before
    assert (y == -1).all()


@kernels.triton.jit
def refused(X, Y):
    """A kernel with PTX of its own."""
    tl.inline_asm_elementwise("mov.u32 $0, 0;", "=r,r", [tl.load(X)], tl.int32, True, 1)


@kernels.triton.jit
def writes_first(X, Y):
    """A kernel that fails after it has written."""
    tl.store(Y, 5.0)
    tl.static_assert(False, "after a store")


def test_a_count_leaves_the_language_as_it_was() -> None:
    before = state()
    test_atomics_read_and_write()
    assert state() == before


def test_a_read_only_array_is_not_written_to() -> None:
    x, h = np.array([0, 1], np.int32), np.zeros(4, np.int32)
    h.flags.writeable = False
    with pytest.raises(iomodel.InputError, match=r"^H: the kernel writes to a read-only array"):
        count(kernels.histogram, 1, [x, h, 2], {"BLOCK": 2})


def test_kernels_decorated_under_the_interpreter_count_the_same() -> None:
    code = (
        "import numpy as np\nfrom iomodel.triton import count\nfrom tests.triton import kernels\n"
        "x = np.arange(12, dtype=np.float32)\nassert type(kernels.chosen).__name__ == 'InterpretedFunction'\n"
        "c = count(kernels.tuned, 3, [x, np.zeros_like(x), 12], {'BLOCK': 4})\n"
        "assert c.reads == {'X': 12}, c"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "TRITON_INTERPRET": "1"})


def test_without_triton_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton.runtime", None)
    with pytest.raises(iomodel.InputError, match=r"^triton: not installed; pip install 'iomodel\[triton\]'$"):
        count(kernels.softmax, 1, [], {})


def test_another_interpreter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(interpreter, "FunctionRewriter")
    with pytest.raises(iomodel.InputError, match=r"^triton: version .* installed; allowed: 3\.9 or later$"):
        count(kernels.softmax, 1, [], {})


# --- beside a prediction


CALL = iomodel.Attention(heads=2, q_len=33, kv_len=33, head_dim=4, dtype="fp32")
TILES = {"block_q": 16, "block_kv": 8}


def explained(made: dict[str, Any], asked: dict[str, Any] | None = None, tile: tuple[int, int] = (16, 8)) -> str:
    """The explanation of a kernel that is compared with the prediction for a call without a mask."""
    counted, _ = attention(CALL, *tile, **made)
    with pytest.raises(AssertionError) as error:
        assert_traffic(iomodel.cost("flash2", CALL, TILES, **(asked or {})), counted)
    return str(error.value).partition("possible explanation of all differences: ")[2]


CAUSAL = 'tiles after the diagonal are skipped: mask="causal"'


@pytest.mark.parametrize(
    ("made", "asked", "tile", "explanation"),
    [
        ({"causal": True}, {}, (16, 8), CAUSAL),
        ({"lse": False}, {}, (16, 8), "lse=False"),
        ({}, {}, (4, 8), "block_q=4"),
        ({"causal": True, "lse": False}, {}, (16, 8), f"{CAUSAL} and lse=False"),
        ({"causal": True}, {}, (16, 32), f"{CAUSAL} and block_kv=32"),
        ({"lse": False}, {}, (4, 8), "lse=False and block_q=4"),
        ({}, {"lse": False}, (16, 8), "lse=True"),
    ],
)
def test_one_difference_or_two_are_named(
    made: dict[str, Any], asked: dict[str, Any], tile: tuple[int, int], explanation: str
) -> None:
    assert explained(made, asked, tile) == explanation


def test_a_redundant_load_names_its_tensor() -> None:
    counted, _ = attention(CALL, 16, 8, LOADS_K_TWICE=True)
    with pytest.raises(AssertionError, match=r"reads K .*6 tiles of 8 x 4 too many") as error:
        assert_traffic(iomodel.cost("flash2", CALL, TILES), counted)
    assert "reads V" not in str(error.value)


def test_a_tensor_is_mapped_or_left_out() -> None:
    counted, _ = attention(CALL, 16, 8)
    c = iomodel.cost("flash2", CALL, TILES, lse=False)
    with pytest.raises(AssertionError, match="writes LSE"):
        assert_traffic(c, counted)
    half = iomodel.cost("flash2", CALL.model_copy(update={"dtype": "bf16"}), TILES)
    with pytest.raises(AssertionError, match=r"^flash2: [\d,]+ B counted.* Q has 4 B an element, 2 in the model"):
        assert_traffic(half, counted)
    assert_traffic(c, counted, names={"LSE": None})
