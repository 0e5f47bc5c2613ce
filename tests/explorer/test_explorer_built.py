"""The page of all calls: kept for each state of the package, carried by the wheel, small, and ready soon."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel.algorithms import list_algorithms
from iomodel.devices.device import list_hardware
from iomodel.explorer import built, explore
from iomodel.explorer.built import NAME, kept, stored

ROOT = Path(__file__).parents[2]
WORDS = (ROOT / "docs" / "explorer.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def file() -> Path:
    """The page of this state of the package, as the installation of a wheel has left it, or built."""
    return kept(ROOT / "build" / "explorer")


def stated(pattern: str) -> float:
    """Find a figure of docs/explorer.md."""
    found = re.search(pattern, WORDS)
    assert found is not None, pattern
    return float(found[1])


def test_the_page_has_the_stated_size_and_is_ready_soon(opened: Any, file: Path) -> None:
    """Times are stated for a quiet machine, so that they are held five times over."""
    assert file.stat().st_size / 1e6 == pytest.approx(stated(r"([\d.]+) MB with all algorithms"), rel=0.2)
    shown = opened()
    assert shown.timing("painted") < 5e3 * stated(r"the animation stands after about ([\d.]+) s")
    assert shown.timing("ready") < 5e3 * stated(r"the first answer after about ([\d.]+) s")
    assert shown.state["algorithm"] == "flash2"
    assert shown.tab.locator("#field-algorithm option").count() == len(list_algorithms())


def test_the_page_of_a_state_is_built_once(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(*_: Any, **__: Any) -> str:
        raise AssertionError("built again")

    monkeypatch.setattr(explore, "built", refused)
    assert kept(ROOT / "build" / "explorer") == file
    with pytest.raises(AssertionError, match="built again"):
        kept(ROOT / "build" / "explorer", release="another")
    (tmp_path / "algorithms.py").write_text("changed")
    monkeypatch.setattr(built, "specs_folder", lambda: tmp_path)
    with pytest.raises(AssertionError, match="built again"):
        kept(ROOT / "build" / "explorer")


def test_a_wheel_answers_with_its_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    every = list_algorithms(), list_hardware()
    assert stored(*every) is None  # a checkout
    (tmp_path / NAME).write_text("the page")
    monkeypatch.setattr(built, "files", lambda _: tmp_path)
    assert stored(*every) == iomodel.explore() == "the page"
    assert iomodel.explore(tmp_path / "copy.html").read_text() == "the page"
    assert stored(every[0][1:], every[1]) is None
    assert stored(every[0], every[1][1:]) is None
    assert iomodel.explore(algorithms=["tiled_query"], hardware=["t4"]) != "the page"
