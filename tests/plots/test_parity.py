"""Parity plots state the errors of the rows that they draw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import plots
from tests.support.strategies import at_most

pytest.importorskip("matplotlib")
POSITIVE = st.floats(1e-9, 1e9)
ROWS = st.lists(st.tuples(POSITIVE, POSITIVE, st.sampled_from(("one", "two, $x$", "three")), st.booleans()), min_size=1)


def marked(figure, gid):
    """List the points of the artists of a name."""
    lines = figure.findobj(lambda artist: artist.get_gid() == gid)
    return sorted(point for line in lines for point in zip(*map(list, line.get_data()), strict=True))


@at_most(12)
@given(ROWS)
def test_every_row_is_a_point_of_its_family(rows):
    predicted, measured, families, fresh = zip(*rows, strict=True)
    figure = plots.parity(predicted, measured, family=families, held_out=fresh)
    texts = [" ".join(text.get_text().split()) for text in figure.legends[0].get_texts()]
    for name in set(families):
        for new, word in ((True, "held out"), (False, "calibration")):
            own = [(y, x) for y, x, family, held in rows if (family, held) == (name, new)]
            assert marked(figure, f"{word} {name}") == sorted((x, y) for y, x in own)
            ratios = sorted((x, y / x) for y, x in own)
            assert [y for _, y in marked(figure, f"ratio {word} {name}")] == pytest.approx([y for _, y in ratios])
        errors = [abs(y / x - 1) for y, x, family, _ in rows if family == name]
        told = f"{name}: {len(errors):,} rows, median error {np.median(errors):.1%}".replace("%", " %")
        assert told in texts
    left, right = figure.axes
    for x, y in marked(figure, "diagonal"):
        assert x == y
    for y, x, _, _ in rows:
        assert left.get_xlim()[0] < min(x, y) <= max(x, y) < left.get_xlim()[1]
        assert right.get_ylim()[0] < y / x < right.get_ylim()[1]


def test_held_out_rows_are_filled_and_the_others_hollow():
    figure = plots.parity([1.0, 2.0], [1.0, 2.0], held_out=[True, False])
    (filled,) = figure.findobj(lambda artist: artist.get_gid() == "held out")
    (hollow,) = figure.findobj(lambda artist: artist.get_gid() == "calibration")
    assert filled.get_markerfacecolor() == filled.get_color()
    assert hollow.get_markerfacecolor() == "none"


FAULTS = {
    "predicted: [] given; allowed: one or more positive numbers": ([], []),
    "predicted: None given": (None, [1.0]),
    "measured: 0 given in row 1; allowed: a number above 0": ([1.0, 1.0], [1.0, 0.0]),
    "measured: nan given in row 0": ([1.0], [float("nan")]),
    "measured: 2 values given; allowed: as many as predicted, 1": ([1.0], [1.0, 2.0]),
}


@pytest.mark.parametrize("message", FAULTS)
def test_bad_values_are_refused(message):
    with pytest.raises(iomodel.InputError) as error:
        plots.parity(*FAULTS[message])
    assert message in str(error.value)


@pytest.mark.parametrize("given", [{"family": ["a", "b"]}, {"family": "a"}, {"family": [1]}, {"held_out": [1]},
                                   {"held_out": [True, True]}, {"held_out": "x"}])  # fmt: skip
def test_bad_families_are_refused(given):
    ((name, _),) = given.items()
    with pytest.raises(iomodel.InputError, match=f"^{name}: .* given; allowed: a list of 1 "):
        plots.parity([1.0], [1.0], **given)
