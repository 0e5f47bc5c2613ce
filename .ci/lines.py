"""Gate on the lines of the package: those of a room only fall, unless the commit raises them with a reason.

    python .ci/lines.py            compare with the table, and fail where a room has more lines
    python .ci/lines.py --write    write the lines of today into the table; the reasons stay

Python counts whole, with docstrings and blank lines; nothing of it is generated. Files of more than 100 lines in other
languages, and data, count apart, as `assets` and `specs`.
"""

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("lines.tsv")
LONG = 100
ASSETS = {".js", ".css", ".html"}


def counted() -> Counter[str]:
    """Count the lines by room."""
    lines: Counter[str] = Counter()
    for path in sorted((ROOT / "iomodel").rglob("*")):
        room = path.relative_to(ROOT / "iomodel").parts[0] if path.parent != ROOT / "iomodel" else "root"
        if path.suffix in (".py", ".pyi"):
            lines[room] += length(path)
        elif path.suffix in ASSETS and length(path) > LONG:
            lines["assets"] += length(path)
    lines["specs"] = sum(
        size for path in (ROOT / "specs").rglob("*") if path.is_file() and (size := length(path)) > LONG
    )
    return lines


def length(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def main(write: bool) -> int:
    """Compare with the table, or write it."""
    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]] if TABLE.exists() else []
    allowed = {room: (int(most), reason) for room, most, reason in rows}
    lines = counted()
    if write:
        rows = [[room, str(number), allowed.get(room, (0, "first count"))[1]] for room, number in sorted(lines.items())]
        TABLE.write_text(
            "".join("\t".join(row) + "\n" for row in [["room", "lines", "reason"], *rows]), encoding="utf-8"
        )
        return 0
    more = {room: number for room, number in lines.items() if number > allowed.get(room, (0, ""))[0]}
    for room, number in more.items():
        sys.stderr.write(
            f"{room}: {number} lines; allowed: {allowed.get(room, (0, ''))[0]}, "
            f"or more with a reason in {TABLE.relative_to(ROOT)}\n"
        )
    return int(bool(more))


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
