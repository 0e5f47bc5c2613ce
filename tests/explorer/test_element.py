"""The custom element of the explorer in a page of others, and the widget of a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel import explorer
from iomodel.explorer.element import PANELS, call_of
from iomodel.explorer.page import static

W = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
IN_FRAME = """() => [...document.querySelectorAll("section")].filter((one) => one.offsetParent).length"""
IN_NOTEBOOK = """async ([esm, traits]) => {
  const { default: view } = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
  const heard = [];
  window.model = {
    get: (name) => traits[name],
    set: (name, value) => { traits[name] = value; },
    save_changes: () => {},
    on: (_, then) => heard.push(then), turn: (call) => { traits.call = call; heard.forEach((then) => then()); },
  };
  view.render({ model: window.model, el: document.querySelector("main") });
}"""


@pytest.fixture(scope="module")
def host(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A tab with a page of somebody else that holds two elements."""
    folder = tmp_path_factory.mktemp("host")
    explorer.explore(folder / "explorer.html", algorithms=["flash2"], hardware=["h100-sxm5", "a100-sxm4-80gb"])
    explorer.element(folder / "iomodel-call.js")
    (folder / "host.html").write_text(
        "<!doctype html><title>A lecture</title><p>Attention:</p><script src='iomodel-call.js'></script>"
        "<iomodel-call id='a' src='explorer.html' call='q_len=8192&mask=causal'></iomodel-call>"
        "<iomodel-call id='b' src='explorer.html' show='time,nothing'></iomodel-call>"
    )
    said: list[str] = []
    with closing(browser.new_context(viewport={"width": 800, "height": 900})) as context:
        tab = context.new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.goto((folder / "host.html").as_uri())
        for frame in frames(tab):
            frame.wait_for_function("document.documentElement.dataset.ready")
        yield tab
    assert said == []


def frames(tab: Any) -> list[Any]:
    return [tab.query_selector(f"#{name} iframe").content_frame() for name in "ab"]


def test_an_element_shows_its_panels_and_the_call(host: Any) -> None:
    first, second = frames(host)
    assert first.evaluate(IN_FRAME) == 2
    found = iomodel.estimate("flash2", W, "h100-sxm5")
    assert f"{1e3 * found.seconds:#.3g} ms" in first.inner_text("#time")
    assert "show: 'nothing' given; allowed: scene, answer" in second.inner_text("#fault")
    host.wait_for_function("document.querySelector('#a iframe').clientHeight > 500")
    assert host.evaluate("document.querySelector('#a iframe').clientHeight") == first.evaluate(
        "Math.ceil(document.body.getBoundingClientRect().height)"
    )


def test_an_element_follows_its_attribute_and_tells_of_a_choice(host: Any) -> None:
    first = frames(host)[0]
    host.evaluate("""() => { const a = document.getElementById("a"); window.told = [];
      a.addEventListener("call", ({ detail }) => window.told.push(detail));
      a.setAttribute("call", "q_len=4096"); }""")
    host.wait_for_function("window.told.length")
    assert first.evaluate("window.iomodel.page.state.q_len") == "4096"
    first.evaluate("window.iomodel.page.change({ q_len: '2048' }, 'q_len')")
    host.wait_for_function("window.told.at(-1) === 'q_len=2048'")


def test_the_panels_are_those_of_the_page() -> None:
    text = static("start.js").split("const PANELS = {")[1].split("};")[0]
    assert tuple(entry.split(":")[0].strip() for entry in text.split(",") if entry.strip()) == PANELS


def test_a_widget_follows_an_answer(browser: Any, whole: Path) -> None:
    shown = explorer.widget(iomodel.estimate("flash2", W, "h100-sxm5"), show=["time"])
    assert shown.page == whole.read_text(encoding="utf-8")
    before = shown.call
    shown.follow(iomodel.solve("flash3", W, "h100-sxm5"))
    assert before != shown.call == call_of(iomodel.solve("flash3", W, "h100-sxm5"))
    with closing(browser.new_context()) as context:
        tab = context.new_page()
        tab.set_content("<!doctype html><title>A notebook</title><main></main>")
        tab.evaluate(IN_NOTEBOOK, [shown._esm, {"page": shown.page, "call": before, "show": shown.show}])
        frame = tab.wait_for_selector("iframe").content_frame()
        frame.wait_for_function("document.documentElement.dataset.ready")
        assert frame.evaluate("window.iomodel.page.state.algorithm") == "flash2"
        tab.evaluate("(call) => window.model.turn(call)", shown.call)
        frame.wait_for_function("window.iomodel.page.state.algorithm === 'flash3'")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: explorer.widget(iomodel.estimate("flash2", W, "h100-sxm5"), show=["times"]), "show: 'times'"),
        (lambda: explorer.widget(iomodel.estimate("flash2", W, "h100-sxm5"), show="time"), "show: 'time'"),
        (lambda: call_of(W), "answer:"),  # type: ignore[arg-type]
        (lambda: call_of(iomodel.solve("flash2", W, sram_bytes=100_000)), "answer: given without a shipped device"),
    ],
)
def test_what_has_no_panel_or_link_is_refused(make: Any, message: str) -> None:
    with pytest.raises(iomodel.IOModelError) as caught:
        make()
    assert str(caught.value).startswith(message)
