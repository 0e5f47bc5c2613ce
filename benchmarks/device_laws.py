"""Edited devices: one figure of a device at a time is made better or worse, and no better device is slower.

    python -m benchmarks.device_laws [N] [--seed S] [--start I]

Prints the number of edits, and those that break the law by figure, the worst of each with its question.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter

from rich.console import Console
from rich.progress import track

from tests.support.edited_answers import Edit, edits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edits", type=int, nargs="?", default=50_000, help="how many (default 50000)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument("--start", type=int, default=0, help="the first question (default 0)")
    given = parser.parse_args()
    made, binding, number, broken = 0, 0, given.start, []
    kinds: Counter[str] = Counter()
    for _ in track(range(given.edits), "edits", console=Console(stderr=True)):
        if made >= given.edits:
            break
        try:
            found = list(edits(given.seed, number))
        except Exception as error:
            raise RuntimeError(f"question {number} of seed {given.seed}") from error
        made, binding = made + len(found), binding + sum(edit.ratio < 1 for edit in found)
        kinds.update(edit.question[0] for edit in found)
        broken += [(number, edit) for edit in found if not edit.holds]
        number += 1
    console = Console(soft_wrap=True)
    for path, count in Counter(edit.path for _, edit in broken).most_common():
        at, worst = max(((n, edit) for n, edit in broken if edit.path == path), key=lambda one: one[1].ratio)
        console.print(f"{count} {path}: {told(at, worst)}", markup=False, highlight=False)
    asked = ", ".join(f"{name} {count:,}" for name, count in kinds.most_common())
    console.print(f"{made:,} edits ({asked}), {binding:,} of them faster, {len(broken)} slower for better")
    return 1 if broken else 0


def told(number: int, edit: Edit) -> str:
    """Describe an edit in one line."""
    times = f"{edit.ratio:.4f} of {edit.worse:.3e} s"
    return f"question {number}: {edit.device}, times {edit.factor:.4g}: {times}; {json.dumps(edit.question)}"


if __name__ == "__main__":
    raise SystemExit(main())
