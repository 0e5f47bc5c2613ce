"""Precision of a step and of a plan: one name for several types, rates of products, quantisation and conversion."""

import pytest

from iomodel import InputError, Layout, Linear, UnknownNameError, hardware, model
from iomodel.planning.fleet import fleet
from iomodel.planning.plan import plan
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.step.step import step
from iomodel.planning.step.step_arguments import PRECISIONS, with_precision
from tests.support.inside import DEFAULT, layer_clock, rates

MODEL, B200, H100 = "llama-3.2-1b", "b200", "h100-sxm5"
LONG = {"batch": 8, "q_len": 4096, "kv_len": 4096}
CHAT = {"prompt": 512, "output": 64}


@pytest.mark.parametrize("name", PRECISIONS)
def test_a_precision_stands_for_its_types(name):
    short = {"batch": 4, "q_len": 1, "kv_len": 1024}
    types = PRECISIONS[name]._asdict()
    assert step(MODEL, B200, precision=name, **short).to_dict() == step(MODEL, B200, **types, **short).to_dict()
    assert plan(MODEL, B200, precision=name, **CHAT).to_dict() == plan(MODEL, B200, **types, **CHAT).to_dict()


def test_fleet_and_simulation_take_it_too():
    asked = {"load": 20.0, "ttft": 0.5, "tpot": 0.05, **CHAT}
    assert (
        fleet(MODEL, B200, precision="fp8", **asked).to_dict()
        == fleet(MODEL, B200, weight_dtype="fp8", kv_dtype="fp8", **asked).to_dict()
    )
    run = {"load": 20.0, "requests": 20, **CHAT}
    narrow = simulate("llama-3-8b", B200, precision="fp4", **run)
    assert narrow.tpot.mean < simulate("llama-3-8b", B200, precision="bf16", **run).tpot.mean


def test_types_beside_a_precision_take_precedence():
    found = with_precision("fp8", {"kv_dtype": "bf16", "weight_dtype": None, "linear_dtype": None})
    assert found == {"kv_dtype": "bf16", "weight_dtype": "fp8", "linear_dtype": None, "dtype": None}
    timed = step(MODEL, H100, precision="fp8", kv_dtype="bf16", **LONG)
    assert (timed.weight_dtype, timed.linear_dtype, timed.kv_dtype) == ("fp8", "fp8", "bf16")


def test_tf32_changes_the_products_of_fp32_alone():
    """Activations, weights and cache have four bytes, also in attention: Q and O of all heads, K and V of a group."""
    parts = {name: step(MODEL, H100, precision=name, batch=1, q_len=4096, kv_len=4096) for name in ("fp32", "tf32")}
    heads, groups, width, layers = 32, 8, 64, 16
    moved = {name: sum(part.hbm_bytes for part in each.parts if part.kind == "attention")
             for name, each in parts.items()}  # fmt: skip
    assert moved["fp32"] == moved["tf32"] == pytest.approx(4 * 4096 * 2 * (heads + groups) * width * layers, rel=0.01)
    assert parts["tf32"].linear_seconds < 0.5 * parts["fp32"].linear_seconds
    memory = [plan(MODEL, H100, precision=name, **CHAT).memory for name in ("fp32", "tf32")]
    assert memory[0].to_dict() == memory[1].to_dict()
    assert memory[0].weights == 4 * model(MODEL).parameters  # the embedding and the norms too


def test_products_run_at_the_rate_of_their_type():
    """A prefill is limited by the matrix units, so its linear layers take time by the rates of published kernels."""
    seconds = {
        name: step("llama-3-70b", B200, precision=name, layout=Layout(), **LONG).linear_seconds
        for name in ("bf16", "fp8", "fp4")
    }
    assert 1.5 < seconds["bf16"] / seconds["fp8"] < 2.1
    assert 1.5 < seconds["fp8"] / seconds["fp4"] < 2.1


def test_nvfp4_weights_without_such_products_are_converted():
    """No fp4 rate is on file for Hopper: the products are those of the activations."""
    assert step(MODEL, B200, precision="fp4", **LONG).linear_dtype == "fp4"
    converted = step(MODEL, H100, precision="fp4", **LONG)
    assert converted.linear_dtype == "bf16"
    assert converted.linear_seconds >= 0.9 * step(MODEL, H100, precision="bf16", **LONG).linear_seconds
    decode = {"batch": 1, "q_len": 1, "kv_len": 128}
    narrow, wide = (step(MODEL, H100, precision=name, **decode).linear_seconds for name in ("fp4", "bf16"))
    assert narrow < wide  # weights are the traffic of a decode step


def test_int8_weights_alone_and_with_activations():
    assert step(MODEL, H100, weight_dtype="int8", **LONG).linear_dtype == "bf16"
    assert step(MODEL, H100, precision="int8", **LONG).linear_dtype == "int8"


def test_activations_are_quantised_where_no_kernel_before_writes_them():
    def names(**types):
        return {part.name: part for part in step(MODEL, H100, **types, **LONG).parts}

    part = names(precision="fp8")["quantise the rows of o"]
    assert part.times == 16
    tokens, width = 8 * 4096, 2048
    assert part.requested_bytes == 16 * tokens * (width * (2 + 1) + 8)  # bf16 in, fp8 out, the place of each row
    assert "quantise the rows of o" not in names(precision="bf16") | names(precision="int4")
    experts = step("gpt-oss-20b", H100, precision="fp8", batch=8, q_len=1, kv_len=128)
    assert "quantise for experts" in {part.name for part in experts.parts}


BY_BLOCK = {
    "the rows of q_a kv_a",
    "the rows of q_b",
    "the MLP",
    "down",
    "expert down",
    "shared experts",
    "shared down",
}


@pytest.mark.parametrize(
    ("name", "precision", "expected"),
    [
        ("deepseek-v3", None, {*BY_BLOCK, "shared down", "the rows of o", "experts"}),
        ("deepseek-v3", "bf16", set()),
        ("llama-3-8b", "fp8", {"the rows of o"}),
        ("llama-3-8b", "fp4", {"the rows of q k v", "the rows of o", "the MLP", "down"}),
    ],
)
def test_scales_by_block_take_a_kernel_before_every_product(name, precision, expected):
    """Norms and activations write fp8 of one scale; blocks of DeepSeek's fp8 and of nvfp4 have scales of their own."""
    parts = step(name, B200, precision=precision, batch=4, q_len=1, kv_len=128).parts
    quantised = {part.name for part in parts if part.name.startswith("quantise")}
    assert quantised == {f"quantise {'' if one.startswith('the rows') else 'for '}{one}" for one in expected}


def test_every_row_of_tiles_converts_the_weights():
    device = hardware(H100)
    layer = Linear(rows=8192, in_features=4096, out_features=4096, dtype="bf16", weight_dtype="int4")
    kernels, tile = layer_clock(device).fastest((layer,), {"block_m": 16, "block_n": 128, "block_k": 64})
    converted = 4096 * 4096 * (8192 // 16) * DEFAULT.convert_ops / rates(device, "bf16").fp32
    assert tile.block_m == 16
    assert kernels[0].seconds >= converted > layer.flops / rates(device, "bf16").matrix


def test_what_is_refused():
    with pytest.raises(UnknownNameError, match="precision: 'fp6' is unknown"):
        step(MODEL, H100, precision="fp6", **LONG)
    with pytest.raises(UnknownNameError, match="linear_dtype: 'int4' is unknown"):
        plan(MODEL, H100, linear_dtype="int4", **CHAT)
    with pytest.raises(InputError, match="linear_dtype: fp4 given, but h100-sxm5 has no such matrix peak on file"):
        step(MODEL, H100, linear_dtype="fp4", **LONG)
