"""Printed formulas with one term per line."""

from __future__ import annotations

from itertools import accumulate

SIGNS = (" + ", " - ")
FEWEST = 3
"""Fewest terms of a sum that is broken although it fits in a line."""
WIDEST = 100
"""Longest line that is left whole [characters]."""


def stacked(text: str) -> str:
    """Write the terms of every long sum of a text of formulas one under another, aligned, with the signs before them.

    Only white space changes: without it, the text is the same.

    Parameters
    ----------
    text : str
        Lines of which some are formulas, `name = formula`.

    Examples
    --------
    >>> print(stacked("hbm_reads = B*H*(N_k*T_r*d + N_k*T_r*d_v + N_q*d)"))
    hbm_reads = B*H*(  N_k*T_r*d
                     + N_k*T_r*d_v
                     + N_q*d)
    """
    return "\n".join(_stacked_line(line) for line in text.split("\n"))


def _stacked_line(line: str) -> str:
    name, sign, formula = line.partition(" = ")
    return name + sign + _broken(formula, len(name + sign), FEWEST) if sign else line


def _broken(formula: str, column: int, fewest: int = 0) -> str:
    """Break the longest sum or list of arguments of a formula that starts at a column.

    A formula that fits in its line is broken if it is a sum of `fewest` terms, or has such a sum as a factor.
    """
    fits = column + len(formula) <= WIDEST
    if fits and not fewest:
        return formula
    spans = _sums(formula) if fits else [*_sums(formula), *_arguments(formula)]
    start, stop = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
    parts = _parts(formula[start:stop])
    if len(parts) < (fewest if fits else 2):
        return formula
    margin = column + start
    lines = [sign + _broken(part, margin + len(sign)) for sign, part in parts]
    return formula[:start] + ("\n" + " " * margin).join(lines) + formula[stop:]


def _sums(formula: str) -> list[tuple[int, int]]:
    """List the spans of the sums: the formula where it is one, else its factors in parentheses."""
    if len(_cuts(formula)) > 1:
        return [(0, len(formula))]
    return [(start, stop) for start, stop in _groups(formula) if not formula[start - 2 : start - 1].isalnum()]


def _arguments(formula: str) -> list[tuple[int, int]]:
    """List the spans of the arguments of functions, of a formula that is no sum."""
    return [] if len(_cuts(formula)) > 1 else _groups(formula)


def _groups(formula: str) -> list[tuple[int, int]]:
    """List the spans inside the outermost parentheses."""
    spans, opened = [], []
    for place, letter in enumerate(formula):
        if letter == "(":
            opened.append(place)
        elif letter == ")":
            start = opened.pop()
            if not opened:
                spans.append((start + 1, place))
    return spans


def _parts(text: str) -> list[tuple[str, str]]:
    """Split a list of arguments after each comma, or a sum before each sign, outside parentheses: signs and parts."""
    cuts = _cuts(text)
    pieces = [text[start:stop].strip() for start, stop in zip(cuts, [*cuts[1:], len(text)], strict=True)]
    if any(piece.endswith(",") for piece in pieces):
        return [("", piece) for piece in pieces]
    return [(piece[:2], piece[2:]) if piece[:2] in ("+ ", "- ") else ("  ", piece) for piece in pieces]


def _cuts(text: str) -> list[int]:
    """List where the parts of a text start: after its commas if it has any, else before its signs."""
    depths = [0, *accumulate((letter == "(") - (letter == ")") for letter in text)]
    outside = [place for place in range(len(text)) if not depths[place]]
    commas = [place + 1 for place in outside if text[place : place + 2] == ", "]
    signs = [place for place in outside if text[place : place + 3] in SIGNS]
    return [0, *(commas or signs)]
