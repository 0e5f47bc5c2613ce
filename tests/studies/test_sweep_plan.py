"""Plans of sweeps: each change gives another digest, and too large a result is refused beforehand."""

import pytest

import iomodel
from iomodel import InputError
from iomodel.studies.sweeps.sweep import planned

PLAN = {
    "algorithm": "flash2",
    "q_len": range(1, 200),
    "head_dim": [8, 16],
    "block_q": 4,
    "block_kv": 4,
    "mask": "causal",
}
CHANGES = [
    {"q_len": range(2, 201)},
    {"q_len": [*range(1, 199), 200]},
    {"q_len": range(1, 201)},
    {"head_dim": [8, 17]},
    {"head_dim": 8},
    {"block_q": 5},
    {"mask": "full"},
    {"algorithm": "flash1"},
    {"quantities": "flops"},
    {"chunk": 7},
    {"dtype": "fp8"},
    {"heads": 2},
]


def test_every_change_of_a_plan_changes_its_digest():
    digests = [planned(**{**PLAN, **change}).digest for change in ({}, *CHANGES)]
    assert len(set(digests)) == len(digests)
    assert planned(**PLAN).digest == digests[0]


def test_widths_of_a_window_count_before_anything_is_computed():
    """10^10 queries that see themselves are counted in 64 bits; if each sees 10^9 keys, the FLOPs are not."""
    shape = {"q_len": 10**10, "head_dim": 64, "block_q": 128, "block_kv": 128, "quantities": "flops"}
    window = iomodel.Window(left=0, right=0)
    assert planned("flash2", mask=window, window_left=[0, 100], **shape).points == 2
    with pytest.raises(InputError, match=r"^flops: \d+ at window_left = 1000000000; .* 64 bits"):
        planned("flash2", mask=window, window_left=[0, 10**9], **shape)
