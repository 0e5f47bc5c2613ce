"""Styles of pictures: sizes, fonts, captions, and files for papers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import iomodel
from iomodel import plots
from iomodel.plots.dark import PAPER
from iomodel.plots.styles import STYLES, current
from tests.plots.test_plots import GPU, Stub, typed

matplotlib = pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"


def sizes(picture: Any) -> list[float]:
    """Sizes of all texts that are drawn, in points."""
    picture.draw_without_rendering()
    texts = picture.findobj(matplotlib.text.Text)
    return [text.get_fontsize() for text in texts if text.get_visible() and text.get_text().strip()]


@pytest.mark.parametrize("name", STYLES)
def test_a_style_sets_the_size_of_the_picture_and_of_its_text(name: Any) -> None:
    designed = sizes(plots.roofline(Stub(), GPU))
    with plots.style(name) as chosen:
        picture = plots.roofline(Stub(), GPU)
    assert picture.get_figwidth() == (chosen.width or 7.2)
    assert max(sizes(picture)) <= chosen.text * max(designed)
    assert min(sizes(picture)) == pytest.approx(chosen.text * min(designed))
    assert current() == STYLES["notebook"]
    if name == "paper":
        assert min(sizes(picture)) >= 6  # the least that journals print


@pytest.mark.parametrize(
    ("width", "inches"),
    [(3.3, 3.3), ("3.3in", 3.3), ("84 mm", 84 / 25.4), ("240pt", 240 / 72.27), ("8.5 cm", 8.5 / 2.54)],
)
def test_a_width_is_that_of_the_file(width: Any, inches: float, tmp_path: Path) -> None:
    with plots.style("paper", width=width, height=2, font="serif"):
        picture = plots.breakdown(Stub())
    root = ElementTree.parse(plots.save(picture, tmp_path / "x.svg")).getroot()
    assert [float(root.attrib[side].removesuffix("pt")) / 72 for side in ("width", "height")] == pytest.approx(
        [inches, 2]
    )
    texts = list(root.iter(f"{SVG}text"))
    assert {"total", "time [µs]"} <= {"".join(text.itertext()) for text in texts}
    assert all("serif" in text.attrib["style"] for text in texts)


def test_without_a_title_the_caption_has_it(tmp_path: Path) -> None:
    titled = plots.roofline(Stub(), GPU)
    with plots.style(title=False):
        bare = plots.roofline(Stub(), GPU)
    assert titled.caption == bare.caption
    assert "Roofline of NVIDIA A100" in bare.caption
    assert "4 / 2 heads, 1,024 queries x 1,024 keys, d = 64, bf16, causal mask" in bare.caption
    written = [plots.save(each, tmp_path / f"{i}.svg").read_text() for i, each in enumerate((titled, bare))]
    assert ["1,024 queries" in re.sub("<[^>]*>", "", text) for text in written] == [True, False]


def test_a_pdf_embeds_its_fonts_and_is_reproducible(tmp_path: Path) -> None:
    first, again = (plots.save(plots.roofline(Stub(), GPU), tmp_path / f"{n}.pdf").read_bytes() for n in range(2))
    assert first.startswith(b"%PDF")
    assert first == again
    assert b"/FontFile2" in first
    assert b"/Type3" not in first
    if shutil.which("xelatex") is None:
        with pytest.raises(iomodel.InputError, match=r"out: .pgf needs LaTeX \(.*\); allowed: .pdf"):
            plots.save(plots.roofline(Stub(), GPU), tmp_path / "x.pgf")


def test_threads_have_styles_of_their_own() -> None:
    def width(style: Any) -> float:
        with plots.style(style):
            return float(plots.roofline([], GPU).get_figwidth())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(width, ["paper", "slides"] * 4)) == [3.3, 10.0] * 4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"name": "poster"}, "style: 'poster' is unknown"),
        ({"width": "3 feet"}, "width: '3 feet' given; allowed: 1 to 60 in"),
        ({"height": 0}, "height: 0 given; allowed: 1 to 60 in"),
        ({"font": ""}, "font: '' given; allowed: a family of fonts"),
        ({"title": 1}, "title: 1 given; allowed: True or False"),
        ({"dark": "yes"}, "dark: 'yes' given; allowed: True or False"),
    ],
)
def test_a_wrong_style_is_one_line(more: dict[str, Any], message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message):
        plots.style(**more)


def test_names_of_roofs_cross_no_roof() -> None:
    for width in (3.3, 7.2):
        with plots.style(width=width):
            picture = plots.roofline([plots.Point("one", 4.0, 5e12)], "h100-sxm5")
        picture.draw_without_rendering()
        (axes,) = picture.axes
        boxes = [text.get_window_extent() for text in axes.texts if (text.get_gid() or "").startswith("name ")]
        assert len(boxes) == 2
        for line in axes.get_lines():
            if (line.get_gid() or "").startswith("roof"):
                ends = axes.transData.transform(line.get_xydata())
                for (x0, y0), (x1, y1) in pairwise(ends):
                    along = [(x0 + (x1 - x0) * k / 400, y0 + (y1 - y0) * k / 400) for k in range(401)]
                    assert not any(box.contains(*at) for box in boxes for at in along)


def test_every_part_of_a_total_is_named() -> None:
    picture = plots.breakdown([Stub(), Stub(algorithm="flash1", seconds=4e-4)])
    (legend,) = picture.legends
    assert {"slowest resource of each kernel", "launch"} <= {text.get_text() for text in legend.get_texts()}
    assert len({axes.get_xlim() for axes in picture.axes}) == 2  # each panel fills its axis


def test_no_cell_that_fits_crosses_a_limit() -> None:
    w = iomodel.Attention(heads=4, kv_heads=2, q_len=1024, head_dim=64, mask="causal")
    picture = plots.feasible_tiles("flash2", w, GPU)
    (mesh,) = picture.findobj(lambda artist: artist.get_gid() == "traffic")
    corners = mesh.get_coordinates()
    for u, v in zip(*(~mesh.get_array().mask).nonzero(), strict=True):
        (left, low), (right, high) = corners[u, v], corners[u + 1, v + 1]
        for limit in picture.findobj(lambda artist: (artist.get_gid() or "").startswith("limit")):
            for path in limit.get_paths():
                x, y = path.vertices.T
                assert not ((x > left) & (x < right - 1e-6) & (y > low) & (y < high - 1e-6)).any()


def test_a_command_takes_a_style(capsys: Any, tmp_path: Path) -> None:
    import json

    call = f"plot roofline flash2 --q-len 1024 --head-dim 64 --heads 4 --hardware {GPU} --json"
    code, out, err = typed(
        f"{call} --style paper --width '84 mm' --font serif --no-title --output {tmp_path}/x.pdf", capsys
    )
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["title"].startswith("Roofline of")
    assert "1,024 queries" in said["caption"]
    for more, paper in (("", 1.0), (" --dark", PAPER[0])):
        assert typed(f"{call}{more} --output {tmp_path}/z{len(more)}.png", capsys)[0] == 0
        assert matplotlib.image.imread(tmp_path / f"z{len(more)}.png")[2, 2, 0] == pytest.approx(paper, abs=1 / 255)
    code, _, err = typed(f"{call} --style poster --output {tmp_path}/y.pdf", capsys)
    assert (code, "style: 'poster' is unknown" in err) == (2, True)


SMALL = iomodel.Attention(heads=4, kv_heads=2, q_len=512, head_dim=64, mask="causal")
HEAD = iomodel.Attention(q_len=1, head_dim=64, mask="causal")
PICTURES: dict[str, Callable[[], Any]] = {
    "roofline": lambda: plots.roofline([Stub(), Stub(algorithm="flash1", seconds=4e-4)], GPU),
    "breakdown": lambda: plots.breakdown([Stub(), Stub(algorithm="flash1", seconds=4e-4)]),
    "crossover": lambda: plots.crossover(
        iomodel.crossovers(["standard", ("flash2", {"block_q": 64, "block_kv": 32})], HEAD, limit=4096)
    ),
    "staircase": lambda: plots.staircase(iomodel.staircase("flash2", HEAD.replace(q_len=256), alignment=16)),
    "tile_times": lambda: plots.tile_times(iomodel.kernels.tile_times("flash2", SMALL, GPU)),
    "feasible_tiles": lambda: plots.feasible_tiles(
        "flash2", SMALL, GPU, marks={"shipped": {"block_q": 128, "block_kv": 64}}
    ),
    "moves": lambda: plots.moves(
        iomodel.trace("flash2", HEAD.replace(q_len=64), tiles={"block_q": 16, "block_kv": 16})
    ),
    "on_chip": lambda: plots.on_chip("flash2", SMALL, GPU),
    "trace": lambda: iomodel.trace(
        "flash2", HEAD.replace(q_len=128), "sim-a100", tiles={"block_q": 32, "block_kv": 32}
    ).plot(),
    "traffic": lambda: plots.traffic_against_sram("flash2", HEAD.replace(q_len=256), sram=[2**14, 2**16], alignment=32),
    "parity": lambda: plots.parity([1e-3, 2e-4], [1.1e-3, 3e-4], family=["flash2", "flash3"], held_out=[True, False]),
}


@pytest.mark.parametrize("inches", [3.3, 7.0])
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_a_paper_is_whole(name: str, inches: float, tmp_path: Path) -> None:
    """No text leaves the paper, no two numbers of an axis touch, every axis says its quantity."""
    with plots.style("paper", width=inches):
        picture = PICTURES[name]()
    pdf = plots.save(picture, tmp_path / "x.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    picture.draw_without_rendering()
    paper = picture.bbox.padded(1)
    numbers = {axis: drawn_numbers(axis) for axes in picture.axes for axis in (axes.xaxis, axes.yaxis)}
    of_ticks = {text for axis in numbers for text in axis.get_ticklabels(which="both")}
    others = [text for text in picture.findobj(matplotlib.text.Text) if text not in of_ticks and text.get_visible()]
    for text in (*chain(*numbers.values()), *(text for text in others if text.get_text().strip())):
        box = text.get_window_extent()
        assert paper.contains(box.x0, box.y0), text
        assert paper.contains(box.x1, box.y1), text
    for axis, labels in numbers.items():
        boxes = [text.get_window_extent() for text in labels]
        assert not any(a.overlaps(b) for a, b in pairwise(boxes)), axis
        assert axis.get_label_text() or not any(re.fullmatch(r"[\d,.]+", text.get_text()) for text in labels), axis


def drawn_numbers(axis: Any) -> list[Any]:
    """Labels of the ticks between the ends of an axis."""
    labels = [tick.label1 for tick in axis._update_ticks()]
    return [label for label in labels if label.get_visible() and label.get_text().strip()]


def test_each_panel_of_a_paper_is_named() -> None:
    with plots.style("paper"):
        picture = plots.breakdown([Stub(), Stub(algorithm="flash1", seconds=4e-4)])
    picture.draw_without_rendering()
    for axes, name in zip(picture.axes, ("flash2", "flash1"), strict=True):
        assert any(text.get_text().startswith(name) for text in axes.texts)
