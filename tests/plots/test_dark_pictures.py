"""Dark twins of the pictures of the docs: paper, ink, lines, and what is written on coloured areas."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest

darkened = run_path(str(Path(__file__).parents[2] / "docs" / "_ext" / "dark_pictures.py"))["darkened"]
BLUE = (0.0, 0.447, 0.698)


@pytest.fixture(scope="module")
def twin() -> np.ndarray[Any, Any]:
    """Paper with a bar, a grey cell, two lines, stripes, and strokes of black and white."""
    picture = np.ones((200, 300, 3))
    picture[20:60, 20:280] = BLUE
    picture[30:50, 60:63] = 1.0  # a stroke on the bar
    picture[30:50, 100:103] = 0.0
    picture[90:110, 60:63] = 0.0  # a stroke on the paper
    picture[120:123, 20:280] = picture[129:132, 20:280] = BLUE
    for left in range(20, 280, 10):
        picture[150:190, left : left + 5] = BLUE
    picture[64:86, 120:180] = 0.5  # a grey cell
    return np.asarray(darkened(picture))


@pytest.mark.parametrize(
    ("row", "column", "shown"),
    [
        pytest.param(5, 5, (None, 0), id="paper is transparent"),
        pytest.param(40, 200, (BLUE, 1), id="an area keeps its colour"),
        pytest.param(40, 61, ((1, 1, 1), 1), id="white on an area stays white"),
        pytest.param(40, 101, ((0, 0, 0), 1), id="black on an area stays black"),
        pytest.param(100, 61, ((1, 1, 1), 1), id="black on paper becomes white"),
        pytest.param(121, 150, (BLUE, 1), id="a line keeps its colour"),
        pytest.param(126, 150, (None, 0), id="paper between lines is transparent"),
        pytest.param(170, 147, (None, 0), id="paper between stripes is transparent"),
        pytest.param(75, 150, ((0.5, 0.5, 0.5), 1), id="a grey cell keeps its lightness"),
        pytest.param(64, 121, ((0.5, 0.5, 0.5), 1), id="a grey cell keeps it up to its edge"),
    ],
)
def test_a_twin_can_be_read_on_a_dark_page(twin: np.ndarray[Any, Any], row: int, column: int, shown: Any) -> None:
    colour, opaque = shown
    assert twin[row, column, 3] == pytest.approx(opaque, abs=1e-5)
    if colour is not None:
        assert twin[row, column, :3] == pytest.approx(colour, abs=1e-5)
