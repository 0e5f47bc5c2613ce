"""The solver equals exhaustive search, and its certificate is true."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Integer

import iomodel
from iomodel import Attention, VarlenAttention
from iomodel.algorithms import algorithm
from iomodel.nests import Algorithm, B_c, Hold, K, Kernel, Load, Loop, MatMul, O, Q, Store, V, depth, key, query
from tests.support.exhaustive_tiles import KEYS, WAYS, Call, Question, exhaustive, tiles_of
from tests.support.inside import NUMBERS, other_of
from tests.support.strategies import FIELD_OF, dtypes, fraction_of_examples

DRESSES: list[dict[str, Any]] = [
    {},
    {"bias": True, "alibi": True},
    {"sinks": True, "dropout": 0.5},
    {"page_size": 3, "kv_scales": "head"},
    {"kv_dtype": "int8", "kv_scales": "token", "softcap": 30.0},
    {"latent": True, "kv_heads": 1},
]
MASKS: list[Any] = ["full", "causal", iomodel.Window(left=3, right=1), "documents", "blocks", iomodel.Window(left=2)]
Form = tuple[dict[str, Any], Any, dict[str, bool]]
ROW_BY_ROW = Algorithm(
    "row_by_row",
    "Attention of one query after another",
    "an example",
    declare=lambda: (
        Kernel(
            "rows",
            [
                Loop(
                    query,
                    Integer(1),
                    [
                        Load(Q),
                        Hold(O, "fp32"),
                        Loop(key, B_c, [Load(K), MatMul(query, key, depth), Load(V)], masked=True),
                        Store(O),
                    ],
                )
            ],
        ),
    ),
)
SERVING = {"page_size", "kv_scales", "kv_dtype", "latent"}


@cache
def forms(name: str, direction: str) -> list[Form]:
    """Features, masks and switches that go together; few, for each has formulas of its own to compile."""
    found = algorithm(name)
    passes = found.directions[:2] if direction == "both" else (direction,)
    lacked = {FIELD_OF.get(feature, feature) for way in passes for feature in found.without.get(way, ())}
    lacked |= SERVING if direction != "forward" else set()
    dresses = [{field: on for field, on in dress.items() if field not in lacked} for dress in DRESSES]
    free = found.takes(direction).keys() - {found.tiled_by, *(found.saved if direction == "both" else ())}
    switches = sorted(option for option in free if type(found.options[option]) is bool)
    choices = list(product([False, True], repeat=len(switches) + 1))
    draw = Random(f"{name} {direction}")
    return [
        (dresses[(i + shift) % len(dresses)], mask, dict(zip([*switches, "packed"], draw.choice(choices), strict=True)))
        for shift in ((0, 2, 3) if direction == "forward" else (0, 1))
        for i, mask in enumerate(MASKS)
    ]


@st.composite
def calls(draw: st.DrawFn, dress: dict[str, Any], mask: Any, direction: str, longest: int) -> Call:
    """A call of one length, or at times of a few."""
    lengths, widths = st.integers(1, longest), st.integers(1, 4)
    group = draw(st.integers(1, 3))
    kv_heads = 1 if "latent" in dress else draw(st.integers(1, 2))
    value_dim = draw(widths)
    fields = {
        "heads": kv_heads * group,
        "kv_heads": kv_heads,
        "value_dim": value_dim,
        "head_dim": draw(widths) + (value_dim if "latent" in dress else 0),
        "dtype": draw(dtypes.filter(lambda dtype: dtype != dress.get("kv_dtype"))),
        "direction": direction,
        **dress,
    }
    if mask in ("documents", "blocks"):
        fields.pop("page_size", None)
    q_len, kv_len = draw(lengths), draw(lengths)
    if mask == "documents":
        cuts = sorted(draw(st.sets(st.integers(1, q_len))) | {0, q_len})
        documents = iomodel.Documents(np.diff(cuts).tolist(), causal=draw(st.booleans()))
        return Attention(**fields, q_len=q_len, mask=documents)
    if mask == "blocks":
        row = st.lists(st.booleans(), min_size=-(-kv_len // 2), max_size=-(-kv_len // 2))
        blocks = draw(st.lists(row, min_size=-(-q_len // 3), max_size=-(-q_len // 3)))
        return Attention(**fields, q_len=q_len, kv_len=kv_len, mask=iomodel.BlockMask(blocks, 3, 2))
    if draw(st.integers(0, 3)):
        return Attention(**fields, batch=draw(st.integers(1, 2)), q_len=q_len, kv_len=kv_len, mask=mask)
    pairs = draw(st.lists(st.tuples(lengths, lengths), min_size=1, max_size=3))
    q_lens, kv_lens = zip(*pairs, strict=True)
    return VarlenAttention(**fields, q_lens=q_lens, kv_lens=kv_lens, mask=mask)


@st.composite
def questions(draw: st.DrawFn, name: str, direction: str = "forward", form: Form | None = None) -> Question:
    tiles = tiles_of(name, direction)
    dress, mask, switches = form or draw(st.sampled_from(forms(name, direction)))
    workload = draw(calls(dress, mask, direction, 4 if len(tiles) > 2 else 9))
    numbers = sorted(NUMBERS & algorithm(name).takes(direction).keys())
    options = {**switches, **{number: draw(st.integers(1, 4)) for number in numbers}}
    alignment = draw(st.sampled_from([1, 1, 2, 3]))
    least_kv = draw(st.sampled_from([None, None, 2, 3, 5])) if KEYS[0] in tiles else None
    if "splits" in options:
        keys = workload.kv_len if isinstance(workload, Attention) else max(workload.kv_lens)
        options["splits"] = min(options["splits"], -(-keys // alignment))
        least_kv = None if options["splits"] > 1 else least_kv
    unit = draw(st.sampled_from(["bytes", "elements"]))
    return Question(
        name,
        workload,
        unit,
        draw(st.integers(4, 150) if unit == "elements" else st.integers(8, 600)),
        alignment,
        least_kv,
        draw(st.sampled_from([0, 0, 0.05, 0.3, 1])),
        options,
    )


@pytest.mark.parametrize(("name", "direction"), WAYS)
@given(data=st.data())
def test_solver_equals_exhaustive_search(name: str, direction: str, data: st.DataObject) -> None:
    judge(data.draw(questions(name, direction)))


@pytest.mark.parametrize("name", ["flash1", "flash2", "split_kv", "tiled_query"])
@pytest.mark.parametrize("features", [{}, {"page_size": 3}], ids=str)
@given(data=st.data())
def test_what_trip_counts_do_not_tell_is_searched_without_them(
    name: str, features: dict[str, Any], data: st.DataObject
) -> None:
    """Without a mask too: the pages that a tile touches, the keys that a split has."""
    judge(data.draw(questions(name, form=(features, "full", {"packed": False}))))


TOP_LEFT = iomodel.Window(right=1, align="top-left")
AS_WRITTEN = [
    ("flash2", "forward", "padded_statistics"),
    ("flash2", "forward", "masked_loads"),
    ("flash2", "forward", "eager_loads"),
    ("flash2", "forward", "unskipped_window"),
    ("flash2", "forward", "padded_queries"),
    ("flash2", "forward", "order"),
    ("flash3", "forward", "order"),
    ("two_pass", "backward", "order"),
    ("flash2", "backward", "padded_statistics"),
    ("split_kv", "forward", "drop_empty_splits"),
    ("tiled_query", "forward", "masked_loads"),
]


@pytest.mark.parametrize(("name", "direction", "option"), AS_WRITTEN)
@given(data=st.data(), left=st.integers(0, 4))
def test_options_as_written_are_searched_exactly(
    name: str, direction: str, option: str, data: st.DataObject, left: int
) -> None:
    mask = data.draw(st.sampled_from(["full", "causal", iomodel.Window(left=left, right=0), TOP_LEFT]))
    question = data.draw(questions(name, direction, ({}, mask, {"packed": data.draw(st.booleans())})))
    judge(replace(question, options={**question.options, option: other_of(option)}))


@pytest.mark.parametrize("packed", [False, True])
@given(data=st.data())
def test_a_serpentine_order_is_searched_exactly(packed: bool, data: st.DataObject) -> None:
    """Without a mask few tiles compete, of which the search knows that none of the others is better."""
    question = data.draw(questions("flash2", form=({}, "full", {"packed": packed})))
    judge(replace(question, options={**question.options, "order": "serpentine"}))


def judge(question: Question) -> None:
    answer = exhaustive(question)
    if answer.tiles is None:
        with pytest.raises(iomodel.InfeasibleError) as caught:
            question.solve()
        assert caught.value.least == answer.least_budget
        return
    solution = question.solve()
    assert dict(solution.tiles) == answer.tiles
    assert solution.cost == question.cost(answer.tiles)
    certificate = solution.certificate
    assert certificate.least_hbm_bytes == answer.least
    assert (certificate.runner_up and certificate.runner_up.hbm_bytes) == answer.runner_up
    if certificate.runner_up:
        there = question.cost(certificate.runner_up.tiles)
        assert there.hbm_bytes == answer.runner_up
        assert question.footprint(there) <= question.budget


@pytest.mark.parametrize(("name", "direction"), [way for way in WAYS if len(tiles_of(*way)) > 2])
@given(data=st.data())
def test_tiles_of_different_kernels_do_not_meet(name: str, direction: str, data: st.DataObject) -> None:
    """What lets the oracle look at one pair at a time."""
    question = data.draw(questions(name, direction))
    tiles = {tile: data.draw(st.sampled_from(question.sizes(tile))) for tile in question.smallest}
    smallest = question.smallest
    alone = {pair: question.cost({**smallest, **{tile: tiles[tile] for tile in pair}}) for pair in question.pairs}
    cost = question.cost(tiles)
    assert cost.hbm_bytes == question.total({pair: apart.hbm_bytes for pair, apart in alone.items()})
    assert question.footprint(cost) == max(question.footprint(apart) for apart in alone.values())


@pytest.mark.parametrize(("name", "direction"), WAYS)
@given(data=st.data())
def test_certificate_is_true(name: str, direction: str, data: st.DataObject) -> None:
    question = data.draw(questions(name, direction))
    try:
        solution = question.solve()
    except iomodel.InfeasibleError as error:
        changed = {f"sram_{question.unit}": error.least}
        solution = question.solve(**changed)  # the smallest feasible budget fits, and is used up
        question = replace(question, budget=error.least)
    tiles, step = dict(solution.tiles), solution.certificate.next_step

    def occupied(**changes: int) -> int:
        return question.footprint(question.cost_at({**tiles, **changes}))

    assert occupied(**{step.tile: step.size}) == step.footprint == question.budget + step.excess
    assert step.excess > 0
    assert occupied(**{step.tile: step.size - question.alignment}) <= question.budget
    for tile, size in tiles.items():  # no other tile has a step that misses by less
        while (there := occupied(**{tile: size})) <= question.budget:
            size += question.alignment
        assert there - question.budget >= step.excess
    growable = [tile for tile in tiles if tiles[tile] < question.sizes(tile)[-1]]
    blocked = [tile for tile in growable if occupied(**{tile: tiles[tile] + question.alignment}) > question.budget]
    assert solution.certificate.binding == ("sram" if blocked else "traffic" if growable else "extent")
    cost, certificate = solution.cost, solution.certificate
    assert certificate.ratio == cost.hbm_bytes / certificate.lower_bound.bytes >= 1
    assert certificate.examined >= 1
    largest = {tile: question.sizes(tile)[-1] for tile in tiles}
    assert solution.saturated == (question.footprint(question.cost(largest)) <= question.budget)


@pytest.mark.parametrize(("name", "direction"), WAYS)
@given(data=st.data(), more=st.integers(1, 200))
def test_more_memory_never_costs_traffic(name: str, direction: str, data: st.DataObject, more: int) -> None:
    question = data.draw(questions(name, direction))
    try:
        small = question.solve(epsilon=0)
    except iomodel.InfeasibleError:
        return
    large = question.solve(epsilon=0, **{f"sram_{question.unit}": question.budget + more})
    assert large.cost.hbm_bytes <= small.cost.hbm_bytes


@given(data=st.data())
def test_epsilon_trades_at_most_its_share(data: st.DataObject) -> None:
    question = data.draw(questions("flash2"))
    try:
        strict = question.solve(epsilon=0)
    except iomodel.InfeasibleError:
        return
    traded = question.solve(epsilon=0.25)
    assert traded.tiles["block_kv"] >= strict.tiles["block_kv"]
    assert 4 * traded.cost.hbm_bytes <= 5 * strict.cost.hbm_bytes


def test_few_elements_suffice_for_eleven_passes() -> None:
    """M = 51200, N = 4096, d = 64, no LSE: 389 rows fit, so 11 passes over K and V, N d (2 + 2 * 11) in all."""
    w = iomodel.Attention(q_len=4096, head_dim=64)
    solution = iomodel.solve("flash2", w, sram_elements=51200, alignment=1, lse=False)
    assert solution.cost.hbm_elements == 4096 * 64 * 24 == 6_291_456
    assert solution.footprint <= 51200


def test_alignment_is_the_device_s_or_one() -> None:
    w = iomodel.Attention(q_len=1000, head_dim=64, mask="causal")
    on_device = iomodel.solve("flash2", w, "a100-sxm4-80gb", implementation="textbook")
    assert on_device.budget.alignment == 16
    assert all(size % 16 == 0 for size in on_device.tiles.values())
    assert iomodel.solve("flash2", w, sram_bytes=100_000).budget.alignment == 1
    assert iomodel.solve("flash2", w, iomodel.hardware("a100-sxm4-80gb"), alignment=64).tiles["block_q"] % 64 == 0


def test_a_long_walk_over_outer_tiles_is_the_same_in_strides() -> None:
    """More than 512 outer tiles: costs come from arrays, and equal those that scalars give."""
    w = iomodel.Attention(q_len=6000, head_dim=2, mask="causal")
    solution = iomodel.solve("flash2", w, sram_elements=30_000)
    every = (iomodel.cost("flash2", w, {"block_q": u, "block_kv": 1}) for u in range(1, 6001))
    fitting = sorted({cost.hbm_bytes for cost in every if cost.footprint_elements <= 30_000})
    assert solution.cost.hbm_bytes == fitting[0]
    assert solution.certificate.runner_up is not None
    assert solution.certificate.runner_up.hbm_bytes <= fitting[1]
    assert solution.certificate.examined > 512


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sram_bytes": None}, "hardware, sram_bytes, sram_elements: 0 values given; allowed: exactly one"),
        ({"sram_elements": 5}, "2 values given"),
        ({"sram_bytes": 0}, "sram_bytes: 0 given; allowed: an integer from 1"),
        ({"sram_bytes": float("nan")}, "sram_bytes: nan given"),
        ({"sram_bytes": 10**30}, "sram_bytes: 1000"),
        ({"alignment": 0}, "alignment: 0 given"),
        ({"alignment": True}, "alignment: True given"),
        ({"min_block_kv": -1}, "min_block_kv: -1 given"),
        ({"epsilon": -0.1}, "epsilon: -0.1 given; allowed: a share of traffic from 0 up"),
        ({"epsilon": float("inf")}, "epsilon: inf given"),
        ({"epsilon": "much"}, "epsilon: 'much' given"),
        ({"lse": 1}, "lse: 1 given; allowed: bool"),
        ({"softcap": True}, "option of flash2: 'softcap' is unknown"),
    ],
)
def test_bad_input_is_one_clear_line(changes: dict[str, object], says: str) -> None:
    w = iomodel.Attention(q_len=64, head_dim=8)
    given: dict[str, object] = {"sram_bytes": 10_000, **changes}
    with pytest.raises(iomodel.IOModelError) as caught:
        iomodel.solve("flash2", w, **given)  # type: ignore[arg-type]
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_kinds_of_argument_are_named() -> None:
    w = iomodel.Attention(q_len=64, head_dim=8)
    with pytest.raises(iomodel.InputError, match="workload: 'w' given"):
        iomodel.solve("flash2", "w", sram_bytes=1)  # type: ignore[arg-type]
    with pytest.raises(iomodel.InputError, match=r"hardware: 3 given; allowed: an iomodel\.Hardware"):
        iomodel.solve("flash2", w, 3)  # type: ignore[arg-type]
    with pytest.raises(iomodel.UnknownNameError, match="tile of standard: 'block_kv' is unknown"):
        iomodel.solve("standard", w, sram_bytes=10**6, min_block_kv=16)
    with pytest.raises(iomodel.UnknownNameError, match="hardware"):
        iomodel.solve("flash2", w, "h101")


def test_a_solution_prints_and_becomes_json() -> None:
    import json

    w = iomodel.Attention(q_len=64, head_dim=8)
    solution = iomodel.solve("flash2", w, sram_elements=1000, epsilon=0.5)
    assert "binding constraint" in str(solution)
    assert solution._repr_html_().startswith("<table>")
    assert json.loads(solution.to_json())["tiles"] == dict(solution.tiles)
    with pytest.raises(TypeError):
        solution.tiles["block_q"] = 1  # type: ignore[index]


def test_a_search_too_long_to_finish_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from iomodel.solving import problem

    monkeypatch.setattr(problem, "LIMIT", 50)
    w = iomodel.Attention(q_len=3000, head_dim=2, mask=iomodel.Window(left=40, right=3))
    with pytest.raises(iomodel.InputError, match="alignment: 1 given; more than 50 tile sizes compete"):
        iomodel.solve("flash2", w, sram_elements=10_000)
    assert iomodel.solve("flash2", w, sram_elements=10_000, alignment=64).tiles["block_q"] % 64 == 0


def test_sequences_of_many_lengths_are_no_long_search() -> None:
    """Products of whole matrices: only tiles at which some length loses a trip compete."""
    w = iomodel.VarlenAttention(q_lens=[4096, 1000, 17], head_dim=64, mask="causal", direction="backward")
    solution = iomodel.solve("standard", w, sram_elements=51200)
    assert solution.certificate.examined < 10_000
    slightly = {name: size + 1 for name, size in solution.tiles.items()}
    assert iomodel.cost("standard", w, slightly).footprint_elements > 51200


def test_a_least_key_tile_that_leaves_too_few_for_the_splits_is_refused() -> None:
    w = iomodel.Attention(q_len=9, head_dim=3)
    assert iomodel.solve("split_kv", w, sram_elements=500, splits=3, min_block_kv=4).tiles["block_kv"] == 4
    with pytest.raises(
        iomodel.InputError, match="min_block_kv: 5 given; allowed: up to 4, for at least one tile per split"
    ):
        iomodel.solve("split_kv", w, sram_elements=500, splits=3, min_block_kv=5)


def test_standard_is_always_solved_in_tiles() -> None:
    w = iomodel.Attention(q_len=30, head_dim=4)
    with pytest.raises(iomodel.InputError, match="tiled: False given; allowed: True"):
        iomodel.solve("standard", w, sram_bytes=10_000, tiled=False)


def test_a_tile_that_covers_all_keys_satisfies_any_least_size() -> None:
    w = iomodel.Attention(q_len=30, kv_len=50, head_dim=4)
    assert iomodel.solve("flash2", w, sram_bytes=10_000, min_block_kv=10**6).tiles["block_kv"] == 50


@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("epsilon", [0, 0.02])
def test_the_bounds_spare_nearly_every_tile(algorithm: str, mask: str, epsilon: float) -> None:
    """Some 14,000 tiles fit M = 51,200 at d = 128; the proof looks at those near the best, and stops."""
    w = iomodel.Attention(q_len=2**20, head_dim=128, mask=mask)
    solution = iomodel.solve(algorithm, w, sram_elements=51_200, epsilon=epsilon)
    assert solution.certificate.examined <= 12


@fraction_of_examples(4)
@given(
    q_len=st.integers(1, 40),
    kv_len=st.integers(1, 60),
    mask=st.sampled_from(["full", "causal", iomodel.Window(left=5, right=3)]),
    budget=st.integers(100, 900),
)
def test_a_declaration_whose_queries_have_no_tile_is_solved(q_len: int, kv_len: int, mask: Any, budget: int) -> None:
    """A loop of single rows leaves one tile, whose traffic under a mask is no monotone function of its size."""
    w = iomodel.Attention(q_len=q_len, kv_len=kv_len, head_dim=4, mask=mask)
    costs = [iomodel.cost(ROW_BY_ROW, w, {"block_kv": size}) for size in range(1, kv_len + 1)]
    fitting = [cost.hbm_elements for cost in costs if cost.footprint_elements <= budget]
    if not fitting:
        with pytest.raises(iomodel.InfeasibleError):
            iomodel.solve(ROW_BY_ROW, w, sram_elements=budget)
        return
    solution = iomodel.solve(ROW_BY_ROW, w, sram_elements=budget)
    assert solution.cost.hbm_elements == min(fitting)


def test_a_time_that_is_not_known_is_refused_with_the_reason() -> None:
    call = iomodel.Attention(q_len=256, head_dim=64)
    bare, timed = iomodel.solve("flash2", call, sram_bytes=100_000), iomodel.solve("flash2", call, "h100-sxm5")
    assert (bare.timed, timed.timed) == (False, True)
    assert timed.seconds > 0 < timed.dram_bytes[0]
    for name in ("seconds", "dram_bytes"):
        with pytest.raises(
            iomodel.InputError, match=rf"^{name}: not known, because the tiles are those of least traffic"
        ):
            getattr(bare, name)
        assert bare.to_dict()[name] is None
        assert timed.to_dict()[name] is not None
    for solution in (bare, timed):
        assert iomodel.Solution.from_json(solution.to_json()) == solution
        old = {key: value for key, value in solution.to_dict().items() if value is not None}  # as 0.1 wrote it
        assert iomodel.Solution.from_dict(old) == solution


@pytest.mark.parametrize(("memory", "width", "length", "says"), [(51200, 64, 4096, (64, 200)), (1024, 8, 64, (8, 32))])
def test_the_tiles_of_the_papers_rule_are_said(memory: int, width: int, length: int, says: tuple[int, int]) -> None:
    """B_c = ceil(M / 4d), B_r = min(B_c, d): Algorithm 1, line 1, of arXiv:2205.14135."""
    w = iomodel.Attention(q_len=length, head_dim=width)
    text = str(iomodel.solve("flash1", w, sram_elements=memory))
    assert "tiles by the paper's rule: B_r = {}, B_c = {}".format(*says) in text
    assert "paper's rule" not in str(iomodel.solve("flash2", w, sram_elements=memory))


@pytest.mark.parametrize(("heads", "kv_heads"), [(8, 8), (32, 8)])
def test_each_further_block_on_the_same_keys_adds_a_partial_result(heads: int, kv_heads: int) -> None:
    """The printed bound of divided keys counts the blocks of all groups; rows of several tiles have none."""

    def printed(q_len: int, **options: int) -> dict[str, int]:
        call = Attention(batch=2, heads=heads, kv_heads=kv_heads, q_len=q_len, kv_len=16_384, head_dim=128)
        found = iomodel.solve("split_kv", call, "h100-sxm5", **options)
        assert found.tiles["block_q"] < 512
        rows = {row[0]: row[1] for part in found.tables() for row in getattr(part, "rows", ())}
        own = ("busy blocks", "above this bound")
        known = {title: int(rows[title].replace(",", "")) for title in rows if any(word in title for word in own)}
        assert not known or sum(known.values()) == found.cost.hbm_bytes
        return known

    bounds = []
    for splits in (2, 3, 4):
        known = printed(1, splits=splits)
        bounds.append(known[f"lower bound for {2 * kv_heads * splits} busy blocks (divided-keys)"])
    assert bounds[2] - bounds[1] == bounds[1] - bounds[0] > 0
    assert not printed(512 * kv_heads // heads, splits=2)
