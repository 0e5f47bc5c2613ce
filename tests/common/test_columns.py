"""Printed tables from the columns of fields."""

from dataclasses import dataclass, field

import iomodel
from iomodel.common.display import Table, choice_text, microseconds
from iomodel.common.results import Record, column, columns_in, printed


@dataclass(frozen=True)
class Times:
    first: float = field(metadata=column(">first [us]", microseconds))


@dataclass(frozen=True)
class Row(Record):
    name: str = field(metadata=column("name"))
    hidden: int
    times: Times = field(metadata=columns_in(Times))
    price: float | None = field(metadata=column(">price", ",.2f", extra=1))

    @property
    @printed(column(">twice", ","))
    def twice(self) -> int:
        return 2 * self.hidden


ROWS = [Row("one", 500, Times(1e-6), None), Row("two", 1000, Times(2e-3), 3.0)]


def test_fields_come_first_and_an_enclosed_record_stands_in_its_place() -> None:
    table = Table.of("rows", Row, ROWS)
    assert list(table.columns) == ["name", ">first [us]", ">price", ">twice"]
    assert table.rows == [["one", "1.0", "", "1,000"], ["two", "2,000.0", "3.00", "2,000"]]
    assert table.extra == ["price"]


def test_named_columns_come_in_their_order() -> None:
    table = Table.of("rows", Row, ROWS, names=("twice", "name"))
    assert (list(table.columns), table.rows[0]) == ([">twice", "name"], ["1,000", "one"])


def test_one_value_lists_its_columns_below_each_other() -> None:
    assert Table.one("row", ROWS[0]).rows == [("name", "one"), (">first [us]", "1.0"), (">twice", "1,000")]


def test_omissions_add_a_column_where_anything_is_left_out() -> None:
    table = Table.of("rows", Row, ROWS)
    assert table.with_omissions({"one": (), "two": ()}, ["one", "two"]) is table
    counted = table.with_omissions({"one": ("tails",), "two": ()}, ["one", "two"])
    assert [row[-1] for row in counted.rows] == ["1 part", ""]


def test_many_solutions_by_time_print_their_launch_configuration() -> None:
    text = str(iomodel.solve_array("flash2", None, "h100-sxm5", q_len=[1024, 2048], head_dim=64, objective="time"))
    assert all(name in text for name in ("warps", "stages", "us"))


def test_a_launch_is_no_size_of_a_tile() -> None:
    tiles = {"block_q": 64, "block_kv": 32}
    assert choice_text({**tiles, "warps": 4, "stages": 3}, {}) == f"{choice_text(tiles, {})}, 4 warps"
    assert choice_text({"stages": 3}, {"splits": 2}) == choice_text({}, {"splits": 2})
