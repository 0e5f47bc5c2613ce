"""Small drawings of results are SVG to scale."""

from xml.etree import ElementTree

import pytest

import iomodel
from iomodel.common.sketch import BAR, BarRow, bars

W = iomodel.Attention(heads=8, q_len=2048, head_dim=128, mask="causal")
GPU = "h100-sxm5"


def drawings(result):
    """Parse the drawings below the table of a result."""
    html = result._repr_html_()
    assert html.startswith(("<table>", "<pre>"))
    drawn = html[html.index("<svg") :] if "<svg" in html else ""
    return list(ElementTree.fromstring(f"<div>{drawn}</div>"))


def filled(drawing):
    """List the widths of the parts by name."""
    parts = [rect for rect in drawing.iter("{http://www.w3.org/2000/svg}rect") if len(rect)]
    return [(rect[0].text, float(rect.get("width"))) for rect in parts]


def test_a_solution_shows_shares_and_times():
    best = iomodel.solve("flash3", W, GPU)
    shares, times, _ = drawings(best)
    use = {name: r.used / r.limit for name, r in best.placed.resources.items() if r.limit}
    assert filled(shares) == [(name, pytest.approx(BAR * share, abs=0.1)) for name, share in use.items()]
    seconds = {"these tiles": best.seconds, "shipped": best.certificate.shipped.seconds}
    widths = dict(filled(times))
    assert widths["shipped"] / widths["these tiles"] == pytest.approx(seconds["shipped"] / best.seconds, rel=0.01)
    (alone,) = drawings(iomodel.solve("flash2", W, sram_bytes=100_000))
    ((name, width),) = filled(alone)
    assert name == "SRAM"
    assert 0 < width <= BAR


@pytest.mark.parametrize("name", ["flash3", "split_kv"])
def test_a_solution_on_a_device_shows_the_times_of_all_tiles(name):
    *_, shown = drawings(iomodel.solve(name, W, GPU, packed=False))
    every = iomodel.kernels.tile_times(name, W, GPU, packed=False)
    assert ElementTree.tostring(shown) == ElementTree.tostring(drawings(every)[0])
    cells = list(shown.iter("{http://www.w3.org/2000/svg}rect"))
    assert len(cells) == len(every.records())
    texts = [text.text for text in shown.iter("{http://www.w3.org/2000/svg}text")]
    assert {*every.names, "F", f"{every.second_sizes[0]:,}", f"{every.second_sizes[-1]:,}"} <= {*texts}
    layout = iomodel.kernels.implementation("flash3", "flash-attention-3").residency["forward"]
    assert (
        len(drawings(iomodel.solve("flash3", W, GPU, implementation=iomodel.kernels.Implementation.of(*layout)))) == 2
    )


def test_an_estimate_shows_its_sum():
    estimate = iomodel.estimate("flash2", W, GPU)
    (drawing,) = drawings(estimate)
    widths = filled(drawing)
    parts = len(widths) - len(estimate.breakdown)
    assert sum(width for _, width in widths[:parts]) == pytest.approx(BAR, abs=0.5)
    for name, width in widths[parts:]:
        assert width == pytest.approx(BAR * estimate.breakdown[name] / estimate.seconds, abs=0.1)


def test_a_plan_shows_its_memory():
    plan = iomodel.plan("llama-3-8b", GPU, prompt=2048, output=256)
    memory, times = drawings(plan)
    widths = dict(filled(memory))
    assert widths["weights"] == pytest.approx(BAR * plan.memory.weights / plan.memory.capacity, abs=0.1)
    assert sum(widths.values()) <= BAR + 0.5
    assert len(filled(times)) == 2


def test_tile_times_are_a_map():
    times = iomodel.kernels.tile_times("flash2", W, "a100-sxm4-80gb")
    (drawing,) = drawings(times)
    cells = list(drawing.iter("{http://www.w3.org/2000/svg}rect"))
    assert len(cells) == len(times.records())
    letters = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "F" in letters


def test_names_are_escaped():
    assert "<b>" not in bars([BarRow("<b>", {"<b>": 1.0}, "<b>")])
