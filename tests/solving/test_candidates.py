"""Families of tiles that a bound proves slower are left out of a search, which finds what the whole search finds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import hardware
from iomodel.solving.candidates import candidates
from iomodel.solving.question import Question
from tests.support.inside import DEFAULT, implementations_for


@st.composite
def searches(draw: st.DrawFn) -> Question:
    """A call with grouped heads, whose rows may be packed, on a device that searches both."""
    kv_heads, group, q_len = (draw(st.sampled_from(choices)) for choices in ((1, 2, 8), (2, 4, 16), (1, 3, 40)))
    call = iomodel.Attention(
        batch=draw(st.sampled_from((1, 7, 256))),
        heads=kv_heads * group,
        kv_heads=kv_heads,
        q_len=q_len,
        kv_len=q_len + draw(st.integers(0, 1 << draw(st.sampled_from((6, 12, 17))))),
        head_dim=draw(st.sampled_from((64, 128))),
        mask=draw(st.sampled_from(("full", "causal"))),
    )
    name, device = draw(
        st.sampled_from((("split_kv", "h100-sxm5"), ("split_kv", "a100-sxm4-80gb"), ("flash3", "h100-sxm5")))
    )
    gpu = hardware(device)
    parameters = replace(DEFAULT, in_graph=draw(st.sampled_from((0.0, 1.0))))
    return Question.ask(name, call, gpu, implementations_for(name, call, gpu, None)[0], parameters=parameters)


@given(searches())
def test_the_first_of_the_families_that_may_be_fastest_is_the_first_of_all(question: Question) -> None:
    some, whole = candidates(question, whole=False), candidates(question)
    assert {name: column[0] for name, column in some.columns.items()} == {
        name: column[0] for name, column in whole.columns.items()
    }
    assert len(some.whole) == len(whole)
    for place, family in enumerate(whole.families):
        assert family.floor <= whole.columns["seconds"][whole.columns["family"] == place].min()


def test_unpacked_rows_of_a_long_decode_are_left_out() -> None:
    call = iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=131_072, head_dim=128)
    gpu = hardware("h100-sxm5")
    kernel = implementations_for("split_kv", call, gpu, None)[0]
    some = candidates(Question.ask("split_kv", call, gpu, kernel), whole=False)
    assert [some.families[place].setting.searched["packed"] for place in some.left] == [False]
