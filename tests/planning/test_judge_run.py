"""Results of benchmarks and start-up logs: each format is read, planned and judged, and damaged files are refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InputError, UnknownNameError, plan, simulate
from iomodel.planning.benchmark_files import read_benchmark
from iomodel.planning.judge_run import judge_run
from iomodel.planning.step.layout import Layout
from tests.fuzz.law import answered
from tests.support.damage import damaged
from tests.support.inside import main

HERE = Path(__file__).parent / "results"
FILES = sorted(HERE.iterdir())
READ = {
    "aiperf.json": ({"model": "Qwen/Qwen3-8B", "clients": 8, "prompt": 550, "output": 200}, {"tpot": 7.82e-3}),
    "aiperf-cancelled.json": (
        {"model": "openai/gpt-oss-20b", "clients": 100, "requests": 200, "prompt": 550, "output": 97},
        {"ttft": 1588.797775365e-3, "tpot": 51.76e-3, "requests_per_second": 13.16084556379392},
    ),
    "aiperf-0.8.json": (
        {"model": "llama-3.2-3b-instruct-gguf:q4_k_m", "clients": 1, "requests": 10, "output": 11},
        {"ttft": 389.5663025e-3, "requests_per_second": 0.05229134634189182},
    ),
    "aiperf-0.10.json": (
        {"model": "qwen3.6-nvfp4", "clients": 16, "requests": 96, "prompt": 3761, "output": 544},
        {"tpot": 11.847342175364519e-3, "tokens_per_second": 1172.145991694937},
    ),
    "genai-perf-streamed.json": (
        {"clients": 100, "prompt": 201, "output": 2566},
        {"ttft": 184.63779366666665e-3, "tpot": 2.1767344516666665e-3, "tokens_per_second": 44190.56002502682},
    ),
    "genai-perf-whole.json": ({"clients": 100, "output": 568}, {"tokens_per_second": 12277.70340876071}),
    "genai-perf.json": ({"prompt": 200, "output": 128}, {"ttft": 31e-3, "tpot": 7.6e-3}),
    "guidellm-concurrent.json": (
        {"model": "Qwen/Qwen3-0.6B", "clients": 16, "load": None, "requests": 259, "prompt": 264, "output": 128},
        {"ttft": 85.01119871397276e-3, "tpot": 27.796552901218284e-3, "tokens_per_second": 544.838245750165},
    ),
    "guidellm-constant.json": (
        {"model": "Qwen/Qwen3-0.6B", "clients": None, "load": 10.0, "requests": 586, "prompt": 120, "output": 128},
        {"ttft": 1006.2143587008272e-3, "tpot": 10.423929083078537e-3, "requests_per_second": 9.777764697593275},
    ),
    "guidellm-synchronous.json": (
        {"model": "openai/gpt-oss-20b", "clients": 1, "load": None, "requests": 25, "prompt": 93, "output": 1024},
        {"ttft": 48.843650817871094e-3, "tpot": 29.90631087667665e-3, "tokens_per_second": 33.417378943280085},
    ),
    "inferencemax.json": ({"hardware": "h200", "tensor_parallel": 8, "clients": 64}, {"tpot": 0.0112}),
    "inferencemax-mi355x.json": ({"hardware": "mi355x", "clients": 16}, {"ttft": 2.840227181401133}),
    "inferencemax-b300.json": (
        {"hardware": "b300", "tensor_parallel": 8, "expert_parallel": 8, "clients": 16, "prompt": 8192},
        {"ttft": 1.1691594375006389, "tokens_per_device": 272.04060371365455},
    ),
    "llama-bench.json": (
        {"model": "models/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "prompt": 512, "output": 128},
        {"ttft": 72.135640e-3, "tpot": 1.076767880 / 128},
    ),
    "llama-bench-cann.jsonl": ({"hardware": "Ascend910B3", "output": 128}, {"tpot": 2.099229836 / 128}),
    "llama-bench-printed.txt": (
        {"precision": "llama 7B mostly Q4_0", "prompt": 512, "output": 128, "hardware": None},
        {"ttft": 512 / 2368.80, "tpot": 1 / 131.42},
    ),
    "mlperf_log_summary.txt": ({"load": 85.3}, {"ttft": 0.412345678, "tokens_per_second": 24965.47}),
    "sglang-qwen.jsonl": (
        {"model": "Qwen/Qwen2.5-3B-Instruct", "clients": 8, "prompt": 61, "output": 62, "memory_utilization": 0.9},
        {"ttft": 28.385840514674783e-3, "tpot": 5.218944320881992e-3},
    ),
    "sglang-qwen-32.jsonl": ({"clients": 32, "requests": 100, "tensor_parallel": 1}, {"tpot": 11.949496163960834e-3}),
    "sglang.jsonl": ({"engine": "sglang", "load": 5.0, "clients": 256, "prompt": 302}, {"tpot": 11.808901276564441e-3}),
    "sglang-offline.json": ({"requests": 2000, "prompt": 313, "output": 194}, {"tokens_per_second": 1109.45}),
    "sglang-offline-printed.txt": (
        {"model": "deepseek-ai/DeepSeek-R1", "requests": 2000, "prompt": 313, "output": 194, "tensor_parallel": 16},
        {"requests_per_second": 5.71, "tokens_per_second": 1109.45},
    ),
    "sglang-start.log": ({"tensor_parallel": 4, "memory_utilization": 0.93}, {"kv_tokens": 367404}),
    "mlperf-mi355x-summary.txt": (
        {"load": 61.29},
        {"ttft": 0.687235954, "tpot": 67.443317e-3, "tokens_per_second": 82136.08, "requests_per_second": 59.86},
    ),
    "mlperf-mi325x-summary.txt": ({"load": 104.0}, {"ttft": 0.963332124, "requests_per_second": 99.86}),
    "mlperf-a30-summary.txt": ({}, {"ttft": 50.385872554, "tpot": 21.964703e-3, "tokens_per_second": 44.52}),
    "sglang-printed.txt": ({"engine": "sglang", "clients": 256, "prompt": 508, "output": 517}, {"tpot": 21.74e-3}),
    "sglang-qwen-start.log": ({"model": "qwen/qwen2.5-0.5b-instruct"}, {"weights": 0.98 * 2**30, "kv_tokens": 20480}),
    "trtllm-printed.txt": (
        {"model": "meta-llama/Llama-3.1-8B-Instruct", "clients": 95, "step_tokens": 7680},
        {"ttft": 162.6706e-3, "tpot": 7.3272e-3, "requests_per_second": 86.5373},
    ),
    "trtllm-overview.txt": ({"requests": 5000}, {"ttft": 52.6670339, "tokens_per_second": 5530.7382}),
    "trtllm-llama-fp8.json": (
        {"model": "nvidia/Llama-3.1-8B-Instruct-FP8", "clients": 14812, "step_requests": 2048, "kv_dtype": "FP8"},
        {"requests_per_second": 217.07010038476662, "tokens_per_second": 27784.972849250127},
    ),
    "trtllm-rtx4070ti.json": (
        {"hardware": "NVIDIA GeForce RTX 4070 Ti", "clients": 1, "prompt": 64, "output": 40},
        {"ttft": 15.69475855e-3, "tpot": 4.279331844871795e-3},
    ),
    "trtllm.json": ({"kv_dtype": "FP8", "step_requests": 256, "clients": 64}, {"tokens_per_second": 6451.0}),
    "vllm-0.25.json": (
        {"model": "facebook/opt-125m", "clients": 2, "requests": 8, "prompt": 32, "output": 16},
        {"ttft": 217.27289337468392e-3, "requests_per_second": 5.859229976904171},
    ),
    "vllm-xpu-start.log": (
        {"engine": "vllm", "model": "Qwen/Qwen3-4B-Thinking-2507", "context": 2048, "step_tokens": 8192},
        {"weights": 1.11 * 2**30, "kv_tokens": 561728, "requests_that_fit": 274.28},
    ),
    "vllm-0.7-start.log": ({"engine": "vllm", "context": 4096}, {"kv_tokens": 538560, "requests_that_fit": 131.48}),
    "vllm-ernie-printed.txt": (
        {"model": "baidu/ERNIE-4.5-21B-A3B-PT", "load": 10.0, "prompt": 7997},
        {"ttft": 0.87628},
    ),
    "vllm-l40s.json": ({"hardware": "4xNVIDIA_L40S", "load": 10.0, "prompt": 999, "output": 270}, {"tpot": 0.01357800}),
    "vllm-l40s-printed.txt": ({"load": 30.0, "requests": 900}, {"ttft": 73.23e-3, "requests_per_second": 22.18}),
    "vllm-throughput.json": ({"requests": 512}, {"requests_per_second": 70.77}),
    "vllm-throughput-printed.txt": (
        {"model": "LiquidAI/LFM2.5-350M", "requests": 512, "prompt": 512, "output": 256},
        {"requests_per_second": 70.77, "tokens_per_second": 18116.77},
    ),
    "vllm-start.log": ({"tensor_parallel": 4, "context": 40960}, {"kv_bytes": 8.11 * 2**30, "kv_tokens": 178880}),
}
"""Parts of the set-up and figures, read off the files by hand; their sources are in tests/public_files.csv."""


def test_an_answer_in_one_piece_has_no_time_to_a_first_token():
    """github.com/triton-inference-server/perf_analyzer, issue 298: the same load with --streaming and without."""
    streamed, whole = (read_benchmark(HERE / f"genai-perf-{name}.json") for name in ("streamed", "whole"))
    assert (streamed.source, whole.source) == ("genai-perf", "genai-perf")
    assert "ttft" in streamed.measured
    assert not {"ttft", "tpot"} & whole.measured.keys()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_format_is_read_by_its_keys(file):
    run = read_benchmark(file)
    setting, measured = READ[file.name]
    assert {name: run.setting.get(name) for name in setting} == setting
    assert {name: run.measured[name] for name in measured} == pytest.approx(measured)


def test_a_closed_loop_is_the_plan_of_its_clients():
    judged = judge_run(HERE / "aiperf.json", "h100-sxm5")
    planned = plan("qwen3-8b", "h100-sxm5", prompt=550, output=200, clients=8, layout=Layout(), count=1)
    figures = {each.name: each for each in judged.figures}
    assert figures["tpot"].predicted == planned.tpot
    assert (figures["tpot"].low, figures["tpot"].high) == planned.tpot_interval
    assert figures["ttft"].predicted == planned.ttft
    assert figures["tokens_per_second"].predicted == planned.tokens_per_second
    assert [each.error for each in judged.changes] == sorted(each.error for each in judged.changes)


@pytest.mark.parametrize(
    ("name", "device", "layout", "clients", "replicas"),
    [("concurrent", "t4", Layout(), 16, 2), ("synchronous", "arc-pro-b60", Layout(tensor_parallel=4), 1, 1)],
)
def test_a_result_of_guidellm_is_the_plan_of_its_set_up(name, device, layout, clients, replicas):
    """As its authors ran it: two pairs of pods on two T4, and four Arc Pro B60."""
    run = read_benchmark(HERE / f"guidellm-{name}.json")
    judged = judge_run(HERE / f"guidellm-{name}.json", device, layout=layout, replicas=replicas, engine="vllm")
    lengths = {each: run.setting[each] for each in ("prompt", "output")}
    count = replicas * layout.devices
    planned = plan(judged.model, device, layout=layout, clients=clients, count=count, engine="vllm", **lengths)
    names = ("ttft", "tpot", "tokens_per_second", "requests_per_second")
    found = [(each.name, each.predicted, each.measured) for each in judged.figures]
    assert found == [(each, getattr(planned, each), run.measured[each]) for each in names]


def guidellm(strategy, in_flight=7.4):
    """Write one run of GuideLLM under a strategy."""
    mean = {"successful": {"mean": in_flight}}
    metrics = {"request_concurrency": mean, "inter_token_latency_ms": mean}
    return {"config": {"strategy": strategy, "backend": {"model": "m"}}, "metrics": metrics}


@pytest.mark.parametrize(
    ("strategy", "clients", "load"),
    [
        ({"type_": "throughput", "max_concurrency": 512}, 7, None),
        ({"type_": "concurrent", "streams": 16}, 16, None),
        ({"type_": "poisson", "rate": 5.0, "max_concurrency": 512}, None, 5.0),
    ],
)
def test_a_run_without_a_rate_has_the_clients_that_were_in_flight(tmp_path, strategy, clients, load):
    """The most that GuideLLM would send at a time are not the clients of a run, and one with a rate has none."""
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps({"benchmarks": [guidellm({"streams": 3}), guidellm(strategy)]}), encoding="utf-8")
    run = read_benchmark(file)
    assert (run.setting.get("clients"), run.setting.get("load")) == (clients, load)
    assert run.notes == ("the last of 2 runs in the file",)


def test_a_run_with_few_requests_per_client_is_simulated(tmp_path):
    """Its start and its end count, and requests that are all there at the start wait for each other."""
    file = tmp_path / "run"
    setting = {"prompt": 256, "output": 64, "layout": Layout(), "engine": "vllm"}
    waits = {}
    for requests, clients in ((48, None), (96, None), (95, 24), (96, 24)):
        run = {"model_id": "llama-3.1-8b", "backend": "vllm", "request_rate": "inf", "max_concurrency": clients,
               "completed": requests, "total_input_tokens": 256 * requests, "total_output_tokens": 64 * requests,
               "mean_ttft_ms": 100.0, "mean_tpot_ms": 10.0, "request_throughput": 9.0}  # fmt: skip
        file.write_text(json.dumps(run), encoding="utf-8")
        found = {each.name: each.predicted for each in judge_run(file, "h100-sxm5").figures}
        if requests < 4 * (clients or requests):
            ran = simulate("llama-3.1-8b", "h100-sxm5", concurrency=clients or requests, requests=requests, **setting)
            expected = {"ttft": ran.ttft.mean, "tpot": ran.tpot.mean, "requests_per_second": ran.requests_per_second}
        else:
            held = plan("llama-3.1-8b", "h100-sxm5", clients=clients, count=1, **setting)
            expected = {"ttft": held.ttft, "tpot": held.tpot, "requests_per_second": held.requests_per_second}
        assert found == expected
        waits[requests, clients] = found["ttft"]
    assert waits[95, 24] < waits[48, None] < waits[96, None]


def capped(tmp_path, **changed):
    """Write a result of vLLM with a rate of arrivals and a most of clients."""
    run = {"model_id": "llama-3.1-8b", "backend": "vllm", "request_rate": 10.0, "max_concurrency": 2, "completed": 100,
           "total_input_tokens": 25600, "total_output_tokens": 6400, "mean_ttft_ms": 40.0, "mean_tpot_ms": 7.0,
           "request_throughput": 3.0}  # fmt: skip
    file = tmp_path / "run.json"
    file.write_text(json.dumps({**run, **changed}), encoding="utf-8")
    return file


def test_clients_that_are_too_few_for_the_arrivals_are_a_closed_loop(tmp_path):
    """A client counts its time from the request that it sends, and not from the arrival that it holds back."""
    found = {each.name: each.predicted for each in judge_run(capped(tmp_path), "h100-sxm5").figures}
    held = plan("llama-3.1-8b", "h100-sxm5", prompt=256, output=64, clients=2, count=1, engine="vllm", layout=Layout())
    assert found == {"ttft": held.ttft, "tpot": held.tpot, "requests_per_second": held.requests_per_second}
    few = {each.name: each.predicted for each in judge_run(capped(tmp_path, request_rate=0.5), "h100-sxm5").figures}
    assert few["requests_per_second"] == pytest.approx(0.5, rel=0.2)  # of 100 random arrivals


def test_other_devices_of_a_name_are_tried(tmp_path):
    tried = {each.change for each in judge_run(capped(tmp_path), "H100").changes}
    assert {"device h100-pcie", "device h100-nvl"} <= tried
    assert not any(each.change.startswith("device") for each in judge_run(capped(tmp_path), "h100-sxm5").changes)


def test_the_benchmark_of_tensorrt_llm_has_no_server_before_the_first_token():
    asked = {"prompt": 256, "output": 64, "clients": 1, "count": 1}
    bench, served = (plan("llama-3.1-8b", "h100-sxm5", engine=name, **asked) for name in ("trtllm-bench", "trtllm"))
    assert bench.ttft < served.ttft - 0.01
    judged = judge_run(HERE / "trtllm-llama-fp8.json", "h100-sxm5")
    assert judged.setting["engine"] == "trtllm-bench"


def test_an_older_print_of_trtllm_bench_is_read():
    """Release 0.16 prints the rate of output tokens as "Token Throughput"."""
    file = HERE.parents[1] / "measured" / "judged" / "trtllm-8xh100-1024-1024-3000.txt"
    run = read_benchmark(file)
    assert (run.source, run.setting["tensor_parallel"], run.setting["requests"]) == ("trtllm-bench", 8, 3000)
    assert run.measured["tokens_per_second"] == 10893.8728


def test_a_change_that_the_run_had_is_found(tmp_path):
    fast = plan("llama-3.1-8b", "h100-sxm5", prompt=512, output=256, clients=4, layout=Layout(), precision="fp8")
    run = {"hw": "h100-sxm5", "conc": 4, "isl": 512, "osl": 256, "tp": 1, "model": "meta-llama/Llama-3.1-8B-Instruct",
           "tput_per_gpu": 1.0, "output_tput_per_gpu": fast.tokens_per_second, "mean_tpot": fast.tpot}  # fmt: skip
    file = tmp_path / "run"
    file.write_text(json.dumps(run), encoding="utf-8")
    judged = judge_run(file)
    assert not judged.inside
    assert judged.explained[0] == "weights, products and cache in fp8"
    assert judged.changes[0].error < 1e-6
    assert judge_run(file, precision="fp8").error < 1e-6


def test_a_start_is_held_to_the_memory_of_its_engine():
    judged = judge_run(HERE / "sglang-start.log", "h100-sxm5")
    assert judged.setting["engine"] == "sglang"
    assert judged.inside  # published: https://github.com/vllm-project/vllm/issues/21348
    assert all(change.error < 10 for change in judged.changes)  # none of those that do not fit, such as TP 2


def test_a_log_of_vllm_is_planned_in_its_release(tmp_path):
    """Llama 3.1 8B as two releases hold it: 0.24 has a larger share, and prints its version first."""
    lines = [
        "Initializing a V1 LLM engine (v{0}) with config: model='llama-3.1-8b'",
        "(APIServer) vLLM API server version {0}",
    ]
    found = {}
    for line, release in zip(lines, ("0.10.1.1", "0.24.0rc1"), strict=True):
        path = tmp_path / f"{release}.log"
        path.write_text(line.format(release) + "\nmodel='llama-3.1-8b'\nGPU KV cache size: 450,000 tokens\n")
        found[release] = judge_run(path, "h100-sxm5")
    assert [each.setting["engine"] for each in found.values()] == ["vllm==0.10.1.1", "vllm==0.24.0"]
    tokens = [{figure.name: figure for figure in each.figures}["kv_tokens"].predicted for each in found.values()]
    asked = {"prompt": 4095, "output": 1, "batch": 1}
    held = [plan("llama-3.1-8b", "h100-sxm5", engine=name, **asked).memory for name in ("vllm", "vllm==0.24")]
    assert tokens == [each.tokens for each in held]
    named = judge_run(path, "h100-sxm5", engine="vllm==0.10")
    assert named.figures[0].predicted == tokens[0]
    assert not any(change.change == "engine vllm" for each in found.values() for change in each.changes)


def test_drafts_of_a_file_are_said_to_be_left_out():
    with_drafts, without = (judge_run(HERE / f"inferencemax-{name}.json") for name in ("b300", "mi355x"))
    assert with_drafts.setting["engine"] == "tensorrt-llm"
    assert "speculative decoding ('mtp') of the file is left out; each step gives one token" in with_drafts.notes
    assert not any("speculative" in note for note in without.notes)


def test_names_of_devices_are_found_with_their_number():
    judged = judge_run(HERE / "vllm-l40s.json")
    assert (judged.hardware, judged.setting["replicas"]) == ("l40s", 4)
    assert judged.notes[0] == "device l40s for '4xNVIDIA_L40S'"


def test_the_whole_name_of_a_device_is_no_family(tmp_path):
    run = json.loads((HERE / "vllm-l40s.json").read_text())
    run |= {name: run[name] // 25 for name in ("num_prompts", "completed", "total_input_tokens", "total_output_tokens")}
    text = json.dumps(run).replace("4xNVIDIA_L40S", "NVIDIA H100 80GB HBM3")
    (tmp_path / "run.json").write_text(text)
    judged = judge_run(tmp_path / "run.json")
    assert judged.hardware == "h100-sxm5"
    assert not any("taken as" in line for line in judged.assumed)


def test_rates_of_replicas_are_those_of_all():
    """Tokens are those of the requests, and all replicas together serve the load."""
    figures = {each.name: each.predicted for each in judge_run(HERE / "vllm-l40s.json").figures}
    assert figures["tokens_per_second"] == pytest.approx(270 * figures["requests_per_second"], rel=0.01)
    assert 7 < figures["requests_per_second"] <= 10


def test_a_file_without_clients_is_planned_with_as_many_as_fit():
    """One request at a time was assumed; the summary of MLPerf on an A30 states no load."""
    file = HERE / "mlperf-a30-summary.txt"
    judged = judge_run(file, "a30", model="llama-3.1-8b", prompt=512, output=128)
    figures = {each.name: each.predicted for each in judged.figures}
    held = plan("llama-3.1-8b", "a30", prompt=512, output=128, layout=Layout(), count=1)
    assert figures["tokens_per_second"] == held.tokens_per_second
    assert "the file states neither clients nor a load: as many requests at a time as fit" in judged.notes


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(InputError, match="hardware: the file names no device; allowed: one, such as h100-sxm5"):
        judge_run(HERE / "aiperf.json")
    with pytest.raises(InputError, match="model: the file names none"):
        judge_run(HERE / "mlperf_log_summary.txt", "h100-sxm5")
    with pytest.raises(InputError, match="prompt: the file states no lengths"):
        judge_run(HERE / "mlperf_log_summary.txt", "h100-sxm5", model="llama-3-8b")
    with pytest.raises(UnknownNameError, match="hardware: 'x' is unknown"):
        judge_run(HERE / "aiperf.json", "x")
    file = tmp_path / "other"
    for text, message in (("{}", "no result and no log of a known program"), ("Serving Benchmark Result", "succeeded")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_benchmark(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_benchmark(tmp_path / "none")


def test_the_command_takes_a_file_in_the_place_of_an_algorithm(capsys):
    assert main(["judge", str(HERE / "sglang-start.log"), "--hardware", "h100-sxm5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["figures"][0]["name"] == "kv_tokens"
    assert main(["judge", "no-such.json", "--hardware", "h100-sxm5"]) == 2
    assert "cannot be read" in capsys.readouterr().err


@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(data, tmp_path_factory):
    content = data.draw(st.sampled_from(FILES)).read_bytes()
    file = tmp_path_factory.getbasetemp() / "damaged"
    file.write_bytes(damaged(data, content, 40, [b"9" * 400, b"null", b"[", b"-1", b"\x00"], longest=9))
    assert answered(lambda: read_benchmark(file)) in ("answered", "refused")


def llama_bench(folder, *tests, **common):
    """Write tests of prompts, of generated tokens, or of both, after a depth, of 1 s each."""
    named = {"model_filename": "m/Qwen2.5-7B-Instruct-Q8_0.gguf", "model_type": "qwen2 7B Q8_0", "type_k": "f16"}
    rows = [
        {**named, "gpu_info": "NVIDIA GeForce RTX 3090", **common, "n_prompt": prompt, "n_gen": output,
         "n_depth": depth, "avg_ns": 10**9}
        for prompt, output, depth in tests
    ]  # fmt: skip
    file = folder / "bench.json"
    file.write_text(json.dumps(rows))
    return file


def test_tests_of_llama_bench_make_one_run(tmp_path):
    """The last test of a prompt and the last of an output, without tests of both or after a depth."""
    run = read_benchmark(
        llama_bench(tmp_path, (64, 0, 0), (512, 0, 0), (512, 0, 4096), (0, 128, 0), (0, 128, 512), (512, 128, 0))
    )
    assert run.measured == {"tpot": 1 / 128, "ttft": 1.0}
    assert (run.setting["prompt"], run.setting["output"]) == (512, 128)
    assert run.notes == ("the last of 2 runs in the file",)
    with pytest.raises(InputError, match="no result"):
        read_benchmark(llama_bench(tmp_path, (512, 128, 0), (0, 128, 4096)))


def test_tests_of_another_set_up_make_another_run(tmp_path):
    rows = json.loads(llama_bench(tmp_path, (512, 0, 0), (0, 128, 0)).read_text())
    rows[0]["type_k"] = "q8_0"
    file = tmp_path / "two.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    run = read_benchmark(file)
    assert run.measured.keys() == {"tpot"}
    assert "prompt" not in run.setting


def test_llama_bench_is_the_plan_of_one_request_without_a_server(tmp_path):
    judged = judge_run(llama_bench(tmp_path, (512, 0, 0), (0, 128, 0), type_k="q8_0", type_v="q4_0"))
    types = {"weight_dtype": "q8_0", "kv_dtype": "q8_0/q4_0", "engine": "llama.cpp"}
    planned = plan("qwen2.5-7b", "rtx3090", prompt=512, output=128, layout=Layout(), count=1, **types)
    figures = {each.name: each.predicted for each in judged.figures}
    assert figures == {"ttft": planned.figures.ttft_alone, "tpot": planned.tpot}
    assert not any("engine" in each.change or "cached" in each.change for each in judged.changes)


def test_all_devices_of_llama_bench_share_the_layers(tmp_path):
    two = {"gpu_info": "NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 3090"}
    file = llama_bench(tmp_path, (0, 128, 0), split_mode="layer", n_gpu_layers=20, **two)
    judged = judge_run(file)
    assert judged.layout == Layout(pipeline_parallel=2)
    assert "20 of 28 layers are on the device in the file; all are planned there" in judged.notes
    alone = judge_run(llama_bench(tmp_path, (0, 128, 0), split_mode="none", **two))
    assert alone.layout == Layout()


@pytest.mark.parametrize(
    ("words", "dtype"),
    {
        "llama 8B Q4_K - Medium": "q4_k_m", "llama 7B mostly Q4_0": "q4_0", "qwen2 7B Q3_K - Large": "q3_k_l",
        "llama 8B IQ4_XS - 4.25 bpw": "iq4_xs", "llama 8B IQ3_S mix - 3.66 bpw": "iq3_m", "llama 7B F16": "fp16",
        "llama 8B BF16": "bf16", "llama 7B all F32": "fp32", "llama 8B Q4_K - Small (guessed)": "q4_k_s",
        "gpt-oss 20B MXFP4 MoE": "mxfp4_moe", "llama 7B Q2_K - Medium": "q2_k", "llama 8B Q6_K": "q6_k",
    }.items(),
)  # fmt: skip
def test_the_words_of_llama_bench_name_a_type(tmp_path, words, dtype):
    file = llama_bench(tmp_path, (0, 128, 0), model_type=words, model_filename="llama-3-8b.gguf")
    assert judge_run(file, "h200-sxm").setting["weight_dtype"] == dtype


def test_a_given_type_replaces_that_of_llama_bench(tmp_path):
    file = llama_bench(tmp_path, (0, 128, 0))
    for stated in ({"precision": "fp8"}, {"model": "qwen2.5-7b:Q4_K_M"}):
        assert "weight_dtype" not in judge_run(file, "h100-sxm5", **stated).setting


@pytest.mark.parametrize(
    "devices",
    [
        "  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes\n" * 2,
        "  Device 0: AMD Radeon RX 7900 XTX, gfx1100 (0x1100), VMM: no, Wave Size: 32\n" * 2,
    ],
)
def test_the_printed_table_of_llama_bench_has_its_devices_above(tmp_path, devices):
    table = (HERE / "llama-bench-printed.txt").read_text()
    file = tmp_path / "printed.txt"
    file.write_text(devices + table.replace("pp 512  ", "pp512   ").replace("tg 128     ", "tg128 @ d0 "))
    judged = judge_run(file, model="llama-2-7b")
    assert judged.layout == Layout(pipeline_parallel=2)
    assert [each.name for each in judged.figures] == ["ttft", "tpot"]
