"""Edited devices: one figure of a device at a time is made better or worse, and no better device is slower.

    python -m benchmarks.device_laws [N] [--seed S] [--start I]

Prints each edit that breaks the law with its question, the counts every so often, and those by figure at the end.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter

from tests.support.edited_answers import Edit, edits

EVERY = 1000
"""Edits between two counts."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edits", type=int, nargs="?", default=50_000, help="how many (default 50000)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument("--start", type=int, default=0, help="the first question (default 0)")
    given = parser.parse_args()
    made, binding, number, broken = 0, 0, given.start, Counter[str]()
    kinds: Counter[str] = Counter()
    while made < given.edits:
        try:
            found = list(edits(given.seed, number))
        except Exception as error:
            raise RuntimeError(f"question {number} of seed {given.seed}") from error
        for edit in found:
            if not edit.holds:
                broken[edit.path] += 1
                print(told(number, edit), flush=True)
        if (made + len(found)) // EVERY > made // EVERY:
            print(f"{made + len(found):,} edits to question {number}, {broken.total()} slower for better", flush=True)
        made, binding = made + len(found), binding + sum(edit.ratio < 1 for edit in found)
        kinds.update(edit.question[0] for edit in found)
        number += 1
    asked = ", ".join(f"{name} {count:,}" for name, count in kinds.most_common())
    print(f"{made:,} edits ({asked}), {binding:,} of them faster, {broken.total()} slower for better: {dict(broken)}")
    return 1 if broken else 0


def told(number: int, edit: Edit) -> str:
    """Describe an edit in one line."""
    times = f"{edit.ratio:.4f} of {edit.worse:.3e} s"
    what = f"{edit.path} of {edit.device}, times {edit.factor:.4g}"
    return f"question {number}: {what}: {times}; {json.dumps(edit.question)}"


if __name__ == "__main__":
    raise SystemExit(main())
