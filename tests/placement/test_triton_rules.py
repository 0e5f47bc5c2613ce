"""The rules of the Triton oracle by hand, and its refusals."""

from __future__ import annotations

from typing import Any

import pytest

import iomodel
from iomodel.placement import triton_check, triton_target
from iomodel.placement.triton_check import TritonCheck, check_triton
from iomodel.placement.triton_kernel import (
    Tile,
    TileProduct,
    TritonKernel,
    decode_kernel,
    forward_kernel,
    matmul_kernel,
)
from iomodel.placement.triton_layouts import balanced_warps, conversion
from iomodel.placement.triton_memory import compiled_bytes
from iomodel.placement.triton_schedule import LoopSchedule
from iomodel.placement.triton_tmem import tmem_columns

VERSION = "3.9.0"


def checked(M: int, N: int, d: int, arch: int, **more: Any) -> TritonCheck:
    return check_triton(M, N, d, arch=arch, **{"warps": 4, "stages": 3, "version": VERSION, **more})


@pytest.mark.parametrize("arch", [80, 86, 89, 120])
@pytest.mark.parametrize(("M", "N", "d"), [(128, 64, 64), (64, 64, 128), (16, 32, 128), (128, 128, 128)])
def test_a_forward_kernel_by_mma_sync(arch: int, M: int, N: int, d: int) -> None:
    """Q, s - 1 copies of K and V, and P if the rows are fewer than the width; K and V in turn without a pipeline."""
    q, kv, p = 2 * M * d, 2 * N * d, 2 * M * N * (d > M)
    for stages in (2, 3, 4):
        assert checked(M, N, d, arch, stages=stages).shared == q + 2 * (stages - 1) * kv + p
    assert checked(M, N, d, arch, stages=1).shared == q + kv + p
    early = forward_kernel(M, N, d, early=True, keys="columns")
    assert compiled_bytes(early, arch, 4, 1) == q + kv + max(kv, p)


@pytest.mark.parametrize(("M", "N", "d"), [(128, 64, 64), (64, 64, 128), (64, 128, 32)])
def test_a_forward_kernel_by_wide_instructions(M: int, N: int, d: int) -> None:
    """A copy more, and P is no tile of shared memory; tcgen05 has two barriers of 16 B.

    Without a pipeline Q, the smaller tile, comes behind the barrier, aligned to eight of its rows.
    """
    q, kv = 2 * M * d, 2 * N * d
    for stages in (2, 3):
        assert checked(M, N, d, 90, stages=stages).shared == q + 2 * stages * kv
        assert checked(M, N, d, 100, stages=stages).shared == q + 2 * stages * kv + 32
    assert checked(M, N, d, 90, stages=1).shared == q + kv
    barrier = 8 if q >= kv else 8 * 2 * d
    assert checked(M, N, d, 100, stages=1).shared == q + kv + barrier


@pytest.mark.parametrize(
    ("arch", "M", "warps", "instruction"),
    [
        (80, 128, 4, "mma.sync"), (120, 128, 4, "mma.sync"), (90, 64, 4, "wgmma"), (90, 32, 4, "mma.sync"),
        (90, 64, 2, "mma.sync"), (90, 64, 16, "wgmma"), (100, 64, 8, "tcgen05"), (100, 64, 16, "mma.sync"),
        (100, 16, 4, "mma.sync"),
    ],
)  # fmt: skip
def test_the_instruction(arch: int, M: int, warps: int, instruction: str) -> None:
    assert checked(M, 64, 64, arch, warps=warps).instruction == instruction


@pytest.mark.parametrize(("stages", "tiles", "indices"), [(1, 0, 0), (2, 1, 0), (3, 1, 1), (4, 1, 1), (5, 2, 2)])
def test_a_page_table_halves_the_pipeline(stages: int, tiles: int, indices: int) -> None:
    kernel = decode_kernel(16, 64, 128)
    schedule = LoopSchedule(kernel, 80, 2, stages)
    table, k, v = kernel.loads
    assert (schedule.copies(k), schedule.copies(v), schedule.copies(table)) == (tiles, tiles, indices)
    # Fewer keys than threads: the indices are loaded once for K and once for V.
    assert LoopSchedule(kernel, 80, 4, stages).copies(table) == 2 * indices
    # Without a table nothing waits.
    flat = decode_kernel(16, 64, 128, index=0)
    assert LoopSchedule(flat, 80, 2, stages).copies(flat.loads[0]) == stages - 1


@pytest.mark.parametrize(
    ("M", "N", "d", "stages", "columns"),
    [
        (128, 128, 64, 3, 256), (128, 128, 128, 3, 512), (128, 32, 32, 3, 128), (128, 128, 64, 1, 256),
        (256, 128, 128, 3, 640), (256, 128, 256, 1, 768), (64, 64, 128, 3, 256), (64, 128, 256, 2, 512),
    ],
)  # fmt: skip
def test_columns_of_tensor_memory(M: int, N: int, d: int, stages: int, columns: int) -> None:
    assert tmem_columns(forward_kernel(M, N, d), 100, 4, stages) == columns
    assert tmem_columns(forward_kernel(M, N, d), 90, 4, stages) == 0
    assert checked(M, N, d, 100, stages=stages, dtype="bf16").fits <= (columns <= 512)


def test_a_result_is_stored_in_parts() -> None:
    """128 x 64 fp16 by four warps: three common bits are one access, so one part; 256 x 128 has two more."""
    assert balanced_warps(128, 64, 4) == (2, 2)
    small, large = Tile("C", 128, 64, 2), Tile("C", 256, 128, 2)
    assert conversion(small, (2, 2), 4, 80) == small.size
    assert conversion(large, (2, 2), 4, 80) == large.size // 4
    assert conversion(large, (2, 2), 4, 90) == large.size // 16
    assert compiled_bytes(matmul_kernel(128, 64, 32), 80, 4, 2) == 128 * 64 * 2
    assert compiled_bytes(matmul_kernel(128, 64, 64), 80, 4, 2) == (128 + 64) * 64 * 2


def test_fp8() -> None:
    """Half the bytes; V by wgmma is not loaded ahead, and mma.sync of sm_90 has Q in 16 bits."""
    assert checked(64, 64, 64, 89, dtype="fp8").shared == 4096 + 2 * 2 * 4096
    assert checked(64, 64, 64, 90, dtype="fp8").shared == 4096 + 3 * 4096 + 4096
    assert checked(32, 64, 32, 90, dtype="fp8").shared == 2 * 1024 + 2 * 2 * 2048


def test_a_product_sums_over_32_bytes() -> None:
    assert checked(64, 16, 64, 90).fits
    assert not checked(64, 16, 64, 90, dtype="fp8").fits


def test_spills_have_three_answers() -> None:
    assert checked(128, 128, 128, 80).spills is True
    assert checked(64, 64, 64, 80).spills is False
    # 8-bit operands of mma.sync are permuted by way of the stack before registers run out.
    assert checked(64, 64, 128, 89, warps=8, dtype="fp8").spills is False
    assert checked(64, 128, 128, 89, dtype="fp8").spills is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arch": 70}, r"^arch: 70 given; allowed: sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_103, sm_120, sm_121$"),
        ({"arch": "gfx942"}, r"^arch: 'gfx942' given; allowed: sm_75"),
        ({"arch": None}, r"^arch: None given"),
        ({"version": "2.1.0"}, r"^version: Triton '2.1.0' given; allowed: 3.9.0; version='3.9.0' takes the rules"),
        ({"dtype": "fp64"}, r"^dtype: 'fp64' is unknown; .*allowed: fp16, bf16, fp8$"),
        ({"kernel": "foward"}, r"^kernel: 'foward' is unknown; did you mean 'forward'"),
        ({"warps": 3}, r"^warps: 3 given; allowed: a power of two$"),
        ({"stages": 0}, r"^stages: 0 given"),
        ({"N": 48}, r"^N: 48 given; allowed: a power of two$"),
    ],
)
def test_what_has_no_rules_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"M": 64, "N": 64, "d": 64, "arch": 90, "version": VERSION, **change}
    with pytest.raises(iomodel.IOModelError, match=message):
        check_triton(**arguments)


@pytest.mark.parametrize("arch", [90, "90", "9.0", "sm_90", "sm_90a"])
def test_an_architecture_has_several_spellings(arch: Any) -> None:
    assert check_triton(64, 64, 64, arch=arch, version=VERSION) == checked(64, 64, 64, 90)


def test_the_installed_version_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_target, "version", lambda name: "3.0.0")
    with pytest.raises(iomodel.InputError, match=r"^version: Triton '3.0.0' given"):
        check_triton(64, 64, 64, arch=90)

    def missing(name: str) -> str:
        raise triton_target.PackageNotFoundError(name)

    monkeypatch.setattr(triton_target, "version", missing)
    assert check_triton(64, 64, 64, arch=90).fits


def test_limits_are_those_of_the_devices() -> None:
    devices = {80: "a100-sxm4-80gb", 86: "a10", 89: "rtx4090", 90: "h100-sxm5", 100: "b200", 103: "b300"}
    devices |= {75: "t4", 120: "rtx5090", 121: "gb10"}
    for arch, name in devices.items():
        assert triton_target.SHARED_LIMITS[arch] == iomodel.hardware(name).sram_per_block
    kinds = {"forward", "block_sparse", "decode", "decode_paged", "latent_decode", "backward_dkdv", "backward_dq"}
    kinds |= {"backward", "matmul", "matmul_gated"}
    assert set(triton_check.KERNELS) == kinds


@pytest.mark.parametrize("arch", [80, 90, 100])
@pytest.mark.parametrize("width", [32, 64, 256])
def test_a_right_operand_that_is_a_result_takes_its_own_bytes(arch: int, width: int) -> None:
    """O^T = V^T S: the scores [keys, queries] go through shared memory, whatever the rows of the product."""
    M, N, d = 128, 64, 64
    scores = TileProduct("S", "K", "Q", N, M, d, 2)
    output = TileProduct("O", "V", "S", width, M, N, 2, carried=True)
    loop = (Tile("K", N, d, 2), Tile("V", width, N, 2), scores, output)
    kernel = TritonKernel((Tile("Q", d, M, 2),), loop, (Tile("O", width, M, 2),))
    assert LoopSchedule(kernel, arch, 4, 3).operand(output) == 2 * N * M
