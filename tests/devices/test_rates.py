"""Rates of every device: measured before stated, never above the peaks, and what is missing is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.devices.device import Hardware, hardware, list_hardware
from iomodel.devices.edits import BANDWIDTH, matrix, scaled
from iomodel.devices.levels import memory_levels
from iomodel.devices.rates import Rates, has_rates, product_rates, rates
from iomodel.errors import SpecError
from tests.support.inside import DType

DTYPES = get_args(DType)
DEVICES = [hardware(name) for name in list_hardware()]
GPU = hardware("h100-sxm5")

PATHS = {
    "l2": ("memory.l2.bandwidth", "measured.l2_bandwidth"),
    "l2_capacity": ("memory.l2.capacity",),
    "units": ("compute.units",),
    "clock": ("compute.clock.tensor", "compute.clock.boost", "compute.fp16_per_clock_per_sm"),
    "fp32": ("compute.peak.fp32",),
    "exp": ("compute.exp_per_clock_per_sm", "compute.exp", "measured.exp"),
    "shared": ("memory.sram.bandwidth_per_clock_per_sm",),
}
WORDS = {
    "l2": "L2 requests",
    "l2_capacity": "reuse in the L2",
    "units": "number of SMs",
    "clock": "no clock",
    "fp32": "fp32",
    "exp": "exponentials",
    "shared": "shared memory",
}


def written(data: dict[str, Any], tmp_path: Path) -> Hardware:
    path = tmp_path / "device.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return hardware(path)


def without(data: dict[str, Any], path: str) -> None:
    *groups, last = path.split(".")
    for group in groups:
        data = data.get(group, {})
    data.pop(last, None)


def put(data: dict[str, Any], path: str, value: Any) -> None:
    *groups, last = path.split(".")
    for group in groups:
        data = data.setdefault(group, {})
    data[last] = value


def plain(device: Hardware = GPU) -> dict[str, Any]:
    """A device as a file of its own, without a measurement."""
    data = device.to_dict()
    for name in ("id", "architecture", "measured"):  # an architecture would put back what is taken out
        data.pop(name, None)
    return data


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.id)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_device_has_rates_or_lacks_a_figure(device: Hardware, dtype: str) -> None:
    needed = [f"compute.peak.{dtype}", "memory.hbm.bandwidth"]
    lacking = [path for path in needed if path not in device.quantities]
    if lacking:
        with pytest.raises(SpecError, match=rf"^{lacking[0]}: {device.id} lacks it; ") as refused:
            rates(device, dtype)
        assert "\n" not in str(refused.value)
        return
    found = rates(device, dtype)
    figures = {path: quantity.value for path, quantity in device.quantities.items() if hasattr(quantity, "value")}
    least = max(figures[needed[0]], figures.get(f"measured.best_gemm_{dtype}", 0))
    above = figures.get("compute.clock.sustained", 0) > figures.get("compute.clock.boost", 0)
    assert (found.dtype, found.hbm_peak) == (dtype, figures[needed[1]])
    assert found.peak >= least
    assert above or found.peak == least
    assert 0 < found.warp_matrix <= found.matrix <= found.peak
    assert 0 < found.hbm <= found.hbm_peak
    for name, paths in PATHS.items():
        known = getattr(found, name)
        assert known is None or known > 0
        assert known is not None or device.simulated or any(WORDS[name] in text for text in found.left_out)
        if not any(path in figures for path in paths):
            assert known is None or (name == "l2" and any("L2" in text for text in found.assumed))
    if found.clock and found.units and "compute.exp_per_clock_per_sm" in figures and "measured.exp" not in figures:
        assert "compute.exp" in figures or found.exp == pytest.approx(
            figures["compute.exp_per_clock_per_sm"] * found.units * found.clock
        )


def test_what_is_known_of_an_h100() -> None:
    """132 SMs at 1.83 GHz: 16 exponentials and 128 B of shared memory a clock; an fp32 operation is half an FMA."""
    found = rates(hardware("h100-sxm5"), "bf16")
    assert found == Rates(
        "bf16", 989.4e12, 132 * 2378 * 1.83e9, 989.4e12, 0.9 * 3.352e12, 3.352e12, 9.8e12, 132 * 128 * 1.83e9,
        132 * 16 * 1.83e9, 66.9e12 / 2, 132, 1.83e9, 50 * 2**20, None, 4096 * 1.83e9, 2378 * 1.83e9, 128 * 1.83e9,
        ("memory at 90 % of the datasheet's bandwidth (none measured)",), True, l2_partitions=2, l2_for_all=37_000_000,
        reached=794.5e12, dirty=35e6,
    )  # fmt: skip
    assert found.left_out == ()
    assert found.warp_matrix < found.matrix  # one warp alone does not reach the peak of four together
    a100 = rates(hardware("a100-sxm4-80gb"), "fp16")
    assert a100.sm_warp_matrix == a100.sm_matrix == 2048 * 1.41e9
    assert a100.warp_matrix == pytest.approx(a100.matrix, rel=1e-3)  # the printed peak is rounded
    assert a100.assumed == ()


def test_the_clock_is_that_of_the_peak(tmp_path: Path) -> None:
    """Where no clock is on file, the one at which the fp16 peak is counted; else that of the matrix units first."""
    data = plain()
    assert rates(written(data, tmp_path), "fp8").clock == 1.83e9
    without(data, "compute.clock.tensor")
    assert rates(written(data, tmp_path), "fp8").clock == 1.98e9
    without(data, "compute.clock.boost")
    assert rates(written(data, tmp_path), "fp8").clock == pytest.approx(1.83e9, rel=1e-3)


MEASURED = {
    "hbm_copy": ("hbm", 3.352e12),
    "l2_bandwidth": ("l2", None),
    "gemm_bf16": ("matrix", 989.4e12),
    "exp": ("exp", None),
    "kernel_launch": ("launch", None),
}


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0, 3.0])
def test_a_measured_figure_wins_up_to_the_peak(name: str, share: float, tmp_path: Path) -> None:
    stated = {"hbm": 3.352e12, "l2": 5e12, "matrix": 989.4e12, "exp": 3.8e12, "launch": 2e-6}
    field, most = MEASURED[name]
    value = share * stated[field]
    data = plain()
    put(data, f"measured.{name}", value)
    found = rates(written(data, tmp_path), "bf16")
    assert getattr(found, field) == pytest.approx(value if most is None else min(value, most))
    assert (found.peak, found.hbm_peak) == (989.4e12, 3.352e12)
    assert found.warp_matrix <= found.matrix
    untouched = rates(written(plain(), tmp_path), "bf16")
    others = [other for other, _ in MEASURED.values() if other not in (field, "matrix")]
    assert [getattr(found, other) for other in others] == [getattr(untouched, other) for other in others]


@pytest.mark.parametrize(
    ("path", "dtype", "share"),
    [
        ("measured.best_gemm_bf16", "bf16", 0.5),
        ("measured.best_gemm_bf16", "fp16", 0.5),
        ("measured.best_gemm_bf16", "fp8", None),
        ("measured.best_gemm_fp8", "fp8", 0.5),
        ("measured.gemm_bf16", "bf16", 0.5),
    ],
)
def test_products_of_attention_reach_the_best_product(
    path: str, dtype: str, share: float | None, tmp_path: Path
) -> None:
    """Of its own type, or the share of bf16's; where nothing is measured a share that `assumed_products` names."""
    data = plain()
    for name in ("best_gemm_bf16", "best_gemm_fp8"):
        without(data, f"measured.{name}")
    bare = rates(written(data, tmp_path), dtype)
    assert bare.reached == pytest.approx(0.8 * bare.peak)
    assert bare.assumed_products == f"{dtype} products at 80 % of the peak at most (none measured)"
    put(data, path, 0.5 * data["compute"]["peak"]["fp8" if path.endswith("fp8") else "bf16"]["value"])
    found = rates(written(data, tmp_path), dtype)
    assert found.reached == pytest.approx(0.5 * found.peak)
    assert (found.assumed_products is None) == (share is not None)


def test_a_sustained_clock_slows_every_unit_of_an_sm(tmp_path: Path) -> None:
    data = plain()
    put(data, "compute.clock.sustained", 1.83e9 / 2)
    found, before = rates(written(data, tmp_path), "bf16"), rates(written(plain(), tmp_path), "bf16")
    for name in ("sm_matrix", "sm_warp_matrix", "sm_fp32", "exp", "shared"):
        assert getattr(found, name) == pytest.approx(getattr(before, name) / 2)
    assert (found.peak, found.hbm) == (before.peak, before.hbm)
    assert before.l2 is not None
    assert found.l2 == before.l2 / 2  # that of another device of the architecture, per clock


@pytest.mark.parametrize(("name", "like"), [("a30", "a100-sxm4-80gb"), ("rtx3090", "a40"), ("rtx4090", "l40")])
def test_an_l2_without_a_bandwidth_takes_that_of_its_architecture(name: str, like: str) -> None:
    found, measured = rates(hardware(name), "bf16"), rates(hardware(like), "bf16")
    assert found.l2 and found.units and found.clock and measured.l2 and measured.units and measured.clock  # noqa: PT018
    per_clock = [each.l2 / each.units / each.clock for each in (found, measured)]
    assert per_clock[0] == pytest.approx(per_clock[1], rel=0.02)
    assert any("L2" in text for text in found.assumed)
    assert not any("L2" in text for text in measured.assumed)


def test_a_copy_says_more_than_a_read(tmp_path: Path) -> None:
    data = plain()
    for name, value in (("hbm_write", 2.0e12), ("hbm_read", 2.2e12), ("hbm_triad", 2.4e12), ("hbm_copy", 2.6e12)):
        put(data, f"measured.{name}", value)
        assert rates(written(data, tmp_path), "bf16").hbm == value


def test_a_gemm_of_another_dtype_says_nothing(tmp_path: Path) -> None:
    data = plain()
    put(data, "measured.gemm_fp8", 1e14)
    put(data, "measured.gemm_qk_bf16", 1e14)
    device = written(data, tmp_path)
    assert rates(device, "bf16").matrix == 989.4e12
    assert rates(device, "fp8").matrix == 1e14


def test_a_users_measurements_set_the_time(tmp_path: Path) -> None:
    """At half of the matrix peak, a benchmark's rate bounds the time, which is twice that of the products."""
    w = iomodel.Attention(batch=4, heads=16, q_len=4096, head_dim=128)
    tiles = {"block_q": 128, "block_kv": 64, "warps": 4}
    data = plain(hardware("a100-sxm4-80gb"))
    before = iomodel.estimate("flash2", w, written(data, tmp_path), tiles)
    put(data, "measured.gemm_bf16", data["compute"]["peak"]["bf16"]["value"] / 2)
    put(data, "measured.kernel_launch", 1e-4)
    after = iomodel.estimate("flash2", w, written(data, tmp_path), tiles)
    assert before.limited_by == after.limited_by == "matrix"
    assert after.breakdown["matrix"] == pytest.approx(2 * before.breakdown["matrix"], rel=1e-3)
    assert after.seconds == pytest.approx(after.breakdown["matrix"] + 1e-4)
    assert after.seconds > before.seconds
    assert after.breakdown["launch"] == 1e-4
    assert after.mfu < before.mfu
    assert after.rates.peak == before.rates.peak


@pytest.mark.parametrize("name", PATHS)
def test_what_is_missing_is_named(name: str, tmp_path: Path) -> None:
    """A device without a figure still answers, not more slowly, and says what its time is no part of."""
    data = plain()
    for path in PATHS[name]:
        without(data, path)
    data["compute_capability"] = "10.0"  # whose L2 no device on file has measured
    device = written(data, tmp_path)
    found = rates(device, "bf16")
    assert getattr(found, name) is None
    assert any(WORDS[name] in text for text in found.left_out)
    assert len(set(found.left_out)) == len(found.left_out)
    w = iomodel.Attention(heads=16, q_len=1024, head_dim=64)
    answer = iomodel.estimate("flash2", w, device, {"block_q": 128, "block_kv": 64})
    assert answer.left_out == (*found.left_out, *memory_levels(device)[1])
    assert answer.seconds >= answer.floor > 0
    assert all(text in str(answer) for text in found.left_out)
    if name not in ("l2_capacity", "clock"):  # without an L2 all requests go to DRAM; the clock may be another one
        whole = iomodel.estimate("flash2", w, written(plain(), tmp_path), {"block_q": 128, "block_kv": 64})
        assert answer.seconds <= whole.seconds * (1 + 1e-12)


@pytest.mark.parametrize("path", ["memory.hbm.bandwidth", "compute.peak.bf16"])
def test_without_a_bandwidth_or_a_peak_there_is_no_time(path: str, tmp_path: Path) -> None:
    data = plain()
    without(data, path)
    with pytest.raises(SpecError, match=rf"^{path}: NVIDIA H100 SXM5 80GB lacks it"):
        iomodel.estimate("flash2", iomodel.Attention(q_len=64, head_dim=64), written(data, tmp_path))


@given(dtype=st.sampled_from(DTYPES), device=st.sampled_from(DEVICES))
def test_rates_are_of_the_device_alone(dtype: str, device: Hardware) -> None:
    """What is remembered for one device is not told of another."""
    try:
        found = rates(device, dtype)
    except SpecError:
        assert not has_rates(device, dtype)
        return
    assert has_rates(device, dtype)
    assert rates(hardware(str(device.id)), dtype) == found
    assert rates(device.model_copy(update={"id": "other"}), dtype) == found


@pytest.mark.parametrize(
    "name", [name for name in list_hardware() if "compute.fp16_per_clock_per_sm" in hardware(name).quantities]
)
def test_the_types_of_an_sm_share_its_clock(name: str) -> None:
    """An SM multiplies tf32 at half the rate of fp16, and fp8 at twice; a multiply-add in fp32 is two operations."""
    device = hardware(name)
    known = {dtype: rates(device, dtype) for dtype in get_args(DType) if has_rates(device, dtype)}
    of_sm = {dtype: found.sm_matrix for dtype, found in known.items() if found.clock is not None}
    whole = of_sm.get("fp16", of_sm.get("bf16"))
    for dtype, times in {"fp16": 1, "bf16": 1, "tf32": 0.5, "fp8": 2}.items():
        if dtype in of_sm:
            assert of_sm[dtype] == pytest.approx(times * whole), dtype
    if "fp32" in of_sm and "compute.fp32_per_clock_per_sm" in device.quantities:
        per_clock = device.quantities["compute.fp32_per_clock_per_sm"].value
        assert of_sm["fp32"] == pytest.approx(2 * per_clock * known["fp32"].clock)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (lambda device: BANDWIDTH, ["hbm", "hbm_peak"]),
        (matrix, ["matrix", "warp_matrix", "peak", "reached", "sm_matrix", "sm_warp_matrix"]),
    ],
)
@pytest.mark.parametrize("name", [name for name in list_hardware() if has_rates(hardware(name), "bf16")])
def test_a_resource_that_is_scaled_keeps_no_rate_of_its_own(name: str, paths: Any, names: list[str]) -> None:
    """Measured and stated figures of a resource change together, as a sensitivity takes them."""
    device = hardware(name)
    before, after = rates(device, "bf16"), rates(scaled(device, paths(device), 1.5), "bf16")
    for rate in names:
        known = getattr(before, rate)
        assert getattr(after, rate) == (known if known is None else pytest.approx(1.5 * known)), rate


def test_products_of_libraries_take_the_fastest_instruction() -> None:
    """On cards that accumulate in fp32 at half the rate, fp8 is multiplied by the instruction that scales blocks."""
    for device in DEVICES:
        fp8, products = (found(device, "fp8") if has_rates(device, "fp8") else None for found in (rates, product_rates))
        scaled = "compute.peak.mxfp8" in device.quantities
        assert (products != fp8) == scaled
        if scaled:
            assert products is not None
            assert products.dtype == "fp8"
            assert products.sm_matrix == pytest.approx(2 * fp8.sm_matrix)
