"""Tiles of linear layers ranked in arrays: the times and the choice are those of one tile at a time."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import hardware
from iomodel.timing.layer_clock import ROWS, LayerClock, LayerNumbers
from tests.support.inside import GemmTile, candidates, rates

DEVICES = ("h100-sxm5", "b200", "mi300x", "l4", "tpu-v5e")
layers = st.builds(
    iomodel.Linear,
    rows=st.sampled_from([*chain(*ROWS)]) | st.integers(1, 5000),
    in_features=st.integers(1, 64).map(lambda n: 128 * n),
    out_features=st.integers(1, 20_000),
    groups=st.sampled_from([1, 3]),
    bias=st.booleans(),
    weight_dtype=st.sampled_from(["bf16", "int8", "int4"]),
)


@given(st.sampled_from(DEVICES), layers)
def test_the_ranking_chooses_the_fastest_of_all_tiles(name, layer):
    device = hardware(name)
    clock = LayerClock(device)
    kernels, tile = clock.fastest((layer,))
    units = rates(device, "bf16").units
    each = []
    for one in candidates(device, (layer,), units):
        sizes = dict(one.sizes)
        splits = sizes.pop("splits")
        each.append(sum(kernel.seconds for kernel in clock.fastest((layer,), sizes, splits)[0]))
    assert sum(kernel.seconds for kernel in kernels) == min(each)
    assert tile.sizes == list(candidates(device, (layer,), units))[each.index(min(each))].sizes


@given(st.sampled_from(DEVICES), st.lists(layers, min_size=2, max_size=5))
def test_layers_ranked_together_have_the_tiles_of_each_alone(name, asked):
    device = hardware(name)
    together = LayerClock(device)
    together.rank(asked, "bf16")
    ranked = dict(together.ranked)
    for layer in asked:
        alone = LayerClock(device).fastest((layer,), products="bf16")
        assert together.fastest((layer,), products="bf16") == alone
    assert together.ranked == ranked


@pytest.mark.parametrize("name", DEVICES)
def test_many_rows_are_ranked_as_each_alone(name):
    device, known = hardware(name), rates(hardware(name), "bf16")
    parts = [iomodel.Linear(rows=rows, in_features=4096, out_features=6144) for rows in (1, 48, 4096)]
    points = [(layer, tile) for layer in parts for tile in candidates(device, (layer,), known.units)]
    clock = LayerClock(device)

    def seconds(points):
        rows = np.array([layer.rows for layer, _ in points])
        layers = LayerNumbers(parts[0], {**parts[0].numbers, "rows": rows})
        names = GemmTile.__dataclass_fields__
        tiles = GemmTile(*(np.array([getattr(tile, name) for _, tile in points]) for name in names))
        return sum(kernel for kernel, _, _ in clock.kernels_at(layers, tiles)).tolist()

    assert seconds(points) == [seconds([point])[0] for point in points]
