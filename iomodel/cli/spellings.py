"""Spellings of a command line that mean the same as its names: synonyms of commands and of options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from iomodel.errors import InputError, shown, synonyms

TILES = re.compile(r"(\d+) ?[x,*] ?(\d+)")
"""Tiles of queries and keys as they are printed, such as 128x64."""
TOGETHER = dict.fromkeys(("tiles", "tile"), ("--block-q", "--block-kv"))
"""Options that one word with several numbers stands for."""
VALUED = dict.fromkeys(("causal", "is_causal"), ("--mask", "causal"))
"""Options with their value that one word stands for."""


def command_meant(word: str, names: Collection[str]) -> str:
    """Return the name of the command that a word means, or the word itself.

    >>> command_meant("solve", ["tiles", "check"]), command_meant("help", ["tiles"]), command_meant("tile", ["tiles"])
    ('tiles', '--help', 'tile')
    """
    if word in names or word.startswith("-"):
        return word
    return synonyms.same(word, [*names, "--help", "--version"], synonyms.COMMANDS) or word


def respelled(words: Sequence[str], parameters: Collection[Any]) -> list[str]:
    """Replace the options that a command lacks by those of its parameters that mean the same."""
    options = {spelling for parameter in parameters for spelling in (*parameter.opts, *parameter.secondary_opts)}
    arguments = {form for name in options if not name.startswith("-") for form in (name, f"{name}s")}
    rest, written = list(reversed(words)), list[str]()
    while rest:
        word = rest.pop()
        if word == "--":
            return [*written, word, *reversed(rest)]
        name, equals, value = word.partition("=")
        key = synonyms.key(name)
        if not name.startswith("--") or name in options:
            written.append(word)
        elif meant := synonyms.same(key, [option[2:].replace("-", "_") for option in options]):
            written.append(f"--{meant.replace('_', '-')}{equals}{value}")
        elif key in TOGETHER and options.issuperset(TOGETHER[key]):
            written += _together(key, value if equals else rest.pop() if rest else "")
        elif key in VALUED and VALUED[key][0] in options:
            written += VALUED[key]
        elif (synonyms.same(key, arguments) or key) in arguments:
            written += [value] * bool(equals)  # an argument, whose value follows without an option
        else:
            written.append(word)
    return written


def _together(key: str, value: str) -> list[str]:
    """Return the options that one word with several numbers stands for.

    >>> _together("tiles", "128x64")
    ['--block-q', '128', '--block-kv', '64']
    """
    numbers = TILES.fullmatch(value)
    if numbers is None:
        options = " and ".join(TOGETHER[key])
        raise InputError(f"{key}: {shown(value)} given; allowed: queries x keys, as 128x64 for {options}")
    return [word for option, number in zip(TOGETHER[key], numbers.groups(), strict=True) for word in (option, number)]


def check_once(order: Iterable[Any]) -> None:
    """Raise InputError for an option that is given twice, of which the parser would keep the last value."""
    for parameter, times in Counter(order).items():
        if times > 1 and getattr(parameter, "multiple", True) is False and not parameter.is_flag:
            several = "; compare, fleet and pareto take several" if parameter.name == "hardware" else ""
            raise InputError(f"{parameter.name}: given {times} times; allowed: once{several}")
