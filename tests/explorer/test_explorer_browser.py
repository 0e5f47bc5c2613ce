"""The explorer in a browser: what it computes, how fast it stands, that the keyboard and a link are enough."""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode
from functools import cache
from importlib.metadata import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import iomodel
from iomodel import plots
from iomodel.explorer.form import TOUR
from iomodel.explorer.page import page
from iomodel.explorer.payload import payload
from iomodel.explorer.scene import ROWS, SIDES, TILES, WIDTH
from tests.support.browser import Opened
from tests.support.explorer_calls import COUNTS, Drawn, counted, drawn
from tests.support.inside import count, labels, main, quantity, time_shares

CALL = iomodel.Attention(q_len=ROWS, head_dim=WIDTH)


@cache
def points() -> list[Drawn]:
    """Calls to count, drawn when a test asks: drawing compiles their formulas."""
    return [*drawn(180, seed=1), *drawn(30, seed=2, largest=10**12)]


def test_the_browser_counts_what_python_counts(visited: Any) -> None:
    tab = visited().tab
    body = f"(jobs) => jobs.map((job) => ({COUNTS.strip()})(window.iomodel.calls, job))"
    jobs = [{"fields": c.fields, "tiles": {name: str(size) for name, size in c.tiles.items()}} for c in points()]
    found = tab.evaluate(body, jobs)
    assert len(points()) >= 200
    for call, counts in zip(points(), found, strict=True):
        assert counts == counted(call), call


def test_the_first_answer_is_that_of_python(opened: Any) -> None:
    shown = opened("q_len=8192&mask=causal")
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    found, best = iomodel.estimate("flash2", w, "h100-sxm5"), iomodel.solve("flash2", w, "h100-sxm5")
    tiles = ", ".join(f"{name}\xa0=\xa0{size:,}" for name, size in found.tiles.items())  # on one line
    assert shown.text("#what").endswith(tiles)
    assert f"{found.requested_bytes:,} B" in shown.text("#cards")
    assert f"{found.streamed_bytes:,} B" in shown.text("#cards")
    assert f"{1e3 * found.seconds:#.3g} ms" in shown.text("#cards")
    assert "bound by matrix units" in shown.text("#cards")
    assert found.limited_by == "matrix"
    times = shown.tab.locator("#time tbody tr").all_inner_texts()
    assert len(times) == len(found.breakdown) + 1
    assert shown.tab.evaluate("window.iomodel.page.map.best.map(Number)") == [
        best.tiles[name] for name in ("block_q", "block_kv")
    ]
    assert f"{found.cost.reads['K']:,}" in shown.text("#moved")


def test_one_memory_is_a_switch(visited: Any) -> None:
    shown = visited("implementation=textbook&q_len=8192&mask=causal")
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    best = iomodel.solve("flash2", w, "h100-sxm5", implementation="textbook")
    tiles = ", ".join(f"{name}\xa0=\xa0{size:,}" for name, size in best.tiles.items())
    assert shown.text("#what").endswith(tiles)
    assert f"{best.cost.hbm_bytes:,} B" in shown.text("#cards")
    assert f"{best.footprint:,} of 232,448 B" in shown.text("#footprint")
    seconds = iomodel.estimate("flash2", w, "h100-sxm5", implementation="textbook").seconds
    assert shown.tab.evaluate("window.iomodel.page.view.time.seconds") == pytest.approx(seconds, rel=1e-12)


def test_every_picture_is_drawn(opened: Any) -> None:
    shown = opened()
    assert "#" not in shown.tab.url
    shown.tab.wait_for_selector("#traffic svg .solved")
    assert shown.tab.locator("#roofline svg .here").count() == 1
    assert shown.tab.locator("#formulas math").count() >= 7
    for canvas in ("#map canvas", "#animation canvas"):
        inked = shown.tab.evaluate(
            """(name) => { const c = document.querySelector(name);
            const {data} = c.getContext("2d").getImageData(0, 0, c.width, c.height);
            return new Set(new Uint32Array(data.buffer)).size; }""",
            canvas,
        )
        assert inked > 3, canvas


def test_a_link_holds_the_whole_state(opened: Any, visited: Any) -> None:
    link = "algorithm=split_kv&mask=window&window_left=100&window_right=0&q_len=512&splits=4&lse=off&block_q=48"
    first = visited(link)
    assert set(first.tab.url.split("#")[1].split("&")) == set(link.split("&"))  # what differs, and nothing else
    again = opened(first.tab.url.split("#")[1])
    assert first.state == again.state
    assert first.state["block_q"] == "48"
    assert first.state["lse"] == "off"
    assert first.text("#totals") == again.text("#totals")
    assert first.text("#what") == again.text("#what")


def test_an_open_page_shows_the_call_of_a_link_as_a_new_page_does(opened: Any, visited: Any) -> None:
    """So that tests may share a page, whatever calls and faults were on it before."""
    last = "algorithm=flash3&mask=window&window_left=63&window_right=0&serve_gpus=4"
    for link in ("direction=both&hardware=a100-sxm4-80gb", "serve_batch=1&sram_bytes=1000", "q_len=many", last):
        shown = visited(link)
    new = opened(last)
    assert shown.state == new.state
    for part in ("#asked", "#answered", "#held", "#fields", "#results"):
        assert shown.text(part) == new.text(part)
    values = """() => [document.title, ...[...document.querySelectorAll("input, select")].map(({ value }) => value)]"""
    assert shown.tab.evaluate(values) == new.tab.evaluate(values)


def test_back_undoes_a_change(visited: Any) -> None:
    shown = visited()
    before = shown.state
    shown.tab.select_option("#field-mask", "causal")
    shown.tab.fill("#field-q_len", "8K")
    shown.tab.keyboard.press("Tab")
    assert (shown.state["mask"], shown.state["q_len"]) == ("causal", "8192")
    shown.tab.go_back()
    assert (shown.state["mask"], shown.state["q_len"]) == ("causal", "4096")
    assert shown.tab.input_value("#field-q_len") == "4096"
    shown.tab.go_back()
    assert shown.state == before
    shown.tab.go_forward()
    assert shown.state["mask"] == "causal"
    shown.tab.fill("#field-q_len", "")
    shown.tab.keyboard.type("8K")
    shown.tab.keyboard.press("Enter")
    assert shown.tab.input_value("#field-q_len") == "8K"
    shown.tab.go_back()
    assert shown.tab.input_value("#field-q_len") == "4096"  # with the focus in the field


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("hardware=h100-smx5", "hardware: 'h100-smx5' is unknown; did you mean 'h100-sxm5'? allowed: "),
        ("hardware=v100-pcie", "hardware: 'v100-pcie' is a family; allowed: v100-pcie-16gb, v100-pcie-32gb"),
        ("tour=7", "tour: '7' given; allowed: an integer from 1 to 6"),
        ("algorithm=flash", "algorithm: 'flash' is unknown; did you mean 'flash1'?"),
        ("q_len=-3", "q_len: '-3' given; allowed: an integer from 1"),
        ("heads=32&kv_heads=7", "kv_heads: 7 does not divide heads = 32"),
        ("colour=red", "field: 'colour' is unknown; allowed: hardware,"),
        ("splits=2", "option of flash2: 'splits' is unknown; allowed: lse, packed"),
        ("q_len=16&q_len=32", "q_len: given twice"),
        ("q_len=%E0%A4%A", "q_len: '%E0%A4%A' given"),
        ("q_len", "link: 'q_len' given; allowed: field=value"),
        ("algorithm=linformer&mask=causal", "mask: 'causal' given; "),
        ("algorithm=linformer&projected=9999", "projected: 9999 given; allowed: up to kv_len = 4096"),
        ("<img src=x onerror=alert(1)>=1", "field: "),
    ],
)
def test_an_error_in_a_link_is_said_and_changes_nothing(opened: Any, visited: Any, link: str, message: str) -> None:
    """Both as the page opens, for a link of each kind, and as the link of an open page, which the same code reads."""
    plain = visited()
    assert plain.tab.is_hidden("#fault")
    state, good = plain.state, plain.text("#totals")
    if link in ("hardware=h100-smx5", "tour=7", "q_len=%E0%A4%A") or "<" in link:
        shown = opened(link)
        assert shown.text("#fault").startswith(message)
        assert shown.state == state
        assert shown.text("#totals") == good
    plain.visit(link)
    assert plain.text("#fault").startswith(message)
    assert plain.state == state
    assert plain.text("#totals") == good


def test_the_keyboard_is_enough(opened: Any) -> None:
    shown = opened()
    keys = shown.tab.keyboard
    keys.press("Tab")
    assert shown.tab.evaluate("document.activeElement.textContent") == "Skip to the results"
    for _ in range(60):
        keys.press("Tab")
        if shown.tab.evaluate("document.activeElement.id") == "field-q_len":
            break
    keys.press("Control+A")
    keys.type("1024")
    keys.press("Tab")
    assert shown.state["q_len"] == "1024"
    for _ in range(60):
        if shown.tab.evaluate("document.activeElement.tagName") == "CANVAS":
            break
        keys.press("Tab")
    keys.press("ArrowRight")
    keys.press("ArrowDown")
    keys.press("Enter")
    assert shown.state["block_q"] != "auto"
    assert shown.state["block_kv"] != "auto"
    assert "block_q =" in shown.text("#live") or shown.tab.wait_for_function("live.textContent.includes('tiles')")
    for _ in range(60):
        keys.press("Tab")
        if shown.tab.evaluate("document.activeElement.textContent") == "Step":
            break
    keys.press("Enter")
    assert shown.text("#animation .readout").startswith("Step 1: load Q")


def test_a_wrong_number_in_the_form_is_said_and_kept(visited: Any) -> None:
    shown = visited()
    before = shown.text("#totals")
    shown.tab.fill("#field-q_len", "many")
    shown.tab.keyboard.press("Tab")
    assert shown.text("#fault").startswith("q_len: 'many' given; allowed: an integer from 1")
    assert shown.tab.get_attribute("#field-q_len", "aria-invalid") == "true"
    assert shown.tab.input_value("#field-q_len") == "many"
    assert shown.text("#totals") == before
    shown.tab.fill("#field-q_len", "100")
    shown.tab.keyboard.press("Tab")
    assert shown.tab.is_hidden("#fault")


def test_heads_can_be_typed_before_kv_heads(visited: Any) -> None:
    shown = visited()
    shown.tab.fill("#field-heads", "12")
    shown.tab.keyboard.press("Tab")
    assert "8 does not divide heads = 12" in shown.text("#fault")
    assert shown.tab.input_value("#field-heads") == "12"
    assert shown.state["heads"] == "32"
    shown.tab.fill("#field-kv_heads", "4")
    shown.tab.keyboard.press("Tab")
    assert shown.tab.is_hidden("#fault")
    assert (shown.state["heads"], shown.state["kv_heads"]) == ("12", "4")


def test_numbers_may_have_separators_and_suffixes(visited: Any) -> None:
    shown = visited("q_len=4K&kv_len=8,192&sram_bytes=64%20KiB")
    assert [shown.state[name] for name in ("q_len", "kv_len", "sram_bytes")] == ["4096", "8192", "65536"]
    digits = ["1.5k", "1.5K", "1_000", "12,34", "4kk", "2M", "1.00001k", "007", "8i"]
    found = shown.tab.evaluate("(all) => all.map(window.iomodel.digits)", digits)
    suffixed = [str(count(text)) for text in digits[:2]]
    assert found == [*suffixed, "1000", "12,34", "4kk", "2097152", "1.00001k", "7", "8i"]
    sizes = ["64 KiB", "64kB", "1.5MiB"]
    found = shown.tab.evaluate("(all) => all.map(window.iomodel.digits)", sizes)
    assert found == [str(quantity("sram_bytes", text)) for text in sizes]


def test_a_window_has_widths_at_once(visited: Any) -> None:
    shown = visited("q_len=8192")
    full = shown.text("#totals")
    shown.tab.select_option("#field-mask", "window")
    assert (shown.state["window_left"], shown.state["window_right"]) == ("1023", "0")
    assert shown.text("#totals") != full


def test_where_nothing_fits_no_figure_is_shown(visited: Any) -> None:
    shown = visited("sram_bytes=1000")
    assert shown.text("#what").endswith("no tile fits")
    assert shown.tab.locator("#cards .card").count() == 1
    assert "No tile fits 1,000 B; at least" in shown.text("#cards")
    assert shown.tab.is_hidden("#map canvas")
    assert "No tile fits 1,000 B; at least" in shown.text("#map")


def test_the_map_says_what_it_counts_and_a_single_tile_has_no_second_name(visited: Any) -> None:
    shown = visited("implementation=textbook&algorithm=tiled_query&q_len=512")
    assert "this kernel has one tile" in shown.tab.evaluate("window.iomodel.page.map.title('no_tile')")
    assert "all requests of the call" in shown.text("#map")
    shown = visited("algorithm=standard&tiled=on&implementation=textbook")
    assert " at the least" in shown.text("#map")
    assert "no_tile" not in shown.text("body")


def test_every_field_is_on_the_first_screen_of_the_form(opened: Any) -> None:
    shown = opened("mask=window", viewport={"width": 1440, "height": 900})
    boxes = shown.tab.evaluate(
        """() => { const form = document.querySelector("#form");
        return [form.scrollHeight - form.clientHeight, form.getBoundingClientRect().height]; }"""
    )
    assert boxes[0] <= 1
    assert boxes[1] < 400


IN_VIEW = """(id) => {
  const panel = document.querySelector(".toured"), strip = document.querySelector("#tour").getBoundingClientRect();
  const { top } = panel.getBoundingClientRect();
  return panel === document.getElementById(id).closest("section") && top >= strip.bottom && top < innerHeight - 200;
}"""
"""True if the panel of a step is outlined, below the strip of the tour and on the screen."""


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_the_first_screen_answers_beside_both_scenes(opened: Any, size: tuple[int, int]) -> None:
    shown = opened(viewport={"width": size[0], "height": size[1]})
    shown.tab.press("#watch-time", "End")
    shown.tab.evaluate("scrollTo(0, 0)")
    ends = shown.tab.evaluate(
        """() => ["#answered", "#scene canvas", ".half + .half canvas", ".half + .half .less"]
        .map((one) => document.querySelector(one).getBoundingClientRect())
        .map(({ left, top, bottom }) => [left, top, bottom])"""
    )
    assert all(0 <= top < bottom <= size[1] for _, top, bottom in ends)
    assert ends[1][1] == ends[2][1]  # side by side
    costs = [iomodel.cost(name, CALL, tiles, **options).hbm_bytes for name, _, tiles, options in SIDES]
    assert shown.text(".half + .half .less") == f"{costs[0] / costs[1]:.1f} x less"
    shown.tab.select_option("#ask-preset", "llama-3.1-8b")
    shown.tab.select_option("#ask-hardware", "a100-sxm4-80gb")
    call = iomodel.Attention(heads=32, kv_heads=8, q_len=4096, head_dim=128, mask="causal")
    found = iomodel.estimate("flash2", call, "a100-sxm4-80gb")
    answer = shown.text("#answered")
    assert f"{1e3 * found.seconds:#.3g} ms" in answer or f"{1e6 * found.seconds:#.3g} µs".replace(". ", " ") in answer
    assert f"tile {found.tiles['block_q']} x {found.tiles['block_kv']}" in answer


def test_the_roofline_has_the_achieved_rate(visited: Any) -> None:
    shown = visited("q_len=8192&mask=causal")
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    found = iomodel.estimate("flash2", w, "h100-sxm5")
    dot = [float(shown.tab.get_attribute("#roofline .here", f"data-{name}")) for name in ("rate", "intensity")]
    assert dot == pytest.approx([found.flops_per_second, found.intensity], rel=1e-9)
    gap = plots.roofs("h100-sxm5").at(found.intensity) / found.flops_per_second
    assert shown.tab.text_content("#roofline .gap") == f"{gap:.2g} x: matrix units"
    tail = time_shares(found.kernels, found.seconds)["tail"]
    assert f"tail, {found.seconds / (found.seconds - tail):.2f} x" in shown.text("#roofline .note")


def test_a_footprint_is_that_of_the_kernel(visited: Any) -> None:
    shown = visited("q_len=8192&mask=causal&algorithm=flash3")
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    found = iomodel.estimate("flash3", w, "h100-sxm5")
    held = iomodel.check("flash3", w, "h100-sxm5", found.tiles)
    for name in ("shared memory", "registers"):
        use = held.resources[name]
        assert f"{name}: {use.used:,} of {use.limit:,}" in [
            shown.tab.locator("#footprint .bar").nth(n).get_attribute("aria-label")
            for n in range(shown.tab.locator("#footprint .bar").count())
        ]


def test_a_word_has_one_value_on_the_page(visited: Any) -> None:
    shown = visited("q_len=8192&mask=causal")
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    found = iomodel.estimate("flash2", w, "h100-sxm5")
    cards = dict(zip(*(shown.tab.locator(f"#cards {part}").all_inner_texts() for part in ("dt", "dd")), strict=True))
    totals = [row.split("\t") for row in shown.tab.locator("#totals tbody tr").all_inner_texts()]
    sized = {label: value for label, value, unit in totals if unit in ("B", "FLOP/B")}
    assert f"{sized[labels.REQUESTS]} B" in cards[labels.REQUESTS.capitalize()]
    assert sized[labels.REQUESTS] == f"{found.requested_bytes:,}"
    assert float(sized[labels.OVER_REQUESTS]) == pytest.approx(found.cost.intensity, rel=1e-5)
    assert f"{found.intensity:,.0f} FLOP/B" in cards["Intensity over DRAM traffic"]
    assert sized.keys() <= {labels.REQUESTS, labels.OVER_REQUESTS, "SRAM footprint", "peak HBM allocation"}


def test_every_algorithm_answers_by_link_or_says_why(visited: Any) -> None:
    shown = visited()
    for name in iomodel.list_algorithms():
        if shown.tab.locator(f"#ask-algorithm option[value={name}]").count():
            shown.visit(f"algorithm={name}")
            assert shown.state["algorithm"] == name
            assert shown.tab.is_hidden("#fault"), name
            assert len(shown.text("#answered .big + p")) > 12, name
            assert shown.tab.evaluate("window.iomodel.page.view.time !== null") == (
                "no time" not in shown.text("#answered")
            )


@pytest.mark.parametrize(
    ("link", "state"),
    [
        ("hardware=H100_SXM5", {"hardware": "h100-sxm5"}),
        ("hardware=mi300", {"hardware": "mi300x"}),
        ("algorithm=fa3", {"algorithm": "flash3", "implementation": "flash-attention-3"}),
        ("algorithm=Flash-Attn-3&q_len=2K", {"implementation": "flash-attention-3", "q_len": "2048"}),
        ("algorithm=moba", {"algorithm": "moba", "mask": "causal"}),
    ],
)
def test_names_of_a_link_are_those_that_people_use(visited: Any, link: str, state: dict[str, str]) -> None:
    assert state.items() <= visited(link).state.items()


def test_a_family_of_a_link_is_the_device_of_the_library_and_says_so(visited: Any) -> None:
    beginnings = {"-".join(name.split("-")[:-1]) for name in iomodel.list_hardware()} | {
        name.split("-")[0] for name in iomodel.list_hardware()
    }
    names = sorted(name for name in beginnings if re.search(r"\d", name))
    notes = []
    for name in names:
        shown = visited(f"hardware={name}")
        try:
            device = iomodel.hardware(name)
        except iomodel.IOModelError:
            assert "is a family" in shown.text("#fault")
            continue
        assert shown.state["hardware"] == device.id
        text = shown.text("#answered")
        assert ("Assumed" in text) == bool(device.assumed)
        assert all(f"Assumed: {note}." in text for note in device.assumed)
        assert "no time" in text or all(note in shown.text("#time") for note in device.assumed)
        notes += device.assumed
    assert "h100: taken as h100-sxm5; also h100-nvl, h100-pcie" in notes
    shown = visited("hardware=h100")
    shown.tab.select_option("#ask-hardware", "a10")
    assert "taken as" not in shown.text("#answered") + shown.text("#time")


def test_the_page_names_its_call_and_its_sources(opened: Any) -> None:
    shown = opened()
    assert shown.tab.title().startswith("FlashAttention-2 on NVIDIA H100")
    assert shown.tab.get_attribute("#about a", "href") == "https://arxiv.org/abs/2307.08691"
    assert shown.tab.locator("#links a").count() == 0  # alone, without docs beside it
    for name in ("description", "og:title", "og:description"):
        assert shown.tab.locator(f"meta[name='{name}'], meta[property='{name}']").count() == 1


def test_each_step_of_the_tour_is_true(opened: Any) -> None:
    shown = opened()
    for number, step in enumerate(TOUR):
        shown.tab.locator("#tour button").nth(number).click() if number == 0 else shown.tab.click("#tour-next")
        assert shown.tab.is_hidden("#fault")
        assert shown.text(".sentence") == step.sentence
        assert step.state.items() <= shown.state.items()
        shown.tab.click("#tour-answer")
        assert shown.text(".reveal") == step.answer
        assert shown.tab.get_attribute("#tour-link", "href") == f"#tour={number + 1}"
        shown.tab.wait_for_function(IN_VIEW, arg=step.panel)
    shape = {"heads": 32, "kv_heads": 8, "head_dim": 128}
    stored = iomodel.cost("standard", iomodel.Attention(q_len=8192, **shape), {})
    own = sum(side.get(name, 0) for side in (stored.reads, stored.writes) for name in "SP")
    assert 2 * own > sum(stored.reads.values()) + sum(stored.writes.values())
    tiles = {"block_q": 128, "block_kv": 64}
    full, causal = (
        iomodel.cost("flash2", iomodel.Attention(q_len=8192, mask=mask, **shape), tiles) for mask in ("full", "causal")
    )
    assert 0.5 < causal.reads["K"] / full.reads["K"] < 0.55
    long = iomodel.estimate("flash2", iomodel.Attention(q_len=16384, **shape), "h100-sxm5")
    assert long.requested_bytes > 10 * long.dram_bytes[1]
    last = iomodel.estimate("flash3", iomodel.Attention(q_len=16384, mask="causal", **shape), "h100-sxm5")
    assert last.limited_by != "hbm"
    assert last.intensity > 10 * last.ridge
    assert last.breakdown["hbm"] < last.seconds / 10


def test_a_pinned_call_is_compared_with_the_next(opened: Any) -> None:
    shown = opened()
    shown.tab.click("#pin")
    shown.tab.fill("#field-q_len", "8192")
    shown.tab.keyboard.press("Tab")
    call = {"heads": 32, "kv_heads": 8, "head_dim": 128}
    a, b = (iomodel.estimate("flash2", iomodel.Attention(q_len=n, **call), "h100-sxm5") for n in (4096, 8192))
    ratios = dict(
        zip(
            *(shown.tab.locator(f"#compare tbody {part}").all_inner_texts() for part in ("th", "td:last-child")),
            strict=True,
        )
    )
    assert float(ratios["Time"].split()[0]) == pytest.approx(b.seconds / a.seconds, rel=5e-3)
    assert float(ratios["Matrix work"].split()[0]) == 4.0
    shown.tab.click("#pin")
    assert shown.tab.is_hidden("#compare")


def test_the_slider_answers_within_a_frame(visited: Any) -> None:
    shown = visited()
    spent = shown.tab.evaluate(
        """() => { const { lengths } = window.iomodel.page, best = [];
        for (let at = 20; at <= 68; at += 4) {
          lengths.spent = [];
          for (let again = 0; again < 5; again++) { lengths.slider.value = at; lengths.slide(); }
          best.push(Math.min(...lengths.spent));
        }
        return best; }"""
    )
    assert sorted(spent)[len(spent) // 2] < 16
    shown.tab.evaluate("() => { const { lengths } = window.iomodel.page; lengths.slider.value = 52; lengths.end(); }")
    assert shown.state["q_len"] == "8192"
    found = iomodel.estimate("flash2", iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128), "h100-sxm5")
    assert f"{1e3 * found.seconds:#.3g} ms" in shown.text("#cards")
    shown.tab.go_back()
    assert shown.state["q_len"] == "4096"


@pytest.mark.parametrize(
    "link",
    [
        "",
        "mask=window&window_left=511&window_right=0&q_len=2k&block_q=64&block_kv=128&implementation=flash-attention-2",
    ],
)
def test_python_and_the_command_of_a_call_give_its_time(
    visited: Any, link: str, capsys: pytest.CaptureFixture[str], plain_terminal: None
) -> None:
    shown = visited(link)
    text, command, seconds = shown.tab.evaluate(
        """() => { const { page, python, command } = window.iomodel;
        return [python(page.view), command(page.view), page.view.time.seconds]; }"""
    )
    said: list[Any] = []
    exec(text, {"print": said.append})
    assert said[0].seconds == pytest.approx(seconds, rel=1e-12)
    assert main([*command.split()[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] == pytest.approx(seconds, rel=1e-12)


def test_the_card_is_a_picture_of_1200_by_630(visited: Any) -> None:
    shown = visited()
    svg, png, bibtex = shown.tab.evaluate(
        """async () => { const { page, card, png, bibtex } = window.iomodel;
        return [card(page.view), await png(page.view), bibtex(page.view)]; }"""
    )
    root = ElementTree.fromstring(svg)
    assert (root.get("width"), root.get("height")) == ("1200", "630")
    first = iomodel.Attention(heads=32, kv_heads=8, q_len=4096, head_dim=128)
    seconds = iomodel.estimate("flash2", first, "h100-sxm5").seconds
    assert f"{1e6 * seconds:#.3g} µs".replace(". ", " ") in "".join(root.itertext())
    data = b64decode(png.split(",")[1])
    assert struct.unpack(">II", data[16:24]) == (1200, 630)
    fields = dict(line.strip().split(" = ", 1) for line in bibtex.splitlines()[1:-1])
    assert {"title", "version", "note"} <= fields.keys()
    assert fields.get("author", "").strip("{},") == (metadata("iomodel").get("Author") or "")
    assert "_" not in fields["note"].replace("\\_", "")


def test_a_preset_has_the_shape_of_a_model(visited: Any) -> None:
    shown = visited()
    shown.tab.select_option("#field-preset", "mistral-7b-v0.1")
    layer = iomodel.model("mistral-7b-v0.1").layers[0].attention
    assert shown.state["window_left"] == str(layer.window - 1)
    assert shown.state["heads"] == str(layer.heads)
    assert shown.tab.input_value("#field-preset") == "mistral-7b-v0.1"
    shown.tab.fill("#field-heads", "64")
    shown.tab.keyboard.press("Tab")
    assert shown.tab.input_value("#field-preset") != "mistral-7b-v0.1"


@pytest.mark.parametrize("name", ["mamba1", "reformer", "two_pass"])
def test_a_page_of_one_algorithm_starts_with_a_call_that_it_answers(browser: Any, tmp_path: Path, name: str) -> None:
    """One that takes other masks, heads or directions than the first call of other pages has."""
    file = tmp_path / "one.html"
    file.write_text(page(payload([name], ["h100-sxm5"])))
    shown = Opened(browser, file, "constructor=1")
    assert shown.said == []
    assert "constructor" in shown.text("body")  # a name that every object inherits is no field
    assert shown.state["algorithm"] == name


def test_an_algorithm_that_takes_less_is_chosen_all_the_same(visited: Any) -> None:
    shown = visited("mask=causal&packed=on")
    shown.tab.select_option("#field-algorithm", "linformer")
    assert (shown.state["algorithm"], shown.state["mask"], shown.state["packed"]) == ("linformer", "full", "off")
    assert "Not exact attention" in shown.text("#about")


def test_masked_tiles_are_skipped_in_the_animation(visited: Any) -> None:
    shown = visited("mask=causal&q_len=64&block_q=16&block_kv=16")
    events = shown.tab.evaluate(
        """() => { const {view} = window.iomodel.page;
        const all = [...new window.iomodel.Walker(view.call, view.tiles, 0).run()];
        return all.map((e) => [e.do, e.tensor, e.spans[0][0]]); }"""
    )
    trace = iomodel.trace(
        "flash2",
        iomodel.Attention(heads=32, kv_heads=8, q_len=64, head_dim=128, mask="causal"),
        tiles={"block_q": 16, "block_kv": 16},
    )
    wanted = [(event.tensor, event.where) for event in trace.events if event.op in ("Load", "Store")]
    moved = [tensor for what, tensor, _ in events if what in ("load", "store")]
    assert moved == [tensor for tensor, _ in wanted]
    assert moved.count("K") == 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_any_screen(opened: Any, scheme: str) -> None:
    shown = opened(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    shown.tab.wait_for_selector("#traffic svg .solved")
    for width in (1440, 820, 390, 320) if scheme == "light" else (320,):
        shown.tab.set_viewport_size({"width": width, "height": 844})
        shown.tab.wait_for_timeout(250)  # the pictures follow a change of the width after 150 ms
        assert shown.tab.evaluate("document.documentElement.scrollWidth") <= width
    dark = shown.tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 21, 27)"
    assert dark == (scheme == "dark")
    shown.tab.click("#theme")
    assert (shown.tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 21, 27)") != dark


def test_the_first_picture_ends_at_the_exact_traffic(opened: Any) -> None:
    shown = opened(reduced_motion="no-preference")
    tab = shown.tab
    assert float(tab.evaluate("document.documentElement.dataset.painted")) <= float(
        tab.evaluate("document.documentElement.dataset.ready")
    )
    tab.wait_for_function("window.iomodel.scene.share > 0.01")  # it plays by itself
    tab.press("#watch-time", "End")
    costs = [iomodel.cost(name, CALL, tiles, **options) for name, _, tiles, options in SIDES]
    for half, cost in zip(tab.locator(".half .counter").all_inner_texts(), costs, strict=True):
        assert half == f"{cost.hbm_bytes:,} B moved; done"
    reads = tab.evaluate("window.iomodel.scene.sides.map((side) => [...side.at(side.data.total).touched.K.values()])")
    assert reads == [[TILES] * TILES] * 2
    tab.press("#watch-time", "Home")
    lit = tab.locator(".half .lit").all_text_contents()
    assert [line.split()[0] for line in lit] == ["load", "load"]
    tab.click("#watch-play")
    assert tab.inner_text("#watch-play") == "Pause"


def test_hovering_a_tensor_lights_the_lines_that_move_it(visited: Any) -> None:
    shown = visited()
    shown.tab.press("#watch-time", "End")
    shown.tab.evaluate(
        """() => { const side = window.iomodel.scene.sides[0], {x, y} = side.spot.box.P;
        const {left, top} = side.canvas.getBoundingClientRect();
        side.point({clientX: left + x + 3, clientY: top + y + 3}); }"""
    )
    assert [line.strip() for line in shown.tab.locator(".half .lit").all_text_contents()] == ["store P", "load P"]


def test_every_control_has_a_name(opened: Any) -> None:
    shown = opened("algorithm=split_kv")
    bare = shown.tab.evaluate(
        """() => [...document.querySelectorAll("input, select, button, canvas")].filter((one) => {
          const name = one.labels?.length || one.textContent.trim() || one.getAttribute("aria-label");
          return !name;
        }).map((one) => one.outerHTML)"""
    )
    assert bare == []
    shown.tab.click("#pin")
    assert all(text.strip() for text in shown.tab.locator("th").all_text_contents())
    regions = shown.tab.evaluate(
        """() => [...document.querySelectorAll("section, [role=region]")].map((one) =>
          one.getAttribute("aria-label") ?? document.getElementById(one.getAttribute("aria-labelledby")).textContent)"""
    )
    assert len(set(regions)) == len(regions)
