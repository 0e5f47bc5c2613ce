"""Functions of `libdevice` in a count: by NumPy, or named; kernels of fused operators count what their loops move."""

from __future__ import annotations

import math

import numpy as np
import pytest
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st
from triton.language.extra import libdevice
from triton.language.extra.libdevice import tanh

import iomodel
from iomodel.triton import count
from iomodel.triton.library_functions import FUNCTIONS, MODULES, TESTS


@triton.jit
def rms_norm(X, W, Y, R, n, eps, BLOCK: tl.constexpr):
    """Divide a row by the root of its mean square, and scale it."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(X + row * n + i, mask=i < n, other=0.0)
    r = libdevice.rsqrt(tl.sum(x * x, 0) / n + eps)
    tl.store(R + row, r)
    tl.store(Y + row * n + i, x * r * tl.load(W + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def geglu(A, B, C, n, BLOCK: tl.constexpr):
    """Multiply by the Gaussian error linear unit, by the approximation with tanh."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(A + i, mask=i < n, other=0.0), tl.load(B + i, mask=i < n, other=0.0)
    gate = 0.5 * a * (1 + tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)))
    tl.store(C + i, gate * b, mask=i < n)


@triton.jit
def cross_entropy(X, Y, LOSS, n, BLOCK: tl.constexpr):
    """Pass over the logits of a row twice: for the sum of their exponentials, and for their gradient."""
    row = tl.program_id(0)
    target = tl.load(Y + row)
    most, total = float("-inf"), 0.0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * n + i, mask=i < n, other=float("-inf"))
        higher = tl.maximum(most, tl.max(x, 0))
        total = total * libdevice.exp(most - higher) + tl.sum(libdevice.exp(x - higher), 0)
        most = higher
    tl.store(LOSS + row, most + libdevice.log(total) - tl.load(X + row * n + target))
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(X + row * n + i, mask=i < n, other=float("-inf"))
        tl.store(X + row * n + i, libdevice.exp(x - most) / total - (i == target), mask=i < n)


@triton.jit
def asserts(X, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 8)
    tl.store(X, 1.0)


@triton.jit
def unknown(X):
    tl.store(X, libdevice.cyl_bessel_i0(tl.load(X)))


@triton.jit
def halves(X):
    tl.store(X, libdevice.exp(tl.load(X)))


def test_a_norm_reads_its_rows_and_weights_once_a_program() -> None:
    rows, n = 3, 13
    x, w = np.random.default_rng(1).normal(size=(rows, n)).astype(np.float32), np.ones(n, np.float32)
    y, r = np.empty_like(x), np.empty(rows, np.float32)
    counted = count(rms_norm, rows, [x, w, y, r, n, 1e-6], {"BLOCK": 16})
    assert dict(counted.reads) == {"X": rows * n, "W": rows * n}
    assert dict(counted.writes) == {"Y": rows * n, "R": rows}
    assert counted.exps == 0
    np.testing.assert_allclose(y, x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6), rtol=1e-5)


def test_a_gated_unit_reads_two_tensors_and_writes_one() -> None:
    a, b = np.random.default_rng(2).normal(size=(2, 21)).astype(np.float32)
    c = np.empty_like(a)
    counted = count(geglu, 3, [a, b, c, 21], {"BLOCK": 8})
    assert (dict(counted.reads), dict(counted.writes)) == ({"A": 21, "B": 21}, {"C": 21})
    gate = 0.5 * a * (1 + np.tanh(0.7978845608028654 * (a + 0.044715 * a**3)))
    np.testing.assert_allclose(c, gate * b, rtol=1e-4, atol=1e-6)


def test_a_cross_entropy_passes_over_its_logits_twice() -> None:
    rows, n, block = 4, 21, 8
    x = np.random.default_rng(3).normal(size=(rows, n)).astype(np.float32)
    y, loss = np.arange(rows, dtype=np.int32), np.empty(rows, np.float32)
    wanted = np.log(np.exp(x).sum(1)) - x[np.arange(rows), y]
    counted = count(cross_entropy, rows, [x, y, loss, n], {"BLOCK": block})
    trips = -(-n // block)
    assert dict(counted.reads) == {"X": rows * (2 * n + 1), "Y": rows}
    assert dict(counted.writes) == {"X": rows * n, "LOSS": rows}
    assert counted.exps == rows * trips * (2 * block + 1)
    np.testing.assert_allclose(loss, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "dtype", "meta", "message"),
    [
        (asserts, np.float32, {"BLOCK": 8}, r"^kernel: asserts is .*: line \d+, tl.static_assert\(BLOCK > 8\) fails$"),
        (unknown, np.float32, {}, "^kernel: libdevice.cyl_bessel_i0 called; allowed: abs, acos, "),
        (halves, np.float16, {}, "^kernel: libdevice.exp of fp16 called; allowed: fp32 or fp64"),
    ],
)
def test_what_a_count_refuses_is_named(kernel: object, dtype: type, meta: dict[str, int], message: str) -> None:
    with pytest.raises(iomodel.InputError, match=message):
        count(kernel, 1, [np.ones(4, dtype)], meta)


def test_functions_are_those_of_the_library() -> None:
    assert all(hasattr(libdevice, name) for name in (*FUNCTIONS, *TESTS))
    assert MODULES[0] == libdevice.__name__


@given(st.floats(0.01, 5))
def test_functions_agree_with_those_of_python(x: float) -> None:
    for name in ("sqrt", "tanh", "exp", "erf", "erfc", "log", "expm1", "log1p", "atan", "sinh", "lgamma"):
        assert float(FUNCTIONS[name](x)) == pytest.approx(getattr(math, name)(x), rel=1e-9, abs=1e-12)
    assert float(FUNCTIONS["rsqrt"](x)) == pytest.approx(x**-0.5)
