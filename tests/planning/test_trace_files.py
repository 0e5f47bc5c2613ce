"""Traces of other programs: each format is read by its columns, in its units, and damaged files are refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InputError
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.simulation import trace_files
from iomodel.planning.simulation.arrivals import as_requests, read_trace
from iomodel.planning.simulation.prefix_hits import hits
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.simulation.trace_files import Blocks
from tests.fuzz.law import answered
from tests.support.damage import damaged

HERE = Path(__file__).parent / "traces"
FILES = sorted(HERE.iterdir())
OWN = {"prefix_cache": PrefixCache()}
READ = {
    "azure-2023-code.csv": ([0, 0.052, 0.098189, 0.140684, 0.444994, 0.539187, 0.698571, 1.016041], 4808, 10),
    "azure-2023-conv.csv": ([0, 4.314579, 4.541877, 4.710427, 5.892655, 6.311529, 7.745497, 8.251431], 374, 44),
    "azure-2024-code.csv": (
        [
            0,
            0.007405,
            0.012384,
            0.027915,
            0.07396,
            *(604799 + np.array([876559, 915337, 918514, 918768, 919571]) / 1e6),
        ],
        2162,
        5,
    ),
    "azure-2024-conv.csv": (
        [
            0,
            0.04052,
            0.156825,
            0.157769,
            0.247116,
            *(604799 + np.array([758640, 788915, 907882, 924061, 994297]) / 1e6),
        ],
        1452,
        3,
    ),
    "mooncake-conversation.jsonl": ([0, 0, 3, 3, 5.999, 9], 6758, 500),
    "mooncake-synthetic.jsonl": ([0, 1.94, 2.246, 2.695, 2.908, 3.768, 3.856, 4.763], 28, 445),
    "mooncake-tool.jsonl": ([0, 1.5, 4.5], 1100, 20),
    "burstgpt-1.csv": ([0, 40, 113], 472, 18),
    "burstgpt-3.csv": ([0, 51, 82, 144], 906, 446),
    "sharegpt.json": (None, 18, 15),
    "sharegpt-fastchat.json": (None, 3, 25),
    "sharegpt-tools.json": (None, 22, 20),
    "sharegpt-lengths.jsonl": (None, 58, 210),
    "vllm-detailed.json": ([0, 0.4831, 1.7846], 512, 128),
    "vllm-detailed-h100.json": (None, 921, 170),
    "vllm-detailed-h100-fp8.json": (None, 465, 256),
    "vllm-custom.jsonl": (None, 8, 10),
    "sglang-details.jsonl": (None, 4, 3),
    "sglang-conversations.jsonl": (None, 9, 2),
    "sglang-mooncake.jsonl": ([0, 0, 0, 3.053, 3.053, 3.053, 6.109], 2105, 650),
    "aiperf-records.jsonl": ([0, 1], 550, 9),
    "aiperf-records-0.8.jsonl": ([0, 22.6426425, 43.64065289], 9, 6),
    "aiperf-trace.jsonl": ([0, 10.535], 655, 52),
    "guidellm-0.2.json": ([0], 257, 128),
    "guidellm-0.3.json": ([0, 0.5], 256, 128),
    "guidellm-0.5.json": ([0, 0.0012211], 133, 1024),
    "guidellm-start.json": ([0, 0.5], 1000, 100),
}
"""Arrivals [s], and the first prompt and output, read off the files by hand; their sources are in
tests/public_files.csv."""


def test_dates_with_and_without_fractions_are_read_in_one_file(tmp_path):
    """The notebook of Azure's traces of 2024 names both: the second is a whole one."""
    file = tmp_path / "azure.csv"
    rows = ["2024-05-12 00:00:00.001163+00:00,1452,3", "2024-05-12 00:00:01+00:00,584,7"]
    file.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]), encoding="utf-8")
    assert read_trace(file, timed=True).columns["arrival"] == pytest.approx([0, 0.998837])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_public_format_is_read_by_its_columns(file):
    arrival, prompt, output = READ[file.name]
    read = read_trace(file, timed=arrival is not None)
    assert (read.columns["prompt"][0], read.columns["output"][0]) == (prompt, output)
    if arrival is None:
        with pytest.raises(InputError, match="arrival"):
            read_trace(file, timed=True)
    else:
        assert read.columns["arrival"] == pytest.approx(arrival, abs=2e-6)


def test_the_reader_states_units_estimates_and_what_it_leaves_out():
    assert "3 of" not in " ".join(read_trace(HERE / "burstgpt-1.csv", timed=True).notes)
    assert read_trace(HERE / "burstgpt-1.csv", timed=True).notes == ("1 of 4 rows without tokens are left out",)
    assert read_trace(HERE / "mooncake-tool.jsonl", timed=True).notes == ("arrivals of the trace read in ms",)
    assert "4 characters a token" in " ".join(read_trace(HERE / "sharegpt.json", timed=False).notes)
    run = simulate("llama-3.2-1b", "h100-sxm5", arrivals=HERE / "burstgpt-1.csv")
    assert "1 of 4 rows without tokens are left out" in run.assumed
    assert run.requests == 3


def test_rows_keep_their_numbers_and_times_their_order():
    read = read_trace(HERE / "vllm-detailed.json", timed=True)
    assert read.rows.tolist() == [1, 3, 4]
    late = read_trace(HERE / "guidellm-start.json", timed=True)
    assert late.rows.tolist() == [2, 1]


def test_scale_and_limit_divide_times_and_rows():
    file = HERE / "azure-2023-code.csv"
    plain = as_requests(arrivals=file)
    fast = as_requests(arrivals=file, requests=4, scale=2.0)
    assert fast.arrival == pytest.approx(plain.arrival[:4] / 2)
    with pytest.raises(InputError, match="scale: 2 given; allowed: with the arrivals of a trace"):
        simulate("llama-3.2-1b", "h100-sxm5", prompt=8, output=8, load=1.0, scale=2.0)


# Hash ids


def test_groups_take_the_blocks_of_their_requests():
    blocks = Blocks(np.array([1, 2, 3, 4, 5, 6]), np.array([0, 2, 3, 3, 6]), 512)
    own = blocks.of_turns(2)
    assert (own.ids.tolist(), own.starts.tolist(), own.tokens) == ([1, 2], [0, 2, 2], 512)
    assert Blocks(blocks.ids, np.array([0, 1, 3, 4, 6]), 512).of_turns(3).ids.tolist() == [1, 5, 6]


def test_hits_are_the_blocks_that_were_seen_and_are_kept():
    ids = np.array([1, 2, 3, 1, 2, 4, 1, 2, 3])
    blocks = Blocks(ids, np.array([0, 3, 6, 9]), 512)
    prompt = np.array([1300, 1300, 1300])
    assert hits(blocks, prompt, 10**6).tolist() == [0, 1024, 1299]
    assert hits(blocks, prompt, 3 * 512).tolist() == [0, 1024, 1024]
    assert hits(blocks, prompt, 0).tolist() == [0, 0, 0]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.integers(0, 12))
def test_more_room_never_loses_a_hit(lengths, room):
    rng = np.random.default_rng(sum(lengths))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.concatenate([np.cumsum(rng.integers(1, 3, size)) * 100 + np.arange(size) for size in lengths])
    blocks, prompt = Blocks(ids, starts, 512), np.array(lengths) * 512
    fewer, more = (hits(blocks, prompt, blocks_held * 512) for blocks_held in (room, room + 1))
    assert (fewer <= more).all()
    assert (more < prompt).all()


@pytest.mark.parametrize("size", [16, 64, 256, 512])
def test_a_last_block_may_be_short(tmp_path, size):
    prompts = [size + 1, 2 * size, 2 * size + size // 2 + 1]
    rows = [{"timestamp": 0, "input_length": prompt, "output_length": 5} for prompt in prompts]
    for row in rows:
        row["hash_ids"] = [*range(-(-row["input_length"] // size))]
    file = tmp_path / "trace.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    assert as_requests(arrivals=file).blocks.tokens == size


@pytest.mark.parametrize("policy", ["prefill-first", "chunked"])
def test_hash_ids_make_prefills_shorter_unless_the_service_has_a_cache_of_its_own(policy):
    asked = {"arrivals": HERE / "mooncake-tool.jsonl", "policy": policy}
    hit = simulate("llama-3-8b", "h100-sxm5", **asked)
    cold = simulate("llama-3-8b", "h100-sxm5", **asked, **OWN)
    assert hit.ttft.p50 < 0.8 * cold.ttft.p50
    assert hit.ttft.largest < cold.ttft.largest
    first = [simulate("llama-3-8b", "h100-sxm5", **asked, requests=1, **cache).ttft.p50 for cache in ({}, OWN)]
    assert first[0] == pytest.approx(first[1], rel=0.02)  # the first prompt meets an empty cache
    assert any("hits by the hash ids" in text for text in hit.assumed)
    assert not any("hits by the hash ids" in text for text in cold.assumed)


# What is refused

TEXTS = {
    "columns": ("a,b\n1,2\n", "column arrival not in the header 'a,b'; allowed: once, as arrival, arrival_time"),
    "dates": ("TIMESTAMP,prompt,output\n2023-11-16 18:15:46,4,4\n16/11/2023,4,4\n", "row 2, column arrival: '16/11"),
    "lines": ('{"timestamp": 0, "input_length": 5, "output_length": 5}\n{"timest', "row 2 is no JSON"),
    "object": ('{"model": "x"}', "no list of requests in the file"),
    "hashes": ('{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": ["x"]}', "hash_ids that are no"),
    "a hash": (
        '{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [1]}\n'
        '{"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": NaN}\n',
        "hash_ids that are no list given; allowed: a list of integers",
    ),
    "deep": ("[" * 100_000, "cannot be read"),
    "tokens": ('{"timestamp": 0, "input_length": 5.5, "output_length": 5}', "row 1, column prompt: 5.5 given"),
    "words": (
        '{"timestamp": 0, "input_length": 5, "output_length": 5}\n{"timestamp": "x"}',
        "row 2, column arrival: 'x'",
    ),
    "empty": ("", "column arrival not in the header"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_file_of_another_kind_is_refused_in_one_line(case, tmp_path):
    text, message = TEXTS[case]
    file = tmp_path / "trace"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message.replace("(", r"\(")) as caught:
        read_trace(file, timed=True)
    assert "\n" not in str(caught.value)


PIECES = {
    ".csv": [b",", b"\n", b" ", b"1e3", b"nan", b"1_0", b"+1", b"\n\n", b"Z", b"\x00", b"0" * 30, b"\xc3\xa9"],
    ".jsonl": [
        b"null",
        b'"5"',
        b"1e999",
        b"NaN",
        b"2.5",
        b"-0",
        b"[]",
        b"{}",
        b"[1]",
        b"true",
        b"\n",
        b"\\ud800",
        b"9" * 25,
    ],
}


@pytest.mark.parametrize(("suffix", "road"), [(".csv", "_loaded"), (".jsonl", "_decoder")])
@given(data=st.data())
def test_columns_parsed_at_once_are_those_of_the_rows(suffix, road, data, tmp_path_factory):
    """Rows are read one by one where a cell of a table is quoted, empty or no number, or a key has another type."""
    content = data.draw(st.sampled_from([file for file in FILES if file.suffix == suffix])).read_bytes()
    file = tmp_path_factory.getbasetemp() / "table"
    file.write_bytes(damaged(data, content, 9, PIECES[suffix], longest=3))
    timed = data.draw(st.booleans())

    def columns():
        try:
            read = read_trace(file, timed=timed)
        except InputError as error:
            return str(error)
        blocks = None if read.blocks is None else [part.tolist() for part in read.blocks[:2]]
        return {name: column.tolist() for name, column in read.columns.items()}, read.rows.tolist(), blocks

    with pytest.MonkeyPatch.context() as patched:
        at_once = columns()
        patched.setattr(trace_files, road, lambda *_: None)
        assert columns() == at_once


DECODED = [
    "aiperf-trace",
    "mooncake-conversation",
    "mooncake-synthetic",
    "mooncake-tool",
    "sglang-mooncake",
    "sharegpt-lengths",
]


@pytest.mark.parametrize("name", DECODED)
def test_lines_of_numbers_are_decoded_without_other_keys(name, monkeypatch):
    """Python's parser, which makes an object of each line, is not asked."""
    pytest.importorskip("msgspec")
    monkeypatch.setattr(trace_files, "_all", lambda lines, number: [])
    file = HERE / f"{name}.jsonl"
    assert len(read_trace(file, timed=READ[file.name][0] is not None).rows) == file.read_bytes().count(b"\n")


def test_lines_of_nested_numbers_are_decoded_without_other_keys(tmp_path, monkeypatch):
    pytest.importorskip("msgspec")
    lines = (HERE / "aiperf-records.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    file = tmp_path / "records.jsonl"
    file.write_text("".join(line for line in lines if '"output_sequence_length"' in line), encoding="utf-8")
    monkeypatch.setattr(trace_files, "_all", lambda lines, number: [])
    assert len(read_trace(file, timed=True).rows) == 2


@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(data, tmp_path_factory):
    content = data.draw(st.sampled_from(FILES)).read_bytes()
    file = tmp_path_factory.getbasetemp() / "damaged"
    file.write_bytes(damaged(data, content, 40, [b"9" * 400, b"null", b"[", b"{}", b"\x00"]))
    timed = data.draw(st.booleans())
    assert answered(lambda: read_trace(file, timed=timed)) in ("answered", "refused")
