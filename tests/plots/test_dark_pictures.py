"""Pictures on dark paper: every text can be read, areas keep their colours, and the light picture stays as it was."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest

from iomodel import plots
from iomodel.plots.dark import LEGIBLE, PAPER, contrast, dark, dark_ink
from tests.plots.test_styles import PICTURES

matplotlib = pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", PICTURES)
def test_every_text_can_be_read_on_dark_paper(name: str) -> None:
    picture = PICTURES[name]()
    picture.draw_without_rendering()
    picture.draw_without_rendering()
    areas = [(patch, patch.get_facecolor()) for patch in picture.findobj(matplotlib.patches.Patch)]
    coloured = {patch: face for patch, face in areas if dark_ink(face) == face and face[3]}
    inks = {artist: ink for artist in picture.findobj(matplotlib.text.Text) if (ink := artist.get_color())}
    with dark(picture):
        assert picture.get_facecolor()[:3] == pytest.approx(PAPER)
        assert all(patch.get_facecolor() == face for patch, face in coloured.items())
        texts = [text for text in picture.findobj(matplotlib.text.Text) if text.get_visible() and text.get_text()]
        assert texts
        for text in texts:
            colour = matplotlib.colors.to_rgba(text.get_color())
            assert contrast(colour, ground(text, coloured)) >= min(LEGIBLE, light_contrast(text, inks, coloured)), text
    assert {artist: artist.get_color() for artist in inks} == inks
    assert all(patch.get_facecolor() == face for patch, face in areas)


def ground(text: Any, coloured: dict[Any, Any]) -> Any:
    """Colour behind the middle of a text: of its box, of the topmost coloured area, or of the paper."""
    if (box := text.get_bbox_patch()) is not None:
        return box.get_facecolor()
    middle = text.get_window_extent()
    at = (middle.x0 + middle.x1) / 2, (middle.y0 + middle.y1) / 2
    behind = [patch for patch in coloured if patch.axes is text.axes and patch.get_window_extent().contains(*at)]
    return max(behind, key=lambda patch: patch.get_zorder()).get_facecolor() if behind else PAPER


def light_contrast(text: Any, inks: dict[Any, Any], coloured: dict[Any, Any]) -> float:
    """Contrast of a text in the light picture, where it is on a coloured area, which stays as it is."""
    behind = ground(text, coloured)
    return contrast(matplotlib.colors.to_rgba(inks[text]), behind) if behind != PAPER else LEGIBLE


def test_a_style_draws_on_dark_paper() -> None:
    with plots.style(dark=True):
        picture = PICTURES["roofline"]()
    with plots.style():
        light = PICTURES["roofline"]()
    shown, plain = (pixels(one) for one in (picture, light))
    assert shown[2, 2] == pytest.approx(PAPER, abs=1 / 255)
    assert plain[2, 2] == pytest.approx((1, 1, 1))
    assert shown.shape == plain.shape
    assert np.median(shown) < 0.1
    assert np.median(plain) > 0.9


def pixels(picture: Any) -> np.ndarray[Any, Any]:
    return np.asarray(matplotlib.image.imread(BytesIO(picture._repr_png_()[0]))[..., :3])


def test_the_docs_draw_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    extension = run_path(str(Path(__file__).parents[2] / "docs" / "_ext" / "dark_pictures.py"))
    monkeypatch.setitem(extension["drawn"].__globals__, "TWINS", tmp_path)
    picture = PICTURES["breakdown"]()
    light, size = extension["drawn"](picture)
    assert size == {"width": 96 * picture.get_figwidth()}
    (twin,) = tmp_path.iterdir()
    assert twin == extension["_twin_of"](light)
    assert matplotlib.image.imread(twin)[2, 2, :3] == pytest.approx(PAPER, abs=1 / 255)
    assert extension["drawn"](picture)[0] == light  # the light one is as before
