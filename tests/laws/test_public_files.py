"""Files of other programs under tests: each has its source, each format two real ones, and each ends in an answer."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from iomodel import IOModelError, model
from iomodel.integrations.nsight.report_file import read_report
from iomodel.models.weight_files import read_weights
from iomodel.planning.benchmark_files import read_benchmark
from iomodel.planning.simulation.arrivals import read_trace
from iomodel.torch.profile_trace import read_profile
from tests.fuzz.law import one_line

TESTS = Path(__file__).parents[1]
with (TESTS / "public_files.csv").open(newline="", encoding="utf-8") as listed:
    ROWS = list(csv.DictReader(listed))
FORMATS = {
    "Azure 2023", "Azure 2024", "Mooncake", "BurstGPT", "ShareGPT", "traces of vLLM", "traces of SGLang",
    "traces of AIPerf", "traces of GuideLLM", "GuideLLM", "vllm bench serve", "sglang.bench_serving", "trtllm-bench",
    "genai-perf", "AIPerf", "InferenceMAX", "MLPerf", "llama-bench",
    "start of vLLM", "start of SGLang", "ncu details page", "ncu raw page", "rocprof", "rocprofv3", "Omniperf",
    "PyTorch profiler", "GGUF", "safetensors", "safetensors index", "params.json", "diffusers", "sentence-transformers",
}  # fmt: skip
"""Formats of which two real files are held; a detailed result of SGLang is drawn in its layout."""
READERS = {
    "planning/traces": lambda path: read_trace(path, timed=False),
    "planning/results": read_benchmark,
    "integrations/reports": read_report,
    "torch/profiles": read_profile,
}


def test_the_table_lists_the_files_that_there_are():
    folders = (*READERS, "models/files")
    there = {str(path.relative_to(TESTS)) for folder in folders for path in (TESTS / folder).iterdir()}
    assert there == {row["file"] for row in ROWS}


def test_each_format_has_two_real_files():
    real = Counter(row["format"] for row in ROWS if row["source"])
    assert {name for name in FORMATS if real[name] < 2} == set()


@pytest.mark.parametrize("row", [row for row in ROWS if row["source"]], ids=lambda row: row["file"])
def test_a_real_file_is_read_or_refused_in_one_line(row):
    """Headers without a config, parts of diffusers and encoders are no model that is planned."""
    path = TESTS / row["file"]
    read = READERS.get(path.parent.relative_to(TESTS).as_posix())
    if read is not None:
        assert read(path)
        return
    if row["format"].startswith("safetensors"):
        assert read_weights(str(path)).bytes > 0
    try:
        assert model(path).parameters > 0
    except IOModelError as error:
        one_line(str(error))


def test_the_table_of_judged_results_is_that_of_the_listed_files():
    """`python -m benchmarks.judged_runs --write` writes it; each row begins with what the file states."""
    with (TESTS / "measured" / "judged_runs.csv").open(newline="", encoding="utf-8") as file:
        sources = list(csv.DictReader(file))
    with (TESTS.parent / "docs" / "judged-results.csv").open(newline="", encoding="utf-8") as file:
        shown = list(csv.DictReader(file))
    assert len(sources) == len(shown) == 20
    assert {each["file"] for each in sources} == {path.name for path in (TESTS / "measured" / "judged").iterdir()}
    for source, row in zip(sources, shown, strict=True):
        run = read_benchmark(TESTS / "measured" / "judged" / source["file"])
        assert row["set-up"].endswith(f"{run.setting['prompt']} + {run.setting['output']}")
        assert row["output tokens/s [1/s]"].startswith(f"{run.measured['tokens_per_second']:,.4g} | ")
        assert row["what was wrong"] == source["finding"]
