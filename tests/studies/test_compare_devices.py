"""Comparisons in one form: entries whatever decides, and on several devices."""

from __future__ import annotations

import pytest

import iomodel
from tests.support.inside import has_rates

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
    first, second = found.entries[:2]
    assert (first.hardware, first.implementation) == ("b200", "flash-attention-4")
    assert (second.hardware, second.implementation) == ("h100-sxm5", "flash-attention-3")
    assert found.best == first
    assert type(found).from_json(found.to_json()) == found
    assert len(repr(found)) < 300
    by_bytes = iomodel.compare(W, GPUS, objective="traffic")
    assert by_bytes.by == "traffic"
    assert [entry.seconds for entry in by_bytes.entries] == [None] * len(by_bytes.entries)


def test_a_device_without_an_answer_is_named() -> None:
    without = next(name for name in iomodel.list_hardware() if not has_rates(iomodel.hardware(name), "bf16"))
    found = iomodel.compare(W, ["h100-sxm5", without])
    assert [part.entries[0].hardware for part in found.parts] == ["h100-sxm5"]
    assert found.refused.keys() == {without}
    assert f"{without}: " in str(found)
    for wrong, says in (([], "at least one device"), (["b200", "b200"], "given twice"), ([7], "hardware: 7")):
        with pytest.raises(iomodel.IOModelError, match=says):
            iomodel.compare(W, wrong)  # type: ignore[arg-type]
