"""Signs of the time model: ordered sums, faster units, pages, decoding, SMs, and the intervals of measured times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import hardware
from iomodel.timing.error_interval import HALF_WIDTHS, Place, place_of
from tests.support.device_edits import scaled
from tests.support.inside import BANDWIDTH, Elementwise, rates

BACKWARD = iomodel.Attention(batch=2, heads=8, q_len=2048, head_dim=128, dtype="bf16", direction="backward")
ORDERED = [
    ("flash2", "a100-sxm4-80gb", "flash-attention-2"),
    ("flash2", "b200", "flash-attention-4"),
    ("flash2", "mi300x", "ck"),
    ("flash2", "rtx4090", "flash-attention-2"),
    ("flash3", "h100-sxm5", "flash-attention-3"),
]


def both(name: str, device: str, kernels: str, call: iomodel.Attention) -> list[float]:
    """Times in any order and in a fixed one [s]."""
    return [
        iomodel.estimate(name, call, device, implementation=kernels, deterministic=ordered).seconds
        for ordered in (False, True)
    ]


@pytest.mark.parametrize(("name", "device", "kernels"), ORDERED)
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_ordered_sums_take_longer_where_blocks_share_a_tile_of_dq(
    name: str, device: str, kernels: str, mask: str
) -> None:
    free, ordered = both(name, device, kernels, BACKWARD.model_copy(update={"mask": mask}))
    assert ordered > 1.02 * free


@pytest.mark.parametrize(("name", "device", "kernels"), ORDERED)
def test_ordered_sums_of_one_block_take_as_long(name: str, device: str, kernels: str) -> None:
    """All keys in one tile: no block waits for another."""
    free, ordered = both(name, device, kernels, BACKWARD.model_copy(update={"kv_len": 48, "q_len": 48}))
    assert 0.95 * free <= ordered <= 1.05 * free


def test_a_turn_hides_behind_the_softmax_that_no_product_runs_beside() -> None:
    """At head dimensions 192 and 128 tensor memory is full: published pairs of a GB200 differ by at most 9 %."""
    wide = BACKWARD.model_copy(update={"head_dim": 192, "value_dim": 128, "q_len": 8192, "kv_len": 8192, "heads": 64})
    free, ordered = both("flash2", "gb200", "flash-attention-4", wide)
    assert free <= ordered < 1.02 * free
    narrow = wide.model_copy(update={"head_dim": 128})
    free, ordered = both("flash2", "gb200", "flash-attention-4", narrow)
    assert ordered > 1.1 * free


def test_faster_exponentials_shorten_a_forward_pass_of_flash_attention_4() -> None:
    """On a GB300, whose other rates are those of a GB200, and on an edited GB200."""
    call = iomodel.Attention(batch=4, heads=16, q_len=4096, head_dim=128, dtype="bf16")
    times = {name: iomodel.estimate("flash2", call, name).seconds for name in ("gb200", "gb300")}
    assert times["gb300"] < 0.97 * times["gb200"]
    faster = scaled(hardware("gb200"), "measured.exp".__eq__, 2)
    assert iomodel.estimate("flash2", call, faster).seconds < 0.97 * times["gb200"]


def test_tiles_of_a_blackwell_block_take_turns_on_its_units() -> None:
    """Exponentials take as long as products on a GB200, and the rest of the softmax is waited for all the same."""
    call = iomodel.Attention(batch=4, heads=16, q_len=4096, head_dim=128, dtype="bf16")
    slower = scaled(hardware("gb200"), lambda path: "fp32" in path, 0.5)
    assert iomodel.estimate("flash2", call, slower).seconds > 1.1 * iomodel.estimate("flash2", call, "gb200").seconds


def test_blocks_of_narrow_windows_on_blackwell_start_one_by_one() -> None:
    """Published for a GB200: 822 us (working row of published_2.csv)."""
    window = iomodel.Window(left=127, right=0)
    call = iomodel.Attention(batch=2, heads=128, q_len=16384, head_dim=64, dtype="bf16", mask=window)
    assert iomodel.estimate("flash2", call, "gb200").seconds == pytest.approx(822e-6, rel=0.1)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(("batch", "heads"), [(1, 8), (4, 32), (32, 32)])
def test_a_causal_mask_on_blackwell_takes_no_longer_than_none(direction: Any, batch: int, heads: int) -> None:
    for length in (128, 256, 512, 768, 1024, 2048):
        masked, free = (
            iomodel.estimate(
                "flash2",
                iomodel.Attention(batch=batch, heads=heads, q_len=length, head_dim=64, mask=mask, direction=direction),
                "b200",
            ).seconds
            for mask in ("causal", "full")
        )
        assert masked <= 1.03 * free


def test_idle_units_leave_their_power_to_the_others() -> None:
    """Of an MI300X, whose clock on file is that at the limit of power: one block for each of 64, 128 and 304 CUs."""
    times = [
        iomodel.estimate("flash2", iomodel.Attention(heads=heads, q_len=2048, head_dim=128, dtype="bf16"), "mi300x",
                         implementation="aiter-assembly").seconds
        for heads in (8, 16, 38)
    ]  # fmt: skip
    assert times == sorted(times)
    assert times[0] < 0.8 * times[-1]
    assert times[0] > 1.2 / 2.1 * times[-1]


def test_long_products_on_an_a100_pcie_run_at_its_base_clock() -> None:
    times = [
        iomodel.estimate("flash2", iomodel.Attention(heads=64, q_len=length, head_dim=128), "a100-pcie-80gb").seconds
        for length in (4096, 65536)
    ]
    assert 1.15 < times[1] / times[0] / 256 < 1.3


@pytest.mark.parametrize("implementation", ["flash-attention-3", "flash-attention-2", "flashinfer"])
def test_smaller_pages_are_never_faster(implementation: str) -> None:
    """Of the sizes that the front end of a kernel takes."""
    times, step = [], iomodel.kernels.implementation("split_kv", implementation).front_end.page_step
    streaming = scaled(hardware("h100-sxm5"), BANDWIDTH.__contains__, 4)  # addresses take longer than bytes
    for page_size in (size for size in (1024, 512, 256, 128, 64, 16, 1) if size % step == 0):
        call = iomodel.Attention(batch=64, heads=8, q_len=1, kv_len=8192, head_dim=128, page_size=page_size)
        found = iomodel.estimate("split_kv", call, streaming, {"block_q": 64, "block_kv": 128}, splits=4, packed=True,
                                 implementation=implementation)  # fmt: skip
        times.append(found.seconds)
    assert times == sorted(times)
    assert (times[-1] > 1.01 * times[0]) == (implementation == "flash-attention-3")


def test_small_pages_lengthen_a_prefill_of_flash_attention_3():
    """Record of vLLM 0.26 on an H100: 1,382 us without pages, 1,516 with pages of 16 keys."""
    call = iomodel.Attention(heads=8, q_len=16384, head_dim=256, dtype="bf16", mask="causal")
    whole, paged = (
        iomodel.estimate("flash3", call.model_copy(update={"page_size": size}), "h100-sxm5").seconds
        for size in (None, 16)
    )
    assert 1.02 < paged / whole < 1.15


@given(
    device=st.sampled_from(["a100-sxm4-80gb", "rtx-pro-6000", "b200", "rtx3090"]),
    keys=st.integers(256, 65536),
    batch=st.integers(1, 32),
    more=st.integers(2, 4),
)
def test_decoding_takes_longer_with_more_keys_sequences_and_heads(
    device: str, keys: int, batch: int, more: int
) -> None:
    sizes = {"batch": batch, "heads": 8, "kv_heads": 2, "q_len": 1, "kv_len": keys, "head_dim": 128}
    tiles = {"block_q": 64, "block_kv": 128}

    def seconds(**changed: int) -> float:
        call = iomodel.Attention(**{**sizes, **changed})
        return iomodel.estimate(
            "split_kv", call, device, tiles, splits=1, packed=True, implementation="flash-attention-2"
        ).seconds

    least = seconds()
    assert seconds(kv_len=more * keys) >= least
    assert seconds(batch=more * batch) >= least
    assert seconds(heads=8 * more, kv_heads=2 * more) >= least


@pytest.mark.parametrize("name", ["h100-sxm5", "a100-sxm4-80gb", "mi300x", "l40s"])
@pytest.mark.parametrize("rows", [16, 512, 4096])
def test_more_sms_never_slow_a_linear_layer(name: str, rows: int) -> None:
    device = hardware(name)
    layer = iomodel.Linear(rows=rows, in_features=4096, out_features=1024)
    times = [
        iomodel.estimate("gemm", layer, scaled(device, "compute.units".__eq__, factor)).seconds for factor in (1, 2, 3)
    ]
    assert times == sorted(times, reverse=True)


def test_an_overwritten_l2_costs_its_lines_where_a_call_reads_them() -> None:
    """Decoding 268 MB of keys and values on an RTX PRO 6000 evicts 94 MB; a prefill leaves lines of its own."""
    clean = iomodel.devices.Parameters(dirty_l2=0)
    decode = iomodel.Attention(batch=32, heads=64, kv_heads=8, q_len=1, kv_len=2048, head_dim=128, dtype="bf16")
    prefill = iomodel.Attention(heads=8, q_len=2048, head_dim=128, dtype="bf16")
    one: dict[str, Any] = {"splits": 1, "packed": True}
    for call, name, written, options in ((decode, "split_kv", 94e6, one), (prefill, "flash2", 0.0, {})):
        dirty, without = (
            iomodel.estimate(name, call, "rtx-pro-6000", implementation="flash-attention-2", **options, **more)
            for more in ({}, {"parameters": clean})
        )
        extra = (dirty.breakdown["hbm"] - without.breakdown["hbm"]) * dirty.rates.hbm
        assert extra == pytest.approx(written, rel=0.1)
        said = [note for note in dirty.assumed if "write back" in note]
        assert not any("write back" in note for note in without.assumed)
        assert [float(note.split()[0]) for note in said] == [
            pytest.approx(1e6 * extra / dirty.rates.hbm, abs=0.06)
        ] * bool(written)
    step = {"batch": 8, "q_len": 1, "kv_len": 8192}
    plans = [iomodel.step("llama-3-8b", "rtx-pro-6000", **step, **more).seconds for more in ({}, {"parameters": clean})]
    assert plans[0] == plans[1]


@pytest.mark.parametrize("device", ["l40s", "rtx-pro-6000", "h200-sxm", "b200"])
def test_a_repeated_call_reads_what_fits_from_the_l2(device: str) -> None:
    """Never slower than from DRAM, as fast as that beyond the L2, and monotone in the keys."""
    cold, warm = (iomodel.devices.Parameters(dirty_l2=0, warm_l2=share) for share in (0, 1))
    capacity = rates(hardware(device), "bf16").l2_for_all or 0
    before = 0.0
    for keys in (512, 1024, 2048, 8192, 32768, 131072):
        call = iomodel.Attention(batch=8, heads=32, kv_heads=8, q_len=1, kv_len=keys, head_dim=128, dtype="bf16")
        times = [
            iomodel.estimate("split_kv", call, device, implementation="flash-attention-2", splits=1, parameters=each)
            for each in (warm, cold)
        ]
        assert all(each.floor <= each.seconds for each in times)
        assert before <= times[0].seconds <= times[1].seconds
        assert (times[0].breakdown.get("hbm", 0) == 0) == (times[0].kernels[0].distinct_bytes <= capacity)
        before = times[0].seconds
    assert times[0].seconds == times[1].seconds
    shape = Elementwise(rows=1024, channels=1024)
    copies = [iomodel.estimate("copy", shape, device, parameters=each).seconds for each in (warm, cold)]
    launch = iomodel.estimate("copy", Elementwise(rows=1, channels=1), device, parameters=cold).seconds
    assert launch < copies[0] <= copies[1]


def test_an_l40s_multiplies_at_the_clock_of_its_power_and_reads_at_the_rate_of_its_memory() -> None:
    """Working rows of tests/measured/published_9.csv: 20.8 ms in SGLang, 1.606 ms in TensorRT-LLM."""
    sizes: dict[str, Any] = {"head_dim": 128, "dtype": "bf16"}
    prefill = iomodel.Attention(batch=4, heads=16, kv_heads=2, q_len=16384, mask="causal", **sizes)
    found = iomodel.estimate("flash2", prefill, "l40s", implementation="flashinfer")
    assert found.seconds == pytest.approx(20.81e-3, rel=0.05)
    decode = iomodel.Attention(batch=32, heads=64, kv_heads=8, q_len=1, kv_len=8192, **sizes)
    assert iomodel.estimate("split_kv", decode, "l40s").seconds == pytest.approx(1.606e-3, rel=0.05)


def test_an_interval_is_that_of_the_nearest_place_with_rows() -> None:
    for place, width in HALF_WIDTHS.items():
        assert Place(*place).half_width == width > 0
    assert Place("sm_7x", "forward", "long").half_width == HALF_WIDTHS["all", "all", "all"]
    call = iomodel.Attention(heads=16, q_len=4096, head_dim=128)
    assert place_of(hardware("h200-sxm"), call, 1e-3) == ("sm_9x", "forward", "long")
    assert place_of(hardware("mi355x"), call.model_copy(update={"q_len": 1}), 1e-5) == ("CDNA", "decode", "short")
    window = call.model_copy(update={"mask": iomodel.Window(left=127, right=0)})
    assert place_of(hardware("gb200"), window, 1e-3) == ("sm_10x", "forward", "window")
    found = iomodel.estimate("flash2", call, "h100-sxm5")
    width = 1 + place_of(found.hardware, call, found.seconds).half_width
    assert found.error == pytest.approx((found.seconds / width, found.seconds * width))


def test_intervals_of_an_array_are_those_of_its_calls() -> None:
    """Decoding has intervals of its own on an H100."""
    calls = {"q_len": [1, 64, 8192], "kv_len": 8192, "heads": 16, "head_dim": 128, "block_q": 64, "block_kv": 64}
    found = iomodel.estimate_array("flash2", None, "h100-sxm5", **calls)
    low, high = found.error
    assert high[0] / low[0] != pytest.approx(high[1] / low[1])
    for place in range(3):
        assert found[place].error == pytest.approx((low[place], high[place]))
    assert found.records()["error_low"].tolist() == low.tolist()
