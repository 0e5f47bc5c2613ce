"""Choices of tiles, launch and options, in one mapping and by name."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import iomodel
from iomodel import Attention, Linear, Solution
from iomodel.counting.choice import split_choice

DECODE = Attention(heads=32, kv_heads=8, q_len=1, kv_len=131072, head_dim=128)
PREFILL = Attention(heads=8, kv_heads=8, q_len=1024, head_dim=64, mask="causal")
GPU = "h100-sxm5"
SOLVED: Mapping[str, Callable[[], Solution]] = {
    "splits and packing": lambda: iomodel.solve("split_kv", DECODE, GPU),
    "an option given": lambda: iomodel.solve("flash2", PREFILL, GPU, lse=False),
    "both passes": lambda: iomodel.solve("flash2", PREFILL.model_copy(update={"direction": "both"}), GPU),
    "a bare budget": lambda: iomodel.solve("flash1", PREFILL, sram_bytes=100_000),
    "a layer": lambda: iomodel.solve("gemm", Linear(rows=64, in_features=4096, out_features=512), GPU),
    "tiled products": lambda: iomodel.solve("standard", PREFILL, sram_bytes=100_000),
}
VERBS: Mapping[str, Callable[..., Any]] = {
    "cost": lambda **tiles: iomodel.cost("split_kv", DECODE, **tiles).hbm_bytes,
    "estimate": lambda **tiles: iomodel.estimate("split_kv", DECODE, GPU, **tiles).seconds,
    "check": lambda **tiles: iomodel.check("split_kv", DECODE, GPU, **tiles),
    "trace": lambda **tiles: iomodel.trace("split_kv", DECODE, GPU, **tiles).summary,
    "diagnose": lambda **tiles: iomodel.diagnose("split_kv", DECODE, GPU, 1e-3, **tiles).estimate.requested_bytes,
}


@pytest.mark.parametrize("question", SOLVED)
def test_a_choice_costs_what_its_solution_costs(question: str) -> None:
    solution = SOLVED[question]()
    algorithm, call = solution.algorithm, solution.cost.workload
    assert iomodel.cost(algorithm, call, tiles=solution.choice) == solution.cost
    assert iomodel.cost(algorithm, call, **solution.choice) == solution.cost
    searched = {name: solution.options[name] for name in solution.searched}
    assert {**solution.tiles, **searched}.items() <= solution.choice.items()


@pytest.mark.parametrize("journey", ["as it is", "pickled", "copied", "through JSON"])
def test_the_tiles_of_a_solution_bring_its_searched_options(journey: str) -> None:
    """Without them the count was that of rows that are not packed: four times the bytes."""
    solution = SOLVED["splits and packing"]()
    if journey == "pickled":
        solution = pickle.loads(pickle.dumps(solution))
    elif journey == "copied":
        solution = copy.deepcopy(solution)
    elif journey == "through JSON":
        solution = Solution.from_json(solution.to_json())
    assert iomodel.cost("split_kv", DECODE, solution.tiles) == solution.cost
    bare = iomodel.cost("split_kv", DECODE, dict(solution.tiles))
    assert bare.reads["K"] == DECODE.group * solution.cost.reads["K"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_takes_a_choice_as_a_mapping_and_by_name(verb: str) -> None:
    solution, ask = SOLVED["splits and packing"](), VERBS[verb]
    answer = ask(tiles=solution.choice)
    assert ask(**solution.choice) == answer
    assert ask(tiles=solution.tiles) == answer
    options = {name: value for name, value in solution.choice.items() if name not in solution.tiles}
    assert ask(tiles=dict(solution.tiles), **options) == answer
    assert ask(tiles=options, **solution.tiles) == answer


def test_a_solution_ranked_below_is_a_choice_too() -> None:
    ranked = iomodel.solve("split_kv", DECODE, GPU, top=3).ranked
    for choice in ranked:
        assert iomodel.cost("split_kv", DECODE, choice.tiles).hbm_bytes == choice.hbm_bytes


def test_a_name_with_two_values_is_refused() -> None:
    tiles = {"block_q": 64, "block_kv": 64, "splits": 2}
    assert iomodel.cost("split_kv", DECODE, tiles, splits=2) == iomodel.cost("split_kv", DECODE, tiles)
    for name, value in (("splits", 3), ("block_q", 128)):
        with pytest.raises(iomodel.InputError, match=f"^{name}: .* given in tiles and {value} by name"):
            iomodel.cost("split_kv", DECODE, tiles, **{name: value})


def test_tiles_are_none_only_where_none_are_given() -> None:
    assert split_choice("split_kv", None, {"splits": 2}) == (None, {"splits": 2})
    assert split_choice("split_kv", {"splits": 2}, {}) == (None, {"splits": 2})
    assert split_choice("split_kv", {}, {}) == ({}, {})
