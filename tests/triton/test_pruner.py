"""Pruning of autotune lists: by the protocol of Triton's autotuner, real where it is installed, and by hand."""

from __future__ import annotations

import ast
import csv
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import iomodel
import iomodel.triton
from iomodel.triton.listing import options, ranked, source
from iomodel.triton.seconds import seconds
from tests.support import autotuner
from tests.support.inside import check_triton

VERSION = "3.9.0"
CALL = iomodel.Attention(batch=4, heads=32, q_len=4096, head_dim=128)
LATENT = iomodel.Attention(heads=128, kv_heads=1, q_len=1, kv_len=4096, head_dim=576, value_dim=512, latent=True)
CAUSAL = CALL.model_copy(update={"mask": "causal"})
TYPICAL = tuple(product((64, 128), (32, 64, 128, 256), (4, 8), (2, 3, 4, 5)))
DEVICES = ("a100-sxm4-80gb", "a10", "rtx4090", "h100-sxm5", "b200", "rtx5090")


def configs(names: tuple[str, str] = ("BLOCK_M", "BLOCK_N"), kind: Any = autotuner.Config) -> list[Any]:
    """64 configs, as tutorials list them."""
    return [
        kind({names[0]: rows, names[1]: keys}, num_warps=warps, num_stages=stages)
        for rows, keys, warps, stages in TYPICAL
    ]


def names(kept: list[Any]) -> list[tuple[int, ...]]:
    return [(*config.kwargs.values(), config.num_warps, config.num_stages) for config in kept]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("call", [CALL, CAUSAL], ids=["full", "causal"])
def test_a_typical_list_is_cut_fivefold_at_no_regret(call: iomodel.Attention, device: str) -> None:
    """The fastest stays; by the layout of the CUDA kernel, one within 5 % of the fastest does."""
    keep = iomodel.triton.pruner(call, device, version=VERSION)
    kept = keep(configs(), {})
    assert 5 * len(kept) <= len(configs())
    judged = keep.judge(configs(), {})
    best = min(each.seconds for each in judged if each.check.fits)
    assert min(each.seconds for each in keep.judge(kept, {})) <= 1.05 * best
    assert all(each.check.fits for each in keep.judge(kept, {}))
    if device in ("h100-sxm5", "b200"):
        return  # the CUDA kernel of `estimate` has another instruction there
    launched = names([each.config for each in judged if each.check.fits and each.check.spills is False])
    times = {tile: elsewhere(call, device, tile) for tile in launched}
    assert min(times.get(tile, float("inf")) for tile in names(kept)) <= 1.05 * min(times.values())


def elsewhere(call: iomodel.Attention, device: str, config: tuple[int, ...]) -> float:
    """The time of the tile as `estimate` has it for the CUDA kernel, infinite where that refuses the tile."""
    rows, keys, warps, _ = config
    try:
        return iomodel.estimate("flash2", call, device, {"block_q": rows, "block_kv": keys, "warps": warps}).seconds
    except iomodel.InfeasibleError:
        return float("inf")


def test_configs_that_do_not_fit_are_dropped_and_no_others() -> None:
    keep = iomodel.triton.pruner(CALL, "rtx4090", top=None, version=VERSION)
    kept = set(names(keep(configs(), {})))
    fitting = {
        tile for tile in names(configs())
        if check_triton(*tile[:2], 128, warps=tile[2], stages=tile[3], arch=89, version=VERSION).fits
    }  # fmt: skip
    assert kept == fitting
    assert 0 < len(fitting) < len(TYPICAL)


def test_a_config_that_spills_loses() -> None:
    """Behind one of the same tile that does not; the more registers are missing, the longer it takes."""
    keep = iomodel.triton.pruner(CALL, "h100-sxm5", top=None, version=VERSION)
    judged = {names([each.config])[0]: each for each in keep.judge(configs(), {})}
    (spilling, safe) = judged[128, 128, 4, 3], judged[128, 128, 8, 3]
    assert (spilling.check.spills, safe.check.spills) == (True, False)
    assert spilling.seconds > 1.25 * safe.seconds
    assert names(keep(configs(), {}))[0] == (128, 128, 8, 3)

    def time(check: iomodel.triton.TritonCheck) -> float:
        return seconds("forward", CALL, keep.hardware, (128, 128), 4, 3, check)

    kept = time(replace(spilling.check, spills=False, spilled=0.0))
    times = [time(replace(spilling.check, spilled=registers)) for registers in (1, 25, 65, 145)]
    assert kept < times[0]
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    ("length", "head_dim", "slower", "faster"),
    [
        (128, 128, (128, 128, 8, 1), (64, 64, 4, 3)),
        (512, 128, (128, 128, 8, 1), (64, 64, 4, 3)),
        (2048, 128, (128, 128, 8, 1), (64, 64, 4, 3)),
        (8192, 128, (128, 128, 8, 1), (64, 64, 4, 3)),
        (2048, 64, (128, 128, 4, 1), (64, 128, 4, 3)),
        (8192, 64, (128, 128, 4, 1), (64, 128, 4, 3)),
    ],
)
def test_measured_orders(length: int, head_dim: int, slower: tuple[int, ...], faster: tuple[int, ...]) -> None:
    """Pairs of configs timed on an H200: github.com/sgl-project/sglang, pull request 22350."""
    call = iomodel.Attention(heads=32, q_len=length, head_dim=head_dim, mask="causal")
    keep = iomodel.triton.pruner(call, "h200-sxm", version=VERSION)
    pair = [autotuner.Config({"BLOCK_M": m, "BLOCK_N": n}, warps, stages) for m, n, warps, stages in (slower, faster)]
    slow, fast = keep.judge(pair, {})
    assert slow.seconds > fast.seconds


def test_the_order_of_a_timed_list() -> None:
    """Eight configs ranked on an H100, one best and the others behind: `triton-autotune-h100-d128` of decisions.csv."""
    with (Path(__file__).parents[1] / "measured" / "decisions.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["list"] == "triton-autotune-h100-d128"]
    keep = iomodel.triton.pruner(CALL.model_copy(update={"dtype": "bf16"}), "h100-sxm5", version=VERSION)
    timed = [
        autotuner.Config(
            {"BLOCK_M": int(row["block_q"]), "BLOCK_N": int(row["block_kv"])}, int(row["warps"]), int(row["stages"])
        )
        for row in rows
    ]
    seconds = [each.seconds for each in keep.judge(timed, {})]
    ranks = [float(row["value"]) for row in rows]
    assert len(rows) == 8
    assert seconds.index(min(seconds)) == ranks.index(min(ranks))


# --- the protocol


NAMES = ("Q", "K", "V", "O", "H", "N_CTX", "HEAD_DIM")
ARGUMENTS = (object(), object(), object(), object(), 32, 4096, 128)
TUNERS = ("a stand-in", "triton") if find_spec("triton") else ("a stand-in",)


def tuned(prune: dict[str, Any], tuner: str = "a stand-in") -> list[Any]:
    """The configs that a launch of flash(Q, K, V, O, H, N_CTX, HEAD_DIM) would time."""
    if tuner == "triton":
        from triton import Config
        from triton.runtime.autotuner import Autotuner

        def flash(Q: Any, K: Any, V: Any, O: Any, H: int, N_CTX: int, HEAD_DIM: int) -> None: ...

        real = Autotuner(flash, NAMES, configs(kind=Config), ["N_CTX"], None, None, prune_configs_by=prune)
        real.nargs = dict(zip(NAMES, ARGUMENTS, strict=True))
        return list(real.prune_configs({}))
    kernel = autotuner.Autotuner(NAMES, configs(), prune, lambda config: sum(config.kwargs.values()))
    assert kernel.run(*ARGUMENTS) in kernel.tried
    return kernel.tried


@pytest.mark.parametrize("given", [CALL, None, lambda args: CALL], ids=["call", "names", "function"])
@pytest.mark.parametrize("tuner", TUNERS)
def test_an_autotuned_kernel_goes_through_prune_configs_by(given: Any, tuner: str) -> None:
    keep = iomodel.triton.pruner(given, "h100-sxm5", version=VERSION)
    tried = tuned(keep.options, tuner)
    assert len(tried) == 8
    assert set(names(tried)) <= {tuple(tile) for tile in TYPICAL}


@pytest.mark.parametrize("tuner", TUNERS)
def test_a_perf_model_ranks_as_the_pruner_does(tuner: str) -> None:
    keep = iomodel.triton.pruner(None, "h100-sxm5", version=VERSION)
    launch = {"H": 32, "N_CTX": 4096, "HEAD_DIM": 128}
    tried = tuned({"perf_model": keep.perf_model, "top_k": 4}, tuner)
    times = [each.seconds for each in keep.judge(tried, launch)]
    assert len(times) == 4
    assert times == sorted(times)
    assert times[0] == min(each.seconds for each in keep.judge(configs(), launch))


def test_names_are_bound() -> None:
    keep = iomodel.triton.pruner(
        None, "h100-sxm5", version=VERSION, names={"block_q": "BQ", "block_kv": "BK", "q_len": "SEQ", "head_dim": "D"}
    )
    found = names(keep(configs(("BQ", "BK")), {"D": 128}, SEQ=4096, kv_len=4096, H=32))
    usual = iomodel.triton.pruner(None, "h100-sxm5", version=VERSION)(
        configs(), {"N_CTX": 4096, "HEAD_DIM": 128, "H": 32}
    )
    assert found == names(usual)


def test_the_current_device_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    current = import_module("iomodel.triton.pruner")
    for arch, device in current.DEVICES.items():
        monkeypatch.setattr(current, "architecture", lambda arch=arch: arch)
        monkeypatch.setattr(current, "pruner", lambda call, at: iomodel.triton.pruner(call, at, version=VERSION))
        assert current.current().hardware.label == device
        asked = {"early_config_prune": iomodel.triton.prune, "perf_model": iomodel.triton.perf_model, "top_k": 3}
        assert len(tuned(asked)) == 3


def test_without_a_gpu_the_error_names_the_pruner() -> None:
    with pytest.raises(iomodel.InputError, match=r"^hardware: no GPU that Triton knows .*pruner"):
        iomodel.triton.prune(configs(), {"N_CTX": 4096, "HEAD_DIM": 128})


# --- lists


def test_flex_options_are_kernel_options() -> None:
    listed = iomodel.triton.flex_options(CALL, "a100-sxm4-80gb", top=5, version=VERSION)
    assert len(listed) == 5
    for each in listed:
        assert set(each) == {"BLOCK_M", "BLOCK_N", "num_warps", "num_stages"}
        assert 128 % each["BLOCK_M"] == 0 == 128 % each["BLOCK_N"]


BACKWARD = CALL.model_copy(update={"direction": "backward"})


@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "h100-sxm5", "b200"])
def test_flex_options_of_the_backward_pass_meet_its_template(device: str) -> None:
    """BLOCK_M1 divides BLOCK_N1 and BLOCK_N2 divides BLOCK_M2; all divide the rows of a block of the mask."""
    listed = iomodel.triton.flex_options(BACKWARD, device, top=20, version=VERSION)
    tiles = ("bwd_BLOCK_M1", "bwd_BLOCK_N1", "bwd_BLOCK_M2", "bwd_BLOCK_N2")
    for each in listed:
        assert set(each) == {*tiles, "bwd_num_warps", "bwd_num_stages"}
        m1, n1, m2, n2 = (each[name] for name in tiles)
        assert n1 % m1 == 0 == m2 % n2
        assert all(128 % size == 0 for size in (m1, n1, m2, n2))
        assert (m1, n1) == (n2, m2)
        launch = {"warps": each["bwd_num_warps"], "stages": each["bwd_num_stages"], "version": VERSION}
        arch = iomodel.hardware(device).compute_capability or ""
        assert check_triton(m1, n1, 128, arch=arch, kernel="backward", **launch).fits


def test_a_launch_for_both_gradients_takes_the_time_of_both_passes() -> None:
    """Or more, because programs for the one have no more blocks on an SM than those for the other."""
    config = [autotuner.Config({"BLOCK_M": 64, "BLOCK_N": 64}, 4, 2)]
    narrow = BACKWARD.model_copy(update={"head_dim": 64, "value_dim": 64})
    both, keys, rows = (
        iomodel.triton.pruner(narrow, "a100-sxm4-80gb", kernel=kernel, version=VERSION).judge(config, {})[0]
        for kernel in ("backward", "backward_dkdv", "backward_dq")
    )
    assert [each.check.spills for each in (both, keys, rows)] == [False] * 3
    assert keys.seconds + rows.seconds <= 1.001 * both.seconds <= 1.3 * (keys.seconds + rows.seconds)


def test_configs_as_source_text_are_those_near_the_best() -> None:
    text = source("flash2", CALL, "h100-sxm5", version=VERSION)
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    written = [
        (*ast.literal_eval(call.args[0]).values(), *(ast.literal_eval(word.value) for word in call.keywords))
        for call in calls
    ]
    judged = ranked(CALL, "h100-sxm5", version=VERSION)
    near = [each for each in judged if each.seconds <= 1.05 * judged[0].seconds]
    assert written == names([each.config for each in near[:8]])
    assert 1 <= len(near) < len(judged)
    times = [float(line.split("# ")[1].split()[0].replace(",", "")) for line in text.splitlines()[1:-1]]
    assert times == pytest.approx([each.seconds * 1e6 for each in near[:8]], abs=0.06)


def test_source_text_names_the_splits() -> None:
    call = iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=32768, head_dim=128)
    assert source("split_kv", call, "h100-sxm5", version=VERSION).splitlines()[1] == "    # packed = True, splits = 17"


@pytest.mark.parametrize("device", ["mi300x", "mi355x"])
def test_configs_for_amd_fit_its_layout(device: str) -> None:
    listed = options(CALL, device, 5)
    assert len(listed) == 5
    for each in listed:
        tiles = {
            "block_q": each.kwargs["BLOCK_M"], "block_kv": each.kwargs["BLOCK_N"],
            "warps": each.num_warps, "stages": each.num_stages,
        }  # fmt: skip
        assert iomodel.check("flash2", CALL, device, tiles, implementation="triton-amd").fits
    message = r"known for sm_75, .*sm_121; `configs` lists forward configs for AMD$"
    with pytest.raises(iomodel.InputError, match=message):
        options(BACKWARD, device, 5)


@pytest.mark.parametrize(
    ("algorithm", "call", "allowed"),
    [
        ("flash3", CALL, "flash2"), ("flash2", BACKWARD, "two_pass"), ("flash2", LATENT, "split_kv"),
        ("nonsense", CALL, "flash2"),
    ],
)  # fmt: skip
def test_source_text_is_of_an_algorithm_with_a_triton_kernel(
    algorithm: str, call: iomodel.Attention, allowed: str
) -> None:
    message = f"^emit: 'triton' given for {algorithm}; allowed: 'cute', 'json', or the algorithm {allowed}$"
    with pytest.raises(iomodel.InputError, match=message):
        source(algorithm, call, "h100-sxm5", version=VERSION)


@pytest.mark.parametrize(
    ("call", "kernel"),
    [
        (CALL, "forward"),
        (CALL.model_copy(update={"direction": "backward"}), "backward_dq"),
        (CALL.model_copy(update={"direction": "backward"}), None),
        (iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=32768, head_dim=128), None),
        (LATENT, None),
    ],
    ids=["forward", "dq", "dkdv", "decode", "latent"],
)
@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "h100-sxm5", "b200"])
def test_listed_configs_fit_and_most_do_not_spill(call: iomodel.Attention, kernel: str | None, device: str) -> None:
    listed = options(call, device, 6, kernel=kernel, version=VERSION)
    assert len(listed) == 6
    keep = iomodel.triton.pruner(call, device, kernel=kernel or "forward", version=VERSION)
    assert all(each.num_stages in range(1, 6) for each in listed)
    if kernel:
        judged = keep.judge(listed, {})
        assert all(each.check.fits for each in judged)
        first = list(dict.fromkeys((*each.tiles, each.warps) for each in judged))[:2]  # stages alone make no tile
        assert any(each.check.spills is False for each in judged if (*each.tiles, each.warps) in first)


# --- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, "h100-sxm5"), r"^workload: 3 given; allowed: an Attention"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message):
        iomodel.triton.pruner(*arguments, version=VERSION)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "sideways"}, r"^kernel: 'sideways' is unknown"),
        ({"names": {"block": "BM"}}, r"^names: 'block' is unknown; did you mean 'block_q'"),
        ({"top": 0}, r"^top: 0 given; allowed: an integer from 1, or None$"),
    ],
)
def test_wrong_options_are_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message):
        iomodel.triton.pruner(CALL, "h100-sxm5", **{"version": VERSION, **change})


def test_importing_the_room_needs_no_triton() -> None:
    code = "import sys; sys.modules['triton'] = None; import iomodel.triton; iomodel.triton.pruner"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_list_of_configs_needs_triton() -> None:
    """A list of `triton.Config` where it is installed, else an error that names the extra."""
    if find_spec("triton"):
        listed = iomodel.triton.configs(CALL, "h100-sxm5", top=3, version=VERSION)
        assert [type(each).__name__ for each in listed] == ["Config"] * 3
        return
    with pytest.raises(iomodel.InputError, match=r"^triton: not installed; pip install 'iomodel\[triton\]'"):
        iomodel.triton.configs(CALL, "h100-sxm5", top=3, version=VERSION)
