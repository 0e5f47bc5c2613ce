"""What a count refuses, and what it leaves as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import triton.language as tl
from triton.runtime import interpreter

import iomodel
from iomodel.triton import count
from tests.triton import kernels
from tests.triton.language_state import state
from tests.triton.test_count import aligned


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
    count(kernels.histogram, 1, [np.array([0, 1], np.int32), np.zeros(4, np.int32), 2], {"BLOCK": 2})
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
