"""Spellings of other libraries: dtypes, fields, letters, masks by position, copies with other fields."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import Attention, BlockMask, Documents, Linear, VarlenAttention, Window
from iomodel.common.spellings import DTYPES, dtype_name
from tests.support.inside import ALPHABET, BY_NAME, ELEMENT_SIZE, LETTERS, SAME

CALL = Attention(heads=8, kv_heads=2, q_len=128, head_dim=64, mask="causal")


class dtype:  # noqa: N801 - the name of PyTorch's class
    """A stand-in for torch.dtype, which is not installed here."""

    __module__ = "torch"

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


@pytest.mark.parametrize("spelling", DTYPES)
def test_a_dtype_of_another_library_is_one_of_this(spelling: str) -> None:
    own = DTYPES[spelling]
    assert own in ELEMENT_SIZE
    assert own not in DTYPES
    for written in (spelling, f"torch.{spelling}", dtype(spelling)):
        assert Attention(q_len=1, head_dim=64, dtype=written).dtype == own  # type: ignore[arg-type]
        assert Linear(rows=1, in_features=1, out_features=1, weight_dtype=written).weight_dtype == own  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8])
def test_a_dtype_of_numpy_is_taken_as_scalar_type_and_as_dtype(kind: Any) -> None:
    own = {"float16": "fp16", "float32": "fp32", "int8": "int8"}[np.dtype(kind).name]
    assert dtype_name(kind) == dtype_name(np.dtype(kind)) == own
    assert (
        iomodel.cost_array("flash2", q_len=8, head_dim=8, block_q=8, block_kv=8, dtype=kind).arguments["dtype"] == own
    )


def test_an_array_may_have_dtypes_of_several_libraries() -> None:
    given = ["float16", "bf16", "torch.float32"]
    costs = iomodel.cost_array("flash2", q_len=8, head_dim=8, block_q=8, block_kv=8, dtype=given)
    assert costs.arguments["dtype"].tolist() == ["fp16", "bf16", "fp32"]


@pytest.mark.parametrize("value", [np.float16(1), np.zeros(2, np.float16), float, object(), 7, None, "float64"])
def test_what_is_no_dtype_is_left_to_the_caller(value: Any) -> None:
    assert dtype_name(value) is value


def test_no_library_is_imported_for_its_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert dtype_name(dtype("float16")) == "fp16"


FIELDS = {
    word: name
    for names, words in SAME.items()
    for name in names.split()
    if name in Attention.model_fields
    for word in words.split()
}
"""Other words for fields of a call."""


@pytest.mark.parametrize("alias", FIELDS)
def test_a_field_has_the_name_of_the_engines_too(alias: str) -> None:
    own = FIELDS[alias]
    value = "fp16" if "dtype" in own else 8
    fields = {**CALL.template, own: value}
    spelled = {alias if name == own else name: value for name, value in fields.items()}
    assert Attention(**spelled) == Attention(**fields) == Attention.model_validate(spelled)
    with pytest.raises(iomodel.InputError, match=f"^{alias}: {value!r} given beside {own}"):
        Attention(**fields, **{alias: value})


def test_causal_is_a_mask() -> None:
    assert Attention(q_len=8, head_dim=8, causal=True) == Attention(q_len=8, head_dim=8, mask="causal")  # type: ignore[call-arg]
    assert VarlenAttention(q_lens=[8], head_dim=8, causal=False).mask == "full"  # type: ignore[arg-type, call-arg]
    for wrong, says in (({"causal": True, "mask": "full"}, "beside mask"), ({"causal": 1}, "True or False")):
        with pytest.raises(iomodel.InputError, match=f"^causal: .*{says}"):
            Attention(q_len=8, head_dim=8, **wrong)  # type: ignore[arg-type]


def test_masks_take_their_data_by_position() -> None:
    assert Window(4096) == Window(left=4096)
    assert Window(4096, 0) == Window(left=4096, right=0)
    assert Documents([3, 5], True) == Documents(lengths=[3, 5], causal=True)
    assert BlockMask([[1]], 4, 8) == BlockMask(blocks=[[1]], block_q=4, block_kv=8)
    for wrong in (lambda: Window(1, 2, 3), lambda: Window(1, left=1), lambda: Attention(1)):  # type: ignore[call-arg, misc]
        with pytest.raises(iomodel.InputError, match=r"values given|by position"):
            wrong()


# Copies


@given(q_len=st.integers(1, 512), kv_len=st.none() | st.integers(1, 512), other=st.integers(1, 512))
def test_a_copy_is_the_call_with_other_fields(q_len: int, kv_len: int | None, other: int) -> None:
    """Fields whose default follows another one follow it where they have the default."""
    call = Attention(q_len=q_len, head_dim=8, **({} if kv_len is None else {"kv_len": kv_len}))
    copy = call.replace(q_len=other, num_heads=4)
    assert (copy.q_len, copy.heads, copy.kv_heads) == (other, 4, 4)
    assert copy.kv_len == (other if call.kv_len == q_len else kv_len)
    assert call.replace() == call


def test_every_workload_and_mask_can_be_copied_with_other_fields() -> None:
    assert CALL.replace(causal=False).mask == "full"
    assert VarlenAttention(q_lens=[1, 2], head_dim=8).replace(q_lens=[3]).kv_lens == (3,)
    assert Linear(rows=1, in_features=8, out_features=8).replace(dtype="half").out_dtype == "fp16"
    assert Window(3).replace(right=1) == Window(3, 1)
    with pytest.raises(iomodel.UnknownNameError, match="did you mean 'q_len'"):
        CALL.replace(qlen=1)


# Letters


def test_every_letter_stands_for_one_symbol() -> None:
    letters = [entry.letter for entry in ALPHABET]
    assert len(set(letters)) == len(letters)
    assert LETTERS.keys() <= set(letters)
    assert not set(letters) & BY_NAME.keys()
    assert not BY_NAME.keys() & FIELDS.keys()


def test_formulas_take_the_letters_that_they_print() -> None:
    formulas = iomodel.expressions("flash2")
    named = {"batch": 2, "heads": 3, "q_len": 4096, "kv_len": 512, "head_dim": 64, "value_dim": 32, "block_q": 128}
    lettered = {"B": 2, "H": 3, "N_q": 4096, "N_k": 512, "d": 64, "d_v": 32, "B_r": 128}
    assert formulas.subs(**lettered) == formulas.subs(**named)
    assert str(formulas.subs(N_q=4096, d=64).reads["K"]) == "64*B*H*N_k*ceiling(4096/B_r)"
    assert formulas.subs(N=4096) == formulas.subs(q_len=4096, kv_len=4096)
    assert formulas.subs(seq_len=4096) == formulas.subs(q_len=4096)
    trips = formulas.reads["K"]
    assert iomodel.theory.evaluate(trips, lettered) == iomodel.theory.evaluate(trips, named)
    with pytest.raises(iomodel.InputError, match=r"^N_q: 2 given for q_len"):
        formulas.subs(N=1, N_q=2)


def test_an_optimum_takes_them_and_reads_back() -> None:
    best = iomodel.optimum("flash2").subs(M=51200, d=64)
    assert str(best.subs(b=1, d_v=64).tiles["block_q"]) == "51072/131"
    again = type(best).from_json(best.to_json())
    assert again.tiles == best.tiles
    assert again.to_dict() == best.to_dict()


# Frozen


def test_a_changed_field_is_an_error_of_this_library() -> None:
    with pytest.raises(iomodel.InputError, match=r"^q_len: 3 given for a frozen Attention; .* replace\(q_len=...\)"):
        CALL.q_len = 3
    with pytest.raises(iomodel.InputError, match=r"^q_len: deleted"):
        del CALL.q_len
    for validate in (Attention.model_validate, lambda data: Attention(**data)):
        with pytest.raises(iomodel.InputError, match=r"^q_len: 0 given"):
            validate({"q_len": 0, "head_dim": 8})
    with pytest.raises(iomodel.InputError, match=r"^q_len: 0 given"):
        Attention.model_validate_json('{"q_len": 0, "head_dim": 8}')


def test_an_unknown_field_is_an_unknown_name_and_a_type_error() -> None:
    for kind in (iomodel.UnknownNameError, TypeError, iomodel.InputError):
        with pytest.raises(kind, match=r"qlen: 1 given for an unknown field; did you mean 'q_len'") as caught:
            Attention(qlen=1, head_dim=8)  # type: ignore[call-arg]
        assert caught.value.given == "qlen"  # type: ignore[attr-defined]
        assert caught.value.code == "unknown-name"  # type: ignore[attr-defined]


def test_dir_shows_what_this_library_defines() -> None:
    for value in (CALL, Window(1), Documents([1]), iomodel.Layout()):
        shown = {name for name in dir(value) if name[0] != "_"}
        assert not {name for name in shown if name.startswith("model_") or name in ("memo", "json", "template")}
        assert {"to_dict", "to_json", "replace", *type(value).model_fields} <= shown


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda: Attention(4096, 128), "as Attention(head_dim=..., q_len=...)"),
        (lambda: iomodel.cost("flash2", CALL, BLOCK_M=128), "did you mean 'block_q'?"),
        (lambda: iomodel.cost("flash2", CALL, BLOCK_N=64), "did you mean 'block_kv'?"),
        (lambda: iomodel.hardware("mi400"), "'mi300x'"),
        (
            lambda: iomodel.model("meta-llama/Llama-3.1-9B-Instruct"),
            "version llama-3.1-405b, llama-3.1-70b, llama-3.1-8b",
        ),
        (lambda: VarlenAttention(q_lens=[3, 0, 7], head_dim=64), "VarlenAttention.of_offsets"),
        (lambda: iomodel.planning.memory_plan("llama-3.2-1b", "apple-m1"), "'apple-m1 64GB' if it has 64 GB"),
    ],
)
def test_a_hint_names_the_right_input(ask, hint):
    with pytest.raises(iomodel.IOModelError) as refused:
        ask()
    assert hint in str(refused.value)
