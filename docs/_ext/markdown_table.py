"""Tables of Markdown."""

from collections.abc import Collection, Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[object]], right: Collection[int] = ()) -> str:
    """Write a table, with some columns aligned to the right."""
    names = list(head)
    rule = ["---:" if place in right else "---" for place in range(len(names))]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (names, rule, *rows))
