"""The documents behind the shipped figures, by the key that a figure's `source` names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from iomodel.frozen import FrozenDict
from iomodel.quantity import Group, Text
from iomodel.specfile import read_shipped


class Source(Group):
    """One document, device readout or benchmark.

    Parameters
    ----------
    kind : how near to the vendor it is. `document` and `file` were read directly; a `transcription` is a
        vendor's document read through a public copy of its figures; `from-memory` was read nowhere;
        `simulated` is made up.
    publisher, title, version, url : the citation.
    note : what was read, and how.
    """

    kind: Literal[
        "document",
        "file",
        "transcription",
        "readout",
        "measurement",
        "paper",
        "secondary",
        "derived",
        "from-memory",
        "simulated",
    ]
    publisher: Text | None = None
    title: Text
    version: Text | None = None
    url: Text | None = None
    note: Text | None = None


@lru_cache(maxsize=1)
def sources() -> Mapping[str, Source]:
    """Every source of the shipped figures.

    >>> sources()["flashattention-4"].version
    'arXiv:2603.05451'
    """
    return FrozenDict({key: Source(**item) for key, item in read_shipped("sources").items()})
