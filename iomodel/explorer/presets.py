"""Presets of the page: the attention of shipped models, and the steps of its tour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from iomodel.models.registry import list_models, model

SHAPE = ("heads", "kv_heads", "head_dim", "value_dim")


def presets() -> dict[str, dict[str, str]]:
    """Collect the fields of a causal prefill by the first layer with plain attention of every shipped model.

    A model with latent attention, an indexer or a compressed cache has no preset.

    >>> presets()["mistral-7b-v0.1"]["window_left"]
    '4095'
    """
    presets_by_name = {name: _fields(model(name).layers) for name in list_models()}
    return {name: fields for name, fields in presets_by_name.items() if fields}


def _fields(layers: Iterable[Any]) -> dict[str, str]:
    for layer in layers:
        own = layer.attention
        if own is None or own.kv_lora_rank is not None or own.indexer is not None or own.compression is not None:
            continue
        fields = {name: str(getattr(own, name)) for name in SHAPE}
        if own.window is None:
            return {**fields, "mask": "causal", "window_left": "auto", "window_right": "auto"}
        return {**fields, "mask": "window", "window_left": str(own.window - 1), "window_right": "0"}
    return {}
