"""Algorithms declared outside the package, taken wherever the name of an algorithm is."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sympy import Symbol

import iomodel
from iomodel.algorithms import algorithm
from iomodel.nests import Algorithm, DeclarationError, Kernel, Load, Loop, Q, query, symbol
from iomodel.studies.sweeps.sweep import sweep
from tests.support.delta_rule import DELTA_RULE
from tests.support.own_kernel import OWN_KERNEL

MINE = replace(algorithm("flash2"), name="mine")
TILES = {"block_q": 64, "block_kv": 32}
CALL = iomodel.Attention(q_len=300, head_dim=16, mask="causal")
BUDGET = {"sram_bytes": 65536}
SHAPES = {"q_len": [100, 300], "head_dim": 16}

ANSWERS = {
    "cost": lambda given: iomodel.cost(given, CALL, TILES),
    "expressions": lambda given: iomodel.expressions(given, mask="causal"),
    "solve": lambda given: iomodel.solve(given, CALL, **BUDGET),
    "solve, placed": lambda given: iomodel.solve(given, CALL, "h100-sxm5", objective="traffic"),
    "solve, by time": lambda given: iomodel.solve(given, CALL, "h100-sxm5", objective="time"),
    "solve_many": lambda given: iomodel.solve_array(given, **SHAPES, **BUDGET),
    "solve_many, one": lambda given: iomodel.solve_array(given, **SHAPES, **BUDGET)[1],
    "solve_many, bound": lambda given: iomodel.solve_array(given, **SHAPES, **BUDGET).lower_bound.tolist(),
    "cost_array": lambda given: iomodel.cost_array(given, **SHAPES, **TILES),
    "cost_array, one": lambda given: iomodel.cost_array(given, **SHAPES, **TILES)[1],
    "estimate": lambda given: iomodel.estimate(given, CALL, "h100-sxm5"),
    "trace": lambda given: iomodel.trace(given, CALL, "h100-sxm5", TILES).summary,
    "lower_bounds": lambda given: iomodel.lower_bounds(CALL, algorithm=given, sram_elements=4096),
    "optimum": lambda given: iomodel.optimum(given, mask="causal"),
    "check": lambda given: iomodel.check(given, CALL, "h100-sxm5", TILES),
    "least_sram": lambda given: iomodel.theory.least_sram(given, CALL, hbm_bytes=300_000),
    "staircase": lambda given: iomodel.staircase(given, CALL, alignment=32),
    "crossover": lambda given: iomodel.theory.crossover(given, "standard", CALL, TILES, up_to=500),
    "diagnose": lambda given: iomodel.diagnose(given, CALL, "h100-sxm5", 1e-4, TILES).floor,
}
"""A question to each function that takes an algorithm."""


def text(result: object) -> str:
    """Return a result as text in which the copy is called as the original."""
    shown = result.to_dict() if hasattr(result, "to_dict") else result
    return repr(shown).replace("'mine'", "'flash2'")


@pytest.mark.parametrize("question", ANSWERS)
def test_a_declaration_is_taken_wherever_a_name_is(question: str) -> None:
    assert text(ANSWERS[question](MINE)) == text(ANSWERS[question]("flash2"))


CHAT = {"prompt": 512, "output": 4}
PLACE = ("llama-3-8b", "h100-sxm5")
PLANS = {
    "plan": lambda **asked: iomodel.plan(*PLACE, **CHAT, **asked),
    "step": lambda **asked: iomodel.step(*PLACE, batch=2, q_len=1, kv_len=700, **asked),
    "fleet": lambda **asked: iomodel.fleet(*PLACE, **CHAT, load=2, ttft=1, tpot=1, **asked),
    "simulate": lambda **asked: iomodel.simulate(*PLACE, **CHAT, concurrency=2, requests=8, **asked),
    "pareto": lambda **asked: iomodel.pareto(*PLACE, **CHAT, batches=[2], replica_devices=1, **asked),
    "disaggregate": lambda **asked: iomodel.disaggregate(*PLACE, PLACE[1], **CHAT, link=50e9, **asked),
    "train_step": lambda **asked: iomodel.train_step(*PLACE, batch=8, seq_len=512, data_parallel=8, **asked),
    "context_parallel": lambda **asked: iomodel.planning.context_parallel(CALL, 2, PLACE[1], **asked),
}
"""A question to each function that takes an algorithm of attention beside a model, or beside ranks."""


@pytest.mark.parametrize("question", PLANS)
def test_plans_take_a_declaration_as_a_name(question: str) -> None:
    ask = PLANS[question]
    renamed = text(ask(attention_algorithm=MINE)).replace("(mine)", "(flash2)").replace("(mine, ", "(flash2, ")
    assert renamed == text(ask(attention_algorithm="flash2"))


def test_a_kernel_of_a_user_reaches_plans_and_diagnosis() -> None:
    call = iomodel.Attention(heads=8, kv_heads=2, q_len=1024, head_dim=128, mask="causal")
    best = iomodel.solve(OWN_KERNEL, call, PLACE[1])
    assert iomodel.estimate(OWN_KERNEL, call, PLACE[1]).seconds == best.seconds
    assert iomodel.diagnose(OWN_KERNEL, call, PLACE[1], 1e-3).algorithm == "own_kernel"
    asked = {"attention_algorithm": OWN_KERNEL}
    parts = [*PLANS["plan"](**asked).prefill.parts, *PLANS["step"](**asked).parts]
    assert {part.name for part in parts if part.kind == "attention"} == {"attention (own_kernel)"}
    assert PLANS["train_step"](**asked).attention_algorithm == "own_kernel"
    for question in ("fleet", "simulate", "pareto", "disaggregate"):
        assert text(PLANS[question](**asked)) != text(PLANS[question]())


def test_two_kernels_of_one_name_have_times_of_their_own() -> None:
    slower = replace(OWN_KERNEL, implementations=())
    times = {PLANS["plan"](attention_algorithm=kernel).ttft for kernel in (OWN_KERNEL, slower, OWN_KERNEL)}
    assert len(times) == 2


@pytest.mark.parametrize(
    ("kernel", "allowed"),
    [
        (replace(OWN_KERNEL, backward=None, options={}, as_written=()), "forward and backward passes that keep no"),
        (replace(algorithm("standard"), name="mine"), "forward and backward passes that keep no scores"),
    ],
)
def test_a_training_step_needs_both_passes_without_scores(kernel: Algorithm, allowed: str) -> None:
    with pytest.raises(
        iomodel.InputError, match=f"attention_algorithm: '{kernel.name}' given; allowed: one with {allowed}"
    ):
        PLANS["train_step"](attention_algorithm=kernel)


@pytest.mark.parametrize("question", ["cost", "expressions", "solve", "cost_array", "solve_many"])
def test_results_show_the_name_and_keep_the_declaration_in_a_pickle(question: str) -> None:
    result = ANSWERS[question](MINE)
    again = pickle.loads(pickle.dumps(result))
    assert result.algorithm == again.algorithm == "mine"
    assert algorithm(result.algorithm) is MINE
    assert algorithm(again.algorithm).cite == MINE.cite
    assert type(pickle.loads(pickle.dumps(ANSWERS[question]("flash2"))).algorithm) is str


def test_of_two_declarations_with_one_name_each_has_its_own_answers() -> None:
    def other(causal: bool = False) -> object:
        return algorithm("tiled_query").declare()

    same_name = replace(algorithm("tiled_query"), name="mine", declare=other)
    assert iomodel.cost(same_name, CALL, TILES).reads["Q"] == iomodel.cost("tiled_query", CALL, TILES).reads["Q"]
    assert iomodel.cost(same_name, CALL, TILES).writes == iomodel.cost("tiled_query", CALL, TILES).writes
    assert iomodel.cost(MINE, CALL, TILES).writes == iomodel.cost("flash2", CALL, TILES).writes
    shadow = replace(same_name, name="flash2")
    assert iomodel.solve(shadow, CALL, **BUDGET).tiles == iomodel.solve("tiled_query", CALL, **BUDGET).tiles
    assert iomodel.solve("flash2", CALL, **BUDGET).tiles == iomodel.solve(MINE, CALL, **BUDGET).tiles
    assert iomodel.expressions(shadow).writes.keys() == iomodel.expressions("tiled_query").writes.keys()


def test_a_comparison_takes_declarations_beside_names() -> None:
    compared = iomodel.compare(CALL, algorithms=["standard", MINE], **BUDGET)
    assert [solution.algorithm for solution in compared.answers] == ["mine", "standard"]
    with pytest.raises(iomodel.InputError, match="'mine' given twice"):
        iomodel.compare(CALL, algorithms=[MINE, MINE], **BUDGET)


@pytest.mark.parametrize("given", [3, None, ["flash2"], Algorithm])
def test_an_argument_of_another_type_is_refused_with_what_is_allowed(given: object) -> None:
    with pytest.raises(iomodel.InputError, match=r"^algorithm: .* allowed: a name, as 'flash2', or an Algorithm$"):
        iomodel.cost(given, CALL, TILES)


def test_a_sweep_goes_over_declarations_and_names() -> None:
    fields = {"q_len": [64, 96], "head_dim": 8, "mask": "causal"}
    swept = sweep(["flash2", MINE], block_q=16, block_kv=8, progress=False, **fields)
    assert list(swept.algorithm.values) == ["flash2", "mine"]
    assert (swept.sel(algorithm="mine").hbm_bytes == swept.sel(algorithm="flash2").hbm_bytes).all()
    alone = sweep(DELTA_RULE, chunk_size=[16, 32], block_v=4, carry=True, progress=False, **fields)
    call = iomodel.Attention(q_len=96, head_dim=8, mask="causal")
    cost = iomodel.cost(DELTA_RULE, call, {"block_v": 4}, chunk_size=32, carry=True)
    assert alone.hbm_bytes.sel(q_len=96, chunk_size=32).item() == cost.hbm_bytes
    switched = replace(DELTA_RULE, name="switched", options={**DELTA_RULE.options, "switch_of_its_own": False})
    both = sweep(switched, switch_of_its_own=[False, True], block_v=4, progress=False, q_len=64, head_dim=8,
                         mask="causal")  # fmt: skip
    assert both.hbm_bytes.shape == (2,)


def test_a_store_is_not_resumed_for_an_edited_declaration(tmp_path: Path) -> None:
    fields = {"q_len": [64], "head_dim": 8, "block_q": 16, "block_kv": 8, "progress": False, "store": tmp_path / "s"}
    sweep(MINE, **fields)
    with pytest.raises(iomodel.InputError, match="store"):
        sweep(replace(algorithm("flash1"), name="mine"), **fields)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (("block_q", "X_1"), "block_q (B_r) is: rows of a query tile"),
        (("block_x", "B_r"), "block_q (B_r) is: rows of a query tile"),
        (("packed", "X_1"), "a name in Python that is free"),
        (("block x", "X_1"), "a name in Python that is free"),
    ],
)
def test_a_symbol_that_is_taken_is_refused(entry: tuple[str, str], reason: str) -> None:
    with pytest.raises(iomodel.InputError, match=re.escape(reason)):
        replace(MINE, symbols=(symbol(*entry, "a test"),))


def test_a_symbol_without_a_name_is_refused_by_name() -> None:
    def declare() -> list[Kernel]:
        return [Kernel("unnamed", [Loop(query, Symbol("X_2", integer=True, positive=True), [Load(Q)])])]

    with pytest.raises(DeclarationError, match="unnamed: X_2 has no name; allowed: the alphabet, and symbols="):
        iomodel.cost(Algorithm("unnamed", "", "", declare), CALL, {})
