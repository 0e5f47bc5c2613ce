"""Linear layers on the command line: the same commands, the same answers as the library, refusals in one line."""

from __future__ import annotations

import json
import shlex

import pytest

import iomodel
from iomodel.cli.app import main

LAYER = "--rows 300 --in-features 512 --out-features 384 --weight-dtype fp8"
W = iomodel.Linear(rows=300, in_features=512, out_features=384, weight_dtype="fp8")
TILES = {"block_m": 64, "block_n": 128, "block_k": 32}
SIZED = "--block-m 64 --block-n 128 --block-k 32"


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Run a command, and return the JSON object that it prints."""
    assert main([*shlex.split(line), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (f"cost gemm {LAYER} {SIZED}", lambda: iomodel.cost("gemm", W, TILES)),
        (f"cost gemm {LAYER} {SIZED} --splits 3", lambda: iomodel.cost("gemm", W, TILES, splits=3)),
        (f"tiles gemm {LAYER} --sram-bytes 40000", lambda: iomodel.solve("gemm", W, sram_bytes=40_000)),
        (f"tiles gemm {LAYER} --hardware a100-sxm4-80gb", lambda: iomodel.solve("gemm", W, "a100-sxm4-80gb")),
        (f"check gemm {LAYER} {SIZED} --hardware l4", lambda: iomodel.check("gemm", W, "l4", TILES)),
        (f"estimate gemm {LAYER} --hardware h100-sxm5", lambda: iomodel.estimate("gemm", W, "h100-sxm5")),
        (f"compare {LAYER} --sram-bytes 40000", lambda: iomodel.compare(W, sram_bytes=40_000)),
        (f"compare {LAYER} --hardware h100-sxm5", lambda: iomodel.compare(W, "h100-sxm5")),
        (
            f"diagnose gemm {LAYER} {SIZED} --hardware h100-sxm5 --time 50us",
            lambda: iomodel.diagnose("gemm", W, "h100-sxm5", 50e-6, TILES),
        ),
        ("formula gemm --gated --scaled", lambda: iomodel.expressions("gemm", gated=True, scaled=True)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_answers_as_the_library(line, answer, capsys) -> None:
    assert printed(line, capsys) == answer().to_dict()


def test_a_gated_layer_with_scales_is_read(capsys) -> None:
    layer = (
        "--rows 8 --in-features 64 --out-features 48 --groups 3 --scale-block 32 --gated --dtype fp8 --out-dtype bf16"
    )
    data = printed(f"cost gemm {layer} --block-m 8 --block-n 16 --block-k 16", capsys)
    fields = {"rows": 8, "in_features": 64, "out_features": 48, "groups": 3, "scale_block": 32, "gated": True}
    whole = iomodel.Linear(**fields, dtype="fp8", out_dtype="bf16")
    assert data["workload"] == whole.to_dict()


def test_a_trace_of_a_layer_has_its_events(capsys) -> None:
    small = iomodel.Linear(rows=64, in_features=32, out_features=32)
    tiles = {"block_m": 32, "block_n": 32, "block_k": 16}
    line = "trace gemm --rows 64 --in-features 32 --out-features 32 --block-m 32 --block-n 32 --block-k 16"
    assert printed(line, capsys) == iomodel.trace("gemm", small, tiles=tiles).to_dict(20)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cost gemm --rows 300", "in_features: not given, but required"),
        ("cost gemm", "rows: not given, but required"),
        (
            f"cost gemm {LAYER} --q-len 8",
            "q_len: given for a linear layer; did you mean 'rows'? allowed: rows, in_features",
        ),
        ("cost chunked_scan --seq-len 8 --head-dim 64", "q_len: given for a recurrence; did you mean 'tokens'? allow"),
        (
            "tiles split_mlp --rows 8 --in-features 8 --hidden 9",
            "--hidden: no option of iomodel tiles; did you mean --hidden-features",
        ),
        (f"cost gemm {LAYER} --mask causal", "mask: given for a linear layer"),
        (f"cost gemm {LAYER} {SIZED} --packed", "option of gemm: 'packed' is unknown"),
        (f"cost flash2 {LAYER}", "algorithm: flash2 given, for attention; allowed for linear: gemm"),
        (f"crossover gemm flash2 {LAYER} --over batch", "workload: "),
        (f"plot feasible gemm {LAYER} --output x.svg", "workload: "),
        (f"compare {LAYER} --sram-bytes 40000 --no-lse", "option of gemm: 'lse' is unknown; allowed: splits"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(line: str, message: str, capsys) -> None:
    assert main(shlex.split(line)) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"iomodel: {message}")
    assert said.count("\n") == 1
