"""Counts beside predictions: the explanation of a difference."""

from __future__ import annotations

from typing import Any

import pytest

import iomodel
from iomodel.testing import assert_traffic
from tests.triton.test_count import attention

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
