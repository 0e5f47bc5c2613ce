"""Figures of a simulation by hand: percentiles, arrivals, and the engine with one request or two."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import iomodel
from iomodel.planning.service import as_service
from iomodel.planning.simulation.arrivals import as_requests
from iomodel.planning.simulation.engine_run import percentiles
from tests.support.public_types import MADE


def test_percentiles_of_a_line_are_its_points():
    times = np.random.default_rng(0).permutation(101).astype(float)
    found = percentiles(times)
    assert (found.mean, found.p50, found.p90, found.p99, found.largest) == (50, 50, 90, 99, 100)


@pytest.mark.parametrize("load", [0.25, 4.0, 1000.0])
def test_arrivals_come_at_their_rate(load):
    arrival = as_requests(prompt=8, output=8, load=load, requests=20_000, seed=3).arrival
    assert 20_000 / arrival[-1] == pytest.approx(load, rel=0.03)


def test_times_of_a_trace_count_from_its_first_request():
    trace = {"arrival": [100.0, 100.5, 103.0], "prompt": [8, 8, 8], "output": [2, 2, 2]}
    assert as_requests(arrivals=trace).arrival.tolist() == [0, 0.5, 3]


def test_a_request_alone_is_a_batch_of_one():
    result = replace(MADE["Simulation"](), requests=3, output_tokens=33, decode_steps=30, decodings=30,
                     seconds=2.0, busy_seconds=1.0)  # fmt: skip
    assert (result.mean_batch, result.utilization) == (1, 0.5)
    assert (result.tokens_per_second, result.requests_per_second) == (16.5, 1.5)


def test_memory_is_that_of_the_requests():
    """As many of the smaller request fit as the memory left over its bytes; both together reserve the bytes of both."""
    trace = {"arrival": [0.0, 0.0], "prompt": [64, 300], "output": [2, 3]}
    result = iomodel.simulate("llama-3-8b", "h100-sxm5", arrivals=trace, engine=None)
    service = as_service("llama-3-8b", 300, 3, memory_utilization=0.9, overhead_bytes=2**31, engine=None)
    each = [service.requests.of_request(Counter(service.model.layers), tokens) for tokens in (66, 303)]
    assert result.batch == result.memory.left // each[0]
    assert result.largest_bytes == sum(each)
    assert result.memory.request_bytes == each[1]
