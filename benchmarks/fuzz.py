"""Random files and command lines: each is answered or refused in one line, within its time.

    python -m benchmarks.fuzz [N] [--seed S] [--only I]

Input I of seed S is always the same; --only runs that one again, and shows where it broke.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import resource
import sys
import tempfile
import traceback
import warnings

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from tests.fuzz.campaign import SURFACES, Found, campaign, case
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
    given = parser.parse_args()
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
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
