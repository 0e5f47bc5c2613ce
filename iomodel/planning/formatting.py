"""Formatting of times, bytes, money and layouts."""

from __future__ import annotations

from iomodel.common.display import figure
from iomodel.planning.step.layout import Layout

SHORT = {
    "tensor_parallel": "TP",
    "pipeline_parallel": "PP",
    "expert_parallel": "EP",
    "context_parallel": "CP",
    "decode_context_parallel": "DCP",
}


def layout_text(layout: Layout) -> str:
    """Abbreviate a layout.

    >>> layout_text(Layout(tensor_parallel=8, pipeline_parallel=2)), layout_text(Layout())
    ('TP 8, PP 2', 'one device')
    >>> layout_text(Layout(expert_parallel=16, devices_per_node=8))
    'EP 16, nodes of 8'
    """
    degrees = layout.to_dict()
    parts = [f"{SHORT[name]} {degrees[name]}" for name in SHORT if degrees.get(name, 1) > 1]
    if layout.redundant_experts:
        parts.append(f"{layout.redundant_experts} copies of experts")
    if layout.nodes(layout.devices) > 1:
        parts.append(f"nodes of {layout.devices_per_node}")
    return ", ".join(parts) or "one device"


def seconds(value: float) -> str:
    """Format a time in a suitable unit.

    >>> seconds(0.01234), seconds(2.5), seconds(0.0)
    ('12.3 ms', '2.5 s', '0 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value < 1000 * size else f"{value / size:,.0f} {unit}"
    return f"{value:.3g} s"


def rate(value: float) -> str:
    """Format requests per second.

    >>> rate(12.3456)
    '12.3'
    """
    return figure(value, 3)


def gigabytes(value: float) -> str:
    """Format bytes in GB of 10^9 B.

    >>> gigabytes(16_060_522_496)
    '16.06 GB'
    """
    return f"{value / 1e9:,.2f} GB"


def money(value: float) -> str:
    """Format a price with enough digits.

    >>> money(20.0), money(0.01234)
    ('20.00', '0.0123')
    """
    return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"
