"""Public Triton kernels described from the TTIR of one config, against compiles of others."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from iomodel.errors import InputError
from iomodel.placement.triton_check import TritonCheck, check_triton
from iomodel.placement.triton_description import KernelDescription

MEASURED = Path(__file__).parents[1] / "measured" / "triton"
Row = dict[str, str]
KERNELS: dict[str, dict[str, Any]] = {
    record["kernel"]: record
    for record in map(json.loads, gzip.decompress((MEASURED / "descriptions.jsonl.gz").read_bytes()).splitlines())
}
"""What was read from the text of each kernel; the round in which it judged, 0 if it is open."""


@cache
def description(kernel: str) -> KernelDescription:
    return KernelDescription.from_dict(KERNELS[kernel]["description"])


def rows() -> Iterator[Row]:
    """The compiles that went as far as their memory."""
    text = gzip.decompress((MEASURED / "described.csv.gz").read_bytes()).decode()
    yield from (row for row in csv.DictReader(io.StringIO(text)) if row["shared"])


def check(row: Row) -> TritonCheck | None:
    """Check the config of a compile; None where it is left unjudged."""
    config = {**json.loads(row["config"]), "num_warps": int(row["warps"]), "num_stages": int(row["stages"])}
    try:
        return check_triton(config, kernel=description(row["kernel"]), arch=int(row["arch"]), version="3.9.0")
    except InputError:
        return None


def title(row: Row) -> str:
    """The set of a compile: new configs of known kernels count apart."""
    judged = KERNELS[row["kernel"]]["round"]
    return "new configs" if row["fresh"] == "1" else f"list {judged}" if judged else "open"


@cache
def counts() -> dict[str, Counter[str]]:
    """Verdicts and equal bytes by set."""
    sets: dict[str, Counter[str]] = {}
    for row in rows():
        count = sets.setdefault(title(row), Counter())
        checked = check(row)
        count["number"] += 1
        count["unjudged"] += checked is None
        if checked is not None:
            fits = int(row["shared"]) <= checked.shared_limit and int(row["tmem"] or 0) <= checked.tmem_limit
            count["over"] += not fits
            count["kept"] += checked.fits and not fits
            count["dropped"] += fits and not checked.fits
            count["equal"] += int(row["shared"]) == checked.shared
            count["instruction"] += row["instruction"] == checked.instruction
    return dict(sorted(sets.items(), key=lambda item: (item[0] != "open", item[0])))


def test_no_config_is_on_the_wrong_side_of_a_limit() -> None:
    total = sum(counts().values(), Counter())
    assert total["number"] >= 2000
    assert total["over"] >= 100
    assert total["kept"] == total["dropped"] == 0
    assert total["unjudged"] <= 0.05 * total["number"]


def test_instructions_are_the_compilers() -> None:
    total = sum(counts().values(), Counter())
    assert total["instruction"] == total["number"] - total["unjudged"]


def test_bytes_are_mostly_the_compilers() -> None:
    total = sum(counts().values(), Counter())
    assert total["equal"] >= 0.85 * (total["number"] - total["unjudged"])
    assert counts()["open"]["equal"] >= 0.97 * counts()["open"]["number"]


# --- the table of the docs


def accuracy_table() -> list[str]:
    """The rows of the table in docs/triton.md."""
    lines = ["| Compiles | kernels | number | over a limit | fits, wrong | unjudged | shared bytes equal |",
             "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for name, count in counts().items():
        kernels = len({row["kernel"] for row in rows() if title(row) == name})
        judged = count["number"] - count["unjudged"]
        lines.append(
            f"| {name} | {kernels} | {count['number']} | {count['over']} | {count['kept'] + count['dropped']} "
            f"| {count['unjudged']} | {100 * count['equal'] / judged:.0f} % |"
        )
    return lines


def test_the_docs_state_the_accuracy() -> None:
    """`python -m tests.placement.test_triton_described_compiles` prints the table."""
    page = (Path(__file__).parents[2] / "docs" / "triton.md").read_text(encoding="utf-8")
    assert "\n".join(accuracy_table()) in page


if __name__ == "__main__":
    print("\n".join(accuracy_table()))  # noqa: T201
