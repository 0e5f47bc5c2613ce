"""Steps of the tour of the page: each a state, with one sentence and one question."""

from __future__ import annotations

from typing import NamedTuple


class TourStep(NamedTuple):
    """One step; `state` has the fields of a link that differ from the first call."""

    title: str
    sentence: str
    question: str
    state: dict[str, str]


TOUR = (
    TourStep(
        "S does not fit",
        "Standard attention stores the scores, one number for each pair of a query and a key, and loads them "
        "again: S and P are most of what it moves.",
        "How does the time change when q_len doubles?",
        {"algorithm": "standard", "q_len": "8192"},
    ),
    TourStep(
        "A tile",
        "FlashAttention-2 computes a tile of S at a time and keeps it on chip, so that only Q, K, V, O and "
        "one number per row move.",
        "Which of these tensors is read more than once, and how often?",
        {"q_len": "8192"},
    ),
    TourStep(
        "Tall tiles",
        "Each tile of queries reads all keys once, so a taller tile reads K and V less often.",
        "In the map, how do the requests change along a column, and how along a row?",
        {"q_len": "8192", "implementation": "textbook", "map": "traffic"},
    ),
    TourStep(
        "What a mask skips",
        "A tile in which no query sees a key is neither loaded nor computed: a causal mask saves almost half "
        "of the tiles.",
        "Why does it save less than half?",
        {"q_len": "8192", "mask": "causal"},
    ),
    TourStep(
        "L2 and DRAM",
        "Blocks that run at the same time ask for the same keys, and the L2 cache answers most of these "
        "requests: far fewer bytes leave DRAM.",
        "What happens to the requests and to the DRAM traffic when kv_heads grows from 8 to 32?",
        {"q_len": "16384"},
    ),
    TourStep(
        "What really binds",
        "FlashAttention-3 on an H100 is far to the right of the ridge point: units on the chip bind, and DRAM"
        " is busy for a small part of the time.",
        "Which resources come next, and what would a faster memory change?",
        {"algorithm": "flash3", "q_len": "16384", "mask": "causal"},
    ),
)  # fmt: skip
"""The tour."""
