"""Linear layers in comparisons, sweeps and arrays of problems: the answers of single layers, refusals in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import IOModelError
from iomodel.studies.sweeps.file import plan_file
from iomodel.studies.sweeps.sweep import sweep
from tests.support.strategies import fraction_of_examples

TILES = {"block_m": 64, "block_n": 48, "block_k": 16}
SIZED = {"in_features": 96, "out_features": 80}


@pytest.mark.parametrize("arguments", [{"sram_bytes": 40_000}, {"hardware": "h100-sxm5"}], ids=str)
def test_a_comparison_has_the_answer_of_the_one_algorithm(arguments: dict[str, Any]) -> None:
    layer = iomodel.Linear(rows=300, **SIZED, gated=True)
    compared = iomodel.compare(layer, **arguments)
    if "hardware" in arguments:
        assert compared.best == iomodel.estimate("gemm", layer, "h100-sxm5")
    else:
        assert compared.best == iomodel.solve("gemm", layer, **arguments)
    assert type(compared).from_json(compared.to_json()) == compared


features = st.fixed_dictionaries(
    {
        "weight_dtype": st.sampled_from(["bf16", "fp8", "int4"]),
        "out_dtype": st.sampled_from(["bf16", "fp32"]),
        "gated": st.booleans(),
        "groups": st.integers(1, 3),
    }
)


@fraction_of_examples(2)
@given(
    rows=st.lists(st.integers(1, 300), min_size=1, max_size=3, unique=True),
    widths=st.lists(st.integers(1, 200), min_size=1, max_size=2, unique=True),
    budgets=st.lists(st.integers(1, 40_000), min_size=1, max_size=2),
    feature=features,
)
def test_many_layers_have_the_tiles_of_each(
    rows: list[int], widths: list[int], budgets: list[int], feature: dict[str, Any]
) -> None:
    budget = np.array(budgets)[:, None, None]
    many = {"rows": rows, "out_features": np.array(widths)[:, None], "in_features": 70, **feature}
    found = iomodel.solve_array("gemm", sram_bytes=budget, **many, infeasible="mark")
    assert found.shape == (len(budgets), len(widths), len(rows))
    assert type(found).from_json(found.to_json()) == found
    for i, j, k in np.ndindex(*found.shape):
        layer = iomodel.Linear(rows=rows[k], in_features=70, out_features=widths[j], **feature)
        try:
            one = iomodel.solve("gemm", layer, sram_bytes=budgets[i])
        except iomodel.InfeasibleError:
            assert not found.feasible[i, j, k]
            continue
        assert {name: int(sizes[i, j, k]) for name, sizes in found.tiles.items()} == one.tiles
        assert found.hbm_bytes[i, j, k] == one.cost.hbm_bytes
        assert found.lower_bound[i, j, k] == one.certificate.lower_bound.bytes
        assert found[(i, j, k)] == one
    if found.feasible.all():
        assert np.array_equal(found.cost.hbm_bytes, found.hbm_bytes)


@pytest.mark.parametrize("solving", [False, True])
def test_a_sweep_has_the_answer_of_each_layer(solving: bool) -> None:
    pytest.importorskip("xarray")
    wanted = {"solve": True, "sram_bytes": [3000, 40_000]} if solving else TILES
    grid = {"rows": [1, 65, 130], "weight_dtype": ["bf16", "int4"], "bias": [True, False]}
    found = sweep("gemm", quantities=["hbm_bytes", "flops", "reads_W"], **grid, **SIZED, **wanted)
    points = found.hbm_bytes.stack(point=[*found.sizes]).point.values
    assert len(points) == 12 * (2 if solving else 1)
    for values in points:
        at = dict(zip(found.sizes, values, strict=True))
        layer = iomodel.Linear(
            rows=int(at["rows"]), weight_dtype=str(at["weight_dtype"]), bias=bool(at["bias"]), **SIZED
        )
        if solving:
            one = iomodel.solve("gemm", layer, sram_bytes=int(at["sram_bytes"])).cost
        else:
            one = iomodel.cost("gemm", layer, TILES)
        here = found.sel(at)
        assert (here.hbm_bytes, here.flops, here.reads_W) == (one.hbm_bytes, one.flops, one.reads["W"])
        assert not solving or {name: int(here[name]) for name in one.tiles} == one.tiles


@pytest.mark.parametrize(
    ("layer", "tiles", "options"),
    [
        (
            iomodel.Linear(rows=16, in_features=4096, out_features=4096),
            {"block_m": 16, "block_n": 128, "block_k": 64},
            {},
        ),
        (iomodel.Linear(rows=900, in_features=512, out_features=700, gated=True), TILES, {}),
        (
            iomodel.Linear(rows=9, in_features=512, out_features=64, weight_dtype="int4", scale_block=32),
            None,
            {"splits": 4},
        ),
        (iomodel.Linear(rows=64, in_features=300, out_features=96, bias=True, groups=3), TILES, {"splits": 2}),
    ],
)
def test_a_diagnosis_of_a_layer_adds_up(layer: Any, tiles: Any, options: Any) -> None:
    timed = iomodel.estimate("gemm", layer, "h100-sxm5", tiles, **options)
    found = iomodel.diagnose("gemm", layer, "h100-sxm5", 3 * timed.seconds, tiles, **options)
    assert found.estimate == timed
    assert sum(tensor.requested_bytes for tensor in found.redundancy) == found.cost.hbm_bytes == timed.requested_bytes
    assert sum(tensor.compulsory_bytes for tensor in found.redundancy) == timed.compulsory_bytes
    for remedy in found.remedies:
        assert remedy.gain == pytest.approx(timed.seconds / remedy.model_seconds)
        assert remedy.gain > 1
    assert type(found).from_json(found.to_json()) == found


def test_idle_multiprocessors_are_given_a_part_of_the_sum() -> None:
    layer = iomodel.Linear(rows=16, in_features=16384, out_features=1024)
    tiles = {"block_m": 16, "block_n": 64, "block_k": 64}
    found = iomodel.diagnose("gemm", layer, "h100-sxm5", 4e-5, tiles)
    assert found.grid.blocks == 16
    remedy = next(remedy for remedy in found.remedies if "splits" in remedy.options)
    again = iomodel.estimate("gemm", layer, "h100-sxm5", remedy.tiles, **remedy.options)
    assert again.seconds == pytest.approx(remedy.model_seconds)


def test_a_sweep_of_layers_is_read_from_a_file(tmp_path: Any) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "algorithm: gemm\nrows: {from: 64, to: 256, factor: 2}\nin_features: 96\nout_features: 80\n"
        "gated: [true, false]\nblock_m: 64\nblock_n: 48\nblock_k: 16\n"
    )
    assert plan_file(path).shape == (3, 2)


LAYER = {"rows": [64, 65], **SIZED}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sweep("gemm", **LAYER, **TILES, q_len=8), "field of gemm: 'q_len' is unknown"),
        (
            lambda: sweep("flash2", q_len=8, head_dim=8, rows=8, block_q=8, block_kv=8),
            "field of flash2: 'rows'",
        ),
        (lambda: sweep(["gemm", "flash2"], **LAYER, **TILES), "algorithm: gemm given, for linear, and flash2"),
        (lambda: sweep("add_norm", rows=8), "algorithm: add_norm given, for elementwise; allowed"),
        (lambda: iomodel.solve_array("gemm", sram_bytes=9000, **LAYER, q_len=8), "option of gemm: 'q_len' is unknown"),
        (lambda: iomodel.solve_array("gemm", sram_bytes=9000, **LAYER, batch=2), "option of gemm: 'batch' is unknown"),
        (lambda: iomodel.solve_array("gemm", sram_bytes=9000, **LAYER, min_block_kv=16), "tile of gemm: 'block_kv'"),
        (lambda: iomodel.cost_array("gemm", **LAYER, **TILES, heads=8), "argument for gemm: 'heads' is unknown"),
        (lambda: iomodel.cost_array("gemm", **LAYER, **TILES, mask="causal"), "argument for gemm: 'mask' is unknown"),
        (lambda: iomodel.compare(iomodel.Linear(rows=1, **SIZED), sram_bytes=9000, lse=False), "option of gemm: 'lse'"),
        (lambda: iomodel.diagnose("gemm", 8, "h100-sxm5", 1.0), "workload: 8 given; allowed: an iomodel.Attention or"),  # type: ignore[arg-type]
        (lambda: iomodel.compare(8, sram_bytes=9000), "workload: 8 given; allowed: an iomodel.Attention"),  # type: ignore[arg-type]
    ],
)
def test_what_concerns_attention_alone_is_refused_in_one_line(call: Any, message: str) -> None:
    pytest.importorskip("xarray")
    with pytest.raises(IOModelError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
