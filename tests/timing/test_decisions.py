"""Measured decisions: the file holds together, and the benchmark's measures are those worked out by hand."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from math import inf
from pathlib import Path
from types import ModuleType

import pytest

import iomodel
from iomodel import list_hardware
from tests.support.inside import TIE

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "decisions.py"


@cache
def decisions() -> ModuleType:
    """The benchmark as a module; it is a script and in no package."""
    spec = spec_from_file_location("decisions", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["decisions"] = module
    spec.loader.exec_module(module)
    return module


def test_lists_are_whole_and_of_one_call() -> None:
    lists = list(decisions().lists())
    assert len({rows[0]["list"] for rows in lists}) == len(lists)
    for rows in lists:
        kept = {"value", "block_q", "block_kv", "warps", "stages", "splits", "packed"}
        assert len({tuple(sorted((name, row[name]) for name in row.keys() - kept)) for row in rows}) == 1
        assert rows[0]["role"] in {"open", "judging"}
        assert bool(rows[0]["not_asked"]) != (rows[0]["device"] in list_hardware())
        assert all(float(row["value"]) > 0 for row in rows)
        assert len({tuple(row[name] for name in kept - {"value"}) for row in rows}) == len(rows) > 1


def test_the_measures_are_those_worked_out_by_hand() -> None:
    module = decisions()
    assert module.tau((1, 2, 3), (1, 2, 3)) == 1
    assert module.tau((1, 2, 3), (3, 2, 1)) == -1
    assert module.tau((1, 2, 3), (1, 3, 2)) == pytest.approx(1 / 3)
    assert module.tau((1, 1, 2), (1, 2, 3)) == pytest.approx(2 / 6**0.5)
    assert module.tau((1, 1), (1, 2)) is None
    rows = tuple({"value": value, "unit": "ms"} for value in ("3.0", "2.0", "5.0"))
    found = module.Decided("a", "open", "tile", rows, (9.0, 9.5, 8.0))
    assert module.model(found) == 2
    assert [found.regret(pick) for pick in (1, 2, None)] == [0, 1.5, None]


def test_more_splits_help_until_the_bandwidth_is_reached() -> None:
    """128k keys of 8 heads on an H100: falling times, then at most a tenth above the time by bytes."""
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=131072, head_dim=128, dtype="bf16")
    found = [
        iomodel.estimate("split_kv", w, "h100-sxm5", {"block_q": 64, "block_kv": 128}, splits=splits, packed=True)
        for splits in (1, 2, 4, 8, 16, 32, 64)
    ]
    times = [one.seconds for one in found]
    assert times[:4] == sorted(times[:4], reverse=True)
    assert times[4:] == pytest.approx([times[3]] * 3, rel=0.01)
    assert times[0] > 5 * times[4]
    by_bytes = w.kv_len * 8 * 128 * 2 * 2 / (0.9 * 3.352e12)
    assert all(by_bytes < time < 1.1 * by_bytes for time in times[3:])


def test_the_default_of_decoding_reads_the_cache_once() -> None:
    """Splits and packing are chosen: 128k keys of 8 heads take 160 us by bytes on an H100."""
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=131072, head_dim=128, dtype="bf16")
    solved = iomodel.solve("split_kv", w, "h100-sxm5")
    assert solved.options["packed"]
    assert solved.options["splits"] > 1
    assert solved.cost.hbm_bytes / 3.352e12 == pytest.approx(160e-6, rel=0.1)


def test_picks_are_no_worse_than_naive_ones() -> None:
    module = decisions()
    every = module.decided()
    naive = {"splits": (module.one_split, module.filling), "tile": (module.largest, module.tile(64, 64, 4))}
    for family, rules in naive.items():
        part = [found for found in every if found.family == family and found.rows[0]["unit"] != "order"]
        worst = max(found.regret(module.model(found)) for found in part)
        for rule in rules:
            regrets = (found.regret(rule(found)) for found in part)
            assert worst <= max(regret for regret in regrets if regret is not None)


def taus(kernel: str) -> dict[str, float]:
    """Kendall's tau of each list of tiles of a kernel."""
    module = decisions()
    lists = [found for found in module.decided() if found.rows[0]["kernel"].startswith(kernel)]
    return {found.name: module.tau(found.predicted, found.measured) for found in lists}


def test_timed_lists_of_triton_kernels_are_ordered() -> None:
    """Six pairs, and eight configs of which only the best is told apart."""
    found = taus("Triton")
    assert found.pop("triton-autotune-h100-d128") == pytest.approx(0.5)
    assert list(found.values()) == [1] * 6


def test_the_best_tile_is_the_one_that_flashattention_2_chose() -> None:
    """By what its source says of the tiles that it does not take; for 256-wide rows on Hopper a pair is reversed."""
    module = decisions()
    for found in module.decided():
        if found.rows[0]["kernel"] == "FlashAttention-2":
            chosen = found.predicted[found.measured.index(min(found.measured))]
            tied = chosen <= min(found.predicted) * (
                1 + TIE
            )  # of equally fast tiles the library answers the shipped one
            assert tied is (found.name != "flash2-h100-d256"), found.name


def test_tiles_are_slower_as_the_source_of_flashattention_2_says() -> None:
    """Tiles of 8 warps at 64 and 128 columns, and 64 x 256; one that spills and one of 2 warps are refused."""
    refused = set()
    for found in decisions().decided():
        if found.name.startswith("flash2-2k"):
            for row, time in zip(found.rows[1:], found.predicted[1:], strict=True):
                if time == inf:
                    refused.add((row["block_q"], row["block_kv"], row["warps"]))
                else:
                    assert 1.08 < time / found.predicted[0] < float(row["value"]) + 0.1
    assert refused == {("128", "128", "2"), ("256", "64", "4")}
