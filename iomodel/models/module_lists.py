"""Lists of modules as quantisation tools write them: parts of names, shell patterns, regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from iomodel.errors import InputError, shown

NESTED_QUANTIFIER = re.compile(r"\((?:[^()\\]|\\.)*[*+}](?:[^()\\]|\\.)*\)\s*[*+{]")
"""Regular expressions that may take exponential time."""
SHELL = re.compile(r"[*?\[]")
LONGEST = 500
"""Longest pattern of a list of modules [characters]."""


def segments(entries: Iterable[Any] | None) -> ModuleList | None:
    """Build the list of modules given as parts of dotted names, possibly with stars."""
    return _listed(entries, anywhere=True)


def globs(entries: Iterable[Any] | None) -> ModuleList | None:
    """Build the list of modules given as shell patterns for whole names."""
    return _listed(entries, anywhere=False)


def expressions(entries: Iterable[Any] | None) -> ModuleList | None:
    """Build the list of modules given as names, and as regular expressions after "re:"."""
    texts = _texts(entries)
    patterns = [text.removeprefix("re:") for text in texts if text.startswith("re:")]
    for pattern in patterns:
        if NESTED_QUANTIFIER.search(pattern):
            raise InputError(
                f"ignore: {shown(pattern)} given; allowed: regular expressions without a repeated group that repeats"
            )
    names = frozenset(text for text in texts if not text.startswith("re:"))
    joined = _compiled("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
    return ModuleList(names, frozenset(), joined) if texts else None


def _listed(entries: Iterable[Any] | None, anywhere: bool) -> ModuleList | None:
    texts = _texts(entries)
    names = {text for text in texts if not SHELL.search(text)}
    starts = set() if anywhere else {text[:-1] for text in texts if text.endswith("*") and not SHELL.search(text[:-1])}
    rest = [text for text in texts if text not in names and text[:-1] not in starts]
    before = r"(?:.*\.)?" if anywhere else ""
    parts = "|".join(_shell(text) for text in rest)
    pattern = _compiled(rf"{before}(?:{parts})(?:\..*)?$") if rest else None
    return ModuleList(frozenset(names), frozenset(starts), pattern, anywhere) if texts else None


def _shell(text: str) -> str:
    """Translate a shell pattern to a regular expression."""
    return re.sub(r"\\[Zz]$", "", translate(text))


@dataclass(frozen=True)
class ModuleList:
    """A list of modules, each of which includes its submodules.

    Attributes
    ----------
    names, starts : names of modules; beginnings of names.
    pattern : a regular expression for further names.
    anywhere : a name may be any part of a dotted name.
    """

    names: frozenset[str]
    starts: frozenset[str]
    pattern: re.Pattern[str] | None
    anywhere: bool = False

    def match(self, name: str) -> bool:
        """Check whether a module is in the list.

        >>> ModuleList(frozenset({"attn"}), frozenset(), None, anywhere=True).match("layers.0.attn.q_proj")
        True
        """
        parts = name.split(".")
        firsts = range(len(parts)) if self.anywhere else (0,)
        ends = range(1, len(parts) + 1)
        if self.names and any(".".join(parts[i:j]) in self.names for i in firsts for j in ends if i < j):
            return True
        if self.starts and any(name[:size] in self.starts for size in range(len(name) + 1)):
            return True
        return self.pattern is not None and self.pattern.match(name) is not None


def _texts(entries: Iterable[Any] | None) -> list[str]:
    texts = [entry for entry in entries or () if entry != "Linear"]
    for text in texts:
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
            raise InputError(f"quantization_config: {shown(text)} given in a list of modules; allowed: names")
    return texts


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"quantization_config: a pattern of modules is invalid ({error}); allowed: patterns") from None
