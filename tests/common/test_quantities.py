"""Quantities with units and counts with suffixes, in Python and on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import Attention, Layout, PrefixCache
from iomodel.common.quantities import LIKELY, SUFFIXES, count, quantity
from iomodel.common.validation import LARGEST, as_integer
from tests.support.inside import numbers

CHAT = {"prompt": 1000, "output": 100, "load": 1.0}


@given(st.integers(0, 10**6), st.sampled_from([*SUFFIXES]))
def test_a_count_with_a_suffix_is_the_same_in_both_doors(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert count(text) == number * SUFFIXES[suffix] == numbers.integer("q_len", text)


@pytest.mark.parametrize("text", ["k", "8kB", "8 k", "-8k", "8e3", "8,192", "1.0001k", "8192", "8Ki", ""])
def test_any_other_text_is_no_count(text: str) -> None:
    assert count(text) == text


def test_lengths_and_sizes_take_texts_wherever_they_are_taken() -> None:
    assert Attention(q_len="8K", kv_len="8k", head_dim=64).numbers["q_len"] == 8192  # type: ignore[arg-type]
    w = Attention(q_len=4096, head_dim=64)
    assert iomodel.solve("flash2", w, sram_bytes="227 KiB") == iomodel.solve("flash2", w, sram_bytes=227 * 1024)
    assert iomodel.lower_bounds(w, sram_bytes="64KiB") == iomodel.lower_bounds(w, sram_bytes=65536)
    assert iomodel.compare(w, sram_bytes="64KiB") == iomodel.compare(w, sram_bytes=65536)
    lengths = iomodel.cost_array("flash2", q_len=["4k", "8K"], head_dim=64, block_q=64, block_kv="1k").arguments
    assert (lengths["q_len"].tolist(), lengths["block_kv"]) == ([4000, 8192], 1000)
    with pytest.raises(iomodel.InputError, match=r"^sram_bytes: unit 'Kib' .* did you mean 'KiB'"):
        iomodel.solve("flash2", w, sram_bytes="227 Kib")


def test_times_and_rates_take_texts() -> None:
    assert Layout(devices_per_node=8, network_bandwidth="50GB/s") == Layout(  # type: ignore[arg-type]
        devices_per_node=8, network_bandwidth=50e9
    )
    assert PrefixCache(host_bandwidth="80 GB/s").host_bandwidth == 80e9  # type: ignore[arg-type]
    at = {"model": "llama-3-8b", "hardware": "h100-sxm5", "layouts": [Layout()], **CHAT}
    assert iomodel.fleet(**at, ttft="1s", tpot="50ms") == iomodel.fleet(**at, ttft=1.0, tpot=0.05)


@pytest.mark.parametrize("name", LIKELY)
def test_a_latency_that_cannot_be_meant_in_seconds_asks_for_its_unit(name: str) -> None:
    too_long = int(LIKELY[name]) + 1
    with pytest.raises(iomodel.InputError, match=f"^{name}: {too_long} given without a unit; .* '{too_long}ms'"):
        iomodel.fleet("llama-3-8b", "h100-sxm5", **{**CHAT, "ttft": 1.0, "tpot": 0.05, name: too_long})
    assert quantity(name, f"{too_long}s") == too_long
    assert quantity(name, numbers.duration(name, f"{too_long}s")) == too_long
    with pytest.raises(iomodel.InputError, match="without a unit"):
        quantity(name, numbers.duration(name, str(too_long)))


@pytest.mark.parametrize(("text", "share"), [("90%", 0.9), ("12.5 %", 0.125), ("100%", 1.0)])
def test_a_share_is_given_in_per_cent(text, share):
    question = {"prompt": 512, "output": 8}
    planned = iomodel.plan("llama-3-8b", "h100-sxm5", **question, memory_utilization=share)
    assert iomodel.plan("llama-3-8b", "h100-sxm5", **question, memory_utilization=text) == planned
    assert iomodel.PrefixCache(hit_rate=quantity("hit_rate", text)).hit_rate == share


@pytest.mark.parametrize(
    ("value", "hint"), [(90, "such as 0.9"), (2, "such as 0.02"), (101, "at most 1$"), (0, "at most 1$")]
)
def test_a_share_above_one_was_probably_meant_in_per_cent(value, hint):
    with pytest.raises(iomodel.InputError, match=hint):
        iomodel.plan("llama-3-8b", "h100-sxm5", prompt=512, output=8, memory_utilization=value)
    with pytest.raises(iomodel.InputError, match=r"such as 0\.7"):
        iomodel.Speculation(tokens=4, acceptance=70)


@pytest.mark.parametrize(
    ("text", "per_second"),
    [
        ("600rpm", 10), ("600 RPM", 10), ("600/min", 10), ("600 requests per minute", 10), ("20 req/s", 20),
        ("20qps", 20), ("7.2k/hour", 2), ("86400 requests/day", 1), ("20k", 20_000), (0.5, 0.5),
    ],
)  # fmt: skip
def test_a_load_has_a_unit_of_time(text, per_second):
    assert quantity("load", text) == per_second
    assert quantity("prompt", text) != per_second or text in ("20k", 0.5)


@pytest.mark.parametrize("text", ["600rpx", "rpm", "-600rpm", "1e3/min", "600/", "600 ms"])
def test_other_text_is_no_load(text):
    assert quantity("load", text) == text


def test_the_largest_integer_is_allowed_and_the_next_is_not():
    assert as_integer("length", LARGEST) == 10**18
    with pytest.raises(iomodel.InputError, match=r"allowed: an integer from 1 to 10\^18"):
        as_integer("length", LARGEST + 1)


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [("ttft", "0,5s", "0.5s"), ("tpot", "1,25 ms", "1.25ms"), ("overhead_bytes", "2,048 B", "2048B")],
)
def test_a_comma_in_a_number_is_told_as_a_point_or_as_thousands(name, given, meant):
    with pytest.raises(iomodel.InputError, match=f"'{given}' is not a number; write '{meant}'"):
        quantity(name, given)
    quantity(name, meant)


@pytest.mark.parametrize(("given", "meant"), [("164Kio", "KiB"), ("4Go", "GB"), ("2Mio", "MiB")])
def test_units_of_octets_are_hinted(given, meant):
    with pytest.raises(iomodel.InputError, match=f"did you mean '{meant}'"):
        quantity("sram_bytes", given)
