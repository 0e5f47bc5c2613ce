"""Comparisons in one form: entries whatever decides, and on several devices."""

from __future__ import annotations

import pytest

import iomodel
from tests.support.inside import Comparison, has_rates

W = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
DECODE = iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=8192, head_dim=128)
GPUS = ["h100-sxm5", "b200"]


@pytest.mark.parametrize("call", [W, DECODE], ids=["prefill", "decode"])
def test_an_entry_is_the_answer_whatever_decides(call: iomodel.Attention) -> None:
    for found in (iomodel.compare(call, "h100-sxm5"), iomodel.compare(call, sram_bytes="100 KiB")):
        assert len(found.entries) == len(found.answers)
        for entry, answer in zip(found.entries, found.answers, strict=True):
            assert (entry.algorithm, entry.hbm_bytes) == (answer.algorithm, answer.cost.hbm_bytes)
            assert iomodel.cost(entry.algorithm, call, tiles=entry.choice) == answer.cost
            assert (entry.seconds is None) == (found.by == "traffic")
        assert found.best is next(a for a in found.answers if a.algorithm not in found.approximates)


def test_devices_are_compared_in_one_order() -> None:
    found = iomodel.compare(W, GPUS)
    assert found.by == "time"
    alone = [entry for device in GPUS for entry in iomodel.compare(W, device).entries]
    assert sorted(alone, key=lambda entry: entry.seconds or 0) == list(found.entries)
    fastest = {name: next(one for one in found.entries if one.hardware == name) for name in ("b200", "h100-sxm5")}
    assert fastest["b200"] == found.entries[0]
    assert {name: one.implementation for name, one in fastest.items()} == {
        "b200": "flash-attention-4",
        "h100-sxm5": "flash-attention-3",
    }
    assert found.best is found.answers[0]
    assert type(found).from_json(found.to_json()) == found
    assert len(repr(found)) < 300
    by_bytes = iomodel.compare(W, GPUS, objective="traffic")
    assert by_bytes.by == "traffic"
    assert [entry.seconds for entry in by_bytes.entries] == [None] * len(by_bytes.entries)


def test_a_device_without_an_answer_is_named() -> None:
    without = next(name for name in iomodel.list_hardware() if not has_rates(iomodel.hardware(name), "bf16"))
    found = iomodel.compare(W, ["h100-sxm5", without])
    assert {entry.hardware for entry in found.entries} == {"h100-sxm5"}
    assert [one.hardware for one in found.absent if one.algorithm is None] == [without]
    assert f"{without}: " in str(found)
    for wrong, says in (([], "at least one device"), (["b200", "b200"], "given twice"), ([7], "hardware: 7")):
        with pytest.raises(iomodel.IOModelError, match=says):
            iomodel.compare(W, wrong)  # type: ignore[arg-type]


def test_one_class_whatever_is_compared() -> None:
    """Algorithms by time and by traffic, algorithms on devices, and one algorithm on devices."""
    found = [
        iomodel.compare(W, "h100-sxm5", algorithms=["flash2", "flash3"]),
        iomodel.compare(W, sram_bytes="100 KiB"),
        iomodel.compare(W, ["h100-sxm5", "mi300x"], algorithms=["flash2", "flash3"]),
        iomodel.compare(W, ["h100-sxm5", "b200"], objective="traffic", algorithms=["flash2"]),
        Comparison.over(W, GPUS, lambda device: iomodel.solve("flash2", W, device)),
        Comparison.over(W, GPUS, lambda device: iomodel.estimate("flash3", W, device)),
    ]
    for one in found:
        assert type(one) is iomodel.Comparison
        assert iomodel.Comparison.from_json(one.to_json()) == one
        assert one.relative(one.best) == 1
        measured = [entry.seconds if one.by == "time" else entry.hbm_bytes for entry in one.entries]
        assert measured == sorted(measured)
        assert len(one.records()) == len(one.entries) + len(one.absent)
        assert all(missing.algorithm or f"{missing.hardware}: " in str(one) for missing in one.absent)


def test_old_spellings_of_a_comparison_warn() -> None:
    timed, counted = iomodel.compare(W, "mi300x"), iomodel.compare(W, sram_bytes=20_000)
    with pytest.warns(DeprecationWarning, match=r"use \.entries") as told:
        assert (timed.estimates, counted.solutions) == (timed.answers, counted.answers)
    with pytest.warns(DeprecationWarning, match=r"use \.absent"):
        assert {*timed.infeasible, *timed.without_kernels} == {one.algorithm for one in timed.absent}
    with pytest.warns(DeprecationWarning, match=r"use \.absent"):
        assert counted.infeasible == counted.absent
    with pytest.warns(DeprecationWarning, match=r"use iomodel\.Comparison"):
        assert iomodel.TimeComparison is iomodel.Comparison
    assert {warning.filename for warning in told} == {__file__}
