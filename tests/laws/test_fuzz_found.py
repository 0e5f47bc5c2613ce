"""What random inputs have found, each kind once: it is refused in one line that names it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

import iomodel
from iomodel.cli.app import main
from iomodel.errors import shown
from iomodel.models.weight_files import read_weights
from iomodel.nests.symbols import N_q
from iomodel.planning.benchmark_files import read_benchmark
from iomodel.studies.sweeps.sweep import sweep

W = iomodel.Attention(q_len=20, head_dim=4)
TILES = {"block_q": 4, "block_kv": 4}
N = N_q
PATH = "a/" * 3000 + "x.yaml"


def nested(depth: int) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = [made]
    return made


def tensor(*shape: int) -> Any:
    return iomodel.torch.TensorArgument(shape, "bfloat16", 2)


def recorded(operator: str, inputs: Any, **more: Any) -> Any:
    return iomodel.torch.traffic([iomodel.torch.OperatorCall(operator, inputs, (), **more)])


FOUND: dict[str, tuple[Callable[[], Any], str]] = {
    "a value nested too deep to be shown": (lambda: iomodel.model(nested(5000)), "model: "),
    "a name that no text can hold": (lambda: iomodel.Window(**{"\ud800": 1}), "name of a field: "),
    "a path that is too long": (lambda: iomodel.model(PATH), "cannot be read"),
    "a path that is too long, of a device": (lambda: iomodel.hardware(PATH), "cannot be read"),
    "lengths nested too deep": (lambda: iomodel.VarlenAttention(q_lens=nested(5000), head_dim=8), "q_lens: "),
    "a range without end": (lambda: iomodel.Documents(range(10**12)), "lengths: range(0, 1000000000000) given"),
    "a range of what is no text": (
        lambda: iomodel.ModelSpec(title="x", hidden_size=8, vocab_size=8, layers=[], sources=range(10**12)),
        "sources: range(0, 1000000000000) given; allowed: up to 1,048,576 values",
    ),
    "an array of more axes than there can be": (
        lambda: iomodel.solve_array("flash2", sram_bytes=9, q_len=8, head_dim=8, min_block_kv=nested(50)),
        "min_block_kv: an array of 50 axes",
    ),
    "an objective that is an array": (
        lambda: iomodel.compare(W, sram_bytes=9, objective=np.array([1, 2])),
        "objective: ",
    ),
    "a unit that is an array": (lambda: iomodel.theory.least_sram("flash2", W, 9, unit=np.zeros((0, 3))), "unit: "),
    "a budget where none is wanted": (
        lambda: iomodel.theory.least_sram("flash2", W, 10**6, sram_bytes=5000),
        "sram_bytes: given",
    ),
    "an implementation that is an array": (
        lambda: iomodel.check("flash2", W, "h100-sxm5", TILES, np.array([[1, 2]])),
        "implementation: ",
    ),
    "a phase that is an array": (
        lambda: iomodel.planning.crossover_context("llama-3-8b", "h100-sxm5", phase=np.array([1, 2])),
        "phase: ",
    ),
    "an option that no step has": (
        lambda: iomodel.planning.crossover_context("llama-3-8b", "h100-sxm5", solve=2),
        "option of crossover_context: 'solve'",
    ),
    "an algorithm without a forward pass": (
        lambda: iomodel.step("llama-3-8b", "h100-sxm5", batch=1, q_len=1, kv_len=9, attention_algorithm="two_pass"),
        "attention_algorithm: 'two_pass'",
    ),
    "a time beyond floats": (lambda: iomodel.diagnose("flash2", W, "h100-sxm5", 10**400), "seconds: 1000"),
    "a share beyond floats": (lambda: iomodel.solve("flash2", W, sram_bytes=9, epsilon=10**400), "epsilon: 1000"),
    "a budget beyond floats": (lambda: iomodel.devices.calibrate(time_budget=10**400), "time_budget: 1000"),
    "devices that are none": (
        lambda: iomodel.fleet("llama-3-8b", 7, load=1, prompt=1, output=1, ttft=1, tpot=1),
        "hardware: 7 given",
    ),
    "layouts that are none": (
        lambda: iomodel.fleet("llama-3-8b", "h100-sxm5", load=1, prompt=1, output=1, ttft=1, tpot=1, layouts=7),
        "layouts: 7 given",
    ),
    "a layout held against no model": (lambda: iomodel.Layout().check(7), "model: 7 given"),
    "phases that are none": (lambda: iomodel.kernels.Execution("x", 3), "phases: 3 given"),
    "phases of what is no text": (lambda: iomodel.kernels.Execution("x", (("exp", None),)), "phases: "),
    "an order of blocks that is none": (
        lambda: iomodel.kernels.Execution("x", (), order="last"),
        "order: 'last' given",
    ),
    "no bytes in flight": (lambda: iomodel.kernels.Execution("x", (), in_flight=0), "in_flight: 0 given"),
    "stages that are no number": (lambda: iomodel.kernels.Execution("x", (), waiting=True), "waiting: True given"),
    "a source that is no text": (lambda: iomodel.kernels.Execution(10**5000, ()), "cite: an integer of"),
    "a length of a mask that is no number": (lambda: iomodel.BlockMask([[1]], 4, 4).seen("4", 4), "q_len: '4' given"),
    "a length of documents that is too long": (
        lambda: iomodel.Documents([3]).visible_pairs(4, 10**5000),
        "kv_len: an integer of 16610 bits given",
    ),
    "an algorithm in a list": (
        lambda: iomodel.step("llama-3-8b", "h100-sxm5", batch=1, q_len=1, kv_len=9, attention_algorithm=["flash2"]),
        "algorithm: ['flash2'] given; allowed: a name, as 'flash2', or an Algorithm",
    ),
    "a figure that is an array": (
        lambda: iomodel.Hardware(schema=1, name="x", memory={"sram": {"per_block": np.array([1, 2])}}),
        "memory.sram.per_block: a number is needed",
    ),
    "a length of documents that is no number": (lambda: iomodel.Documents([3]).seen(3, "3"), "kv_len: '3' given"),
    "progress that is an array": (lambda: iomodel.devices.calibrate(progress=np.array([0, 0])), "progress: "),
    "some tiles of a kernel that chooses its splits": (
        lambda: iomodel.estimate(
            "split_kv", iomodel.Attention(q_len=64, head_dim=64, heads=4), "h100-sxm5", {"block_kv": 16}
        ),
        "block_q: ",
    ),
    "names that are none": (lambda: iomodel.triton.pruner(W, "h100-sxm5", names=7), "names: 7 given"),
    "a name that is no text": (
        lambda: iomodel.triton.pruner(W, "h100-sxm5", names={"block_q": 3}),
        "names: 3 given for block_q",
    ),
    "an algorithm of a quantised module that is a mapping": (
        lambda: iomodel.model(
            {
                "model_type": "llama",
                "hidden_size": 64,
                "num_attention_heads": 4,
                "num_hidden_layers": 2,
                "intermediate_size": 96,
                "vocab_size": 100,
                "quantization_config": {
                    "quant_method": "modelopt",
                    "quantized_layers": {"model.layers.0": {"quant_algo": {"FP8": 1}}},
                },
            }
        ),
        "quantization_config.quantized_layers: {'FP8': 1} given",
    ),
    "a tensor of a recorded call without a shape": (
        lambda: iomodel.torch.TensorArgument(7, "bfloat16", 2),  # type: ignore[arg-type]
        "shape: 7 given",
    ),
    "a length of a recorded tensor below 0": (lambda: tensor(4, -1), "shape: -1 given"),
    "elements of a recorded tensor without bytes": (
        lambda: iomodel.torch.TensorArgument((4,), "bfloat16", 0),
        "element_bytes: 0 given",
    ),
    "a recorded call that changes what it is not given": (
        lambda: recorded("aten.add_", {"self": tensor(4, 4)}, written=("out",)),
        "written: 'out' given; allowed: the inputs, self",
    ),
    "a recorded product without its second tensor": (
        lambda: recorded("aten.bmm", {"self": tensor(2, 4, 4)}),
        "inputs of aten.bmm: no 'mat2' given",
    ),
    "a recorded product of other axes": (
        lambda: recorded("aten.mm", {"self": tensor(2, 4, 4), "mat2": tensor(4, 4)}),
        "inputs.self of aten.mm: shape (2, 4, 4) given; allowed: 2 axes",
    ),
    "a recorded product without a result": (
        lambda: recorded("aten.mm", {"self": tensor(4, 4), "mat2": tensor(4, 4)}),
        "outputs of aten.mm: none given",
    ),
    "recorded attention without values": (
        lambda: recorded("aten.scaled_dot_product_attention", dict.fromkeys(("query", "key"), tensor(1, 2, 4, 8))),
        "no 'value' given",
    ),
    "a recorded call with a name that no line can hold": (
        lambda: iomodel.torch.OperatorCall.from_dict({"operator": "x", "inputs": {"a\x14": 7}, "outputs": []}),
        "a\\x14",
    ),
    "a model of an engine that is longer than a path": (
        lambda: iomodel.model(iomodel.planning.engine_arguments(f"vllm serve {'9' * 5000}")["model"]),
        "model: '999",
    ),
    "options of FlexAttention for no call": (
        lambda: iomodel.triton.flex_options(None, "h100-sxm5"),  # type: ignore[arg-type]
        "workload: None given; allowed: an iomodel.Attention",
    ),
    "a length of a list that is no number": (
        lambda: iomodel.triton.flex_options(W, "h100-sxm5", "x"),  # type: ignore[arg-type]
        "top: 'x' given",
    ),
    "a plan of a model that keeps nothing of a request": (
        lambda: iomodel.plan(
            iomodel.model(
                {
                    "schema": 1,
                    "title": "x",
                    "hidden_size": 64,
                    "vocab_size": 100,
                    "kinds": {"mlp": {"mlp": {"intermediate_size": 32}}},
                    "layers": [{"count": 2, "pattern": ["mlp"]}],
                    "sources": [{"kind": "transcription", "publisher": "x", "title": "x"}],
                }
            ),
            "h100-sxm5",
            prompt=64,
            output=4,
        ),
        "model: x keeps nothing of a request",
    ),
    "experiments that are none": (lambda: iomodel.devices.calibrate(only=7), "only: 7 given"),
}


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(iomodel.IOModelError) as caught:
        call()
    message = str(caught.value)
    assert message.splitlines() == [message]
    assert message.isprintable()
    return message


@pytest.mark.parametrize("kind", FOUND)
def test_found(kind: str) -> None:
    call, says = FOUND[kind]
    message = refused(call)
    assert says in message
    assert len(message) < 1000


def test_a_sweep_of_what_the_algorithm_does_not_do() -> None:
    pytest.importorskip("xarray")
    given = {"q_len": [8, 16], "head_dim": 8, "block_q": 4, "block_kv": 4, "progress": False}
    assert refused(lambda: sweep("two_pass", **given)).startswith("direction: 'forward' given; allowed: back")
    assert refused(lambda: sweep("flash2", **{**given, "progress": 2})).startswith("progress: ")
    assert refused(lambda: sweep("flash2", zipped=7, **given)).startswith("zipped: ")


def test_an_index_that_is_none() -> None:
    costs = iomodel.cost_array("flash2", q_len=[8, 9], head_dim=8, **TILES)
    tiles = iomodel.solve_array("flash2", sram_bytes=20_000, q_len=[8, 9], head_dim=8)
    assert costs[np.int64(1)].hbm_bytes == costs.hbm_bytes[1]
    for wrong in (10**5000, "x", 2**63, True, "0", -3, slice(1)):
        assert refused(lambda wrong=wrong: costs[wrong]).startswith("index: ")
    for wrong in (2**63, 10**5000, "0", None):
        assert refused(lambda wrong=wrong: tiles[wrong]).startswith("index: ")


def test_a_trace_is_asked_for_so_many_events_or_written_to_a_file(tmp_path: Path) -> None:
    trace = iomodel.trace("flash2", W, None, TILES)
    for wrong in ({}, -1, 1.5, np.array([b"x"])):
        assert refused(lambda wrong=wrong: trace.shown(wrong)).startswith("most: ")
        assert refused(lambda wrong=wrong: trace.to_dict(wrong)).startswith("events: ")
    for path in (7, "x\0", tmp_path):
        assert refused(lambda path=path: trace.to_csv(path)).startswith("csv: ")
    assert len(trace.to_dict(3)["events"]) == 3


def test_an_error_does_not_repeat_all_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(f"schema: 1\nsources: {['x'] * 300}\n", encoding="utf-8")
    message = refused(lambda: iomodel.model(path))
    assert "more faults" in message
    assert len(message) < 3000


@pytest.mark.parametrize("key", ["a\fb\x1b[31m", "x" * 5000, "\u2028"])
def test_an_error_shows_a_key_in_one_line(key: str) -> None:
    given = {**iomodel.model("llama-3-8b").to_dict(), "schema": 1, "kinds": {key: 1}, "layers": []}
    assert len(refused(lambda: iomodel.model(given))) < 1500


def test_the_command_line_does_not_repeat_all_that_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms", "x" * 20_000]) == 2
    said = capsys.readouterr().err
    assert said.startswith("iomodel: ")
    assert "allowed: see 'iomodel algorithms --help'" in said
    assert len(said) < 500


def test_what_an_error_shows_of_a_value() -> None:
    assert shown(10**5000) == "an integer of 16610 bits"
    assert shown(nested(5000)) == "a value of type list"
    assert shown("é\x07") == "'é\\x07'"


@pytest.mark.parametrize(
    "formula", [sympy.oo, sympy.nan, 2.0 * N, sympy.sin(N), sympy.Function("print")(N), sympy.sqrt(N), 1 / (N - 8)]
)
def test_a_formula_of_what_is_no_count(formula: sympy.Expr) -> None:
    """Nothing that a caller made becomes code: a function may have any name."""
    assert refused(lambda: iomodel.theory.evaluate(formula, {"q_len": 8})).startswith("formula: ")


def test_a_plan_of_very_many_devices_does_not_try_each_number_of_ranks() -> None:
    started = time.monotonic()
    assert iomodel.plan("llama-3-8b", "h100-sxm5", count=10**18, prompt=8, output=1).replicas == 10**18
    assert time.monotonic() - started < 60


def audited(folder: Path, *rows: str) -> iomodel.results.Audit:
    path = folder / "report.csv"
    header = '"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum"'
    path.write_text("\n".join([header, '"","","byte","byte"', *rows, ""]), encoding="utf-8")
    return iomodel.testing.audit(
        path, {"": iomodel.estimate("flash2", W, "a100-sxm4-80gb", {"block_q": 64, "block_kv": 64})}
    )


def test_a_counter_beyond_floats_is_none(tmp_path: Path) -> None:
    audit = audited(tmp_path, '"0","k","1e400","7"')
    assert [level.name for level in audit.calls[0].levels] == ["DRAM writes"]
    assert "no counter of bytes" in refused(lambda: audited(tmp_path, '"0","k","1e400","-1e301"'))


def test_names_of_a_report_are_shown_in_one_line(tmp_path: Path) -> None:
    assert "launch 'x\\x00'" in refused(lambda: audited(tmp_path, '"x\0","k","",""'))
    started = time.process_time()
    assert len(str(audited(tmp_path, f'"0","{"a" * 100_000}","1","1"'))) < 5000
    assert time.process_time() - started < 5


def test_a_memory_for_thousands_of_small_blocks_is_timed_soon() -> None:
    """Their waits for data are not told apart for each number of blocks at once."""
    w, tiles = iomodel.MLP(rows=10**18, in_features=64, hidden_features=100), dict.fromkeys(("block_m", "block_n"), 16)
    started = time.process_time()
    assert iomodel.estimate("split_mlp", w, "tpu-v5e", {**tiles, "block_k": 16}).seconds > 0
    assert time.process_time() - started < 2


def test_a_field_of_a_model_file_is_shown_in_one_line(tmp_path: Path) -> None:
    config = {
        "model_type": "causal", "architectures": ["XForCausalLM"], "hidden_size": 64, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100, "\t": [0],
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert "'\\t'" in refused(lambda: iomodel.model(path))


def test_pages_of_one_token_are_planned_soon() -> None:
    started = time.process_time()
    found = iomodel.plan("gpt-oss-20b", "tpu-v5e", prompt=65, output=16, batch=4, overhead_bytes=10**9, page_size=1)
    assert found.tpot > 0
    assert time.process_time() - started < 10


def test_counts_of_heads_beyond_64_bits_are_timed() -> None:
    w = iomodel.Attention(q_len=64, kv_len=65, head_dim=64, heads=10**18, kv_heads=2, mask="causal", batch=2)
    solution = iomodel.solve("flash3", w, "a100-sxm4-80gb", packed=True)
    assert solution.seconds == iomodel.estimate("flash3", w, "a100-sxm4-80gb", solution.tiles, packed=True).seconds
    assert len(iomodel.kernels.tile_times("flash3", w, "h100-sxm5", packed=True).seconds) > 0


def test_a_probability_of_a_stored_call_is_a_number() -> None:
    rows = iomodel.torch.TensorArgument((2, 4, 48, 16), "bfloat16", 2)
    call = iomodel.torch.OperatorCall(
        "aten._scaled_dot_product_flash_attention_for_cpu",
        {"query": rows, "key": rows, "value": rows},
        (rows,),
        arguments={"dropout_p": "é" * 100},
    )
    assert "arguments.dropout_p: 'é" in refused(lambda: iomodel.torch.traffic([call], "h100-sxm5"))


def test_tiles_of_a_long_and_a_short_sequence_are_searched_soon() -> None:
    w = iomodel.VarlenAttention(q_lens=[10**9, 2], head_dim=64, heads=4, mask="causal")
    started = time.process_time()
    assert iomodel.solve("split_kv", w, "h200-sxm").seconds > 0
    assert time.process_time() - started < 8


def simulated(path: str) -> object:
    return iomodel.simulate("llama-3-8b", "h100-sxm5", arrivals=path, batch=2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("read", [iomodel.torch.read_calls, simulated, read_benchmark, read_weights])
def test_a_pipe_is_refused_before_it_is_read(read: Callable[[str], object], tmp_path: Path) -> None:
    """So is a device such as /dev/zero, which never ends."""
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        assert "not a regular file" in refused(lambda path=path: read(path))


@pytest.mark.parametrize("requests", [1e-300, 0.25, 0])
def test_a_part_of_a_request_makes_no_mean_length(requests: float, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    totals = '"request_throughput": 5.71, "total_input_tokens": 626729000, "total_output_tokens": 388685'
    file.write_text(f'{{"successful_requests": {requests}, {totals}}}', encoding="utf-8")
    assert not {"prompt", "output", "requests"} & read_benchmark(file).setting.keys()


CALL = iomodel.Attention(heads=4, kv_heads=2, q_len=512, head_dim=64, mask="causal")


@pytest.mark.parametrize("verb", [iomodel.solve, iomodel.estimate, iomodel.check, iomodel.kernels.tile_times])
@pytest.mark.parametrize("options", [{"lse": []}, {"packed": {}}, {"splits": [1, 2]}, {"unknown": set()}])
def test_an_option_that_no_cache_holds_is_refused_by_its_name(verb: Callable[..., Any], options: Any) -> None:
    tiles = [{"block_q": 64, "block_kv": 64}] if verb is iomodel.check else []
    assert next(iter(options)) in refused(lambda: verb("flash2", CALL, "h100-sxm5", *tiles, **options))
