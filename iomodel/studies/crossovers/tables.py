"""Tables and sentences of a crossover study for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iomodel.common.display import Table
from iomodel.studies.crossovers.contenders import METRICS

if TYPE_CHECKING:
    from iomodel.studies.crossovers.crossovers_result import Crossover, Crossovers

LONG = 200
"""The most characters of a formula that is printed."""
HEAD, TAIL = 8, 4
"""Intervals shown from either end where there are more."""


def whole(study: Crossovers) -> list[Table | str]:
    """Show the winners, the pairs, the formulas and the extent of the proof."""
    letter = study.axis.letter + (f" [{study.axis.unit}]" if study.axis.unit != "-" else "")
    metric = METRICS[study.metric]
    title = f"{metric.label} [{metric.unit}] over {study.axis.meaning}, {tiles_of(study)}"
    lines = [*formulas(study), f"  {study.proof}", *(f"  {line}" for line in footnotes(study))]
    return [title, "", winners(study, letter), pairs(study.pairs, letter), *lines]


def winners(study: Crossovers, letter: str) -> Table:
    """Show the intervals of the winners, from either end where there are many."""
    rows = [(f"{first:,}", f"{last:,}", " = ".join(least) or "nothing fits") for first, last, least in study.winners]
    total = study.changes + 1
    if total > HEAD + TAIL:
        tail = TAIL if total == len(rows) else 0
        rows = [*rows[:HEAD], (f"{total - HEAD - tail:,} more", "", ""), *rows[len(rows) - tail :]]
    return Table("", (f">{letter} from", ">to", "least"), rows)


def pairs(study: Sequence[Crossover], letter: str) -> Table:
    """Show for each ordered pair the first and the last change."""
    columns = ("algorithm", "below", f">first at {letter}".rstrip(), ">up to the limit from", ">changes", ">equal at")
    rows = [
        (
            pair.challenger,
            pair.incumbent,
            "never" if pair.first is None else f"{pair.first:,}",
            "" if pair.lasting is None else f"{pair.lasting:,}",
            f"{pair.changes:,}",
            f"{pair.equal:,}",
        )
        for pair in study
    ]
    return Table("", columns, rows)


def formulas(study: Crossovers) -> list[str]:
    """Write one formula for each unordered pair, or the reason why there is none."""
    return [line for pair in study.unordered for line in _formula(pair, METRICS[study.metric].verb)]


def _formula(pair: Crossover, verb: str) -> list[str]:
    both = f"  {pair.challenger} vs {pair.incumbent}:"
    if (formula := pair.formula) is not None:
        expression = str(formula.expression)
        exact = f"{expression}, about" if len(expression) < LONG else "about"
        text = f"{formula.symbol} = {exact} {formula.value:,.6g}"
        tables = "the tables hold the exact counts"
        return [f"{both} equal at {text}", f"    (a formula of relaxed counts: {formula.relaxed}; {tables})"]
    if pair.changes:
        return [f"{both} no formula ({pair.no_formula})"]
    if pair.equal:
        return [f"{both} always equal"]
    less = pair.challenger if pair.lasting is not None else pair.incumbent
    return [f"{both} never equal ({less} always {verb} less)"]


def footnotes(study: Crossovers) -> list[str]:
    """Name the algorithms that lack values, and those that approximate attention."""
    return [
        f"{label} has no value at {count:,} of {study.looked:,} evaluated points (no tile fits, or requirements fail)"
        for label, count in study.missing.items()
    ] + [
        f"{contender.label} approximates attention: {contender.declaration.approximates}"
        for contender in study.contenders
        if contender.declaration.approximates
    ]


def tiles_of(study: Crossovers) -> str:
    """Say which tiles the values are at, and on which device or in how much memory."""
    timed, device = study.metric == "time", study.hardware
    memory = [f"{size:,} {name[5:]}" for name, size in study.budget.items() if name.startswith("sram_")]
    place = device.name if device is not None else ", ".join(memory)
    has_tiles = [bool(contender.tiles) for contender in study.contenders]
    if all(has_tiles) or not (timed or place or study.axis.memory):
        return f"at the given tiles on {place}" if timed else "at the given tiles"
    best = f"at the {'given tiles, else the ' if any(has_tiles) else ''}{'fastest' if timed else 'best'} tiles"
    return f"{best} {'on' if timed else 'for'} {place}" if place else best
