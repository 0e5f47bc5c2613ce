"""Tiles that other kernels ship: each is accepted by the layout of its kernel, with the bytes of its source."""

from __future__ import annotations

from typing import Any

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.algorithms._ck_residency import FORWARD as CK
from iomodel.algorithms._flash4_residency import FORWARD as FLASH4
from iomodel.algorithms._flashinfer_residency import PREFILL as FLASHINFER
from iomodel.algorithms._flashmla_residency import DECODE as FLASHMLA
from iomodel.algorithms._sage_residency import FORWARD as SAGE
from iomodel.algorithms._triton_amd_residency import FORWARD as TRITON_AMD
from iomodel.algorithms._xformers_residency import FORWARD as XFORMERS
from iomodel.counting.kinds import kind_of
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Residency
from iomodel.placement.check import Check, as_device, checked
from iomodel.placement.placement import Placement, placements
from tests.shipped import DEVICES, OTHER_DEVICES, table

ALL_DEVICES = {**DEVICES, **OTHER_DEVICES}
OPTIONS: dict[str, dict[str, Any]] = {
    "flash2": {"lse": True, "packed": False},
    "flash3": {"lse": True, "packed": False},
    "split_kv": {"lse": True, "packed": True},
}


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
    kernels = Implementation.of(*residencies) if residencies else iomodel.implementation(name, "flash-attention-3")
    for placement in placements(algorithm(name), w, as_device(device), kernels, OPTIONS[name], kind_of(w)):
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


@pytest.mark.parametrize("row", table("flashinfer"), ids=shown)
def test_flashinfer(row: dict[str, str]) -> None:
    for name in ("flash2", "split_kv"):
        checks = fitting(name, call(row), DEVICES[row["architecture"]], row, FLASHINFER)
        # Where V takes the place of K, the source keeps 16 B for an empty array.
        empty = 16 if row["head_dim"] == "512" else 0
        assert int(row["shared_bytes"]) - empty in used(checks)


@pytest.mark.parametrize("row", [r for r in table("value_columns") if r["kernel"] == "flashmla"], ids=shown)
def test_flashmla(row: dict[str, str]) -> None:
    checks = fitting("split_kv", call(row), "h100-sxm5", row, FLASHMLA)
    assert used(checks) == {int(row["shared_bytes"])}
    with pytest.raises(iomodel.InputError, match="latent: False given; allowed: True, for own of split_kv"):
        ways("split_kv", call({**row, "latent": "no"}), "h100-sxm5", row, FLASHMLA)


@pytest.mark.parametrize("row", table("flash-attention-4"), ids=shown)
def test_flashattention_4(row: dict[str, str]) -> None:
    checks = [
        check
        for placement, check in ways("flash2", call(row), "b200", row, FLASH4)
        if ("pair" in placement.residency.title) == (row["pair"] == "2") and check.fits
    ]
    assert used(checks) == {int(row["shared_bytes"])}
    assert used(checks, "tensor memory") == {int(row["tensor_columns"])}


@pytest.mark.parametrize("row", table("ck"), ids=shown)
def test_composable_kernel(row: dict[str, str]) -> None:
    checks = fitting("flash2", call(row), OTHER_DEVICES[row["architecture"]], row, CK)
    assert used(checks) == {int(row["shared_bytes"])}


@pytest.mark.parametrize("row", table("sageattention"), ids=shown)
def test_sageattention(row: dict[str, str]) -> None:
    checks = fitting("flash2", call(row, dtype="int8"), DEVICES[row["architecture"]], row, SAGE)
    assert int(row["shared_bytes"]) in used(checks)


@pytest.mark.parametrize("row", table("xformers"), ids=shown)
def test_xformers(row: dict[str, str]) -> None:
    if row["head_dim"] == "256":  # O lies in HBM between key tiles
        with pytest.raises(iomodel.InputError, match="head_dim: 256 given; allowed: up to 128"):
            ways("flash2", call(row), DEVICES[row["architecture"]], row, XFORMERS)
        return
    assert fitting("flash2", call(row), DEVICES[row["architecture"]], row, XFORMERS)


@pytest.mark.parametrize("row", table("triton-amd"), ids=shown)
def test_triton_on_amd(row: dict[str, str]) -> None:
    widths = {"value_dim": 128} if row["variant"] == "pe" else {}
    checks = fitting("flash2", call(row, **widths), OTHER_DEVICES[row["architecture"]], row, TRITON_AMD)
    # Two are refused: this kernel loads Q in two parts, of 128 and 64 columns; the layout has one.
    assert bool(checks) == (row["variant"] != "pe")
