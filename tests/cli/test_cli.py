"""The command line: answers, one-line errors, exit codes, nothing but JSON after --json, and the pages that show it."""

import json
import os
import py_compile
import re
import shlex
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

import iomodel
from iomodel import compare
from iomodel.algorithms import algorithm, discovered, exact_algorithms
from iomodel.cli import shared_options as options
from iomodel.cli.app import main
from iomodel.cli.commands import COMMANDS
from iomodel.cli.masks import BELONGS, MASKS
from iomodel.cli.shared_options import ALGORITHM, KIND, MASK, MEANINGS, TILE, WORKLOAD
from iomodel.nests import ALPHABET
from tests.support import delta_rule
from tests.support.inside import (
    ATTENTION_TILES,
    FEATURES,
    GEMM_TILES,
    KINDS,
    NUMBERS,
    RARE,
    SCAN_TILES,
    TILE_NAMES,
    Elementwise,
    readable,
    shared,
    stacked,
)
from tests.support.integers import number
from tests.support.strategies import one_in

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("plain_terminal")
SHAPE = "--q-len 512 --head-dim 64"
WINDOW = iomodel.Window(left=3, right=0)


@pytest.fixture
def run(capsys):
    """Run one command line; give its exit code, stdout and stderr."""

    def call(line):
        code = main(line if isinstance(line, list) else shlex.split(line))
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def answer(run):
    """Run a command that must succeed in silence on stderr; give its stdout."""

    def call(line):
        code, out, err = run(line)
        assert (code, err) == (0, "")
        return out

    return call


def process(line, **more):
    """Run one true `python -m iomodel`."""
    given = {"capture_output": True, "text": True, "timeout": 60, "cwd": ROOT, **more}
    return subprocess.run([sys.executable, "-m", "iomodel", *shlex.split(line)], check=False, **given)


ANSWERS = {
    f"tiles flash2 --hardware h100-sxm5 {SHAPE}": "binding constraint",
    f"cost flash2 {SHAPE} --block-q 128 --block-kv 64": "peak HBM allocation",
    f"compare --hardware h100-sxm5 {SHAPE}": "relative",
    "formula flash2 --mask causal": "FloorSum(n, m, a, b)",
    "formula flash2 --mask window --window-left 4095 --window-right 0": "W_l  keys visible to the left",
    "formula flash2 --direction backward --no-deterministic": "g = Min(1, G - 1)",
    "formula split_kv --paged --head-scales": "with head_scales, paged",
    "formula flash2 --mask documents --document-lengths 3,5": "c_1 = area(query; B_r, B_c, 1)",
    f"cost flash2 {SHAPE} --direction backward --block-q 64 --block-kv 64": "atomic adds",
    f"trace flash2 {SHAPE} --hardware sim-a100": "share of time on HBM",
    "algorithms": "arXiv:2407.08608",
    f"check flash2 {SHAPE} --hardware h100-sxm5 --block-q 128 --block-kv 64 --warps 4": "registers",
    "hardware": "h100-sxm5",
    "hardware h100-sxm5": "memory.sram.per_block",
}


@pytest.mark.parametrize("line", ANSWERS)
def test_answer_for_people(answer, line):
    out = answer(line)
    assert ANSWERS[line] in out
    assert "\x1b" not in out
    assert all(row == row.rstrip() for row in out.splitlines())


@pytest.mark.parametrize("line", [*ANSWERS, "formula flash1 --latex"])
def test_json_is_one_object_and_nothing_else(answer, line):
    assert isinstance(json.loads(answer(f"{line} --json")), dict)


def test_choices_are_printed_as_source_text(answer, run):
    """Triton's by the rules of its compiler, others from the layouts of a kernel."""
    shape = "--hardware a100-sxm4-80gb --q-len 2048 --head-dim 128 --heads 8"
    triton = answer(f"tiles flash2 {shape} --emit triton")
    assert triton.splitlines()[0] == "configs = ["
    assert 'triton.Config({"BLOCK_M": ' in triton
    assert "cute::Shape<" in answer(f"tiles flash2 {shape} --emit cute")
    assert json.loads(answer(f"tiles flash2 {shape} --emit json"))
    code, _, err = run(f"tiles flash3 {shape} --emit triton")
    assert (code, err.startswith("iomodel: emit: 'triton' given for flash3; allowed: ")) == (2, True)
    code, _, err = run("tiles flash2 --q-len 2048 --head-dim 128 --emit triton")
    assert (code, err.startswith("iomodel: hardware: not given")) == (2, True)


def test_no_option_of_source_text_is_ignored(answer, run):
    """`--top` cuts the list, and an option without effect is refused in one line."""
    shape = "tiles flash2 --hardware h100-sxm5 --q-len 2048 --head-dim 128 --heads 8"
    assert answer(f"{shape} --emit triton --top 3").count("triton.Config(") == 3
    assert answer(f"{shape} --emit cute --top 2").count("cute::Shape<") == 2
    assert len(json.loads(answer(f"{shape} --emit json --top 1"))) == 1
    assert answer(f"{shape} --emit triton --implementation triton") == answer(f"{shape} --emit triton")
    assert "cute::_128, cute::_48" not in answer(f"{shape} --emit cute --min-block-kv 64")
    refused = {
        "triton --min-block-kv 64": "min_block_kv: given with emit 'triton'; allowed: ",
        "triton --implementation xformers": "implementation: 'xformers' given with emit 'triton'; allowed: 'triton'",
        "cute --objective traffic": "objective: 'traffic' given with emit; allowed: 'time'",
        "cute --epsilon 0.1": "epsilon: given with emit 'cute'; allowed: ",
        "ptx": "emit: 'ptx' is unknown; allowed: triton, helion, flex-attention, cute, json",
    }
    for words, message in refused.items():
        code, _, err = run(f"{shape} --emit {words}")
        assert (code, err.startswith(f"iomodel: {message}")) == (2, True), err


def test_source_text_for_amd_is_that_of_its_triton_kernel(answer):
    text = answer("tiles flash2 --hardware mi300x --q-len 2048 --head-dim 128 --heads 8 --emit triton")
    assert 'triton.Config({"BLOCK_M": ' in text


def test_tiles_and_cost_say_what_the_library_says(answer):
    shape = "--batch 2 --heads 8 --kv-heads 2 --q-len 300 --kv-len 500 --head-dim 64 --value-dim 32 --dtype fp16"
    w = iomodel.Attention(
        batch=2, heads=8, kv_heads=2, q_len=300, kv_len=500, head_dim=64, value_dim=32, dtype="fp16", mask="causal"
    )
    solved = json.loads(answer(f"tiles flash2 {shape} --mask causal --sram-bytes '64 KiB' --no-lse --packed --json"))
    expected = iomodel.solve("flash2", w, sram_bytes=65536, lse=False, packed=True)
    assert solved == json.loads(expected.to_json())
    bounded = f"tiles flash2 {shape} --mask causal --sram-elements 40000 --alignment 8 --min-block-kv 32 --epsilon 0.1"
    expected = iomodel.solve("flash2", w, sram_elements=40000, alignment=8, min_block_kv=32, epsilon=0.1)
    assert json.loads(answer(f"{bounded} --json")) == json.loads(expected.to_json())
    counted = json.loads(
        answer(f"cost flash2 {shape} --mask causal --direction forward --block-q 7 --block-kv 9 --json")
    )
    assert counted == json.loads(iomodel.cost("flash2", w, {"block_q": 7, "block_kv": 9}).to_json())


@pytest.mark.parametrize(
    ("typed", "mask"),
    [
        ("", "full"),
        ("--mask causal --align bottom-right", "causal"),
        ("--mask causal --align top-left", iomodel.Window(right=0, align="top-left")),
        ("--mask window --window-left 5", iomodel.Window(left=5)),
        ("--mask window --window-left 0 --window-right 2", iomodel.Window(left=0, right=2)),
        ("--mask window --window-right 1 --align top-left", iomodel.Window(right=1, align="top-left")),
        ("--window-left 5", iomodel.Window(left=5)),
        ("--window-left 5 --align top-left", iomodel.Window(left=5, align="top-left")),
        ("--mask causal --window-left 5", iomodel.Window(left=5, right=0)),
        ("--mask causal --window-left 5 --window-right 0", iomodel.Window(left=5, right=0)),
    ],
)
def test_masks(answer, typed, mask):
    out = json.loads(answer(f"cost flash2 --q-len 30 --kv-len 50 --head-dim 8 --block-q 4 --block-kv 4 --json {typed}"))
    w = iomodel.Attention(q_len=30, kv_len=50, head_dim=8, mask=mask)
    assert out == json.loads(iomodel.cost("flash2", w, {"block_q": 4, "block_kv": 4}).to_json())


TILED = "--head-dim 8 --block-q 4 --block-kv 4 --json"


def counted(answer, line):
    return json.loads(answer(f"cost flash2 {TILED} {line}"))


def expected(call, **fields):
    made = iomodel.cost("flash2", call(head_dim=8, **fields), {"block_q": 4, "block_kv": 4})
    return json.loads(made.to_json())


def test_masks_of_data(answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lengths.txt").write_text("10\n 20,\n\n")
    np.save("blocks.npy", np.eye(4, 5, dtype=int))
    for typed, causal in (("10,20", False), ("'10, 20' --document-causal", True), ("@lengths.txt", False)):
        line = f"--q-len 30 --mask documents --document-lengths {typed}"
        mask = iomodel.Documents([10, 20], causal=causal)
        assert counted(answer, line) == expected(iomodel.Attention, q_len=30, mask=mask)
        implied = line.replace("--mask documents", "--mask causal" if causal else "").replace("--document-causal", "")
        assert counted(answer, implied) == counted(answer, line)
    line = "--q-len 30 --kv-len 50 --mask blocks --block-mask blocks.npy --mask-block-q 8 --mask-block-kv 11"
    mask = iomodel.BlockMask(np.eye(4, 5, dtype=bool), 8, 11)
    assert counted(answer, line) == expected(iomodel.Attention, q_len=30, kv_len=50, mask=mask)
    formula = json.loads(answer("formula flash2 --mask documents --document-lengths 3,5 --json"))
    assert formula["reads"]["K"] == "B*H*d*inner_rows(query; B_r, B_c, 1)"


@pytest.mark.parametrize(
    ("typed", "kv_lens"),
    [
        ("--q-lens 100,1", [100, 1]),
        ("--q-lens 100,1 --kv-lens '100, 900'", [100, 900]),
        ("--q-lens '100 100, 1 900'", [100, 900]),
        ("--q-lens @numbers.txt --kv-lens 100,900", [100, 900]),
        ("--q-lens @pairs.txt", [100, 900]),
    ],
)
def test_sequences_of_different_lengths(answer, tmp_path, monkeypatch, typed, kv_lens):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.txt").write_text("\ufeff100,\n1\n")
    (tmp_path / "pairs.txt").write_text("100 100\r\n1\t900\r\n")
    assert counted(answer, typed) == expected(iomodel.VarlenAttention, q_lens=[100, 1], kv_lens=kv_lens)


FEATURED = {
    "--bias --alibi --sinks": {"bias": True, "alibi": True, "sinks": True},
    "--softcap 30 --dropout 0.5": {"softcap": 30.0, "dropout": 0.5},
    "--kv-dtype fp8 --kv-scales token --page-size 16": {"kv_dtype": "fp8", "kv_scales": "token", "page_size": 16},
    "--latent --value-dim 6 --heads 2 --kv-heads 1": {"latent": True, "value_dim": 6, "heads": 2, "kv_heads": 1},
    "--direction both --dropout .25": {"direction": "both", "dropout": 0.25},
}


@pytest.mark.parametrize("typed", FEATURED)
def test_features(answer, typed):
    assert counted(answer, f"--q-len 30 {typed}") == expected(iomodel.Attention, q_len=30, **FEATURED[typed])


def test_formulas_have_every_feature(answer):
    for name in FEATURES:
        given = f"formula flash2 --{name.replace('_', '-')} --json"
        assert json.loads(answer(given)) == iomodel.expressions("flash2", **{name: True}).to_dict()
    both = json.loads(answer("formula flash2 --direction both --dropout --deterministic --dq-buffers 3 --json"))
    made = iomodel.expressions("flash2", direction="both", dropout=True, deterministic=True, dq_buffers=3)
    assert both == made.to_dict()


def test_a_tile_of_a_later_pass_follows(answer):
    line = f"cost flash2 --q-len 64 --direction both {TILED}"
    assert json.loads(answer(line))["tiles"]["bwd_block_q"] == 4
    assert json.loads(answer(f"{line} --bwd-block-q 9"))["tiles"]["bwd_block_q"] == 9


def test_algorithms_are_listed(answer):
    listed = json.loads(answer("algorithms --json"))
    assert list(listed) == [name for kind in KINDS for name in iomodel.list_algorithms(kind)]
    assert {found["answers"] for found in listed.values()} == {*KINDS}
    assert listed["flash2"]["options"]["forward"] == {"lse": True, "packed": False}
    assert listed["two_pass"]["directions"] == ["backward"]
    assert all(found["cite"] == discovered()[name].cite for name, found in listed.items())
    assert all(name in answer("algorithms") for name in listed)


def test_every_tile_field_option_and_mask_of_the_library_can_be_typed():
    assert {p.name for p in TILE} == {entry.name for entry in (*ATTENTION_TILES, *GEMM_TILES, *SCAN_TILES)}
    kinds = (
        iomodel.Attention,
        iomodel.VarlenAttention,
        iomodel.Linear,
        iomodel.MLP,
        iomodel.Experts,
        iomodel.CrossEntropy,
        iomodel.Recurrence,
        Elementwise,
    )
    fields = {name for kind in kinds for name in kind.model_fields}
    of_masks = {p.name for p in MASK}
    assert {p.name for p in WORKLOAD} == fields | of_masks
    of_others = {"gated", "scaled", "gradients", *algorithm("chunked_scan").features}
    assert {p.name for p in KIND} == {"direction", *FEATURES} | of_others | of_masks
    assert {"full", "causal", "window", "documents", "blocks"} == set(MASKS)
    assert of_masks == {"mask", "align"}.union(*BELONGS.values())


def test_letters_that_a_process_declares_are_no_options():
    chunk, tile = delta_rule.DELTA_RULE.symbols
    assert {tile.name} <= TILE_NAMES
    assert {chunk.name} <= NUMBERS
    fresh = run_path(options.__file__)  # as where it is imported after the declaration
    assert [p.name for p in fresh["TILE"]] == [p.name for p in TILE]
    assert fresh["MEANINGS"] == MEANINGS


def test_a_thousand_is_told_from_1024(run, answer):
    code, out, err = run("cost standard --q-len 1k --head-dim 64")
    assert (code, err) == (0, "note: q_len: 1k is 1,000; 1K is 1,024\n")
    assert out == answer("cost standard --q-len 1000 --head-dim 64")
    assert answer("cost standard --q-len 1K --head-dim 64") == answer("cost standard --q-len 1024 --head-dim 64")


def test_every_option_says_what_it_does_and_who_takes_it(answer):
    found = [known for known in discovered().values() if known.answers != "elementwise"]  # which have no command
    options = {name for known in found for name in known.options} | {"packed"}
    options |= {name for known in found for way in known.directions for name in known.written(way)}
    assert {p.name for p in ALGORITHM} == options == set(MEANINGS)
    text = " ".join(answer("cost --help-all").replace("│", " ").split())
    for said in (
        "flash2 backward, flash3 backward: add to dQ",
        "flash2 forward, flash3 forward, split_kv: store",
        "rows of a query tile [rows]",
    ):
        assert said in text


def test_compare_sorts_and_tells_who_does_not_fit(answer):
    line = "compare --sram-bytes 30000 --q-len 8192 --head-dim 64 --heads 4 --kv-heads 2 --no-lse"
    out = json.loads(answer(f"{line} --json"))
    bytes_moved = [solution["cost"]["hbm_bytes"] for solution in out["solutions"]]
    assert bytes_moved == sorted(bytes_moved)
    assert out["solutions"][0]["relative"] == 1
    assert out["best"] == out["solutions"][0]["algorithm"]
    both = [*out["solutions"], *out["infeasible"]]
    assert {row["algorithm"] for row in both} == {
        name for name in exact_algorithms() if "forward" in algorithm(name).directions
    } - {"eager"}
    unfit = {row["algorithm"]: row["least"] for row in out["infeasible"]}
    assert {"standard", "tiled_query"} <= set(unfit)
    assert "two_pass" not in {row["algorithm"] for row in both}
    last = answer(line).splitlines()[-1]
    assert last.split()[-2:] == ["needs", f"{max(unfit.values()):,}"]
    w = iomodel.Attention(q_len=8192, head_dim=64, heads=4, kv_heads=2)
    for name, least in unfit.items():
        assert iomodel.solve(name, w, sram_bytes=least).footprint <= least
        with pytest.raises(iomodel.InfeasibleError):
            iomodel.solve(name, w, sram_bytes=least - 1)


def test_compare_sorts_those_that_do_not_fit_by_need():
    found = compare(iomodel.Attention(q_len=16, head_dim=512), sram_bytes=600)
    assert [s.algorithm for s in found.answers] == ["standard", "small_cache", "two_products"]
    least = {unfit.algorithm: unfit.least for unfit in found.absent}
    assert list(least.values()) == sorted(least.values())
    assert list(least) != sorted(least)


def test_compare_hands_an_option_to_those_that_know_it():
    w = iomodel.Attention(q_len=256, head_dim=32)
    found = compare(w, sram_elements=3000, lse=False, min_block_kv=8)
    taken = {solution.algorithm: solution.cost.options for solution in found.answers}
    assert taken["flash2"]["lse"] is False
    assert "lse" not in taken["standard"]
    assert all(s.tiles["block_kv"] >= 8 for s in found.answers if "block_kv" in s.tiles)
    assert compare(w, sram_elements=3000, splits=3).best.algorithm != "split_kv"
    assert any(s.tiles.get("block_kv", 8) < 8 for s in compare(w, sram_elements=3000).answers)
    with pytest.raises(iomodel.UnknownNameError, match="'lsd' is unknown; did you mean 'lse'"):
        compare(w, sram_elements=50000, lsd=False)
    with pytest.raises(iomodel.InfeasibleError) as failure:
        compare(w, sram_elements=3)
    assert compare(w, sram_elements=failure.value.least).best.footprint <= failure.value.least


def test_compare_takes_names(answer):
    found = json.loads(answer(f"compare flash3 flash2 --hardware h100-sxm5 {SHAPE} --json"))
    assert {estimate["algorithm"] for estimate in found["estimates"]} == {"flash2", "flash3"}


@pytest.mark.parametrize(
    ("line", "shown", "hidden"),
    [
        ("tiles flash3", ["--q-len", "--order", "--hardware"], ["--splits", "--in-features", "--tokens", "--lsd"]),
        ("cost flash2", ["--block-q", "--direction", "--dropout"], ["--block-m", "--block-proj", "--splits"]),
        ("cost gemm", ["--in-features", "--block-k", "--splits"], ["--q-len", "--mask", "--block-q"]),
        ("estimate split_kv", ["--splits", "--kv-len"], ["--dq-buffers", "--vocab-size"]),
        ("formula mamba2", ["--mask"], ["--sinks", "--lse"]),
    ],
)
def test_help_after_an_algorithm_is_of_that_algorithm(answer, line, shown, hidden):
    of_all, own = (re.findall(r"│ +(--[a-z-]+)", answer(f"{asked} --help-all")) for asked in (line.split()[0], line))
    words = set(own)
    assert {*shown} <= words
    assert not words & {*hidden}
    assert words < set(of_all)


@pytest.mark.parametrize("command", ["formula mamba2", "cost mamba2 --q-len 64 --head-dim 64"])
def test_a_mask_that_is_left_out_is_the_only_one_of_the_algorithm(answer, command):
    assert answer(command) == answer(f"{command} --mask causal")


@pytest.mark.parametrize(
    "command", [*sorted({*COMMANDS} - {"plot"}), *(f"{name} flash2" for name in ("tiles", "check", "trace"))]
)
def test_a_help_page_shows_forty_options_and_names_the_one_with_all(answer, command):
    few, every = (
        set(re.findall(r"│ +(--[a-z-]+)", answer(f"{command} {asked}"))) for asked in ("--help", "--help-all")
    )
    assert len(few) <= 40
    assert few <= every
    assert (few < every) == (
        f"more options: iomodel {command} --help-all" in " ".join(answer(f"{command} --help").split())
    )


def test_the_front_page_has_25_lines_and_every_command(answer, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = answer("--help")
    assert len(page.splitlines()) <= 25
    assert all(len(line) <= 80 for line in page.splitlines())
    assert {*COMMANDS} <= {*page.split()}


def test_a_tile_that_does_not_fit_fails_on_request(run):
    line = f"check flash2 {SHAPE} --hardware h100-sxm5 --block-q 128 --block-kv"
    assert [run(f"{line} {keys} --fail")[0] for keys in ("64", "4096")] == [0, 1]
    assert run(f"{line} 4096")[0] == 0


def test_a_check_without_tiles_is_of_those_of_the_estimate(answer):
    call = "flash2 --hardware a100-sxm4-80gb --q-len 4096 --head-dim 128 --json"
    checked, timed = (json.loads(answer(f"{command} {call}")) for command in ("check", "estimate"))
    assert checked["tiles"] == timed["tiles"]
    assert checked["fits"]


def test_a_step_is_of_one_sequence_unless_a_batch_is_given(answer):
    step = "step llama-3-8b --hardware h100-sxm5 --kv-len 4096 --json"
    assert json.loads(answer(step)) == json.loads(answer(f"{step} --batch 1"))


def test_bounds_and_the_optimum_are_those_of_the_library(answer):
    told = json.loads(answer(f"bounds flash2 {SHAPE} --sram-elements 51200 --json"))["bounds"]
    w = iomodel.Attention(q_len=512, head_dim=64)
    bounds = iomodel.lower_bounds(w, algorithm="flash2", sram_elements=51200)
    assert told == {name: bound.to_dict() for name, bound in bounds.items()}
    every = json.loads(answer(f"bounds {SHAPE} --sram-elements 51200 --json"))["bounds"]
    assert every.keys() == iomodel.lower_bounds(w, sram_elements=51200).keys()
    assert answer("optimum flash2 --mask causal") == f"{iomodel.optimum('flash2', 'causal')}\n"
    assert answer("optimum flash2") == answer("formula flash2 --leading")


def test_without_a_memory_the_bound_is_the_compulsory_traffic(answer):
    w = iomodel.Attention(q_len=512, head_dim=64)
    told = json.loads(answer(f"bounds flash2 {SHAPE} --json"))
    bounds = iomodel.lower_bounds(w, algorithm="flash2")
    assert told["bounds"] == {name: bound.to_dict() for name, bound in bounds.items()}
    assert bounds == {"compulsory": iomodel.lower_bounds(w, sram_elements=1)["compulsory"]}
    assert told["intensity"] == 4 * 512 * 512 * 64 / bounds["compulsory"].bytes
    for named in ("", "flash2 "):
        assert "the other bounds need a memory: one of --hardware" in answer(f"bounds {named}{SHAPE}")


@pytest.mark.parametrize(("name", "mask"), [("flash2", "full"), ("split_kv", "causal"), ("linformer", "full")])
def test_a_cost_without_tiles_is_what_no_tile_decides(answer, name, mask):
    line = f"cost {name} {SHAPE} --mask {mask}"
    free = json.loads(answer(f"{line} --json"))
    typed = [f"--{tile.replace('_', '-')}" for tile in free["needed_tiles"]]
    shown = answer(line)
    assert all(option in shown for option in typed)
    least = [row.split()[2:4] for row in shown.splitlines() if row.strip().startswith("compulsory traffic")]
    assert least == [
        [f"{free['compulsory'][name]:,}", unit] for name, unit in (("elements", "elements"), ("bytes", "B"))
    ]
    for size in (16, 48):
        cost = json.loads(answer(f"{line} --json {' '.join(f'{option} {size}' for option in typed)}"))
        assert free["useful_flops"] in (None, cost["useful_flops"])
        assert free["compulsory"]["bytes"] <= cost["hbm_bytes"]
        assert free["visible_pairs"] == cost["visible_pairs"]
        assert all(free[side].items() <= cost[side].items() for side in ("reads", "writes"))
    assert free["writes"]["O"] or name == "split_kv"  # partial outputs, by the number of splits


@pytest.mark.parametrize(
    ("call", "expected"),
    {
        "split_kv --q-len 5 --kv-len 4096 --heads 32 --kv-heads 8 --head-dim 128": 4096 * 8 * 128 * 4,
        "split_kv --q-len 1 --kv-len 32768 --heads 64 --kv-heads 8 --head-dim 64 --sliding-window 9": 9 * 8 * 64 * 4,
        "split_kv --q-lens 1,1,1 --kv-lens 17,33,1 --head-dim 128": (17 + 33 + 1) * 128 * 4,
        "flash2 --q-len 10 --kv-len 4 --head-dim 8 --mask causal": 4 * 8 * 4,
        "flash2 --q-len 64 --heads 8 --kv-heads 1 --head-dim 576 --value-dim 512 --latent": 64 * 576 * 2,
        "split_kv --q-len 1 --kv-len 64 --heads 8 --head-dim 64 --kv-dtype fp8": 64 * 8 * 64 * 2,
        "flash2 --q-len 64 --head-dim 8 --direction backward": None,
    }.items(),
)  # fmt: skip
def test_a_cost_without_tiles_has_the_bytes_of_keys_and_values(answer, call, expected):
    assert json.loads(answer(f"cost {call} --json"))["kv_bytes"] == expected
    assert ("of K and V" in answer(f"cost {call}")) is (expected is not None)


@pytest.mark.parametrize(
    ("call", "inputs"),
    [
        ("split_kv --q-len 1 --kv-len 4096 --batch 64 --head-dim 128 --page-size 32", {"block_table": 64 * 128 * 4}),
        (
            "split_kv --q-len 1 --kv-len 4096 --heads 8 --head-dim 128 --kv-dtype fp8 --kv-scales token",
            {"K_scale": 4096 * 8 * 4, "V_scale": 4096 * 8 * 4},
        ),
        ("flash2 --q-lens 100,50 --heads 8 --head-dim 128 --alibi", {"slopes": 8 * 4}),
        ("flash2 --q-lens 100,50 --heads 8 --head-dim 128 --bias", {"bias": 8 * (100 * 100 + 50 * 50) * 2}),
        ("flash2 --q-len 100 --head-dim 128", {}),
    ],
)
def test_a_cost_without_tiles_has_the_inputs_that_the_compulsory_traffic_leaves_out(answer, call, inputs):
    assert json.loads(answer(f"cost {call} --json"))["beside"] == inputs
    assert all(f"{size:,}" in answer(f"cost {call}") for size in inputs.values())
    loaded = json.loads(answer(f"cost {call} --block-q 128 --block-kv 4096 --json"))["reads"]
    width = {"bias": 2}
    assert all(loaded[name] * width.get(name, 4) >= size for name, size in inputs.items())


def test_a_cost_without_tiles_has_the_bytes_of_partial_results(answer):
    call = "split_kv --splits 16 --q-len 1 --kv-len 65536 --heads 32 --kv-heads 8 --head-dim 128"
    assert "65,536   elements = 262,144 B" in answer(f"cost {call}")  # 16 x 32 rows of 128 in fp32


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (f"bounds {SHAPE}", "bounds"),
        (f"cost flash2 {SHAPE}", "cost-without-tiles"),
        (f"tiles flash2 {SHAPE} --hardware h100-sxm5 --hardware b200", "comparison"),
        ("formula flash2 --latex", "expressions"),
    ],
)
def test_an_object_that_a_command_makes_begins_with_its_schema_and_the_release(answer, line, kind):
    told = json.loads(answer(f"{line} --json"))
    assert list(told.items())[:2] == [("schema", f"iomodel.{kind}/1"), ("iomodel", iomodel.__version__)]


def test_a_cost_on_a_device_is_at_the_tiles_of_the_estimate(answer):
    line = f"flash2 {SHAPE} --hardware h100-sxm5 --json"
    estimated = json.loads(answer(f"estimate {line}"))["cost"]
    assert estimated.items() <= json.loads(answer(f"cost {line}")).items()


def test_numbers_take_the_places_of_the_symbols_of_a_formula(answer):
    told = json.loads(answer("formula flash2 --q-len 4096 --head-dim 64 --block-q 128 --json"))
    formulas = iomodel.expressions("flash2").subs(q_len=4096, head_dim=64, block_q=128)
    assert told["reads"] == formulas.to_dict()["reads"]
    best = iomodel.optimum("flash2").subs(q_len=4096)
    assert answer("formula flash2 --leading --q-len 4096") == f"{best}\n"


@pytest.mark.parametrize("command", ["tiles flash2", "estimate flash2"])
def test_devices_are_compared(answer, command):
    both, each = ["h100-sxm5", "b200"], {}
    for name in both:
        each[name] = json.loads(answer(f"{command} {SHAPE} --hardware {name} --json"))
    line = f"{command} {SHAPE} --hardware {' --hardware '.join(both)}"
    told = json.loads(answer(f"{line} --json"))
    for row in told[(told.keys() & {"solutions", "estimates"}).pop()]:
        assert row.items() <= {**each[row["hardware"]], "relative": row["relative"]}.items()
    assert all(name in answer(line) for name in both)
    mixed = answer(f"{command} {SHAPE} --hardware h100-sxm5 --hardware no-such-device")
    assert "'no-such-device' is unknown" in " ".join(mixed.split())


def test_algorithms_are_compared_over_devices(answer):
    devices = ["h100-sxm5", "b200"]
    told = answer(f"compare flash2 standard {SHAPE} --hardware {' --hardware '.join(devices)} --json")
    found = compare(iomodel.Attention(q_len=512, head_dim=64), devices, algorithms=["flash2", "standard"])
    assert json.loads(told) == json.loads(json.dumps(found.to_dict()))


def test_a_step_is_that_of_the_library(answer):
    told = json.loads(answer("step llama-3-8b --hardware h100-sxm5 --batch 64 --kv-len 4096 --tp 2 --json"))
    layout = iomodel.Layout(tensor_parallel=2)
    step = iomodel.step("llama-3-8b", "h100-sxm5", batch=64, q_len=1, kv_len=4096, layout=layout)
    assert told == json.loads(step.to_json())


def test_an_audit_is_that_of_the_library(answer, tmp_path):
    path = tmp_path / "report.csv"
    metrics = '"dram__bytes_read.sum","dram__bytes_write.sum"'
    path.write_text(f'"ID","Kernel Name",{metrics}\n"","","byte","byte"\n"0","flash_fwd","196,608","65,536"\n')
    told = json.loads(answer(f"audit {path} flash2 --pattern flash_fwd --hardware h100-sxm5 {SHAPE} --json"))
    predicted = iomodel.estimate("flash2", iomodel.Attention(q_len=512, head_dim=64), "h100-sxm5")
    assert told == json.loads(iomodel.testing.audit(path, {"flash_fwd": predicted}).to_json())


def test_formulas_of_a_square_call_and_their_leading_term(answer):
    wide, square = answer("formula flash2 --mask causal"), answer("formula flash2 --mask causal --square")
    assert "N_k" in wide
    assert not re.search(r"N_[kq]|d_v", square)
    assert "leading term = 4*N**2*d**2/M" in answer("formula flash2 --leading")
    assert json.loads(answer("formula flash2 --leading --json"))["leading"] == "4*N**2*d**2/M"
    e, call = iomodel.expressions("flash2", "causal").square(), {"batch": 1, "heads": 2, "kv_heads": 1, "group": 2}
    sizes = {"head_dim": 8, "element_size": 2, "block_q": 5, "block_kv": 7}
    w = iomodel.Attention(heads=2, kv_heads=1, q_len=37, head_dim=8, mask="causal")
    point = {iomodel.nests.symbols.BY_NAME[name]: value for name, value in {**call, **sizes}.items()}
    counted = iomodel.cost("flash2", w, {"block_q": 5, "block_kv": 7})
    assert e.hbm_bytes.subs({**point, iomodel.nests.symbols.N: 37}).doit() == counted.hbm_bytes


@pytest.mark.parametrize("options", ["", " --leading"])
def test_aligned_formulas_differ_in_white_space_alone(answer, options):
    for line in ("formula flash2 --mask causal", "formula flash2 --direction backward"):
        plain, aligned = answer(line + options), answer(f"{line}{options} --aligned")
        assert "".join(aligned.split()) == "".join(plain.split())
        assert len(aligned.splitlines()) > len(plain.splitlines())


SHOWN = [
    (name, mask)
    for name in iomodel.list_algorithms()
    for mask in discovered()[name].masks or ("full", "causal", WINDOW)
]
SHOWN.append(("flash2", iomodel.Window(right=3, align="top-left")))
FIRST = dict(reversed(SHOWN))
MORE = [pair for pair in SHOWN if pair not in FIRST.items()][:: one_in(3)]
"""Further masks, of which the quick profile reads a third."""


@pytest.mark.parametrize(("algorithm", "mask"), [*FIRST.items(), *MORE], ids=str)
def test_readable_formulas_are_the_formulas(algorithm, mask):
    masks = discovered()[algorithm].masks
    for direction in {"forward", "backward"} & set(discovered()[algorithm].directions):
        formulas = iomodel.expressions(algorithm, mask, direction)
        many = sum(symbol.name[:2] in ("m_", "n_") for symbol in formulas.quantities["hbm_elements"].free_symbols) > 4
        readable_is_exact(formulas, 1200 if masks or many else 600)  # five products have eight tiles


def readable_is_exact(formulas, longest=600):
    exact = [*formulas.reads.values(), *formulas.writes.values(), *formulas.quantities.values()]
    definitions, answers = shared(exact)
    sizes = (1, 6, 3, 2, 36, 53, 5, 3, 2, 1, 16, 4, 6, 3, 2)
    point = {entry.symbol: 2 + i % 7 for i, entry in enumerate(ALPHABET)}
    point |= {entry.symbol: size for entry, size in zip(ALPHABET, sizes, strict=False)}
    whole = {"compress_block": 4, "compress_stride": 2, "select_block": 4}  # as nsa requires
    point |= {entry.symbol: whole[entry.name] for entry in ALPHABET if entry.name in whole}
    named, plain, values = {}, {}, dict(point)
    for name, part in definitions.items():
        values[name] = number(part, values, named)
    for text, expr in zip(answers, exact, strict=True):
        assert number(text, values, named) == number(expr, point, plain) >= 0
        broken = stacked(f"name = {text}")
        assert "".join(broken.split()) == "".join(f"name = {text}".split())
        assert continued(broken.splitlines())
    assert max(len(str(text)) for text in [*answers, *definitions.values()]) < longest


def continued(lines):
    """Check that each line after the first starts with a sign, or follows a comma, right of the name."""
    pairs = list(pairwise(lines))
    return all(
        line.startswith("       ") and (line.lstrip()[:2] in ("+ ", "- ") or above.endswith(","))
        for above, line in pairs
    )


@pytest.mark.parametrize("algorithm", ["flash2", "split_kv", "small_cache"])
def test_readable_formulas_leave_out_what_is_rare_and_zero(algorithm):
    formulas = iomodel.expressions(algorithm)
    shown = {name for name in formulas.quantities if re.search(rf"^ *{name} \[", readable(formulas), re.MULTILINE)}
    assert shown == {name for name, expr in formulas.quantities.items() if expr != 0 or name not in RARE}
    assert shown < {*formulas.quantities}


def test_readable_names_every_letter_it_uses():
    text = readable(iomodel.expressions("flash2", WINDOW))
    letters = set(re.findall(r"\b(?:[A-Za-z]_[A-Za-z0-9]+|[A-Z]|d|e)\b", text.split("where")[0].split("\n", 2)[2]))
    explained = set(re.findall(r"^ +(\w+) [ =]", text.split("where")[1], re.MULTILINE))
    assert letters - {"B", "K", "Q", "V", "O"} <= explained | {"hbm_bytes"}


OWN_TILES = ("q", "kv", "value", "proj", "sum", "channels")
BIG = "1" + "0" * 400
BLOCKS = "--mask blocks --mask-block-q 4 --mask-block-kv 4"
BAD = {
    "": "command: none given; allowed: tiles, check, estimate, compare, diagnose, trace",
    "tile flash2": "command: 'tile' is unknown; did you mean 'tiles'? allowed: tiles, check, estimate",
    "tiles": "; allowed: dsa, flash1, flash2, flash3, linear_transformer",
    "plan": "model: not given, but required; allowed: a model, or its file",
    "plot traffics": "command: 'traffics' is unknown; did you mean 'traffic'? allowed: roofline",
    "tiles flash2 extra": "unexpected extra argument",
    f"tiles flash2 {SHAPE} --backward": "--backward: no option of iomodel tiles; did you mean --direction backward? ",
    f"tiles flash2 {SHAPE} --qlen 8": "--qlen: no option of iomodel tiles; did you mean --q-len? allowed: ",
    "fleet llama-3-8b --load 3": "prompt, output, ttft, tpot: not given, but required; allowed: values, such as",
    "plan llama-3-8b --percentile p9": "--percentile: no option of iomodel plan, but of pareto; allowed: ",
    "train llama-3-8b": "hardware, batch, seq_len: not given, but required; allowed: values, such as --hardware h100",
    "formula gemm --mask causal": "mask: 'causal' given; allowed: full, because gemm has no mask",
    f"cost flash2 {SHAPE} --rows 4": "rows: given for flash2, an algorithm of attention; allowed: heads, kv_heads,",
    "disaggregate llama-3-8b --prefill h100-sxm5 --decode h100-sxm5 --link 5GB --prompt 8 --output 8": "unit 'GB'",
    "model meta-llama/Llama-3.1-9B": "model: 'meta-llama/Llama-3.1-9B' is unknown; allowed: a name of",
    f"tiles flash {SHAPE} --hardware h100-sxm5": "algorithm: 'flash' is unknown; did you mean 'flash",
    f"tiles '' {SHAPE} --hardware h100-sxm5": "algorithm: '' is unknown; allowed: a name of iomodel.list_algorithms()",
    f"tiles flash2 {SHAPE} --hardware h1000": "hardware: 'h1000' is unknown; did you mean",
    f"tiles flash2 {SHAPE} --hardware ''": "hardware: '' is unknown",
    f"tiles flash2 {SHAPE} --hardware ./missing.yaml": "missing.yaml: cannot be read",
    f"tiles flash2 {SHAPE} --hardware tests": "hardware: 'tests' is unknown",
    f"tiles flash2 {SHAPE}": "hardware, sram_bytes, sram_elements: 0 values given; allowed: exactly one",
    f"tiles flash2 {SHAPE} --sram-bytes 9B --sram-elements 9": "2 values given; allowed: exactly one",
    f"tiles flash2 {SHAPE} --hardware h100-sxm5 --sram-elements 9": "2 values given; allowed: exactly one",
    f"compare {SHAPE}": "0 values given; allowed: exactly one",
    f"tiles flash2 {SHAPE} --sram-bytes ''": "sram_bytes: '' is not a number; write '228 KiB'",
    f"tiles flash2 {SHAPE} --sram-bytes nan": "sram_bytes: 'nan' is not a number",
    f"tiles flash2 {SHAPE} --sram-bytes 0": "sram_bytes: 0 given; allowed: an integer from 1",
    f"tiles flash2 {SHAPE} --sram-bytes=-5": "sram_bytes: -5 given; allowed: an integer from 1",
    f"tiles flash2 {SHAPE} --sram-bytes 100.5": "sram_bytes: must be a whole number of B, given 100.5",
    f"tiles flash2 {SHAPE} --sram-bytes '1.5 kib'": "did you mean 'KiB'? allowed: B, KiB",
    f"tiles flash2 {SHAPE} --sram-bytes {BIG}": "sram_bytes: 1000",
    f"tiles flash2 {SHAPE} --sram-elements 1e5": "'1e5' given; allowed: an integer in digits, such as 100000",
    f"tiles flash2 {SHAPE} --sram-elements {BIG}": "sram_elements: 1000",
    f"tiles flash2 {SHAPE} --sram-elements 9999 --alignment 0": "alignment: 0 given",
    f"tiles flash2 {SHAPE} --sram-elements 9999 --min-block-kv x": "min_block_kv: 'x' given; allowed: an integer",
    f"tiles standard {SHAPE} --sram-elements 9999 --min-block-kv 4": "'block_kv' is unknown; allowed: gemm1_m",
    f"tiles flash2 {SHAPE} --sram-elements 9999 --epsilon nan": "epsilon: nan given; allowed: a share",
    f"tiles flash2 {SHAPE} --sram-elements 9999 --epsilon=-1": "epsilon: -1.0 given; allowed: a share",
    f"tiles flash2 {SHAPE} --sram-elements 9999 --epsilon x": "epsilon: 'x' given; allowed: a share",
    f"tiles flash2 {SHAPE} --sram-elements 9999 --block-q 8": "--block-q: no option of iomodel ",
    "cost flash2 --head-dim 8 --block-q 4 --block-kv 4": "q_len: not given, but required",
    "estimate split_kv --hardware h100 --kv-len 4096 --head-dim 128": "q_len: not given, but required; allowed: 1,",
    "cost flash2 --q-len 8 --block-q 4 --block-kv 4": "head_dim: not given, but required",
    "cost flash2 --q-len 0 --head-dim 8": "q_len: 0 given; allowed: at least 1",
    "cost flash2 --q-len -8 --head-dim 8": "q_len: -8 given; allowed: at least 1",
    "cost flash2 --q-len 8.5 --head-dim 8": "q_len: '8.5' given; allowed: an integer in digits",
    "cost flash2 --q-len 8.0 --head-dim 8": "q_len: '8.0' given; allowed: an integer in digits, such as 8",
    "cost flash2 --q-len 8ki --head-dim 8": "q_len: '8ki' given; allowed: an integer in digits",
    "cost flash2 --q-len 8,192 --head-dim 8": "q_len: '8,192' given; allowed: an integer in digits, such as 8192",
    "cost flash2 --q-len NaN --head-dim 8": "q_len: 'NaN' given; allowed: an integer in digits",
    "cost flash2 --q-len inf --head-dim 8": "q_len: 'inf' given; allowed: an integer in digits",
    "cost flash2 --q-len '' --head-dim 8": "q_len: '' given; allowed: an integer in digits",
    "cost flash2 --q-len ٣ --head-dim 8": "allowed: an integer in digits",
    "cost flash2 --q-len '8\n8' --head-dim 8": "q_len: '8\\n8' given; allowed: an integer in digits",
    f"cost flash2 --q-len {BIG} --head-dim 8": "0... given; allowed: at most 10^18",
    f"cost flash2 --q-len {BIG * 20} --head-dim 8": "q_len: '1000",
    f"cost flash2 {SHAPE} --heads 32 --kv-heads 5": "kv_heads: 5 does not divide heads = 32; allowed: a divisor of 32",
    f"cost flash2 {SHAPE} --dtype bf17": "dtype: 'bf17' is unknown; did you mean 'bf16'? allowed: fp32",
    f"cost flash2 {SHAPE} --dtype ''": "dtype: '' is unknown; allowed: fp32",
    f"cost flash2 {SHAPE} --direction up": "direction: ",
    f"cost flash2 {SHAPE} --mask cau": "mask: 'cau' is unknown; did you mean 'causal'? allowed: full, causal, window",
    f"cost flash2 {SHAPE} --mask window": "window_left, window_right: none given",
    f"cost flash2 {SHAPE} --mask window --window-left -1": "window_left: -1 given; allowed: an integer from 0",
    f"cost flash2 {SHAPE} --mask full --window-left 4": "window_left: given with mask full; allowed: only with --mask",
    f"cost flash2 {SHAPE} --mask causal --window-right 4": "window_right: given with mask causal; allowed",
    f"cost flash2 {SHAPE} --align top-left": "align: 'top-left' given with mask full; allowed",
    f"cost flash2 {SHAPE} --mask causal --align top": "'top' given; allowed: 'bottom-right' or 'top-left'",
    f"cost flash2 {SHAPE} --implementation triton": "implementation: given without hardware; allowed: with --hardware",
    f"bounds flash2 {SHAPE} --sram-elements 4 --sram-bytes 4B": "2 values given; allowed: at most one",
    "formula flash2 --rows 4": "symbol of flash2: 'rows' is unknown; allowed: batch, heads",
    "formula flash2 --leading --block-q 4": "symbol of flash2: 'block_q' is unknown; allowed: batch, heads",
    "formula flash2 --q-len 0": "q_len: 0 given; allowed: an integer from 1",
    f"cost flash2 {SHAPE} --block-q 4": "block_kv: flash2 needs this tile; allowed: an integer from 1 up",
    f"cost flash2 {SHAPE} --block-q 4 --block-kv 0": "block_kv: 0 given; allowed: an integer from 1",
    f"cost flash2 {SHAPE} --block-q 4 --block-kv 1.5": "block_kv: '1.5' given; allowed: an integer in digits",
    f"cost flash2 {SHAPE} --block-q 4 --block-kv {BIG}": "block_kv: 1000",
    f"cost flash2 {SHAPE} --block-q 4 --block-kv 4 --gemm1-m 4": "'gemm1_m' is unknown; allowed: block_q, block_kv",
    f"cost flash2 {SHAPE} --block-z 4": "--block-z: no option of iomodel ",
    f"cost flash2 {SHAPE} --block-q": "Option '--block-q' requires an argument",
    f"cost standard {SHAPE} --lse": "option of standard: 'lse' is unknown",
    f"cost flash2 {SHAPE} --lse=yes": "Option '--lse' does not take a value",
    "formula flash5": "algorithm: 'flash5' is unknown; did you mean 'flash",
    "formula flash2 --direction up": "direction: 'up' is unknown; allowed: forward",
    "formula tiled_query --direction backward": "direction: 'backward' given; allowed: forward, because tiled_query",
    "formula flash2 --aligned --json": "aligned: given with json; allowed: for formulas as text",
    "formula flash2 --aligned --latex": "aligned: given with latex; allowed: for formulas as text",
    "formula small_cache --bias": "bias: given; allowed: not with small_cache",
    "formula flash2 --page-size 4": "--page-size: no option of iomodel ",
    "formula split_kv --splits 0": "splits: 0 given; allowed: an integer from 1",
    "formula flash2 --direction both --no-lse": "lse: False given; allowed: True, because the backward pass needs it",
    f"cost flash2 {SHAPE} --direction backward --lse": "option of flash2: 'lse' is unknown",
    f"cost two_pass {SHAPE}": "direction: 'forward' given; allowed: backward",
    f"cost split_kv {SHAPE} --block-q 4 --block-kv 64 --splits 9": "splits: 9 given; allowed: up to 8",
    f"cost split_kv {SHAPE} --splits x": "splits: 'x' given; allowed: an integer in digits",
    f"cost flash2 {SHAPE} --softcap x": "softcap: ",
    f"cost flash2 {SHAPE} --softcap nan": "softcap: ",
    f"cost flash2 {SHAPE} --dropout 1": "dropout: ",
    f"cost flash2 {SHAPE} --dropout nan": "dropout: ",
    f"cost flash2 {SHAPE} --kv-scales row": "kv_scales: ",
    f"cost flash2 {SHAPE} --kv-dtype fp9": "kv_dtype: 'fp9' is unknown; did you mean 'fp8'?",
    f"cost flash2 {SHAPE} --page-size 16 --direction backward": "page_size: given with direction backward",
    f"cost flash2 {SHAPE} --latent --heads 2 --kv-heads 2": "kv_heads: 2 given with latent = True; allowed: 1",
    f"cost flash2 {SHAPE} --bias=yes": "Option '--bias' does not take a value",
    f"cost flash2 {SHAPE} --no-bias": "--no-bias: no option of iomodel ",
    f"cost flash2 {SHAPE} --mask documents": "document_lengths: not given, but required by --mask documents",
    f"cost flash2 {SHAPE} --mask documents --document-lengths 3,4": "documents of 7 positions given for q_len = 512",
    f"cost flash2 {SHAPE} --mask documents --document-lengths 3,,4": "document_lengths: '3,,4' given; allowed: int",
    f"cost flash2 {SHAPE} --mask documents --document-lengths ''": "document_lengths: '' given; allowed: integers",
    f"cost flash2 {SHAPE} --mask documents --document-lengths 3,x": "document_lengths: 'x' given; allowed: an integer",
    f"cost flash2 {SHAPE} --mask documents --document-lengths 3,0": "document 1: 0 given",
    f"cost flash2 {SHAPE} --mask documents --document-lengths @no.txt": "'no.txt' cannot be read (No such file",
    f"cost flash2 {SHAPE} --mask documents --document-lengths @tests": "cannot be read (is a directory)",
    f"cost flash2 {SHAPE} --document-lengths 3,4": "documents of 7 positions given for q_len = 512",
    f"cost flash2 {SHAPE} --mask causal --document-causal": "document_lengths: not given, but required by --mask doc",
    f"cost flash2 {SHAPE} --document-lengths 512 --window-left 4": "window_left: given with mask full; allowed: only",
    f"cost flash2 {SHAPE} --mask documents --document-lengths 9 --align top-left": "align: 'top-left' given with mask",
    f"cost flash2 {SHAPE} --mask blocks": "block_mask: not given, but required by --mask blocks",
    f"cost flash2 {SHAPE} --mask blocks --block-mask x.npy --mask-block-q 4": "mask_block_kv: not given, but required",
    f"cost flash2 {SHAPE} {BLOCKS} --block-mask no.npy": "block_mask: 'no.npy' cannot be read (No such file",
    f"cost flash2 {SHAPE} {BLOCKS} --block-mask tests": "block_mask: 'tests' cannot be read (is a directory)",
    f"cost flash2 {SHAPE} {BLOCKS} --block-mask README.md": "block_mask: 'README.md' cannot be read (not a file of",
    "cost flash2 --head-dim 8 --q-lens 4,x": "q_lens: 'x' given; allowed: an integer in digits",
    "cost flash2 --head-dim 8 --q-lens '4 5, 6'": "q_lens: '6' given as entry 2; allowed: one number, or a pair",
    "cost flash2 --head-dim 8 --q-lens '4 5 6'": "q_lens: '4 5 6' given as entry 1; allowed: one number, or a pair",
    "cost flash2 --head-dim 8 --q-lens '4 5' --kv-lens 6": "kv_lens: given with pairs in q_lens; allowed: one",
    "cost flash2 --head-dim 8 --q-lens 4,5 --kv-lens 6": "kv_lens: 1 lengths given, for 2 in q_lens",
    "cost flash2 --head-dim 8 --q-lens 0,0": "q_lens: ",
    "cost flash2 --head-dim 8 --q-lens 4 --q-len 4": "q_len: given with q_lens; allowed: --q-lens and --kv-lens",
    "cost flash2 --head-dim 8 --q-lens 4 --batch 4": "batch: given with q_lens; allowed: --q-lens and --kv-lens",
    "cost flash2 --head-dim 8 --q-len 4 --kv-lens 4": "kv_lens: given without q_lens; allowed: only with --q-lens",
    "cost flash2 --head-dim 8 --q-lens 4 --mask documents --document-lengths 4": "mask: Documents(lengths=(4,)",
    "formula flash2 --tiled": "option of flash2: 'tiled' is unknown",
    f"check flash2 {SHAPE} --block-q 128 --block-kv 64": "hardware: not given, but required",
    f"check flash2 {SHAPE} --hardware h100-sxm5 --block-q 128": "block_kv: flash2 needs this tile",
    f"check flash2 {SHAPE} --hardware h100-sxm5 --warps x": "warps: 'x' given; allowed: an integer in digits",
    f"tiles flash2 {SHAPE} --hardware h100-sxm5 --implementation cpu": "implementation of flash2: 'cpu' is unknown",
    f"estimate flash2 {SHAPE}": "hardware: not given, but required; allowed: values, such as --hardware h100-sxm5",
    "judge": "hardware: none given; allowed: a file of 'iomodel calibrate'",
    "crossover flash1 flash2 --head-dim 8 --q-lens 4,5": "q_lens: given; allowed: --q-len, for sequences of one length",
    "hardware nothing": "hardware: 'nothing' is unknown",
    "hardware ../nothing.yaml": "cannot be read",
    "hardware tests/": "a directory, not a YAML file",
}


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[:60].replace("\n", " ") or "nothing")
@pytest.mark.parametrize("as_json", ["", " --json"], ids=["table", "json"])
def test_bad_input_is_told_in_one_line(run, line, as_json):
    if as_json and line in ("", f"cost flash2 {SHAPE} --block-q"):
        return
    code, out, err = run(line + as_json)
    assert code == 2
    assert refused(out, err) if "--json" in line + as_json else out == ""
    assert err.startswith("iomodel: ")
    assert err.count("\n") == 1
    assert BAD[line] in err
    assert len(err) < 700


def refused(out, err):
    """Check that stdout is one JSON object with the line of stderr."""
    schema, release, told = json.loads(out).values()
    assert (schema, release) == ("iomodel.error/1", iomodel.__version__)
    assert set(told) == {"code", "message"}
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in told["message"])
    return f"iomodel: {shown}\n" == err


@pytest.mark.parametrize("command", [*COMMANDS, "nothing"])
@pytest.mark.parametrize("wrong", ["--no-such-option", "flash9 --hardware nothing"])
def test_a_refusal_with_json_is_json_for_every_command(run, command, wrong):
    code, out, err = run(f"{command} {wrong} --json")
    assert code == 2
    assert refused(out, err)
    assert run(f"{command} {wrong}")[:2] == (2, "")


def test_help_says_what_an_option_takes(answer):
    told = " ".join(answer("cost --help-all").split())
    assert re.search(r"--splits INTEGER", told)
    assert re.search(r"--block-q INTEGER", told)
    assert re.search(r"--dtype NAME", told)


def several_arrays(path):
    with path.open("wb") as file:
        np.savez(file, a=np.eye(2), b=np.eye(2))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda path: np.save(path, np.zeros(3, dtype=bool)), "blocks: shape (3,) given; allowed: a 2-D table"),
        (lambda path: np.save(path, np.full((128, 128), 2)), "blocks: 2 given in [0, 0]; allowed: a 2-D table"),
        (lambda path: np.save(path, np.zeros((128, 128))), "blocks: entries of type float64 given"),
        (
            lambda path: np.save(path, np.zeros((2, 2), dtype=bool)),
            "mask: blocks of shape (2, 2) given; allowed: shape",
        ),
        (lambda path: np.save(path, np.array([{}])), "cannot be read (not a file of numpy.save)"),
        (several_arrays, "cannot be read (not a file of numpy.save)"),
        (lambda path: path.write_bytes(b""), "cannot be read ("),
        (lambda path: path.write_bytes(b"\x93NUMPY\x01\x00"), "cannot be read ("),
        (lambda path: path.write_bytes(b"PK\x03\x04 and no more"), "cannot be read ("),
    ],
)
def test_malformed_block_mask(run, tmp_path, monkeypatch, made, said):
    made(tmp_path / "blocks.npy")
    monkeypatch.chdir(tmp_path)
    code, out, err = run(f"cost flash2 {SHAPE} {BLOCKS} --block-mask blocks.npy")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert str(tmp_path) not in err


def test_a_file_that_is_no_text_or_too_large(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lengths").write_bytes(b"\xff\xfe\x00")
    code, _, err = run("cost flash2 --head-dim 8 --q-lens @lengths")
    assert (code, err.count("\n")) == (2, 1)
    assert "q_lens: 'lengths' cannot be read (not UTF-8 text); allowed: a text file" in err
    with (tmp_path / "lengths").open("wb") as file:
        file.truncate(2**27)
    assert "134,217,728 B exceed" in run("cost flash2 --head-dim 8 --q-lens @lengths")[2]


@pytest.mark.parametrize("text", ["schema: [", "schema: 1", "schema: 2\nname: x", "- 1", "\0", "name: &a x", ""])
def test_malformed_hardware_file(run, tmp_path, monkeypatch, text):
    (tmp_path / "mine.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    code, out, err = run(f"tiles flash2 {SHAPE} --hardware mine.yaml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("iomodel: mine.yaml: ")
    assert str(tmp_path) not in err


def test_own_hardware_file(answer, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "schema: 1\nname: Mine\nmemory: {sram: {per_block: {value: 64 KiB, source: me}}}\n"
    )
    path = shlex.quote(str(tmp_path / "mine.yaml"))
    assert answer(f"tiles flash2 {SHAPE} --hardware {path}").startswith("flash2 on Mine\n")
    assert json.loads(answer(f"hardware {path} --json"))["name"] == "Mine"


@pytest.mark.parametrize("command", ["tiles flash2", "compare"])
@pytest.mark.parametrize("budget", ["--sram-bytes 9B", "--sram-elements 3", "--hardware tiny.yaml"])
def test_no_tile_fits(run, command, budget, tmp_path, monkeypatch):
    tiny = "schema: 1\nname: Tiny\nmemory: {sram: {per_block: {value: 1 KiB, source: me}}}\n"
    (tmp_path / "tiny.yaml").write_text(tiny)
    monkeypatch.chdir(tmp_path)
    code, out, err = run(f"{command} {SHAPE} {budget} --json")
    assert (code, err.count("\n")) == (1, 1)
    assert refused(out, err)
    assert json.loads(out)["error"]["code"] == iomodel.InfeasibleError.code
    assert re.search(r"the smallest feasible budget is [\d,]+ (B|elements)", err)


def test_a_fault_of_ours_is_one_line_too(run, monkeypatch):
    def fail(*_):
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr("iomodel.devices.overview.overview", fail)
    code, out, err = run("hardware")
    assert (code, out, err.count("\n")) == (70, "", 1)
    assert "internal error, RuntimeError: first second" in err
    assert json.loads(run("hardware --json --q-len")[1])["error"]["code"] == "usage"
    monkeypatch.setenv("IOMODEL_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        main(["hardware"])


FAMILIES = {
    "hardware H100": ["h100-nvl", "h100-pcie", "h100-sxm5"],
    "hardware sim": ["sim-a100", "sim-h100", "sim-v100"],
    "hardware mi300": ["mi300x"],
    "model mixtral": ["mixtral-8x22b", "mixtral-8x7b"],
}


@pytest.mark.parametrize("line", FAMILIES)
def test_the_first_word_of_a_name_lists_its_family(answer, line):
    assert list(json.loads(answer(f"{line} --json"))) == FAMILIES[line]
    assert [row for row in answer(line).splitlines() if row.split()[:1] in [[name] for name in FAMILIES[line]]]


COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3\d|4\d|9\d|10\d)[;m]")
TABLES = [
    f"tiles flash2 --hardware h100-sxm5 {SHAPE}",
    f"tiles flash2 --hardware h100-sxm5 {SHAPE} --map",
    f"check flash2 --hardware h100-sxm5 {SHAPE} --block-q 128 --block-kv 64",
    f"cost flash2 {SHAPE} --block-q 128 --block-kv 64",
    f"compare {SHAPE} --hardware a100-sxm4-80gb",
    f"estimate flash2 {SHAPE} --hardware h100-sxm5",
    f"trace flash2 {SHAPE} --hardware sim-a100",
    f"diagnose flash2 {SHAPE} --hardware h100-sxm5 --block-q 128 --block-kv 64 --time 1ms",
    "crossover flash1 standard --head-dim 64 --block-q 64 --block-kv 64 --limit 512",
    "algorithms", "hardware", "hardware h100-sxm5", "model", "model llama-3-8b",
    "plan llama-3-8b --hardware h100-sxm5 --prompt 64 --output 8",
]  # fmt: skip
"""Commands that print a table."""


@pytest.mark.parametrize("line", TABLES)
def test_tables_have_colours_in_a_terminal_and_none_under_no_color(run, line, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for name, value in {"TERM": "xterm-256color", "COLORTERM": "truecolor"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    code, coloured, _ = run(line)
    assert code == 0
    monkeypatch.setenv("NO_COLOR", "1")
    code, plain, _ = run(line)
    assert code == 0
    assert not COLOUR.search(plain)
    assert re.sub(r"\x1b\[[\d;]*m", "", plain) == re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert COLOUR.search(coloured) or line.split()[0] not in ("check", "estimate", "diagnose")


@pytest.mark.parametrize(("more", "mapped"), [("", True), (" --objective traffic", False), (" --top 3", False)])
def test_tiles_show_the_map_in_a_terminal(run, more, mapped, monkeypatch):
    line = f"tiles flash2 {SHAPE} --hardware h100-sxm5{more}"
    assert "F fastest" not in run(line)[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert ("F fastest" in run(line)[1]) == mapped
    assert json.loads(run(f"{line} --json")[1])


def test_interrupted(run, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("iomodel.devices.overview.overview", interrupt)
    code, out, err = run("hardware")
    assert (code, out) == (130, "")
    assert "Traceback" not in err


def test_a_damaged_compiled_module_is_named(run, monkeypatch, tmp_path):
    (tmp_path / "cut_short.py").write_text("ANSWER = 42\n")
    compiled = Path(py_compile.compile(str(tmp_path / "cut_short.py")))
    compiled.write_bytes(compiled.read_bytes()[:-4])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("iomodel.devices.overview.overview", lambda *_: import_module("cut_short"))
    code, out, err = run("hardware")
    assert (code, out, err.count("\n")) == (70, "", 1)
    assert f"{compiled} is damaged" in err


@pytest.mark.parametrize("command", ["tiles", "check", "cost", "compare", "formula", "algorithms", "hardware", "trace"])
def test_help_has_an_example_that_runs(answer, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")  # a narrower terminal wraps a long line
    (example,) = re.findall(rf"^ *iomodel ({command}\b.*)", answer(f"{command} --help"), re.MULTILINE)
    assert answer(example)
    assert command in answer("--help")


def test_version(answer):
    assert answer("--version").startswith("iomodel ")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("estimate ", [name for kind in KINDS for name in iomodel.list_algorithms(kind)]),
        ("tiles ", [name for kind in KINDS for name in iomodel.list_algorithms(kind) if name != "eager"]),
        ("tiles fl", ["flash1", "flash2", "flash3"]),
        ("cost flash2 --direction ", ["forward", "backward", "both"]),
        ("cost flash2 --kv-scales ", ["head", "token"]),
        ("tiles flash2 --hardware h100", ["h100-nvl", "h100-pcie", "h100-sxm5"]),
        ("hardware ", iomodel.list_hardware()),
        ("cost flash2 --dtype fp", ["fp32", "fp16", "fp8"]),
        ("cost flash2 --mask ", ["full", "causal", "window", "documents", "blocks"]),
        ("cost flash2 --block-", ["--block-mask", *(f"--block-{of}" for of in (*OWN_TILES, "m", "n", "k", "chunk"))]),
    ],
)
def test_completion(typed, offered):
    words = f"iomodel {typed}"
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), "_IOMODEL_COMPLETE": "complete_bash"}
    found = process("", env={**os.environ, **asked})
    assert (found.stdout.split(), found.stderr) == (offered, "")


def test_true_process():
    good = process(f"tiles flash2 {SHAPE} --hardware h100-sxm5 --json", env={**os.environ, "FORCE_COLOR": "1"})
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["algorithm"] == "flash2"
    bad = process(f"tiles flash2 {SHAPE}")
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)
    assert process(f"tiles flash2 {SHAPE} --sram-bytes 10B").returncode == 1


def test_no_character_is_refused_by_an_old_terminal(tmp_path):
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    path = tmp_path / "mine.yaml"
    text = "schema: 1\nname: Géant\nmemory: {sram: {per_block: {value: 64 KiB, source: me}}}\n"
    path.write_text(text, encoding="utf-8")
    shown = process(f"tiles flash2 --hardware {shlex.quote(str(path))} {SHAPE}", env=ascii_only)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("flash2 on G?ant")
    wrong = process("tiles Géant", env=ascii_only)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_no_colours_in_a_pipe():
    shown = process("hardware h100-sxm5", env={**os.environ, "FORCE_COLOR": "1"})
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close otherwise there")
@pytest.mark.parametrize("line", ["hardware --json", "hardware", "formula flash2", "--version"])
def test_reader_that_leaves(line):
    reader, writer = os.pipe()
    os.close(reader)
    left = process(line, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (left.returncode, left.stderr) == (141, "")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close otherwise there")
def test_reader_of_help_that_leaves():
    reader, writer = os.pipe()
    os.close(reader)
    left = process("tiles --help", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert left.returncode != 0
    assert left.stderr == ""


PAGES = [page for page in (ROOT / "docs" / "cli.md", ROOT / "README.md") if page.exists()]


def shown_commands():
    for page in PAGES:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for call in re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
                line, _, output = call.partition("\n")
                if line.startswith("iomodel "):
                    yield pytest.param(line, output, id=f"{page.name}: {line[:50]}")


@pytest.mark.parametrize(("line", "output"), list(shown_commands()))
def test_pages_show_what_is_printed(run, line, output):
    """An output may leave out lines, or the rest of a line, as three dots; none at all shows only that it runs."""
    code, out, err = run(line.removeprefix("iomodel "))
    assert (code != 0) == bool(err)
    printed = "".join(f"{row.rstrip()}\n" for row in (out + err).strip().splitlines())
    rows = [re.escape(row.rstrip()).replace(r"\.\.\.", ".*") for row in output.strip().splitlines()]
    pattern = "".join("(?:.*\n)*" if row == ".*" else f"{row}\n" for row in rows)
    assert not rows or re.fullmatch(pattern, printed), printed


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("cost flash2 --q-len 1000 --head-dim 64 --block-q 64 --block-kv 128", ["query tiles (T_r) 16", "(T_c) 8"]),
        ("estimate split_kv --hardware h100-sxm5 --q-len 1 --kv-len 65536 --head-dim 128", ["splits="]),
        (
            "cost flash2 --q-len 512 --head-dim 64 --block-q 128 --block-kv 128 --mask causal",
            ["T_r x T_c with a visible pair 10 of 16"],
        ),
        (  # tiles of documents of 1,000, 2,000 and 1,096 tokens: counted from the mask with NumPy
            "cost flash2 --q-len 4096 --head-dim 64 --block-q 128 --block-kv 128 "
            "--document-lengths 1000,2000,1096 --document-causal",
            ["232 of 1,024"],
        ),
        (  # eight documents of 8 x 8 tiles: 28 whole ones below a diagonal of 8
            "cost flash2 --q-len 8192 --head-dim 128 --block-q 128 --block-kv 128 --document-causal "
            "--document-lengths 1024,1024,1024,1024,1024,1024,1024,1024",
            ["288 of 4,096", "of these partly masked 64"],
        ),
        (
            "estimate flash3 --hardware h100-sxm5 --batch 2 --heads 32 --q-len 4096 --head-dim 128 --block-q 128 "
            "--block-kv 176",
            ["blocks 2,048 in 16 waves"],
        ),
        (f"estimate flash2 --hardware a100-sxm4-80gb {SHAPE} --direction both", ["blocks of flash2 backward"]),
        (f"compare flash2 --hardware h100-sxm5 {SHAPE}", ["requests"]),
        (f"bounds flash2 {SHAPE} --sram-bytes 100KiB", ["N^2 d^2 / M for M >= d^2", "Saha and Ye, ICML 2024"]),
    ],
)
def test_an_answer_has_the_figures_that_its_readers_ask_for(answer, line, says):
    told = " ".join(answer(line).split())
    assert all(words in told for words in says)


def test_a_triton_kernel_is_checked_by_its_text(answer, tmp_path):
    """`iomodel triton` reads a file, and answers as the library does."""
    from tests.placement.test_triton_description import PRODUCT

    file = tmp_path / "product.ttir"
    file.write_text(PRODUCT["ttir"])
    asked = f"triton {file} --config M=128,N=64,D=32 --check M=256,num_stages=5 --arch sm_80 --version 3.9.0"
    kernel = iomodel.triton.describe(PRODUCT["ttir"], PRODUCT["config"])
    expected = iomodel.triton.check({"M": 256, "num_stages": 5}, kernel=kernel, arch=80, version="3.9.0")
    told = json.loads(answer(f"{asked} --json"))
    assert told["checks"] == [{"config": "M=256,num_stages=5", **expected.to_dict()}]
    assert told["description"] == kernel.to_dict()
    assert f"{expected.shared:,}" in answer(asked)


def test_sequences_without_a_query_are_left_out_and_told(run):
    """As `VarlenAttention.of_offsets` does; offsets of a kernel's call come to the same."""
    line = "cost flash2 --head-dim 64 --causal --json"
    _, few, silent = run(f"{line} --q-lens '3 5, 7 11'")
    for lengths in ("--q-lens '3 5, 0 4, 7 11'", "--cu-seqlens-q 0,3,3,10 --cu-seqlens-k 0,5,9,20"):
        code, all_of_them, told = run(f"{line} {lengths}")
        assert (code, all_of_them, silent) == (0, few, "")
        assert told == "note: q_lens: 1 of 3 sequences without a query left out\n"


@pytest.mark.parametrize("sizes", ["128x64", "256x256"])
def test_a_tile_is_checked_on_several_devices(run, sizes):
    """One row each, as each alone; the exit code is that of the worst."""
    line = f"check flash2 --q-len 4096 --head-dim 128 --tiles {sizes} --fail --json"
    names = ["a100-sxm4-80gb", "rtx4090", "h100-sxm5"]
    alone = [run(f"{line} --hardware {name}") for name in names]
    code, text, _ = run(line + "".join(f" --hardware {name}" for name in names))
    found = json.loads(text)["checks"]
    assert found == [json.loads(each) for _, each, _ in alone]
    assert code == max(each for each, _, _ in alone) == int(not all(check["fits"] for check in found))
    table = run(f"{line.replace(' --json', '')} --hardware a100-sxm4-80gb --hardware h100-sxm5")[1]
    assert [line.split()[1] for line in table.splitlines() if line.startswith(("  a100", "  h100"))] == [
        "yes" if found[place]["fits"] else "no" for place in (0, 2)
    ]


def test_several_devices_are_listed_with_their_ridge_points(run):
    names = ["tpu-v5p", "h100-sxm5", "mi300x"]
    text = run(f"hardware {' '.join(names)}")[1]
    rows = [line.split() for line in text.splitlines() if line[2:].startswith(tuple(names))]
    assert [row[0] for row in rows] == names
    assert [float(row[-2]) for row in rows] == [
        pytest.approx(iomodel.hardware(name).ridge["bf16"], abs=0.06) for name in names
    ]


def test_a_search_names_all_that_it_lacks(run):
    """The device too, unless prices name it."""
    missing = (
        "hardware, prompt, output, ttft, tpot: not given, but required; allowed: values, such as --hardware h100-sxm5"
    )
    assert missing in run("fleet llama-3-8b --load 3")[2]
    assert "hardware" not in run("fleet llama-3-8b --load 3 --price h100-sxm5=2.5")[2]
    assert "hardware, prompt, output: not given" in run("pareto llama-3-8b")[2]


def test_a_file_that_is_not_there_is_named_before_a_device(run):
    assert run("judge rows.csv")[2].startswith("iomodel: subject: 'rows.csv' cannot be read")
