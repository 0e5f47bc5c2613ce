"""Calls asked together have the answers that each has alone: counts, times, tiles and errors of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from tests.support.array_calls import COUNTS
from tests.support.estimate_calls import some
from tests.support.tile_names import tile_names

ATTENTION = [name for name in iomodel.list_algorithms() if algorithm(name).answers == "attention"]
WAYS = [(name, direction) for name in ATTENTION for direction in algorithm(name).directions]
TILED = [way for way in WAYS if way[0] not in ("eager", "standard")]
KERNELS = [way for way in WAYS if len(iomodel.list_implementations(way[0])) > 1]
"""Algorithms and directions: all of them, those with tiles, and those with a kernel beside the textbook's."""
FAST = [way for way in KERNELS if way[1] != "both"]
DEVICES = ("h100-sxm5", "a100-sxm4-80gb", "b200", "rtx4090", "l4", "mi300x", "tpu-v4")
WINDOWS = [iomodel.Window(left=300, right=0), iomodel.Window(right=7, align="top-left")]
FEATURES: list[dict[str, Any]] = [{}, {}, {}, {"dtype": "fp16"}, {"dtype": "fp8"}, {"page_size": 64}, {"bias": True}]
NEAR = 1e-9
Fields = dict[str, Any]


@dataclass(frozen=True)
class Together:
    """Calls that are asked at once: what they share, and a column of each number."""

    algorithm: str
    device: str
    shared: Fields
    columns: Mapping[str, np.ndarray[Any, Any]]
    tiles: Mapping[str, np.ndarray[Any, Any]]
    options: Fields
    kind: Callable[..., Any] = iomodel.Attention

    @property
    def size(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def arguments(self) -> Fields:
        return {**self.shared, **self.columns, **self.tiles, **self.options}

    def call(self, place: int) -> Any:
        return self.kind(**self.shared, **{name: int(column[place]) for name, column in self.columns.items()})

    def tile(self, place: int) -> dict[str, int] | None:
        return {name: int(column[place]) for name, column in self.tiles.items()} or None

    def each(self, verb: Callable[..., Any]) -> list[Any]:
        """The answer to each call alone, or its error."""
        return [answer(lambda place=place: verb(self.algorithm, self.call(place), place)) for place in range(self.size)]


def answer(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except iomodel.IOModelError as error:
        return error


def agree(together: Any, alone: list[Any]) -> bool:
    """Check an error; no answer is left to compare where all calls, or one that is asked wrongly, have none."""
    event(type(together).__name__)
    assert refused(together) == any(map(refused, alone)), (together, alone)
    return not refused(together)


def refused(found: Any) -> bool:
    return isinstance(found, iomodel.IOModelError) and not isinstance(found, iomodel.InfeasibleError)


@st.composite
def attention(
    draw: st.DrawFn, ways: list[tuple[str, str]], most: int = 4, tiled: bool | None = None, by_data: bool = True
) -> Together:
    """Calls of any algorithm, device, mask and direction, with or without tiles, under masks of formulas or data."""
    (name, direction), rng = draw(st.sampled_from(ways)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, masks = draw(st.integers(1, most)), algorithm(name).masks or ("full", "causal", "causal", *WINDOWS)
    mask: Any = draw(st.sampled_from(masks))
    plain = bool(algorithm(name).approximates)  # no features, and as many keys as queries
    features = {} if plain else draw(st.sampled_from(FEATURES))
    kv_heads = rng.choice([1, 2, 4], size)
    q_len = rng.integers(1, 9 if name == "split_kv" else 3000, size)
    columns = {
        "batch": rng.integers(1, 9, size), "kv_heads": kv_heads, "heads": kv_heads * rng.choice([1, 2, 8], size),
        "q_len": q_len, "kv_len": q_len + rng.integers(0, 3000, size) * (not plain),
        "head_dim": rng.choice([64, 96, 128], size),
    }  # fmt: skip
    if by_data and not plain and draw(st.integers(0, 5)) == 0:  # a mask given by data has its length
        lengths = draw(st.lists(st.integers(1, 700), min_size=1, max_size=4))
        mask = iomodel.Documents(lengths, causal=draw(st.booleans()))
        columns["q_len"] = columns["kv_len"] = np.full(size, sum(lengths))
    options = draw(st.sampled_from([{}, {}, {"packed": True}, {"packed": False}]))
    tiles: dict[str, Any] = {}
    if draw(st.booleans()) if tiled is None else tiled:
        switch = algorithm(name).tiled_by
        names = tile_names(name, mask, direction, **({switch: True} if switch else {}))
        tiles = {tile: rng.choice([16, 64, 100, 128], size) for tile in names}
    if tiles and "splits" in algorithm(name).takes(direction):
        options = {**options, "splits": draw(st.integers(1, 3))}
    shared = {"mask": mask, "direction": direction, **features}
    return Together(name, draw(st.sampled_from(DEVICES)), shared, columns, tiles, options)


SIZES = {"block_m": [16, 64, 256], "block_n": [64, 256], "block_k": [32, 64], "warps": [4, 8], "stages": [2, 4]}


@st.composite
def layers(draw: st.DrawFn) -> Together:
    """Linear layers, with tiles, a launch and splits or without."""
    rng, size = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.integers(1, 6))
    columns = {
        "rows": rng.choice([1, 17, 128, 500, 4000, 20_000], size), "in_features": rng.choice([512, 1000, 4096], size),
        "out_features": rng.choice([64, 1000, 8192], size), "groups": rng.choice([1, 1, 8], size),
    }  # fmt: skip
    types = draw(st.sampled_from(
        [{}, {"gated": True}, {"weight_dtype": "int4", "scale_block": 128}, {"dtype": "fp16"}]
    ))  # fmt: skip
    names = draw(st.sampled_from([[], [*SIZES][:3], [*SIZES]]))
    tiles = {name: rng.choice(SIZES[name], size) for name in names}
    splits = draw(st.sampled_from([{}, {"splits": 1}, {"splits": 2}]))
    device = draw(st.sampled_from(["h100-sxm5", "a100-sxm4-80gb", "b200"]))
    return Together("gemm", device, types, columns, tiles, splits, iomodel.Linear)


def pair(name: str, device: str, mask: Any = "causal", tiles: Fields | None = None, **options: Any) -> Together:
    """Two calls by hand, of lengths in which another launch or other options are best."""
    direction = options.pop("direction", "forward")
    columns = {"q_len": [199, 1026], "kv_len": [18_594, 1361], "heads": [16, 60], "kv_heads": [4, 4]}
    columns |= {"head_dim": [64, 128], **({"page_size": pages} if (pages := options.pop("page_size", None)) else {})}
    arrays = {field: np.array(values) for field, values in columns.items()}
    sizes = {tile: np.array([size, size]) for tile, size in (tiles or {}).items()}
    return Together(name, device, {"mask": mask, "direction": direction}, arrays, sizes, options)


def first(asked: Together) -> Together:
    """The first of some calls, in arrays of one element."""
    columns, tiles = ({name: values[:1] for name, values in each.items()} for each in (asked.columns, asked.tiles))
    return replace(asked, columns=columns, tiles=tiles)


TILES = {"block_q": 128, "block_kv": 64}
WIDTHS = Together(
    "split_kv", "h100-sxm5", {"q_len": 64, "mask": WINDOWS[0]}, {"head_dim": np.array([64, 128, 64])}, {}, {}
)


@given(asked=attention(WAYS, tiled=True))
def test_counts(asked: Together) -> None:
    together = answer(lambda: iomodel.cost_array(asked.algorithm, **asked.arguments))
    alone = asked.each(lambda name, call, place: iomodel.cost(name, call, asked.tile(place), **asked.options))
    if agree(together, alone):
        for place, one in enumerate(alone):
            for quantity in COUNTS:
                assert getattr(together, quantity)[place] == getattr(one, quantity), quantity


@example(pair("flash2", "a100-sxm4-80gb", tiles=TILES))
@example(pair("split_kv", "h100-sxm5", "full", TILES, splits=3))
@example(pair("flash3", "h100-sxm5", tiles={**TILES, "warps": 8}, packed=True))
@example(pair("flash3", "h100-sxm5"))
@example(pair("flash2", "h100-sxm5", tiles=TILES, page_size=[16, 100]))
@example(pair("flash1", "rtx4090", direction="both"))
@example(pair("flash2", "tpu-v4", direction="both"))
@example(pair("eager", "a100-sxm4-80gb", direction="both"))
@example(first(pair("split_kv", "mi300x", WINDOWS[0], TILES)))
@example(first(pair("flash2", "tpu-v4", iomodel.Window(), TILES)))
@example(WIDTHS)
@example(pair("flash2", "a100-sxm4-80gb", tiles={**TILES, "bwd_block_q": 64, "bwd_block_kv": 128}, direction="both"))
@given(asked=attention(WAYS) | attention(KERNELS) | layers())
def test_times(asked: Together) -> None:
    together = answer(
        lambda: iomodel.estimate_array(asked.algorithm, None, asked.device, infeasible="mark", **asked.arguments)
    )
    alone = asked.each(
        lambda name, call, place: iomodel.estimate(name, call, asked.device, asked.tile(place), **asked.options)
    )
    if not agree(together, alone):
        return
    for place, one in enumerate(alone):
        assert together.feasible[place] == isinstance(one, iomodel.Estimate)
        if isinstance(one, iomodel.Estimate):
            same_estimate(together, place, one)


def same_estimate(together: iomodel.EstimateArray, place: int, one: iomodel.Estimate) -> None:
    assert together.seconds[place] == pytest.approx(one.seconds, rel=NEAR)
    assert together.mfu[place] == pytest.approx(one.mfu, rel=NEAR)
    for name, seconds in together.breakdown.items():
        assert seconds[place] == pytest.approx(one.breakdown.get(name, 0.0), rel=1e-6, abs=1e-14)
    known = {**one.cost.options, **one.tiles}
    for name, chosen in together.chosen.items():
        assert chosen[place] == known.get(name, chosen[place])
    if known.items() >= {name: together.costs.options.get(name) for name in ("splits", "packed")}.items():
        assert together.costs.hbm_bytes[place] == one.cost.hbm_bytes
    assert together[place].seconds == one.seconds


@example(pair("flash2", "a100-sxm4-80gb", WINDOWS[0]), {})
@example(pair("split_kv", "h100-sxm5", "full"), {})
@example(pair("flash2", "b200", packed=True), {})
@example(pair("flash3", "h100-sxm5"), {})
@given(
    asked=attention(FAST, most=3, tiled=False, by_data=False),
    limits=st.sampled_from([{}, {}, {"min_block_kv": 48}]),
)
def test_fastest_tiles(asked: Together, limits: Fields) -> None:
    given = {**asked.options, **limits}
    together = answer(
        lambda: iomodel.solve_array(
            asked.algorithm, None, asked.device, objective="time", infeasible="mark", **asked.arguments, **limits
        )
    )
    alone = asked.each(lambda name, call, _: timed(iomodel.solve(name, call, asked.device, objective="time", **given)))
    if not agree(together, alone):
        return
    for place, one in enumerate(alone):
        assert together.feasible[place] == isinstance(one, iomodel.Solution)
        if isinstance(one, iomodel.Solution):
            same_solution(together, place, one)
            assert together.seconds[place] == pytest.approx(one.seconds, rel=NEAR)
            searched = {option: int(together.searched[option][place]) for option in one.searched}
            assert searched == {option: int(one.options[option]) for option in one.searched}


@pytest.mark.parametrize("widths", [(64, 64, 128), (328, 351, 217)])
def test_each_call_has_its_own_options(widths: tuple[int, int, int]) -> None:
    """Calls of the same widths are searched together, others apart; either way each has its own number of splits."""
    lengths, splits = (188_670, 114_605, 87_217), (2, 5, 1)
    shared = {"q_len": 1024, "value_dim": 8}
    together = iomodel.solve_array(
        "split_kv", None, "h100-sxm5", objective="time", kv_len=lengths, head_dim=widths, splits=splits, **shared
    )
    for place, (kv_len, width, number) in enumerate(zip(lengths, widths, splits, strict=True)):
        call = iomodel.Attention(kv_len=kv_len, head_dim=width, **shared)
        one = iomodel.solve("split_kv", call, "h100-sxm5", splits=number)
        same_solution(together, place, one)
        assert together.seconds[place] == pytest.approx(one.seconds, rel=NEAR)


def timed(solution: iomodel.Solution) -> iomodel.Solution:
    if not solution.timed:
        raise iomodel.InputError("objective: 'time' given with no implementation")
    return solution


def same_solution(together: iomodel.SolutionArray, place: int, one: iomodel.Solution) -> None:
    assert {name: int(sizes[place]) for name, sizes in together.tiles.items()} == dict(one.tiles)
    assert together.hbm_bytes[place] == one.cost.hbm_bytes
    assert together[place].tiles == one.tiles


@given(
    asked=attention(TILED, most=3, tiled=False),
    budget=st.sampled_from([2_000, 50_000, 232_448]),
    limits=st.sampled_from([{}, {"alignment": 16}, {"min_block_kv": 16}, {"epsilon": 0.1}]),
)
def test_tiles_of_least_traffic(asked: Together, budget: int, limits: Fields) -> None:
    more = {**asked.options, **limits, "sram_bytes": budget}
    together = answer(
        lambda: iomodel.solve_array(asked.algorithm, infeasible="mark", **asked.shared, **asked.columns, **more)
    )
    alone = asked.each(lambda name, call, _: iomodel.solve(name, call, **more))
    if not agree(together, alone):
        return
    for place, one in enumerate(alone):
        assert together.feasible[place] == isinstance(one, iomodel.Solution)
        if isinstance(one, iomodel.Solution):
            same_solution(together, place, one)
            assert together.least_hbm_bytes[place] == one.certificate.least_hbm_bytes


LAUNCHES: list[Fields] = [TILES | more for more in (
    {}, {"block_q": 64}, {"warps": 4}, {"warps": 8}, {"stages": 9}, {"warps": 4, "stages": 9},
)]  # fmt: skip
SEQUENCES: list[list[Callable[[iomodel.Hardware], Any]]] = [
    [partial(lambda call, tiles, gpu: iomodel.estimate("flash2", call, gpu, tiles).seconds, w, tiles)
     for w in (iomodel.Attention(heads=8, q_len=3000, head_dim=128),) for tiles in LAUNCHES],
    [partial(lambda call, gpu: dict(iomodel.solve("flash2", call, gpu).tiles), call)
     for call in (pair("flash2", "").call(place) for place in range(2))],
]  # fmt: skip


@pytest.mark.parametrize("questions", SEQUENCES, ids=("launches", "tiles"))
def test_an_answer_does_not_depend_on_the_question_before(questions: list[Callable[[iomodel.Hardware], Any]]) -> None:
    """What is kept for a device and a call is of that call alone."""

    def said(gpu: iomodel.Hardware, question: Callable[[iomodel.Hardware], Any]) -> object:
        found = answer(partial(question, gpu))
        return str(found) if isinstance(found, Exception) else found

    fresh = [said(iomodel.hardware("h100-sxm5").model_copy(), question) for question in questions]
    for first, second in permutations(range(len(questions)), 2):
        gpu = iomodel.hardware("h100-sxm5").model_copy()
        assert said(gpu, questions[first]) == fresh[first]
        assert said(gpu, questions[second]) == fresh[second]


@some(4)
@given(asked=attention(FAST, most=2))
def test_more_calls_change_no_answer(asked: Together) -> None:
    """The calls of an array repeated 300 times are timed in pieces."""
    many = {name: np.tile(column, 300) for name, column in {**asked.columns, **asked.tiles}.items()}
    ask = partial(iomodel.estimate_array, asked.algorithm, None, asked.device, infeasible="mark", **asked.options)
    few = answer(lambda: ask(**asked.shared, **asked.columns, **asked.tiles))
    found = answer(lambda: ask(**asked.shared, **many))
    if isinstance(few, iomodel.IOModelError):
        assert str(found) == str(few)
    else:
        assert np.array_equal(found.seconds.reshape(300, -1), np.tile(few.seconds, (300, 1)), equal_nan=True)
