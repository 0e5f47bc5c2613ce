"""Links of the explorer's page: its fields with values that are nearly right, or never were."""

from __future__ import annotations

from random import Random

from tests.fuzz.texts import TEXTS, scribble

FIELDS = {
    "hardware": ("h100-sxm5", "a10", "h100", "sim-a100"),
    "algorithm": ("flash2", "tiled_query", "split_kv", "standard", "flash9"),
    "direction": ("forward", "backward", "both", "sideways"),
    "mask": ("full", "causal", "window", "blocks"),
    "align": ("bottom-right", "top-left", "top"),
    "dtype": ("bf16", "fp8", "fp32", "bf61"),
    "packed": ("on", "off", "yes"),
    "lse": ("on", "off"),
    "constructor": ("on",),
    "__proto__": ("1",),
}
NUMBERS = ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim", "value_dim", "window_left", "window_right",
           "sram_bytes", "alignment", "pair", "splits", "block_q", "block_kv", "gemm1_m")  # fmt: skip
SIZES = (
    "0", "1", "2", "8", "16", "64", "100", "4096", "100000", "1000000000000000000", "1" + "0" * 30, "9" * 41, "auto",
    "-1", "1.5", "1e3", " 8", "٣", "0x10", "NaN", "8n",
)  # fmt: skip


def link(rng: Random) -> dict[str, str]:
    """The fields of a link."""
    fields: dict[str, str] = {}
    for _ in range(rng.choice((0, 1, 2, 3, 6, 12))):
        if rng.random() < 0.35:
            name = rng.choice(list(FIELDS))
            choices = FIELDS[name]
        else:
            name, choices = rng.choice(NUMBERS), SIZES
        kind = rng.random()
        if kind > 0.97:
            name = rng.choice(TEXTS) if kind > 0.985 else scribble(rng)
        fields[name] = rng.choice(choices) if rng.random() < 0.93 else rng.choice(TEXTS)
    return {_whole(name): _whole(value) for name, value in fields.items()}


def _whole(text: str) -> str:
    """Replace halves of characters, which JSON cannot hold."""
    return text.encode("utf-8", "replace").decode()
