"""Command lines of engines: options by hand, the bytes they leave, and the plan that they give back."""

import json
import math
import shlex

import pytest

import iomodel
from iomodel import InputError, UnknownNameError
from iomodel.planning.engine_arguments import engine_arguments
from iomodel.planning.engine_flags import engine_flags, memory_share
from iomodel.planning.engine_options import ENGINES
from iomodel.planning.memory_plan import memory_plan
from iomodel.planning.plan import plan
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from tests.support.inside import main

H100, CHAT = "h100-sxm5", {"prompt": 512, "output": 16}


def made(name="llama-3.2-1b", device=H100, count=1, layout=Layout(), **fields):  # noqa: B008 - frozen
    return plan(name, device, count=count, layout=layout, **CHAT, **fields)


def test_by_hand():
    found = made("llama-3.1-70b", count=8, layout=Layout(tensor_parallel=4), batch=64, weight_dtype="fp8",
                 kv_dtype="fp8", page_size=16, prefix_cache=PrefixCache(hit_rate=0.5), engine=None)  # fmt: skip
    commands = {name: engine_flags(found, name) for name in ENGINES}
    assert commands["vllm"].command == (
        "vllm serve meta-llama/Meta-Llama-3.1-70B --tensor-parallel-size 4 --max-num-seqs 64 --max-model-len 528 "
        "--gpu-memory-utilization 0.9 --quantization fp8 --kv-cache-dtype fp8 --block-size 16 --enable-prefix-caching"
    )
    assert commands["sglang"].command == (
        "python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3.1-70B --tp-size 4 "
        "--max-running-requests 64 --context-length 528 --mem-fraction-static 0.875 --quantization fp8 "
        "--kv-cache-dtype fp8_e4m3 --page-size 16"
    )
    words = commands["trtllm"].command.split()
    assert words[:2] == ["trtllm-serve", "meta-llama/Meta-Llama-3.1-70B"]
    assert dict(zip(words[2::2], words[3::2], strict=True)).keys() == {
        "--tp_size", "--max_batch_size", "--max_seq_len", "--kv_cache_free_gpu_memory_fraction", "--config",
    }  # fmt: skip
    lines = ["kv_cache_config:", "  dtype: fp8", "  tokens_per_block: 16", "  enable_block_reuse: true"]
    assert commands["trtllm"].config.splitlines() == lines
    assert commands["trtllm"].notes == ("name a checkpoint with weights in fp8 in place of the model",)
    assert all((one.replicas, one.devices) == (2, 4) for one in commands.values())
    assert commands["trtllm"].text.startswith("# 2 x 4 devices\n# name")


def test_data_parallel_attention():
    found = made("gpt-oss-20b", count=4, layout=Layout(tensor_parallel=2, expert_parallel=4), batch=64)
    vllm, sglang, trtllm = (engine_flags(found, name) for name in ("vllm", "sglang", "trtllm"))
    for part in ("--tensor-parallel-size 2 --data-parallel-size 2 --enable-expert-parallel", "--max-num-seqs 32 "):
        assert part in vllm.command
    assert "--tp-size 4 --dp-size 2 --enable-dp-attention --ep-size 4 --max-running-requests 64 " in sglang.command
    assert "--tp_size 4 --ep_size 4 --max_batch_size 32 " in trtllm.command
    assert trtllm.config == "enable_attention_dp: true"
    part = made("gpt-oss-20b", count=4, layout=Layout(tensor_parallel=4, expert_parallel=2), batch=8)
    with pytest.raises(InputError, match=r"layout\.expert_parallel: 2 given; allowed with vllm: 1, or all 4 ranks"):
        engine_flags(part, "vllm")


def test_the_shares_leave_the_same_memory():
    found = made("llama-3-8b", memory_utilization=0.83, overhead_bytes=3 << 30)
    fit = found.memory
    step = fit.capacity / 10_000
    assert -1 <= fit.usable - memory_share(found, "vllm") * fit.capacity < step
    static = memory_share(found, "sglang") * fit.capacity - fit.weights
    assert -1 <= fit.left - static < step
    free = memory_share(found, "trtllm") * (fit.capacity - fit.weights - fit.overhead)
    assert -1 <= fit.left - free < step


@pytest.mark.parametrize(
    ("name", "layout", "engine", "fields"),
    [
        ("llama-3.2-1b", Layout(), "vllm", {"kv_dtype": "fp8", "page_size": 16, "memory_utilization": 0.85}),
        ("llama-3.2-1b", Layout(tensor_parallel=2, pipeline_parallel=2), "sglang", {"weight_dtype": "fp8"}),
        ("llama-3.2-1b", Layout(tensor_parallel=2), "vllm", {"dtype": "fp16", "weight_dtype": "fp8"}),
        ("gpt-oss-20b", Layout(tensor_parallel=2, expert_parallel=4), "vllm", {"kv_dtype": "fp8"}),
        ("gpt-oss-20b", Layout(tensor_parallel=2, expert_parallel=4), "sglang", {"page_size": 64}),
    ],
)
def test_a_command_line_gives_its_plan_back(name, layout, engine, fields):
    found = made(name, count=layout.devices, layout=layout, batch=32, engine=engine, **fields)
    again = plan(hardware=H100, **CHAT, **engine_arguments(engine_flags(found, engine).command))
    assert (again.layout, again.figures, again.page_size) == (found.layout, found.figures, fields.get("page_size"))
    assert 0 <= found.memory.left - again.memory.left < found.memory.capacity / 10_000 + 1
    assert again.memory.weights == found.memory.weights


@pytest.mark.parametrize(
    ("verb", "asked"),
    [
        ("plan", {"batch": 8}),
        ("plan_array", {"batch": 8}),
        ("fleet", {"load": 4, "ttft": 1, "tpot": 0.1}),
        ("pareto", {"batches": [8]}),
        ("simulate", {"load": 2.0, "requests": 20}),
        ("memory_plan", {}),
    ],
)
def test_every_verb_reads_a_command_line(verb, asked):
    line = "vllm serve meta-llama/Llama-3.2-1B --tensor-parallel-size 2 --kv-cache-dtype fp8"
    answer, asked = getattr(iomodel.planning, verb), {**CHAT, **asked}
    plain = {name: answer("llama-3.2-1b", H100, tp=name, kv_dtype="fp8", engine="vllm", **asked) for name in (2, 4)}
    assert answer(line, H100, **asked).to_dict() == plain[2].to_dict()
    assert answer(line, H100, **asked, layout=None).to_dict() == plain[2].to_dict()
    assert answer(line, H100, **asked, layout=Layout(tensor_parallel=4)).to_dict() == plain[4].to_dict()


def test_spellings():
    first = engine_arguments("A=x vllm serve meta-llama/Meta-Llama-3-8B-Instruct -tp=2 --port 80 \\\n --dtype half")
    started = {
        "model": "llama-3-8b",
        "engine": "vllm",
        "layout": Layout(tensor_parallel=2),
        "count": 2,
        "dtype": "fp16",
    }
    assert first == started
    second = engine_arguments("python3 -m sglang.launch_server --model deepseek-ai/DeepSeek-V3 --tp 8 --log")
    assert second == {"model": "deepseek-v3", "engine": "sglang", "layout": Layout(tensor_parallel=8), "count": 8}
    assert engine_arguments("sglang serve --model-path qwen3-30b-a3b --tp 2 --ep 2")["layout"].expert_parallel == 2


FAULTS = [
    (lambda: engine_flags(made(), "tgi"), "engine: 'tgi' is unknown"),
    (lambda: engine_flags(3, "vllm"), "plan: 3 given; allowed: the result of iomodel.plan"),
    (lambda: engine_arguments("ollama run x"), "command: 'ollama run x' given; allowed: 'vllm serve MODEL ...'"),
    (lambda: engine_arguments("vllm serve"), "command: no model given"),
    (lambda: engine_arguments("vllm serve 'x"), 'command: "vllm serve \'x" given; allowed: a command line'),
    (
        lambda: engine_arguments("vllm serve x -tp two"),
        "command: --tensor-parallel-size 'two' given; allowed: an",
    ),
    (lambda: engine_arguments("vllm serve x -dp 2"), "command: --data-parallel-size 2 given without --enable-expert"),
    (lambda: engine_arguments("vllm serve x --cpu-offload-gb 4"), "command: --cpu-offload-gb given; allowed: none"),
    (lambda: engine_arguments("vllm serve x --quantization awq"), "command: --quantization 'awq' given; allowed for a"),
    (
        lambda: engine_arguments("vllm serve x --gpu-memory-utilization 2"),
        "command: --gpu-memory-utilization '2'",
    ),
    (
        lambda: engine_arguments("sglang serve --model x --dp 2 --tp 2"),
        "command: --dp-size 2 given; allowed: with",
    ),
]


@pytest.mark.parametrize(("call", "says"), FAULTS, ids=[says[:40] for _, says in FAULTS])
def test_faults_are_told_in_one_line(call, says):
    with pytest.raises((InputError, UnknownNameError)) as caught:
        call()
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_the_commands(capsys):
    lengths = "--prompt 512 --output 16"
    typed = f"plan llama-3.2-1b --hardware {H100} {lengths} --batch 8 --emit vllm"
    assert main(shlex.split(typed)) == 0
    assert capsys.readouterr().out.rstrip() == engine_flags(made(batch=8), "vllm").text
    assert main([*shlex.split(typed), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == engine_flags(made(batch=8), "vllm").to_dict()
    more = f"--hardware {H100} {lengths} --max-count 1 --emit sglang"
    assert main(shlex.split(f"fleet llama-3.2-1b --load 1 --ttft 1 --tpot 1 {more}")) == 0
    assert "--tp-size" not in capsys.readouterr().out
    assert main(shlex.split(f"pareto llama-3.2-1b --batches 4 --tpot 1 {more}")) == 0
    assert "--max-running-requests 4 " in capsys.readouterr().out
    assert main(shlex.split(f"pareto llama-3.2-1b --batches 4 {more}")) == 2
    assert capsys.readouterr().err.startswith("iomodel: emit: given without a target")
    line = "vllm serve meta-llama/Llama-3.2-1B-Instruct --max-num-seqs 8"
    assert main(["plan", line, "--hardware", H100, *lengths.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["batch"] == 8


def test_copies_of_experts():
    layout = Layout(expert_parallel=4, redundant_experts=4)
    found = made("gpt-oss-20b", count=4, layout=layout, batch=64)
    vllm, sglang = (shlex.split(engine_flags(found, name).command) for name in ("vllm", "sglang"))
    place = vllm.index("--enable-eplb")
    assert vllm[place : place + 2] == ["--enable-eplb", "--eplb-config"]
    assert json.loads(vllm[place + 2]) == {"num_redundant_experts": 4}
    assert sglang[sglang.index("--ep-num-redundant-experts") + 1] == "4"
    with pytest.raises(InputError, match=r"redundant_experts: 4 given; allowed with trtllm: 0, or vllm, sglang"):
        engine_flags(found, "trtllm")
    with pytest.raises(
        InputError, match=r"--ep-num-redundant-experts given; .* copies of experts; give them to iomodel"
    ):
        engine_arguments(shlex.join(sglang))


def test_a_cache_in_nvfp4_has_two_names_in_sglang():
    for name in ("nvfp4", "fp4_e2m1"):
        read = engine_arguments(f"sglang serve --model-path llama-3.1-8b --kv-cache-dtype {name}")
        assert read["kv_dtype"] == "nvfp4"


def test_drafts_of_the_model_are_in_the_file_of_tensorrt_llm():
    own = made("deepseek-v2-lite", batch=4, speculation=Speculation(tokens=2, acceptance=0.8))
    lines = ["speculative_config:", "  decoding_type: MTP", "  num_nextn_predict_layers: 2"]
    flags = engine_flags(own, "trtllm")
    assert flags.config.splitlines()[-3:] == lines
    assert not any("draft" in note for note in flags.notes)
    free = made(batch=4, speculation=Speculation(tokens=2, acceptance=0.8, draft="ngram"))
    assert engine_flags(free, "trtllm").notes == ("add speculative_config for 2 draft tokens to the file",)


@pytest.mark.parametrize("start", ["vllm serve x", "sglang serve --model-path x", "trtllm-serve x"])
def test_short_forms_of_degrees_are_those_of_every_engine(start):
    assert engine_arguments(f"{start} --tp 8 --pp 2")["layout"] == Layout(tensor_parallel=8, pipeline_parallel=2)
    if start.startswith("vllm"):
        wide = engine_arguments(f"{start} --tp 2 --dp 4 --ep")["layout"]
        assert wide == Layout(tensor_parallel=2, expert_parallel=8)
        with pytest.raises(InputError, match="--enable-expert-parallel 4 given; allowed: without a number"):
            engine_arguments(f"{start} --tp 2 --dp 4 --ep 4")


def test_a_line_of_trtllm_bench_has_the_limits_that_the_benchmark_sets():
    """An fp8 cache of Llama 3.1 70B on two H200: 4.5 tokens of all layers in a MB; a prompt takes one step."""
    share = "--kv_cache_free_gpu_mem_fraction 0.95"
    line = f"trtllm-bench --model meta-llama/Llama-3.1-70B --tp 2 throughput --dataset d {share}"
    read = engine_arguments(line)
    assert (read["engine"], read["layout"]) == ("trtllm-bench", Layout(tensor_parallel=2))
    assert read["memory_utilization"] == 0.95
    run = iomodel.simulate(
        line, "h200-sxm", prompt=1000, output=1000, requests=3000, weight_dtype="fp8", kv_dtype="fp8"
    )
    device, spec = iomodel.hardware("h200-sxm"), iomodel.model("llama-3.1-70b")
    fitting = 0.95 * (2 * device.memory.hbm.capacity.value - spec.parameters) / (163_840 * 2000)
    most = 128 * math.ceil(fitting / 128)
    assert f"at most {most:,} requests and 2,048 tokens in a step of a rank, as its benchmark sets them" in run.assumed
    assert run.token_budget == 2048
    stated = engine_arguments(f"{line} --max_batch_size 64 --max_num_tokens 4096")
    assert (stated["batch"], stated["step_tokens"]) == (64, 4096)


@pytest.mark.parametrize(("start", "most"), [
    ("vllm serve llama-3-8b --max-model-len 1K", 1024),
    ("vllm serve llama-3-8b --max-model-len 1000000", 8192),
    ("trtllm-serve llama-3-8b --max_seq_len 600", 600),
    ("llama-server -m llama-3-8b -c 2048 -np 4", 512),
])  # fmt: skip
def test_the_longest_request_of_a_line_limits_those_of_a_plan(start, most):
    assert iomodel.plan(start, H100, prompt=most - 16, output=16).prompt == most - 16
    with pytest.raises(InputError, match=f"allowed: at most {most:,}, the longest context"):
        iomodel.plan(start, H100, prompt=most - 15, output=16)


def test_an_error_names_the_layout_and_what_is_passed_over(capsys):
    line = "vllm serve meta-llama/Llama-3.1-405B --tp 8 --foo 3"
    assert main(["plan", line, "--hardware", H100, "--prompt", "512", "--output", "16"]) == 1
    said = capsys.readouterr().err
    assert "(h100-sxm5, TP 8)" in said
    assert "one device" not in said
    assert said.rstrip().endswith("without an effect on a plan: --foo")


@pytest.mark.parametrize(
    ("line", "token", "tokens"),
    [
        ("llama-server -m llama-3-8b -c 32768 -ctk q8_0 -ctv q8_0", 65_536 * 34 // 32, 32_768),
        ("llama-server -m llama-3-8b -c 32768 -ctk q8_0 -ctv q4_0", 32_768 * (34 + 18) // 32, 32_768),
        ("llama-server -m llama-3-8b -c 32768 --cache-type-k q8_0", 32_768 * (34 + 64) // 32, 32_768),
        ("./build/bin/llama-server -hf bartowski/Meta-Llama-3-8B-Instruct-GGUF:Q4_K_M -c 32768 -np 4", 131_072, 8192),
        ("llama-cli -m Meta-Llama-3-8B-Q8_0.gguf -c 4096 --cache-type-k f32 --cache-type-v f32", 262_144, 4096),
    ],
)
def test_the_cache_of_llama_cpp_has_its_type_and_tokens(line, token, tokens):
    found = memory_plan(line, "h100-sxm5")
    assert found.memory.token_bytes == token
    assert found.memory.request_bytes == token * tokens
    assert found.prompt + found.output == tokens


def test_llama_cpp_reads_the_weights_of_a_gguf_name():
    wide, narrow = (memory_plan(f"llama-server -m llama-3-8b{name}", "h100-sxm5") for name in ("", "-Q4_K_M.gguf"))
    assert narrow.memory.weights < 0.4 * wide.memory.weights
    assert memory_plan("llama-server -m llama-3-8b -ngl 99 -fa", "h100-sxm5").assumed == (
        "without an effect on a plan: -fa; not followed, though memory or times change: -ngl",
    )


VLLM, SGLANG = "vllm serve llama-3.1-8b --max-model-len 8192", "sglang serve --model-path qwen3-next-80b-a3b --tp 4"


def left_by(line):
    return memory_plan(line, H100).memory


def test_flags_that_set_the_memory_of_caches_set_it():
    assert left_by(f"{VLLM} --kv-cache-memory-bytes 10G").left == 10 * 2**30
    assert left_by(f"{VLLM} --kv-cache-memory-bytes 1.5g").left == 1_500_000_000
    assert left_by(f"{VLLM} --num-gpu-blocks-override 1000").tokens == 16_000
    assert left_by(f"{VLLM} --num-gpu-blocks-override 1000 --block-size 32").tokens == 32_000
    assert left_by("sglang serve --model-path llama-3.1-8b --max-total-tokens 50000").tokens == 50_000
    assert left_by(f"{VLLM} --num-gpu-blocks-override 1000000").tokens == left_by(VLLM).tokens


def test_flags_of_hybrids_divide_the_pools():
    """Qwen3-Next on four H100: the pool of states is its share, its places, or with one place for a request."""
    usual, half = left_by(SGLANG), left_by(f"{SGLANG} --mamba-full-memory-ratio 0.5")
    states, fewer = (found.pools[-1].bytes for found in (usual, half))
    assert states / usual.left == pytest.approx(0.9 / 1.9, rel=1e-6)
    assert fewer / half.left == pytest.approx(0.5 / 1.5, rel=1e-6)
    assert left_by(f"{SGLANG} --max-mamba-cache-size 100").slots == 100 // 5
    assert left_by(f"{SGLANG} --disable-radix-cache").slots // 5 == usual.slots
    assert left_by(f"{SGLANG} --max-total-tokens 20000").tokens == 20_000
    windows = [left_by(f"sglang serve --model-path gpt-oss-20b {more}") for more in ("", "--swa-full-tokens-ratio 0.4")]
    assert windows[0].tokens < windows[1].tokens


def test_a_request_takes_whole_pages_of_each_pool():
    """The page of 64 tokens holds the last token of a request: up to its end a longer one takes no more."""
    line = "sglang serve --model-path gpt-oss-20b --page-size 64"
    taken = [
        [pool.request_bytes for pool in memory_plan(line, H100, prompt_tokens=prompt, output_tokens=16).memory.pools]
        for prompt in (1000, 1008, 1009)  # 1,016 tokens, 1,024 and 1,025
    ]
    assert len(taken[0]) == 2
    assert taken[0] == taken[1]
    assert taken[1][0] < taken[2][0]


def test_flags_of_graphs_and_adapters_take_memory():
    few, many = (left_by(f"sglang serve --model-path llama-3.1-8b --cuda-graph-max-bs {size}") for size in (8, 512))
    assert few.left - many.left == pytest.approx(2 * (512 - 8) * 2**20, rel=0.02)
    plain, adapted = left_by(VLLM), left_by(f"{VLLM} --enable-lora --max-loras 4 --max-lora-rank 64")
    assert adapted.weights - plain.weights == 4 * (
        left_by(f"{VLLM} --enable-lora --max-lora-rank 64").weights - plain.weights
    )


def test_options_that_matter_and_are_not_followed_are_said_to_matter():
    found = memory_plan(f"{VLLM} --enforce-eager --port 80", H100)
    assert found.assumed == (
        "without an effect on a plan: --port; not followed, though memory or times change: --enforce-eager",
    )
    with pytest.raises(InputError, match="--kv-cache-memory-bytes '10X' given; allowed: bytes, such as 10G"):
        memory_plan(f"{VLLM} --kv-cache-memory-bytes 10X", H100)
    assert left_by("sglang serve --model-path llama-3.1-8b --chunked-prefill-size -1").tokens > 0
    with pytest.raises(InputError, match="--max-model-len '0' given; allowed: tokens, such as 8192 or 8k"):
        left_by(f"{VLLM} --max-model-len 0")


def test_drafts_of_a_command_line_need_an_acceptance():
    config = '{"method": "eagle3", "num_speculative_tokens": 5}'
    line = f"vllm serve meta-llama/Llama-3.1-8B --speculative-config '{config}'"
    with pytest.raises(InputError, match=r"--speculative-config given without .* --draft-tokens 5 --acceptance 0.7"):
        plan(line, "h100-sxm5", **CHAT)
    drafts = Speculation(tokens=5, acceptance=0.7)
    drafted = plan(line, "h100-sxm5", speculation=drafts, **CHAT)
    plain = plan("vllm serve meta-llama/Llama-3.1-8B", "h100-sxm5", speculation=drafts, **CHAT)
    assert drafted.tpot == plain.tpot
    with pytest.raises(InputError, match="--draft-tokens 3 --acceptance"):
        engine_arguments("sglang serve --model-path x --speculative-algorithm EAGLE --speculative-num-steps 3")
