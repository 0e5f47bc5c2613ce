"""Records of measured GPUs, and the rule that says which of them judge."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import iomodel

FOLDER = Path(__file__).resolve().parents[1] / "measured" / "gpu"
NAMED_BY = (
    *("backend", "kernel", "direction", "head_dim", "causal", "dtype", "deterministic", "packed_group", "what", "mask"),
    "kind",
)
"""Parameters that name a curve after its section; tests/measured/gpu/README.md has the rule."""
ALSO_NAMED_BY = "axes", "channels_last", "tf32", "experts", "weights", "model"
"""Those that follow in the sections of the H100 that the H200 lacks."""
SHARED = "attention", "short", "deterministic", "linear", "tiles", "compile", "traffic"
"""Sections of both devices that judge as a whole on the H100."""
DEVICES = "h200-sxm", "h100-sxm5"


class Record(NamedTuple):
    """One record of one GPU; `values` is empty where the call failed."""

    section: str
    case: Mapping[str, Any]
    values: Mapping[str, Any]
    error: str
    device: str = DEVICES[0]

    @property
    def curve(self) -> str:
        """Name of the curve."""
        new = self.device != DEVICES[0] and self.section not in (*SHARED, "rates", "versions", "info")
        parts = (self.case.get(name, "") for name in (*NAMED_BY, *(ALSO_NAMED_BY if new else ())))
        return "/".join([self.section, *(str(part).lower() if isinstance(part, bool) else str(part) for part in parts)])

    @property
    def judges(self) -> bool:
        """True if the record may choose no constant."""
        if self.device != DEVICES[0] and self.section in SHARED:
            return True
        return int(sha256(self.curve.encode()).hexdigest()[0], 16) < 8

    @property
    def seconds(self) -> float:
        """Median time, with what the calls before left in the L2, or the time of a decoded token [s]."""
        return float(self.values.get("median_us", self.values.get("step_us"))) * 1e-6

    def __str__(self) -> str:
        """Name the record by its parameters."""
        return " ".join([self.section, *(f"{name}={value}" for name, value in self.case.items())])


@cache
def records(device: str = DEVICES[0]) -> tuple[Record, ...]:
    """Read the records of a device."""
    with gzip.open(FOLDER / f"{device}.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return tuple(
        Record(row["section"], row["case"], row.get("values", {}), row.get("error", ""), device) for row in rows
    )


def timed(judging: bool, *sections: str, device: str = DEVICES[0]) -> Iterator[Record]:
    """Yield the records of sections that have a time: those that judge, or the others."""
    for record in records(device):
        if record.section in sections and record.judges is judging and record.values.keys() & {"median_us", "step_us"}:
            yield record


def attention(case: Mapping[str, Any]) -> iomodel.Attention:
    """Return the call of a record of attention."""
    names = ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "dtype")
    sizes = {name: case[name] for name in names}
    direction = case.get("direction", "forward")
    return iomodel.Attention(**sizes, mask="causal" if case["causal"] else "full", direction=direction)
