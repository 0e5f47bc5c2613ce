"""No tile that is drawn without the candidates of `solve` moves less than its answer, or is faster by more than a tie.

`python -m benchmarks.checked_tiles 100000 --against-others` draws many more, of linear layers and descents too.
"""

from __future__ import annotations

from tests.support.other_tiles import Drawn, drawn

QUESTIONS = 16
"""Questions drawn, each on another device."""


def proved(found: Drawn) -> bool:
    """Check that an answer is the best of all tiles that fit: of least traffic, or the fastest of a kernel.

    A descent ends at some of many tiles.
    """
    return found.quantity == "hbm_bytes" or found.implementation != "textbook"


def test_no_other_tile_is_better() -> None:
    """Rows are packed as in the answer: a rule of the library chooses where it leaves packing to its caller."""
    answers = [found for number in range(QUESTIONS) if (found := drawn(0, number)) is not None and proved(found)]
    assert sum(found.fitting for found in answers) > 100
    for found in answers:
        packed = found.chosen.get("packed", False)
        assert found.holds or found.other.get("packed", packed) != packed, found
