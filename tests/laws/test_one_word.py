"""One word stands for one quantity: every label of bytes and of FLOPs per byte, for one call."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any

import pytest

import iomodel
from iomodel.common.display import Table
from iomodel.common.labels import DRAM, LABELS, LEAST_REQUESTS, OVER_DRAM, REQUESTS
from tests.laws.test_docs import section

GPU = "h100-sxm5"
CALL = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
TILES = {"block_q": 128, "block_kv": 64}
UNITS = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "FLOP/B": 1.0, "GB/s": 1e9}
HEADER = re.compile(r">?(?P<label>.*) \[(?P<unit>[kMG]?B|FLOP/B)\]")
SIZES = (
    "SRAM", "shared memory", "registers", "tensor memory", "accumulators", "capacity", "footprint", "peak HBM",
    "on chip", "memory assumed", "working set", "bytes that need not move", "greatest", "lower bound",
    "every schedule", "moved", "saved", "leaving the L2", "runner-up", "fewest requests", "reads", "writes",
)  # fmt: skip
"""Sizes of memories, bounds, and figures of another tile or another boundary."""


@cache
def answers() -> dict[str, Any]:
    """One call at one tile, asked by every verb; comparisons, whose tiles are their own, apart."""
    return {
        "Estimate": iomodel.estimate("flash2", CALL, GPU, TILES),
        "Cost": iomodel.cost("flash2", CALL, TILES),
        "Diagnosis": iomodel.diagnose("flash2", CALL, GPU, 1.7e-3, TILES),
        "EstimateArray": iomodel.estimate_array("flash2", CALL, GPU, **TILES),
        "CostArray": iomodel.cost_array("flash2", CALL, **TILES),
    }


@cache
def others() -> tuple[Any, ...]:
    """Answers that choose tiles of their own."""
    return (
        iomodel.solve("flash3", CALL, GPU),
        iomodel.solve("flash2", CALL, sram_bytes="227 KiB"),
        iomodel.compare(CALL, GPU, algorithms=["flash2", "flash3"]),
        iomodel.compare(CALL, sram_bytes="227 KiB", algorithms=["flash2", "flash1"]),
        iomodel.kernels.tile_times("flash3", CALL, GPU),
        iomodel.staircase("flash2", CALL.replace(q_len=1024), alignment=128),
    )


def number(text: str) -> float | None:
    """The number that a cell begins with."""
    digits = re.match(r"[\d,]+(?:\.\d+)?", text)
    return None if digits is None else float(digits[0].replace(",", ""))


def labelled(tables: Any) -> Iterator[tuple[str, float | None]]:
    """Labels with a unit of bytes or FLOPs per byte, with the number beside each: of rows, then of columns."""
    for shown in (each for each in tables if isinstance(each, Table)):
        heads = [HEADER.fullmatch(str(column)) for column in shown.columns]
        for row in shown.rows:
            unit = re.split(r"[ ;(]", str(row[2]))[0] if len(row) == 3 and len(shown.columns) == 3 else ""
            if unit in UNITS and unit != "GB/s":
                yield str(row[0]).strip(), number(str(row[1]))
            for head, cell in zip(heads, row, strict=False):
                value = number(str(cell))
                if head is not None and value is not None:
                    yield head["label"], value * UNITS[head["unit"]]


def of_attributes(name: str, answer: Any) -> Iterator[tuple[str, float]]:
    """Attributes in the table of labels; an interval has two labels, whose ends are those of the printed table."""
    for one in LABELS.values():
        for kind, _, attribute in (path.partition(".") for path in one.attributes):
            value = getattr(answer, attribute, None) if kind == name else None
            if value is not None and not isinstance(value, tuple):
                yield one.label, float(value)


def test_a_word_has_one_value() -> None:
    values: dict[str, list[float]] = defaultdict(list)
    for name, answer in answers().items():
        pairs = [*labelled(answer.tables()), *of_attributes(name, answer)]
        for label, value in pairs:
            if label in LABELS and value is not None:
                values[label].append(value)
    assert {REQUESTS, DRAM, OVER_DRAM} <= values.keys()
    assert len(values[REQUESTS]) >= 4
    spread = {label: found for label, found in values.items() if max(found) > 1.01 * min(found)}
    assert not spread


def test_every_label_of_bytes_is_a_word() -> None:
    labels = {label for answer in (*answers().values(), *others()) for label, _ in labelled(answer.tables())}
    known = (*SIZES, f"{REQUESTS} / ")
    assert not {label for label in labels - LABELS.keys() if not any(word in label for word in known)}
    assert {REQUESTS, DRAM, LEAST_REQUESTS} <= labels | {LEAST_REQUESTS}


def test_pictures_have_the_words_and_values_of_the_table() -> None:
    pytest.importorskip("matplotlib")
    from iomodel import plots

    estimate = answers()["Estimate"]
    roofs = plots.roofline([estimate], GPU)
    (axes,) = roofs.axes
    assert axes.get_xlabel() == f"{OVER_DRAM} [FLOP/B]"
    point = next(line for line in axes.get_lines() if line.get_xdata()[0] == estimate.intensity)
    assert point.get_ydata()[0] == estimate.flops_per_second
    small = CALL.replace(heads=1, kv_heads=1, q_len=256)
    for picture in (
        plots.feasible_tiles("flash2", small, sram_bytes=2**18, alignment=64),
        plots.traffic_against_sram("flash2", small, sram=[2**18], alignment=64),
    ):
        words = [text for each in picture.axes for text in (each.get_xlabel(), each.get_ylabel())]
        assert any(re.fullmatch(rf"{REQUESTS} \[[kMG]?B\]", text) for text in words), words


def test_attributes_of_labels_exist() -> None:
    more = {"OperatorTraffic": "torch.report", "TrafficReport": "torch.report", "TraceSummary": "studies.trace.summary"}
    for kind, _, attribute in (path.partition(".") for one in LABELS.values() for path in one.attributes):
        made = getattr(import_module(f"iomodel.{more.get(kind, 'results')}"), kind)
        assert hasattr(made, attribute) or attribute in {part.name for part in fields(made)}, (kind, attribute)


def test_nomenclature_lists_the_labels() -> None:
    assert "```{labels}\n" in section("nomenclature.md", "Sizes and intensities")
