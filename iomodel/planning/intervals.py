"""Intervals of the times of a plan, read off published figures.

The interval of a kind of time reaches from the 10th to the 90th percentile of the ratios of measured to predicted times
over the working rows of the kind, and to the prediction itself: the open rows of tests/measured/serving*.csv, each
asked as one call of `plan` (benchmarks/serving_accuracy.py --newcomer prints them). Rows of many dense requests hold
runs whose prompts were partly cached, and those of first tokens one engine and device that took five times as long,
which makes these intervals wide. Those of files of llama.cpp are read off the working rows of
tests/measured/llama_cpp.csv in q4_K_M (benchmarks/llama_cpp.py), of one request each.
"""

from __future__ import annotations

from iomodel.models.file_types import in_blocks
from iomodel.models.spec import ModelSpec
from iomodel.planning.step.layout import has_experts

FEW = 16
"""Requests in a replica from which a batch counts as many [-]."""
SHARE = 0.8
"""Share of the working rows within an interval [-]."""
TPOT = {
    ("dense", "few"): (0.98, 1.10),
    ("dense", "many"): (0.37, 1.14),
    ("experts", "few"): (0.93, 1.39),
    ("experts", "many"): (0.89, 1.39),
    **dict.fromkeys((("files", "few"), ("files", "many")), (0.98, 1.23)),
}
"""Ratios of measured to predicted times per token: 17, 27, 31, 34 and 36 rows [-]."""
TTFT = {"dense": (0.89, 1.10), "experts": (1.00, 6.53), "files": (1.00, 1.65)}
"""The same of first tokens of a server, 8 and 14 rows, and of prompts under llama.cpp, 36 rows [-]."""


def kind_of_model(model: ModelSpec) -> str:
    """Name the kind of a model: in a file of llama.cpp, with experts, or dense."""
    if in_blocks(model):
        return "files"
    return "experts" if has_experts(model) else "dense"


def tpot_interval(model: ModelSpec, batch: int, tpot: float) -> tuple[float, float]:
    """Return the interval of a time per token [s]."""
    low, high = TPOT[kind_of_model(model), "few" if batch < FEW else "many"]
    return low * tpot, high * tpot


def ttft_interval(model: ModelSpec, ttft: float) -> tuple[float, float]:
    """Return the interval of a time to the first token in a server [s]."""
    low, high = TTFT[kind_of_model(model)]
    return low * ttft, high * ttft
