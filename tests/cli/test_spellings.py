"""Words of a command line that mean a name for certain, and hints for those that mean one probably."""

from __future__ import annotations

import pytest
from typer import Context
from typer.core import TyperCommand

import iomodel
from iomodel.algorithms import algorithm
from iomodel.cli.algorithm_help import OF_TILES, TILE_NAMES, relevant
from iomodel.cli.app import main
from iomodel.cli.commands import COMMANDS, Commands
from iomodel.cli.spellings import command_meant, respelled
from iomodel.errors import InputError
from tests.support.inside import ABSENT, LIKELY_MEANT, SAME, WEIGHT_SIZE, key, known, meant, same

CALL = "--q-len 512 --head-dim 64"
H100 = "--hardware h100-sxm5"
LOAD = "--prompt 2048 --output 256"

ACCEPTED = {
    # as strangers typed them
    f"plan llama-3-8b {H100} {LOAD} --tp 2": f"plan llama-3-8b {H100} {LOAD} --tensor-parallel 2",
    f"plan llama-3-8b {H100} --input 1024 --output 256": f"plan llama-3-8b {H100} --prompt 1024 --output 256",
    "plan llama-3-8b --pp 2 --ep 8": "plan llama-3-8b --pipeline-parallel 2 --expert-parallel 8",
    "plan llama-3-8b --isl 1024 --osl 256": "plan llama-3-8b --prompt 1024 --output 256",
    "plan llama-3-8b --input-len=1024 --output-len=256": "plan llama-3-8b --prompt=1024 --output=256",
    "tiles flash2 --seq-len 512 --head-dim 64": "tiles flash2 --q-len 512 --head-dim 64",
    f"tiles flash2 {CALL} --device h100-sxm5": f"tiles flash2 {CALL} {H100}",
    f"tiles flash2 {CALL} --gpu h100-sxm5": f"tiles flash2 {CALL} {H100}",
    f"estimate flash2 {CALL} --tiles 128x64": f"estimate flash2 {CALL} --block-q 128 --block-kv 64",
    f"estimate flash2 {CALL} --tiles=128x64": f"estimate flash2 {CALL} --block-q 128 --block-kv 64",
    "cost gemm --tiles 128x256x64": "cost gemm --block-m 128 --block-n 256 --block-k 64",
    "cost fused_mlp --tile 128x256": "cost fused_mlp --block-m 128 --block-n 256",
    "cost gemm --tokens 64 --d-model 4096": "cost gemm --tokens 64 --in-features 4096",
    "cost fused_mlp --intermediate-size 14336": "cost fused_mlp --hidden-features 14336",
    "cost cut_cross_entropy --vocabulary 128256": "cost cut_cross_entropy --vocab-size 128256",
    "tiles flash2 --seqlens 100,200 --v-dim 128": "tiles flash2 --q-lens 100,200 --value-dim 128",
    "plan llama-3-8b --system-prompt-tokens 6000": "plan llama-3-8b --shared-tokens 6000",
    f"cost flash2 {CALL} --sliding-window 4096": f"cost flash2 {CALL} --window-left 4095 --window-right 0",
    "tiles flash2 --cu-seqlens 0,512,1536": "tiles flash2 --document-lengths 512,1024",
    "tiles flash2 --cu-seqlens 0,512,512,1536": "tiles flash2 --document-lengths 512,1024",
    f"cost flash2 {CALL} --causal": f"cost flash2 {CALL} --mask causal",
    "diagnose flash2 --seconds 1ms": "diagnose flash2 --time 1ms",
    # of our own
    "cost flash2 --logits-soft-cap 30": "cost flash2 --softcap 30",
    "plan llama-3-8b --max-num-batched-tokens 512": "plan llama-3-8b --step-tokens 512",
    "cost flash2 --cu-seqlens-q 0,1,2 --cu-seqlens-k=0,100,1000": "cost flash2 --q-lens 1,1 --kv-lens 100,900",
    "plan llama-3-8b --tensor-parallel-size 2": "plan llama-3-8b --tensor-parallel 2",
    "plan llama-3-8b --gpu-memory-utilization 0.9": "plan llama-3-8b --memory-utilization 0.9",
    "plan llama-3-8b --kv-cache-dtype fp8 --max-num-seqs 64": "plan llama-3-8b --kv-dtype fp8 --batch 64",
    "plan --model llama-3-8b --num-gpus 4": "plan llama-3-8b --count 4",
    "plan llama-3-8b --gpus 4": "plan llama-3-8b --count 4",
    "plan llama-3-8b --gpus=4": "plan llama-3-8b --count=4",
    "plan llama-3-8b -tp 4": "plan llama-3-8b --tensor-parallel 4",
    "step llama-3-8b --context 4096": "step llama-3-8b --kv-len 4096",
    f"fleet llama-3-8b {H100} {LOAD} --cached 0.9": f"fleet llama-3-8b {H100} {LOAD} --hit-rate 0.9",
    f"plan llama-3-8b {H100} --gpu 4": f"plan llama-3-8b {H100} --count 4",
    "plan --model=llama-3-8b --dcp 2": "plan llama-3-8b --decode-context-parallel 2",
    "plan llama-3-8b --price-per-hour 2": "plan llama-3-8b --price 2",
    "fleet llama-3-8b --qps 20 --itl 50ms": "fleet llama-3-8b --load 20 --tpot 50ms",
    "fleet llama-3-8b --time-to-first-token 500ms": "fleet llama-3-8b --ttft 500ms",
    "simulate llama-3-8b --request-rate 4 --num-prompts 100": "simulate llama-3-8b --load 4 --requests 100",
    "simulate llama-3-8b --max-num-batched-tokens 2048": "simulate llama-3-8b --token-budget 2048",
    "simulate llama-3-8b --max-concurrency 8": "simulate llama-3-8b --concurrency 8",
    f"simulate llama-3-8b {H100} --clients 8": f"simulate llama-3-8b {H100} --concurrency 8",
    f"plan llama-3-8b {H100} --concurrency 8": f"plan llama-3-8b {H100} --clients 8",
    f"fleet llama-3-8b {H100} --users 8": f"fleet llama-3-8b {H100} --clients 8",
    "disaggregate llama-3-8b --prefill-tp 2 --decode-tp 4":
        "disaggregate llama-3-8b --prefill-tensor-parallel 2 --decode-tensor-parallel 4",
    "disaggregate llama-3-8b --prefill-gpu h100-sxm5": "disaggregate llama-3-8b --prefill h100-sxm5",
    f"disaggregate llama-3-8b {H100} {LOAD}": f"disaggregate llama-3-8b --prefill h100-sxm5 {LOAD}",
    "disaggregate llama-3-8b --gpu h100 --decode b200": "disaggregate llama-3-8b --prefill h100 --decode b200",
    "triton kernel.ttir --config BLOCK_M=64 --gpu a100": "triton kernel.ttir --config BLOCK_M=64 --arch a100",
    "train llama-3-8b --sequence-length 4096": "train llama-3-8b --seq-len 4096",
    "train llama-3-8b --global-batch-size 64 --micro-batch-size 2 --dp 8":
        "train llama-3-8b --batch 64 --micro-batch 2 --data-parallel 8",
    "tiles flash2 --seqlen-q 512 --hdim 64": "tiles flash2 --q-len 512 --head-dim 64",
    "tiles flash2 --seqlen-k 512 --num-kv-heads 8 --num-heads 32": "tiles flash2 --kv-len 512 --kv-heads 8 --heads 32",
    "tiles flash2 --batch-size 4 --head-size 64": "tiles flash2 --batch 4 --head-dim 64",
    "tiles --algorithm flash2 --kernel triton": "tiles flash2 --implementation triton",
    "tiles flash2 --smem '227 KiB'": "tiles flash2 --sram-bytes '227 KiB'",
    "check flash2 --num-warps 4 --num-stages 2": "check flash2 --warps 4 --stages 2",
    "check flash2 --B_r 128 --B_c 64": "check flash2 --block-q 128 --block-kv 64",
    "cost split_kv --num-splits 4": "cost split_kv --splits 4",
    "crossover flash2 standard --d 64": "crossover flash2 standard --head-dim 64",
    "pareto llama-3-8b --tpot-slo 20ms": "pareto llama-3-8b --tpot 20ms",
    "compare flash2 --value-head-dim 64": "compare flash2 --value-dim 64",
}  # fmt: skip
"""Command lines, with the command line that each stands for."""

HINTED = {
    # as strangers typed them
    f"pareto llama-3-8b {H100} {LOAD} --count 4": "did you mean --replica-devices or --max-count?",
    f"fleet llama-3-8b {H100} {LOAD} --gpus 4": "did you mean --max-devices",
    f"tiles gpt2 {CALL} {H100}": "'gpt2' is unknown; did you mean model='gpt2'?",
    f"tiles fa5 {CALL} --hardware b200": "did you mean 'fa1', 'fa3', 'fa4' or 'fa2'?",
    f"plan h100-sxm5 --hardware b200 {LOAD}": "model: 'h100-sxm5' is unknown; did you mean hardware='h100-sxm5'?",
    f"plan llama-3-8b --hardware llama-3-8b {LOAD}": "'llama-3-8b' is unknown; did you mean model='llama-3-8b'?",
    f"cost flex_attention {CALL}": "did you mean 'flash2' or 'flash3'?",
    "hardware rtx4090ti": "did you mean 'rtx4090', ",
    "model llama-3.5-70b": "did you mean 'llama-3.1-70b' or 'llama-3.3-70b'?",
    "model qwen3-72b": "did you mean 'qwen2.5-72b'?",
    "model llama-3-7b": "did you mean 'llama-2-7b'?",
    f"plan llama-3-8b {H100} --gpu-mem-util 0.9": "did you mean --memory-utilization?",
    f"plan llama-3-8b {H100} -ngl 99": "--ngl: no option of iomodel plan; a plan has every layer on the GPU;",
    "plan llama-3-8b --gpu 4090": "did you mean 'rtx4090'?",
    "model gpt4": "'gpt4' is unknown; this model is not on file; allowed:",
    f"tiles naive {CALL} {H100}": "did you mean 'standard' or 'tiled_query'?",
    f"tiles flash2 {CALL} {H100} --mask sliding": "mask: 'sliding' is unknown; did you mean 'window'?",
    "formula flash-attention": "did you mean 'flash2' or 'flash3'?",
    f"tiles flash2 {CALL} {H100} --dtype fp4": "kv_dtype",
    f"cost flash2 {CALL} --dtype bfloat17": "did you mean 'bf16'?",
    f"plan llama-3-8b {H100} --hardware b200 {LOAD}": "hardware: given 2 times; allowed: once",
    "plan llama-3-8b --seq-len 2048": "did you mean --prompt?",
    f"step llama-3-8b {H100} --prompt 2048": "did you mean --q-len?",
    "bounds --N 4096": "did you mean --q-len or --out-features?",
    "bounds --M 4096": "did you mean --sram-elements or --rows?",
    f"cost flash2 {CALL} --mask False": "did you mean 'full'?",
    "calibrate --gpu h100-sxm5": "--gpu: no option of iomodel calibrate",
    # of our own
    "plan llama-3-8b --gpus h100-sxm5": "did you mean --count or --hardware?",
    "plan llama-3-8b --data-parallel 4": "did you mean --count or --expert-parallel?",
    "plan llama-3-8b --weights fp8": "did you mean --weight-dtype?",
    "plan llama-3-8b --block-size 16": "did you mean --page-size?",
    "plan llama-3-8b --max-model-len 4096": "did you mean --prompt or --output?",
    "disaggregate llama-3-8b --bandwidth 50GB/s": "did you mean --link?",
    "train llama-3-8b --gradient-checkpointing": "did you mean --recompute?",
    "train llama-3-8b --zero 3": "did you mean --shard?",
    "fleet llama-3-8b --latency 50ms": "did you mean --tpot or --ttft?",
    "model llama-3-8b --tokens 32768": "did you mean --context?",
    f"estimate flash2 a100-sxm4-80gb {CALL}": "did you mean --hardware a100-sxm4-80gb?",
    f"plan llama-3-8b --hardware 8xh200 {LOAD}": "given; allowed: h200-nvl or h200-sxm, with count 8",
    f"compare {CALL} --hardware h100-sxm5,b200": "allowed: one name; several as a list, or in several options",
    f"plan llama3 {H100} {LOAD}": "did you mean 'llama-3-70b', 'llama-3-8b', ",
    f"tiles flash2 {CALL} --hardware hopper": "did you mean 'h100-sxm5' or 'h200-sxm'?",
    f"tiles flash2 {CALL} --hardware Blackwell": "did you mean 'b200'?",
    "hardware jetson-orin-nano": "this device is not on file",
    "plan llama-3-8b --ngl 33": "a plan has every layer on the GPU",
    f"estimate decode {CALL} {H100}": "did you mean 'split_kv'?",
    f"tiles prefill {CALL} {H100}": "did you mean 'flash2' or 'flash3'?",
    f"cost textbook {CALL}": "did you mean 'standard' or 'tiled_query'?",
    f"estimate mla {CALL} {H100}": "did you mean 'split_kv'?",
    "tiles flash2 --block-size 128": "did you mean --page-size?",
    "tiles flash2 --backend triton": "did you mean --implementation?",
    f"cost flash2 {CALL} --direction bwd": "did you mean 'backward'?",
    f"cost flash2 {CALL} --direction fwd+bwd": "did you mean 'both'?",
    f"cost flash2 {CALL} --mask none": "did you mean 'full'?",
    f"cost flash2 {CALL} --mask varlen": "did you mean 'documents'?",
    f"cost flash2 {CALL} --mask tril": "did you mean 'causal'?",
    f"cost flash2 {CALL} --tile 128": "as 128x64 for --block-q and --block-kv",
    "cost flash_decoding": "did you mean 'split_kv'?",
    "formula mamba": "did you mean 'mamba1' or 'mamba2'?",
    "formula matmul": "did you mean 'gemm'?",
    "formula gated_deltanet": "did you mean 'chunked_scan'?",
    "formula trtllm": "nearest: trtllm-gen, flashinfer",
    "autotune": "did you mean 'tiles'?",
    "serve": "did you mean 'plan'?",
    "benchmark": "did you mean 'simulate'?",
    "roofline": "did you mean 'estimate'?",
    "why": "did you mean 'diagnose'?",
    "tiles flash2 --verbose": "an answer depends on none",
    f"tiles flash2 {CALL} --hadware h100-sxm5": "did you mean --hardware?",
    f"tiles flash2 {CALL} --tensor-paralel 2": "--tensor-paralel: no option of iomodel tiles",
    "plan llama-3-8b --tensor-paralell 2": "did you mean --tensor-parallel?",
    # of a fourth list of questions
    f"cost flash2 {CALL} --mask window:1024": "allowed: --sliding-window 1024 for as many visible keys",
    f"cost flash2 {CALL} --mask local(512)": "allowed: --sliding-window 512 for as many visible keys",
    f"cost flash2 {CALL} --mask window=128,0": "allowed: --window-left 128 --window-right 0",
    f"cost flash2 {CALL} --mask docs:256,256": "allowed: --document-lengths 256,256",
    f"cost flash2 {CALL} --mask causal:3": "did you mean 'causal'?",
    f"bounds flash2 {CALL} --sram-bytes 227": "allowed: bytes from 1,024, or with a unit, such as '227 KiB'",
    f"plan llama-3-8b {H100} --overhead-bytes 4": "or with a unit, such as '4 GiB' or '4 B'",
    "plan llama-3-8b --data-parallel-attention": "did you mean --expert-parallel?",
    f"estimate split_kv {CALL} --kv-cache fp8": "did you mean --kv-dtype?",
    "plan llama-3-8b --speculative llama-3.2-1b": "did you mean --draft or --draft-tokens?",
    f"plan llama-3-8b {H100} --speculative-config x": "did you mean --draft-tokens or --acceptance?",
    f"train llama-3-8b {H100} --microbatches 8": "did you mean --micro-batch?",
    f"estimate mla_decode {CALL} {H100}": "did you mean 'split_kv'?",
    f"cost flash3 {CALL} --dtype e4m3": "did you mean 'fp8'?",
    "plan llama-3-8b --chunk-size 512": "did you mean --step-tokens?",
    f"plan llama-3-8b {H100} --weight-dtype 4bit": "did you mean 'int4' or 'nvfp4'?",
    f"plan llama-3-8b {H100} --weight-dtype 8bit": "did you mean 'int8' or 'fp8'?",
    f"cost flash2 {CALL} --sink": "did you mean --sinks?",
    f"estimate split_kv {CALL} --kv-bits 8": "did you mean --kv-dtype?",
    f"cost flash2 {CALL} --gqa-groups 4": "did you mean --kv-heads?",
    "disaggregate llama-3-8b --transfer-bandwidth 50GB/s": "did you mean --link?",
    "bounds flash2 --sram-kb 227": "did you mean --sram-bytes?",
    f"estimate flash2 {CALL} --paged": "did you mean --page-size?",
    f"compare flash2 {CALL} {H100} mi300x": "mi300x is a device; did you mean --hardware mi300x?",
    f"estimate flashmla_sparse {CALL} {H100}": "did you mean 'dsa'?",
    f"cost flash3 {CALL} --dtype mxfp4": "4-bit types are those of K and V (kv_dtype)",
    f"check eager {CALL} {H100}": "eager given, which has no tiles",
    "check": "flash2",
    # of newcomers
    "plan llama-3-8b --context-length 8192": "did you mean --prompt?",
    "cost gemm --m 1024": "did you mean --rows",
    "cost gemm --n 1024": "did you mean --q-len or --out-features?",
    "cost gemm --k 1024": "did you mean --in-features?",
    f"cost flash2 {CALL} --block-m 64": "'block_m' is unknown; did you mean 'block_q'?",
    f"cost flash2 {CALL} --block-n 64": "'block_n' is unknown; did you mean 'block_kv'?",
    f"fleet llama-3-8b {H100} --load 2 {LOAD} --ttft 0.5sec --tpot 50ms": "unit 'sec' is not allowed here; did you "
    "mean 's'?",
    f"tiles flash2 {CALL} --sram-bytes 100kilobytes": "did you mean 'KiB'?",
    f"plan llama-3-8b {H100} {LOAD} --memory-utilization 90": "at most 1, such as 0.9",
    f"tiles attention {CALL}": "did you mean 'flash2' or 'flash3'?",
    "torch": "a room of the library for Python, without a command",
    f"tiles flash2 {CALL} --blockq 64": "--blockq: no option of iomodel tiles, but of check",
    f"tiles flash2 {CALL} --gqa 4": "did you mean --kv-heads?",
    f"estimate flash2 {CALL} --training": "did you mean --direction?",
    "simulate llama-3-8b --rate 5": "did you mean --load?",
    f"plan llama-3-8b {H100} {LOAD} --price 2.5/h": "at most 1e+15, such as 2.5",
    f"disaggregate llama-3-8b --prefill b200 --decode b200 {LOAD} --link 400Gbps": "bits are an eighth of as many",
    "plan llama-3-8b --prefix-cache 6000": "did you mean --shared-tokens or --hit-rate?",
    "cost fused_mlp --experts 8": "did you mean --loads or --groups?",
    "cost experts --rows 4": "did you mean 'fused_mlp' or 'split_mlp'?",
    "cost rmsnorm --rows 4": "did you mean 'norm'?",
    "cost gemm --tiles 1x2x3x4": "as 128x256x64 for --block-m and --block-n and --block-k",
    f"cost split_kv {CALL} --scale-dtype fp16": "did you mean --kv-scales?",
    f"fleet llama-3-8b {H100} {LOAD} --load 500rpx --ttft 1 --tpot 1": "such as 500",
    f"plan llama-3-8b {H100} {H100}": "allowed: once; tiles, check, estimate, compare, fleet and pareto take several",
}
"""Command lines that are refused, with their hint."""


def words(line):
    return line.replace("'227 KiB'", "227KiB").split()


@pytest.mark.parametrize("line", ACCEPTED)
def test_a_certain_synonym_is_accepted(line):
    command, *typed = words(line)
    assert [command, *respelled(typed, Commands()[command].params)] == words(ACCEPTED[line])


@pytest.mark.parametrize("line", HINTED)
def test_a_probable_synonym_is_hinted(line, capsys):
    assert main(line.split()) == 2
    told = capsys.readouterr().err
    assert HINTED[line] in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("word", "name"),
    {
        "solve": "tiles", "expressions": "formula", "crossovers": "crossover", "train_step": "train",
        "train-step": "train", "help": "--help", "version": "--version", "devices": "hardware", "models": "model",
        "tiles": "tiles", "nothing": "nothing", "--json": "--json",
    }.items(),
)  # fmt: skip
def test_a_command_goes_by_either_word(word, name):
    assert command_meant(word, COMMANDS) == name


def test_help_and_version_are_commands_too(capsys):
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("iomodel ")
    assert main(["help", "solve"]) == 0
    assert "Usage: iomodel tiles" in " ".join(capsys.readouterr().out.split())


def test_every_name_of_the_table_is_a_name_of_the_product():
    commands = Commands()
    parsers = [
        parser for name in COMMANDS for parser in getattr(commands[name], "commands", {"": commands[name]}).values()
    ]
    taken = {key(form) for parser in parsers for parameter in parser.params for form in parameter.opts}
    offered = {value for parser in parsers for parameter in parser.params for value in completed(parameter)}
    names = {name for names in (*SAME, *LIKELY_MEANT) for name in names.split()}
    assert names - taken - offered - {*COMMANDS, *WEIGHT_SIZE, *iomodel.list_algorithms("elementwise")} == UNTYPED


UNTYPED = {"price_per_hour", "prices", "arrival", "right"}
"""Names of parameters in Python and of columns of traces, which no option of a command has."""


def completed(parameter):
    """The values that a shell completes."""
    if getattr(parameter, "_custom_shell_complete", None) is None:
        return []
    return [item.value for item in parameter.shell_complete(Context(TyperCommand("x")), "")]


@pytest.mark.parametrize("word", ["input", "seconds", "hardware", "fp4", "naive"])
def test_a_known_word_is_never_taken_for_one_with_similar_letters(word):
    assert known(word)
    assert meant(word, ["output", "second", "hardwired", "nsa"]) == []


def test_of_several_meanings_the_first_that_the_place_takes():
    assert same("sequence-length", ["seq_len", "batch"]) == "seq_len"
    assert same("sequence-length", ["q_len", "seq_len"]) == "q_len"
    assert same("sequence-length", ["batch"]) is None


def test_absences_are_no_names():
    assert not {word for words in ABSENT for word in words.split()} & {*SAME, *COMMANDS}


def test_commands_that_ask_for_tiles_list_the_algorithms_with_tiles(capsys):
    for name in (name for name in iomodel.list_algorithms() if not algorithm(name).approximates):
        concerned = relevant(Commands()["estimate"].params, algorithm(name))
        sized = any(
            getattr(entry, "rich_help_panel", "") == OF_TILES and entry.name in TILE_NAMES for entry in concerned
        )
        assert sized != algorithm(name).untiled, name
    for command in ("tiles", "check", "staircase", "optimum", "rule"):
        assert "eager" not in Commands()[command].params[0].help.split(", "), command
    assert "eager" in Commands()["estimate"].params[0].help.split(", ")


def test_few_bytes_with_their_unit_are_taken(capsys):
    assert main(["bounds", "flash2", *CALL.split(), "--sram-bytes", "227 B"]) == 0
    assert main(["bounds", "flash2", *CALL.split(), "--sram-bytes", "1024"]) == 0


@pytest.mark.parametrize(
    ("device", "kernels"),
    {"a100-sxm4-80gb": "flash-attention-2", "b200": "flash-attention-2", "t4": "xformers"}.items(),
)
def test_sdpa_is_the_kernel_that_pytorch_takes(device, kernels):
    call = iomodel.Attention(q_len=512, head_dim=64, dtype="fp16")
    for name in ("sdpa", "scaled_dot_product_attention"):
        assert iomodel.estimate(name, call, device).implementation == kernels


def test_tiles_of_another_form_are_refused():
    with pytest.raises(InputError, match="tiles: '128' given; allowed: queries x keys, as 128x64"):
        respelled(["--tiles", "128"], Commands()["cost"].params)


def test_a_value_of_a_switch_names_the_switch(capsys, monkeypatch):
    typed = ["estimate", "flash2", *CALL.split(), "--latent", "512"]
    monkeypatch.setattr("sys.argv", ["iomodel", *typed])
    assert main() == 2
    assert "--latent given with a value; allowed: without one, because it is a switch" in capsys.readouterr().err
