"""One question, one answer: the same call by Python, as columns, through JSON, by commands and in comparisons."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, TypeVar

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

import iomodel
from iomodel import InfeasibleError, InputError, UnknownNameError
from iomodel.algorithms import algorithm
from iomodel.errors import SpecError
from tests.support.inside import main
from tests.support.strategies import fraction_of_examples

DEVICES = [name for name in iomodel.list_hardware() if not iomodel.hardware(name).simulated]
ASKED = [
    (name, kernels)
    for name in iomodel.list_algorithms()
    if algorithm(name).implementations
    for kernels in (None, *(known.name for known in algorithm(name).implementations))
]
FIELDS = ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "mask", "direction")

REFUSED = (InfeasibleError, InputError, UnknownNameError, SpecError)
"""Nothing fits, no such kernel runs on the device, or a figure of the device is missing."""

Question = tuple[str, str | None, iomodel.Attention, str]
Answer = TypeVar("Answer")


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """A call of an algorithm, by one of its implementations or by the default one, on a device."""
    name, kernels = draw(st.sampled_from(ASKED))
    kv_heads, q_len = draw(st.sampled_from([1, 2, 8])), draw(st.just(1) | st.integers(1, 5000))
    call = iomodel.Attention(
        batch=draw(st.sampled_from([1, 4])),
        kv_heads=kv_heads,
        heads=kv_heads * draw(st.sampled_from([1, 4])),
        q_len=q_len,
        kv_len=q_len + draw(st.just(0) | st.integers(0, 9000)),
        head_dim=draw(st.sampled_from([64, 128, 256])),
        mask=draw(st.sampled_from(["full", "causal"])),
        direction=draw(st.sampled_from(algorithm(name).directions[:2])),
    )
    return name, kernels, call, draw(st.sampled_from(DEVICES))


def answered(verb: Callable[..., Answer], question: Question) -> Answer:
    """Return the answer of a verb; leave out a question that is refused."""
    name, kernels, call, device = question
    try:
        return verb(name, call, device, implementation=kernels)
    except REFUSED:
        reject()


def typed(command: str, question: Question) -> Any:
    """Return the JSON of a command for a question."""
    name, kernels, call, device = question
    fields = {**{field: getattr(call, field) for field in FIELDS}, "hardware": device}
    fields |= {} if kernels is None else {"implementation": kernels}
    words = [word for field, value in fields.items() for word in (f"--{field.replace('_', '-')}", str(value))]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([command, name, *words, "--json"])
    assert (code, err.getvalue()) == (0, "")
    return json.loads(out.getvalue())


@fraction_of_examples(2)
@given(questions())
def test_a_solution_is_the_same_by_every_door(question: Question) -> None:
    name, kernels, call, device = question
    found = answered(iomodel.solve, question)
    assume(found.timed)
    assert type(found).from_json(found.to_json()) == found
    told = typed("tiles", question)
    assert (told["tiles"], told["seconds"]) == (dict(found.tiles), found.seconds)
    assert {one: told["options"][one] for one in found.searched} == {one: found.options[one] for one in found.searched}
    together = iomodel.solve_array(name, call, device, implementation=kernels, q_len=[call.q_len])
    assert together.seconds[0] == pytest.approx(found.seconds, rel=1e-9)
    chosen = {name: int(sizes[0]) for name, sizes in {**together.tiles, **together.searched}.items()}
    assert {one: size for one, size in chosen.items() if size or one in found.choice} == {
        one: int(found.choice[one]) for one in chosen if one in found.choice
    }
    again = iomodel.estimate(name, call, device, tiles=found.choice, implementation=found.implementation)
    assert again.seconds == pytest.approx(found.seconds, rel=1e-9)
    assert iomodel.check(name, call, device, tiles=found.choice, implementation=found.implementation).fits
    assert iomodel.cost(name, call, tiles=found.choice) == found.cost


@fraction_of_examples(2)
@given(questions())
def test_an_estimate_is_the_same_by_every_door(question: Question) -> None:
    name, kernels, call, device = question
    found = answered(iomodel.estimate, question)
    assert type(found).from_json(found.to_json()) == found
    told = typed("estimate", question)
    assert (told["tiles"], told["seconds"], told["implementation"]) == (
        dict(found.tiles), found.seconds, found.implementation,
    )  # fmt: skip
    together = iomodel.estimate_array(name, call, device, implementation=kernels, q_len=[call.q_len])
    assert together.seconds[0] == pytest.approx(found.seconds, rel=1e-9)
    assert iomodel.compare(call, device, algorithms=[name], implementation=kernels).best.seconds == found.seconds
    assert iomodel.solve(name, call, device, implementation=kernels).seconds <= found.seconds * (1 + 1e-9)
