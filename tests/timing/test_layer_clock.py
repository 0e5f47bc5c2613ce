"""Times of linear layers keep to laws, and are near those measured."""

import csv
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import Hardware, InfeasibleError, InputError, Linear, hardware
from iomodel.errors import SpecError
from iomodel.timing.gemm_waves import wave_trips
from iomodel.timing.kernel_time import DEPENDENT
from iomodel.timing.layer_clock import GROUPED, IN_BLOCKS, LAST_WAVE, STREAMED, LayerClock, layer_clock
from tests.support.device_edits import edited
from tests.support.inside import DEFAULT, WEIGHT_QUARTERS, Elementwise, GemmTile, fitting, from_data, rates

H100 = hardware("h100-sxm5")
rows, width = st.integers(1, 5000), st.sampled_from([128, 576, 1024, 4096, 14336])


@given(rows, rows, width, width)
def test_more_rows_never_take_less_time(few: int, more: int, terms: int, columns: int) -> None:
    few, more = sorted((few, more))
    clock = layer_clock(H100)
    times = [clock.linear(Linear(rows=n, in_features=terms, out_features=columns)).seconds for n in (few, more)]
    assert times[0] <= times[1] * (1 + 1e-12)


@given(rows, width, width, st.sampled_from(["bf16", "fp8", "int4"]))
def test_no_layer_beats_the_roofline(n: int, terms: int, columns: int, dtype: str) -> None:
    layer = Linear(rows=n, in_features=terms, out_features=columns, weight_dtype=dtype)
    span = layer_clock(H100).linear(layer)
    weights = layer.parameters * WEIGHT_QUARTERS[dtype] / 32
    assert span.hbm_bytes >= weights
    assert span.seconds >= max(span.hbm_bytes / 3.352e12, layer.flops / 9.894e14)
    assert span.hbm_bytes <= span.requested_bytes


@given(rows, width, width, st.floats(1.0, 4.0))
def test_more_bandwidth_is_never_slower(n: int, terms: int, columns: int, factor: float) -> None:
    layer = Linear(rows=n, in_features=terms, out_features=columns)
    data = H100.to_dict()
    data["memory"]["hbm"]["bandwidth"]["value"] = 3.352e12 * factor
    faster = from_data({name: value for name, value in data.items() if name != "id"}, "faster")
    assert layer_clock(faster).linear(layer).seconds <= layer_clock(H100).linear(layer).seconds


def test_a_layer_of_few_rows_streams_its_weights() -> None:
    span = layer_clock(H100).linear(Linear(rows=1, in_features=4096, out_features=28672))
    at_best = 2 * 4096 * 28672 / (0.9 * STREAMED["sm_90"] * 3.352e12)
    assert at_best < span.seconds < 1.1 * at_best


@pytest.mark.parametrize("name", ["h200-sxm", "b200"])
def test_few_columns_leave_sms_without_weights_to_load(name: str) -> None:
    """A sum of many terms takes longer than one of as many weights in more columns, as measured; not on an A100."""
    at = {device: layer_clock(hardware(device), DEFAULT, True) for device in (name, "a100-sxm4-80gb")}
    few = Linear(rows=16, in_features=16384, out_features=5120)
    many = Linear(rows=16, in_features=5120, out_features=16384)
    assert 1.05 < at[name].linear(few).seconds / at[name].linear(many).seconds < 1.25
    assert at["a100-sxm4-80gb"].linear(few).seconds < 1.05 * at["a100-sxm4-80gb"].linear(many).seconds


@pytest.mark.parametrize("name", ["a100-sxm4-80gb", "h200-sxm", "b200", "l40s"])
def test_engines_start_products_from_graphs(name: str) -> None:
    """A small product takes the time between nodes of a graph, not that between kernels on a stream."""
    layer, known = Linear(rows=8, in_features=512, out_features=2048), rates(hardware(name), "bf16")
    alone, served = (layer_clock(hardware(name), DEFAULT, engines).linear(layer).seconds for engines in (False, True))
    launch = DEFAULT.kernel_launch if known.launch is None else known.launch
    assert alone - served == pytest.approx(launch - (known.node or DEPENDENT * launch), rel=0.01)


@given(
    st.integers(1, 9), st.integers(6, 14), st.integers(6, 14), st.sampled_from(["a100-sxm4-80gb", "h200-sxm", "b200"])
)
def test_more_rows_are_never_faster(rows_power: int, terms: int, columns: int, name: str) -> None:
    """Nor are more terms, or more columns of whole tiles."""
    clock = layer_clock(hardware(name), DEFAULT, True)
    sizes = {"rows": 2**rows_power, "in_features": 2**terms, "out_features": 2**columns}
    least = clock.linear(Linear(**sizes)).seconds
    for field, size in sizes.items():
        assert clock.linear(Linear(**{**sizes, field: 2 * size})).seconds >= least * (1 - 1e-9)


def test_products_in_a_server_reach_less_than_one_alone() -> None:
    layer = Linear(rows=8192, in_features=8192, out_features=8192)
    alone, served = (layer_clock(H100, DEFAULT, True, share).linear(layer).seconds for share in (1.0, 0.8))
    assert served == pytest.approx(alone / 0.8, rel=0.02)
    few = layer.model_copy(update={"rows": 16})
    alone, served = (layer_clock(H100, DEFAULT, True, share).linear(few).seconds for share in (1.0, 0.8))
    assert served == alone


@pytest.mark.parametrize(("name", "low", "high"), [("h100-sxm5", 0.65, 0.85), ("a100-sxm4-80gb", 0.8, 0.95)])
def test_a_large_product_reaches_what_libraries_reach(name: str, low: float, high: float) -> None:
    device = hardware(name)
    span = layer_clock(device).linear(Linear(rows=8192, in_features=8192, out_features=8192))
    assert device.compute.peak.bf16 is not None
    assert low < span.flops / span.seconds / float(device.compute.peak.bf16.value) < high


def test_groups_of_different_rows_share_a_launch() -> None:
    clock = layer_clock(H100)
    shape = {"in_features": 2048, "out_features": 1024}
    apart = [Linear(rows=n, groups=g, **shape) for n, g in ((3, 2), (17, 1))]
    span = clock.linear(*apart)
    assert span.flops == sum(layer.flops for layer in apart)
    assert span.hbm_bytes >= 2 * sum(layer.parameters for layer in apart)
    assert span.seconds < sum(clock.linear(layer).seconds for layer in apart)


def test_a_wave_of_blocks_shares_its_operands() -> None:
    layer = Linear(rows=1024, in_features=10**6, out_features=1024)  # neither operand fits the L2
    assert wave_trips(layer, GemmTile(128, 128, 64, 1, 1, 8, 4), 64, 10**6) == (1, 1)
    assert wave_trips(layer, GemmTile(128, 128, 64, 1, 1, 8, 4), 16, 10**6) == (2, 2)
    assert wave_trips(layer, GemmTile(128, 128, 64, 1, 1, 8, 4), 1, 10**6) == (8, 8)
    assert wave_trips(layer, GemmTile(128, 128, 64, 1, 1, 8, 4), 1, 10**12) == (1, 1)


def test_a_device_without_a_peak_is_refused() -> None:
    with pytest.raises(SpecError, match=r"compute\.peak\.fp8"):
        layer_clock(hardware("a100-sxm4-80gb")).linear(Linear(rows=1, in_features=8, out_features=8, dtype="fp8"))


def test_operands_beyond_the_l2_come_more_than_once_and_less_often_than_asked_for() -> None:
    layer = Linear(rows=16384, in_features=16384, out_features=16384)
    span = layer_clock(H100).linear(layer)
    once = 3 * 2 * 16384**2
    assert 2 * once < span.hbm_bytes < span.requested_bytes / 3


def test_times_are_near_those_measured() -> None:
    """Vidur's profiles of Llama's layers (tests/measured/README.md), which nothing was fitted to."""
    errors: dict[str, list[float]] = {}
    with (Path(__file__).parents[1] / "measured" / "linear.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            sizes = {name: int(row[name]) for name in ("rows", "in_features", "out_features")}
            seconds = layer_clock(hardware(row["device"])).linear(Linear(**sizes, dtype="fp16")).seconds
            errors.setdefault(row["device"], []).append(abs(seconds / float(row["seconds"]) - 1))
    assert {name: len(found) for name, found in errors.items()} == {"a100-sxm4-80gb": 96, "a40": 48, "h100-sxm5": 96}
    assert median(errors["h100-sxm5"]) < 0.12
    assert median(errors["a100-sxm4-80gb"]) < 0.13
    assert median(errors["a40"]) < 0.2


def test_lone_products_are_near_those_measured() -> None:
    """Square products by cuBLASLt's fastest algorithm (tests/measured/README.md), each type by its own rate."""
    errors: dict[str, list[float]] = {}
    with (Path(__file__).parents[1] / "measured" / "lone_products.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            side = int(row["rows"])
            layer = Linear(rows=side, in_features=side, out_features=side, dtype=row["dtype"])
            seconds = layer_clock(hardware(row["device"])).linear(layer).seconds
            errors.setdefault(row["device"], []).append(abs(seconds / float(row["seconds"]) - 1))
    assert {name: len(found) for name, found in errors.items()} == {
        "gb10": 17, "h200-nvl": 18, "rtx-pro-6000": 18, "rtx4090": 18, "rtx5090": 15
    }  # fmt: skip
    assert all(median(found) < 0.1 for found in errors.values())


def test_a_board_whose_power_limits_wide_products_limits_narrow_ones() -> None:
    """The same chip on an H100 PCIe and an H100 SXM: a product in fp8 reaches less of the peak under 350 W."""
    layer = Linear(rows=8192, in_features=8192, out_features=8192, dtype="fp8")

    def rate(device: Hardware) -> float:
        return layer.flops / LayerClock(device, engines=True).linear(layer).seconds

    limited, usual = hardware("h100-pcie"), hardware("h100-sxm5")
    shares = [rate(device) / rates(device, "fp8").peak for device in (limited, usual)]
    assert 0.75 < shares[0] / shares[1] < 0.9
    assert rate(limited) < rate(edited(limited, {"measured.best_gemm_bf16": 6e14}))


@pytest.mark.parametrize("name", ["h100-sxm5", "h200-sxm", "b200", "a100-sxm4-80gb"])
def test_more_sms_never_slow_a_product(name: str) -> None:
    """Waves become fewer; the last one is not charged at a share of the peak that falls."""
    layer, units = Linear(rows=4096, in_features=1024, out_features=4096), hardware(name).compute.units
    assert units is not None
    times = [
        layer_clock(edited(hardware(name), {"compute.units": int(units.value * more / 4)})).linear(layer).seconds
        for more in range(4, 21)
    ]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(times))


@pytest.mark.parametrize("name", ["h100-sxm5", "h200-sxm", "b200", "a100-sxm4-80gb", "mi300x"])
@pytest.mark.parametrize("many", [256, 2048])
def test_a_higher_peak_never_slows_a_product(name: str, many: int) -> None:
    """The share of the peak that products reach is no reason to slow an SM whose own rate stands still."""
    layer, peak = Linear(rows=many, in_features=3072, out_features=4096), rates(hardware(name), "bf16").peak
    times = [
        layer_clock(edited(hardware(name), {"compute.peak.bf16": peak * more / 4})).linear(layer).seconds
        for more in range(4, 10)
    ]
    assert all(after <= before * 1.005 for before, after in pairwise(times))  # peaks are rounded


def test_a_last_wave_takes_as_long_as_a_full_one() -> None:
    """128 x 256 tiles on 132 SMs: 132 of them fill a wave; one more takes two."""
    full, more = (
        layer_clock(hardware("h200-sxm")).linear(Linear(rows=128 * 12, in_features=8192, out_features=256 * wide))
        for wide in (11, 12)
    )
    assert more.seconds > 1.2 * full.seconds


@pytest.mark.parametrize("columns", [128, 256])
@pytest.mark.parametrize("waves", [1, 2, 5])
def test_whole_waves_take_half_a_wave_beside_their_own(waves: int, columns: int) -> None:
    """On an H20, whose products take longer than their loads at any tile."""
    one, two = (
        iomodel.estimate(
            "gemm",
            Linear(rows=128 * 78 * many, in_features=8192, out_features=columns),
            "h20",
            {"block_m": 128, "block_n": columns, "block_k": 64},
        ).seconds
        for many in (waves, 2 * waves)
    )
    assert one / (two - one) * waves - waves == pytest.approx(LAST_WAVE, rel=0.02)


LAYERS = (
    Linear(rows=64, in_features=4096, out_features=4096),
    Linear(rows=3, in_features=512, out_features=640, groups=2, gated=True, dtype="fp8", out_dtype="bf16"),
    Linear(rows=300, in_features=4096, out_features=1024, weight_dtype="int4", scale_block=128),
)


@pytest.mark.parametrize("layer", LAYERS)
def test_an_estimate_is_the_time_of_a_step(layer: Linear) -> None:
    """Without tiles the fastest of the usual ones; given, the time of those; the counts are those of `cost`."""
    best = iomodel.estimate("gemm", layer, H100)
    assert best.seconds == layer_clock(H100).linear(layer).seconds
    assert best.cost == iomodel.cost("gemm", layer, best.tiles, **best.cost.options)
    assert iomodel.estimate("gemm", layer, H100, best.tiles, **best.cost.options).seconds == best.seconds
    alone = iomodel.estimate("gemm", layer, H100, splits=1)
    assert alone.cost.options["splits"] == 1
    assert alone.seconds >= best.seconds
    assert best.floor <= best.seconds
    assert best.compulsory_bytes <= best.dram_bytes[0] <= best.dram_bytes[1] == best.requested_bytes


def test_an_estimate_refuses_a_tile_that_does_not_fit() -> None:
    with pytest.raises(InfeasibleError, match="no block of"):
        iomodel.estimate("gemm", LAYERS[0], H100, {"block_m": 4096, "block_n": 4096, "block_k": 64})
    with pytest.raises(InputError, match="splits: 99 given; allowed: up to 64"):
        iomodel.estimate("gemm", LAYERS[0], H100, {"block_m": 64, "block_n": 64, "block_k": 64}, splits=99)


@pytest.mark.parametrize("layers", [1, 2])
def test_no_number_of_splits_is_faster_than_the_chosen_one(layers: int) -> None:
    """The kernel that adds the splits up counts too."""
    clock = layer_clock(hardware("h100-sxm5"))
    linears = tuple(Linear(rows=rows, in_features=2048, out_features=512) for rows in (64, 48)[:layers])
    chosen = sum(kernel.seconds for kernel in clock.fastest(linears)[0])
    for splits in (1, 2, 4, 8, 16):
        assert chosen <= sum(kernel.seconds for kernel in clock.fastest(linears, splits=splits)[0]) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["norm", "rotary", "gated_activation", "activation"])
def test_every_elementwise_kernel_with_a_backward_pass_is_timed(name):
    clock = layer_clock(hardware("h100-sxm5"))
    one, more = (
        clock.elementwise(name, Elementwise(rows=4096, channels=size, others=64, direction="backward"))
        for size in (4096, 8192)
    )
    assert 0 < one.seconds < more.seconds
    assert one.requested_bytes < more.requested_bytes


TIMED = [
    ("h100-sxm5", "fp8", 1535, 2073), ("h200-sxm", "fp8", 1533, 1954), ("b200", "bf16", 1453, 1594),
    ("b200", "fp8", 756, 878), ("b200", "nvfp4", 464, 619), ("gb200", "fp8", 722, 839), ("gb200", "nvfp4", 426, 688),
    ("b300", "fp8", 712, 844), ("b300", "nvfp4", 442, 511),
]  # fmt: skip
"""8192 rows by 8192 x 16384 weights in TensorRT-LLM, vLLM and SGLang, the fastest and the slowest [us]: aiconfigurator
0.12.0, gemm_perf, with the quantisation of the rows."""


@pytest.mark.parametrize(("name", "weights", "fast", "slow"), TIMED)
def test_long_products_take_what_engines_were_timed_with(name, weights, fast, slow):
    rows = {"nvfp4": "fp8"}.get(weights, weights)
    layer = Linear(rows=8192, in_features=8192, out_features=16384, dtype=rows, weight_dtype=weights, out_dtype="bf16")
    product = layer_clock(hardware(name), DEFAULT, True).linear(layer, products={"nvfp4": "fp4"}.get(weights, weights))
    assert fast / 1.1 < product.seconds * 1e6 < slow * 1.1


@pytest.mark.parametrize(("name", "products"), [("h200-sxm", IN_BLOCKS), ("b200", "fp8"), ("b200", IN_BLOCKS)])
def test_products_of_experts_reach_less_of_the_peak(name, products):
    layer = Linear(rows=2048, in_features=4096, out_features=4096, dtype="fp8", weight_dtype="fp8", groups=8)
    device = hardware(name)
    clock, peak = layer_clock(device), float(device.compute.peak.fp8.value)
    plain = clock.linear(layer.model_copy(update={"rows": 8 * 2048, "groups": 1}))
    grouped = clock.linear(layer, products=products)
    assert plain.seconds < grouped.seconds
    assert grouped.seconds >= layer.flops / (GROUPED[device.architecture][products] * peak)
    assert clock.linear(layer, products=IN_BLOCKS).seconds > clock.linear(layer, products="fp8").seconds


def test_shares_of_a_clock_replace_those_of_experts():
    layer = Linear(rows=2048, in_features=4096, out_features=4096, groups=8)
    device = hardware("h200-sxm")
    half = LayerClock(device, grouped={"bf16": GROUPED["sm_90"]["bf16"] / 2})
    assert half.linear(layer).seconds > 1.9 * layer_clock(device).linear(layer).seconds


@pytest.mark.parametrize("name", ["h100-sxm5", "rtx3060", "b200"])
def test_a_block_waits_for_each_slice_of_a_single_buffer(name):
    """As many blocks share an SM with two buffers of the low tile, so that they differ in the wait alone."""
    layer, device = Linear(rows=8192, in_features=8192, out_features=8192), hardware(name)
    tile = {"block_m": 128, "block_n": 128, "block_k": 16}
    one, two = (next(fitting(device, layer, {**tile, "splits": 1, "stages": stages})) for stages in (1, 2))
    assert one.blocks_per_sm == two.blocks_per_sm
    seconds = [
        sum(kernel.seconds for kernel in layer_clock(device).fastest((layer,), {**tile, "stages": each})[0])
        for each in (1, 2)
    ]
    assert seconds[0] > seconds[1]
