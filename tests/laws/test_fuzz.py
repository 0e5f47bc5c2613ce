"""Random files and command lines: the first two hundred inputs of the campaign of `benchmarks/fuzz.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

import iomodel
from iomodel.cli.app import app
from tests.fuzz import lines
from tests.fuzz.campaign import SURFACES, Found, campaign, case
from tests.fuzz.damaged import Excerpt, excerpts, outcome, variant
from tests.fuzz.law import BrokenError, Case, answered, exit_of, held, one_line

pytestmark = pytest.mark.usefixtures("plain_terminal")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an input writes goes here."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("first", range(0, 200, 100))
def test_every_input_is_answered_or_refused_in_one_line(first: int) -> None:
    found = Found()
    for _ in campaign(0, range(first, first + 100), found, watch_every=100, limit=60):
        pass
    assert [f"--only {number}: {drawn.told[:300]}: {error!r:.300}" for number, drawn, error in found.broken] == []
    assert sum(found.outcomes.values()) == 100


REFUSED = {
    *("model_index.json", "modules.json", "bge-config.json", "bge-modules.json", "sd3.5-model_index.json"),
    *("sdxl-model_index.json", "sdxl-unet-config.json", "ggml-vocab-llama-spm.gguf", "ggml-vocab-phi-3.gguf"),
    *("weight-inspect-empty.gguf", "weight-inspect-tiny.gguf", "llama-2-70b-params.json"),
}
"""Files that are no models: folders of diffusers and sentence-transformers, vocabularies, files of a few bytes, and
parameters without the size of a vocabulary."""


@pytest.mark.parametrize("excerpt", list(excerpts()), ids=lambda excerpt: excerpt.name)
def test_a_damaged_public_file_is_read_or_refused_in_one_line(excerpt: Excerpt, tmp_path: Path) -> None:
    known = outcome(excerpt, excerpt.content, tmp_path)
    assert known == ("refused" if excerpt.name in REFUSED else "answered")
    for number in range(15):
        found, error = held(Case(excerpt.name, "", lambda: outcome(excerpt, variant(excerpt, 1, number), tmp_path)), 60)  # noqa: B023
        assert (found in ("answered", "refused"), error) == (True, None), number


def test_an_input_is_the_same_whatever_went_before() -> None:
    told = [case(7, number).told for number in (3, 4)]
    assert [case(7, number).told for number in (4, 3)] == told[::-1]


def test_every_command_is_drawn() -> None:
    def names(found: Any, words: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
        if not hasattr(found, "commands"):
            return {words}
        return {name for word, one in found.commands.items() for name in names(one, (*words, word))}

    served = {("mcp",)}  # reads its input until it ends
    assert {command.words for command in lines.commands()} | served == names(typer.main.get_command(app))
    assert {case(1, number).surface for number in range(500)} == set(SURFACES)


def _raises(error: BaseException) -> Callable[[], Any]:
    def function() -> Any:
        raise error

    return function


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: answered(_raises(KeyError("x"))),
        lambda: answered(_raises(TypeError("from within"))),
        lambda: answered(_raises(iomodel.InputError("a: first\nb: second"))),
        lambda: answered(_raises(iomodel.InputError("a: \x1b[31m"))),
        lambda: answered(_raises(iomodel.InputError("names nothing"))),
        lambda: answered(_raises(iomodel.InputError(""))),
        lambda: answered(_raises(iomodel.InputError("a: " + "b" * 5000))),
        lambda: answered(_raises(MemoryError())),
    ],
)
def test_the_law_notices(wrong: Callable[[], str]) -> None:
    outcome, error = held(Case("", "", wrong))
    assert outcome == "broken"
    assert error is not None


def test_the_law_notices_what_takes_too_long() -> None:
    started = time.monotonic()

    def forever() -> str:
        while True:
            pass

    assert held(Case("", "", forever), 0.2)[0] == "broken"
    assert time.monotonic() - started < 30


def test_the_law_of_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_of(["algorithms", "--json"]) == "exit 0"
    assert exit_of(["schedules"]) == "exit 2"
    monkeypatch.setattr("iomodel.cli.values.list_algorithms", _raises(KeyError("x")))
    with pytest.raises(BrokenError, match="exit 70"):
        exit_of(["cost", "flash2", "--q-len", "8", "--head-dim", "8"])
    assert capsys.readouterr() == ("", "")


def test_a_line_that_names_something() -> None:
    one_line("q_len: 0 given; allowed: 1")
    with pytest.raises(BrokenError):
        one_line(": x")
