"""The drawing of a block on chip is to scale."""

import pytest

import iomodel
from iomodel import plots
from tests.support.inside import contents

pytest.importorskip("matplotlib")
W = iomodel.Attention(q_len=4096, head_dim=128)


def widths(figure, start):
    """List the widths of the boxes of a bar."""
    boxes = figure.findobj(lambda artist: (artist.get_gid() or "").startswith(start) and hasattr(artist, "get_width"))
    return [box.get_width() for box in boxes]


@pytest.mark.parametrize(
    ("name", "device"), [("flash3", "h100-sxm5"), ("flash2", "b200"), ("flash1", "a100-sxm4-80gb")]
)
def test_boxes_are_shares_of_the_limit(name, device):
    held, figure = contents(name, W, device), plots.on_chip(name, W, device)
    use = held.check.resources
    assert widths(figure, "part 0") == pytest.approx([part.size / use["shared memory"].limit for part in held.shared])
    assert sum(widths(figure, "part 1")) == pytest.approx(use["registers"].used / use["registers"].limit, abs=0.01)
    if held.tensor:
        assert sum(widths(figure, "part 2")) == pytest.approx(use["tensor memory"].used / use["tensor memory"].limit)
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert f"{use['registers'].used} of {use['registers'].limit}" in texts


def test_a_tile_that_does_not_fit_extends_beyond_the_limit():
    figure = plots.on_chip("flash2", W, "a100-sxm4-80gb", {"block_q": 256, "block_kv": 256, "warps": 8, "stages": 1})
    assert widths(figure, "limit 0")[0] < 1
    assert sum(widths(figure, "part 0")) == pytest.approx(1)
    assert any("too much" in text.get_text() for text in figure.axes[0].texts)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("inches", [3.3, 7.0])
def test_names_and_sizes_of_narrow_boxes_do_not_overlap(direction: str, inches: float) -> None:
    with plots.style("paper", width=inches):
        figure = plots.on_chip("flash2", W.replace(direction=direction), "h100-sxm5")
    figure.draw_without_rendering()
    boxes = [text.get_window_extent().padded(-1) for text in figure.axes[0].texts if text.get_text()]
    assert len(boxes) > 5
    assert not [(one, two) for i, one in enumerate(boxes) for two in boxes[:i] if one.overlaps(two)]
