"""The page in Firefox: it says nothing, asks for nothing, and answers as the library does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import iomodel
from tests.support.firefox import Firefox, firefox

READY = """new Promise((done) => {
  const look = () => (document.documentElement.dataset.ready ? done(true) : setTimeout(look, 20));
  look();
})"""
COMMAND = shutil.which("firefox") or shutil.which("firefox-esr")
ANSWERS = """(async () => {
  const page = window.iomodel.page, found = {};
  for (const { value } of document.getElementById("ask-algorithm").options) {
    page.change({ algorithm: value }, "algorithm");
    found[value] = [page.state, page.view.time?.seconds ?? null];
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    if COMMAND is None:
        pytest.skip("Firefox is missing: apt-get install firefox-esr")
    with firefox(COMMAND, tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_the_first_screen_answers_in_firefox(running: Firefox, whole: Path, size: tuple[int, int]) -> None:
    running.asked.clear()
    running.open(f"{whole.as_uri()}#hardware=h100", *size)
    assert running.evaluate(READY)
    boxes = running.evaluate(
        """["#answered", "#scene canvas", ".half + .half canvas"].map((one) => {
          const { top, bottom } = document.querySelector(one).getBoundingClientRect();
          return [top, bottom];
        })"""
    )
    assert all(0 <= top < bottom <= size[1] for top, bottom in boxes)
    assert running.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "taken as h100-sxm5" in running.evaluate("document.getElementById('answered').innerText")
    assert running.said == []
    assert [url for url in running.asked if not url.startswith(("file:", "blob:", "data:"))] == []


def test_times_in_firefox_are_those_of_the_library(running: Firefox, whole: Path) -> None:
    running.open(f"{whole.as_uri()}#hardware=a100&q_len=3000&kv_heads=auto", 1300, 900)
    assert running.evaluate(READY)
    times = running.evaluate(ANSWERS)
    timed = {name: (state, seconds) for name, (state, seconds) in times.items() if seconds is not None}
    assert len(timed) >= 8
    for name, (state, seconds) in timed.items():
        numbers = {key: int(state[key]) for key in ("batch", "heads", "q_len", "head_dim")}
        call = iomodel.Attention(**numbers, mask=state["mask"], dtype=state["dtype"], direction=state["direction"])
        assert iomodel.estimate(name, call, state["hardware"]).seconds == pytest.approx(seconds, rel=1e-12), name
    assert running.said == []
