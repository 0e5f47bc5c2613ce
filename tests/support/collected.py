"""The tests of two states of the tree, by file: a file that lost some needs a reason.

    pytest --collect-only -q > before.txt     # in one tree, and after.txt in the other
    python -m tests.support.collected before.txt after.txt reasons.txt

A line of the reasons is a file, a colon and the place where its laws are held now.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path


def counts(collected: str) -> Counter[str]:
    """Count the tests of each file in what pytest has collected."""
    return Counter(line.split("::")[0] for line in collected.splitlines() if "::" in line)


def changes(before: Counter[str], after: Counter[str], reasons: dict[str, str]) -> tuple[list[str], list[str]]:
    """List the files whose tests are more or fewer, and those of them that lost tests without a reason."""
    changed = sorted(file for file in before | after if before[file] != after[file])
    lines = [f"{before[file]:6,} {after[file]:6,}  {file}  {reasons.get(file, '')}".rstrip() for file in changed]
    return lines, [file for file in changed if after[file] < before[file] and file not in reasons]


def main(earlier: str, later: str, why: str | None = None) -> int:
    before, after = (counts(Path(name).read_text(encoding="utf-8")) for name in (earlier, later))
    told = Path(why).read_text(encoding="utf-8").splitlines() if why else []
    reasons = {file.strip(): reason.strip() for file, _, reason in (line.partition(":") for line in told)}
    lines, lost = changes(before, after, reasons)
    faults = [f"{file}: fewer tests, and no reason" for file in lost]
    sys.stdout.write("\n".join([f"{before.total():6,} {after.total():6,}  all", *lines, *faults, ""]))
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
