"""Letters that a declaration outside the package adds to the alphabet."""

from __future__ import annotations

from collections.abc import Container, Iterable

from iomodel.errors import InputError, shown
from iomodel.nests.alphabet import ALPHABET, FOLLOWS, SHIPPED, Entry, numbers, tiles
from iomodel.nests.symbols import BY_NAME, NAME_OF, TILE_ORDER

RESERVED = frozenset(
    {"packed", "causal", "mask", "direction", "dtype", "hardware", "algorithm", "tiles", "implementation"}
)
"""Names of arguments, which no letter may have."""


def symbol(name: str, letter: str, meaning: str, unit: str = "rows", follows: str | None = None) -> Entry:
    """Make a letter for a tile or an option of an algorithm, to be declared in its `symbols`.

    Parameters
    ----------
    name : str
        The name in Python, as ``"block_v"``.
    letter : str
        The symbol in formulas, as ``"B_v"``: a positive integer.
    meaning, unit : str
        The description in tables.
    follows : str, optional
        The tile whose size this one has where it is not given.

    Examples
    --------
    >>> B_v = symbol("block_v", "B_v", "columns of a tile of the state", "elements").symbol
    >>> B_v.is_positive
    True
    """
    for field, value in {"name": name, "letter": letter, "meaning": meaning, "unit": unit}.items():
        if not isinstance(value, str) or not value:
            raise InputError(f"{field}: {shown(value)} given; allowed: a text")
    return Entry(name, letter, meaning, unit, follows)


def adopt(entries: Iterable[Entry], options: Container[str]) -> None:
    """Add letters of a declaration to the alphabet: those that `options` names are numbers, the others are tiles.

    Raises
    ------
    InputError
        A name or a letter that stands for something else.
    """
    for entry in entries:
        if not isinstance(entry, Entry):
            raise InputError(f"symbols: {shown(entry)} given; allowed: what iomodel.nests.symbol returns")
        number = entry.name in options
        kind, other = (numbers, tiles) if number else (tiles, numbers)
        _check(entry, other)
        if entry.name not in kind:
            ALPHABET.append(entry)
            BY_NAME[entry.name], NAME_OF[entry.symbol] = entry.symbol, entry.name
            if not number:
                TILE_ORDER.append(entry.symbol)
            kind[entry.name] = entry
        if entry.follows:
            FOLLOWS[entry.name] = entry.follows


def _check(entry: Entry, other: Container[str]) -> None:
    """Raise InputError where a name or a letter stands for something else."""
    if not entry.name.isidentifier() or entry.name in RESERVED:
        raise InputError(f"symbols: {shown(entry.name)} given; allowed: a name in Python that is free, as 'block_v'")
    for known in ALPHABET:
        same = (known.name, known.letter) == (entry.name, entry.letter)
        if same and (known == entry or known not in SHIPPED) and entry.name not in other:
            continue
        if known.name == entry.name or known.letter == entry.letter:
            raise InputError(
                f"symbols: {entry.name} ({entry.letter}) given; allowed: a name and a letter that are free; "
                f"{known.name} ({known.letter}) is: {known.meaning}"
            )
