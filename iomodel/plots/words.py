"""Formatting of numbers, calls and tiles in pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.common import labels
from iomodel.common.units import BINARY
from iomodel.nests.alphabet import LAUNCH
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload import Workload

_PREFIXES = ((1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"))
_LAUNCH = {entry.name for entry in LAUNCH}


def resource(name: str) -> str:
    """Name a resource of an estimate.

    >>> resource("exp"), resource("shared memory")
    ('exponentials', 'shared memory')
    """
    return labels.RESOURCES.get(name, name)


def scale(value: float, unit: str) -> tuple[float, str]:
    """Choose the factor and the unit that leave one to three digits before the point.

    >>> scale(2349858816, "B")
    (1000000000.0, 'GB')
    """
    factor, prefix = next(((f, p) for f, p in reversed(_PREFIXES) if value >= f), _PREFIXES[0])
    return factor, prefix + unit


def short(value: float, unit: str) -> str:
    """Format a value with three digits.

    >>> short(2349858816, "B"), short(0.0123, "s")
    ('2.35 GB', '12.3 ms')
    """
    factor, name = scale(value, unit)
    return f"{number(value / factor)} {name}"


def number(value: float) -> str:
    """Format a number with three digits, or all digits before the point.

    >>> number(4081.7), number(36.54)
    ('4,082', '36.5')
    """
    return f"{value:,.3g}" if value < 999.5 else f"{value:,.0f}"


def memory(size: float) -> str:
    """Format a size in KiB or MiB.

    >>> memory(232448), memory(512), memory(3 * 2**20)
    ('227 KiB', '512 B', '3 MiB')
    """
    factor, prefix = max(((f, p) for p, f in BINARY.items() if f <= size), default=(1, ""))
    return f"{size / factor:,.4g} {prefix}B"


def counted(number: int, one: str, several: str = "") -> str:
    """Write a number of things.

    >>> counted(1, "key"), counted(4096, "query", "queries")
    ('1 key', '4,096 queries')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def call(workload: Attention | VarlenAttention) -> str:
    """Describe a call in one line.

    >>> call(Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal"))
    '32 / 8 heads, 8,192 queries x 8,192 keys, d = 128, bf16, causal mask'
    """
    w: Any = workload
    mask = w.mask if isinstance(w.mask, str) else type(w.mask).__name__.lower()
    heads = f"{w.heads} heads" if w.kv_heads == w.heads else f"{w.heads} / {w.kv_heads} heads"
    width = f"d = {w.head_dim}" + (f", d_v = {w.value_dim}" if w.value_dim != w.head_dim else "")
    single = isinstance(w, Attention)
    lengths = (
        f"{counted(w.q_len, 'query', 'queries')} x {counted(w.kv_len, 'key')}"
        if single
        else counted(len(w.q_lens), "sequence")
    )
    parts = [
        f"batch {w.batch}" if single and w.batch > 1 else "",
        heads if w.heads > 1 else counted(1, "head"),
        lengths,
        width,
        w.dtype,
        f"{mask} mask" if mask != "full" else "",
        w.direction if w.direction != "forward" else "",
        *w.features,
    ]
    return ", ".join(filter(None, parts))


def workload(workload: Workload) -> str:
    """Describe a workload of any kind in one line.

    >>> from iomodel.workloads.linear import Linear
    >>> workload(Linear(rows=8192, in_features=4096, out_features=14336))
    'rows 8,192, in_features 4,096, out_features 14,336, dtype bf16'
    """
    if isinstance(workload, Attention | VarlenAttention):
        return call(workload)
    fields = {name: value for name, value in workload if name in ("dtype", *workload.model_fields_set) and value}
    return ", ".join(f"{name} {value:,}" if type(value) is int else f"{name} {value}" for name, value in fields.items())


def tiles(sizes: Mapping[str, int]) -> str:
    """Abbreviate a tile.

    >>> tiles({"block_q": 128, "block_kv": 64, "warps": 4, "stages": 1})
    '128 x 64, 4 warps'
    """
    rows = " x ".join(f"{size:,}" for name, size in sizes.items() if name not in _LAUNCH)
    more = [f"{sizes[name]} {name}" for name in ("warps", "stages") if sizes.get(name, 1) > 1]
    return ", ".join(filter(None, [rows, *more]))
