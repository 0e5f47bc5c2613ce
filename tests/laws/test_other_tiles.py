"""No tile that is drawn without the candidates of `solve` moves less than its answer, or is faster by more than a tie.

`python -m benchmarks.checked_tiles 100000 --against-others` draws many more.
"""

from __future__ import annotations

from tests.support.other_tiles import drawn

QUESTIONS = 16
"""Questions drawn, each on another device."""


def test_no_other_tile_is_better() -> None:
    """Rows are packed as in the answer: a rule of the library chooses where it leaves packing to its caller."""
    answers = [found for number in range(QUESTIONS) if (found := drawn(0, number)) is not None]
    assert sum(found.fitting for found in answers) > 100
    for found in answers:
        packed = found.chosen.get("packed", False)
        assert found.holds or found.other.get("packed", packed) != packed, found
