"""The witness of unchanged answers: a replay of the same code agrees with the record, and a change is found."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.answers import compare, differences, read, recorded, sampled, write


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("answers") / "old.gz")
    write(path, recorded(calls=30, seed=1), processes=1)
    return path


def test_a_replay_agrees_with_the_record(record: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = str(tmp_path / "new.gz")
    write(again, sampled(record, kinds=(), sample=None, seed=0), processes=1)
    errors = str(sum("error" in json.loads(line) for line in read(again)))
    assert compare(record, again) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "30", errors, "0", "0"]


def test_a_planted_difference_is_found(record: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed, lines = str(tmp_path / "changed.gz"), [json.loads(line) for line in read(record)]
    counted = next(line for line in lines if line["kind"] == "cost" and "answer" in line)
    counted["answer"]["hbm_bytes"] += 1
    refused = next(line for line in lines if "error" in line)
    refused["error"][1] += "."
    with gzip.open(changed, "wt") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
    assert compare(record, changed) == 2
    printed = capsys.readouterr().out
    assert "cost: answer.hbm_bytes, 1 times" in printed
    assert f"{refused['kind']}: error[], 1 times" in printed


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"a": [1.0, float("nan")]}, {"a": [1.0 + 1e-12, float("nan")]}, []),
        ({"a": [1.0, 2.0]}, {"a": [1.0 + 1e-8, 2.0]}, [".a[]"]),
        ({"a": 1}, {"a": 1.0}, [".a"]),
        ({"a": [1]}, {"a": [1, 2]}, [".a"]),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, [".a", ".c"]),
    ],
)
def test_differences(old: Any, new: Any, paths: list[str]) -> None:
    assert [path for path, _, _ in differences(old, new)] == paths
