"""Times of layers beside public tables of measured kernels, whose judging rows chose no parameter."""

from statistics import median

import pytest

from benchmarks.layers import KINDS, judged, quantile, rows


@pytest.mark.parametrize(
    ("kind", "refused", "middle", "high"), [("recurrent", 0, 0.13, 0.5), ("linear", 0, 0.17, 0.63)]
)
def test_judging_layers_are_near_those_measured(kind, refused, middle, high):
    found = judged(kind, "judging")
    errors = [abs(one.error) for one in found]
    assert sum(one.predicted is None for one in found) == refused
    assert median(errors) < middle
    assert quantile(errors, 0.9) < high
    assert 3 * median(errors) < median(abs(one.naive / one.measured - 1) for one in found)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_judge_or_choose(kind):
    shapes = [{tuple(row[name] for name in KINDS[kind].shape) for row in rows(KINDS[kind], role)} for role in ROLES]
    assert all(shapes)
    assert not shapes[0] & shapes[1]


ROLES = "working", "judging"
