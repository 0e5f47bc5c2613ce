"""The plugin of pytest, in a run of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITE = """
import sys
sys.path.insert(0, {folder!r})

import numpy as np
from hypothesis import HealthCheck, given, settings

import iomodel
import row_softmax
from iomodel.testing import kernel_calls

SIZES = {{"rows": 20, "in_features": 12, "out_features": 20}}
TILES = {{"block_m": (16,), "block_n": (16,), "block_k": (8,)}}
CUT = {{"rows": "block_m", "in_features": "block_k", "out_features": "block_n"}}


def launch(rows, in_features, out_features, block_m, block_n, block_k):
    x, w = np.ones((rows, in_features), np.float32), np.ones((out_features, in_features), np.float32)
    y = np.empty((rows, out_features), np.float32)
    grid = (-(-rows // block_m), -(-out_features // block_n))
    tile = {{"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}}
    return grid, [x, w, y, rows, out_features, in_features], tile


@settings(max_examples=2, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(call=kernel_calls(SIZES, TILES, tiled=CUT))
def test_drawn(traffic, call):
    counted = traffic.count(row_softmax.gemm, *launch(**call.sizes, **call.meta))
    traffic.check(iomodel.cost("gemm", iomodel.Linear(**call.sizes, dtype="fp32"), call.meta), counted)


SHAPE, TILE = {{"rows": 20, "in_features": 12, "out_features": 20}}, {{"block_m": 16, "block_n": 16, "block_k": 8}}


def test_wrapped(traffic):
    grid, args, tile = launch(**SHAPE, **TILE)
    with traffic.launches() as counts:
        row_softmax.gemm[grid](*args, **tile)
    traffic.check(iomodel.cost("gemm", iomodel.Linear(**SHAPE, dtype="fp32"), TILE), counts[0])


def test_wrong(traffic):
    traffic.check(iomodel.cost("standard", iomodel.Attention(q_len=4, head_dim=2)), {{"reads": {{"Q": 7}}}})
"""


def test_comparisons_fail_and_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["iomodel.integrations.pytest_plugin"]\n', encoding="utf-8")
    (tmp_path / "test_kernel.py").write_text(SUITE.format(folder=str(ROOT / "docs" / "_ext")), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=300)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "counted traffic differs from the predicted" in done.stdout
    summary = next(line for line in done.stdout.splitlines() if line.startswith("iomodel: "))
    counts = int(summary.split()[1])
    assert 2 <= counts <= 3  # Hypothesis may run out of shapes
    assert summary.startswith(f"iomodel: {counts} counts equal their predictions, ")


def test_the_plugin_loads_no_library() -> None:
    code = (
        "import sys, iomodel.integrations.pytest_plugin\n"
        "assert not {'numpy', 'sympy', 'pydantic', 'triton', 'hypothesis', 'torch'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
