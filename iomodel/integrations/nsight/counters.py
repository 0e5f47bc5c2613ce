"""Counters of one kernel launch that Nsight Compute reports, by their names and in base units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from iomodel.common.counter_names import (
    BYTES,
    COMMA,
    DURATION,
    L2,
    LABELS,
    LARGEST,
    LOCAL,
    PREFIXES,
    RATE,
    SCALES,
    SECTOR,
    WHOLE,
)
from iomodel.common.frozen_dict import FrozenDict

SPACES = re.compile(r"\s")


@dataclass(frozen=True)
class KernelCounters:
    """Counters of one launch.

    Attributes
    ----------
    kernel, launch : str
        Name of the kernel; identifier of the launch in the report.
    values : mapping of str to float
        Values by the names of the counters: bytes [B], times [s], anything else in the unit of the report.
    """

    kernel: str
    launch: str
    values: Mapping[str, float]

    def count(self, *names: str) -> int | None:
        """Return the sum of the named counters that are reported; None if none of them is."""
        known = [self.values[name] for name in names if name in self.values]
        return round(sum(known)) if known else None

    @property
    def dram_read(self) -> int | None:
        """Bytes read from DRAM [B]."""
        return self._bytes(*BYTES["dram_read"])

    @property
    def dram_written(self) -> int | None:
        """Bytes written to DRAM [B]."""
        return self._bytes(*BYTES["dram_written"])

    @property
    def dram_bytes(self) -> int | None:
        """Bytes read from DRAM and written to it [B]: the sum of both, or the total where only this is reported."""
        reads, writes = self.dram_read, self.dram_written
        return self._bytes(*BYTES["dram"]) if reads is None or writes is None else reads + writes

    @property
    def l2_bytes(self) -> int | None:
        """Bytes of the sectors that the SMs read and write in the L2 cache [B].

        Where the requests of the SMs are not reported, those of all units stand for them; None without either.
        """
        if not {*L2[:2]} <= self.values.keys():
            return self._bytes(*BYTES["l2"])
        sectors = self.count(*L2)
        return None if sectors is None else SECTOR * sectors

    @property
    def local_bytes(self) -> int | None:
        """Bytes of local memory, where spilled registers are [B]."""
        moved = self.count(*(name.format("bytes") for name in LOCAL))
        sectors = self.count(*(name.format("sectors") for name in LOCAL))
        return moved if moved is not None or sectors is None else SECTOR * sectors

    @property
    def bytes_per_sector(self) -> float | None:
        """Bytes used of each sector that global loads fetch, 32 where they are coalesced [B]."""
        name = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld"
        if f"{name}.ratio" in self.values:
            return self.values[f"{name}.ratio"]
        share = self.values.get(f"{name}.pct")
        return None if share is None else SECTOR * share / 100

    @property
    def seconds(self) -> float | None:
        """Duration of the kernel [s]."""
        return next((self.values[name] for name in DURATION if name in self.values), None)

    def _bytes(self, name: str, sectors: str) -> int | None:
        if name in self.values:
            return round(self.values[name])
        number = self.count(sectors)
        return None if number is None else SECTOR * number


def counter_of(metric: str, unit: str) -> str:
    """Return the counter behind a label of the details page; any other name is that of a counter.

    >>> counter_of("Memory Throughput", "Gbyte/s"), counter_of("Memory Throughput", "%")
    ('dram__bytes.sum.per_second', 'Memory Throughput')
    """
    counter, units = LABELS.get(metric, (metric, {}))
    return counter if unit.strip() in units else metric


def with_bytes(values: Mapping[str, float]) -> FrozenDict[str, float]:
    """Add the bytes of DRAM that a rate and a time state, where the bytes themselves are not reported."""
    seconds = next((values[name] for name in DURATION if name in values), None)
    if seconds is None or RATE not in values or BYTES["dram"][0] in values:
        return FrozenDict(values)
    return FrozenDict({**values, BYTES["dram"][0]: values[RATE] * seconds})


def together(launches: list[KernelCounters]) -> KernelCounters:
    """Add up the launches of one call; the use of sectors is that of the launch with the longest duration."""
    if len(launches) == 1:
        return launches[0]
    longest = max(launches, key=lambda each: each.seconds or 0.0)
    names = [name for name in launches[0].values if all(name in each.values for each in launches)]
    sums = {
        name: sum(each.values[name] for each in launches) if name.endswith(".sum") else longest.values[name]
        for name in names
    }
    return KernelCounters(longest.kernel, ", ".join(each.launch for each in launches), FrozenDict(sums))


def has_decimal_commas(values: Iterable[str]) -> bool:
    """Check for numbers whose decimals follow a comma, as with the settings of French or German.

    >>> has_decimal_commas(["1,048,576", "2.5"]), has_decimal_commas(["1\u202f048\u202f576", "2,5"])
    (False, True)
    """
    texts = [value.strip() for value in values]
    if any(WHOLE.fullmatch(text) and "." in text and "," in text for text in texts):
        return False
    return any(COMMA.fullmatch(text) and not WHOLE.fullmatch(text) for text in texts)


def in_base_units(value: str, unit: str, commas: bool = False) -> float | None:
    """Read a number with its unit: bytes in B, times in s, rates in B/s; None for a text that is no number.

    With `commas`, decimals follow a comma, and points or spaces divide thousands.

    >>> in_base_units("1,048,576", "byte"), in_base_units("2.5", "Mbyte"), in_base_units("41.28", "us")
    (1048576.0, 2500000.0, 4.128e-05)
    >>> in_base_units("2,5", "Mbyte", commas=True)
    2500000.0
    """
    text = value.strip()
    if commas and COMMA.fullmatch(text):
        text = SPACES.sub("", text).replace(".", "").replace(",", ".")
    if not WHOLE.fullmatch(text):
        return None
    number = float(text.replace(",", ""))
    if abs(number) > LARGEST:
        return None
    stem = unit.strip()
    if stem in SCALES:
        return number * SCALES[stem]
    if stem.endswith("byte") and stem[:-4] in PREFIXES:
        return number * PREFIXES[stem[:-4]]
    if stem.endswith("sector") and stem[:-6] in PREFIXES:
        return number * PREFIXES[stem[:-6]]
    return number
