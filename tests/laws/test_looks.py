"""Looks of results: repr, HTML, data frames, completion, and the headers of their plain data."""

from __future__ import annotations

import json
from functools import cache
from typing import Any
from xml.etree import ElementTree

import pytest

import iomodel
from iomodel.common.display import Result, Shown, Table
from iomodel.common.headers import package_version
from tests.support.public_names import PUBLIC
from tests.support.public_types import GPU, MADE, W


@cache
def made(name: str) -> Any:
    """A value of a public type."""
    return MADE[name]()


PRINTED = [name for name in MADE if issubclass(PUBLIC[name], Shown)]
HEADED = [name for name in PRINTED if issubclass(PUBLIC[name], Result) and not PUBLIC[name].constructed]


@pytest.mark.parametrize("name", MADE)
def test_a_repr_is_short(name: str) -> None:
    if name not in ("Residency", "Execution", "ParetoPoint"):  # parts of other values, which print no table
        assert len(repr(made(name))) <= 300
        assert "\n" not in repr(made(name))


def test_a_repr_is_the_answer() -> None:
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    assert repr(iomodel.solve("flash3", w, GPU)) == (
        "<Solution flash3, flash-attention-3 on h100-sxm5: 192 x 96, 12 warps, 870.5 us>"
    )
    assert repr(iomodel.cost("flash2", w, block_q=128, block_kv=64)) == "<Cost flash2: 128 x 64, 4,497,342,464 B>"
    split = iomodel.solve("split_kv", w.replace(q_len=1, kv_len=131072, mask="full"), GPU)
    assert f"splits={split.options['splits']}, packed=True, " in repr(split)


@pytest.mark.parametrize("name", PRINTED)
def test_html_is_a_table_of_the_same_cells(name: str) -> None:
    value = made(name)
    parts = list(ElementTree.fromstring(f"<div>{value._repr_html_()}</div>").iter("table"))
    tables = [table for table in value.tables() if isinstance(table, Table)]
    assert len(parts) == len(tables)
    for part, table in zip(parts, tables, strict=True):
        rows = [["".join(cell.itertext()) for cell in row] for row in part.iter("tr")]
        assert rows == [[column.removeprefix(">") for column in table.columns], *map(list, table.rows)]


@pytest.mark.parametrize("name", HEADED)
def test_completion_shows_what_readers_use(name: str) -> None:
    hidden = {"derived", "unless_none", "keys", "enclosing", "later", "deferring", "sketch", "memo"}
    assert not hidden & set(dir(made(name)))
    assert {"to_dict", "to_json", "to_pandas", "from_dict", "unread"} <= set(dir(made(name)))


@pytest.mark.parametrize("name", HEADED)
def test_a_result_is_a_data_frame(name: str) -> None:
    pytest.importorskip("pandas")
    assert len(made(name).to_pandas().columns) > 0


@pytest.mark.parametrize("name", HEADED)
def test_plain_data_begin_with_their_schema_and_version(name: str) -> None:
    value = made(name)
    data = json.loads(value.to_json())
    assert list(data)[:2] == ["schema", "iomodel"]
    assert data["schema"].startswith("iomodel.")
    assert data["schema"].endswith("/1")
    assert data["iomodel"] == iomodel.__version__ == package_version()
    assert value.to_json().count('"iomodel": ') == 1  # results inside it have no header
    bare = {key: item for key, item in data.items() if key not in ("schema", "iomodel")}
    assert type(value).from_dict(bare) == value  # as releases without headers wrote it


@pytest.mark.parametrize("name", HEADED)
def test_keys_of_a_later_release_are_unread_and_own_ones_refused(name: str) -> None:
    value = made(name)
    data = {**json.loads(value.to_json()), "a later key": 1}
    with pytest.raises(iomodel.InputError, match="'a later key': an unknown key"):
        type(value).from_dict(data)
    later = type(value).from_dict({**data, "iomodel": "99.1"})
    assert later == value
    assert later.unread == ("a later key",)
    assert value.unread == ()


def test_keys_inside_are_unread_too() -> None:
    data = iomodel.solve("flash2", W, GPU).to_dict()
    data["certificate"] = {**data["certificate"], "proof": "later"}
    assert iomodel.Solution.from_dict({**data, "iomodel": "99.1"}).unread == ("proof",)
    with pytest.raises(iomodel.InputError, match="'proof': an unknown key"):
        iomodel.Solution.from_dict(data)


def test_data_of_another_type_or_meaning_are_refused() -> None:
    data = iomodel.cost("flash2", W, block_q=64, block_kv=64).to_dict()
    for schema in ("iomodel.solution/1", "iomodel.cost/2"):
        with pytest.raises(iomodel.InputError, match=f"^schema: '{schema}' given; allowed: 'iomodel.cost/1'"):
            iomodel.Cost.from_dict({**data, "schema": schema})
