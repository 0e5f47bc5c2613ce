"""The published measurements hold together: columns, conversions, names, reasons, sources and the papers' own sums."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import iomodel

FOLDER = Path(__file__).parents[1] / "measured"
FILES = ("published", "published_held_out")
Row = dict[str, str]


def read(name: str) -> list[Row]:
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


ROWS = {name: read(name) for name in FILES}
EVERY = [row for name in FILES for row in ROWS[name]]
KEPT = [row for row in EVERY if not row["excluded"]]
SIZES = ("head_dim", "value_dim", "q_len", "kv_len", "batch", "heads", "kv_heads")
SECONDS_PER = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
# Matrix products of an output tile; the backward pass makes S again.
PRODUCTS = {"forward": 2, "backward": 5, "both": 7}
REASONS = (
    "GPU not named",
    "clock not stock: ",
    "context inferred: ",
    "context not stated: ",
    "kernel is a variant: ",
    "no algorithm of ours",
    "no shipped spec of this GPU",
    "not a kernel",
    "not a time",
    "same run as the row in ms",
)
WORDS = {
    "direction": {"forward", "backward", "both"},
    "dtype": {"fp16", "bf16", "fp8"},
    "dropout": {"yes", "no"},
    "padding": {"yes", "no"},
    "read_from": {"text", "figure label"},
}


def flops(row: Row) -> float:
    """By the convention of the FlashAttention papers: whole products, a causal mask halves them."""
    q_len, kv_len, head_dim, heads, batch = (
        int(row[name]) for name in ("q_len", "kv_len", "head_dim", "heads", "batch")
    )
    whole = PRODUCTS[row["direction"]] * 2 * q_len * kv_len * head_dim * heads * batch
    return whole / 2 if row["mask"] == "causal" else float(whole)


def key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in ("curve", "q_len", "kv_len", "batch"))


def test_no_curve_has_a_point_twice_and_none_is_in_both_files() -> None:
    assert [point for point, times in Counter(map(key, EVERY)).items() if times > 1] == []
    assert not {row["curve"] for row in ROWS["published"]} & {row["curve"] for row in ROWS["published_held_out"]}


def test_a_curve_is_one_line_of_one_source() -> None:
    same = ("gpu", "device", "kernel", "direction", "mask", "head_dim", "dtype", "dropout", "padding", "unit", "source")
    lines = {(row["curve"], *(row[name] for name in same)) for row in EVERY}
    assert len(lines) == len({row["curve"] for row in EVERY})


def test_the_seconds_follow_from_the_value() -> None:
    for row in EVERY:
        complete = all(row[name] for name in SIZES) and row["mask"] in {"full", "causal"}
        if row["unit"] in SECONDS_PER:
            assert float(row["seconds"]) == pytest.approx(float(row["value"]) * SECONDS_PER[row["unit"]], rel=1e-5), row
        elif row["unit"] != "TFLOPs/s":
            assert not row["seconds"], row
            assert "not a time" in row["excluded"], row
        elif complete:
            assert flops(row) / float(row["seconds"]) == pytest.approx(float(row["value"]) * 1e12, rel=1e-5), row


def test_every_device_and_every_algorithm_is_shipped() -> None:
    assert {row["device"] for row in EVERY} - {""} <= set(iomodel.list_hardware())
    assert {row["algorithm"] for row in EVERY} - {""} <= set(iomodel.list_algorithms())


def test_a_row_that_is_kept_states_everything() -> None:
    for row in KEPT:
        assert all(row[name] for name in ("device", "algorithm", "implementation", "seconds", "source", *SIZES)), row
        assert all(row[name] in allowed for name, allowed in WORDS.items()), row
        assert row["mask"] in {"full", "causal"}, row


def test_a_row_that_is_excluded_says_why() -> None:
    for row in EVERY:
        for reason in row["excluded"].split("; ") if row["excluded"] else ():
            assert reason.startswith(REASONS), row
            assert not reason.endswith(": "), row
        assert bool(row["algorithm"]) != any(text in row["excluded"] for text in ("no algorithm", "not a kernel")), row
        assert bool(row["device"]) or "GPU" in row["excluded"], row


def test_no_kept_row_is_faster_than_its_device() -> None:
    peaks = {name: iomodel.hardware(name).compute.peak for name in {row["device"] for row in KEPT}}
    for row in KEPT:
        assert flops(row) / float(row["seconds"]) < float(getattr(peaks[row["device"]], row["dtype"]).value), row


def test_forward_and_backward_add_up_in_the_tables() -> None:
    # FlashAttention, Tables 9 to 20: forward, backward and combined in turn. Short rows are mostly launches.
    cells = {
        (row["source"], row["kernel"], int(row["q_len"])): row for row in KEPT if "2205.14135v2, Table" in row["source"]
    }
    name = "Dao et al. 2022, arXiv 2205.14135v2, Table {}".format
    sums = 0
    for (source, kernel, q_len), first in cells.items():
        rest = [cells.get((name(int(source.split()[-1]) + i), kernel, q_len)) for i in (1, 2)]
        if first["direction"] == "forward" and q_len >= 512 and not first["doubt"] and all(rest):
            backward, both = (float(row["seconds"]) for row in rest if row)
            assert float(first["seconds"]) + backward == pytest.approx(both, rel=0.12), first
            sums += 1
    assert sums == 4 * (8 + 4) + 3 * 3


def test_the_number_of_rows_of_each_source() -> None:
    def count(name: str) -> dict[str, int]:
        papers = {"2205.14135": 0, "2307.08691": 0, "2407.08608": 0, "elsewhere": 0}
        for row in ROWS[name]:
            papers[next((paper for paper in papers if paper in row["source"]), "elsewhere")] += 1
        return papers

    assert count("published") == {"2205.14135": 194, "2307.08691": 99, "2407.08608": 104, "elsewhere": 314}
    assert count("published_held_out") == {"2205.14135": 96, "2307.08691": 61, "2407.08608": 87, "elsewhere": 75}
    assert [sum(not row["excluded"] for row in ROWS[name]) for name in FILES] == [328, 267]


@pytest.mark.parametrize("name", [f"published_{number}" for number in (2, 4, 5, 6, 7, 8, 9)])
def test_curves_of_the_other_machines_take_their_roles_in_turn(name: str) -> None:
    """In the order of the SHA-256 of their names, within each device and direction, the first one judges."""
    rows = read(name)
    curves: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for row in rows:
        roles = curves[row["device"], row["direction"]]
        assert roles.setdefault(row["curve"], row["role"]) == row["role"]
    for roles in curves.values():
        ordered = sorted(roles, key=lambda curve: hashlib.sha256(curve.encode()).hexdigest())
        assert [roles[curve] for curve in ordered] == [("judging", "working")[i % 2] for i in range(len(ordered))]


def test_curves_of_cudnn_take_their_roles_by_device_and_in_turn() -> None:
    """A GB300 judges, but for the curve that a constant was read off; a curve with other rows keeps its role."""
    before = {row["curve"]: row["role"] for row in read("published_2")}
    curves: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for row in read("published_3"):
        if row["device"] == "gb300":
            assert (row["role"] == "working") == (row["curve"] == "gb300-cudnn-fwd-full-d128-h40x40")
        elif row["curve"] in before:
            assert row["role"] == before[row["curve"]]
        else:
            assert curves[row["device"], row["direction"]].setdefault(row["curve"], row["role"]) == row["role"]
    for roles in curves.values():
        ordered = sorted(roles, key=lambda curve: hashlib.sha256(curve.encode()).hexdigest())
        assert [roles[curve] for curve in ordered] == [("judging", "working")[i % 2] for i in range(len(ordered))]


def test_seconds_of_the_other_machines_follow_from_their_values() -> None:
    for row in [row for number in (2, 3, 4, 5, 6, 7, 8, 9) for row in read(f"published_{number}")]:
        if row["unit"] in SECONDS_PER:
            assert float(row["seconds"]) == pytest.approx(float(row["value"]) * SECONDS_PER[row["unit"]], rel=1e-5)
            continue
        mean = (int(row["head_dim"]) + int(row["value_dim"])) // 2
        moved = 4 * mean * int(row["kv_len"]) * int(row["batch"]) * int(row["kv_heads"])
        counted = moved if row["unit"] == "TB/s" else flops({**row, "head_dim": str(mean)})
        assert float(row["seconds"]) == pytest.approx(counted / float(row["value"]) / 1e12, rel=1e-5)
