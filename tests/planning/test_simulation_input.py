"""Inputs of a simulation: traces from files and arrays, and what is refused."""

import pytest

from iomodel import InfeasibleError, InputError, UnknownNameError
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.step.layout import Layout

TINY, H100 = "llama-3.2-1b", "h100-sxm5"


# Traces


def test_a_file_is_read_as_its_columns(tmp_path):
    trace = {"arrival": [100.0, 100.5, 100.5], "prompt": [900, 20, 4000], "output": [5, 1, 9]}
    rows = ["id,output, arrival ,prompt", *(f"x,{o},{t},{p}" for t, p, o in zip(*trace.values(), strict=True))]
    file = tmp_path / "trace.csv"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert (
        simulate(TINY, H100, arrivals=file)
        == simulate(TINY, H100, arrivals=str(file))
        == simulate(TINY, H100, arrivals=trace)
    )
    assert simulate(TINY, H100, arrivals=trace, requests=2).output_tokens == 6
    later = {**trace, "arrival": [0.0, 0.5, 0.5]}
    assert simulate(TINY, H100, arrivals=later) == simulate(TINY, H100, arrivals=trace)


def test_lengths_are_drawn_from_a_trace_by_the_seed():
    trace = {"prompt": [10, 2000], "output": [3, 30]}
    runs = [simulate(TINY, H100, arrivals=trace, load=30.0, requests=200, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert runs[0].prompt_tokens != runs[2].prompt_tokens
    longer = (runs[0].prompt_tokens - 200 * 10) / 1990
    assert runs[0].output_tokens == 200 * 3 + 27 * longer
    assert 60 < longer < 140


def test_requests_alone_are_all_there_at_the_start():
    """Each waits for those before it, and the engine is never idle."""
    asked = {"prompt": 900, "output": 20, "batch": 8}
    run = simulate(TINY, H100, requests=40, **asked)
    assert run == simulate(TINY, H100, requests=40, concurrency=40, **asked)
    assert run.busy_seconds == run.seconds
    assert run.seconds <= run.latency.largest < 1.1 * run.seconds
    assert run.ttft.largest > 3 * simulate(TINY, H100, requests=40, concurrency=8, **asked).ttft.largest


# What is refused

ROWS = {"arrival": [0.0, 1.0, 2.0], "prompt": [8, 8, 8], "output": [2, 2, 2]}
FAULTS = [
    ({"load": 0}, InputError, "load: 0 given; allowed: a number above 0"),
    ({"load": None, "requests": None}, InputError, "concurrency: none given; allowed: one of concurrency, load and"),
    ({"concurrency": 2}, InputError, "load: 1 given with concurrency = 2"),
    ({"prompt": None}, InputError, "prompt: none given; allowed: a number of tokens, or a trace"),
    ({"arrivals": ROWS}, InputError, "prompt: given with a trace"),
    ({"policy": "chunk"}, UnknownNameError, "did you mean 'chunked'"),
    ({"token_budget": 0}, InputError, "token_budget: 0 given"),
    ({"requests": 10**9}, InputError, "requests: 1,000,000,000 given"),
    ({"seed": -1}, InputError, "seed: -1 given"),
    ({"host_seconds": -1}, InputError, "host_seconds: -1 given"),
    ({"layout": Layout(pipeline_parallel=2)}, InputError, "layout.pipeline_parallel: 2 given; allowed: ranks"),
    ({"prompt": 10**6}, InputError, "prompt . output: 1,000,001 tokens given"),
    (
        {"memory_utilization": 0.055, "layout": Layout()},
        InfeasibleError,
        "memory: llama-3.2-1b and one request of 9,001",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), FAULTS, ids=lambda value: str(value)[:40])
def test_faults_are_told_in_one_line(change, error, message):
    asked = {"model": TINY, "hardware": H100, "prompt": 9000, "output": 1, "load": 1, "requests": 1, **change}
    with pytest.raises(error, match=message) as caught:
        simulate(**asked)
    assert "\n" not in str(caught.value)


NAN = float("nan")
GAPS = [
    ("arrival", [0.0, 1.0, 0.5], "row 3, column arrival: 0.5 given after 1; allowed: times that never decrease"),
    ("arrival", [-1.0, 0.0, 1.0], "row 1, column arrival: -1 given; allowed: a time from 0"),
    ("arrival", [0.0, NAN, 1.0], "row 2, column arrival: nan given"),
    ("arrival", [0.0, None, 1.0], "row 2, column arrival: None given"),
    ("prompt", [8, 0, 8], "row 2, column prompt: 0 given; allowed: an integer from 1"),
    ("prompt", [8, 8, 8.5], "row 3, column prompt: 8.5 given"),
    ("output", [2, 2, "x"], "row 3, column output: 'x' given|row 1, column output: '2' given"),
    ("output", [2, 2], "columns of .* rows given; allowed: columns of equal length"),
    ("prompt", [8, 8, 300_000], "trace, row 3: prompt . output: 300,002 tokens given"),
]


@pytest.mark.parametrize(("column", "values", "message"), GAPS, ids=lambda value: str(value)[:40])
def test_a_malformed_trace_is_refused_by_row_and_column(column, values, message, tmp_path):
    trace = {**ROWS, column: values}
    with pytest.raises(InputError, match=message) as caught:
        simulate(TINY, H100, arrivals=trace)
    assert "\n" not in str(caught.value)
    if len(values) == 3:
        text = "\n".join(
            ",".join("" if v is None else str(v) for v in row) for row in zip(*trace.values(), strict=True)
        )
        file = tmp_path / "trace.csv"
        file.write_text(f"{','.join(trace)}\n{text}\n", encoding="utf-8")
        with pytest.raises(InputError, match=message.replace("None", "''")):
            simulate(TINY, H100, arrivals=file)


def test_a_request_larger_than_the_memory_is_named():
    trace = {**ROWS, "prompt": [8, 100_000, 8]}
    with pytest.raises(InfeasibleError, match=r"^trace, row 2: a request of 100,000 \+ 2 tokens needs .* GB"):
        simulate(TINY, H100, arrivals=trace, memory_utilization=0.07, layout=Layout())


def test_a_file_without_its_columns_is_refused(tmp_path):
    file = tmp_path / "trace.csv"
    for text, message in (("prompt,output\n1,1\n", "column arrival not in the header"), ("", "column arrival")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            simulate(TINY, H100, arrivals=file)
    file.write_text("arrival,prompt,output\n", encoding="utf-8")
    with pytest.raises(InputError, match="0 rows given"):
        simulate(TINY, H100, arrivals=file)
    with pytest.raises(InputError, match="cannot be read"):
        simulate(TINY, H100, arrivals=tmp_path / "none.csv")
