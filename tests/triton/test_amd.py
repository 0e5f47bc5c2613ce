"""Pruning for AMD: the forward kernel by the layout of its implementation, against compiles."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import iomodel
from iomodel.triton import pruner
from iomodel.triton.amd import amd_check

FILE = Path(__file__).parents[1] / "measured" / "triton-compile-amd.csv"
DEVICES = {"gfx942": "mi300x", "gfx950": "mi355x"}
CALL = iomodel.Attention(batch=4, heads=16, q_len=4096, head_dim=128)


def test_what_fits_on_amd_is_what_the_compiler_allocates() -> None:
    """No config that fits is dropped, and none that does not fit is kept; registers decide about neither."""
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    verdicts = set()
    for row in csv.DictReader(lines):
        if row["architecture"] in DEVICES:
            call = CALL.model_copy(update={"head_dim": int(row["head_dim"]), "value_dim": int(row["head_dim"])})
            tile = int(row["block_q"]), int(row["block_kv"])
            device = iomodel.hardware(DEVICES[row["architecture"]])
            checked = amd_check(device, call, tile, int(row["warps"]), int(row["stages"]))
            assert checked.fits == (int(row["shared_bytes"]) <= checked.shared_limit), row
            verdicts.add(checked.fits)
    assert verdicts == {True, False}


def test_a_list_for_amd_is_cut_and_ranked() -> None:
    """`waves_per_eu` and `matrix_instr_nonkdim` are told as not read; a config without a time is kept behind."""
    listed = [
        {"BLOCK_M": m, "BLOCK_N": n, "num_warps": 4, "num_stages": s, "waves_per_eu": 2, "matrix_instr_nonkdim": 16}
        for m, n, s in product((64, 256), (32, 128), (1, 2))
    ]
    keep = pruner(CALL, "mi300x")
    cut = keep.pruned(listed)
    assert cut.unread == ("matrix_instr_nonkdim", "waves_per_eu")
    assert not cut.unjudged
    assert len(cut.kept) + cut.too_large == cut.given
    assert cut.too_large
    times = [each.seconds for each in keep.judge(cut.kept, {}) if each.timed]
    assert times == sorted(times)
    assert keep.pruned([{"BLOCK_M": 64, "BLOCK_N": 64, "num_stages": 9}]).unjudged  # stages without a layout
