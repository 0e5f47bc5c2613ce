"""The tables of crossovers for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iomodel.crossings.metrics import METRICS
from iomodel.show import escape_markup, table

if TYPE_CHECKING:
    from iomodel.crossings.result import Crossover, Crossovers

LONG = 200
"""A formula of more letters is not printed; the result has it."""
HEAD, TAIL = 8, 4
"""Intervals shown from either end where there are more."""


def whole(found: Crossovers) -> Any:
    """Who is least where, each pair, the formulas, and what is proven."""
    from rich.console import Group

    letter, unit = str(found.axis.symbol), f" [{found.axis.unit}]" if found.axis.unit != "-" else ""
    name, metric_unit = METRICS[found.metric]
    title = f"{name} [{metric_unit}] over {found.axis.meaning}, {at_which_tiles(found)}"
    parts = [escape_markup(title), "", least_where(found, letter + unit), pairs(found.pairs, letter, unit)]
    parts += [escape_markup(line) for line in formulas(found.pairs)]
    parts.append(escape_markup(f"  {found.proof}"))
    return Group(*parts, *(escape_markup(f"  {line}") for line in footnotes(found)))


def least_where(found: Crossovers, letter: str) -> Any:
    """The intervals, from either end where there are many."""
    rows = [
        (f"{first:,}", f"{last:,}", " = ".join(least) if least else "nothing fits")
        for first, last, least in found.winners
    ]
    more = found.changes + 1 - len(rows)
    if len(rows) > HEAD + TAIL or more:
        tail = 0 if more else TAIL
        rest = (f"{found.changes + 1 - HEAD - tail:,} more", "", "")
        rows = [*rows[:HEAD], rest, *rows[len(rows) - tail :]]
    return _untitled((f">{letter} from", ">to", "least"), rows)


def _untitled(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """A table without a title: a long one would be broken to the width of a narrow table."""
    made = table("", columns, rows)
    made.title = None
    return made


def pairs(found: Sequence[Crossover], letter: str, unit: str) -> Any:
    """Who is below whom from where."""
    columns = ("who", "below whom", f">first at {letter}{unit}".rstrip(), ">to the limit from", ">changes", ">equal at")
    rows = [
        (
            pair.challenger,
            pair.incumbent,
            "never" if pair.first is None else f"{pair.first:,}",
            "" if pair.lasting is None else f"{pair.lasting:,}{' for ever' if pair.for_ever else ''}",
            f"{pair.changes:,}",
            f"{pair.equal:,}",
        )
        for pair in found
    ]
    return _untitled(columns, rows)


def formulas(found: Sequence[Crossover]) -> list[str]:
    """One line a pair, once for both ways round."""
    lines, known = [], set()
    for pair in found:
        if frozenset((pair.challenger, pair.incumbent)) in known:
            continue
        known.add(frozenset((pair.challenger, pair.incumbent)))
        if pair.formula is None:
            lines.append(f"  {pair.challenger} = {pair.incumbent}: no formula, for {pair.no_formula}")
            continue
        one = pair.formula
        written = f"{one.symbol} = {one.expression}, about {one.value:,.6g}"
        if len(written) > LONG:
            written = f"{one.symbol} = about {one.value:,.6g}, by a formula of {len(str(one.expression))} letters"
        lines.append(f"  {pair.challenger} = {pair.incumbent}: {written}")
        lines.append(f"    ({one.relaxed})")
    return lines


def footnotes(found: Crossovers) -> list[str]:
    """Who has no value where, and who approximates attention."""
    lines = []
    for label, (count, divisor) in found.missing.items():
        all_of = f"; it answers at multiples of {divisor}" if divisor > found.step else ""
        hint = f" (start and step {divisor} look at these alone)" if all_of else ""
        why = "does not answer, or no tile of it fits,"
        lines.append(f"{label} {why} at {count:,} of {found.looked:,} points looked at{all_of}{hint}")
    return lines + [
        f"{one.label} approximates attention: {one.found.approximates}"
        for one in found.contenders
        if one.found.approximates
    ]


def at_which_tiles(found: Crossovers) -> str:
    """At which tiles, and of which device or memory."""
    timed, device = found.metric == "time", found.hardware
    given = [bool(one.tiles) for one in found.contenders]
    if all(given) or not (timed or found.budget or found.axis.memory):
        said = "at the tiles given"
    else:
        best = "fastest" if timed else "best"
        said = f"at the tiles given, else at the {best}" if any(given) else f"at the {best} tiles of each"
        sizes = [
            f"{size:,} {name[5:]}" for name, size in found.budget.items() if name in ("sram_bytes", "sram_elements")
        ]
        on = ", ".join(sizes) if device is None else device.name
        said += f" for {on}" if on and not timed else ""
    return f"on {device.name}, {said}" if timed and device is not None else said
