"""The picture of the times of all tiles, and its copy on the first page."""

from pathlib import Path

import numpy as np
import pytest

import iomodel
from iomodel import InputError, plots
from iomodel.plots import words

W = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
SHOWN = Path(__file__).parents[2] / "docs" / "_static" / "tile-times.svg"


def test_cells_are_times_and_marks_are_at_their_tiles() -> None:
    times = iomodel.kernels.tile_times("flash3", W, "h100-sxm5")
    axes = plots.tile_times(times).axes[0]
    (mesh,) = (artist for artist in axes.collections if artist.get_gid() == "times")
    wanted = [np.nan if value is None else value / times.fastest.seconds for row in times.seconds for value in row]
    drawn = np.ma.filled(mesh.get_array().astype(float), np.nan).ravel()
    np.testing.assert_allclose(drawn, wanted)
    assert np.nanmin(drawn) == 1
    for name, tile in times.marks.items():
        (line,) = (artist for artist in axes.lines if artist.get_gid() == f"mark {name}")
        row, column = (tile.tiles[of] for of in times.names)
        assert (times.second_sizes[int(line.get_xdata()[0])], times.first_sizes[int(line.get_ydata()[0])]) == (
            column,
            row,
        )
    with pytest.raises(InputError, match="times: 3 given"):
        plots.tile_times(3)  # type: ignore[arg-type]


def test_the_picture_of_the_first_page_shows_the_answer_of_today() -> None:
    text = SHOWN.read_text(encoding="utf-8")
    for name, tile in iomodel.kernels.tile_times("flash3", W, "h100-sxm5").marks.items():
        row, column = tile.tiles["block_q"], tile.tiles["block_kv"]
        assert f"{name}: {row:,} x {column:,}, {words.short(tile.seconds, 's')}" in text
