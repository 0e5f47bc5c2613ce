"""The explorer without a mouse, without motion, on a phone, and under the rules of axe-core."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel.explorer.call_kinds import kinds
from iomodel.explorer.page import page
from iomodel.explorer.payload import payload
from iomodel.explorer.scene import ROWS, SIDES, WIDTH

MASKS = ("full", "causal", "window left+right bottom-right", "window left+right top-left")
TYPED = {
    "batch": "2", "heads": "16", "kv_heads": "4", "q_len": "2048", "kv_len": "1024", "head_dim": "64",
    "value_dim": "32", "window_left": "511", "window_right": "3", "block_q": "64", "block_kv": "48",
    "sram_bytes": "65536", "alignment": "32",
}  # fmt: skip
"""A text for every field of numbers, which agrees with those before it."""
CONTROLS = "a[href], button, input, select, textarea, summary, canvas[tabindex], [tabindex='0']"
KEY = """(one) => one.id
  || `${one.tagName} ${one.getAttribute("aria-label") ?? one.dataset.name ?? one.textContent.trim()}`"""
SHOWN = f"""() => [...document.querySelectorAll("{CONTROLS}")].filter((one) => !one.disabled && one.checkVisibility())
  .map({KEY})"""
WATCHED = """() => { window.clicked = [];
  addEventListener("click", (event) => clicked.push(event.target), true); }"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two algorithms."""
    names = ["flash2", "split_kv"]
    used = [kind for kind in kinds(names) if kind.mask in MASKS and kind.direction == "forward"]
    target = tmp_path_factory.mktemp("explorer") / "page.html"
    target.write_text(page(payload(names, ["h100-sxm5", "a100-sxm4-80gb"], only=used)))
    return target


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_axe_finds_nothing_serious(opened: Any, scheme: str, width: int) -> None:
    """In a page with everything open: the form, a pinned call, a step of the tour, a fault."""
    shown = opened(viewport={"width": width, "height": 900}, color_scheme=scheme)
    shown.tab.evaluate(
        """() => { const { page, scene } = window.iomodel;
        scene.seek();
        page.compare.toggle();
        page.tour.show(2);
        for (const one of document.querySelectorAll("details")) one.open = true;
        page.change({ q_len: "many" }, "q_len"); }"""
    )
    assert shown.tab.is_visible("#fault")
    shown.tab.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = shown.tab.evaluate("() => axe.run(document)")
    assert [one for one in found["violations"] if one["impact"] != "minor"] == []
    assert {"color-contrast", "label", "region"} <= {one["id"] for one in found["passes"]}


def test_every_control_is_reached_and_changed_by_keyboard(opened: Any) -> None:
    shown = opened("mask=window&window_left=9&window_right=0")
    tab, keys = shown.tab, shown.tab.keyboard
    tab.evaluate(WATCHED)
    reached: dict[str, None] = {}
    for _ in range(200):
        keys.press("Tab")
        kind, name = tab.evaluate("[document.activeElement.tagName, document.activeElement.name]")
        control = tab.evaluate(f"({KEY})(document.activeElement)")
        if kind == "BODY" or control == next(iter(reached), None):
            break
        reached[control] = None
        if kind == "SELECT":
            _choose(tab, name)
        elif tab.evaluate("document.activeElement.type") == "range":
            _slide(tab)
        elif name in TYPED:
            keys.press("Control+A")
            keys.type(TYPED[name])
            keys.press("Enter")
            assert shown.state[name] == TYPED[name]
            assert tab.is_hidden("#fault"), name
        elif kind in ("BUTTON", "SUMMARY"):
            for _ in range(2 if kind == "SUMMARY" else 1):
                keys.press("Enter")
            assert tab.evaluate("clicked.at(-1) === document.activeElement || document.activeElement.id === 'results'")
    else:
        pytest.fail(f"the keyboard cannot leave the page: {list(reached)[-12:]}, {control}")
    assert set(tab.evaluate(SHOWN)) <= reached.keys()
    assert reached.keys() >= {f"field-{name}" for name in TYPED}


def _choose(tab: Any, name: str) -> None:
    """Choose another entry of the focused list by keys."""
    before, many = tab.evaluate("[document.activeElement.value, document.activeElement.options.length]")
    last = tab.evaluate("document.activeElement.options[document.activeElement.options.length - 1].value")
    for key in ("Home", "End") if before == last else ("End", "Home"):
        tab.keyboard.press(key)
        if tab.evaluate("document.activeElement.value") != before or many == 1:
            break
    chosen = tab.evaluate("document.activeElement.value")
    assert many == 1 or chosen != before, name
    assert tab.is_hidden("#fault"), name
    if name == "mask":
        tab.keyboard.press("End")  # a window, whose widths come next


def _slide(tab: Any) -> None:
    before = tab.evaluate("document.activeElement.value")
    tab.keyboard.press("ArrowRight" if before != tab.evaluate("document.activeElement.max") else "ArrowLeft")
    assert tab.evaluate("document.activeElement.value") != before


def test_the_first_picture_moves_within_a_second_of_the_page(opened: Any) -> None:
    """Counted in frames: a loaded machine draws late, not less."""
    tab = opened(reduced_motion="no-preference").tab
    began = tab.evaluate("performance.now()")
    tab.wait_for_function("window.iomodel.scene.share > 0.02")  # 0.2 s of 10 s
    counters = [text.split(" ")[0] for text in tab.locator(".half .counter").all_inner_texts()]  # "8,192 B of ..."
    assert all(int(text.replace(",", "")) > 0 for text in counters)
    moved = tab.evaluate("performance.now()") - began
    assert moved < 5 * 1000
    tab.press("#watch-time", "End")
    call = iomodel.Attention(q_len=ROWS, head_dim=WIDTH)
    costs = [iomodel.cost(name, call, tiles, **options).hbm_bytes for name, _, tiles, options in SIDES]
    assert tab.locator(".half .counter").all_inner_texts() == [f"{total:,} B moved; done" for total in costs]


def test_a_frame_of_a_time_before_the_start_moves_nothing_back(visited: Any) -> None:
    """Browsers give a frame the time at which its drawing was due, which may be before the page asked for it."""
    share = visited().tab.evaluate(
        """() => {
          const { scene } = window.iomodel, ask = window.requestAnimationFrame;
          let frame = null;
          scene.pause();
          scene.share = 0;
          window.requestAnimationFrame = (tick) => { frame = tick; return 1; };
          scene.start();
          frame(performance.now() - 500);
          const share = scene.share;
          frame(performance.now());
          window.requestAnimationFrame = ask;
          scene.pause();
          return [share, scene.share > 0];
        }"""
    )
    assert share == [0, True]


def test_reduced_motion_moves_nothing(opened: Any) -> None:
    tab = opened(reduced_motion="reduce").tab
    before = tab.evaluate("window.iomodel.scene.share")
    tab.wait_for_timeout(300)
    assert tab.evaluate("[window.iomodel.scene.share, window.iomodel.scene.running]") == [before, False]


def test_a_phone_shows_every_part_without_scrolling_sideways(opened: Any) -> None:
    shown = opened("mask=window", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    tab = shown.tab
    tab.evaluate("document.querySelector('#form-details').open = true")
    tab.tap("#pin")
    tab.tap("#tour button >> nth=1")
    tab.evaluate("document.querySelector('#where').open = true")
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    small = tab.evaluate(
        """() => [...document.querySelectorAll("button, select, input:not([type=range])")]
        .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40)
        .map((one) => one.outerHTML)"""
    )
    assert small == []


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_text_of_a_legend_leaves_its_sample_whole(opened: Any, width: int) -> None:
    tab = opened(viewport={"width": width, "height": 844}).tab
    widths = tab.evaluate(
        """() => [...document.querySelectorAll(".legend svg")]
        .map((one) => [one.getBoundingClientRect().width, Number(one.getAttribute("width"))])"""
    )
    assert len(widths) >= 8
    assert all(seen == declared > 0 for seen, declared in widths)
