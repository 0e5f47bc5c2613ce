"""Laws of the counts and times of single operators: convolutions, products, passes, what is left out."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iomodel
from benchmarks.gpu_sections import convolution as measured
from benchmarks.gpu_sections import convolution_call
from iomodel import InputError
from iomodel.torch import OperatorCall, TensorArgument, TrafficReport, traffic
from iomodel.torch.eager_kernels import RULES
from tests.support.gpu_records import DEVICES, timed

GPU = "h100-sxm5"


def tensor(*shape: int, dtype: str = "float32", size: int = 4, **place: Any) -> TensorArgument:
    return TensorArgument(shape, dtype, size, **place)


def call(name: str, *inputs: TensorArgument, out: TensorArgument | None = None, **arguments: Any) -> OperatorCall:
    names = ("self", "other", "third")
    outputs = (inputs[0] if out is None else out,)
    return OperatorCall(f"aten.{name}", dict(zip(names, inputs, strict=False)), outputs, arguments=arguments)


def convolution(
    source: tuple[int, ...], weight: tuple[int, ...], result: tuple[int, ...], **arguments: Any
) -> OperatorCall:
    inputs = {"input": tensor(*source), "weight": tensor(*weight)}
    return OperatorCall("aten.convolution", inputs, (tensor(*result),), arguments=arguments)


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5)), min_size=1, max_size=3),
)
def test_flops_of_a_convolution_are_those_of_its_loops(
    batch: int, groups: int, inner: int, outer: int, axes: list[tuple[int, int]]
) -> None:
    kernel, lengths = [k for k, _ in axes], [n for _, n in axes]
    ends = [k + n - 1 for k, n in axes]
    weight = (groups * outer, inner, *kernel)
    plain = convolution((batch, groups * inner, *ends), weight, (batch, groups * outer, *lengths), groups=groups)
    loops = sum(
        2 * inner for _ in range(batch * groups * outer) for _ in range(prod(lengths)) for _ in range(prod(kernel))
    )
    assert traffic([plain]).flops == loops
    turned = convolution(
        (batch, groups * outer, *lengths), weight, (batch, groups * inner, *ends), groups=groups, transposed=True
    )
    assert traffic([turned]).flops == loops
    back = OperatorCall(
        "aten.convolution_backward",
        {"grad_output": plain.outputs[0], **plain.inputs},
        tuple(plain.inputs.values()),
        arguments={"groups": groups, "output_mask": (True, True, False)},
    )
    assert traffic([back]).flops == 2 * loops


def test_a_convolution_takes_the_time_of_its_products() -> None:
    small, large = (
        traffic([convolution((8, 512, 64, 64), (512, 512, k, k), (8, 512, 64, 64), tf32=True)], GPU) for k in (1, 7)
    )
    assert large.seconds > 10 * small.seconds > 0
    exact = convolution((8, 512, 64, 64), (512, 512, 7, 7), (8, 512, 64, 64))
    assert traffic([exact], GPU).seconds > large.seconds


def test_channels_that_lie_last_spare_the_changes_of_layout_around_products_of_16_bits() -> None:
    def seconds(last: bool, **changes: Any) -> float:
        case = {
            "kind": "dense",
            "axes": 2,
            "batch": 8,
            "in_channels": 64,
            "out_channels": 64,
            "size": 64,
            "kernel": 3,
            "stride": 1,
            "groups": 1,
            "padding": 1,
            "dtype": "bf16",
            "tf32": True,
            "channels_last": last,
        }
        return traffic([convolution_call(case | changes)], GPU).seconds or 0.0

    assert 0 < seconds(True) < seconds(False)
    assert seconds(True, kernel=1, padding=0) == pytest.approx(seconds(False, kernel=1, padding=0))
    assert seconds(True, in_channels=8) < seconds(True, in_channels=64) < seconds(True, dtype="fp32", tf32=False)
    assert seconds(True, groups=64) < seconds(False, groups=64)  # depthwise


def test_working_records_of_convolutions_are_met() -> None:
    ratios = [measured(one, told=True).seconds / one.seconds for one in timed(False, "convolution", device=DEVICES[1])]
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    assert len(errors) == 107
    assert errors[53] < 0.13


def test_channels_are_moved_last_and_back_around_products_in_tf32() -> None:
    source, result = (32, 64, 256, 256), (32, 128, 254, 254)
    one = convolution(source, (128, 64, 3, 3), result, tf32=True)
    x, y = (4 * prod(shape) for shape in (source, result))
    moved = {device: traffic([one], device).hbm_bytes for device in (GPU, "rtx-a6000")}
    assert moved[GPU] == pytest.approx(3 * x + 3 * y, rel=1e-3)  # kernels of warp groups write the channels last
    assert moved["rtx-a6000"] == pytest.approx(3 * x + y, rel=1e-3)
    (plain,) = (each for each in one.inputs.values() if each.shape == source)
    last = OperatorCall(
        "aten.convolution",
        one.inputs | {"input": tensor(*source, strides=(64 * 256 * 256, 1, 64 * 256, 64))},
        one.outputs,
        arguments=one.arguments,
    )
    assert traffic([last], GPU).hbm_bytes == pytest.approx(plain.bytes + y, rel=1e-3)


def test_a_device_without_tf32_runs_convolutions_in_fp32() -> None:
    cases = [convolution((8, 64, 64, 64), (64, 64, 3, 3), (8, 64, 62, 62), tf32=tf32) for tf32 in (True, False)]
    for device, same in (("t4", True), (GPU, False)):
        fast, exact = (traffic([case], device).seconds for case in cases)
        assert (fast == exact) == same


def test_a_transposed_convolution_pads_the_channels_of_its_result() -> None:
    def seconds(result: int) -> float:
        shapes = (4, 256, 128, 128), (256, result, 3, 3), (4, result, 130, 130)
        return traffic([convolution(*shapes, transposed=True, tf32=True)], GPU).seconds or 0.0

    assert seconds(72) > 1.4 * seconds(64)  # two blocks of 64 channels in the place of one


def test_few_channels_run_in_fp32_where_the_convolution_is_transposed() -> None:
    def seconds(few: int, tf32: bool) -> float:
        shapes = (64, few, 64, 64), (few, 16, 3, 3), (64, 16, 127, 127)
        return traffic([convolution(*shapes, transposed=True, stride=(2, 2), tf32=tf32)], GPU).seconds or 0.0

    assert seconds(3, True) == seconds(3, False)
    assert seconds(8, True) < seconds(8, False)


def test_the_bias_of_a_convolution_is_a_kernel_of_its_own() -> None:
    for changes in ({"tf32": True}, {}):
        plain = convolution((64, 64, 128, 128), (64, 64, 3, 3), (64, 64, 126, 126), **changes)
        biased = OperatorCall(
            plain.operator, plain.inputs | {"bias": tensor(64)}, plain.outputs, arguments=plain.arguments
        )
        added = traffic([biased], GPU).seconds - traffic([plain], GPU).seconds
        assert added == pytest.approx(traffic([call("relu", *plain.outputs)], GPU).seconds, rel=0.05)
        waiting = [traffic([each], GPU, host=1.0).elapsed for each in (plain, biased)]
        assert waiting == pytest.approx([1.0, 2.0], rel=0.01)


def test_an_axis_of_one_element_does_not_count() -> None:
    def seconds(*kernel: int) -> float:
        source, weight = (
            TensorArgument((8, 16, 64, 64, 8), "float32", 4),
            TensorArgument((16, 16, *kernel), "float32", 4),
        )
        result = TensorArgument((8, 16, *(n - k + 1 for n, k in zip((64, 64, 8), kernel, strict=True))), "float32", 4)
        inputs = {"input": source, "weight": weight}
        return (
            traffic([OperatorCall("aten.convolution", inputs, (result,), arguments={"tf32": True})], GPU).seconds or 0.0
        )

    flat = TensorArgument((8, 16, 64, 512), "float32", 4), TensorArgument((16, 16, 3, 3), "float32", 4)
    call = OperatorCall(
        "aten.convolution",
        dict(zip(("input", "weight"), flat, strict=True)),
        (TensorArgument((8, 16, 62, 62 * 8), "float32", 4),),
        arguments={"tf32": True},
    )
    assert seconds(3, 3, 1) == pytest.approx(traffic([call], GPU).seconds, rel=0.05)
    assert seconds(3, 3, 1) < seconds(3, 3, 2)


@pytest.mark.parametrize("device", ["t4", "v100-sxm2-16gb", "v100-sxm2-32gb", "gb10", "apple-m1", "apple-m4-max"])
def test_an_elementwise_operator_needs_no_matrix_peak(device: str) -> None:
    x = tensor(1 << 12, 1 << 12)
    seconds = traffic([call("relu", x)], device).seconds
    assert seconds is not None
    bandwidth = iomodel.hardware(device).quantities["memory.hbm.bandwidth"].value
    assert 1 < seconds * bandwidth / (2 * x.bytes) < 1.35


def test_products_that_are_not_counted_make_the_figures_at_least() -> None:
    x = tensor(64, 64)
    report = traffic([call("linalg_solve", x), call("relu", x)], GPU)
    assert report.flops_at_least
    assert report.seconds_at_least
    assert TrafficReport.from_json(report.to_json()) == report
    assert report.to_dict()["flops_at_least"] is True
    whole = traffic([call("relu", x), call("softmax", x)], GPU)
    assert not whole.flops_at_least
    assert not whole.seconds_at_least
    wide = tensor(64, 64, dtype="float64", size=8)
    product = OperatorCall("aten.mm", {"self": wide, "mat2": wide}, (wide,))
    untimed = traffic([product], "t4" if "fp64" not in _peaks("t4") else "apple-m1")
    assert untimed.seconds_at_least
    assert not untimed.flops_at_least


def _peaks(device: str) -> set[str]:
    paths = iomodel.hardware(device).quantities
    return {path.rpartition(".")[2] for path in paths if path.startswith("compute.peak.")}


def test_a_broadcast_tensor_comes_from_memory_once() -> None:
    table, column = tensor(1 << 15, 1 << 13), tensor(1 << 15, 1)
    divided = OperatorCall("aten.div", {"self": table, "other": column}, (table,), pointwise=True)
    report = traffic([divided], GPU)
    assert report.hbm_bytes == 2 * table.bytes + column.bytes
    assert report.requested_bytes == 3 * table.bytes
    expanded = tensor(1 << 15, 1 << 13, strides=(1, 0))
    same = OperatorCall("aten.div", {"self": table, "other": expanded}, (table,), pointwise=True)
    assert traffic([same], GPU).hbm_bytes == report.hbm_bytes


def test_a_matrix_times_a_vector_is_a_stream() -> None:
    matrix, vector = tensor(2048, 1 << 20), tensor(1 << 20, 1)
    report = traffic([OperatorCall("aten.mm", {"self": matrix, "mat2": vector}, (tensor(2048, 1),))], GPU)
    copy = traffic([call("relu", tensor(2048, 1 << 19))], GPU)  # reads half, and writes half
    assert report.flops == 2 * 2048 << 20
    assert report.seconds == pytest.approx(copy.seconds, rel=0.02)


def test_passes_are_those_of_the_kernels() -> None:
    long, short = tensor(4096, 1 << 18), tensor(1 << 18, 4096)
    assert traffic([call("_softmax", long, dim=1)]).hbm_bytes == 4 * long.bytes
    assert traffic([call("_softmax", short, dim=1)]).hbm_bytes == 2 * short.bytes
    one = tensor()
    loss = call("mse_loss", short, short, out=one, reduction=1)
    assert traffic([loss]).hbm_bytes == 4 * short.bytes + one.bytes
    assert traffic([call("mse_loss", short, short, reduction=0)]).hbm_bytes == 3 * short.bytes
    images = tensor(16, 64, 256, 256)
    normalized = {training: call("_native_batch_norm_legit", images, training=training) for training in (True, False)}
    assert [traffic([each]).hbm_bytes // images.bytes for each in normalized.values()] == [3, 2]


def test_a_channel_or_a_row_is_one_block() -> None:
    def batch_norm(channels: int) -> float:
        x, weight = tensor(64, channels, (1 << 22) // channels), tensor(channels)
        one = OperatorCall("aten._native_batch_norm_legit", {"input": x, "weight": weight}, (x,))
        return traffic([one], GPU).seconds or 0.0

    def layer_norm(width: int) -> float:
        x = tensor((1 << 28) // width, width)
        return traffic([call("native_layer_norm", x, normalized_shape=(width,))], GPU).seconds or 0.0

    assert batch_norm(8) > 3 * batch_norm(512)
    assert layer_norm(64) > 3 * layer_norm(4096)


def test_few_blocks_take_longer() -> None:
    few, many = (
        traffic(
            [call("native_layer_norm", tensor(rows, (1 << 26) // rows), normalized_shape=((1 << 26) // rows,))], GPU
        )
        for rows in (16, 1 << 16)
    )
    assert few.seconds > 10 * many.seconds


def test_what_fits_the_l2_is_not_read_from_memory_again() -> None:
    def pair(size: int) -> list[OperatorCall]:
        first, second, third = (tensor(size, storage=number, outside=not number) for number in range(3))
        return [call("relu", first, out=second), call("relu", second, out=third)]

    small, large = 1 << 20, 1 << 28
    assert traffic(pair(small), GPU).hbm_bytes == 3 * 4 * small
    assert traffic(pair(large), GPU).hbm_bytes == 4 * 4 * large


@given(st.lists(st.integers(1, 1 << 22), min_size=1, max_size=20), st.floats(0, 1e-3))
def test_a_program_waits_for_its_host(sizes: list[int], host: float) -> None:
    calls = [call("relu", tensor(size)) for size in sizes]
    report = traffic(calls, GPU, host=host)
    assert report.seconds is not None
    assert report.elapsed is not None
    assert report.elapsed >= max(report.seconds, len(sizes) * host)
    assert report.elapsed <= report.seconds + len(sizes) * host + 1e-12


def test_a_program_of_short_operators_is_told() -> None:
    (note,) = traffic([call("relu", tensor(64))] * 8, GPU).notes
    assert "waits for its host" in note
    assert not traffic([call("relu", tensor(1 << 28))] * 8, GPU).notes


def test_attention_that_no_fused_kernel_takes_runs_as_separate_operators() -> None:
    wide = tensor(8, 16, 512, 1024, dtype="float16", size=2)
    names = ("query", "key", "value")
    attention = OperatorCall("aten._scaled_dot_product_flash_attention", dict.fromkeys(names, wide), (wide,))
    report = traffic([attention], "l40s")
    assert report.operators[0].algorithm == "eager"
    assert report.flops == 4 * 8 * 16 * 512**2 * 1024


def test_vector_operations_are_apart_from_flops() -> None:
    x = tensor(32, 1 << 10)
    scan = traffic([call("cumsum", x, dim=1)])
    assert (scan.flops, scan.vector_flops) == (0, x.elements)
    spectrum = tensor(32, 513, dtype="complex64", size=8)
    transform = traffic([call("_fft_r2c", x, out=spectrum, dim=(1,))])
    assert transform.vector_flops > 0
    pooled = traffic([call("avg_pool2d", tensor(4, 8, 32, 32), out=tensor(4, 8, 16, 16), kernel_size=(2, 3))])
    assert pooled.vector_flops == 4 * 8 * 16 * 16 * 6


@given(st.integers(1, 4), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_flops_of_grouped_products(groups: int, rows: int, terms: int, columns: int) -> None:
    bf16 = {"dtype": "bfloat16", "size": 2}
    by_rows = OperatorCall(
        "aten._grouped_mm",
        {"self": tensor(groups * rows, terms, **bf16), "mat2": tensor(groups, terms, columns, **bf16)},
        (tensor(groups * rows, columns, **bf16),),
    )
    stacked = OperatorCall(
        "aten._grouped_mm",
        {"self": tensor(groups, rows, terms, **bf16), "mat2": tensor(groups, terms, columns, **bf16)},
        (tensor(groups, rows, columns, **bf16),),
    )
    assert traffic([by_rows]).flops == traffic([stacked]).flops == 2 * groups * rows * terms * columns


def test_what_is_no_convolution_is_one_line() -> None:
    with pytest.raises(InputError, match=r"inputs\.weight of aten\.convolution: shape \(4, 4\) given"):
        traffic([convolution((1, 4, 8), (4, 4), (1, 4, 8))])
    with pytest.raises(InputError, match=r"arguments\.groups: 3 given; allowed: a divisor of the 4 channels"):
        traffic([convolution((1, 4, 8), (4, 4, 1), (1, 4, 8), groups=3)])
    with pytest.raises(InputError, match="host: -1 given"):
        traffic([], host=-1)


VALUES = st.one_of(
    st.sampled_from([None, True, "x", 1.5, float("nan"), float("inf"), ("x",), (None,), (1.5, 2), ()]),
    st.integers(-(1 << 65), 1 << 65),
    st.lists(st.integers(-3, 9), max_size=3).map(tuple),
)
"""Values of arguments, most of which no operator takes."""
ARGUMENTS = ("dim", "kernel_size", "normalized_shape", "group", "training", "reduction")
TENSORS = st.lists(st.integers(0, 70), max_size=5).map(lambda shape: tensor(*shape, storage=1, kept=True))


@settings(max_examples=300)
@given(
    st.sampled_from([*RULES, "aten._fft_c2c", "aten.adaptive_avg_pool2d", "aten.topk"]),
    st.dictionaries(st.sampled_from(["self", "input", "weight"]), TENSORS, max_size=3),
    st.lists(TENSORS, max_size=2).map(tuple),
    st.dictionaries(st.sampled_from(ARGUMENTS), VALUES, max_size=4),
)
def test_calls_that_pytorch_never_makes_are_priced_or_refused(
    name: str, inputs: dict[str, TensorArgument], outputs: tuple[TensorArgument, ...], arguments: dict[str, Any]
) -> None:
    made = OperatorCall(name, inputs, outputs, arguments=arguments)
    refused = ""
    try:
        assert traffic([made], GPU).seconds >= 0
    except InputError as error:
        refused = str(error)
    assert not refused or (name in refused and "\n" not in refused)
