"""Traffic of recorded operators, held against declared algorithms and against a step of a model.

The streams are recorded by tests/with_torch, where PyTorch is installed, and held against a new recording there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import iomodel
from iomodel import InputError, UnknownNameError
from iomodel.torch import OperatorCall, TensorArgument, TrafficReport, read_calls, traffic, write_calls
from tests.fuzz.law import one_line
from tests.support.inside import DEFAULT, DEPENDENT, Elementwise

STREAMS = Path(__file__).parent / "streams"
GPU = "h100-sxm5"


def calls(name: str, backward: bool | None = None) -> list[OperatorCall]:
    every = read_calls(STREAMS / f"{name}.jsonl")
    return [call for call in every if backward is None or call.backward == backward]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", ["eager", "eager-masked", "eager-dropout"])
def test_operators_of_eager_attention_are_the_algorithm_eager(name: str, backward: bool) -> None:
    mask = "full" if name == "eager" else "causal"
    w = iomodel.Attention(
        batch=2, heads=3, q_len=48, head_dim=16, mask=mask, direction="backward" if backward else "forward"
    )
    options = {"dropout_pass": True} if "dropout" in name else {}
    counted = traffic(calls(name, backward))
    declared = iomodel.cost("eager", w, **options)
    assert counted.requested_bytes == declared.hbm_bytes
    assert counted.flops == declared.flops  # the operators compute every pair


def test_operators_of_three_kernels_are_standard_attention() -> None:
    w = iomodel.Attention(heads=6, q_len=40, kv_len=56, head_dim=16, value_dim=8)
    counted = traffic(calls("standard"))
    assert counted.requested_bytes == iomodel.cost("standard", w).hbm_bytes
    assert [each.algorithm for each in counted.operators] == ["gemm", "", "gemm"]
    tiles = {"block_m": 16, "block_n": 8, "block_k": 4}
    named = {"gemm1_m": 16, "gemm1_n": 8, "gemm2_m": 16, "gemm2_n": 8}
    assert traffic(calls("standard"), tiles=tiles).requested_bytes == iomodel.cost("standard", w, named).hbm_bytes


FUSED = {"batch": 2, "heads": 4, "kv_heads": 2, "q_len": 48, "kv_len": 80, "head_dim": 16}
TILES = {"block_q": 16, "block_kv": 32}


@pytest.mark.parametrize("algorithm", [None, "flash1", "standard"])
@pytest.mark.parametrize("name", ["fused", "fused-causal"])
def test_fused_attention_is_a_declared_algorithm(name: str, algorithm: str | None) -> None:
    mask: Any = iomodel.Window(right=0, align="top-left") if "causal" in name else "full"  # PyTorch's causal mask
    tiles = None if algorithm == "standard" else TILES
    counted = traffic(calls(name), tiles=tiles, attention=algorithm)
    for direction in ("forward", "backward"):
        w = iomodel.Attention(**FUSED, mask=mask, direction=direction)
        cost = iomodel.cost(algorithm or "flash2", w, tiles)
        found = [each for each in counted.operators if each.algorithm and each.backward == (direction == "backward")]
        assert [(each.requested_bytes, each.flops) for each in found] == [(cost.hbm_bytes, cost.useful_flops)]


def test_a_mask_tensor_of_booleans_is_a_bias_of_one_byte() -> None:
    cost = iomodel.cost("flash2", iomodel.Attention(**FUSED, bias=True), TILES)
    counted = traffic(calls("fused-masked"), tiles=TILES)
    assert counted.requested_bytes == cost.hbm_bytes - cost.reads["bias"]
    larger = {"block_q": 64, "block_kv": 64}
    timed = traffic(calls("fused-masked"), GPU, tiles=larger)
    assert timed.requested_bytes == traffic(calls("fused-masked"), tiles=larger).requested_bytes


def test_flex_attention_visits_the_blocks_of_its_mask() -> None:
    w = iomodel.Attention(batch=2, heads=4, kv_heads=2, q_len=256, head_dim=16, dtype="fp32")
    blocks = [[int(q // 3 == k // 3 and k <= q) for k in range(8)] for q in range(8)]
    masked = w.model_copy(update={"mask": iomodel.BlockMask(blocks, 32, 32)})
    first, second = [call for call in calls("flex") if "flex" in call.operator]
    tiles = {"block_q": 64, "block_kv": 32}
    assert traffic([first], tiles=tiles).requested_bytes == iomodel.cost("flash2", masked, tiles, lse=False).hbm_bytes
    assert traffic([second], tiles=tiles).requested_bytes == iomodel.cost("flash2", w, tiles, lse=False).hbm_bytes


def row(call: OperatorCall, name: str) -> tuple[int, int]:
    """The rows of a tensor, and their width."""
    channels = call.inputs[name].shape[-1]
    return call.inputs[name].elements // channels, channels


def rowwise(algorithm: str, name: str, others: str | None = None, share: int = 1) -> Any:
    def rule(call: OperatorCall) -> tuple[str, Elementwise]:
        rows, channels = row(call, name)
        wide = 1 if others is None else call.inputs[others].shape[-1]
        return algorithm, Elementwise(rows=rows, channels=channels // share, others=wide)

    return rule


def embedding(call: OperatorCall) -> tuple[str, Elementwise]:
    return "embedding", Elementwise(rows=call.inputs["indices"].elements, channels=call.inputs["weight"].shape[1])


RULES = {
    "aten.embedding": embedding,
    "engine.add_norm": rowwise("add_norm", "x"),
    "engine.rotary": rowwise("rotary", "heads", "angles"),
    "engine.append": rowwise("append", "k", "v"),
    "engine.gated_activation": rowwise("gated_activation", "x", share=2),
}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 704,
    "vocab_size": 1000,
}


def test_a_llama_of_engine_kernels_is_a_step_of_the_model() -> None:
    counted = traffic(calls("llama"), GPU, operators=RULES)
    step = iomodel.step(iomodel.model(LLAMA), GPU, batch=2, q_len=96, kv_len=96)
    assert (counted.requested_bytes, counted.flops) == (step.requested_bytes, step.flops)
    in_graph = sum(part.times for part in step.parts if part.kind in ("linear", "attention"))
    saved = in_graph * (1 - DEPENDENT) * DEFAULT.kernel_launch  # an engine starts these kernels from a graph
    assert counted.seconds == pytest.approx(step.seconds + saved, rel=1e-12)
    by_kind = {
        kind: sum(part.requested_bytes for part in step.parts if part.kind == kind) for kind in ("linear", "attention")
    }
    groups = counted.by_operator()
    assert groups["aten.mm"].requested_bytes == by_kind["linear"]
    assert groups["aten._scaled_dot_product_flash_attention_for_cpu"].requested_bytes == by_kind["attention"]


def test_a_llama_of_plain_modules_has_the_flops_of_the_step() -> None:
    """Products and attention are those of one layer; norms, activations and residuals are more kernels."""
    forward = traffic(calls("training", backward=False), GPU)
    step = iomodel.step(iomodel.model(LLAMA), GPU, batch=2, q_len=96, kv_len=96, logits="none")
    assert forward.flops == step.flops // 2
    back = traffic(calls("training", backward=True))
    products = [each for each in back.operators if each.algorithm == "gemm"]
    linear = sum(each.flops for each in forward.operators if each.algorithm == "gemm")
    assert sum(each.flops for each in products) == 2 * linear
    norm = forward.by_module()["Plain.norm"].requested_bytes
    rows, width = 2 * 96, 256
    # to fp32, square, mean, add epsilon, root, two products, to bf16; the scalar of a row comes with each element
    each = rows * (
        width * (2 + 4 + 4 + 4 + 4) + 4 + 8 + 8 + width * (4 + 4 + 4) + width * (4 + 2 + 4) + width * (4 + 2)
    )
    assert norm == 2 * each


def test_a_llama_of_transformers_has_the_flops_of_the_step() -> None:
    step = iomodel.step(iomodel.model(LLAMA), GPU, batch=2, q_len=96, kv_len=96, logits="all")
    report = traffic(calls("transformers"))
    assert report.flops == step.flops
    linear = sum(part.flops for part in step.parts if part.kind == "linear")
    rotary = 2 * 2 * 96 * 16  # the angles of the rotary embedding, as a product
    assert 0 <= report.by_operator()["aten.mm"].flops - linear <= rotary


def test_modules_add_up() -> None:
    report = traffic(calls("llama"), GPU, operators=RULES)
    modules = report.by_module()
    assert modules[""].requested_bytes == report.requested_bytes
    layers = [modules[f"Llama.layers.{place}"].requested_bytes for place in range(2)]
    assert layers[0] == layers[1]
    own = sum(each.requested_bytes for each in report.operators if each.module == "Llama")
    parts = sum(modules[f"Llama.{name}"].requested_bytes for name in ("embedding", "output"))
    assert modules["Llama"].requested_bytes == sum(layers) + own + parts


def test_a_product_of_another_type_is_read_once() -> None:
    tensor = TensorArgument((8, 8), "float64", 8)
    call = OperatorCall("aten.mm", {"self": tensor, "mat2": tensor}, (tensor,))
    report = traffic([call, call])
    assert (report.requested_bytes, report.flops, report.operators[0].times) == (2 * 3 * 512, 2 * 2 * 8**3, 2)


def test_an_addend_is_read_unless_its_factor_is_zero() -> None:
    square = TensorArgument((8, 8), "bfloat16", 2)
    shared = TensorArgument((8,), "bfloat16", 2)
    inputs = {"self": square, "mat1": square, "mat2": square}
    whole = traffic([OperatorCall("aten.addmm", inputs, (square,))]).requested_bytes
    none = traffic([OperatorCall("aten.addmm", inputs, (square,), arguments={"beta": 0})]).requested_bytes
    bias = traffic([OperatorCall("aten.addmm", {**inputs, "self": shared}, (square,))]).requested_bytes
    assert (whole, none, bias) == (4 * 128, 3 * 128, 3 * 128 + 16)


def test_parts_of_a_table_are_moved_alone() -> None:
    table, places = TensorArgument((1000, 8), "float32", 4), TensorArgument((5,), "int64", 8)
    rows = TensorArgument((5, 8), "float32", 4)
    gather = OperatorCall("aten.embedding", {"weight": table, "indices": places}, (rows,))
    scatter = OperatorCall(
        "aten.index_put_", {"self": table, "indices.0": places, "values": rows}, (), written=("self",)
    )
    add = OperatorCall("aten.index_add_", {"self": table, "index": places, "source": rows}, (), written=("self",))
    assert [traffic([each]).requested_bytes for each in (gather, scatter, add)] == [360, 360, 520]


def test_a_report_prints_and_returns() -> None:
    report = traffic(calls("training"), GPU)
    assert TrafficReport.from_json(report.to_json()) == report
    text = str(report)
    assert "aten.mm (backward)" in text
    assert "norm" in text
    assert report._repr_html_().startswith("<table>")
    points = report.roofline().axes[0].get_legend_handles_labels()
    assert points is not None


def test_calls_come_back_from_a_file(tmp_path: Path) -> None:
    every = calls("flex")
    write_calls(every, tmp_path / "calls.jsonl")
    assert list(read_calls(tmp_path / "calls.jsonl")) == every


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_text('{"operator": "aten.mm", "inp')
    with pytest.raises(InputError, match=r"cut\.jsonl: line 1: json: .* allowed"):
        read_calls(tmp_path / "cut.jsonl")
    with pytest.raises(InputError, match=r"path: .* cannot be read"):
        read_calls(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="calls: 3 given; allowed: a list of OperatorCall"):
        traffic(3)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="did you mean 'block_q'"):
        traffic([], tiles={"blockq": 3})
    with pytest.raises(InputError, match="block_m"):
        traffic([], tiles={"block_m": 0})
    with pytest.raises(UnknownNameError, match="flash2"):
        traffic([], attention="flash")
    with pytest.raises(InputError, match=r"operators: 3 given for a\.b; allowed: a function"):
        traffic([], operators={"a.b": 3})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="returns None; allowed: an algorithm and a workload"):
        traffic(calls("standard"), operators={"aten.bmm": lambda call: None})  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="hardware: not given"):
        traffic([]).roofline()


@pytest.mark.parametrize(
    "masks", [3, 0.5, "ab", [], [3], [[1]], [[1.0, "full"]], [[1, {"blocks": 3}]], [[1, {"blocks": [0]}]]]
)
def test_what_is_no_mask_of_flex_attention_is_refused_in_one_line(masks: Any, tmp_path: Path) -> None:
    """Found by random changes of stored calls: the number of a mask in place of the pair."""
    tensor = {"shape": [2, 4, 16, 16], "dtype": "float32", "element_bytes": 4}
    inputs = dict.fromkeys(("query", "key", "value"), tensor)
    call = {"operator": "higher_order.flex_attention", "inputs": inputs, "outputs": [tensor]}
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps({**call, "arguments": {"masks": masks}}) + "\n")
    with pytest.raises(InputError) as error:
        traffic(read_calls(path))
    one_line(str(error.value))
