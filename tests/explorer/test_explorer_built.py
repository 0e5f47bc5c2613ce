"""The page of all calls: kept for each state of the package, small, and ready soon."""

from __future__ import annotations

import re
from contextlib import closing
from importlib.resources import files
from itertools import product
from pathlib import Path
from random import Random
from runpy import run_path
from typing import Any

import pytest

import iomodel
from iomodel import Layout, Plan, list_hardware, plan
from iomodel.algorithms import list_algorithms
from iomodel.explorer import built, explore_page
from iomodel.explorer.built import whole_page
from iomodel.explorer.serving import MEANING, ServingGrid
from tests.support.browser import Opened
from tests.support.inside import derived

ROOT = Path(__file__).parents[2]
WORDS = (ROOT / "docs" / "explorer.md").read_text(encoding="utf-8")


def stated(pattern: str) -> float:
    """Find a figure of docs/explorer.md."""
    found = re.search(pattern, WORDS)
    assert found is not None, pattern
    return float(found[1])


def test_the_page_has_the_stated_size_and_is_ready_soon(opened: Any, file: Path) -> None:
    """Times are stated for a quiet machine, so that they are held five times over."""
    assert file.stat().st_size < 430_000
    assert file.stat().st_size / 1e6 == pytest.approx(stated(r"([\d.]+) MB with all algorithms"), rel=0.2)
    shown = opened()
    assert shown.timing("painted") < 5e3 * stated(r"the animation stands after about ([\d.]+) s")
    assert shown.timing("ready") < 5e3 * stated(r"the first answer after about ([\d.]+) s")
    assert shown.state["algorithm"] == "flash2"
    assert shown.tab.locator("#field-algorithm option").count() == len(list_algorithms())


def test_the_page_plays_the_moves_of_every_algorithm(browser: Any, shared: Opened, file: Path) -> None:
    """The pages of the algorithms link to these calls; the animation has the kernels of the trace."""
    drawings = run_path(str(ROOT / "docs" / "_ext" / "drawings.py"))
    for name in built.shipped_algorithms():
        shared.visit(drawings["address"](name).split("#")[1])
        assert shared.state["algorithm"] == name
        assert shared.tab.is_hidden("#fault"), name
        kernels, steps = shared.tab.evaluate(
            """() => { const { page: { view }, Walker } = window.iomodel, { kernels } = view.call.nest;
            return [kernels.map(({ title }) => title),
              kernels.reduce((sum, _, i) => sum + [...new Walker(view.call, view.tiles, i).run()].length, 0)]; }"""
        )
        if name != "standard":  # whose drawing is of its tiled form
            assert {event.kernel for event in drawings["trace"](name).events} <= {*kernels}
        assert steps > 4
    with closing(browser.new_context()) as context:
        tab = context.new_page()
        tab.goto(file.as_uri() + drawings["address"]("nsa").removeprefix("../explorer-page.html"))
        tab.wait_for_function("window.iomodel?.page.animation.count > 2")
        assert tab.evaluate("document.getElementById('animation').getBoundingClientRect().top < innerHeight")


NAMED = "label, button, legend, td, code, .card strong, th[scope=col]"
SPLIT = """(named) => [...document.querySelectorAll(named)].filter((one) => {
  const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walker.nextNode()) {
    for (const word of walker.currentNode.data.matchAll(/\\S+/g)) {
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) return true;
    }
  }
  return one.tagName === "LABEL" && one.scrollWidth > one.clientWidth + 1;
}).map((one) => one.textContent)"""
"""Texts of which a word is on two lines, or wider than its field."""


@pytest.mark.parametrize("link", ["", "direction=both", "algorithm=dsa"])
def test_no_word_is_split(visited: Any, link: str) -> None:
    shown = visited(link)
    shown.tab.evaluate('document.getElementById("form-details").open = true')
    for width in (390, 821, 1181, 1280, 1440, 1300):
        shown.tab.set_viewport_size({"width": width, "height": 844})
        assert shown.tab.evaluate(SPLIT, NAMED) == [], width


def test_the_page_of_a_state_is_built_once(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built_pages: list[str] = []
    monkeypatch.setattr(explore_page, "built", lambda *_, **__: built_pages.append("built again") or "built again")
    every = list_algorithms(), list_hardware()
    assert (
        iomodel.explorer.explore()
        == iomodel.explorer.explore(algorithms=every[0], hardware=every[1])
        == file.read_text()
    )
    assert iomodel.explorer.explore(tmp_path / "copy.html").read_text() == file.read_text()
    assert not built_pages
    assert (
        iomodel.explorer.explore(algorithms=every[0][1:])
        == iomodel.explorer.explore(hardware=every[1][1:])
        == "built again"
    )
    (tmp_path / "algorithms.py").write_text("changed")
    monkeypatch.setattr(built, "specs_folder", lambda: tmp_path)
    assert iomodel.explorer.explore() == "built again"


def test_a_change_of_a_room_that_the_page_does_not_use_keeps_it() -> None:
    graph = run_path(str(ROOT / "docs" / "_ext" / "layers.py"))["imports"]()
    seen: set[str] = set()
    todo = [name for name in graph if name.removeprefix("iomodel.") in ("explorer.explore_page", "explorer.serving")]
    todo += [name for name in graph if name.removeprefix("iomodel.") in ("explorer.page", "explorer.payload")]
    assert len(todo) == 4
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += graph[name]
    rooms = {name.removeprefix("iomodel.").split(".")[0] for name in seen}
    assert "planning" in rooms
    assert not rooms & built.UNUSED
    assert all(
        path.split("/")[1] not in built.UNUSED for path, _ in built._sources(files("iomodel"), "iomodel", built.UNUSED)
    )


def test_a_command_keeps_the_page_and_a_call_does_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(derived, "_folder", lambda: tmp_path / "derived")
    monkeypatch.setattr(explore_page, "built", lambda *_, **__: "the page")
    assert whole_page() == "the page"
    derived.keep()
    assert not (tmp_path / "derived").exists()
    monkeypatch.setattr(derived, "pending", {})
    assert whole_page(progress=True) == "the page"
    derived.keep()
    monkeypatch.setattr(explore_page, "built", lambda *_, **__: "another page")
    assert whole_page() == "the page"


POINTS = Random(7).sample(list(product(*(getattr(ServingGrid(), name) for name in MEANING))), 10)
EDGES = [
    ("deepseek-v3", "h100-sxm5", 8, 2048, 16),  # the weights do not fit
    ("llama-3.1-70b", "h100-sxm5", 4, 16384, 256),  # the requests do not fit
]


def planned(model: str, device: str, gpus: int, prompt: int, batch: int) -> Plan | str:
    """Plan a point of the serving view, or return the reason for which there is no plan."""
    arguments = {"count": gpus, "layout": Layout(tensor_parallel=gpus), "prompt": prompt, "output": 256}
    try:
        return plan(model, device, batch=batch, **arguments)
    except iomodel.IOModelError as error:
        return str(error)


@pytest.mark.parametrize("point", [*POINTS, *EDGES], ids=str)
def test_the_serving_view_shows_a_plan(shared: Opened, point: tuple[str, str, int, int, int]) -> None:
    fields = dict(zip((f"serve_{name}" for name in MEANING), map(str, point), strict=True))
    shared.tab.evaluate("(fields) => window.iomodel.page.change(fields)", fields)
    texts = (shared.tab.locator(f"#plans {part}").all_inner_texts() for part in ("dt", "dd"))
    cards = dict(zip(*texts, strict=True))
    found = planned(*point)
    if isinstance(found, str):
        most = re.search(r"at most (\d[\d,]*\d|\d)", found)
        reason = found if most is None else f"do not fit: at most {most[1]}, at "
        assert reason in shared.text("#plans p >> nth=0")
        assert cards.get("Fits") == (None if most is None else f"no\nat most {most[1]} requests")
        assert "Time per output token" not in cards
        return
    exact = shared.tab.evaluate(
        "(place) => window.iomodel.page.serving.data.plans[place]", "|".join(map(str, point[:4]))
    )
    assert exact["batches"][str(point[4])] == {
        "ttft": found.ttft,
        "tpot": found.tpot,
        "tokens_per_second": found.tokens_per_second / point[2],
        "decode_bound": found.decode_bound,
    }
    assert exact["notes"] == list(found.prefill.model.notes)  # a better layout is another place of the view
    assert all(note in shared.text("#plans") for note in exact["notes"])
    assert cards["Fits"] == f"yes\nat most {found.memory.fits:,} requests"
    assert cards["Time to first token"].split("\n")[1] == f"bound by {found.prefill_bound}"
    number, unit = cards["Time per output token"].split("\n")[0].split()
    assert float(number) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit] == pytest.approx(found.tpot, rel=5e-3)


def test_a_place_of_the_serving_view_is_in_the_link(visited: Any) -> None:
    shown = visited("serve_model=llama-3.1-70b&serve_gpus=8&serve_batch=64")
    assert shown.tab.input_value("#field-serve_gpus") == "8"
    before = shown.text("#plans dl")
    shown.tab.select_option("#field-serve_batch", "1")
    assert shown.text("#plans dl") != before
    assert shown.tab.url.split("#")[1] == "serve_model=llama-3.1-70b&serve_gpus=8&serve_batch=1"
    shown.tab.go_back()
    assert shown.text("#plans dl") == before
    command = shown.text("#plans code").split()
    assert command[:2] == ["iomodel", "plan"]
    assert "--batch 64" in " ".join(command)
    shown.tab.evaluate("location.hash = 'serve_gpus=3'")
    shown.tab.wait_for_selector("#fault:not([hidden])")
    assert shown.text("#fault").startswith("serve_gpus: '3' is unknown; ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_serving_view_fits_a_phone_and_takes_keys(opened: Any, scheme: str) -> None:
    tab = opened("serve_gpus=4", viewport={"width": 390, "height": 844}, color_scheme=scheme).tab
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    tab.focus("#field-serve_model")
    for name in MEANING:
        assert tab.evaluate("document.activeElement.name") == f"serve_{name}"
        tab.keyboard.press("End")
        tab.keyboard.press("Tab")
    assert tab.url.split("#")[1] == "&".join(f"serve_{name}={getattr(ServingGrid(), name)[-1]}" for name in MEANING)
    tab.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = tab.evaluate("() => axe.run(document.querySelector('#serving'))")
    assert [one for one in found["violations"] if one["impact"] != "minor"] == []
