"""Planted faults: a list of likely mistakes, each made in a copy of the tree, and the tests that notice it.

    python -m benchmarks.planted_faults [AREA ...] [--work FOLDER] [--show]

The list is `planted_faults.yaml` beside this file: for each area the test files that cover it, and faults, each an
exact text of a file with the text that replaces it. The tests run until one fails; a test that fails without the fault
too does not count. A fault that changes no answer is listed with the reason. Results are kept in FOLDER, so that a run
that was stopped goes on; a fault whose entry has changed is judged again.

The exit code is 1 if fewer than 95 % of the faults of an area are noticed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import gettempdir

import yaml
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.mutation import ROOT, SHARED, copy_tree, outcome

LIST = Path(__file__).with_suffix(".yaml")
LIMIT = 180.0
"""The longest that the tests of one fault may take; a fault that makes them hang is noticed so [s]."""
PROFILE = "ci"
"""Hypothesis profile of the tests: the same examples each time."""
LEAST = 0.95
"""Least share of noticed faults of an area [-]."""


@dataclass(frozen=True)
class Fault:
    """One planted fault: `new` replaces `old`, which the file has once; `equivalent` argues that nobody can notice."""

    area: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def key(self) -> str:
        """Everything that a judgement depends on."""
        return json.dumps([self.file, self.old, self.new, self.tests])

    def planted(self, source: str) -> str:
        """Plant the fault in the text of its file."""
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.file}: {source.count(self.old)} occurrences of {self.old!r}; exactly one is needed"
            )
        return source.replace(self.old, self.new)


def faults() -> Iterator[Fault]:
    """Read the list."""
    for area, entry in yaml.safe_load(LIST.read_text(encoding="utf-8")).items():
        for fault in entry["faults"]:
            yield Fault(**{"area": area, **fault, "tests": tuple(fault.get("tests") or entry["tests"])})


def noticed_by(fault: Fault, copy: Path, limit: float, sound: set[str]) -> str:
    """Return the test that notices a fault, "time" if the tests hang, or "" if none does.

    Tests that are known to pass without a fault are in `sound`, which grows.
    """
    path = copy / "iomodel" / fault.file
    source, tests = path.read_text(encoding="utf-8"), list(fault.tests)
    while tests:
        path.write_text(fault.planted(source), encoding="utf-8")
        try:
            found = outcome(copy, tests, limit, PROFILE)
        finally:
            path.write_text(source, encoding="utf-8")
        if found == "survived":
            return ""
        if found == "time":
            return found
        output = (copy / "output.txt").read_text(encoding="utf-8", errors="replace")
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)[:1] or tests[:1]
        if failed[0] in sound or outcome(copy, failed, limit, PROFILE) == "survived":
            sound.update(failed)
            return failed[0]
        tests = [test for test in tests if not failed[0].startswith(test)]  # no news
        if failed[0].split("::")[0] not in fault.tests:
            raise RuntimeError(f"tests fail without a fault: {output[-500:]}")
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", help="areas of the list; by default all")
    parser.add_argument(
        "--work", default=str(Path(gettempdir()) / "iomodel-planted"), help="folder of copy and results"
    )
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"time for one fault [s] (default {LIMIT:g})")
    parser.add_argument("--show", action="store_true", help="show the test that noticed each fault")
    given = parser.parse_args()
    listed = list(faults())
    areas = given.areas or list(dict.fromkeys(fault.area for fault in listed))
    chosen = [fault for area in areas for fault in listed if fault.area == area]
    work = Path(given.work).absolute()
    copy, log = work / "tree", work / "results.jsonl"
    copy_tree(ROOT, copy)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what is changed is put back
    judged = dict(json.loads(line) for line in log.read_text().splitlines()) if log.exists() else {}
    sound: set[str] = set()
    for library in SHARED:
        importlib.import_module(library)
    for fault in track([fault for fault in chosen if fault.key not in judged], "faults"):
        judged[fault.key] = noticed_by(fault, copy, given.limit, sound)
        with log.open("a") as file:
            file.write(json.dumps([fault.key, judged[fault.key]]) + "\n")
    return report(Console(), [(fault, judged[fault.key]) for fault in chosen], given.show)


def report(console: Console, results: list[tuple[Fault, str]], show: bool) -> int:
    """Print what was missed, and the counts by area."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for fault, test in results:
        kind = "noticed" if test else "equivalent" if fault.equivalent else "missed"
        counts[fault.area][kind] += 1
        counts["all"][kind] += 1
        if kind == "missed" or show:
            parts = {name: value for name, value in asdict(fault).items() if name in ("area", "file", "breaks")}
            console.print(f"{kind}: {', '.join(parts.values())}: {test}", markup=False, highlight=False, soft_wrap=True)
    table = Table()
    for column in ("area", "planted", "noticed", "equivalent", "missed", "share"):
        table.add_column(column, justify="left" if column == "area" else "right")
    low = 1.0
    for area in [*dict.fromkeys(fault.area for fault, _ in results), "all"]:
        at = counts[area]
        share = at["noticed"] / max(1, at["noticed"] + at["missed"])
        low = min(low, share)
        numbers = (at.total(), at["noticed"], at["equivalent"], at["missed"])
        table.add_row(area, *map(str, numbers), f"{share:.0%}")
    console.print(table)
    return int(low < LEAST)


if __name__ == "__main__":
    sys.exit(main())
