"""A device's figures as a table: plain text, rich, HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from iomodel.quantity import Quantity, Steps
from iomodel.show import as_text
from iomodel.units import Kind

if TYPE_CHECKING:
    from rich.table import Table

    from iomodel.hardware import Hardware

HEADER = ("field", "value", "source")


def rows(device: Hardware) -> list[tuple[str, str, str]]:
    """One row a figure: path, value in human units, sources and the figures that disagree."""
    return [(path, str(quantity), _origin(quantity)) for path, quantity in device.quantities.items()]


def _origin(quantity: Quantity | Steps) -> str:
    text = ", ".join(quantity.source)
    if isinstance(quantity, Quantity) and quantity.spread:
        text += "; {} to {}".format(*map(Kind(quantity.unit, 0, 0).show, quantity.spread))
    others = quantity.alternatives if isinstance(quantity, Quantity) else ()
    for other in others:
        text += f"; {Kind(quantity.unit, 0, 0).show(other.value)} in {', '.join(other.source)}"
    return text


def _title(device: Hardware) -> str:
    kind = ", ".join(filter(None, (device.vendor, device.architecture)))
    return device.name + f" ({kind})" * bool(kind)


def rich_table(device: Hardware) -> Table:
    """The table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    caption = Text("\n".join(device.notes), justify="left")
    table = Table(title=Text(_title(device)), caption=caption, title_justify="left")
    for name in HEADER:
        table.add_column(name, justify="right" if name == "value" else "left", overflow="fold")
    for row in rows(device):
        table.add_row(*(Text(cell, style="yellow" if "(unverified)" in row[1] else "") for cell in row))
    return table


def plain_table(device: Hardware, width: int = 120) -> str:
    """The same as text without colours, `width` characters wide at most."""
    return as_text(rich_table(device), width)


def html_table(device: Hardware) -> str:
    """The same for a notebook."""
    lines = [f"<table><caption>{escape(_title(device))}</caption>"]
    lines.append("<tr>" + "".join(f"<th>{name}</th>" for name in HEADER) + "</tr>")
    for row in rows(device):
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    lines.append("</table>" + "".join(f"<p>{escape(note)}</p>" for note in device.notes))
    return "\n".join(lines)
