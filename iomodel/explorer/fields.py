"""Fields of the page's form, with ranges and choices from the schemas of the workload."""

from __future__ import annotations

from typing import Any

from iomodel.common.validation import LARGEST
from iomodel.nests.alphabet import WORKLOAD
from iomodel.workloads.attention import Attention
from iomodel.workloads.window import Window

AUTO = "auto"
START = {"batch": "1", "heads": "32", "kv_heads": "8", "q_len": "4096", "head_dim": "128"}
"""The call that the page opens with."""
PREFIXES = {"K": 1024, "M": 1024**2, "G": 1024**3}
"""Factors of the suffixes that a number may have: 4k is 4,096."""
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
