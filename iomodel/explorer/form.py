"""Form of the page: its fields with ranges and choices from the schemas, its presets, and the steps of its tour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from iomodel.common.validation import LARGEST
from iomodel.models.registry import list_models, model
from iomodel.nests.alphabet import WORKLOAD
from iomodel.workloads.attention import Attention
from iomodel.workloads.window import Window

AUTO = "auto"
START = {"batch": "1", "heads": "32", "kv_heads": "8", "q_len": "4096", "head_dim": "128"}
"""The call that the page opens with."""
OPTIONS = {
    "packed": "the query heads that share a head of K and V fill one tile together",
    "lse": "also write LSE, the log of the sum of exponentials of each row, which the backward pass reads",
    "tiled": "products in tiles of their own, instead of one ideal pass over each operand",
    "deterministic": "add to dQ in a fixed order",
    "accumulate": "add dK and dV to what is in HBM",
    "mask_pass": "a separate kernel for the mask",
    "dropout_pass": "a separate kernel for dropout",
    "carry": "keep the state on chip between chunks",
    "shared": "one projection for K and V",
    "fixed": "the fixed pattern instead of the strided one",
    "second": "the second of the two heads of the pattern",
}
"""Meaning of the switches of the algorithms."""
FOLLOWS = {"kv_heads": "heads", "kv_len": "q_len", "value_dim": "head_dim"}
"""Fields that may be left to another."""
SHAPE = ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "value_dim")
LAYER = ("heads", "kv_heads", "head_dim", "value_dim")
"""Fields that a preset takes from a layer of a model."""
MOST_PAIRS = 64
"""The most pairs of tiles that the map can choose from."""


def call_fields() -> dict[str, dict[str, Any]]:
    """Describe the fields of a call, in the order of a link."""
    call, window = (model.model_json_schema()["properties"] for model in (Attention, Window))
    meaning = {entry.name: entry.meaning for entry in WORKLOAD}
    fields = {name: _number(call[name], START.get(name, AUTO), meaning[name], FOLLOWS.get(name)) for name in SHAPE}
    return {
        **fields,
        "dtype": _choice(call["dtype"]["enum"], call["dtype"]["default"]),
        "mask": _choice([*call["mask"]["anyOf"][0]["enum"], "window"], call["mask"]["default"]),
        "window_left": _number(window["left"]["anyOf"][0], AUTO, "keys to the left", "all"),
        "window_right": _number(window["right"]["anyOf"][0], AUTO, "keys to the right", "all"),
        "align": _choice(window["align"]["enum"], window["align"]["default"]),
    }


def memory_fields() -> dict[str, dict[str, Any]]:
    """Describe the fields of the on-chip memory, and the pair of tiles that the map shows."""
    positive = {"ge": 1, "le": LARGEST}
    return {
        "sram_bytes": _number(positive, AUTO, "budget of the tiles [B]", "that of the GPU"),
        "alignment": _number(positive, AUTO, "alignment of the tiles", "that of the GPU"),
        "pair": _number({"ge": 1, "le": MOST_PAIRS}, "1", "map shows"),
        "map": _choice([AUTO, "time", "traffic"], AUTO),
    }


def tile_field() -> dict[str, Any]:
    """Describe the size of a tile."""
    return _number({"ge": 1, "le": LARGEST}, AUTO, "", "the best")


def _number(limits: dict[str, Any], default: str, meaning: str, auto: str | None = None) -> dict[str, Any]:
    words = f"{meaning}; {AUTO}: {auto}" if auto else meaning
    return {"least": str(limits["ge"]), "most": str(limits["le"]), "default": default, "help": words, "auto": auto}


def _choice(choices: list[str], default: str) -> dict[str, Any]:
    return {"choices": choices, "default": default}


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
        fields = {name: str(getattr(own, name)) for name in LAYER}
        if own.window is None:
            return {**fields, "mask": "causal", "window_left": "auto", "window_right": "auto"}
        return {**fields, "mask": "window", "window_left": str(own.window - 1), "window_right": "0"}
    return {}


class TourStep(NamedTuple):
    """One step; `panel` is the heading of the panel that it speaks of, `state` the fields of a link that it sets."""

    title: str
    sentence: str
    question: str
    answer: str
    panel: str
    state: dict[str, str]


TOUR = (
    TourStep(
        "S does not fit",
        "Standard attention stores the scores, one number for each pair of a query and a key, and loads them "
        "again: S and P are most of what it moves.",
        "How does the time change when q_len doubles?",
        "S and P have q_len x kv_len elements: four times the bytes, and about four times the time.",
        "h-time",
        {"algorithm": "standard", "q_len": "8192"},
    ),
    TourStep(
        "A tile",
        "FlashAttention-2 computes a tile of S at a time and keeps it on chip, so that only Q, K, V, O and "
        "one number per row move.",
        "Which of these tensors is read more than once, and how often?",
        "K and V, once for each tile of queries: 8,192 / 128 = 64 times for each query head. Q and O move once.",
        "h-counts",
        {"q_len": "8192"},
    ),
    TourStep(
        "Tall tiles",
        "Each tile of queries reads all keys once, so a taller tile reads K and V less often.",
        "In the map, how do the requests change with block_q, and how with block_kv?",
        "With block_q they fall, nearly as 1 / block_q. With block_kv they hardly change: it decides only how much is "
        "on chip at a time.",
        "h-map",
        {"q_len": "8192", "implementation": "textbook", "map": "traffic"},
    ),
    TourStep(
        "What a mask skips",
        "A tile in which no query sees a key is neither loaded nor computed: a causal mask saves almost half "
        "of the tiles.",
        "Why does it save less than half?",
        "A tile on the diagonal is loaded and computed whole, although some of its pairs are hidden.",
        "h-anim",
        {"q_len": "8192", "mask": "causal"},
    ),
    TourStep(
        "L2 and DRAM",
        "Blocks that run at the same time ask for the same keys, and the L2 cache answers most of these "
        "requests: far fewer bytes leave DRAM.",
        "What happens to the requests and to the DRAM traffic when kv_heads grows from 8 to 32?",
        "The requests stay, because each query head asks for its keys anyway. The DRAM traffic grows, because four "
        "times as many keys and values exist.",
        "what",
        {"q_len": "16384"},
    ),
    TourStep(
        "What really binds",
        "FlashAttention-3 on an H100 is far to the right of the ridge point: units on the chip bind, and DRAM"
        " is busy for a small part of the time.",
        "Which resources come next, and what would a faster memory change?",
        "Shared memory and the L2 come next. A faster DRAM changes nothing: its time is hidden behind the products.",
        "h-roof",
        {"algorithm": "flash3", "q_len": "16384", "mask": "causal"},
    ),
)  # fmt: skip
"""The tour."""
