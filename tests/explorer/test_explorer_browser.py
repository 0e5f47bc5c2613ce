"""The explorer in a browser: what it computes, how fast it stands, that the keyboard and a link are enough."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel.algorithms import list_algorithms
from iomodel.explorer.calls import kinds
from iomodel.explorer.page import page
from iomodel.explorer.payload import payload
from iomodel.explorer.scene import ROWS, SIDES, TILES, WIDTH
from tests.support.explorer_calls import COUNTS, Drawn, counted, drawn
from tests.support.programs import REQUIRED, program

playwright = import_module("playwright.sync_api") if REQUIRED else pytest.importorskip("playwright.sync_api")
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
CALL = iomodel.Attention(q_len=ROWS, head_dim=WIDTH)
STATE = "Object.fromEntries(location.hash.slice(1).split('&').map((one) => one.split('=')))"


@cache
def points() -> list[Drawn]:
    """Calls to count, drawn when a test asks: drawing compiles their formulas."""
    return [*drawn(180, seed=1), *drawn(30, seed=2, largest=10**12)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with the kinds of call of the tests."""
    used = [kind for name in ("flash2", "split_kv") for kind in kinds([name]) if kind.direction == "forward"]
    used = [kind for kind in used if kind.mask in ("full", "causal", "window left+right bottom-right")]
    linear = [kind for kind in kinds(["linformer", "standard"]) if kind.mask == "full"]
    only = dict.fromkeys([*(call.kind for call in points()), *used, *linear])
    target = tmp_path_factory.mktemp("explorer") / "page.html"
    target.write_text(page(payload(list_algorithms(), ["h100-sxm5", "t4", "tpu-v5p"], only=list(only))))
    return target


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = program("Chromium", "chromium", "chromium-browser", "google-chrome")
    with playwright.sync_playwright() as run:
        found = run.chromium.launch(executable_path=chromium, args=QUIET)
        yield found
        found.close()


class Opened:
    """A page that is shown, with all that it complained of."""

    def __init__(self, browser: Any, file: Path, link: str = "", **more: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **more})
        self.tab = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(f"{file.as_uri()}#{link}" if link else file.as_uri())
        self.tab.wait_for_function("document.documentElement.dataset.ready")

    def text(self, selector: str) -> str:
        return str(self.tab.inner_text(selector))

    @property
    def state(self) -> dict[str, str]:
        return dict(self.tab.evaluate(STATE))


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Any]:
    """Opens the page as often as wanted; it has complained of nothing, and asked for nothing but itself."""
    tabs: list[Opened] = []

    def at(link: str = "", **more: Any) -> Opened:
        tabs.append(Opened(browser, file, link, **more))
        return tabs[-1]

    yield at
    for one in tabs:
        assert one.said == []
        assert {url.split("#")[0] for url in one.asked if not url.startswith(("blob:", "data:"))} == {file.as_uri()}
        one.context.close()


def test_the_browser_counts_what_python_counts(opened: Any) -> None:
    tab = opened().tab
    body = f"(jobs) => jobs.map((job) => ({COUNTS.strip()})(window.iomodel.calls, job))"
    jobs = [{"fields": c.fields, "tiles": {name: str(size) for name, size in c.tiles.items()}} for c in points()]
    found = tab.evaluate(body, jobs)
    assert len(points()) >= 200
    for call, counts in zip(points(), found, strict=True):
        assert counts == counted(call), call


def test_what_is_shown_is_what_solve_says(opened: Any) -> None:
    shown = opened("hardware=h100-sxm5&q_len=8192&mask=causal")
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    best = iomodel.solve("flash2", w, "h100-sxm5", implementation="textbook")
    tiles = ", ".join(f"{name} = {size:,}" for name, size in best.tiles.items())
    assert shown.text("#what").endswith(tiles)
    assert f"{best.cost.hbm_bytes:,} B" in shown.text("#cards")
    assert f"{best.footprint:,} of 232,448 B" in shown.text("#footprint")
    assert f"{best.cost.reads['K']:,}" in shown.text("#moved")


def test_every_picture_is_drawn(opened: Any) -> None:
    shown = opened()
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


def test_a_link_holds_the_whole_state(opened: Any) -> None:
    first = opened(
        "algorithm=split_kv&splits=4&mask=window&window_left=100&window_right=0&q_len=512&block_q=48&lse=off"
    )
    again = opened(first.tab.url.split("#")[1])
    assert first.state == again.state
    assert first.state["block_q"] == "48"
    assert first.state["lse"] == "off"
    assert first.text("#totals") == again.text("#totals")
    assert first.text("#what") == again.text("#what")


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("hardware=h100-sxm", "hardware: 'h100-sxm' is unknown; did you mean 'h100-sxm5'? allowed: h100-sxm5, t4"),
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
def test_an_error_in_a_link_is_said_and_changes_nothing(opened: Any, link: str, message: str) -> None:
    plain = opened()
    shown = opened(link)
    assert shown.text("#fault").startswith(message)
    assert shown.state == plain.state
    assert shown.text("#totals") == plain.text("#totals")
    good = plain.text("#totals")
    plain.tab.evaluate("(link) => { location.hash = link; }", link)
    plain.tab.wait_for_selector("#fault:not([hidden])")
    assert plain.text("#fault").startswith(message)
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


def test_a_wrong_number_in_the_form_is_said_beside_it(opened: Any) -> None:
    shown = opened()
    before = shown.text("#totals")
    shown.tab.fill("#field-q_len", "many")
    shown.tab.keyboard.press("Tab")
    assert shown.text("#fault").startswith("q_len: 'many' given; allowed: an integer from 1")
    assert shown.tab.get_attribute("#field-q_len", "aria-invalid") == "true"
    assert shown.text("#totals") == before
    shown.tab.fill("#field-q_len", "100")
    shown.tab.keyboard.press("Tab")
    assert shown.tab.is_hidden("#fault")


@pytest.mark.parametrize("name", ["mamba1", "reformer", "two_pass"])
def test_a_page_of_one_algorithm_starts_with_a_call_that_it_answers(browser: Any, tmp_path: Path, name: str) -> None:
    """One that takes other masks, heads or directions than the first call of other pages has."""
    file = tmp_path / "one.html"
    file.write_text(page(payload([name], ["h100-sxm5"])))
    shown = Opened(browser, file, "constructor=1")
    assert shown.said == []
    assert "constructor" in shown.text("body")  # a name that every object inherits is no field
    assert shown.state["algorithm"] == name


def test_an_algorithm_that_takes_less_is_chosen_all_the_same(opened: Any) -> None:
    shown = opened("mask=causal&packed=on")
    shown.tab.select_option("#field-algorithm", "linformer")
    assert (shown.state["algorithm"], shown.state["mask"], shown.state["packed"]) == ("linformer", "full", "off")
    assert "Not exact attention" in shown.text("#about")


def test_masked_tiles_are_skipped_in_the_animation(opened: Any) -> None:
    shown = opened("mask=causal&q_len=64&block_q=16&block_kv=16")
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
    for width in (1440, 820, 390, 320):
        shown.tab.set_viewport_size({"width": width, "height": 844})
        shown.tab.wait_for_timeout(250)  # the pictures follow a change of the width after 150 ms
        assert shown.tab.evaluate("document.documentElement.scrollWidth") <= width
    dark = shown.tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 21, 27)"
    assert dark == (scheme == "dark")
    shown.tab.click("#theme")
    assert (shown.tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 21, 27)") != dark


def test_the_first_picture_ends_at_the_exact_traffic(opened: Any) -> None:
    shown = opened()
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
    lit = tab.locator(".half .lit").all_inner_texts()
    assert [line.split()[0] for line in lit] == ["load", "load"]
    tab.click("#watch-play")
    assert tab.inner_text("#watch-play") == "Pause"


def test_hovering_a_tensor_lights_the_lines_that_move_it(opened: Any) -> None:
    shown = opened()
    shown.tab.press("#watch-time", "End")
    shown.tab.evaluate(
        """() => { const side = window.iomodel.scene.sides[0], {x, y} = side.spot.box.P;
        const {left, top} = side.canvas.getBoundingClientRect();
        side.point({clientX: left + x + 3, clientY: top + y + 3}); }"""
    )
    assert [line.strip() for line in shown.tab.locator(".half .lit").all_inner_texts()] == ["store P", "load P"]


def test_every_control_has_a_name(opened: Any) -> None:
    shown = opened("algorithm=split_kv")
    bare = shown.tab.evaluate(
        """() => [...document.querySelectorAll("input, select, button, canvas")].filter((one) => {
          const name = one.labels?.length || one.textContent.trim() || one.getAttribute("aria-label");
          return !name;
        }).map((one) => one.outerHTML)"""
    )
    assert bare == []
