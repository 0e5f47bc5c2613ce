"""Tables of a device's figures: plain text, rich, HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iomodel.common.display import WARNING, Mark, Table, as_text
from iomodel.devices.quantity import Quantity, SizeList
from iomodel.devices.units import UnitKind

if TYPE_CHECKING:
    from iomodel.devices.device import Hardware

HEADER = ("field", ">value", "source")


def rows(device: Hardware) -> list[tuple[str, str, str]]:
    """List one row per figure: path, value in human units, sources and disagreeing figures."""
    return [(path, str(quantity), _origin(quantity)) for path, quantity in device.quantities.items()]


def _origin(quantity: Quantity | SizeList) -> str:
    text = ", ".join(quantity.source)
    if isinstance(quantity, Quantity) and quantity.spread:
        text += "; {} to {}".format(*map(UnitKind(quantity.unit, 0, 0).show, quantity.spread))
    others = quantity.alternatives if isinstance(quantity, Quantity) else ()
    for other in others:
        text += f"; {UnitKind(quantity.unit, 0, 0).show(other.value)} in {', '.join(other.source)}"
    return text


def _title(device: Hardware) -> str:
    kind = ", ".join(filter(None, (device.vendor, device.architecture)))
    return device.name + f" ({kind})" * bool(kind)


def table(device: Hardware) -> Table:
    """Build the table for a terminal."""
    marked = [[Mark(cell, WARNING) for cell in row] if "(unverified)" in row[1] else row for row in rows(device)]
    return Table(_title(device), HEADER, marked, device.notes)


def plain_table(device: Hardware, width: int = 120) -> str:
    """Format the table as text without colours, at most `width` characters wide."""
    return as_text(table(device), width)


def html_table(device: Hardware) -> str:
    """Format the table as HTML for a notebook."""
    from html import escape

    lines = [f"<table><caption>{escape(_title(device))}</caption>"]
    lines.append("<tr>" + "".join(f"<th>{name.removeprefix('>')}</th>" for name in HEADER) + "</tr>")
    for row in rows(device):
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    lines.append("</table>" + "".join(f"<p>{escape(note)}</p>" for note in device.notes))
    return "\n".join(lines)
