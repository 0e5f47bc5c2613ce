"""Sources of the shipped figures, keyed by the names used in a figure's `source`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.yaml_files import read_shipped
from iomodel.devices.quantity import Group, Text


class Source(Group):
    """One document, device readout or benchmark.

    Parameters
    ----------
    kind : distance from the vendor. `document` and `file` were read directly; a `transcription` is a
        vendor's document read through a public copy of its figures; `from-memory` has no source;
        `simulated` is invented.
    publisher, title, version, url : the citation.
    note : part that was read, and method.
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
    """Load every source of the shipped figures.

    >>> sources()["flashattention-4"].version
    'arXiv:2603.05451'
    """
    return FrozenDict({key: Source(**item) for key, item in read_shipped("sources").items()})
