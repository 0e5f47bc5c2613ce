"""Caches whose tokens ranks divide: bytes by hand, messages of a step, laws, refusals, and options of engines."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import iomodel
from iomodel import InputError, Layout
from iomodel.planning.step.divided_cache import COMBINE, EXCHANGE, LATENTS, QUERIES
from iomodel.planning.step.links import all_gather, all_reduce, all_to_all
from tests.support.inside import main

H200 = "h200-sxm"
LATENT, GROUPED = "deepseek-v3", "qwen3-235b-a22b"
LONG = {"prompt": 16_384, "output": 64, "precision": "fp8"}


def made(model: str = LATENT, ranks: int = 1, tensor: int = 8, **changes: Any) -> iomodel.Plan:
    layout = Layout(tensor_parallel=tensor, decode_context_parallel=ranks)
    return iomodel.plan(model, H200, layout=layout, **{**LONG, **changes})


def timed(model: str, ranks: int, q_len: int = 1, kv_len: int = 16_384, batch: int = 8, **changes: Any) -> Any:
    layout = Layout(tensor_parallel=8, decode_context_parallel=ranks)
    return iomodel.step(model, H200, batch=batch, q_len=q_len, kv_len=kv_len, layout=layout, **changes)


def test_a_rank_holds_every_nth_token() -> None:
    """61 layers of 576 elements in fp8; ranks hold whole pages."""
    tokens = LONG["prompt"] + LONG["output"]
    for ranks in (1, 2, 4, 8):
        assert made(ranks=ranks, engine=None).memory.request_bytes == 61 * 576 * -(-tokens // ranks)
    paged = made(ranks=8, page_size=64, prompt=16_385, engine=None).memory
    assert paged.request_bytes == 61 * 576 * 64 * 33  # 2,057 tokens
    assert paged.cache_ranks == 8
    assert paged.tokens == 8 * paged.blocks


def test_heads_stay_replicated_where_ranks_are_left() -> None:
    """Four heads on eight ranks: two hold the same, and divide its tokens."""
    whole, halved = made(GROUPED), made(GROUPED, 2)
    assert whole.memory.request_bytes == 94 * 2 * 128 * (LONG["prompt"] + LONG["output"])
    assert halved.memory.request_bytes * 2 == whole.memory.request_bytes
    assert halved.memory.token_bytes == whole.memory.token_bytes


@pytest.mark.parametrize(("model", "able"), [(LATENT, (1, 2, 4, 8)), (GROUPED, (1, 2))])
@pytest.mark.parametrize("engine", [None, "vllm"])
def test_more_ranks_never_hold_fewer_tokens(model: str, able: tuple[int, ...], engine: str | None) -> None:
    memories = [made(model, ranks, engine=engine).memory for ranks in able]
    for fewer, more in pairwise(memories):
        assert more.fits >= fewer.fits
        assert more.tokens >= fewer.tokens
        assert more.weights == fewer.weights


def test_one_rank_is_the_plan_without() -> None:
    plain = iomodel.plan(LATENT, H200, layout=Layout(tensor_parallel=8), batch=4, **LONG)
    assert made(ranks=1, batch=4) == plain


@pytest.mark.parametrize(("model", "q_width", "out"), [(LATENT, 576, 512), (GROUPED, 128, 128)])
def test_messages_have_known_bytes(model: str, q_width: int, out: int) -> None:
    """Eight sequences, heads / 8 of each rank: queries to all, and rows of the output with four bytes to each."""
    ranks, device, spec = 2, iomodel.hardware(H200), iomodel.model(model)
    layer = spec.layers[0].attention
    assert layer is not None
    rows = 8 * layer.heads // 8
    parts = {part.name: part for part in timed(model, ranks, kv_dtype="bf16").parts}
    queries, exchange = parts[QUERIES], parts[EXCHANGE]
    assert queries.times == exchange.times == parts[COMBINE].times == len(spec.layers)
    gathered = all_gather(device, ranks, rows * q_width * 2)
    assert queries.seconds == pytest.approx(len(spec.layers) * gathered.seconds)
    sent = all_to_all(device, ranks, ranks * rows * (out * 2 + 4))
    assert exchange.seconds == pytest.approx(len(spec.layers) * sent.seconds)
    partial = next(part for part in parts.values() if part.kind == "attention")
    assert f"1/{ranks} of the keys" in partial.name


def test_a_gather_is_half_of_a_ring() -> None:
    device, size = iomodel.hardware(H200), 1 << 28
    for layout in (Layout(), Layout(devices_per_node=4)):
        ring = all_reduce(device, 8, 8 * size, layout).seconds
        assert all_gather(device, 8, size, layout).seconds == pytest.approx(ring / 2, rel=0.01)


@pytest.mark.parametrize("model", [LATENT, GROUPED])
def test_attention_reads_a_share_of_the_keys(model: str) -> None:
    whole, halved = timed(model, 1, batch=64), timed(model, 2, batch=64)
    read = [
        sum(part.hbm_bytes for part in step.parts if part.name.startswith("attention (")) for step in (whole, halved)
    ]
    assert read[1] == pytest.approx(read[0] / 2, rel=0.05)  # queries and outputs of twice the heads
    flops = [sum(part.flops for part in step.parts if part.kind == "attention") for step in (whole, halved)]
    assert flops[1] == pytest.approx(flops[0], rel=0.01)


@pytest.mark.parametrize("model", [LATENT, GROUPED])
def test_a_longer_context_is_never_cheaper(model: str) -> None:
    times = [timed(model, 2, kv_len=tokens).seconds for tokens in (1, 2, 100, 1000, 1001, 16_384, 100_000)]
    assert times == sorted(times)


@pytest.mark.parametrize("model", [LATENT, GROUPED])
def test_a_prompt_needs_nothing_of_other_ranks(model: str) -> None:
    asked = {"q_len": 4096, "kv_len": 4096, "batch": 1}
    assert timed(model, 2, **asked).parts == timed(model, 1, **asked).parts


def test_chunks_attend_to_cached_and_to_own_tokens() -> None:
    asked = {"q_len": 4096, "kv_len": 32_768, "batch": 1}
    names = {part.name for part in timed(GROUPED, 2, **asked).parts}
    assert {QUERIES, EXCHANGE, COMBINE} < names
    assert LATENTS in {part.name for part in timed(LATENT, 2, **asked).parts}
    for model in (LATENT, GROUPED):
        whole, halved = timed(model, 1, **asked), timed(model, 2, **asked)
        assert sum(part.flops for part in halved.parts) == pytest.approx(
            sum(part.flops for part in whole.parts), rel=0.01
        )


def test_refusals_name_the_nearest_layout() -> None:
    layouts = {
        Layout(tensor_parallel=8, decode_context_parallel=2): r"kv_heads = 8; allowed: 1, or tensor_parallel = 16",
        Layout(tensor_parallel=32, decode_context_parallel=8): r"kv_heads = 8; allowed: 4, or tensor_parallel = 64",
    }
    for layout, message in layouts.items():
        with pytest.raises(InputError, match=message):
            iomodel.plan("llama-3.1-70b", H200, layout=layout, **LONG)
    with pytest.raises(InputError, match=r"3 given with tensor_parallel = 8; allowed: a divisor of it, such as 1$"):
        Layout(tensor_parallel=8, decode_context_parallel=3)
    with pytest.raises(InputError, match=r"allowed: 1, for gpt-oss-120b: some layers see a window"):
        iomodel.plan("gpt-oss-120b", H200, layout=Layout(tensor_parallel=16, decode_context_parallel=2), **LONG)
    shared = iomodel.PrefixCache(shared_tokens=1024, cascade=True)
    with pytest.raises(InputError, match=r"prefix_cache\.cascade: True given with decode_context_parallel = 2"):
        made(ranks=2, prefix_cache=shared)


def test_searches_try_divided_caches() -> None:
    asked = {**LONG, "prompt": 65_536}
    front = iomodel.pareto(LATENT, H200, batches=[1, 32], **asked)
    layouts = {point.layout for point in (*front.front, *front.dominated)}
    assert Layout(tensor_parallel=8, decode_context_parallel=8) in layouts
    many = iomodel.fleet(LATENT, H200, load=1, ttft=30, tpot=0.2, **asked)
    tried = {each.layout.decode_context_parallel for each in (many.best, *many.runners_up, *many.refused)}
    assert tried == {1, 2, 4, 8}  # of as many ranks of tensor parallelism
    narrow = iomodel.pareto(LATENT, H200, batches=[1], engine="tensorrt-llm", **asked)
    assert all(point.layout.decode_context_parallel == 1 for point in (*narrow.front, *narrow.dominated))


def test_a_simulation_with_one_request_is_the_plan() -> None:
    layout = Layout(tensor_parallel=8, decode_context_parallel=8)
    found = iomodel.simulate(LATENT, H200, layout=layout, concurrency=1, requests=2, **LONG)
    planned = made(ranks=8, batch=1)
    assert found.tpot.mean == pytest.approx(planned.figures.step, rel=0.02)
    assert found.memory == planned.memory
    chunked = iomodel.simulate(
        LATENT, H200, layout=layout, concurrency=4, requests=8, policy="chunked", token_budget=4096, **LONG
    )
    assert chunked.tpot.mean > found.tpot.mean


def test_options_of_engines(capsys: pytest.CaptureFixture[str]) -> None:
    latent, grouped = made(ranks=8, batch=4), made(GROUPED, 2, batch=4)
    for plan, ranks in ((latent, 8), (grouped, 2)):
        command = iomodel.planning.engine_flags(plan, "vllm").command
        assert f"--tensor-parallel-size 8 --decode-context-parallel-size {ranks} --dcp-comm-backend a2a " in command
        assert iomodel.planning.engine_arguments(command)["layout"] == plan.layout
    assert "--tp-size 8 --dcp-size 8 --dcp-comm-backend a2a " in iomodel.planning.engine_flags(latent, "sglang").command
    assert (
        iomodel.planning.engine_arguments("vllm serve deepseek-v3 -tp 8 -dcp 4")["layout"].decode_context_parallel == 4
    )
    with pytest.raises(InputError, match=r"2 given for Qwen3 235B A22B with sglang; allowed: 1, or the engine vllm"):
        iomodel.planning.engine_flags(grouped, "sglang")
    for call in (lambda: iomodel.planning.engine_flags(latent, "trtllm"), lambda: made(ranks=8, engine="tensorrt-llm")):
        with pytest.raises(InputError, match=r"with tensorrt-llm; allowed: 1, or the engine vllm, sglang"):
            call()
    words = "--hardware h200-sxm --prompt 4096 --output 64 --precision fp8 --tensor-parallel 8"
    assert main(["plan", LATENT, *words.split(), "--decode-context-parallel", "8"]) == 0
    assert "DCP 8" in capsys.readouterr().out
