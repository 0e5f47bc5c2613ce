"""Results of benchmarks and start-up logs of engines, read by their keys and lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from iomodel.common.input_files import readable
from iomodel.errors import InputError, reason_of, shown

if TYPE_CHECKING:
    from iomodel.models.registry import ModelSpec

LARGEST = 1 << 28
"""Largest file [B]."""
RUNS = "benchmarks"
"""Key of the runs in a document of GuideLLM."""
GIB, MS, NS = 2.0**30, 1e-3, 1e-9
MOST = 1e15
"""Largest number of a file that is taken for a length, a rate or a time."""


class StatedSetup(TypedDict, total=False):
    """Part of the set-up of a run that a benchmark states, or whoever reads it.

    Parameters
    ----------
    model : ModelSpec or str, optional
        The model, its name, or its file.
    engine : str, optional
        Engine whose memory and steps are assumed.
    precision : str, optional
        Types of weights, products and cache.
    kv_dtype : str, optional
        Type of the cache.
    prompt : int, optional
        Mean tokens of prompts.
    output : int, optional
        Mean tokens of outputs.
    clients : int, optional
        Clients of the closed loop.
    """

    model: ModelSpec | str | None
    engine: str | None
    precision: str | None
    kv_dtype: str | None
    prompt: int | None
    output: int | None
    clients: int | None


@dataclass(frozen=True)
class BenchmarkRun:
    """One run of a benchmark, or one start of an engine.

    Attributes
    ----------
    source : str
        Program that wrote the file.
    setting : mapping
        Set-up that the file states, by the names of :class:`StatedSetup`, and ``hardware``, ``load``, ``requests``,
        ``tensor_parallel``, ``pipeline_parallel``, ``expert_parallel``, ``devices``, ``memory_utilization``,
        ``step_tokens``, ``step_requests``, ``speculation``, and of llama-bench ``key_dtype``, ``value_dtype``,
        ``gpu_layers`` and ``split``; what it lacks is missing.
    measured : mapping
        Measured figures by name, in SI units.
    notes : tuple of str
        What the reader has chosen.
    """

    source: str
    setting: Mapping[str, Any]
    measured: Mapping[str, float]
    notes: tuple[str, ...] = field(default=())


class Format(NamedTuple):
    """Keys of a format: those by which it is known, and the paths of settings and figures, each with a factor.

    A time to the first token that equals the `latency` is that of an answer in one piece, and is no figure. A run
    without a rate and without a number of clients has as many as were `in_flight`. Where `tests` names the tokens of
    each figure, a document is a test of the one figure whose tokens it has, from an empty cache if none are `before`.
    """

    source: str
    known: tuple[str, ...]
    setting: Mapping[str, str]
    measured: Mapping[str, tuple[str, float]]
    latency: str | None = None
    in_flight: str | None = None
    tests: Mapping[str, str] = {}
    before: str | None = None


def _figures(**paths: str) -> dict[str, tuple[str, float]]:
    """List the figures of a format, in milliseconds where their path says so."""
    return {name: (path, MS if "_ms" in path else 1.0) for name, path in paths.items()}


SERVE = _figures(
    ttft="mean_ttft_ms", tpot="mean_tpot_ms", tokens_per_second="output_throughput",
    requests_per_second="request_throughput",
)  # fmt: skip
SERVE_SETTING = {
    "model": "model_id", "engine": "backend", "clients": "max_concurrency", "load": "request_rate",
    "requests": "completed", "tokens_in": "total_input_tokens", "tokens_out": "total_output_tokens",
    "hardware": "gpu", "tensor_parallel": "tensor_parallel_size", "device_count": "num_gpus",
}  # fmt: skip
AIPERF_LENGTHS = {"prompt": "input_sequence_length.avg", "output": "output_sequence_length.avg"}
AIPERF = {
    "ttft": ("time_to_first_token.avg", MS), "tpot": ("inter_token_latency.avg", MS),
    "tokens_per_second": ("output_token_throughput.avg", 1.0),
    "requests_per_second": ("request_throughput.avg", 1.0),
}  # fmt: skip
FORMATS = (
    Format("vllm bench serve", ("model_id", "request_throughput", "total_input_tokens"), SERVE_SETTING, SERVE),
    Format(
        "sglang.bench_serving",
        ("backend", "request_throughput", "mean_e2e_latency_ms", "total_input_tokens"),
        {
            **SERVE_SETTING, "model": "server_info.model_path", "precision": "server_info.quantization",
            "kv_dtype": "server_info.kv_cache_dtype", "tensor_parallel": "server_info.tp_size",
            "pipeline_parallel": "server_info.pp_size", "expert_parallel": "server_info.ep_size",
            "memory_utilization": "server_info.mem_fraction_static",
        },
        SERVE,
    ),
    Format(
        "vllm bench throughput",
        ("elapsed_time", "num_requests", "total_num_tokens", "requests_per_second"),
        {"requests": "num_requests"},
        _figures(requests_per_second="requests_per_second"),
    ),
    Format(
        "sglang.bench_offline_throughput",
        ("successful_requests", "request_throughput", "total_output_tokens"),
        {**SERVE_SETTING, "requests": "successful_requests"},
        _figures(tokens_per_second="output_throughput", requests_per_second="request_throughput"),
    ),
    Format(
        "trtllm-bench",
        ("performance.system_output_throughput_tok_s", "world_info"),
        {
            "model": "engine.model", "kv_dtype": "engine.kv_cache_dtype", "precision": "engine.quantization",
            "hardware": "machine.name", "tensor_parallel": "world_info.tp_size",
            "pipeline_parallel": "world_info.pp_size", "expert_parallel": "world_info.ep_size",
            "step_requests": "world_info.max_batch_size", "step_tokens": "world_info.max_num_tokens",
            "requests": "request_info.num_requests", "clients": "request_info.avg_num_concurrent_requests",
            "prompt": "request_info.avg_input_length", "output": "request_info.avg_output_length",
        },
        _figures(
            ttft="streaming_metrics.avg_ttft_ms", tpot="streaming_metrics.avg_tpot_ms",
            tokens_per_second="performance.system_output_throughput_tok_s",
            requests_per_second="performance.request_throughput_req_s",
        ),
    ),
    Format(
        "genai-perf",
        ("request_throughput.avg", "input_sequence_length.avg", "request_latency.avg", "input_config.model"),
        {
            **AIPERF_LENGTHS, "model": "input_config.model", "clients": "input_config.concurrency",
            "load": "input_config.request_rate", "requests": "request_count.avg",
        },
        AIPERF,
        "request_latency.avg",
    ),
    Format(
        "AIPerf",
        ("request_throughput.avg", "input_sequence_length.avg", "request_latency.avg"),
        {
            **AIPERF_LENGTHS, "model": "input_config.endpoint.model_names|input_config.models.items.name",
            "clients": "input_config.loadgen.concurrency|input_config.phases.concurrency",
            "load": "input_config.loadgen.request_rate", "requests": "request_count.avg",
        },
        AIPERF,
    ),
    Format(
        "InferenceMAX",
        ("tput_per_gpu", "conc", "isl", "osl"),
        {
            "model": "model", "hardware": "hw", "engine": "framework", "precision": "precision",
            "tensor_parallel": "tp|decode_tp", "expert_parallel": "ep|decode_ep", "clients": "conc", "prompt": "isl",
            "output": "osl", "speculation": "spec_decoding",
        },
        _figures(ttft="mean_ttft", tpot="mean_tpot", tokens_per_device="output_tput_per_gpu"),
    ),
    Format(
        "GuideLLM",
        ("metrics.request_concurrency", "metrics.inter_token_latency_ms"),
        {
            "model": "config.backend.model|worker.backend_model",
            "clients": "config.strategy.streams|args.strategy.streams",
            "load": "config.strategy.rate|args.strategy.rate",
            "requests": (
                "metrics.request_totals.successful|request_totals.successful|run_stats.requests_made.successful"
            ),
            "prompt": "metrics.prompt_token_count.successful.mean",
            "output": "metrics.output_token_count.successful.mean",
        },
        # Its time_per_output_token_ms counts the first token too.
        _figures(
            ttft="metrics.time_to_first_token_ms.successful.mean",
            tpot="metrics.inter_token_latency_ms.successful.mean",
            tokens_per_second="metrics.output_tokens_per_second.successful.mean",
            requests_per_second="metrics.requests_per_second.successful.mean",
        ),
        in_flight="metrics.request_concurrency.successful.mean",
    ),
    Format(
        "llama-bench",
        ("n_prompt", "n_gen", "avg_ns", "model_filename"),
        {
            "model": "model_filename", "precision": "model_type", "hardware": "gpu_info", "split": "split_mode",
            "key_dtype": "type_k", "value_dtype": "type_v", "gpu_layers": "n_gpu_layers", "prompt": "n_prompt",
            "output": "n_gen",
        },
        {"ttft": ("avg_ns", NS), "tpot": ("avg_ns", NS)},
        tests={"ttft": "n_prompt", "tpot": "n_gen"},
        before="n_depth",
    ),
)  # fmt: skip
"""Formats of JSON, the most particular first where keys are shared."""


class Line(NamedTuple):
    """A line of a log: the pattern of its number, the name of the figure or setting, and its unit."""

    pattern: str
    name: str
    factor: float = 1.0


NUMBER = r"\s*:?\s*(-?[\d,]+(?:\.\d+)?)"
TENSOR_PARALLEL = Line(r"--(?:tp|tp-size|tensor-parallel-size)[ =]+(\d+)", "tensor_parallel")
PRINTED = (
    Line(r"Successful requests:" + NUMBER, "requests"),
    Line(r"Max(?:imum)? request concurrency:" + NUMBER, "clients"),
    Line(r"(?:Traffic request rate|Request rate configured \(RPS\)):" + NUMBER, "load"),
    Line(r"Total input tokens:" + NUMBER, "tokens_in"),
    Line(r"Total generated tokens:" + NUMBER, "tokens_out"),
    Line(r"Request throughput \(req/s\):" + NUMBER, "requests_per_second"),
    Line(r"Output token throughput \(tok/s\):" + NUMBER, "tokens_per_second"),
    Line(r"Mean TTFT \(ms\):" + NUMBER, "ttft", MS),
    Line(r"Mean TPOT \(ms\):" + NUMBER, "tpot", MS),
    TENSOR_PARALLEL,
)
OFFLINE = (
    Line(r"--num-prompts[ =]+(\d+)", "requests"),
    Line(r"Throughput:" + NUMBER + " requests/s", "requests_per_second"),
    Line(r"tokens/s," + NUMBER + " output tokens/s", "tokens_per_second"),
    Line(r"Total num prompt tokens:" + NUMBER, "tokens_in"),
    Line(r"Total num output tokens:" + NUMBER, "tokens_out"),
    TENSOR_PARALLEL,
)
"""Lines that `vllm bench throughput` prints, below its command."""
THROUGHPUT = (
    Line(r"Number of requests:" + NUMBER, "requests"),
    Line(r"Number of concurrent requests:" + NUMBER, "clients"),
    Line(r"Average Input Length \(tokens\):" + NUMBER, "prompt"),
    Line(r"Average Output Length \(tokens\):" + NUMBER, "output"),
    Line(r"TP Size:" + NUMBER, "tensor_parallel"),
    Line(r"PP Size:" + NUMBER, "pipeline_parallel"),
    Line(r"EP Size:" + NUMBER, "expert_parallel"),
    Line(r"Max Runtime Batch Size:" + NUMBER, "step_requests"),
    Line(r"Max Runtime Tokens:" + NUMBER, "step_tokens"),
    Line(r"Request Throughput \(req/sec\):" + NUMBER, "requests_per_second"),
    Line(r"(?:Total Output|Token) Throughput \(tokens/sec\):" + NUMBER, "tokens_per_second"),
    Line(r"Total Latency \(ms\):" + NUMBER, "duration", MS),
    Line(r"Average time-to-first-token \[TTFT\] \(ms\):" + NUMBER, "ttft", MS),
    Line(r"Average time-per-output-token \[TPOT\] \(ms\):" + NUMBER, "tpot", MS),
)
"""Lines that trtllm-bench prints."""
TESTED = frozenset(each.source for each in FORMATS if each.tests)
"""Programs whose documents are tests of one figure each."""
BLOCK = 16
"""Tokens of a block of vLLM's cache by default."""
MLPERF = (
    Line(r"Tokens per second" + NUMBER, "tokens_per_second"),
    Line(r"Completed tokens per second" + NUMBER, "tokens_per_second"),
    Line(r"Completed samples per second" + NUMBER, "requests_per_second"),
    Line(r"Samples per second" + NUMBER, "requests_per_second"),
    Line(r"Mean First Token latency \(ns\)" + NUMBER, "ttft", NS),
    Line(r"Mean Time (?:to|per) Output Token \(ns\)" + NUMBER, "tpot", NS),
    Line(r"target_qps" + NUMBER, "load"),
    Line(r"Scheduled samples per second" + NUMBER, "load"),
)
STARTED = (
    Line(r"(?:Model loading|Loading model weights) took" + NUMBER + r" Gi?B", "weights", GIB),
    Line(r"Available KV cache memory" + NUMBER + r" GiB", "kv_bytes", GIB),
    Line(r"GPU KV cache size" + NUMBER + r" tokens", "kv_tokens"),
    Line(r"# GPU blocks" + NUMBER, "kv_tokens", BLOCK),
    Line(r"Maximum concurrency for [\d,]+ tokens per request" + NUMBER + "x", "requests_that_fit"),
    Line(r"Maximum concurrency for" + NUMBER + r" tokens per request", "context"),
    Line(r"Load weight end\..*?mem usage=" + r"([\d.]+) GB", "weights", GIB),
    Line(r"KV Cache is allocated\. .*?#tokens: ([\d,]+)", "kv_tokens"),
    Line(r"max_total_num_tokens=([\d,]+)", "kv_tokens"),
    Line(r"tensor_parallel_size['\"]?[=:]" + NUMBER, "tensor_parallel"),
    Line(r"tp_size=" + NUMBER, "tensor_parallel"),
    Line(r"gpu_memory_utilization['\"]?[=:]" + NUMBER, "memory_utilization"),
    Line(r"mem_fraction_static=" + NUMBER, "memory_utilization"),
    Line(r"max_num_batched_tokens['\"]?[=:]" + NUMBER, "step_tokens"),
    Line(r"max_num_seqs['\"]?[=:]" + NUMBER, "step_requests"),
)
LOGS = (
    ("a printed result", "Serving Benchmark Result", PRINTED),
    ("sglang.bench_offline_throughput", "Offline Throughput Benchmark Result", PRINTED),
    ("vllm bench throughput", " output tokens/s", OFFLINE),
    ("trtllm-bench", "Request Throughput (req/sec)", THROUGHPUT),
    ("MLPerf", "MLPerf Results Summary", MLPERF),
    ("a start of vLLM", "KV cache", STARTED),
    ("a start of SGLang", "max_total_num_tokens", STARTED),
    ("a start of SGLang", "KV Cache is allocated", STARTED),
    ("a start of vLLM", "Model loading took", STARTED),
    ("a start of vLLM", "# GPU blocks", STARTED),
)
FIGURES = (
    "ttft", "tpot", "tokens_per_second", "tokens_per_device", "requests_per_second", "weights", "kv_bytes", "kv_tokens",
    "requests_that_fit",
)  # fmt: skip
COUNTED = frozenset(
    {
        "prompt", "output", "clients", "requests", "tensor_parallel", "pipeline_parallel", "expert_parallel",
        "device_count", "step_tokens", "step_requests", "context", "gpu_layers",
    }
)  # fmt: skip
"""Settings that are whole numbers."""
REAL = frozenset({"load", "memory_utilization"})
"""Settings that are other numbers; a rate of "inf", the default of vLLM and SGLang, is none."""
WORDS = (
    (r"(?:model_path|model)['\"]?[=:]\s*['\"]([^'\"]+)['\"]", "model"),
    (r"(?:--model(?:-path)?[ =]|(?m:^)Model:)[ \t]*([^\s'\"\\]+)", "model"),
    (r"kv_cache_dtype['\"]?[=:]\s*['\"]?(\w+)", "kv_dtype"),
    (r"KV Cache Dtype:[ \t]*(\w+)", "kv_dtype"),
    (r"Quantization:[ \t]*(\w+)", "precision"),
    (r"Backend:[ \t]*(\w+)", "engine"),
)
"""Words that a program prints of its arguments; the first of each name counts."""
RELEASE = r"(?:vLLM API server version|LLM engine \()[ ]?v?(?!0\.1\.dev)(\d+\.\d[\d.]*)"
"""The release of vLLM at the start of its log; a build without a release is 0.1.dev."""


def read_benchmark(path: str | Path) -> BenchmarkRun:
    """Read the result of a benchmark, or the start-up log of an engine.

    Parameters
    ----------
    path : str or Path
        What `vllm bench`, `sglang.bench_serving`, `sglang.bench_offline_throughput`, `trtllm-bench`, genai-perf,
        AIPerf, GuideLLM, llama-bench, InferenceMAX or MLPerf write, or print; or the log of vLLM or SGLang.

    Raises
    ------
    InputError
        The file cannot be read, or is none of these.
    """
    try:
        with readable(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise InputError(
            f"file: {shown(str(path))} cannot be read ({reason_of(error)}); allowed: a result or a log"
        ) from None
    if len(content) > LARGEST:
        raise InputError(f"file: more than {LARGEST:,} B given; allowed: the result or the log of one run")
    text = content.decode("utf-8-sig", errors="replace")
    runs = [run for document in _documents(text) if (run := _of_document(document)) is not None]
    if runs:
        last, others = joined(runs)
        extra = (f"the last of {others + 1} runs in the file",) if others else ()
        return BenchmarkRun(last.source, last.setting, last.measured, (*last.notes, *extra))
    return _of_log(text)


def joined(runs: list[BenchmarkRun]) -> tuple[BenchmarkRun, int]:
    """Return the last run, with the last tests of other figures of its set-up, and the number of runs left out."""
    last, others = runs[-1], len(runs) - 1
    if last.source not in TESTED:
        return last, others
    setting, measured = dict(last.setting), dict(last.measured)
    for run in reversed(runs[:-1]):
        same = run.source == last.source and _without_lengths(run.setting) == _without_lengths(last.setting)
        if same and not measured.keys() & run.measured.keys():
            setting, measured, others = {**setting, **run.setting}, {**measured, **run.measured}, others - 1
    return BenchmarkRun(last.source, setting, measured, last.notes), others


def _without_lengths(setting: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in setting.items() if name not in ("prompt", "output")}


def _documents(text: str) -> list[Any]:
    """Parse the documents of JSON in a text: all of it, its runs, or single lines."""
    try:
        whole = json.loads(text)
        listed = whole.get(RUNS) if isinstance(whole, dict) else whole
        return listed if isinstance(listed, list) else [whole]
    except (ValueError, RecursionError):
        pass
    found = []
    for line in text.splitlines():
        if line.startswith("{") and line.rstrip().endswith("}"):
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
    return found or list(_of_table(text))


def _of_table(text: str) -> Iterator[dict[str, Any]]:
    """Convert the rows of the table that llama-bench prints, below the devices it finds, to its documents."""
    devices, header = re.findall(r"Device \d{1,3}: ([^,\n]+),", text), []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if {"test", "t/s"} <= {*cells}:
            header = cells
        row = dict(zip(header, cells, strict=True)) if len(header) == len(cells) else {}
        test = re.fullmatch(r"(pp|tg) ?(\d{1,9})(?: ?@ ?d(\d{1,9}))?", row.get("test", ""))
        rate = re.match(r"\d{1,9}(?:\.\d{1,9})?", row.get("t/s", ""))
        if test is not None and rate is not None and float(rate[0]) > 0:
            tokens = int(test[2])
            yield {
                "model_filename": "", "model_type": row.get("model"), "gpu_info": ", ".join(devices),
                "n_gpu_layers": row.get("ngl"), "type_k": row.get("type_k"), "type_v": row.get("type_v"),
                "split_mode": row.get("sm"), "n_prompt": tokens if test[1] == "pp" else 0,
                "n_gen": tokens if test[1] == "tg" else 0, "n_depth": int(test[3] or 0),
                "avg_ns": tokens / NS / float(rate[0]),
            }  # fmt: skip


def at(document: Any, paths: str) -> Any:
    """Return the entry at the first of several paths of keys that there is, in the last of entries in a list; or None.

    >>> at({"a": {"b": [3]}}, "a.b"), at({"a": 1}, "a.b"), at({"a": [{"b": 1}, {"b": 2}]}, "b|a.b")
    ([3], None, 2)
    """
    return next((entry for path in paths.split("|") if (entry := _at(document, path)) is not None), None)


def _at(document: Any, path: str) -> Any:
    for word in path.split("."):
        inner = document[-1] if isinstance(document, list) and document else document
        if not isinstance(inner, dict):
            return None
        document = inner.get(word)
    return document


def _of_document(document: Any) -> BenchmarkRun | None:
    known = (each for each in FORMATS if all(at(document, path) is not None for path in each.known))
    found = next(known, None)
    if found is None:
        return None
    setting = {name: entry for name, path in found.setting.items() if (entry := at(document, path)) not in (None, "")}
    measured = {
        name: factor * number
        for name, (path, factor) in found.measured.items()
        if (number := _number(at(document, path))) is not None and number > 0
    }
    if found.tests:
        tokens = {name: _number(at(document, path)) or 0.0 for name, path in found.tests.items()}
        tested = [name for name, number in tokens.items() if number > 0]
        filled = 0.0 if found.before is None else _number(at(document, found.before)) or 0.0
        if len(tested) != 1 or tested[0] not in measured or filled > 0:
            return None
        measured = {name: measured[name] / (tokens[name] if name == "tpot" else 1) for name in tested}
    if found.in_flight is not None and not setting.keys() & {"clients", "load"}:
        setting["clients"] = at(document, found.in_flight)
    if found.latency is not None and at(document, found.latency) == at(document, found.measured["ttft"][0]):
        measured.pop("ttft", None)
    return _run(found.source, setting, measured)


def _of_log(text: str) -> BenchmarkRun:
    found = next(((source, lines) for source, word, lines in LOGS if word in text), None)
    if found is None:
        raise InputError(
            "file: no result and no log of a known program; allowed: what vllm bench, sglang.bench_serving, "
            "sglang.bench_offline_throughput, trtllm-bench, AIPerf, GuideLLM, llama-bench, InferenceMAX or MLPerf "
            "write, or the start of vLLM or SGLang"
        )
    source, lines = found
    numbers: dict[str, float] = {}
    for line in lines:
        match = re.search(line.pattern, text)
        number = _number(match[1].replace(",", "")) if match else None
        if number is not None:
            numbers.setdefault(line.name, line.factor * number)
    if duration := numbers.pop("duration", 0.0):
        numbers.setdefault("requests", duration * numbers.get("requests_per_second", 0.0))
    words: dict[str, str] = {}
    for pattern, name in WORDS:
        if (match := re.search(pattern, text)) is not None and match[1] != "None":
            words.setdefault(name, match[1])
    engine = {}
    if source.startswith("a start of"):
        release = re.search(RELEASE, text) if source.endswith("vLLM") else None
        engine["engine"] = source.split()[-1].lower() + (f"=={release[1].rstrip('.')}" if release else "")
    measured = {name: numbers.pop(name) for name in FIGURES if name in numbers}
    return _run(source, {**words, **engine, **numbers}, measured)


def _number(entry: Any) -> float | None:
    """Convert a number of a file; None for what is none, or lies far outside."""
    if isinstance(entry, bool) or not isinstance(entry, int | float | str):
        return None
    try:
        number = float(entry)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) and abs(number) < MOST * GIB else None


def _run(source: str, setting: Mapping[str, Any], measured: Mapping[str, float]) -> BenchmarkRun:
    """Convert the set-up of a file: mean lengths of totals, whole numbers, names without their case."""
    if not measured:
        raise InputError(f"file: {source} without a figure above 0; allowed: a run that has succeeded")
    read: dict[str, Any] = {}
    totals = {name: _number(setting.get(name)) for name in ("tokens_in", "tokens_out", "requests")}
    done = totals["requests"]
    for name, total in (("prompt", totals["tokens_in"]), ("output", totals["tokens_out"])):
        if total and done is not None and done >= 1:
            read[name] = max(1, round(total / done))
    for name, entry in setting.items():
        value = entry[0] if isinstance(entry, list) and entry else entry
        number = _number(value)
        if name in COUNTED and number is not None and 0.5 <= number < MOST:
            read.setdefault(name, round(number))
        elif name in REAL and number is not None and 0 < number < MOST:
            read[name] = number
        elif isinstance(value, str) and value and name not in COUNTED | REAL and len(value) < 500:
            read[name] = value
    return BenchmarkRun(source, read, dict(measured))
