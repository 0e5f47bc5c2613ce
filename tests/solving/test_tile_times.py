"""Maps of times: each cell is the estimate at its tile, and the marked tiles are those of the solver."""

import re
from collections import Counter
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.style import Style
from rich.text import Text

import iomodel
from iomodel import InputError
from iomodel.solving.tile_times import COLOURS
from tests.support.strategies import fraction_of_examples

CALLS = [("flash2", "a100-sxm4-80gb"), ("flash3", "h100-sxm5"), ("split_kv", "a100-sxm4-80gb")]


@pytest.mark.parametrize(("name", "gpu"), CALLS)
@fraction_of_examples(10)
@given(data=st.data())
def test_a_cell_is_the_estimate_of_its_tile(name: str, gpu: str, data: st.DataObject) -> None:
    group = data.draw(st.sampled_from([1, 4]))
    w = iomodel.Attention(
        heads=4 * group,
        kv_heads=4,
        q_len=data.draw(st.integers(256, 4096)),
        head_dim=data.draw(st.sampled_from([64, 128])),
        mask=data.draw(st.sampled_from(["full", "causal"])),
    )
    options = {"packed": False, **({"splits": 1} if name == "split_kv" else {})}
    times = iomodel.kernels.tile_times(name, w, gpu, **options)
    records = times.records()
    chosen = data.draw(st.sampled_from(records))
    sizes = {of: chosen[of] for of in times.names}
    assert chosen["seconds"] == pytest.approx(iomodel.estimate(name, w, gpu, sizes, **options).seconds, rel=1e-9)
    assert chosen["requested_bytes"] == iomodel.cost(name, w, sizes, **options).hbm_bytes
    solution = iomodel.solve(name, w, gpu, **options)
    assert times.fastest.seconds == min(record["seconds"] for record in records)
    if times.fastest.tiles != solution.tiles:  # a tie: the shipped choice, or one that leaves fewer SMs idle
        assert times.fastest.seconds * (1 - 1e-9) <= solution.seconds <= times.fastest.seconds * 1.005 * (1 + 1e-9)
    assert times.fewest_requests == solution.certificate.least_traffic
    assert times.shipped == solution.certificate.shipped
    assert times.fewest_requests.hbm_bytes == min(record["requested_bytes"] for record in records)


def test_the_map_of_a_terminal_has_a_character_for_each_tile() -> None:
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    times = iomodel.kernels.tile_times("flash3", w, "h100-sxm5")
    rows = [line.split("|")[1] for line in str(times).splitlines() if "|" in line]
    assert len(rows) == len(times.first_sizes)
    assert sum(not cell.isspace() for row in rows for cell in row) == len(times.records())
    for letter in "FSR":
        assert sum(row.count(letter) for row in rows) == 1
    row, column = (times.fastest.tiles[name] for name in times.names)
    drawn = rows[::-1][times.first_sizes.index(row)]
    assert drawn[1 + times.second_sizes.index(column)] == "F"


def test_the_map_has_the_colours_of_the_sketch() -> None:
    """Cells are filled with the colour of their time, in a terminal with colours and in a notebook alike."""
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    times = iomodel.kernels.tile_times("flash3", w, "h100-sxm5")
    console = Console(width=120, color_system="truecolor", force_terminal=True, file=StringIO())
    with console.capture() as capture:
        console.print(times)
    coloured = Text.from_ansi(capture.get().rstrip())
    assert [line.rstrip() for line in str(coloured).splitlines()] == str(times).splitlines()
    fills = re.findall(r'height="10" fill="(#\w+)"', times.sketch())
    styles = [span.style for span in coloured.spans if isinstance(span.style, Style)]
    grounds = Counter(style.bgcolor.name.upper() for style in styles if style.bgcolor)
    keys = Counter(colour.upper() for colour in COLOURS)  # one of each in the legend
    assert grounds - keys == Counter(fill.upper() for fill in fills)
    assert len(fills) == len(times.records())


def test_a_call_without_kernels_is_refused() -> None:
    w = iomodel.Attention(q_len=128, head_dim=64)
    with pytest.raises(InputError, match="implementation: none runs the call"):
        iomodel.kernels.tile_times("standard", w, "h100-sxm5")
