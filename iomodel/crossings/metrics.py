"""What is compared: counts, or the time."""

from __future__ import annotations

COUNTS = {
    "bytes": ("hbm_bytes", "HBM traffic", "B"),
    "elements": ("hbm_elements", "HBM accesses", "elements"),
    "flops": ("flops", "matrix FLOPs", "FLOP"),
    "exps": ("exps", "exponentials", "-"),
}
"""The metrics that are counts: the quantity of a cost, what it is called, its unit."""
METRICS = {**{name: (label, unit) for name, (_, label, unit) in COUNTS.items()}, "time": ("time", "s")}
"""Every metric: what it is called, its unit."""
