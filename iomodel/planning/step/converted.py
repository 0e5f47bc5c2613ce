"""Products of experts whose weights of four bits are converted in registers, by Triton's kernel on Hopper.

A block of `matmul_ogs` (github.com/triton-lang/triton, python/triton_kernels) multiplies up to 128 rows of one expert
by 256 columns of its weights: its warps convert the weights of a trip, then multiply, so that both take their turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, sqrt
from statistics import NormalDist

from iomodel.devices.rates import Rates
from iomodel.planning.step.expert_loads import evenly
from iomodel.workloads.linear import Linear

COLUMNS = 256
"""Columns of a block [-]; `flags` of the records of experts in tests/measured/gpu have it at all sizes."""
FEWEST, MOST = 16, 128
"""Fewest and most rows of a block: the power of two from the mean tokens of an expert up, within these [rows]."""
WEIGHTS_PER_CLOCK = 27.0
"""Weights that an SM converts in a clock [1/clk]: gpt-oss-20b with 1 to 8,192 tokens on an H100, the working records of
`experts` in tests/measured/gpu, whose 28 products are then within 5 % in the mean."""
RARE = 1e-3
"""Share of experts with so many tokens that are left out [-]."""


def converted_seconds(layers: Sequence[Linear], known: Rates, drawn: bool) -> float:
    """Time the products of the experts of a rank from their blocks, in whole waves of one block on each SM [s].

    Parameters
    ----------
    layers : sequence of Linear
        Experts by their number of tokens, `groups` of each.
    known : Rates
        Rates of the device for the type of the products.
    drawn : bool
        True if tokens draw their experts, so that those of one spread about the mean of all; False for exact numbers.
    """
    if known.units is None or known.clock is None:
        return 0.0
    visits, hit = (
        sum(each) for each in zip(*((layer.rows * layer.groups, layer.groups) for layer in layers), strict=True)
    )
    mean = visits / hit
    loads = evenly(visits, hit) if drawn else [(layer.rows, layer.groups) for layer in layers]
    most = min(MOST, max(FEWEST, 1 << (ceil(mean) - 1).bit_length()))
    weights = COLUMNS * layers[0].in_features
    conversion = weights / (WEIGHTS_PER_CLOCK * known.clock)
    seconds, rows = 0.0, FEWEST
    # More tokens never take less in larger blocks: as many as fill the smaller ones bound them.
    while rows <= most:
        held = [(tokens if rows == most else min(rows, tokens), times) for tokens, times in loads]
        tiles = sum(times * (expected_tiles(tokens, rows) if drawn else -(-tokens // rows)) for tokens, times in held)
        waves = ceil(tiles * -(-layers[0].out_features // COLUMNS) / known.units)
        product = 2 * rows * weights / (known.sm_matrix or known.peak / known.units)
        seconds, rows = max(seconds, waves * (conversion + product)), 2 * rows
    return seconds


@lru_cache(maxsize=4096)
def expected_tiles(mean: int, rows: int) -> float:
    """Return the expected tiles of `rows` for an expert that has a token; tokens follow Poisson's law, as a normal one.

    >>> expected_tiles(4, 16), round(expected_tiles(16, 16), 2)
    (1.0, 1.45)
    """
    tokens = NormalDist(mean, sqrt(mean))
    found, full = 1.0, rows
    while (share := 1 - tokens.cdf(full + 0.5)) > RARE:
        found, full = found + share, full + rows
    return found
