"""Times of eager attention: single elements by address, and launches by the host."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest

import iomodel
from iomodel.algorithms import algorithm
from tests.support.inside import rates

MEASURED = Path(__file__).resolve().parents[1] / "measured"
GPU = iomodel.hardware("h100-sxm5")
CALL = iomodel.Attention(batch=2, heads=16, q_len=4096, head_dim=128, mask="causal", dtype="bf16")
EXECUTION = algorithm("eager").execution["forward"]


def test_strided_kernels_take_an_address_for_each_element() -> None:
    """The copies read and write Q, K and V; the addition reads S and the mask and writes S_masked."""
    found = iomodel.estimate("eager", CALL, GPU)
    rows, square = 32 * 4096 * 128, 32 * 4096**2
    known = rates(GPU, "bf16")
    assert known.units is not None and known.clock is not None  # noqa: PT018
    clocks = (2 * 3 * rows + 3 * square) * EXECUTION.address_clocks
    assert found.breakdown["addresses"] == pytest.approx(clocks / (known.units * known.clock))
    slow = [kernel.title for kernel in found.kernels if "addresses" in kernel.breakdown]
    assert slow == ["copy of Q", "copy of K", "copy of V", "S_masked = S + mask"]
    assert "addresses" not in iomodel.estimate("standard", CALL, GPU).breakdown


def test_the_allocation_is_that_of_a_published_table() -> None:
    """Beside what the call allocates, the benchmark holds the packed projection of Q, K and V, a leaf of autograd."""
    with (MEASURED / "published.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["curve"] == "fa1-t21-megatron-both-full-d64-mb-footprint"]
    errors = []
    for row in rows:
        call = iomodel.Attention(
            batch=int(row["batch"]), heads=int(row["heads"]), q_len=int(row["q_len"]), head_dim=int(row["head_dim"]),
            dtype="fp16", direction="both",
        )  # fmt: skip
        packed = 3 * 2 * call.batch * call.heads * call.q_len * call.head_dim
        errors.append((iomodel.cost("eager", call).peak_hbm_bytes + packed) / (float(row["value"]) * 2**20) - 1)
    assert len(errors) == 5
    assert all(-0.06 < error < 0 for error in errors)


def test_without_a_mask_nothing_is_added() -> None:
    full = iomodel.estimate("eager", CALL.model_copy(update={"mask": "full"}), GPU)
    assert not any("mask" in kernel.title for kernel in full.kernels)
    assert full.seconds < iomodel.estimate("eager", CALL, GPU).seconds


def test_the_host_launches_every_kernel() -> None:
    short = CALL.model_copy(update={"q_len": 16, "kv_len": 16, "mask": "full"})
    found = iomodel.estimate("eager", short, GPU)
    assert found.seconds == pytest.approx(len(found.kernels) * EXECUTION.host_launch)
    assert found.parameters.host_launch == EXECUTION.host_launch
    slower = iomodel.devices.Parameters(host_launch=1e-4)
    assert iomodel.estimate("eager", short, GPU, parameters=slower).seconds == pytest.approx(len(found.kernels) * 1e-4)


@pytest.mark.parametrize("name", ["address_clocks", "host_launch"])
@pytest.mark.parametrize("value", [-1.0, math.inf, True, "1"])
def test_a_figure_of_an_execution_is_a_number_from_0_up(name: str, value: object) -> None:
    with pytest.raises(iomodel.InputError, match=f"^{name}: .* given; allowed: a number from 0 up$"):
        replace(EXECUTION, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("keys", "single"), [(1023, True), (1024, True), (1025, False)])
def test_a_short_softmax_moves_single_elements(keys: int, single: bool) -> None:
    """PyTorch gives rows of up to 1,024 keys to a warp, forward and backward; longer rows move in vectors."""
    titles = {"forward": "P = softmax(S)", "backward": "dS = PdP - P rowsum(PdP)"}
    for direction, title in titles.items():
        call = CALL.model_copy(update={"q_len": 512, "kv_len": keys, "mask": "full", "direction": direction})
        kernels = {kernel.title: kernel for kernel in iomodel.estimate("eager", call, GPU).kernels}
        known = rates(GPU, "bf16")
        assert known.units is not None and known.clock is not None  # noqa: PT018
        accesses = kernels[title].requested_bytes / 2
        expected = accesses * EXECUTION.address_clocks / (known.units * known.clock) if single else 0.0
        assert kernels[title].breakdown.get("addresses", 0.0) == pytest.approx(expected)
        assert not any("addresses" in kernel.breakdown for name, kernel in kernels.items() if name.startswith("dP"))


def test_each_sequence_of_a_launch_has_its_own_rows() -> None:
    """Of two sequences, the rows of the shorter one move as single elements."""
    call = iomodel.VarlenAttention(q_lens=[512, 2048], heads=16, head_dim=128)
    found = {kernel.title: kernel for kernel in iomodel.estimate("eager", call, GPU).kernels}["P = softmax(S)"]
    short = iomodel.Attention(q_len=512, heads=16, head_dim=128)
    alone = {kernel.title: kernel for kernel in iomodel.estimate("eager", short, GPU).kernels}["P = softmax(S)"]
    assert found.breakdown["addresses"] == pytest.approx(alone.breakdown["addresses"])


@pytest.mark.parametrize(("device", "hidden"), [("h100-sxm5", True), ("b200", True), ("a100-sxm4-80gb", False)])
def test_asynchronous_products_over_rows_hide_their_traffic(device: str, hidden: bool) -> None:
    """O = P V sums over the keys; S = Q K^T over the head dimension alone, which has no loop to hide loads in."""
    found = iomodel.estimate("eager", CALL.model_copy(update={"head_dim": 256, "value_dim": 256}), device)
    kernels = {kernel.title: kernel for kernel in found.kernels}
    for title, overlaps in (("O = P V", hidden), ("S = Q K^T", False)):
        parts = kernels[title].breakdown
        traffic, products = max(parts["hbm"], parts.get("l2", 0.0)), parts["matrix"]
        expected = max(traffic, products) if overlaps else traffic + products
        assert kernels[title].seconds == pytest.approx(expected + parts["launch"], rel=0.01)


@pytest.mark.parametrize("device", ["h100-sxm5", "b200"])
def test_products_of_a_library_take_the_fastest_instruction(device: str) -> None:
    known = rates(iomodel.hardware(device), "bf16")
    kernels = {kernel.title: kernel for kernel in iomodel.estimate("eager", CALL, device).kernels}
    flops = 2 * CALL.batch * CALL.heads * CALL.q_len * CALL.kv_len * CALL.head_dim
    assert known.warp_matrix < known.matrix
    assert kernels["S = Q K^T"].breakdown["matrix"] == pytest.approx(flops / known.matrix, rel=0.01)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_call_with_dropout_launches_a_kernel_for_it(direction: str) -> None:
    """PyTorch has no other dropout; without the kernel only if it is switched off."""
    call = CALL.model_copy(update={"dropout": 0.1, "direction": direction})
    explicit = iomodel.cost("eager", call, dropout_pass=True)
    assert iomodel.cost("eager", call).hbm_bytes == explicit.hbm_bytes
    assert iomodel.cost("eager", call, dropout_pass=False).hbm_bytes < explicit.hbm_bytes
    assert (
        iomodel.estimate("eager", call, GPU).seconds == iomodel.estimate("eager", call, GPU, dropout_pass=True).seconds
    )
    assert iomodel.cost("eager", CALL).hbm_bytes == iomodel.cost("eager", CALL, dropout_pass=False).hbm_bytes
    formula = iomodel.expressions("eager", "causal", direction, dropout=True)
    assert (
        formula.hbm_bytes
        == iomodel.expressions("eager", "causal", direction, dropout=True, dropout_pass=True).hbm_bytes
    )
    arrays = iomodel.cost_array(
        "eager", batch=2, heads=16, q_len=[1024, 4096], head_dim=128, mask="causal", dropout=0.1, direction=direction
    )
    assert int(arrays.hbm_bytes[1]) == explicit.hbm_bytes


def test_short_and_long_softmaxes_in_arrays() -> None:
    lengths = [512, 1024, 1025, 4096]
    found = iomodel.estimate_array("eager", None, GPU, heads=16, q_len=lengths, head_dim=128)
    alone = [
        iomodel.estimate("eager", iomodel.Attention(heads=16, q_len=many, head_dim=128), GPU).seconds
        for many in lengths
    ]
    assert found.seconds.tolist() == pytest.approx(alone, rel=1e-12)
