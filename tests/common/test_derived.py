"""Derived data: read only if made of these sources, and only if nobody else may write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iomodel.common import derived

DATA = {"functions": ["def formulas(B):\n    return (B,)"], "records": {"quantities": ["!Formulas", ["#", 0, 1]]}}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(derived, "_folder", lambda: tmp_path / derived.FOLDER)
    return tmp_path / derived.FOLDER


def test_what_is_written_is_read(folder: Path) -> None:
    assert derived.read("a") is None
    derived.write("a", DATA)
    assert derived.read("a") == DATA
    assert [file.name for file in folder.iterdir()] == ["a.json.z"]


def test_data_of_other_sources_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    derived.write("a", DATA)
    monkeypatch.setattr(derived, "digest", lambda: "other")
    assert derived.read("a") is None


@pytest.mark.parametrize("harm", [lambda whole: b"", lambda whole: whole[:-9], lambda whole: b"x" + whole])
def test_damaged_data_are_not_read(folder: Path, harm: object) -> None:
    derived.write("a", DATA)
    file = folder / "a.json.z"
    file.write_bytes(harm(file.read_bytes()))  # type: ignore[operator]
    assert derived.read("a") is None


@pytest.mark.parametrize("place", ["a.json.z", "."])
def test_data_that_others_may_write_are_not_read(folder: Path, place: str) -> None:
    derived.write("a", DATA)
    path = folder / place
    path.chmod(path.stat().st_mode | 0o002)
    assert derived.read("a") is None


def test_a_folder_that_cannot_be_written_is_left_alone(folder: Path) -> None:
    folder.write_text("a file")
    derived.write("a", DATA)
    assert folder.read_text() == "a file"


def test_a_call_of_the_library_keeps_nothing() -> None:
    assert derived.pending is None
