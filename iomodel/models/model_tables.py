"""Tables of one model and of all shipped models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from iomodel.common.display import Table
from iomodel.models.registry import list_models, model
from iomodel.models.spec import ModelSpec

if TYPE_CHECKING:
    from iomodel.models.attention_layer import AttentionLayer
    from iomodel.models.decoder_layer import DecoderLayer, MLPLayer
    from iomodel.models.recurrent import RecurrentLayer

CONTEXT = 8192
"""Default context of the displayed KV cache [tokens]."""


def summary(spec: ModelSpec, context: int = CONTEXT, kv_dtype: str | None = None) -> dict[str, Any]:
    """Collect the counts that follow from the shape, as plain data."""
    return {
        "parameters": spec.parameters,
        "active_parameters": spec.active_parameters,
        "weight_bytes": spec.weight_bytes(),
        "layers": len(spec.layers),
        "kv_bytes_per_token": spec.kv_bytes_per_token(kv_dtype),
        "context": context,
        "kv_bytes": spec.kv_bytes(context, kv_dtype),
        "index_bytes": spec.index_bytes(context, kv_dtype),
        "state_bytes": spec.state_bytes(),
        "unverified": spec.unverified,
    }


def model_table(spec: ModelSpec, context: int = CONTEXT, kv_dtype: str | None = None) -> Table:
    """Build the table of a model for the terminal."""
    counts = summary(spec, context, kv_dtype)
    rows = [
        ("parameters", f"{counts['parameters']:,}", "-"),
        ("active parameters per token", f"{counts['active_parameters']:,}", "-"),
        (f"weights as released, {dtypes(spec)}", f"{counts['weight_bytes']:,}", "B"),
        ("width of a row", f"{spec.hidden_size:,}", "elements"),
        (f"vocabulary{', embeddings tied' * spec.tied_embeddings}", f"{spec.vocab_size:,}", "tokens"),
        ("longest context", "" if spec.max_positions is None else f"{spec.max_positions:,}", "tokens"),
        ("layers", f"{counts['layers']:,}", "-"),
    ]
    for layer, times in spec.counted.items():
        first, *others = parts(layer) or ["nothing"]
        rows += [(f"  {first}", f"{times:,}", "layers"), *((f"    {part}", "", "") for part in others)]
    index = counts["index_bytes"]
    more = ", keys of indexers included" if index else ""
    each = counts["kv_bytes_per_token"] + (spec.index_bytes_per_token(kv_dtype) if index else 0)
    rows += [
        (f"KV cache per token{more}", f"{each:,}", "B"),
        (f"KV cache of {context:,} tokens{more}", f"{counts['kv_bytes'] + index:,}", "B"),
    ]
    if index:
        rows.append((f"  of these, keys of indexers of {context:,} tokens", f"{index:,}", "B"))
    longest = spec.attention_overtakes
    if longest is not None:
        rows.append(
            ("causal prefill in which attention takes as many FLOPs as the layers' matrices", f"{longest:,}", "tokens")
        )
    if counts["state_bytes"]:
        rows.append(("state of a sequence", f"{counts['state_bytes']:,}", "B"))
        equal = -(-counts["state_bytes"] // each) if each else 0
        if equal and spec.kv_bytes(equal, kv_dtype) + spec.index_bytes(equal, kv_dtype) == equal * each:  # no window
            rows.append(("  the context whose KV cache is as large", f"{equal:,}", "tokens"))
    if spec.kv_dtype is not None:
        rows.append(("recommended type of the cache", spec.kv_dtype, ""))
    rows += [("note", note, "") for note in spec.notes]
    rows += [("unverified", ", ".join(spec.unverified), "")] if spec.unverified else []
    return Table(spec.title, ("", ">value", "unit"), rows)


def dtypes(spec: ModelSpec) -> str:
    """Format the types of the released weights."""
    other = spec.expert_dtype
    return spec.dtype if other in (None, spec.dtype) else f"{spec.dtype}, experts {other}"


def parts(layer: DecoderLayer) -> list[str]:
    """Describe the parts of a layer, each in a few words."""
    described = [] if layer.attention is None else [heads(layer.attention)]
    described += [] if layer.recurrent is None else [state(layer.recurrent)]
    return described + ([] if layer.mlp is None else [width(layer.mlp)])


def state(recurrent: RecurrentLayer) -> str:
    """Describe a recurrent layer in a few words.

    >>> from iomodel.models.recurrent import LightningAttention
    >>> state(LightningAttention(heads=64, head_dim=128))
    'lightning, state of 4,194,304 B'
    """
    kind = getattr(recurrent, "kind", "state").replace("_", " ")
    return f"{kind}, state of {recurrent.state.bytes:,} B"


def heads(attention: AttentionLayer) -> str:
    """Describe the attention of a layer in a few words.

    >>> from iomodel.models.attention_layer import AttentionLayer
    >>> heads(AttentionLayer(heads=32, kv_heads=8, head_dim=128, window=4096))
    '32 heads of 128 on 8, window 4,096'
    """
    text = f"{attention.heads} heads of {attention.head_dim}"
    if attention.kv_lora_rank is not None:
        text += f" on a latent of {attention.kv_lora_rank} + {attention.rope_dim}"
    elif attention.kv_heads != attention.heads:
        text += f" on {attention.kv_heads}"
    if attention.value_dim != attention.head_dim:
        text += f", values of {attention.value_dim}"
    for name in ("window", "chunk"):
        size = getattr(attention, name)
        text += f", {name} {size:,}" if size is not None else ""
    if attention.compression is not None:
        text += f", an entry for {attention.compression.ratio}"
    if attention.indexer is not None:
        text += f", {attention.indexer.topk:,} selected"
    text += "" if attention.own_kv else ", K and V of an earlier layer"
    text += "" if attention.softcap is None else f", softcap {attention.softcap:g}"
    return text + ", sinks" * attention.sinks


def width(mlp: MLPLayer) -> str:
    """Describe the MLP of a layer in a few words.

    >>> from iomodel.models.decoder_layer import MLPLayer
    >>> width(MLPLayer(experts=8, experts_per_token=2, expert_intermediate_size=14336))
    'MLP 2 of 8 experts of 14,336'
    """
    if not mlp.experts:
        return f"MLP {mlp.intermediate_size:,}"
    shared = f" and {mlp.shared_experts} shared" if mlp.shared_experts else ""
    return f"MLP {mlp.experts_per_token} of {mlp.experts} experts of {mlp.expert_intermediate_size:,}{shared}"


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
