"""Tiles that other kernels ship: each is accepted by the layout of its kernel, with the bytes of its source."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.kernels import Implementation, Residency
from iomodel.placement.check import Check, checked
from iomodel.placement.placement import Placement, placements
from tests.shipped import DEVICES, OTHER_DEVICES, table
from tests.support.inside import (
    CK,
    CK_BACKWARD,
    CUDNN_BACKWARD,
    CUDNN_FORWARD,
    CUTLASS_MLA,
    FLASH4,
    FLASH4_SPLIT,
    FLASHINFER,
    FLASHMLA,
    SAGE,
    TRITON,
    TRITON_AMD,
    TRITON_MLA,
    XFORMERS,
    XFORMERS_BACKWARD,
    as_device,
    kind_of,
)

ALL_DEVICES = {**DEVICES, **OTHER_DEVICES}
OPTIONS: dict[str, dict[str, Any]] = {
    "flash2": {"lse": True, "packed": False},
    "flash3": {"lse": True, "packed": False},
    "split_kv": {"lse": True, "packed": True},
}

BACKWARD = {"deterministic": False, "accumulate": False, "packed": False}


def shown(row: dict[str, str]) -> str:
    return "-".join(row.values())


def call(row: dict[str, str], **more: Any) -> iomodel.Attention:
    width = int(row["head_dim"])
    latent = {"latent": True, "heads": 128, "kv_heads": 1} if row.get("latent") == "yes" else {}
    sizes = {"head_dim": width, "value_dim": int(row.get("value_dim", width)), "dtype": row.get("dtype", "bf16")}
    return iomodel.Attention(**{"q_len": 4096, **sizes, **latent, **more})


def ways(
    name: str, w: iomodel.Attention, device: str, row: dict[str, str], residencies: tuple[Residency, ...] = ()
) -> list[tuple[Placement, Check]]:
    """Check a tile in every layout, with the warps and stages of its row."""
    tile = {tile: int(row[tile]) for tile in ("block_q", "block_kv")}
    found = []
    kernels = (
        Implementation.of(*residencies) if residencies else iomodel.kernels.implementation(name, "flash-attention-3")
    )
    options = OPTIONS[name] if w.direction == "forward" else BACKWARD
    for placement in placements(algorithm(name), w, as_device(device), kernels, options, kind_of(w)):
        for launch in placement.launches():
            if (launch.warps, launch.stages) == (int(row["warps"]), int(row["stages"])):
                found.append((placement, checked(placement, launch, name, w, tile)))
    return found


def fitting(*arguments: Any) -> list[Check]:
    return [check for _, check in ways(*arguments) if check.fits]


def used(checks: list[Check], resource: str = "shared memory") -> set[int]:
    return {check.resources[resource].used for check in checks if resource in check.resources}


@pytest.mark.parametrize("row", table("flash3_sm8x"), ids=shown)
def test_flashattention_3_on_ampere_and_ada(row: dict[str, str]) -> None:
    checks = [
        check
        for placement, check in ways("flash3", call(row), DEVICES[row["architecture"]], row)
        if ("Q in registers" in placement.residency.title) == (row["q_in_registers"] == "yes")
    ]
    assert used(checks) == {int(row["shared_bytes"])}
    # Two tiles are listed by the source although its own storage is more than the 99 KiB of a block.
    too_large = int(row["shared_bytes"]) > 101376 and row["architecture"] != "sm_80"
    assert any(check.fits for check in checks) != too_large
    assert not too_large or (row["head_dim"], row["block_kv"]) in {("256", "32"), ("256", "48")}


@pytest.mark.parametrize("row", [r for r in table("value_columns") if r["kernel"] == "flash3"], ids=shown)
def test_flashattention_3_with_wide_values(row: dict[str, str]) -> None:
    checks = fitting("flash3", call(row), "h100-sxm5", row)
    assert used(checks) == {int(row["shared_bytes"])}
    assert used(checks, "registers") == {128 + 32 + 24}  # half of the columns of O, and S of one group


@pytest.mark.parametrize("row", table("flashinfer"), ids=shown)
def test_flashinfer(row: dict[str, str]) -> None:
    for name in ("flash2", "split_kv"):
        checks = fitting(name, call(row), DEVICES[row["architecture"]], row, FLASHINFER)
        # Where V takes the place of K, the source keeps 16 B for an empty array.
        empty = 16 if row["head_dim"] == "512" else 0
        assert int(row["shared_bytes"]) - empty in used(checks)
        # Registers by the rule with which the source prunes its kernels: 8 for each 16 x 16 of O and S in a warp.
        rows, wide = int(row["block_q"]), row["head_dim"] == "512"
        along_q, along_kv = {16: (1, 4), 32: (2, 2)}.get(rows, (4, 1))
        of_o = int(row["value_dim"]) // (16 * along_kv if wide else 16)
        of_s = int(row["block_kv"]) // (16 * along_kv)
        assert used(checks, "registers") == {rows // (16 * along_q) * 8 * (of_o + of_s) + 48}


@pytest.mark.parametrize("row", [r for r in table("value_columns") if r["kernel"] == "flashmla"], ids=shown)
def test_flashmla(row: dict[str, str]) -> None:
    checks = fitting("split_kv", call(row), "h100-sxm5", row, FLASHMLA)
    assert used(checks) == {int(row["shared_bytes"])}
    # O of 64 x 512 takes half of the registers of an SM, 128 of each of 256 threads; each group has an S and a P.
    assert used(checks, "registers") == {128 + 32 + 16 + 24}
    with pytest.raises(iomodel.InputError, match="latent: False given; allowed: True, for own of split_kv"):
        ways("split_kv", call({**row, "latent": "no"}), "h100-sxm5", row, FLASHMLA)


@pytest.mark.parametrize("row", [r for r in table("value_columns") if r["kernel"] == "cutlass-mla"], ids=shown)
def test_cutlass_on_latents(row: dict[str, str]) -> None:
    checks = fitting("split_kv", call(row), "b200", row, CUTLASS_MLA)
    assert used(checks) == {int(row["shared_bytes"])}
    # Two tiles of S, 64 columns each, and O of 256, with 64 rows in each block of a pair.
    assert used(checks, "tensor memory") == {2 * 64 + 256}


@pytest.mark.parametrize("row", table("flash-attention-4"), ids=shown)
def test_flashattention_4(row: dict[str, str]) -> None:
    name, layouts = ("split_kv", FLASH4_SPLIT) if row["splits"] == "several" else ("flash2", FLASH4)
    checks = [
        check
        for placement, check in ways(name, call(row), "b200", row, layouts)
        if ("pair" in placement.residency.title) == (row["pair"] == "2") and check.fits
    ]
    assert used(checks) == {int(row["shared_bytes"])}
    assert used(checks, "tensor memory") == {int(row["tensor_columns"])}


@pytest.mark.parametrize("row", table("flash-attention-4-backward"), ids=shown)
def test_flashattention_4_backward(row: dict[str, str]) -> None:
    mask = "causal" if row["variant"] == "causal" else "full"
    w = call(row, direction="backward", mask=mask)
    tile = {name: int(row[name]) for name in ("block_q", "block_kv", "warps", "stages")}
    check = iomodel.check("flash2", w, "b200", tile)
    assert check.fits
    assert ("pair" in check.residency) == (row["blocks"] == "2")
    assert used([check]) == {int(row["shared_bytes"])}
    assert used([check], "tensor memory") == {int(row["tensor_columns"])}
    # The kernel gives its threads of the softmax what this takes, 136 registers.
    assert (check.resources["registers"].used, check.slack["registers"]) == (136, 0)
    assert tile.items() <= iomodel.estimate("flash2", w, "b200").tiles.items()


@pytest.mark.parametrize("row", table("ck"), ids=shown)
def test_composable_kernel(row: dict[str, str]) -> None:
    checks = fitting("flash2", call(row), OTHER_DEVICES[row["architecture"]], row, CK)
    assert used(checks) == {int(row["shared_bytes"])}


@pytest.mark.parametrize("row", table("ck-backward"), ids=shown)
def test_composable_kernel_backward(row: dict[str, str]) -> None:
    """One block fills the LDS of an MI300X from 128 columns on."""
    w = call(row, direction="backward")
    (check,) = fitting("flash2", w, OTHER_DEVICES[row["architecture"]], row, CK_BACKWARD)
    assert used([check]) == {int(row["shared_bytes"])}
    # K, its transpose and V in 16 bits, dK and dV in 32, shared out over 256 threads, and S, dP, dQ.
    rows, keys, width = (int(row[name]) for name in ("block_q", "block_kv", "head_dim"))
    held = keys * width * 3 // 2 + 2 * keys * width + 2 * rows * keys + rows * width
    assert used([check], "registers") == {held // 256 + 64}
    if row["architecture"] == "gfx942":
        assert check.blocks_per_sm == {32: 3, 64: 2}.get(width, 1)
        assert check.slack["shared memory"] == 65536 - int(row["shared_bytes"])


@pytest.mark.parametrize("row", table("sageattention"), ids=shown)
def test_sageattention(row: dict[str, str]) -> None:
    checks = fitting("flash2", call(row, dtype="int8"), DEVICES[row["architecture"]], row, SAGE)
    assert int(row["shared_bytes"]) in used(checks)


@pytest.mark.parametrize("row", table("xformers"), ids=shown)
def test_xformers(row: dict[str, str]) -> None:
    if (row["head_dim"], row["dtype"]) == ("256", "fp32"):  # O lies in HBM between key tiles, in 16 bits alone here
        with pytest.raises(iomodel.InputError, match="head_dim: 256 given; allowed: up to 128"):
            ways("flash2", call(row), ALL_DEVICES[row["architecture"]], row, XFORMERS)
        return
    assert fitting("flash2", call(row), ALL_DEVICES[row["architecture"]], row, XFORMERS)


@pytest.mark.parametrize("row", table("xformers-backward"), ids=shown)
def test_xformers_backward(row: dict[str, str]) -> None:
    checks = fitting("flash2", call(row, direction="backward"), DEVICES[row["architecture"]], row, XFORMERS_BACKWARD)
    # Launch bounds of 12 warps on an SM: three blocks of 4 warps, one of 8, and one of 16 whatever the bound.
    assert max(check.blocks_per_sm for check in checks) >= {"4": 2, "8": 1, "16": 1}[row["warps"]]


@pytest.mark.parametrize("row", table("cudnn-hopper"), ids=shown)
def test_cudnn(row: dict[str, str]) -> None:
    assert fitting("flash3", call(row), DEVICES[row["architecture"]], row, (CUDNN_FORWARD,))


@pytest.mark.parametrize("row", table("cudnn-blackwell"), ids=shown)
def test_cudnn_on_blackwell(row: dict[str, str]) -> None:
    rows = 128 if row["rows"] == "128" else 4096
    w = call(row, q_len=rows, kv_len=4096)
    taken = iomodel.estimate("flash2", w, "gb200", implementation="cudnn-blackwell").tiles
    assert taken == {name: int(row[name]) for name in ("block_q", "block_kv", "warps", "stages")}


@pytest.mark.parametrize("row", table("trtllm-gen"), ids=shown)
def test_trtllm_gen(row: dict[str, str]) -> None:
    taken = iomodel.estimate("flash2", call(row, q_len=4096, kv_len=4096), "gb200", implementation="trtllm-gen").tiles
    assert taken == {name: int(row[name]) for name in ("block_q", "block_kv", "warps", "stages")}


@pytest.mark.parametrize(
    ("name", "row"),
    [(name, row) for name in ("trtllm-fmha-whole", "trtllm-fmha-tiled", "trtllm-fmha-hopper") for row in table(name)],
    ids=lambda part: part if isinstance(part, str) else shown(part),
)
def test_prefills_of_tensorrt_llm(name: str, row: dict[str, str]) -> None:
    """Tiles, and the bytes that nvcc states; two blocks on an SM, as the registers leave, or one where bytes do not."""
    schedule = "flash3" if name == "trtllm-fmha-hopper" else "flash2"
    device = ALL_DEVICES[row["architecture"]]
    taken = iomodel.estimate(schedule, call(row), device, implementation=name).tiles
    assert taken == {tile: int(row[tile]) for tile in ("block_q", "block_kv", "warps", "stages")}
    fit = iomodel.check(schedule, call(row), device, dict(taken), implementation=name)
    assert fit.fits
    if "shared_bytes" in row:
        size = int(row["shared_bytes"])
        assert fit.resources["shared memory"].used == size
        assert fit.blocks_per_sm == (1 if 2 * size > 100 << 10 and row["architecture"] != "sm_80" else 2)


@pytest.mark.parametrize("row", table("cudnn-hopper-backward"), ids=shown)
def test_cudnn_backward(row: dict[str, str]) -> None:
    assert fitting("flash3", call(row, direction="backward"), DEVICES["sm_90"], row, CUDNN_BACKWARD)


@pytest.mark.parametrize("row", table("triton-amd"), ids=shown)
def test_triton_on_amd(row: dict[str, str]) -> None:
    widths = {"value_dim": 128} if row["variant"] == "pe" else {}
    checks = fitting("flash2", call(row, **widths), OTHER_DEVICES[row["architecture"]], row, TRITON_AMD)
    # Two are refused: this kernel loads Q in two parts, of 128 and 64 columns; the layout has one.
    assert bool(checks) == (row["variant"] != "pe")


MEASURED = Path(__file__).parents[1] / "measured"


def lines(name: str) -> list[dict[str, str]]:
    """The rows of a file of compiles."""
    text = (MEASURED / name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


@pytest.mark.parametrize("row", lines("triton-mla-compile.csv"), ids=shown)
def test_a_compiler_agrees_on_triton_for_latents(row: dict[str, str]) -> None:
    device = {**ALL_DEVICES, "gfx90a": "mi250x-gcd", "sm_120": "rtx5090"}[row["architecture"]]
    w = call({"head_dim": "576", "value_dim": "512", "latent": "yes"}, q_len=1, kv_len=4096)
    any_size = tuple(replace(layout, sizes=((), ())) for layout in TRITON_MLA)
    checks = [check for _, check in ways("split_kv", w, device, row, any_size)]
    nvidia = row["architecture"].startswith("sm_")
    # The engines take two stages on NVIDIA; a kernel with one has no layout.
    assert used(checks) == (set() if nvidia and row["stages"] == "1" else {int(row["shared_bytes"])})
    engines = ("16", "32", "2") if nvidia else ("16", "16", "1")
    if (row["block_q"], row["block_kv"], row["stages"]) == engines:  # a constant was set on one of them
        (registers,) = used(fitting("split_kv", w, device, row, TRITON_MLA), "registers")
        assert registers == pytest.approx(int(row["registers"]), rel=0.07)


def compiled(row: dict[str, str], w: iomodel.Attention, device: str, kernels: tuple[Residency, ...]) -> list[Check]:
    """Check a compiled tile in the layouts that are for its size."""
    return [check for _, check in ways("flash2", w, device, row, kernels) if not check.resources["MMA shape"].used]


def test_a_compiler_agrees_on_triton_for_hopper() -> None:
    """The bytes of every kernel of a set that no constant was set on, and what fits 97 of 100."""
    found: Counter[tuple[bool, bool]] = Counter()
    for line in (MEASURED / "triton-compile-sm90.jsonl").read_text(encoding="utf-8").splitlines()[1:]:
        record = json.loads(line)
        if record["kernel"] != "flash2" or record["check"]:
            continue
        lengths = {"q_len": record["q_len"], "kv_len": record["kv_len"]}
        mask = "causal" if record["causal"] else "full"
        w = iomodel.Attention(**lengths, head_dim=record["head_dim"], mask=mask)
        row = {name: str(record[name]) for name in ("block_q", "block_kv", "warps", "stages")}
        checks = compiled(row, w, "h100-sxm5", TRITON)
        assert "error" in record or used(checks) == {record["shared_bytes"]}
        fits = "error" not in record and not record["stack_bytes"] and record["shared_bytes"] <= 232448
        found[any(check.fits and not check.spilled for check in checks), fits] += 1
    assert found == {(True, True): 333, (False, False): 99, (False, True): 10, (True, False): 5}


@pytest.mark.parametrize(("architecture", "limit"), [("gfx942", 65536), ("gfx950", 163840)])
def test_a_compiler_agrees_on_triton_for_amd(architecture: str, limit: int) -> None:
    lines = (MEASURED / "triton-compile-amd.csv").read_text(encoding="utf-8").splitlines()
    found: Counter[tuple[bool, bool]] = Counter()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        if row["architecture"] != architecture:
            continue
        checks = compiled(row, call(row), OTHER_DEVICES[architecture], TRITON_AMD)
        (predicted,), real = used(checks), int(row["shared_bytes"])
        if architecture == "gfx942" or row["stages"] == "1":
            assert predicted == real
        else:  # padded against bank conflicts
            assert predicted <= real <= 1.04 * predicted
        found[any(check.fits for check in checks), real <= limit and row["spilled"] == "0"] += 1
    assert found[True, True] + found[False, False] >= 0.9 * found.total()
    assert min(found[True, True], found[False, False]) > 0


def test_tensor_memory_binds() -> None:
    """Two tiles of S and two of O fill the 512 columns of an SM at 128 keys and a width of 128."""
    two_tiles = next(layout for layout in FLASH4 if layout.head_dims == (128,))
    kernels = Implementation.of(replace(two_tiles, sizes=((), ()), stages=(1,)))
    w = iomodel.Attention(q_len=4096, head_dim=128)
    tile = {"block_q": 256, "block_kv": 128, "warps": 8, "stages": 1}
    full = iomodel.check("flash2", w, "b200", tile, implementation=kernels)
    assert (full.fits, full.binding, full.slack["tensor memory"], full.blocks_per_sm) == (True, "tensor memory", 0, 1)
    assert "tensor memory" in str(full)
    more = iomodel.check("flash2", w, "b200", {**tile, "block_kv": 144}, implementation=kernels)
    assert (more.fits, more.binding, more.slack["tensor memory"]) == (False, "tensor memory", -32)
    solution = iomodel.solve("flash2", w, "b200", implementation=kernels, objective="traffic")
    assert solution.placed is not None
    assert solution.placed.fits
    assert solution.tiles == tile
    # An allocation is a power of two of columns, at least 32.
    alone = Implementation.of(replace(two_tiles, producers=0))
    (placement,) = placements(algorithm("flash2"), w, as_device("b200"), alone, OPTIONS["flash2"], kind_of(w))
    blocks = [placement.blocks(0, 16, 8, columns) for columns in (512, 257, 256, 129, 128, 65)]
    assert [min(each.values()) for each in blocks] == [1, 1, 2, 2, 4, 4]


@pytest.mark.parametrize(
    ("name", "device", "kernels"),
    [("flash2", "b200", FLASH4), ("flash2", "mi300x", CK), ("flash2", "a100-sxm4-80gb", FLASHINFER)],
)
@pytest.mark.parametrize("objective", ["time", "traffic"])
def test_a_solver_answers_a_size_of_the_kernel(
    name: str, device: str, kernels: tuple[Residency, ...], objective: Any
) -> None:
    w = iomodel.Attention(heads=8, q_len=2048, head_dim=128)
    own = Implementation.of(*kernels)
    solution = iomodel.solve(name, w, device, implementation=own, objective=objective)
    assert solution.placed is not None
    assert solution.placed.fits
    assert iomodel.check(name, w, device, solution.tiles, implementation=own).fits


def test_a_size_that_a_kernel_lacks_is_refused() -> None:
    w = iomodel.Attention(q_len=4096, head_dim=128)
    tile = {"block_q": 192, "block_kv": 128, "warps": 4}
    check = iomodel.check("flash2", w, "mi300x", tile, implementation=Implementation.of(*CK))
    assert (check.fits, check.binding, check.slack["MMA shape"]) == (False, "MMA shape", -64)
    with pytest.raises(iomodel.InputError, match="min_block_kv: 256 given; allowed: up to 128"):
        iomodel.solve("flash2", w, "mi300x", implementation=Implementation.of(*CK), min_block_kv=256)


def test_short_tiles_are_padded_not_refused() -> None:
    """Eight warps multiply 128 rows; 64 take as many registers, and less shared memory."""
    w = iomodel.Attention(q_len=4096, head_dim=64)
    kernels = Implementation.of(*TRITON)
    short, tall = (
        iomodel.check("flash2", w, "h100-sxm5", {"block_q": rows, "block_kv": 64, "warps": 8}, implementation=kernels)
        for rows in (64, 128)
    )
    assert short.fits
    assert short.resources["registers"].used == tall.resources["registers"].used
    assert short.resources["shared memory"].used < tall.resources["shared memory"].used


@pytest.mark.parametrize(
    ("device", "kernels", "message"),
    [
        (
            "h100-sxm5",
            CK,
            r"hardware: h100-sxm5 .* given; allowed: gfx90a, gfx942, gfx950 \(mi250x",
        ),
        (
            "mi300x",
            FLASH4,
            r"hardware: mi300x \(gfx942\) given; allowed: sm_100, sm_103 \(b200, b300",
        ),
        ("mi300x", FLASHINFER, r"hardware: mi300x .* given; allowed: compute capability 8.0 and later \(a10, "),
    ],
)
def test_the_devices_of_a_kernel_are_named(device: str, kernels: tuple[Residency, ...], message: str) -> None:
    tile = {"block_q": 128, "block_kv": 128}
    with pytest.raises(iomodel.InputError, match=message):
        iomodel.check("flash2", iomodel.Attention(q_len=512, head_dim=128), device, tile, Implementation.of(*kernels))


@pytest.mark.parametrize(
    ("head_dim", "device", "refused"),
    [
        (64, "h100-sxm5", {}),
        (128, "h100-sxm5", {"shared memory": 4}),
        (64, "b200", {}),
        (128, "b200", {"shared memory": 4}),
    ],
)
def test_configurations_of_the_tutorial(head_dim: int, device: str, refused: dict[str, int]) -> None:
    """Of 36 that the kernel tunes over: those that cannot be launched, by what binds; those that spill can."""
    w = iomodel.Attention(q_len=4096, head_dim=head_dim, dtype="fp16")
    found = Counter[str]()
    for rows, keys, warps, stages in product((64, 128), (32, 64, 128), (4, 8), (2, 3, 4)):
        tile = {"block_q": rows, "block_kv": keys, "warps": warps, "stages": stages}
        check = iomodel.check("flash2", w, device, tile, implementation="triton")
        found[check.binding] += not check.fits
    assert {name: count for name, count in found.items() if count} == refused
