"""Tables at any width of a terminal: nothing is lost, and no number or name is broken."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from iomodel.common.display import ANSWER, WARNING, Mark, Shown, Table, as_text
from tests.support.public_names import PUBLIC
from tests.support.public_types import MADE

WIDTHS = (60, 80, 120)
names = st.text("abcdefgh_", min_size=1, max_size=12)
numbers = st.integers(0, 10**12).map("{:,}".format)
amounts = numbers | st.tuples(numbers, numbers).map(" to ".join)
words = st.lists(names, min_size=1, max_size=6).map(" ".join)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Columns of names, numbers and text, some of which may be left out."""
    kinds = [names, *draw(st.lists(st.sampled_from([numbers, amounts, words]), max_size=6))]
    headers = draw(st.lists(names, min_size=len(kinds), max_size=len(kinds), unique=True))
    columns = [f"{'>' * (kind in (numbers, amounts))}{name}" for kind, name in zip(kinds, headers, strict=True)]
    rows = draw(st.lists(st.tuples(*kinds), min_size=1, max_size=4))
    extra = draw(st.lists(st.sampled_from(headers[1:]), unique=True)) if len(headers) > 1 else []
    return Table(draw(words), columns, rows, extra=extra)


def left_out(text: str) -> set[str]:
    """Return the columns that a table names as left out."""
    found = re.search(r"^left out at this width: (.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return set() if found is None else {name.strip() for name in found[1].replace("\n", " ").split(", ")}


def unbroken(table: Table, text: str) -> None:
    """Check that every number, and every word of a text, stands in one piece in the rendered table."""
    gone = left_out(text)
    assert gone <= {*table.extra}
    for place, column in enumerate(table.columns):
        if " ".join(column.removeprefix(">").split()) in gone or (table.folded and place):
            continue
        for row in table.rows:
            for piece in [row[place]] if column.startswith(">") and row[place][:1].isdigit() else row[place].split():
                assert piece in text


@given(table=tables(), width=st.integers(60, 140))
def test_a_table_fits_any_width_unbroken(table: Table, width: int) -> None:
    text = as_text(table, width)
    assert all(len(line) <= width for line in text.splitlines())
    unbroken(table, text)


@given(table=tables())
def test_a_wide_terminal_shows_every_column(table: Table) -> None:
    text = as_text(table, 400)
    assert not left_out(text)
    assert len([line for line in text.splitlines() if line.strip()]) == len(table.rows) + 3  # title, header, rule


@pytest.mark.parametrize("name", [name for name in MADE if issubclass(PUBLIC[name], Shown)])
def test_results_fit_usual_terminals(name: str) -> None:
    result = MADE[name]()
    for width in WIDTHS:
        for part in result.tables():
            if isinstance(part, Table):
                text = as_text(part, width)
                unbroken(part, text)
                assert all(len(line) <= width for line in text.splitlines())


def test_columns_are_left_out_before_rows_are_stacked() -> None:
    table = Table("t", ("name", ">one", ">two", ">three"), [("a", "1" * 20, "2" * 20, "3" * 20)], extra=("one", "two"))
    assert left_out(as_text(table, 80)) == set()
    assert left_out(as_text(table, 70)) == {"two"}
    assert left_out(as_text(table, 40)) == {"one", "two"}
    stacked = as_text(replace(table, extra=()), 40)
    assert all(f"{name}: {digit * 20}" in stacked for name, digit in zip(("one", "two", "three"), "123", strict=True))


def test_bytes_are_shown_in_a_larger_unit_too() -> None:
    table = Table("t", ("", ">value", "unit"), [("traffic", "2,349,858,816", "B"), ("few", "9,999", "B")])
    text = as_text(table)
    assert "2,349,858,816   B (2.35 GB)" in text
    assert text.endswith("9,999   B")


def test_marks_are_colours_of_a_terminal_alone() -> None:
    table = Table("t", ("", ">value"), [("tile", Mark("128", ANSWER))], [Mark("assumed: much", WARNING)])
    for system, coloured in (("standard", True), (None, False)):
        console = Console(width=80, color_system=system, force_terminal=True)
        with console.capture() as capture:
            console.print(table)
        assert ("\x1b[1m" in capture.get(), "\x1b[33m" in capture.get()) == (coloured, coloured)
