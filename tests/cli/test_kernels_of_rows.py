"""Kernels of rows on the command line: counted and timed by rows and channels."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.inside import main

Answer = Callable[[str], str]


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]) -> Answer:
    """Return what a command prints, its error included."""

    def printed(words: str) -> str:
        main(words.split())
        shown = capsys.readouterr()
        return shown.out + shown.err

    return printed


@pytest.mark.parametrize(
    ("words", "requested"),
    [
        ("softmax --rows 4096 --columns 4096 --dtype fp16", 67_108_864),
        ("copy --rows 1000 --channels 1000 --dtype fp32", 8_000_000),
        ("add --rows 1000 --channels 1000 --dtype fp32", 12_000_000),
        ("activation --tokens 8 --hidden-size 16 --dtype fp16", 512),
        ("norm --rows 1 --channels 4096", 3 * 8192),
    ],
)
def test_a_kernel_of_rows_is_counted(answer: Answer, words: str, requested: int) -> None:
    assert json.loads(answer(f"cost {words} --json"))["hbm_bytes"] == requested


def test_a_vector_is_added_in_the_time_of_its_bytes(answer: Answer) -> None:
    found = json.loads(answer("estimate add --hardware t4 --rows 100000 --channels 1000 --dtype fp32 --json"))
    assert found["dram_bytes"] == [1_200_000_000, 1_200_000_000]
    assert found["seconds"] == pytest.approx(1.2e9 / 246e9, rel=0.01)


def test_names_of_other_libraries_are_hinted(answer: Answer) -> None:
    assert "did you mean 'norm'?" in answer("cost rmsnorm --rows 4")
    assert "a kernel of rows; did you mean 'rows'? allowed: rows, channels" in answer("cost add --rows 4 --q-len 5")
    assert "copy" in answer("algorithms").rpartition("kernels of rows")[2]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("rotary --channels 5120", "others: not given, but rotary has it; allowed: the width of V in append, of a row"),
        ("append --channels 1024", "others: not given, but append has it"),
        ("rotary_append --channels 4096 --others 1024", "angles: not given, but rotary_append has it"),
    ],
)
def test_a_second_width_of_a_kernel_of_rows_has_no_stand_in(answer: Answer, words: str, field: str) -> None:
    assert field in answer(f"cost {words} --rows 8192")


def test_a_rotation_is_counted_with_its_table(answer: Answer) -> None:
    words = "cost rotary --rows 8192 --channels 5120 --others 128 --json"
    assert json.loads(answer(words))["hbm_bytes"] == 2 * 8192 * 5120 * 2 + 8192 * 128 * 4
