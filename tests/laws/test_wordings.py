"""Sentences that readers did not understand stay reworded, and lines of tables are in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel import Attention

ROOT = Path(__file__).parents[2]
CALL = Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
GONE = (
    "SM does not, L2 holds", "is asked for again", "what is left is waiting", "on their way at a time", "moves 1 times",
    "not installed, and to_pandas() needs it", "no kernel on file runs this call", "they exceed MMA shape",
    "more on each device; allowed", "binding constraint: time", "lower bound of any schedule",
    "given as an object or by its kind", "of which no formula speaks", "function values take no time",
    "it is the output alone", "Three plain Triton kernels", "MMA shape used of 0",
)  # fmt: skip


@pytest.mark.parametrize("old", GONE)
def test_a_sentence_that_was_not_understood_is_gone(old: str) -> None:
    texts = [*ROOT.glob("iomodel/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    assert not [str(path) for path in texts if old in path.read_text(encoding="utf-8")]


def diagnosed() -> Any:
    """A flash2 of ten times its time."""
    return iomodel.diagnose("flash2", CALL, "h100-sxm5", 16.85e-3)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (diagnosed, "B; does not fit an SM, fits the L2"),
        (diagnosed, "coalescing and bank conflicts, which only a profile shows (iomodel audit)"),
        (diagnosed, " x the predicted 1,605 us: every resource is idle more than half of the time"),
        (lambda: iomodel.solve("flash3", CALL, "h100-sxm5"), "lower bound for every schedule"),
        (lambda: iomodel.solve("flash3", CALL, "h100-sxm5"), "memory assumed by the bounds (shared + registers)"),
        (lambda: iomodel.solve("flash2", CALL, "a100-sxm4-80gb"), "binding constraint"),
        (lambda: iomodel.compare(CALL, "sim-a100", algorithms=["flash2"]), "idealised"),
    ],
)
def test_a_line_is_in_plain_words(answer: Any, words: str) -> None:
    assert words in str(answer())


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (
            lambda: iomodel.plan("llama-3.1-70b", "h100-sxm5", tp=1, prompt=2048, output=256),
            "per device (h100-sxm5, one device); try 4 devices (TP 4), narrower weights, or a shorter request",
        ),
        (
            lambda: iomodel.estimate("flash3", CALL, "b200"),
            "FlashAttention-3 has no kernel for NVIDIA B200 SXM 180GB; flash-attention-4: 'flash2'",
        ),
    ],
)
def test_a_refusal_says_what_does_instead(question: Any, words: str) -> None:
    with pytest.raises(iomodel.IOModelError) as refused:
        question()
    assert words in str(refused.value)


def test_a_decode_on_latents_names_the_algorithm_that_splits_its_keys() -> None:
    call = Attention(
        batch=2, heads=128, kv_heads=1, q_len=1, kv_len=8192, head_dim=576, value_dim=512, latent=True, dtype="bf16"
    )
    assert any(
        "splits of the keys (split_kv)" in text for text in iomodel.estimate("flash3", call, "h100-sxm5").assumed
    )
