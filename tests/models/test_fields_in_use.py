"""Fields of model files: each changes an answer, or is listed as a record; a larger model is never a cheaper one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import pytest

import iomodel
from iomodel import IOModelError
from iomodel.models.model_file import ModelFile, file_of
from iomodel.models.spec import ModelSource, ModelSpec
from tests.support.inside import Group

CALLS = {"decode": {"batch": 3, "q_len": 1, "kv_len": 6000}, "prefill": {"batch": 1, "q_len": 700, "kv_len": 700}}
LAYERS = {
    "plain": {"attention": {"heads": 8, "head_dim": 64}, "mlp": {"intermediate_size": 256}},
    "mamba-1": {"recurrent": {"kind": "mamba1", "inner": 1024, "state_dim": 16, "rank": 32}},
    "short-convolution": {"recurrent": {"kind": "short_convolution", "channels": 512}},
}
"""Layers of models that are not shipped: a plain one, and kinds that no shipped model has."""
SHIPPED = (
    "gpt-oss-20b", "deepseek-v3.2", "deepseek-v4-flash", "kimi-k3", "minimax-m1", "nemotron-3-super",
    "qwen3-next-80b-a3b", "gemma-3n-e4b",
)  # fmt: skip
SIDE = {"name": "more", "in_features": 512, "out_features": 64}
OTHERS: dict[str, Any] = {
    "dtype": "fp8",
    "expert_dtype": "fp8",
    "head_dtype": "fp8",
    "embedding_dtype": "fp8",
    "kv_dtype": "fp8",
    "qk_norm_weights": "all",
    "out_gate": "element",
    "dtypes": {"down": "fp8"},
    "side": [SIDE],
    "further_layers": [LAYERS["plain"]],
    "layers": [{"pattern": ["global"]}],
    "pattern": ["global", "global"],
    "activation": "relu2",
}
"""What is put in place of a value that is no number and no switch."""
RECORDS: dict[str, str] = {
    "MLPLayer.activation": "elementwise work is bound by memory, whatever the function",
    "Indexer.block": "as many keys are read, in longer runs; a topk of no whole blocks is refused",
    "ModelFile.max_positions": "a bound of plans",
    "ModelFile.state_dtype": "the type of states under an engine alone, tests/planning/test_startup_logs.py",
    "ModelFile.schema_version": "the layout of the file, of which there is one",
    "ModelFile.name": "a name",
    "ModelFile.title": "a name",
    "ModelFile.notes": "text for readers",
    "ModelFile.sources": "where the figures are from",
    "SideLayer.name": "a name",
}
"""Fields that change none of the answers, with the reason."""
SMALLER: dict[str, set[str]] = {
    "AttentionLayer.rope_dim": {"parameters", "active parameters", "weights"},  # fewer elements are projected per head
    "Compression.ratio": {"cache"},  # an entry stands for more tokens
    "Indexer.pool": {"index"},  # a key stands for more tokens
}
"""Fields of which more makes something smaller."""
GROUPS = ("attention", "recurrent", "mlp", "indexer", "compression", "kinds", "kind")
"""Fields that hold other groups of fields, or say which ones."""


class Field(NamedTuple):
    """A field of the file of a model: its name with its group, its place, and its value."""

    name: str
    path: tuple[Any, ...]
    value: Any


@cache
def file_data(name: str) -> dict[str, Any]:
    """The content of the file of a model."""
    if name in LAYERS:
        kinds = {"kinds": {"a": LAYERS[name]}, "layers": [{"count": 3, "pattern": ["a"]}]}
        own = {"schema": 1, "title": name, "hidden_size": 512, "vocab_size": 1000, **kinds}
        return file_of(iomodel.model(own)).to_dict()
    return file_of(iomodel.model(name)).to_dict()


def fields(group: Any, path: tuple[Any, ...] = ()) -> Iterator[Field]:
    """Every field of the groups of a file, those that are left out included."""
    if isinstance(group, Group):
        for name in type(group).model_fields:
            value = getattr(group, name)
            yield Field(f"{type(group).__name__}.{name}", (*path, name), value)
            yield from fields(value, (*path, name))
    elif isinstance(group, dict | tuple):
        for key, value in group.items() if isinstance(group, dict) else enumerate(group):
            yield from fields(value, (*path, key))


def fields_of(name: str) -> list[Field]:
    found = fields(ModelFile(**file_data(name)))
    return [field for field in found if not field.name.startswith(ModelSource.__name__)]


def changes(field: Field) -> tuple[Any, ...]:
    """Values to put in place of that of a field."""
    name, value = field.path[-1], field.value
    if name in OTHERS:
        return (OTHERS[name],)
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return (2 * value, value // 2, value + 1) if value else (8, 1)
    return (64, 8) if value is None else ()


def put(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Copy plain data with one entry replaced."""
    if not path:
        return value
    copied = data.copy()
    inner = copied[path[0]] if isinstance(copied, list) else copied.get(path[0], {})
    copied[path[0]] = put(inner, path[1:], value)
    return copied


def sizes(spec: ModelSpec) -> dict[str, int]:
    return {
        "parameters": spec.parameters,
        "active parameters": spec.active_parameters,
        "further parameters": spec.further_parameters,
        "weights": spec.weight_bytes(),
        "cache": spec.kv_bytes(6000),
        "state": spec.state_bytes(),
        "index": spec.index_bytes(6000),
    }


def seconds(spec: ModelSpec, call: str) -> object:
    try:
        return iomodel.step(spec, "h100-sxm5", **CALLS[call], layout=iomodel.Layout()).seconds  # type: ignore[arg-type]
    except IOModelError as error:
        return str(error)


ANSWERS = (sizes, partial(seconds, call="decode"), partial(seconds, call="prefill"))


@cache
def answer_of(name: str, number: int) -> object:
    return ANSWERS[number](iomodel.model(file_data(name)))


def changes_an_answer(name: str, field: Field) -> bool:
    """Whether any value of a field gives the model another size or another time."""
    for value in changes(field):
        try:
            spec = iomodel.model(put(file_data(name), field.path, value))
        except IOModelError:
            continue
        if any(ask(spec) != answer_of(name, number) for number, ask in enumerate(ANSWERS)):
            return True
    return False


def test_every_field_changes_an_answer_or_is_a_record() -> None:
    used: set[str] = set()
    known: set[str] = set()
    for name in (*LAYERS, *SHIPPED):
        for field in fields_of(name):
            known.add(field.name)
            if field.name not in used and changes_an_answer(name, field):
                used.add(field.name)
    assert len(known) > 110
    assert {field for field in known - used if field.split(".")[1] not in GROUPS} == RECORDS.keys()


def test_the_longest_context_bounds_a_plan() -> None:
    """`max_positions` of a file."""
    short = iomodel.model({**file_data("plain"), "max_positions": 1000})
    assert iomodel.plan(short, "h100-sxm5", prompt=990, output=10)
    with pytest.raises(IOModelError, match=r"at most 1,000, the longest context"):
        iomodel.plan(short, "h100-sxm5", prompt=991, output=10)


@pytest.mark.parametrize("name", [*LAYERS, *SHIPPED])
def test_twice_of_anything_is_no_smaller(name: str) -> None:
    """Each number of a file is doubled in turn."""
    before = sizes(iomodel.model(file_data(name)))
    tried = 0
    for field in fields_of(name):
        if isinstance(field.value, bool) or not isinstance(field.value, int):
            continue
        try:
            after = sizes(iomodel.model(put(file_data(name), field.path, 2 * field.value)))
        except IOModelError:
            continue
        tried += 1
        smaller = {size for size, value in before.items() if after[size] < value}
        assert smaller <= SMALLER.get(field.name, set()), field
    assert tried >= 5


@pytest.mark.parametrize("name", SHIPPED)
def test_twice_of_anything_is_no_faster(name: str) -> None:
    """A step of decoding, to 0.1 %, which other tiles of one kernel can make."""
    before = seconds(iomodel.model(file_data(name)), "decode")
    for field in fields_of(name):
        if isinstance(field.value, bool) or not isinstance(field.value, int) or field.name in SMALLER:
            continue
        try:
            spec = iomodel.model(put(file_data(name), field.path, 2 * field.value))
        except IOModelError:
            continue
        after = seconds(spec, "decode")
        assert isinstance(before, float)
        if isinstance(after, float):
            assert after >= 0.999 * before, field
