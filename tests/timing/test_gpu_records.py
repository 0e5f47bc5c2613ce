"""Records of measured GPUs: the rule that divides them, and exact counts against hardware counters."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from benchmarks.bytes import RECEIVED, requested
from benchmarks.gpu_accuracy import all_asked, table
from iomodel import list_hardware
from tests.support.gpu_records import ALSO_NAMED_BY, DEVICES, FOLDER, NAMED_BY, SHARED, Record, records

COUNTED = [record for record in records() if record.section == "traffic" and "kernel" in record.case and record.values]


def test_the_readme_states_the_rule_and_every_file() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    stated = page[page.index("share `section`") :]
    assert re.findall(r"`(\w+)`", stated)[: len(NAMED_BY) + 1] == ["section", *NAMED_BY]
    later = re.findall(r"`(\w+)`", stated[stated.index("with the values of") :])
    assert later[: len(ALSO_NAMED_BY)] == list(ALSO_NAMED_BY)
    assert {path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz")} == set(DEVICES)
    for path in FOLDER.glob("*.jsonl.gz"):
        assert f"`{path.name}`" in page
        assert path.name.removesuffix(".jsonl.gz") in list_hardware()


def test_a_curve_judges_as_a_whole() -> None:
    roles = defaultdict(set)
    for record in records():
        roles[record.curve].add(record.judges)
    assert all(len(found) == 1 for found in roles.values())
    judging = sum(found == {True} for found in roles.values())
    assert 0.35 * len(roles) <= judging <= 0.65 * len(roles)
    case = {"backend": "flash", "direction": "forward", "head_dim": 64, "causal": True, "dtype": "bf16"}
    assert Record("attention", case, {}, "").curve == "attention/flash//forward/64/true/bf16/////"


def test_shared_sections_of_the_second_device_judge_and_half_of_its_own_curves_do() -> None:
    first, second = (records(device) for device in DEVICES)
    assert set(SHARED) == {one.section for one in first} & {one.section for one in second} - {
        "rates",
        "versions",
        "info",
    }
    assert all(record.judges for record in second if record.section in SHARED)
    own = {record.curve: record.judges for record in second if record.section not in (*SHARED, "versions", "info")}
    assert 0.35 * len(own) <= sum(own.values()) <= 0.65 * len(own)
    case = {"kind": "dense", "what": "convolution", "dtype": "bf16", "axes": 2, "channels_last": True, "tf32": False}
    named = Record("convolution", case, {}, "", DEVICES[1]).curve
    assert named == "convolution//////bf16///convolution//dense/2/true/false///"


@pytest.mark.parametrize("record", COUNTED, ids=str)
def test_counts_are_what_the_sms_receive(record: Record) -> None:
    """Bytes from the L2 equal the count; under a mask an SM may find what it stored or loaded before in its L1."""
    received, count = record.values[RECEIVED], requested(record)
    found = 0.96 if record.case["causal"] else 1.0
    assert found * count <= received <= count


def test_every_group_is_tabulated() -> None:
    working = all_asked(False, ("deterministic",))
    lines = list(table(working, working))
    assert len(lines) == 2 + 2 + len({one.group for one in working})
