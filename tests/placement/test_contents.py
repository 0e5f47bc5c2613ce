"""The buffers of a block add up to what a check says that it takes."""

from dataclasses import replace
from math import ceil

import pytest

import iomodel
from iomodel.algorithms import discovered
from iomodel.placement.contents import contents

DEVICES = ("a100-sxm4-80gb", "h100-sxm5", "b200", "mi300x")
TILES = ((64, 64), (128, 128), (128, 48), (16, 256))
CASES = [
    (name, device, kernels, direction)
    for name, declaration in sorted(discovered().items())
    if declaration.answers == "attention"
    for device in DEVICES
    for kernels in iomodel.list_implementations(name, device)
    for direction in declaration.directions
    if direction in iomodel.kernels.implementation(name, kernels).residency
]


def compared(name, device, kernels, direction):
    """Hold the buffers of some tiles against the check of each; count the tiles."""
    declared = iomodel.kernels.implementation(name, kernels)
    most = declared.front_end.queries or 4096
    w = iomodel.Attention(q_len=most, kv_len=4096, head_dim=128, direction=direction)
    layouts = declared.residency[direction]
    launches = sorted({(layout.warps[0], layout.stages[0]) for layout in layouts})
    count = 0
    for (query, key), (warps, stages) in zip(TILES, launches * len(TILES), strict=False):
        tiles = {"block_q": query, "block_kv": key, "warps": warps, "stages": stages}
        try:
            outcome = iomodel.check(name, w, device, tiles, implementation=kernels)
        except iomodel.InputError:  # no layout of these warps runs there
            continue
        held = contents(name, w, device, tiles, implementation=kernels)
        assert held.check == replace(outcome, nearest=())
        used = {resource: use.used for resource, use in outcome.resources.items()}
        assert ceil(sum(part.size for part in held.shared)) == used["shared memory"]
        assert ceil(sum(part.size for part in held.tensor) / 512) == used.get("tensor memory", 0)
        most = max((sum(part.size for part in phase) for phase in held.registers), default=0)
        assert ceil(most - 1e-9) + held.overhead == used["registers"]
        count += 1
    return count


def test_buffers_add_up_to_the_check():
    counts = {case: compared(*case) for case in CASES}
    assert sum(counts.values()) > len(CASES)
    assert {kernels for (_, _, kernels, _), count in counts.items() if count} == {case[2] for case in CASES}


def test_the_shipped_tile_is_the_default():
    w = iomodel.Attention(q_len=4096, head_dim=128, mask="causal")
    held = contents("flash3", w, "h100-sxm5")
    shipped = iomodel.solve("flash3", w, "h100-sxm5").certificate.shipped
    assert held.check.tiles == shipped.tiles


def test_scores_in_two_types_are_told_apart():
    held = contents("flash3", iomodel.Attention(q_len=4096, head_dim=128), "h100-sxm5")
    assert [[part.name for part in phase] for phase in held.registers] == [["S", "S in bf16", "O"]]


def test_what_has_no_layout_is_refused():
    w = iomodel.Attention(q_len=64, head_dim=16)
    with pytest.raises(iomodel.InputError, match=r"^implementation: 'textbook' given; allowed: one whose kernels"):
        contents("standard", w, "h100-sxm5")
    with pytest.raises(iomodel.InputError, match=r"^tiles: none given; allowed: a tile, since triton ships none"):
        contents("flash2", w, "h100-sxm5", implementation="triton")
