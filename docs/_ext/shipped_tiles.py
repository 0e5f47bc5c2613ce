"""The tables of the page of the implementations: kernels by device, and shipped tiles beside the fastest."""

from collections.abc import Mapping
from typing import Any

from markdown_table import table

import iomodel

ALGORITHMS = ("flash1", "flash2", "flash3", "split_kv")
DEVICES = ("a100-sxm4-80gb", "rtx4090", "h100-sxm5", "b200", "mi300x", "mi355x", "v100-sxm2-32gb", "tpu-v5e")


def kernels() -> str:
    """Return the implementations that run on some devices, by algorithm."""
    listed = ((name, *(", ".join(iomodel.list_implementations(one, name)) for one in ALGORITHMS)) for name in DEVICES)
    return table(("device", *ALGORITHMS), listed)


def beside_shipped() -> str:
    """Return the shipped and the fastest tile of some calls, with their times."""
    head = ("device", "implementation", "call", "shipped", "[ms]", "fastest", "[ms]")
    rows = (
        row("flash1", "a100-sxm4-80gb", head_dim=64),
        row("flash2", "a100-sxm4-80gb"),
        row("flash2", "a100-sxm4-80gb", direction="backward"),
        row("flash3", "h100-sxm5", mask="causal"),
        row("flash3", "h100-sxm5", direction="backward"),
        row("flash2", "b200"),
        row("flash2", "mi300x", head_dim=64),
    )
    return table(head, rows)


def row(name: str, device: str, **call: Any) -> tuple[str, ...]:
    """Solve one call and return its cells."""
    w = iomodel.Attention(batch=2, heads=16, q_len=8192, **{"head_dim": 128, **call})
    s = iomodel.solve(name, w, device)
    shipped = s.certificate.shipped
    about = f"{w.direction}, {w.head_dim}, {w.mask}"
    times = (f"{1e3 * one.seconds:.2f}" for one in (shipped, s))
    return (device, s.implementation, about, shown(shipped.tiles), next(times), shown(s.tiles), next(times))


def shown(tiles: Mapping[str, int]) -> str:
    """Write a tile."""
    return f"{tiles['block_q']} x {tiles['block_kv']}, {tiles['warps']} warps"
