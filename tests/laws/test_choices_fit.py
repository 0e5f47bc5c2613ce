"""A choice of `solve` fits: `check` says so without any other argument, for every algorithm, mask and device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

import iomodel
from iomodel import InfeasibleError, InputError, list_hardware
from iomodel.algorithms import algorithm
from iomodel.errors import SpecError
from tests.support.estimate_calls import some

WAYS = [
    (name, direction)
    for name in iomodel.list_algorithms()
    if algorithm(name).answers == "attention"
    for direction in algorithm(name).directions
]
Case = tuple[str, str, Mapping[str, Any]]
"""An algorithm or its kernels, a device and the fields of a call."""


@st.composite
def masks(draw: st.DrawFn, q_len: int, kv_len: int) -> Any:
    """Draw a mask of any kind that has a formula, and documents where queries and keys are equally many."""
    kind = draw(st.sampled_from(["full", "causal", "causal", "window", "documents"]))
    if kind == "window":
        return iomodel.Window(left=draw(st.integers(0, 5000)), right=draw(st.sampled_from([0, 0, 100])))
    if kind == "documents":
        first = draw(st.integers(1, q_len))
        return iomodel.Documents((first, q_len - first), causal=True) if first < q_len == kv_len else "causal"
    return kind


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a call of any algorithm in any of its directions, on any device."""
    name, direction = draw(st.sampled_from(WAYS))
    kv_heads, q_len = draw(st.sampled_from([1, 2, 8])), draw(st.integers(1, 8) | st.integers(1, 20_000))
    kv_len = q_len + draw(st.just(0) | st.integers(0, 130_000))
    head_dim = draw(st.sampled_from([16, 32, 64, 72, 80, 96, 128, 160, 192, 256, 512, 576]))
    return (
        name,
        draw(st.sampled_from(list_hardware())),
        {
            "direction": direction,
            "batch": draw(st.sampled_from([1, 2, 7, 64])),
            "kv_heads": kv_heads,
            "heads": kv_heads * draw(st.sampled_from([1, 1, 3, 4, 16])),
            "q_len": q_len,
            "kv_len": kv_len,
            "head_dim": head_dim,
            "value_dim": draw(st.sampled_from([head_dim, head_dim, 64, 128])),
            "dtype": draw(st.sampled_from(["bf16", "fp16", "fp8", "fp32"])),
            "mask": draw(masks(q_len, kv_len)),
        },
    )


def unfit(case: Case) -> str | None:
    """Return why the choice of a solution does not fit, empty where it fits; None without a solution."""
    name, device, fields = case
    try:
        call = iomodel.Attention(**fields)
        solved = iomodel.solve(name, call, device)
    except (InputError, InfeasibleError, SpecError):
        return None
    try:
        checked = iomodel.check(name, call, device, tiles=solved.choice)
    except iomodel.IOModelError as error:
        return f"{solved.implementation} {dict(solved.choice)}: {error}"
    return "" if checked.fits else f"{solved.implementation} {dict(solved.choice)}\n{checked}"


@given(case=cases())
@some(1)
def test_the_choice_of_a_solution_fits(case: Case) -> None:
    told = unfit(case)
    assume(told is not None)
    assert not told
