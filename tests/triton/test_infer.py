"""Formulas inferred from counts: those of the declared algorithms, and planted differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sympy import Integer, Symbol, ceiling

import iomodel
from iomodel.triton import Inference, KernelCount, count, infer
from tests.support.inside import BY_NAME
from tests.triton import kernels
from tests.triton.test_count import attention

NUMBERS = {
    "batch": (1, 2), "heads": (1, 2, 3), "q_len": range(1, 14), "kv_len": range(1, 14), "head_dim": (2, 4),
    "block_q": (4, 8), "block_kv": (4, 8),
}  # fmt: skip
N_q, N_k, d, B, H, B_r, B_c = (
    BY_NAME[name] for name in ("q_len", "kv_len", "head_dim", "batch", "heads", "block_q", "block_kv")
)


def flash2(block_q: int, block_kv: int, kernel: dict[str, Any] | None = None, **sizes: int) -> KernelCount:
    w = iomodel.Attention(kv_heads=sizes.get("heads", 1), dtype="fp32", **sizes)
    return attention(w, block_q, block_kv, **(kernel or {}))[0]


def test_flash2_has_the_declared_formulas() -> None:
    inferred = infer(flash2, NUMBERS, declared=iomodel.expressions("flash2"))
    assert inferred.equal
    assert inferred.reads["K"] == B * H * N_k * d * ceiling(N_q / B_r)
    assert inferred.writes == {"O": B * H * N_q * d, "LSE": B * H * N_q}
    assert set(inferred.differences.values()) == {Integer(0)}
    assert "less the declared one" in str(inferred)
    assert Inference.from_dict(inferred.to_dict()) == inferred


def test_a_planted_load_is_the_difference() -> None:
    """The first key tile is loaded twice: where keys are fewer than a tile, fewer elements."""
    fixed = {**NUMBERS, "kv_len": range(9, 14)}
    inferred = infer(
        lambda **sizes: flash2(**sizes, kernel={"LOADS_K_TWICE": True}), fixed, declared=iomodel.expressions("flash2"),
    )  # fmt: skip
    assert not inferred.equal
    assert {name: each for name, each in inferred.differences.items() if each} == {
        "reads K": B * H * B_c * d * ceiling(N_q / B_r)
    }


def test_a_causal_kernel_has_the_declared_formula_as_a_term() -> None:
    numbers = {"q_len": range(1, 20), "head_dim": (2, 4), "block_q": (4,), "block_kv": (4, 8)}

    def causal(q_len: int, **sizes: int) -> KernelCount:
        return flash2(q_len=q_len, kv_len=q_len, **sizes, kernel={"causal": True, "lse": False})

    inferred = infer(causal, numbers, declared=iomodel.expressions("flash2", mask="causal"))
    assert {name: each for name, each in inferred.differences.items() if each} == {"writes LSE": -N_q}
    alone = infer(causal, numbers)
    assert set(alone.unexplained) == {"reads K", "reads V"}
    assert not alone.equal


def test_a_matrix_product_has_the_declared_formulas() -> None:
    def gemm(rows: int, in_features: int, out_features: int, **tiles: int) -> KernelCount:
        x, w = np.ones((rows, in_features), np.float32), np.ones((out_features, in_features), np.float32)
        y = np.zeros((rows, out_features), np.float32)
        grid = (-(-rows // tiles["block_m"]), -(-out_features // tiles["block_n"]))
        meta = {name.upper(): size for name, size in tiles.items()}
        return count(kernels.gemm, grid, [x, w, y, rows, out_features, in_features], meta)

    numbers = {"rows": range(1, 30), "in_features": range(1, 30), "out_features": range(1, 30)}
    inferred = infer(gemm, {**numbers, **dict.fromkeys(("block_m", "block_n", "block_k"), (8, 16))},
                     declared=iomodel.expressions("gemm"))  # fmt: skip
    assert inferred.equal


def test_own_names_are_symbols_and_coefficients_are_rational() -> None:
    class Run:
        def __init__(self, items: int, tile: int) -> None:
            trips = -(-items // tile)
            self.reads, self.writes = {"X": 3 * items + trips * tile, "junk": 5}, {"Y": items * (items + 1) // 2}

    numbers = {"items": range(1, 50), "tile": (4, 8)}
    made = infer(Run, numbers, tiled={"tile": "items"}, names={"junk": None})
    n, t = (Symbol(name, integer=True, positive=True) for name in ("items", "tile"))
    assert made.reads == {"X": 3 * n + t * ceiling(n / t)}
    assert made.writes == {"Y": n**2 / 2 + n / 2}
    assert not made.differences


def test_a_formula_that_fresh_shapes_contradict_is_none() -> None:
    class Run:
        def __init__(self, items: int) -> None:
            runs.append(items)
            self.reads, self.writes = {"X": items + (len(runs) > 20), "Y": 2 * items}, dict[str, int]()

    runs: list[int] = []
    inferred = infer(Run, {"items": range(1, 50)}, points=20, fresh=1)
    assert (inferred.unexplained, list(inferred.reads)) == (("reads X",), ["Y"])


def test_three_terms_are_found_where_asked() -> None:
    class Run:
        def __init__(self, items: int, tile: int) -> None:
            self.reads, self.writes = {"X": items + 2 * -(-items // tile) + 7}, dict[str, int]()

    numbers = {"items": range(1, 50), "tile": (4, 8)}
    asked: dict[str, Any] = {"tiled": {"tile": "items"}}
    assert infer(Run, numbers, **asked).unexplained == ("reads X",)
    n, t = (Symbol(name, integer=True, positive=True) for name in ("items", "tile"))
    assert infer(Run, numbers, **asked, most=3).reads == {"X": n + 2 * ceiling(n / t) + 7}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"numbers": {}}, "^numbers: none given; allowed: lengths and tiles"),
        ({"numbers": {"q_len": 5}}, "^numbers: q_len is 5; allowed: a sequence of integers"),
        ({"numbers": {"q_len": [0]}}, "^numbers: q_len: 0 given"),
        ({"tiled": {"tile": "q_len"}}, "^tiled: 'tile' is unknown; allowed: q_len"),
        ({"most": 4}, "^most: 4 given; allowed: an integer from 1 to 3"),
        ({"declared": 5}, "^declared: 5 given; allowed: a result of iomodel.expressions"),
        ({"run": lambda q_len: 5}, "^run: 5 returned; allowed: a result of iomodel.triton.count"),
    ],
)
def test_a_wrong_argument_is_refused(asked: dict[str, Any], message: str) -> None:
    x, y = np.ones(60, np.float32), np.zeros(60, np.float32)

    def run(q_len: int) -> KernelCount:
        return count(kernels.chosen, 1, [x, y, q_len], {"BLOCK": 64, "EVEN": False})

    with pytest.raises(iomodel.IOModelError, match=message):
        infer(**{"run": run, "numbers": {"q_len": range(1, 9)}, **asked})
