"""Least accesses over all schedules of small calls; tests/counting/test_optima.py computes each of them."""

from __future__ import annotations

ELEMENTS = {
    (2, 2, 1, 1, 3): 16,
    (2, 2, 1, 1, 4): 10,
    (2, 2, 1, 1, 5): 9,
    (1, 3, 1, 1, 3): 12,
    (3, 1, 1, 1, 3): 12,
    (2, 3, 1, 1, 3): 24,
    (3, 2, 1, 1, 4): 14,
    (3, 3, 1, 1, 4): 20,
    (3, 3, 1, 1, 5): 18,
    (3, 4, 1, 1, 4): 26,
    (2, 2, 2, 1, 4): 18,
    (2, 2, 1, 2, 4): 18,
    (2, 2, 2, 2, 4): 24,
    (2, 2, 2, 2, 6): 18,
}
"""Accesses of single elements, by queries, keys, d, d_v and places on the chip; every pair is visible."""

REUSED = {(1, 3, 3): 9, (3, 1, 3): 8, (2, 2, 3): 11, (2, 2, 4): 10, (2, 2, 5): 8}
"""Accesses by queries, keys and places where a result may take an operand's place; d = d_v = 1, every pair visible."""

ROWS = {
    (2, 2, 4, False): 10,
    (2, 2, 5, False): 9,
    (2, 3, 5, False): 12,
    (2, 5, 5, False): 18,
    (3, 3, 4, False): 20,
    (3, 3, 5, False): 18,
    (3, 4, 5, False): 23,
    (4, 4, 4, False): 34,
    (4, 4, 6, False): 22,
    (4, 4, 7, False): 21,
    (5, 4, 6, False): 29,
    (3, 3, 4, True): 14,
    (3, 3, 5, True): 13,
    (4, 4, 4, True): 22,
    (4, 4, 5, True): 20,
    (4, 4, 6, True): 18,
}
"""Accesses of whole rows, by queries, keys, rows on the chip, and whether the mask is causal."""

BACKWARD_REUSED = {
    (1, 1, 2): 11,
    (1, 1, 3): 9,
    (1, 1, 4): 8,
    (1, 2, 2): 22,
    (1, 2, 3): 17,
    (1, 2, 4): 14,
    (1, 2, 5): 12,
    (2, 1, 2): 24,
    (2, 1, 3): 18,
    (2, 1, 4): 15,
    (2, 1, 5): 13,
}
"""Accesses backward by queries, keys and places where a result may take an operand's place; d = d_v = 1."""

BACKWARD_ROWS = {
    (2, 2, 7): 18,
    (2, 2, 8): 16,
    (3, 2, 7): 25,
    (3, 2, 9): 21,
    (2, 3, 7): 26,
    (2, 4, 7): 34,
    (4, 2, 8): 28,
    (3, 3, 7): 37,
    (3, 3, 9): 29,
    (3, 4, 7): 49,
    (4, 3, 7): 48,
    (4, 3, 8): 40,
}
"""Accesses of whole rows backward, by queries, keys and rows on the chip; every pair is visible."""

SLOW = {(5, 4, 6, False), (3, 3, 9), (4, 3, 8), (2, 2, 4), (2, 2, 5)}
"""Those of ROWS, BACKWARD_ROWS and REUSED that only the nightly profile computes."""
