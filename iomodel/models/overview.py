"""The table of all shipped models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from iomodel.common.display import Table
from iomodel.models.registry import list_models, model
from iomodel.models.spec import ModelSpec
from iomodel.models.table import CONTEXT

COLUMNS = ("name", ">parameters", ">active", ">layers", ">heads", ">KV heads", ">head width", ">KV B/token")

EXTRA = ("active", "KV B/token", "layers", "head width", "KV heads", "heads")


def every_model(names: Iterable[str] | None = None) -> dict[str, ModelSpec]:
    """Load shipped models, by default all, keyed by name."""
    return {name: model(name) for name in (list_models() if names is None else names)}


def overview(context: int = CONTEXT, kv_dtype: str | None = None, names: Iterable[str] | None = None) -> Any:
    """Build a table of shipped models, by default all; the cache is in bf16 by default."""
    columns = (*COLUMNS, f">KV of {context:,} tokens")
    models = every_model(names)
    rows = [row(*item, context, kv_dtype) for item in models.items()]
    return Table(f"{len(models)} model{'s' * (len(models) != 1)}", columns, rows, extra=EXTRA)


def row(name: str, spec: ModelSpec, context: int = CONTEXT, kv_dtype: str | None = None) -> tuple[str, ...]:
    """Format the cells of one model."""
    attention = next((layer.attention for layer in spec.layers if layer.attention is not None), None)
    shape = ("", "", "")
    if attention is not None:
        kv_heads = "latent" if attention.latent else f"{attention.kv_heads}"
        shape = f"{attention.heads}", kv_heads, f"{attention.head_dim}"
    return (
        name,
        billions(spec.parameters),
        billions(spec.active_parameters),
        f"{len(spec.layers)}",
        *shape,
        f"{spec.kv_bytes_per_token(kv_dtype):,}",
        f"{spec.kv_bytes(context, kv_dtype) / 2**20:,.0f} MiB",
    )


def billions(count: int) -> str:
    """Format a number of parameters in billions, rounded.

    >>> billions(8_030_261_248), billions(27_009_346_304), billions(1_026_408_232_448)
    ('8.03 B', '27.0 B', '1,026 B')
    """
    return f"{count / 1e9:,.{2 if count < 10**10 else 1 if count < 10**11 else 0}f} B"
