"""Pages of the explorer that are shown in Chromium."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import REQUIRED, program

QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


VISITED = """(link) => new Promise((done) => {
  addEventListener("popstate", () => setTimeout(done), { once: true }); // after what the page draws last
  if (location.hash.slice(1) === link) dispatchEvent(new PopStateEvent("popstate"));
  else location.hash = link;
})"""
"""Resolves when the page has read a link, and drawn the call of it."""


class Opened:
    """A page that is shown, with all that it complained of.

    Its first picture stands, unless a test asks for motion: frames that nobody looks at take half a core.
    """

    def __init__(self, browser: Any, file: Path, link: str = "", **more: Any) -> None:
        usual = {"viewport": {"width": 1300, "height": 900}, "reduced_motion": "reduce"}
        self.context = browser.new_context(**{**usual, **more})
        self.tab = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(f"{file.as_uri()}#{link}" if link else file.as_uri())
        self.tab.wait_for_function("document.documentElement.dataset.ready")

    def visit(self, link: str = "") -> Opened:
        """Give the open page a link, as its visitors do in the line of the address."""
        self.tab.evaluate(VISITED, link)
        return self

    def text(self, selector: str) -> str:
        return str(self.tab.inner_text(selector))

    def timing(self, name: str) -> float:
        """Time at which the page was painted or ready [ms]."""
        return float(self.tab.evaluate("(name) => document.documentElement.dataset[name]", name))

    @property
    def state(self) -> dict[str, str]:
        return dict(self.tab.evaluate("window.iomodel.page.state"))


@contextmanager
def chromium() -> Iterator[Any]:
    """Run Chromium; without it or Playwright, skip the test, or fail it in continuous integration."""
    playwright = import_module("playwright.sync_api") if REQUIRED else pytest.importorskip("playwright.sync_api")
    command = program("Chromium", "chromium", "chromium-browser", "google-chrome")
    with playwright.sync_playwright() as run:
        browser = run.chromium.launch(executable_path=command, args=QUIET)
        yield browser
        browser.close()


@contextmanager
def opening(browser: Any, file: Path) -> Iterator[Callable[..., Opened]]:
    """Open a page as often as wanted; at the end, it has complained of nothing, and asked for nothing but itself."""
    tabs: list[Opened] = []

    def at(link: str = "", **more: Any) -> Opened:
        tabs.append(Opened(browser, file, link, **more))
        return tabs[-1]

    try:
        yield at
        for one in tabs:
            assert one.said == []
            assert {url.split("#")[0] for url in one.asked if not url.startswith(("blob:", "data:"))} == {file.as_uri()}
    finally:  # a page that stays open goes on drawing, and slows those of other tests
        for one in tabs:
            one.context.close()


def main(file: Path) -> None:
    """Open a page from its file, check that it answers its first call, and print its size and its times."""
    with chromium() as browser, opening(browser, file.resolve()) as at:
        shown = at()
        assert "bound by" in shown.text("#cards")
        painted, ready = shown.timing("painted"), shown.timing("ready")
        sys.stdout.write(f"{file.stat().st_size:,} B; painted after {painted:.0f} ms, ready after {ready:.0f} ms\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
