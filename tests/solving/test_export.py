"""Choices of tiles in order of time, and as source text."""

from __future__ import annotations

import json

import pytest

import iomodel
from iomodel.solving.export import exported, near_best

W = iomodel.Attention(heads=8, kv_heads=2, q_len=2048, head_dim=128, mask="causal")


def test_the_choices_are_ranked_by_time() -> None:
    s = iomodel.solve("flash3", W, "h100-sxm5", top=12)
    times = [choice.seconds or 0.0 for choice in s.ranked]
    assert len(times) == 12
    assert times == sorted(times)
    assert (dict(s.ranked[0].tiles), times[0]) == (dict(s.tiles), pytest.approx(s.seconds))
    assert len({tuple(choice.tiles.items()) for choice in s.ranked}) == 12
    for choice in s.ranked:
        assert iomodel.estimate("flash3", W, "h100-sxm5", choice.tiles).seconds == pytest.approx(choice.seconds)
    assert iomodel.solve("flash3", W, "h100-sxm5").ranked == ()


def test_an_export_has_the_choices_near_the_best() -> None:
    s = iomodel.solve("flash2", W, "h100-sxm5", top=1000)
    near = near_best(s)
    assert s.timed
    assert near == [choice for choice in s.ranked if (choice.seconds or 0.0) <= 1.05 * s.seconds]
    assert 1 < len(near) < len(s.ranked)
    assert [entry["tiles"] for entry in json.loads(exported(s, "json"))] == [dict(choice.tiles) for choice in near]
    first = near[0].tiles
    shape = f"cute::Shape<cute::_{first['block_q']}, cute::_{first['block_kv']}, cute::_128>"
    assert shape in exported(s, "cute").splitlines()[0]


def test_what_has_no_choices_is_refused() -> None:
    with pytest.raises(iomodel.InputError, match="top: 2 given; allowed: 1"):
        iomodel.solve("flash2", W, "a100-sxm4-80gb", objective="traffic", top=2)
    with pytest.raises(iomodel.InputError, match="top: 2 given; allowed: 1"):
        iomodel.solve("flash2", W, sram_bytes=10**5, top=2)
    with pytest.raises(iomodel.InputError, match="top: 0 given"):
        iomodel.solve("flash2", W, "a100-sxm4-80gb", top=0)
    with pytest.raises(iomodel.InputError, match="emit: given without choices"):
        exported(iomodel.solve("flash2", W, "a100-sxm4-80gb"), "cute")
    with pytest.raises(iomodel.UnknownNameError, match="emit: 'cuda' is unknown"):
        exported(iomodel.solve("flash2", W, "a100-sxm4-80gb", top=9), "cuda")
