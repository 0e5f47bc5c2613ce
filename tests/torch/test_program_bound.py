"""Laws of the bound of a recorded program, of its gap, and of chains."""

from __future__ import annotations

import dataclasses
import functools
import json
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel
from iomodel import InputError
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.torch import OperatorCall, ProgramGap, TensorArgument, chains, read_calls, traffic, write_calls
from iomodel.torch.attention_calls import is_attention
from iomodel.torch.operator_work import OPERATORS, may_multiply
from iomodel.torch.regions import covered
from iomodel.torch.traffic_mode import bound_or_gap

STREAMS = Path(__file__).parent / "streams"
GPU = "h100-sxm5"


def tensor(number: int, *shape: int, outside: bool = False, kept: bool = False) -> TensorArgument:
    return TensorArgument(shape, "float32", 4, storage=number, outside=outside, kept=kept)


def chain(length: int, size: int) -> list[OperatorCall]:
    places = [tensor(n, size, outside=n == 0, kept=n == length) for n in range(length + 1)]
    return [OperatorCall("aten.relu", {"self": before}, (after,), pointwise=True) for before, after in pairwise(places)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=6))
def test_dense_views_cover_their_union(spans: list[tuple[int, int]]) -> None:
    views = [TensorArgument((length,), "float32", 4, offset=start) for start, length in spans]
    assert covered(views) == 4 * len({place for start, length in spans for place in range(start, start + length)})


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), st.integers(1, 3), st.integers(1, 9)), max_size=4))
def test_views_cover_no_more_than_their_elements(drawn: list[tuple[int, int, int, int]]) -> None:
    views, seen = [], set()
    for offset, rows, columns, pitch in drawn:
        views.append(TensorArgument((rows, columns), "float32", 4, (pitch, 1), offset))
        seen |= set((offset + pitch * np.arange(rows)[:, None] + np.arange(columns)).ravel().tolist())
    assert covered(views) <= 4 * len(seen) or any(pitch < columns for _, _, columns, pitch in drawn)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_parts_of_a_split_cover_their_sum(batch: int, parts: int, channels: int, width: int) -> None:
    strides = (parts * channels * width, width, 1)
    split = [
        TensorArgument((batch, channels, width), "float32", 4, strides, part * channels * width)
        for part in range(parts)
    ]
    assert covered(split) == 4 * batch * parts * channels * width


@given(st.integers(1, 20), st.integers(1, 1 << 24))
def test_intermediates_are_no_part_of_the_bound(length: int, size: int) -> None:
    report = traffic(chain(length, size), GPU)
    assert report.bound().bytes == 8 * size
    assert report.seconds is not None
    assert report.bound().seconds <= report.seconds
    assert report.bound(warm=True).bytes <= report.bound().bytes


@given(st.floats(1e-3, 1e3))
def test_half_of_the_bound_is_impossible(factor: float) -> None:
    report = traffic(chain(3, 1 << 24), GPU)
    least = report.bound()
    gap = report.gap(least.seconds * factor)
    assert gap.below_bound == (factor < 1) or factor == pytest.approx(1)
    assert gap.headroom == pytest.approx(factor)
    if gap.below_bound:
        assert gap.violated == {"memory": pytest.approx(1 / factor)}
    assert ProgramGap.from_json(gap.to_json()).below_bound == gap.below_bound
    assert str(gap)


@given(st.integers(1, 1 << 20), st.integers(0, 1 << 22))
def test_a_result_is_what_live_views_cover(size: int, alive: int) -> None:
    places = tensor(0, size, outside=True), dataclasses.replace(tensor(1, size, kept=True), kept_bytes=alive)
    call = OperatorCall("aten.relu", {"self": places[0]}, places[1:], pointwise=True)
    assert traffic([call], GPU).bound().written_bytes == min(4 * size, alive)
    assert OperatorCall.from_json(call.to_json()).outputs[0].kept_bytes == alive


def test_a_gather_reads_the_rows_that_it_takes() -> None:
    table, rows = tensor(0, 1 << 20, 64, outside=True), tensor(2, 128, 64, kept=True)
    places = TensorArgument((128,), "int64", 8, storage=1, outside=True)
    report = traffic([OperatorCall("aten.embedding", {"weight": table, "indices": places}, (rows,))], GPU)
    least = report.bound()
    assert (least.read_bytes, least.gathered_bytes) == (128 * 64 * 4 + 128 * 8, 128 * 64 * 4)
    assert least.least_memory < least.terms["memory"]


def test_products_bind_at_the_peak_of_their_type() -> None:
    inputs = {"self": tensor(0, 4096, 4096, outside=True), "mat2": tensor(1, 4096, 4096, outside=True)}
    result = (tensor(2, 4096, 4096, kept=True),)
    exact, fast = (
        traffic([OperatorCall("aten.mm", inputs, result, arguments=arguments)], GPU).bound()
        for arguments in ({}, {"tf32": True})
    )
    assert (exact.binds, fast.binds) == ("fp32", "matrix")
    assert exact.seconds > fast.seconds


def test_a_chain_names_the_next_step() -> None:
    (found,) = chains(chain(4, 1000))
    assert (found.unfused_bytes, found.elementwise_bytes, found.fused_bytes) == (32000, 8000, 8000)
    assert found.next_step == "fuse the elementwise operators"
    eager = chains(read_calls(STREAMS / "eager.jsonl"))
    assert all(each.fused_bytes <= each.elementwise_bytes <= each.unfused_bytes for each in eager)


def made(*operators: str) -> list[OperatorCall]:
    """Make a program whose operators each read the result of the one before."""
    places = [tensor(n, 64, 64, outside=n == 0, kept=n == len(operators)) for n in range(len(operators) + 1)]
    weight = tensor(99, 64, 64, outside=True)
    return [
        OperatorCall(
            name,
            {"self": before, "mat2": weight} if name == "aten.mm" else {"self": before},
            (after,),
            pointwise="softmax" not in name and "norm" not in name and name != "aten.mm",
        )
        for name, (before, after) in zip(operators, pairwise(places), strict=True)
    ]


CHAINS = {
    "flash2": ("aten.mm", "aten.mul", "aten._softmax", "aten.mm"),
    "gemm": ("aten.mm", "aten.add", "aten.relu"),
    "cut_cross_entropy": ("aten.mm", "aten._log_softmax"),
    "add_norm": ("aten.add", "aten.native_layer_norm"),
    "": ("aten.relu", "aten.native_layer_norm"),
}


@pytest.mark.parametrize(("algorithm", "operators"), CHAINS.items())
def test_a_chain_names_the_algorithm_that_declares_it(algorithm: str, operators: tuple[str, ...]) -> None:
    (found,) = chains(made(*operators))
    assert (found.operators, found.kernel) == (operators, algorithm)


def test_a_chain_has_one_algorithm() -> None:
    declared = [chain for name in iomodel.list_algorithms() for chain in find_algorithm(name).replaces]
    assert len(declared) == len(set(declared))
    assert {chains(made(*operators))[0].kernel for operators in CHAINS.values()} == CHAINS.keys()


def test_a_second_product_ends_a_chain() -> None:
    attention = CHAINS["flash2"]
    found = chains(made(*attention, "aten.mm", "aten.relu"))
    assert {each.operators: each.kernel for each in found} == {attention: "flash2", ("aten.mm", "aten.relu"): "gemm"}


def test_an_operator_with_products_is_declared_once() -> None:
    assert not any(may_multiply(name) for name in OPERATORS)
    assert not any(is_attention(name) for name in OPERATORS)


def test_what_has_no_bound_is_one_line(tmp_path: Path) -> None:
    bare = OperatorCall("aten.relu", {"self": TensorArgument((4,), "float32", 4)}, ())
    with pytest.raises(InputError, match=r"calls: a tensor of aten\.relu without a storage given"):
        traffic([bare], GPU).bound()
    with pytest.raises(InputError, match="hardware: not given"):
        traffic(chain(1, 4)).bound()
    with pytest.raises(InputError, match="seconds: 0 given; allowed: a time above 0"):
        traffic(chain(1, 4), GPU).gap(0)
    with pytest.raises(InputError, match=r"seconds: 'aten\.mm' given; allowed: the program's operators, aten\.relu"):
        traffic(chain(1, 4), GPU).gap({"aten.mm": 1.0})


HOSTILE = {
    "inputs": ({"x": {"shape": [10**300] * 9, "dtype": "f", "element_bytes": 1}}, "shape: .* up to 64 axes"),
    "outputs": ([{"shape": [1 << 40] * 2, "dtype": "f", "element_bytes": 1}], r"outputs\.0\.shape: .* 2\^63 elements"),
    "written": (["x"], "written: 'x' given; allowed: the inputs, none"),
    "arguments": ({"masks": functools.reduce(lambda part, _: [part], range(17), 0)}, "arguments: more than 16 levels"),
    "module": ("\x1b[31m\nbelow the bound", "module: .* that can be printed"),
}


@pytest.mark.parametrize("field", HOSTILE)
def test_a_hostile_stream_is_one_line(field: str, tmp_path: Path) -> None:
    value, message = HOSTILE[field]
    call = {"operator": "a.b", "inputs": {}, "outputs": [], field: value}
    (tmp_path / "hostile.jsonl").write_text(json.dumps({"operator": "a.b", "inputs": {}, "outputs": []} | call))
    with pytest.raises(InputError, match=f"hostile.jsonl: line 1: .*{message}") as raised:
        read_calls(tmp_path / "hostile.jsonl")
    assert str(raised.value).isprintable()


def test_a_stream_is_refused_before_a_call_of_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_calls(chain(50, 4), tmp_path / "whole.jsonl")
    text = (tmp_path / "whole.jsonl").read_text()
    (tmp_path / "cut.jsonl").write_text(text[:-20])
    made = []
    monkeypatch.setattr(OperatorCall, "from_dict", made.append)
    with pytest.raises(InputError, match=r"cut\.jsonl: line 50: json: "):
        read_calls(tmp_path / "cut.jsonl")
    assert not made
    for marks, kind in (("[", "lists and objects than allowed: 600,000"), (":", "names"), (",", "values")):
        (tmp_path / "long.jsonl").write_text(text + json.dumps(marks * 3_000_000))
        with pytest.raises(InputError, match=f"more {kind}"):
            read_calls(tmp_path / "long.jsonl")


def test_a_line_is_parsed_once_and_a_form_of_tensors_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tuple(chain(300, 4099))
    write_calls(calls, tmp_path / "long.jsonl")
    parsed, checked = [], []
    loads, check = json.loads, TensorArgument.__post_init__
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(text) or loads(text))
    monkeypatch.setattr(TensorArgument, "__post_init__", lambda each: checked.append(each) or check(each))
    assert read_calls(tmp_path / "long.jsonl") == calls
    assert len(parsed) == len(calls)
    assert len(checked) <= 1


PLAIN = st.one_of(st.integers(-1, 9), st.booleans(), st.none(), st.floats(), st.text(max_size=2))


@given(
    st.fixed_dictionaries(
        {"shape": st.lists(st.integers(0, 3), max_size=2), "dtype": st.just("f"), "element_bytes": st.integers(1, 8)},
        optional={
            "strides": st.lists(st.integers(0, 3), max_size=2),
            "offset": st.integers(-1, 9),
            "storage": st.integers(0, 9) | st.none(),
            "outside": st.booleans(),
            "kept_bytes": st.integers(-1, 9),
        },
    ),
    st.dictionaries(st.sampled_from(["shape", "strides", "offset", "kept", "dtype", "element_bytes", "x"]), PLAIN),
    st.booleans(),
)
@example({"shape": [2], "dtype": "f", "element_bytes": 4, "offset": -1}, {}, True)
@example({"shape": [True], "dtype": "f", "element_bytes": 4}, {}, True)
@example({"shape": [2], "dtype": "f"}, {}, True)
def test_a_tensor_reads_as_any_record(form: dict[str, object], wrong: dict[str, object], right: bool) -> None:
    data = form if right else form | wrong

    def read(function: object) -> object:
        try:
            return vars(function(data)) | {"elements": 0}
        except InputError as error:
            return str(error)

    assert read(TensorArgument.from_dict) == read(super(TensorArgument, TensorArgument).from_dict)


@pytest.mark.parametrize("in_place", [False, True])
def test_chains_are_found_in_time_that_grows_with_the_program(in_place: bool) -> None:
    def took(length: int) -> float:
        changed = OperatorCall("aten.relu_", {"self": tensor(0, 4, outside=True)}, (), ("self",), pointwise=True)
        calls = [changed] * length if in_place else chain(length, 4)
        spent = []
        for _ in range(3):
            begin = process_time()
            assert [len(each.operators) for each in chains(calls)] == [length]
            spent.append(process_time() - begin)
        return min(spent)

    assert took(16_000) < 40 * took(1_000)


def test_a_program_without_a_result_is_told() -> None:
    dropped = OperatorCall("aten.relu", {"self": tensor(0, 4, outside=True)}, (tensor(1, 4),), pointwise=True)
    for calls in ([], [dropped]):
        assert any("no result is alive" in line for line in traffic(calls, GPU).bound().at_least)
    assert not traffic(chain(2, 4), GPU).bound().at_least


def test_a_repeated_program_finds_its_tensors_in_the_last_cache() -> None:
    for size, found in ((1 << 20, True), (1 << 27, False)):
        once, again = (traffic(chain(2, size), GPU, warm=warm) for warm in (False, True))
        assert (again.hbm_bytes < once.hbm_bytes) == found
        assert again.seconds <= once.seconds
    with pytest.raises(InputError, match="warm: 1 given; allowed: True or False"):
        traffic(chain(1, 4), GPU, warm=1)


@pytest.mark.parametrize(("stored", "device", "peak"), [
    ("float8_e4m3fn", GPU, "fp8"), ("bfloat16", GPU, "bf16"), ("float32", GPU, "fp32"),
    ("float8_e4m3fn", "a100-sxm4-80gb", "bf16"),
])  # fmt: skip
def test_widened_operands_multiply_at_the_peak_of_their_stored_type(stored: str, device: str, peak: str) -> None:
    size = {"float8_e4m3fn": 1, "bfloat16": 2, "float32": 4}[stored]
    weight = TensorArgument((256, 256), stored, size, storage=0, outside=True)
    wide, scaled, x = tensor(1, 256, 256), tensor(2, 256, 256), tensor(3, 256, 256, outside=True)
    calls = [
        OperatorCall("aten._to_copy", {"self": weight}, (wide,)),
        OperatorCall("aten.mul", {"self": wide}, (scaled,), pointwise=True),
        OperatorCall("aten.mm", {"self": x, "mat2": scaled}, (tensor(4, 256, 256),)),
        OperatorCall("aten.mm", {"self": tensor(4, 256, 256), "mat2": x}, (tensor(5, 256, 256, kept=True),)),
    ]
    flops = traffic(calls, device).bound().flops
    assert flops == ({"fp32": 2 * 2 * 256**3} if peak == "fp32" else {peak: 2 * 256**3, "fp32": 2 * 256**3})


def test_calls_that_were_not_recorded_are_refused_before_any_is_priced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iomodel.torch.traffic_mode.traffic", pytest.fail)
    x = TensorArgument((64, 64), "float32", 4)
    write_calls([OperatorCall("aten.mm", {"self": x, "mat2": x}, (x,))], tmp_path / "stream.jsonl")
    with pytest.raises(InputError, match=r"a tensor of aten\.mm without a storage given"):
        bound_or_gap(tmp_path / "stream.jsonl", GPU, 1.0, warm=False)
