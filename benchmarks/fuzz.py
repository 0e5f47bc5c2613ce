"""Random files and command lines: each is answered or refused in one line, within its time.

    python -m benchmarks.fuzz [N] [--seed S] [--only I]
    python -m benchmarks.fuzz N --damaged [--name FILE] [--only I]

Input I of seed S is always the same; --only runs that one again, and shows where it broke. With --damaged the inputs
are N damaged variants of each public file under tests, read in this process.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import mmap
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from tests.fuzz.campaign import SURFACES, Found, campaign, case
from tests.fuzz.damaged import excerpts, outcome, variant
from tests.fuzz.law import LIMIT, Case, held

MEMORY = 8 * 2**30
"""What the process may map; an input that wants more breaks [B]."""
STUCK = 60
"""An input that does not even heed its alarm ends the campaign after this [s]."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", type=int, nargs="?", default=100_000, help="how many (default 100000)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument("--only", type=int, help="run this input alone, and show where it broke")
    parser.add_argument("--start", type=int, default=0, help="the first one (default 0)")
    parser.add_argument("--show", type=int, default=20, help="how many faults are listed (default 20)")
    parser.add_argument("--damaged", action="store_true", help="damaged variants of the public files under tests")
    parser.add_argument("--name", default="", help="only files whose name contains this")
    given = parser.parse_args()
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if given.damaged:
            return damaged(given, Path(folder))
        return again(given.seed, given.only) if given.only is not None else watched(given)


def watched(given: argparse.Namespace) -> int:
    """Run the campaign in a process of its own, for an input may end that: memory that a library cannot have."""
    place = mmap.mmap(-1, 8)
    child = os.fork()
    if not child:
        os._exit(whole(given, place))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, 1):
        number = int.from_bytes(place[:], "little")
        print(f"--seed {given.seed} --only {number} ended the process ({code}); --start {number + 1} goes on after it")
    return code


def damaged(given: argparse.Namespace, folder: Path) -> int:
    """Read damaged variants of each public file, and print their outcomes, the slowest, and the growth of memory."""
    table, broken, total, begun = Table(), 0, 0, time.process_time()
    for column in ("file", "variants", "read", "refused", "broken", "slowest [ms]", "memory grown [MiB]"):
        table.add_column(column, justify="left" if column == "file" else "right")
    for excerpt in filter(lambda each: given.name in each.name, excerpts()):
        numbers = [given.only] if given.only is not None else range(given.start, given.start + given.inputs)
        counts, slowest, before = Counter[str](), 0.0, 0
        for place, number in enumerate(numbers):
            content = variant(excerpt, given.seed, number)
            drawn = Case(excerpt.name, "", partial(outcome, excerpt, content, folder))
            started = time.process_time()
            found, error = held(drawn)
            slowest = max(slowest, time.process_time() - started)
            counts[found] += 1
            if error is not None and (counts["broken"] <= given.show or given.only is not None):
                traceback.print_exception(error, limit=-4 if given.only is None else None)
                print(f"--seed {given.seed} --damaged --name {excerpt.name} --only {number}: {content[:300]!r}")
            if place == len(numbers) // 4:
                before = _resident()
        grown = (_resident() - before) / 2**20
        broken, total = broken + counts["broken"], total + len(numbers)
        cells = (len(numbers), counts["answered"], counts["refused"], counts["broken"])
        row = (excerpt.name, *(f"{cell:,}" for cell in cells), f"{1e3 * slowest:.1f}", f"{grown:.1f}")
        table.add_row(*row)
        print(*row, sep="\t", file=sys.stderr, flush=True)  # A run that is stopped leaves the rows of what it read.
    Console(width=120).print(table)
    print(f"{total:,} variants, {broken:,} broken, {time.process_time() - begun:.0f} CPU s")
    return int(bool(broken))


def _resident() -> int:
    """Return the memory of this process [B], after a collection."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def again(seed: int, number: int) -> int:
    drawn = case(seed, number)
    print(drawn.surface, drawn.told, sep="\n")
    outcome, error = held(drawn)
    print(outcome)
    if error is not None:
        traceback.print_exception(error)
    return int(error is not None)


def whole(given: argparse.Namespace, place: mmap.mmap) -> int:
    console, found = Console(), Found()
    numbers = range(given.start, given.start + given.inputs)
    with Progress(
        *Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn(), console=console
    ) as bar:
        task = bar.add_task("inputs", total=len(numbers))
        told = 0
        for number in campaign(
            given.seed, numbers, found, begin=lambda number: place.__setitem__(slice(8), number.to_bytes(8, "little"))
        ):
            faulthandler.dump_traceback_later(STUCK, exit=True)
            bar.update(task, completed=number + 1 - given.start, description=f"inputs, {len(found.broken)} broken")
            for fault in found.broken[told : given.show]:
                console.print(shown(given.seed, *fault), markup=False, highlight=False, soft_wrap=True)
            told = len(found.broken)
    faulthandler.cancel_dump_traceback_later()
    outcomes = sorted({outcome for _, outcome in found.outcomes})
    table = Table(
        title=f"{given.inputs:,} inputs of seed {given.seed}, {LIMIT:g} s each at the most", title_justify="left"
    )
    for column in ("surface", "inputs", *outcomes):
        table.add_column(column, justify="left" if column == "surface" else "right")
    for surface in SURFACES:
        counts = [found.outcomes[surface, outcome] for outcome in outcomes]
        table.add_row(surface, f"{sum(counts):,}", *(f"{count:,}" if count else "" for count in counts))
    console.print(table)
    console.print(f"{len(found.broken):,} broken")
    sys.stdout.flush()
    return int(bool(found.broken))


def shown(seed: int, number: int, drawn: Case, error: BaseException) -> str:
    """How a fault is told: with what runs it again."""
    return f"--seed {seed} --only {number}: {type(error).__name__}: {str(error)[:300]!a}\n  {ascii(drawn.told)[:400]}"


if __name__ == "__main__":
    sys.exit(main())
