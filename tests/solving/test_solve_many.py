"""Arrays of problems have the answers that the solver gives one by one."""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import iomodel
from iomodel import Attention
from iomodel.solving import problem
from iomodel.solving.batch import chunks as many_chunks
from iomodel.solving.batch import many_problems as many_problem
from iomodel.solving.batch import separable as many_separable
from iomodel.solving.batch import staircase_search as many_staircase
from iomodel.solving.batch.many_problems import ragged, ranked, slabs
from iomodel.solving.batch.solutions import SolutionArray
from iomodel.solving.solve_many import solve_array
from tests.solving.test_solve import forms, questions
from tests.support.exhaustive_tiles import WAYS, Question
from tests.support.inside import Call
from tests.support.strategies import fraction_of_examples

NUMERIC = ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "value_dim")
WORDS = [field for field in Call.model_fields if field not in (*NUMERIC, "page_size", "dtype", "kv_dtype")]


def one_by_one(
    found: SolutionArray, which: tuple[int, ...], expected: iomodel.Solution | iomodel.InfeasibleError
) -> None:
    """What was found at an index is what `solve` says."""
    if isinstance(expected, iomodel.InfeasibleError):
        assert not found.feasible[which]
        assert found.hbm_bytes[which] == found.least_hbm_bytes[which] == 0
        assert all(sizes[which] == 0 for sizes in found.tiles.values())
        return
    assert found.feasible[which]
    assert {name: int(sizes[which]) for name, sizes in found.tiles.items()} == dict(expected.tiles)
    assert found.hbm_bytes[which] == expected.cost.hbm_bytes
    assert found.least_hbm_bytes[which] == expected.certificate.least_hbm_bytes


def answer(question: Question) -> iomodel.Solution | iomodel.InfeasibleError:
    try:
        return question.solve()
    except iomodel.InfeasibleError as error:
        return error


@pytest.mark.parametrize(("name", "direction"), WAYS)
@fraction_of_examples(2)
@given(data=st.data())
def test_every_problem_is_answered_as_alone(name: str, direction: str, data: st.DataObject) -> None:
    every = forms(name, direction)
    form = data.draw(st.sampled_from(every[len(name + direction) % 7 :: 7]))  # each has formulas of its own to compile
    many = 1 if form[1] in ("documents", "blocks") else data.draw(st.integers(1, 6))
    asked = [data.draw(questions(name, direction, form)) for _ in range(many)]
    first, alike = asked[0], [one for one in asked if isinstance(one.workload, Attention)]
    assume(alike and alike[0] is first)
    if any(one.workload.page_size is None for one in alike) and many > 1:
        alike = [one for one in alike if (one.workload.page_size is None) == (first.workload.page_size is None)]
    numbers = sorted(option for option, value in first.options.items() if type(value) is int)
    least_kv = [one.min_block_kv or 1 for one in alike] if first.min_block_kv else None
    alike = [
        Question(name, one.workload, first.unit, one.budget, one.alignment, least_kv and least, first.epsilon,
                 {**first.options, **{option: one.options[option] for option in numbers}})
        for one, least in zip(alike, least_kv or [1] * len(alike), strict=True)
    ]  # fmt: skip
    calls: list[Any] = [one.workload for one in alike]
    fields = {field: [getattr(call, field) for call in calls] for field in NUMERIC}
    if calls[0].page_size is not None:
        fields["page_size"] = [call.page_size for call in calls]
    found = solve_array(
        name,
        **{f"sram_{first.unit}": [one.budget for one in alike]},
        **fields,
        **{word: getattr(calls[0], word) for word in WORDS},
        dtype=[call.dtype for call in calls],
        kv_dtype=[call.kv_dtype for call in calls],
        alignment=[one.alignment for one in alike],
        min_block_kv=least_kv,
        epsilon=first.epsilon,
        infeasible="mark",
        **{**first.options, **{option: [one.options[option] for one in alike] for option in numbers}},
    )
    for which, one in enumerate(alike):
        one_by_one(found, (which,), answer(one))


def realistic(count: int, seed: int) -> dict[str, Any]:
    """Calls as models make them, of any length."""
    draw = np.random.default_rng(seed)
    kv_heads = draw.choice([1, 2, 4, 8], count)
    return {
        "batch": draw.integers(1, 65, count),
        "q_len": draw.integers(1, 2**17 + 1, count) >> draw.integers(0, 14, count) | 1,
        "kv_len": draw.integers(1, 2**17 + 1, count),
        "heads": kv_heads * draw.integers(1, 9, count),
        "kv_heads": kv_heads,
        "head_dim": draw.integers(64, 257, count),
        "value_dim": draw.integers(64, 257, count),
    }


MASKS = ["full", "causal", iomodel.Window(left=4095, right=0), iomodel.Window(left=100, right=7, align="top-left")]


@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_realistic_problems(mask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 of each mask, in pieces of a few hundred."""
    monkeypatch.setattr(many_chunks, "PIECE", 300)
    monkeypatch.setattr(many_problem, "SLAB", 1000)
    fields = realistic(500, 7)
    fields["q_len"] = np.where(np.arange(500) % 3, fields["q_len"], fields["kv_len"])
    with monkeypatch.context() as alone:
        alone.delattr(
            sys.modules["iomodel.solving.solve_many"], "solve_at"
        )  # none of them is left to the solver of one
        found = solve_array("flash2", None, "h100-sxm5", **fields, mask=mask, implementation="textbook")
    for which in range(500):
        call = iomodel.Attention(**{name: int(values[which]) for name, values in fields.items()}, mask=mask)
        one_by_one(found, (which,), iomodel.solve("flash2", call, "h100-sxm5", implementation="textbook"))


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        ("standard", "full"),
        ("flash2", iomodel.Window(left=0, right=0)),
        ("flash2", "causal"),
        ("small_cache", "full"),
        ("flash1", iomodel.Window(left=1, right=0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("epsilon", [0, 0.1])
def test_ties_are_broken_alike(name: str, mask: Any, epsilon: float) -> None:
    """Short, square calls and little memory: many tiles move as much."""
    lengths, budgets = np.arange(1, 21)[:, None], np.array([20, 35, 60, 61, 90, 140])
    call, given = {"head_dim": 1, "dtype": "int8", "mask": mask}, {"epsilon": epsilon}
    found = solve_array(name, sram_elements=budgets, q_len=lengths, **call, **given, infeasible="mark")
    for i, j in np.ndindex(found.shape):
        w = iomodel.Attention(q_len=int(lengths[i, 0]), **call)
        one_by_one(found, (i, j), answer(Question(name, w, "elements", int(budgets[j]), 1, None, epsilon, {})))


@pytest.mark.parametrize(("name", "direction"), [("standard", "forward"), ("flash2", "backward"), ("flash3", "both")])
@pytest.mark.parametrize("epsilon", [0, 0.1])
def test_realistic_problems_of_several_parts(name: str, direction: str, epsilon: float) -> None:
    fields = realistic(30, 8)
    fields["kv_len"] = fields["kv_len"] // 8 + 1
    given = {"sram_elements": 2**18, "alignment": 8, "epsilon": epsilon}
    found = solve_array(name, **fields, mask="causal", direction=direction, **given)
    for which in range(30):
        call = {field: int(values[which]) for field, values in fields.items()}
        w = iomodel.Attention(**call, mask="causal", direction=direction)
        one_by_one(found, (which,), iomodel.solve(name, w, implementation="textbook", **given))


def test_broadcasting_is_looping() -> None:
    lengths, budgets, widths = np.array([[300], [7000]]), np.array([40_000, 90_000, 200_000]), 64
    found = solve_array("flash2", sram_bytes=budgets, q_len=lengths, head_dim=widths, mask="causal", alignment=8)
    assert found.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        w = iomodel.Attention(q_len=int(lengths[i, 0]), head_dim=widths, mask="causal")
        one_by_one(found, (i, j), iomodel.solve("flash2", w, sram_bytes=int(budgets[j]), alignment=8))


def test_one_problem_has_no_axis_and_none_has_no_answer() -> None:
    one = solve_array("flash2", sram_bytes=10_000, q_len=64, head_dim=8)
    assert one.shape == ()
    assert one[()].cost.hbm_bytes == one.hbm_bytes
    none = solve_array(
        "flash2", None, "h100-sxm5", q_len=np.zeros((0, 3), dtype=int), head_dim=8, implementation="textbook"
    )
    assert none.shape == (0, 3)
    assert "0" in str(none)


@given(seed=st.integers(0, 2**32 - 1), mask=st.sampled_from(MASKS))
def test_laws(seed: int, mask: Any) -> None:
    """More memory never costs traffic; whom a problem is solved with changes nothing; twice the batch moves twice."""
    draw = np.random.default_rng(seed)
    fields = {name: values[:40] for name, values in realistic(40, seed).items()}
    given = {"mask": mask, "alignment": 16}
    small = draw.integers(150_000, 300_000, 40)
    found = solve_array("flash2", sram_bytes=small, **fields, **given)
    more = solve_array("flash2", sram_bytes=small + draw.integers(1, 100_000, 40), **fields, **given)
    assert (more.hbm_bytes <= found.hbm_bytes).all()
    order = draw.permutation(40)
    mixed = solve_array("flash2", sram_bytes=small[order], **{n: v[order] for n, v in fields.items()}, **given)
    assert (mixed.hbm_bytes == found.hbm_bytes[order]).all()
    assert all((mixed.tiles[name] == sizes[order]).all() for name, sizes in found.tiles.items())
    twice = solve_array("flash2", sram_bytes=small, **{**fields, "batch": 2 * fields["batch"]}, **given)
    assert (twice.hbm_bytes == 2 * found.hbm_bytes).all()
    assert (twice.tiles["block_q"] == found.tiles["block_q"]).all()
    assert (found.ratio >= 1).all()


def test_what_exceeds_64_bits_is_exact() -> None:
    lengths = [10**3, 10**9, 3 * 10**12]
    given = {"sram_bytes": 10**9, "alignment": 10**3}
    found = solve_array("flash2", q_len=lengths, head_dim=64, heads=32, mask="causal", **given)
    assert found.hbm_bytes.dtype == object
    assert found.hbm_bytes[2] > 2**63
    for which, length in enumerate(lengths):
        w = iomodel.Attention(q_len=length, head_dim=64, heads=32, mask="causal")
        one_by_one(found, (which,), iomodel.solve("flash2", w, implementation="textbook", **given))
        assert found.lower_bound[which] == found[which].certificate.lower_bound.bytes
    assert (found.cost.hbm_bytes == found.hbm_bytes).all()


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("name", ["flash2", "standard"])
def test_the_rest_of_an_answer(name: str, mask: Any) -> None:
    fields = {**realistic(6, 3), "q_len": 999, "kv_len": np.array([[1000], [4000]])}
    found = solve_array(name, sram_bytes=300_000, **fields, mask=mask)
    assert (found.cost.hbm_bytes == found.hbm_bytes).all()
    for index in [(0, 0), (1, 5)]:
        one = found[index]
        one_by_one(found, index, one)
        assert found.lower_bound[index] == one.certificate.lower_bound.bytes
        assert found.ratio[index] == one.certificate.ratio
        assert found.cost.flops[index] == one.cost.flops


def test_a_mask_given_by_data_goes_one_by_one() -> None:
    mask = iomodel.Documents([20, 30])
    found = solve_array("flash2", sram_bytes=[3000, 9000], q_len=50, head_dim=8, mask=mask)
    w = iomodel.Attention(q_len=50, head_dim=8, mask=mask)
    for which, budget in enumerate([3000, 9000]):
        one_by_one(found, (which,), iomodel.solve("flash2", w, sram_bytes=budget))
        assert found.lower_bound[which] == found[which].certificate.lower_bound.bytes


def test_widths_of_a_window_may_be_arrays() -> None:
    mask = iomodel.Window(left=1, right=0)
    found = solve_array(
        "flash2",
        None,
        "h100-sxm5",
        q_len=9000,
        head_dim=64,
        mask=mask,
        window_left=[100, 4000],
        implementation="textbook",
    )
    for which, left in enumerate([100, 4000]):
        w = iomodel.Attention(q_len=9000, head_dim=64, mask=iomodel.Window(left=left, right=0))
        one_by_one(found, (which,), iomodel.solve("flash2", w, "h100-sxm5", implementation="textbook"))


def test_where_nothing_fits() -> None:
    given = {"sram_bytes": [100, 10**6, 50], "q_len": [64, 64, 10**18], "head_dim": [64, 64, 10**15], "mask": "causal"}
    with pytest.raises(iomodel.InfeasibleError) as caught:
        solve_array("flash2", **given)
    least = caught.value.least
    assert str(caught.value) == (
        "flash2: no tile fits 2 of 3 problems, the first at index (0,), which needs 652 B; "
        f"the smallest feasible budget for all is {least:,} B"
    )
    marked = solve_array("flash2", **given, infeasible="mark")
    assert marked.feasible.tolist() == [False, True, False]
    assert marked.hbm_bytes[0] == marked.tiles["block_q"][2] == 0
    with pytest.raises(iomodel.InputError, match="cost: no tile fits 2 of 3 problems"):
        marked.cost  # noqa: B018
    with pytest.raises(iomodel.InfeasibleError):
        marked[0]
    assert solve_array("flash2", **{**given, "sram_bytes": least}).feasible.all()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"q_len": [64, 0]}, "q_len: 0 given, at index (1,); allowed: integers from 1"),
        ({"head_dim": [8.5]}, "head_dim: [8.5] given; allowed: integers from 1"),
        ({"q_len": None}, "q_len: None given"),
        ({"head_dim": [1, 2, 3]}, "do not broadcast"),
        ({"sram_bytes": [1, 2, 3]}, "sram_bytes (3,)"),
        ({"heads": [4, 5], "kv_heads": 2}, "kv_heads: 2 does not divide heads = 5"),
        ({"alignment": [16, -1]}, "alignment: -1 given, at index (1,)"),
        ({"min_block_kv": [True]}, "min_block_kv: [True] given"),
        ({"sram_elements": [7]}, "2 values given; allowed: exactly one"),
        ({"epsilon": -1}, "epsilon: -1 given; allowed: a share of traffic from 0 up"),
        ({"infeasible": "skip"}, "infeasible: 'skip' is unknown; allowed: raise, mark"),
        ({"mask": "diagonal"}, "mask: 'diagonal' is unknown"),
        ({"softcaps": 1}, "option of flash2: 'softcaps' is unknown"),
        ({"algorithm": "flash"}, "algorithm: 'flash' is unknown; did you mean 'flash"),
        ({"algorithm": "standard", "min_block_kv": 16}, "tile of standard: 'block_kv' is unknown"),
        ({"algorithm": "small_cache", "direction": "backward"}, "direction: 'backward' given; allowed: forward"),
        ({"algorithm": "split_kv", "splits": [2, 100]}, "splits: 100 given; allowed: up to 64, the tiles of 1 keys"),
        ({"algorithm": "split_kv", "splits": [2, 9], "min_block_kv": 60}, "min_block_kv: 60 given; allowed: up to 7"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(changes: dict[str, Any], says: str) -> None:
    given = {"algorithm": "flash2", "sram_bytes": 10_000, "q_len": [64, 64], "head_dim": 8, **changes}
    with pytest.raises(iomodel.IOModelError) as caught:
        solve_array(**given)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_index_that_is_none() -> None:
    found = solve_array("flash2", sram_bytes=10_000, q_len=[64, 64], head_dim=8)
    for index in (2, (0, 0), "first", slice(None)):
        with pytest.raises(iomodel.InputError, match=r"index: .* given; allowed: one index for each axis of \(2,\)"):
            found[index]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["flash2", "standard", "small_cache"])
def test_a_search_too_long_to_finish_is_left_to_solve(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which refuses it, where it is too long for it as well."""
    mask = iomodel.Window(left=40, right=3)
    given: dict[str, Any] = {"q_len": [3000, 20], "head_dim": 2, "mask": mask, "sram_elements": 10_000}
    right = solve_array(name, **given)
    for module in (many_separable, many_staircase):
        monkeypatch.setattr(module, "LIMIT", 5)
    assert (solve_array(name, **given).hbm_bytes == right.hbm_bytes).all()
    monkeypatch.setattr(problem, "LIMIT", 5)
    with pytest.raises(iomodel.InputError, match=r"alignment: 1 given; more than 5 tile sizes .*; at index \(0,\)"):
        solve_array(name, **given)


def test_answers_are_frozen_and_become_text() -> None:
    found = solve_array("flash2", sram_bytes=[10_000, 10], q_len=[64, 640], head_dim=8, infeasible="mark")
    with pytest.raises(ValueError, match="read-only"):
        found.hbm_bytes[0] = 1
    with pytest.raises(TypeError):
        found.tiles["block_q"] = 1  # type: ignore[index]
    assert "of which a tile fits" in str(found)
    assert json.loads(found.to_json())["feasible"] == [True, False]
    again = pickle.loads(pickle.dumps(found))
    assert (again.tiles["block_q"] == found.tiles["block_q"]).all()
    assert again[0].tiles == found[0].tiles


@given(counts=st.lists(st.integers(1, 9), min_size=1, max_size=30), slab=st.integers(1, 12))
def test_rows_end_to_end(counts: list[int], slab: int) -> None:
    lengths = np.array(counts)
    row, place, starts = ragged(lengths)
    assert [(r, p) for r in range(len(counts)) for p in range(counts[r])] == list(zip(row, place, strict=True))
    assert starts.tolist() == [sum(counts[:i]) for i in range(len(counts))]
    parts = list(slabs(lengths, slab))
    assert [i for part in parts for i in range(len(counts))[part]] == list(range(len(counts)))
    assert all(lengths[part].sum() <= slab or part.stop - part.start == 1 for part in parts)


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_the_best_of_each_problem(rows: list[tuple[int, int, int]]) -> None:
    who, first, second = np.array(rows).T
    best = {one: min((a, b) for w, a, b in rows if w == one) for one in who.tolist()}
    found = ranked(who, first, second)
    assert who[found].tolist() == sorted(best)
    assert all((first[i], second[i]) == best[int(who[i])] for i in found)
