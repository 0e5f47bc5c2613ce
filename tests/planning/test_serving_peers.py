"""The comparison with other planners: the stored answers, and the table of the docs that follows from them."""

import csv
from pathlib import Path

import pytest

from benchmarks.serving_accuracy import KINDS, Judged, judged, naive, rows
from benchmarks.serving_peers import ANSWERS, HELD_OUT, VERSIONS, line, question

PAGE = (Path(__file__).parents[2] / "docs" / "serving-accuracy.md").read_text(encoding="utf-8")
PREDICTED = ("engine ttft", "kv tokens", "fp4")
"""Kinds of which every row is predicted here; of the others the columns of the peer and the naive one are checked."""


def cells(text):
    return [cell.strip() for cell in text.strip("|").split("|")]


def on_page(kind, name):
    (found,) = (text for text in PAGE.splitlines() if text.startswith(f"| {kind} | {name} |"))
    return cells(found)


def median_of(cell):
    return float(cell.split("/")[0])


def test_every_row_was_put_to_both_peers():
    with ANSWERS.open(newline="", encoding="utf-8") as file:
        answers = list(csv.DictReader(file))
    judging = [row["id"] for row in rows(HELD_OUT) if not row["excluded"]]
    for peer, version in VERSIONS.items():
        own = [answer for answer in answers if answer["peer"] == peer]
        assert sorted(answer["id"] for answer in own) == sorted(judging)
        assert {answer["version"] for answer in own} == {version}
        assert f"{peer} {version}" in PAGE
        assert all(bool(answer["value"]) != bool(answer["refused"]) for answer in own)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VERSIONS)
def test_the_table_follows_from_the_answers(kind, name):
    if kind in PREDICTED:
        results = judged(HELD_OUT, (kind,))
    else:
        some = [row for row in rows(HELD_OUT) if row["kind"] == kind and not row["excluded"]]
        results = [Judged(row, float(row["value"]), naive(row)) for row in some]
    computed, shown = cells(line(kind, name, results)), on_page(kind, name)
    if kind not in PREDICTED:
        computed[3] = shown[3]
    assert computed == shown


@pytest.mark.parametrize("kind", ["tpot", "served ttft", "kv tokens"])
def test_peers_are_further_off_on_the_rows_that_they_answer(kind):
    for peer in VERSIONS:
        shown = on_page(kind, peer)
        assert median_of(shown[3]) < median_of(shown[4])
        assert median_of(shown[3]) < median_of(shown[5])


def test_a_question_states_the_row_in_numbers():
    """Ranks, replicas of attention and lengths by hand: data-parallel attention on eight devices."""
    (row,) = (row for row in rows(HELD_OUT) if row["kind"] == "moe" and row["gpus"] == "8" and row["input"] == "1000"
              and row["model"] == "deepseek-v3")  # fmt: skip
    asked = question(row)
    assert (asked["tensor"], asked["expert"], asked["replicas"]) == (1, 8, 8)
    assert (asked["prompt"], asked["output"], asked["clients"]) == (1000, int(row["output"]), None)
    assert asked["shape"] is None  # latents
    assert asked["kv_bytes"] == 1
