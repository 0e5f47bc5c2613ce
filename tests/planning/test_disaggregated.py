"""Disaggregated prefill and decode: bytes of the transfer by hand, rates of the pools, replicas, what is refused."""

import json
import shlex
from math import ceil

import pytest

from iomodel import InfeasibleError, InputError, UnknownNameError, model
from iomodel.planning.disaggregated import disaggregate
from iomodel.planning.plan import plan
from iomodel.planning.step.layout import Layout
from tests.support.inside import main

TINY, H100, H200 = "llama-3.2-1b", "h100-sxm5", "h200-sxm"
CHAT = {"prompt": 1024, "output": 64, "engine": None}


@pytest.mark.parametrize("name", [TINY, "gemma-3-27b", "deepseek-v2-lite", "qwen3-next-80b-a3b"])
def test_the_bytes_are_those_of_the_prompt(name):
    at = {"link": 1e10, "batch": 1, "page_size": 16, "weight_dtype": "fp8"}
    layouts = {"prefill_layout": Layout(), "decode_layout": Layout()}
    spec = model(name)
    found = disaggregate(name, H200, H200, prompt=300, output=2, engine=None, **at, **layouts)
    assert found.kv_bytes == spec.kv_bytes(300, None, 16) + spec.index_bytes(300, None, 16) + spec.state_bytes()


def test_by_hand():
    found = disaggregate(TINY, H100, H200, link=2e10, batch=32, decode_layout=Layout(tensor_parallel=2), **CHAT)
    per_token = 16 * 2 * 8 * 64 * 2
    assert found.kv_bytes == 1024 * per_token
    assert found.device_bytes == found.kv_bytes  # one device prefills
    assert found.transfer_seconds == 1024 * per_token / 2e10
    alone = plan(TINY, H100, batch=1, prompt=1024, output=1, engine=None)
    shared = plan(TINY, H200, count=2, layout=Layout(tensor_parallel=2), batch=32, **CHAT)
    assert found.ttft == found.prefill.seconds == alone.ttft
    assert found.decode.seconds == shared.figures.step
    assert found.decode.requests_per_second == pytest.approx(32 / (63 * shared.figures.step + found.transfer_seconds))
    assert found.prefill.requests_per_second == pytest.approx(1 / alone.ttft)
    pools = found.prefill, found.decode
    assert found.requests_per_second == min(pool.replicas * pool.requests_per_second for pool in pools)
    assert found.tokens_per_second_per_device == found.tokens_per_second / found.devices


@pytest.mark.parametrize(("prompt", "output"), [(100, 1000), (1024, 64), (8192, 128), (1000, 1000), (1000, 1)])
def test_no_other_numbers_of_replicas_have_more_tokens_per_device_without_a_load(prompt, output):
    """One replica of a pool, any number of the other."""
    found = disaggregate(TINY, H100, H200, prompt=prompt, output=output, link=2e10, batch=32)
    pools = found.prefill, found.decode
    assert min(pool.replicas for pool in pools) == 1

    def each_device(counts):
        taken = min(count * pool.requests_per_second for count, pool in zip(counts, pools, strict=True))
        devices = sum(count * pool.layout.devices for count, pool in zip(counts, pools, strict=True))
        return taken * output / devices

    others = [(1, count) for count in range(1, 200)] + [(count, 1) for count in range(1, 200)]
    assert found.tokens_per_second_per_device == pytest.approx(max(map(each_device, others)))


def test_a_pool_without_a_device_of_its_own_has_the_other_device():
    assert disaggregate(TINY, H100, link=2e10, **CHAT) == disaggregate(TINY, H100, H100, link=2e10, **CHAT)


def test_a_load_sets_the_replicas():
    prices = {H100: 2.0, H200: 3.0}
    found = disaggregate(TINY, H100, H200, link=2e10, batch=32, load=400.0, price=prices, **CHAT)
    assert found.prefill.replicas == ceil(400 / found.prefill.requests_per_second)
    assert found.decode.replicas == ceil(400 / found.decode.requests_per_second)
    assert found.requests_per_second >= 400
    hourly = 2.0 * found.prefill.devices + 3.0 * found.decode.devices
    assert found.price_per_million_tokens == pytest.approx(hourly / 3600 / found.tokens_per_second * 1e6)
    assert disaggregate(TINY, H100, H200, link=2e10, price={H100: 2.0}, **CHAT).price_per_million_tokens is None


def test_a_faster_link_is_never_worse():
    found = [disaggregate(TINY, H100, H100, link=link, batch=16, **CHAT) for link in (1e7, 1e9, 1e11, 1e14)]
    assert [one.tpot for one in found] == sorted((one.tpot for one in found), reverse=True)
    assert [one.requests_per_second for one in found] == sorted(one.requests_per_second for one in found)
    assert found[0].prefill.requests_per_second == pytest.approx(1e7 / found[0].kv_bytes)  # the link is the limit
    together = plan(TINY, H100, batch=16, **CHAT)
    assert found[-1].tpot == pytest.approx(together.figures.step, rel=1e-3)
    assert found[-1].tpot < together.tpot  # no prefill comes between the steps


@pytest.mark.parametrize("link", [1e8, 1e10])
def test_a_target_is_kept_by_as_many_requests_as_can(link):
    """The transfer counts once for an answer: the batch found keeps the target with it, and one more does not."""
    one = Layout()
    at = {"link": link, "prefill_layout": one, "decode_layout": one, **CHAT}
    tpot = disaggregate(TINY, H100, H100, batch=100, **at).tpot
    found = disaggregate(TINY, H100, H100, tpot=tpot, **at)
    assert found.tpot <= tpot
    assert found.decode.batch >= 100
    assert disaggregate(TINY, H100, H100, batch=found.decode.batch + 1, **at).tpot > tpot


def test_the_links_of_a_layout_are_those_of_pools_too():
    stated = disaggregate(TINY, H100, H100, link="50GB/s", **CHAT)
    assert disaggregate(TINY, H100, H100, **CHAT) == stated
    assert stated.link == Layout().network


FAULTS = [
    ({"link": 0}, InputError, "link: 0 given; allowed: a number above 0"),
    ({"decode": "h201"}, UnknownNameError, "hardware"),
    ({"batch": 10**6}, InfeasibleError, "batch: 1,000,000 requests"),
    ({"model": "llama-3-70b", "prefill_layout": Layout()}, InfeasibleError, "memory: llama-3-70b and one request"),
    ({"load": -1}, InputError, "load: -1 given"),
]


@pytest.mark.parametrize(("change", "error", "message"), FAULTS, ids=lambda value: str(value)[:30])
def test_faults_are_told_in_one_line(change, error, message):
    with pytest.raises(error, match=message) as caught:
        disaggregate(**{"model": TINY, "prefill": H100, "decode": H100, "link": 1e10, **CHAT, **change})
    assert "\n" not in str(caught.value)


def test_the_command(capsys):
    typed = f"disaggregate {TINY} --prefill {H100} --decode {H200} --link 2e10 --prompt 1024 --output 64 --batch 32"
    more = "--engine none --load 400 --decode-tensor-parallel 2 --price h100-sxm5=2 --price h200-sxm=3 --json"
    assert main(shlex.split(f"{typed} {more}")) == 0
    layout = Layout(tensor_parallel=2)
    at = {"link": 2e10, "batch": 32, "load": 400.0, "decode_layout": layout, "price": {H100: 2.0, H200: 3.0}}
    assert json.loads(capsys.readouterr().out) == disaggregate(TINY, H100, H200, **at, **CHAT).to_dict()
    assert main(shlex.split(typed)) == 0
    assert "TPOT with the transfer" in capsys.readouterr().out
    assert main(shlex.split(typed.replace("--prefill h100-sxm5", ""))) == 2
    assert capsys.readouterr().err.startswith("iomodel: prefill: not given")


@pytest.mark.parametrize("output", [1, 16])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups_of_a_replica_send_and_receive_at_the_same_time(groups, output):
    """On a slow link, each pool serves as many requests as its devices pass on: every group those of its own."""
    layout = Layout(tensor_parallel=2, expert_parallel=2 * groups)
    assert layout.data_parallel == groups
    link, name = 1e6, "qwen3-30b-a3b"
    found = disaggregate(name, H100, H100, prompt=2000, output=output, link=link,
                         prefill_layout=layout, decode_layout=layout)  # fmt: skip
    each = model(name).kv_bytes(2000) / 2  # a device has half of the heads
    assert found.prefill.requests_per_second == pytest.approx(groups * link / each)
    assert found.decode.requests_per_second == pytest.approx(groups * link / each, rel=1e-3)
