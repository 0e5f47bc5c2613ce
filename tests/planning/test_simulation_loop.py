"""The event loop of a simulation: against a loop written by hand, and as machine code."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iomodel.planning.simulation.event_loop import Progress, Queue, Scheduler, compiled, interpolate, plain
from tests.support.strategies import at_most


@dataclass(eq=False)  # requests of the same lengths are not the same
class Served:
    """One request as the witness keeps it."""

    arrival: float
    prompt: int
    output: int
    need: int
    prefix: int = 0  # tokens before the prompt, in the cache
    decodings: int = 0  # steps behind the first token
    cached: int = 0
    stepped: int = 0
    made: float = 0
    first: float = 0.0
    last: float = 0.0


def decode_time(batch: int, context: float) -> float:
    return 1.0 + 0.25 * batch + 0.01 * context


def attention_beside(batch: int, context: float) -> float:
    return 0.1 * batch + 0.005 * context


def other_time(tokens: int) -> float:
    return 0.5 + 0.03 * tokens


def chunk_time(queries: int, keys: int) -> float:
    return 0.02 * queries + 0.004 * keys + 0.001 * queries * keys


def whole_time(prompt: int) -> float:
    return 0.05 * prompt


def witness(
    calls: list[Served], clients: int, room: int, most: int, budget: int, each: int, chunked: bool, host: float
) -> Any:
    """Serve requests with a list of those in the engine, looked through in each step."""
    now, busy, engine, waiting = 0.0, 0.0, [], list(calls)
    sent = clients or len(calls)
    total, decoded = 0, 0
    while any(not call.made or call.stepped < call.decodings for call in calls):
        decoding = [call for call in engine if call.made]
        left = budget - each * len(decoding) if chunked else budget
        pieces: list[tuple[Served, int]] = []
        for call in engine:
            if not call.made and left > 0:
                pieces.append((call, min(left, call.prompt - call.cached)))
                left -= pieces[-1][1]
        blocked = any(
            not call.made and call.cached + {id(c): n for c, n in pieces}.get(id(call), 0) < call.prompt
            for call in engine
        )
        while waiting and not blocked:
            call = waiting[0]
            here = calls.index(call) < sent and call.arrival <= now
            if not here or len(engine) == most or sum(c.need for c in engine) + call.need > room:
                break
            if (chunked and left <= 0) or (not chunked and pieces and call.prompt > left):
                break
            size = min(left, call.prompt) if chunked else call.prompt
            left -= size
            engine.append(waiting.pop(0))
            pieces.append((call, size))
            blocked = size < call.prompt
        active = decoding if chunked or not pieces else []
        if not pieces and not active:
            now = waiting[0].arrival
            continue
        contexts = [call.prefix + call.prompt + call.made for call in active]
        mean = sum(contexts) / len(contexts) if contexts else 0.0
        if pieces:
            beside = each * len(active)
            took = other_time(sum(size for _, size in pieces) + beside) + 0.2 * (len(pieces) + beside)
            for call, size in pieces:
                took += whole_time(size) if size == call.prompt else chunk_time(size, call.prefix + call.cached + size)
            took += attention_beside(len(active), mean) if active else 0.0
        else:
            took = decode_time(len(active), mean)
        now, busy, total, decoded = now + took + host, busy + took + host, total + 1, decoded + bool(active)
        for call, size in pieces:
            call.cached += size
            if call.cached == call.prompt:
                call.made, call.first = 1, now
        for call in active:
            call.stepped += 1
            call.made = 1 + (call.output - 1) * call.stepped / call.decodings
        for call in [call for call in engine if call.made and call.stepped == call.decodings]:
            call.last = now
            engine.remove(call)
            if clients and sent < len(calls):
                calls[sent].arrival = now
                sent += 1
    return now, busy, total, decoded


def looped(
    run: Any, calls: list[Served], clients: int, room: int, most: int, budget: int, each: int, *engine: Any,
    lists: bool = True,
) -> Any:  # fmt: skip
    """Serve the same requests by the loop of the package, from tables of the same lines."""
    contexts = np.array([1, 65, 129])
    lengths = np.array([1, 100, 10_000])
    chunks, caches = np.array([1, 16, 40]), np.array([1, 16, 32, 64])
    sizes = range(most + 1)
    inputs = [
        np.array([call.arrival for call in calls]),
        np.array([call.prompt for call in calls]),
        np.array([call.prefix for call in calls]),
        np.array([call.output for call in calls]),
        np.array([call.decodings for call in calls]),
        np.array([(call.output - 1) / max(call.decodings, 1) for call in calls]),
        np.array([call.need for call in calls]),
        np.array([whole_time(call.prompt) for call in calls]),
    ]
    tables = [
        contexts,
        np.array([decode_time(n, c) for n in sizes for c in contexts]),
        np.array([attention_beside(n, c) for n in sizes for c in contexts]),
        lengths,
        np.array([other_time(n) for n in lengths]),
        np.array([0.2 * n for n in range(each * most + 1)]),
        chunks,
        caches,
        np.array([chunk_time(q, k) for k in caches for q in chunks]),
    ]
    count = len(calls)
    state = [np.full(max(inputs[4]) + 1, -1), np.full(count, -1), np.zeros(count), np.zeros(count)]
    if lists:
        inputs, tables, state = ([array.tolist() for array in some] for some in (inputs, tables, state))
    scheduler = Scheduler(clients, room, most, budget, each, *engine)
    totals = run(Queue(*inputs), scheduler, tuple(tables), Progress(*state))
    return totals, state[2], state[3]


def calls_of(rows: Any, clients: int, each: int = 1) -> list[Served]:
    """Requests whose decode steps yield `each` tokens, or what is left."""
    times = np.cumsum([gap for gap, *_ in rows])
    return [
        Served(0.0 if clients else float(time), prompt, output, need, prefix, -(-(output - 1) // each))
        for time, (_, prompt, output, need, prefix) in zip(times, rows, strict=True)
    ]


requests = st.lists(
    st.tuples(st.floats(0, 30), st.integers(1, 64), st.integers(1, 20), st.integers(1, 5), st.integers(0, 9)),
    min_size=1,
    max_size=12,
)


@given(
    requests,
    st.integers(0, 4),
    st.integers(5, 12),
    st.integers(1, 6),
    st.integers(1, 100),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([0.0, 0.37]),
)
@example([(0.0, 64, 1, 1, 0), (0.0, 3, 2, 1, 0), (0.0, 5, 9, 1, 0)], 0, 9, 4, 1, 1, True, 0.0)
@example([(0.0, 1, 1, 1, 0), (0.0, 1, 1, 1, 0)], 1, 5, 2, 2, 1, False, 0.0)
@example([(0.0, 8, 20, 5, 0), (0.0, 8, 20, 5, 0), (0.1, 8, 1, 1, 0)], 0, 5, 4, 16, 1, False, 0.0)
def test_the_loop_equals_a_loop_by_hand(rows, clients, room, most, budget, each, chunked, host):
    calls = calls_of(rows, clients, each)
    totals, first, last = looped(plain, calls, clients, room, most, budget, each, chunked, host)
    by_hand = witness(calls, clients, room, most, budget, each, chunked, host)
    assert first == pytest.approx([call.first for call in calls], rel=1e-9)
    assert last == pytest.approx([call.last for call in calls], rel=1e-9)
    assert totals[:4] == pytest.approx(by_hand, rel=1e-9)
    assert all(call.made == pytest.approx(call.output) for call in calls)
    assert totals[4] <= most
    assert totals[5] <= room


@pytest.mark.parametrize("chunked", [False, True])
def test_machine_code_gives_the_same_numbers(chunked):
    chance = np.random.default_rng(3)
    rows = [(chance.exponential(3), *map(int, chance.integers(1, (65, 21, 6, 9)))) for _ in range(200)]
    for clients, each in ((0, 1), (3, 1), (3, 3)):
        setting = (clients, 12, 6, 40, each, chunked, 0.25)
        python = looped(plain, calls_of(rows, clients, each), *setting)
        machine = looped(compiled(), calls_of(rows, clients, each), *setting, lists=False)
        assert python[0] == machine[0]
        assert python[1] == machine[1].tolist()
        assert python[2] == machine[2].tolist()


@at_most(20)
@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 9)), min_size=2, max_size=9), st.floats(0, 1))
def test_an_interpolation_is_that_of_numpy(knots, share):
    places = np.cumsum([gap for gap, _ in knots]).tolist()
    values = [value for _, value in knots]
    x = places[0] + share * (places[-1] - places[0])
    assert interpolate(places, [7.0, *values], 1, x) == pytest.approx(np.interp(x, places, values))
