"""Traces of PyTorch's profiler: attention is found, timed and judged, and damaged traces are refused."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import Attention, InputError, estimate
from iomodel.torch.judge_profile import judge_profile
from iomodel.torch.profile_trace import is_profile, read_profile
from tests.fuzz.law import answered
from tests.support.damage import damaged
from tests.support.inside import main

HERE = Path(__file__).parent / "profiles"
FILES = sorted(HERE.iterdir())
"""Excerpts of public traces (tests/public_files.csv), and two in the layout that Kineto writes
(libkineto/src/output_json.cpp; test/inductor/test_analysis.py of PyTorch). The three times of sdpa-gb10.json are those
of a public benchmark of scaled_dot_product_attention on a GB10 with torch 2.9; FlashAttention's own operators have the
positions of flash_attn_interface.py and drawn times."""
GB10, LIBRARY = HERE / "sdpa-gb10.json", HERE / "flash-attn-a100.json"


def changed(path, edit, tmp_path):
    data = json.loads(path.read_text(encoding="utf-8"))
    for event in data["traceEvents"]:
        edit(event)
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    return file


def test_nested_operators_are_one_call_with_the_time_of_its_kernel():
    profile = read_profile(GB10)
    (calls,) = profile.calls
    assert (profile.device, calls.count, calls.implementation) == ("NVIDIA GB10", 3, "flash-attention-2")
    assert calls.seconds == pytest.approx(13.4932e-3)
    assert profile.gpu_seconds == pytest.approx((13493.2 + 13451.0 + 13974.9 + 3 * 1480) * 1e-6)


def test_a_call_is_estimated_with_the_kernels_of_its_symbol():
    (call,) = judge_profile(GB10).calls
    wanted = estimate(
        "flash2", Attention(batch=4, heads=32, q_len=4096, head_dim=128, dtype="fp16"), "gb10",
        implementation="flash-attention-2",
    )  # fmt: skip
    assert (call.predicted, (call.low, call.high)) == (wanted.seconds, wanted.error)
    assert call.inside
    assert judge_profile(GB10, "a100-sxm4-80gb").calls[0].predicted != wanted.seconds


def test_both_passes_of_flash_attention_are_judged_and_packed_sequences_named():
    judged = judge_profile(LIBRARY)
    found = {call.workload.direction: call for call in judged.calls}
    assert found["backward"].measured == pytest.approx((4.2 + 45.1 + 4.9) * 1e-6)
    assert found["forward"].workload == Attention(
        batch=2, heads=16, kv_heads=4, q_len=512, head_dim=64, mask="causal", dtype="bf16"
    )
    assert judged.left_out[0].startswith("'flash_attn::_flash_attn_varlen_forward': lengths are in a tensor")
    assert 0.8 < judged.share < 0.9


def test_a_window_and_a_kernel_that_is_not_on_file(tmp_path):
    def edit(event):
        if event["name"] == "flash_attn::_flash_attn_forward":
            event["args"]["Concrete Inputs"][5:8] = ["True", "127", "0"]
        event["name"] = event["name"].replace("flash_fwd_kernel", "own_kernel")

    judged = judge_profile(changed(LIBRARY, edit, tmp_path))
    (call,) = (call for call in judged.calls if call.workload.direction == "forward")
    assert (call.workload.mask.left, call.workload.mask.right) == (127, 0)
    assert judged.notes[0].endswith(f"is not on file; timed as {call.implementation}")


def test_public_traces_of_an_h100_and_an_mi300x_are_judged():
    """Qwen1.5 0.5B on an H100, where its 24 calls take 113.8 us each, and in a virtual machine with an MI300X."""
    (call,) = judge_profile(HERE / "sdpa-h100-qwen.json").calls
    wanted = Attention(batch=16, heads=16, q_len=559, head_dim=64, mask="causal", dtype="bf16")
    assert (call.workload, call.count, call.implementation) == (wanted, 2, "flash-attention-2")
    assert call.measured == pytest.approx(114e-6, rel=0.01)
    virtual = judge_profile(HERE / "sdpa-mi300x-vf.json")
    assert (virtual.hardware, virtual.calls[0].workload) == ("mi300x", wanted)
    assert virtual.calls[0].measured == pytest.approx(140.9e-6, rel=1e-3)
    (compiled,) = judge_profile(HERE / "compiled-mi300x.json").calls
    assert compiled.measured == pytest.approx(3683.5e-6, rel=1e-3)
    assert compiled.workload == Attention(batch=8, heads=16, q_len=4096, head_dim=128, dtype="bf16")


def test_a_kernel_on_file_stands_for_an_unknown_one_before_an_idealised_one(tmp_path):
    """On an MI300X an idealised schedule is faster than Composable Kernel's at 77 rows, and was taken."""

    def edit(event):
        arguments = event.get("args", {})
        for shape in arguments.get("Input Dims", [])[:3]:
            shape[:] = [1, 20, 77, 64]
        arguments.get("Concrete Inputs", [0] * 5)[4:5] = ["True"]

    (call,) = judge_profile(changed(HERE / "compiled-mi300x.json", edit, tmp_path)).calls
    assert call.implementation == "ck"


def test_attention_of_an_engine_has_its_lengths_elsewhere(tmp_path):
    file = changed(GB10, lambda event: event.update(name=event["name"].replace("aten::scaled_dot_product_attention",
                   "vllm::unified_attention_with_output")), tmp_path)  # fmt: skip
    with pytest.raises(InputError, match="'vllm::unified_attention_with_output': lengths are in a tensor"):
        judge_profile(file)


@pytest.mark.parametrize("key", ["correlation", "External id"])
def test_either_number_finds_the_operator_of_a_kernel(key, tmp_path):
    assert read_profile(changed(GB10, lambda event: event["args"].pop(key, None), tmp_path)).calls[0].count == 3


def test_a_packed_trace_is_known_by_its_events(tmp_path):
    file = tmp_path / "trace.json.gz"
    file.write_bytes(gzip.compress(GB10.read_bytes()))
    assert is_profile(file)
    assert read_profile(file).calls == read_profile(GB10).calls
    assert not is_profile(tmp_path / "none")


def test_the_command_takes_a_trace(capsys):
    assert main(["judge", str(LIBRARY), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hardware"] == "a100-sxm4-80gb"
    assert main(["judge", str(LIBRARY), "--engine", "vllm"]) == 2
    assert "engine: given with a trace of PyTorch's profiler" in capsys.readouterr().err


def test_a_trace_without_shapes_says_how_to_record_them(tmp_path):
    file = changed(GB10, lambda event: event["args"].pop("Input Dims", None), tmp_path)
    with pytest.raises(InputError, match=r"no shapes of its inputs in the file; allowed: torch\.profiler\.profile"):
        judge_profile(file)


TEXTS = {
    "{": "cannot be read",
    '{"traceEvents": 3}': "no list traceEvents",
    '{"traceEvents": []}': "no operator of attention",
    "[" * 100_000: "cannot be read",
}


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_another_file_is_refused_in_one_line(text, tmp_path):
    file = tmp_path / "trace.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=TEXTS[text]) as caught:
        judge_profile(file, "h100-sxm5")
    assert "\n" not in str(caught.value)


def test_kernels_of_graphs_have_no_operator(tmp_path):
    def edit(event):
        event["cat"] = {"cuda_runtime": "other", "cpu_op": "cpu_op", "kernel": "kernel"}.get(event.get("cat"), "")
        event["args"].pop("External id", None)

    with pytest.raises(InputError, match=r"no kernel of an operator of attention in the file; .* without graphs"):
        judge_profile(changed(GB10, edit, tmp_path))


@given(data=st.data())
def test_a_damaged_trace_is_read_or_refused_in_one_line(data, tmp_path_factory):
    content = data.draw(st.sampled_from(FILES)).read_bytes()
    file = tmp_path_factory.getbasetemp() / "damaged"
    file.write_bytes(damaged(data, content, 40, [b"9" * 400, b"null", b"[", b"-1", b"\x00", b"[]"], longest=9))
    assert answered(lambda: judge_profile(file)) in ("answered", "refused")
