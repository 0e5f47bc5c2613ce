"""Spellings of a command line that mean the same as its names: synonyms of commands and of options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from iomodel.errors import InputError, shown, synonyms

TILES = re.compile(r"(\d+) ?[x,*] ?(\d+)(?: ?[x,*] ?(\d+))?")
"""Tiles as they are printed, such as 128x64 of queries and keys, and 128x256x64 of a product."""
WORD_OF_LETTERS = re.compile(r"-[A-Za-z]{2}")
"""The beginning of an option of several letters behind one hyphen, as -tp of vLLM."""
TOGETHER = ("tiles", "tile")
"""Options that stand for several, each with one number."""
OF_CALLS, OF_PRODUCTS = ("--block-q", "--block-kv"), ("--block-m", "--block-n", "--block-k")
"""The options that these stand for."""
LISTED = ("cu_seqlens", "cu_seqlens_q", "cu_seq_lens")
"""Options with the offsets of documents, in place of their lengths."""
OFFSETS = {"cu_seqlens_q": "--q-lens", "cu_seqlens_k": "--kv-lens", "cu_seqlens_kv": "--kv-lens"}
"""Options with the offsets of sequences of queries and of keys, where both are given, in place of their lengths."""
SLIDING = ("sliding_window", "swa", "window", "window_size")
"""Options with the number of keys that a query sees, itself the last, as `sliding_window` of a config.json."""
NUMBERED = dict.fromkeys(("gpu", "gpus", "device", "devices"), "--count")
"""Options that mean another one where their value is a small number, and the name of a device elsewhere."""
MOST_COUNTED = 999
"""Largest of these numbers; longer ones, such as 4090, are parts of names."""
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


def forms(parameters: Iterable[Any]) -> list[str]:
    """List the spellings of the parameters of a command."""
    return [form for parameter in parameters for form in (*parameter.opts, *parameter.secondary_opts)]


def respelled(words: Sequence[str], parameters: Collection[Any]) -> list[str]:
    """Replace the options that a command lacks by those of its parameters that mean the same."""
    options = {*forms(parameters)}
    arguments = {form for name in options if not name.startswith("-") for form in (name, f"{name}s")}
    rest, written = list(reversed(words)), list[str]()
    while rest:
        word = rest.pop()
        if word == "--":
            return [*written, word, *reversed(rest)]
        word = f"-{word}" if WORD_OF_LETTERS.match(word) and word not in options else word
        name, equals, value = word.partition("=")
        key = synonyms.key(name)
        if not name.startswith("--") or name in options:
            written.append(word)
        elif NUMBERED.get(key) in options and _counts(value or (rest[-1] if rest else "")):
            written.append(f"{NUMBERED[key]}{equals}{value}")
        elif meant := synonyms.same(key, [option[2:].replace("-", "_") for option in options]):
            written.append(f"--{meant.replace('_', '-')}{equals}{value}")
        elif key in TOGETHER and options.issuperset(OF_CALLS):
            places = OF_PRODUCTS if _of_products(words) and options.issuperset(OF_PRODUCTS) else OF_CALLS
            written += _together(key, value if equals else rest.pop() if rest else "", places)
        elif key in OFFSETS and OFFSETS[key] in options and (key not in LISTED or _with_keys(words)):
            written += [OFFSETS[key], _lengths(key, value if equals else rest.pop() if rest else "")]
        elif key in LISTED and "--document-lengths" in options:
            written += ["--document-lengths", _lengths(key, value if equals else rest.pop() if rest else "", True)]
        elif key in SLIDING and "--window-left" in options:
            written += _window(key, value if equals else rest.pop() if rest else "")
        elif key in VALUED and VALUED[key][0] in options:
            written += VALUED[key]
        elif (synonyms.same(key, arguments) or key) in arguments:
            written += [value] * bool(equals)  # an argument, whose value follows without an option
        else:
            written.append(word)
    return written


def _counts(value: str) -> bool:
    return value.isdecimal() and int(value) <= MOST_COUNTED


def _with_keys(words: Iterable[str]) -> bool:
    """Check for offsets of keys beside those of queries, which then belong to sequences, not to documents."""
    given = {synonyms.key(word.partition("=")[0]) for word in words if word.startswith("--")}
    return any(name in given for name in OFFSETS if name not in LISTED)


def _of_products(words: Iterable[str]) -> bool:
    """Check for the name of an algorithm of products of matrices, whose tiles are not queries and keys."""
    from iomodel.algorithms import discovered

    shipped = discovered()
    return any(shipped[word].answers in ("linear", "mlp", "cross_entropy") for word in words if word in shipped)


def _together(key: str, value: str, places: Sequence[str]) -> list[str]:
    """Return the options that one word with several numbers stands for.

    >>> _together("tiles", "128x64", OF_CALLS)
    ['--block-q', '128', '--block-kv', '64']
    """
    numbers = TILES.fullmatch(value)
    sizes = [] if numbers is None else [number for number in numbers.groups() if number is not None]
    if not sizes or len(sizes) > len(places):
        said = "queries x keys, as 128x64" if places is OF_CALLS else "rows, columns and depth, as 128x256x64"
        raise InputError(f"{key}: {shown(value)} given; allowed: {said} for {' and '.join(places)}")
    return [word for pair in zip(places, sizes, strict=False) for word in pair]


def _lengths(key: str, value: str, alone: bool = False) -> str:
    """Return the lengths between offsets; those of empty documents are left out where no other list goes with them.

    >>> _lengths("cu_seqlens", "0,512,1536")
    '512,1024'
    """
    from iomodel.workloads.masks.documents import lengths_of  # the workloads, which most commands do without here

    offsets = re.split(r"[,\s]+", value.strip("[] "))
    if not all(map(str.isdecimal, offsets)):
        raise InputError(f"{key}: {shown(value)} given; allowed: offsets from 0, such as 0,512,1536")
    lengths = lengths_of(key, list(map(int, offsets)))
    return ",".join(map(str, filter(None, lengths) if alone else lengths))


def _window(key: str, value: str) -> list[str]:
    """Return the options of a window of some keys, the query's own the last.

    >>> _window("sliding_window", "4096")
    ['--window-left', '4095', '--window-right', '0']
    """
    if not value.isdecimal() or value == "0":
        raise InputError(
            f"{key}: {shown(value)} given; allowed: the keys that a query sees, itself the last, such as 4096; or "
            "--window-left and --window-right"
        )
    return ["--window-left", str(int(value) - 1), "--window-right", "0"]


def check_once(order: Iterable[Any]) -> None:
    """Raise InputError for an option that is given twice, of which the parser would keep the last value."""
    for parameter, times in Counter(order).items():
        if times > 1 and getattr(parameter, "multiple", True) is False and not parameter.is_flag:
            several = (
                "; tiles, check, estimate, compare, fleet and pareto take several"
                if parameter.name == "hardware"
                else ""
            )
            raise InputError(f"{parameter.name}: given {times} times; allowed: once{several}")
