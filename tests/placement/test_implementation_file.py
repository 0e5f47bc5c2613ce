"""Implementations in YAML files."""

from __future__ import annotations

from pathlib import Path

import pytest

import iomodel
from iomodel.placement.implementation_file import read_implementation
from tests.support.inside import TIE

W = iomodel.Attention(heads=8, kv_heads=2, q_len=2048, head_dim=128)
TEXT = """
name: my-kernel
title: a kernel of mine
cite: none
residency:
  forward:
    - title: Q, K, V in shared memory; S and O in registers
      cite: none
      shared: [Q, {tensor: K, copies: stages}, {tensor: V, copies: stages}]
      phases: [[S, O]]
      overhead: 48
searched: {packed: [false, true]}
tiles:
  - {tiles: {block_q: 64, block_kv: 64, warps: 4, stages: 1}, head_dim: 128, value_dim: 128}
"""


def file(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_is_taken_where_a_name_is(tmp_path: Path) -> None:
    """This one lays tiles out as FlashAttention-2 does, and ships a tile of its own."""
    path, shipped = file(tmp_path, TEXT), iomodel.kernels.implementation("flash2", "flash-attention-2")
    mine = read_implementation(path)
    assert mine.residency["forward"][0].shared == shipped.residency["forward"][0].shared
    assert mine.residency["forward"][0].phases == shipped.residency["forward"][0].phases
    best, known = (iomodel.solve("flash2", W, "a100-sxm4-80gb", implementation=k) for k in (path, shipped))
    tile = {"block_q": 64, "block_kv": 64, "warps": 4, "stages": 1}
    assert (best.implementation, best.tiles) == ("my-kernel", tile)  # the one that it ships, as fast as the best
    assert best.seconds == pytest.approx(known.seconds, rel=TIE)
    assert iomodel.estimate("flash2", W, "a100-sxm4-80gb", implementation=path).tiles == tile
    assert iomodel.check("flash2", W, "a100-sxm4-80gb", tile, path).fits


def test_tiles_may_take_turns_in_one_place(tmp_path: Path) -> None:
    text = TEXT.replace("[Q, {tensor: K", "[{reused: [[Q], [{tensor: O, dtype: io}]]}, {tensor: K")
    mine = read_implementation(file(tmp_path, text))
    wide = {"block_q": 128, "block_kv": 64, "warps": 4, "stages": 1}
    checks = [iomodel.check("flash2", W, "a100-sxm4-80gb", wide, kernel) for kernel in (mine, "flash-attention-2")]
    assert checks[0].resources["shared memory"] == checks[1].resources["shared memory"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name: my-kernel", "names: my-kernel"), "mine.yaml: "),
        (("[Q, {tensor: K", "[Q, {tensor: X"), "mine.yaml: shared: tensor: 'X' is unknown"),
        (("copies: stages}, {", "copies: many}, {"), "mine.yaml: shared: 'many' given; allowed: an integer, or stages"),
        (("overhead: 48", "overhead: fast"), "overhead: 'fast' given; allowed: an integer"),
        (("shared: [Q, ", "shared: [7, "), "shared: 7 given; allowed: a tensor"),
        (("phases: [[S, O]]", "phases: [S]"), "phases: 'S' given; allowed: a list of tensors"),
        (("  forward:\n", "  sideways:\n"), "residency: .* given; allowed: a tuple of Residency per direction"),
    ],
)
def test_a_fault_in_a_file_is_named_in_one_line(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in TEXT
    path = file(tmp_path, TEXT.replace(*change))
    with pytest.raises(iomodel.errors.SpecError, match=message) as caught:
        iomodel.solve("flash2", W, "a100-sxm4-80gb", implementation=path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(iomodel.errors.SpecError, match=r"nowhere\.yaml: cannot be read"):
        iomodel.check("flash2", W, "a100-sxm4-80gb", {"block_q": 64, "block_kv": 64}, "nowhere.yaml")
