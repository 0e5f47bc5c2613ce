"""Arguments of a plan, read from the command line of a serving engine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from os.path import exists
from typing import Any, NamedTuple

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.errors import InputError, shown
from iomodel.errors.synonyms import key, same
from iomodel.models.file_types import ENDING
from iomodel.models.registry import known_as
from iomodel.models.registry import model as find_model
from iomodel.planning.checked_numbers import as_share
from iomodel.planning.engine_options import LLAMA_CPP, SGLANG, TRTLLM, VLLM, OptionNames
from iomodel.planning.engines import BENCH, ENGINES, GGML, OTHER_NAMES
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.lora import Lora
from iomodel.workloads.call import BLOCK_CACHES

MODELS = ("--model", "--model-path", "--served-model-name", "--hf-repo")
"""Options that name the model."""
LONGEST = 10_000
"""Longest accepted command line [characters]."""
NEGATIVE = re.compile(r"-\d+")
WIDE_TYPE = re.compile(r"[-.:](f16|bf16)(?:\.gguf)?$", re.IGNORECASE)
"""A type of 16 bits at the end of the name of a GGUF file."""
GGML_CACHES = {"f16": "fp16", "f32": "fp32", **{word: word for word in ("bf16", *BLOCK_CACHES)}}
"""Types of caches by the names of llama.cpp."""
SERVERS = ("llama-server", "llama-cli", "llama-bench")
"""Programs of llama.cpp that take its options."""
RUNS = "throughput", "latency"
"""Subcommands of the benchmark."""
REFUSED = {
    "--cpu-offload-gb": "weights on the host",
    "--prefill-context-parallel-size": "context parallelism of prompts",
    "--attention-context-parallel-size": "context parallelism",
    "--disaggregation-mode": "disaggregated prefill",
    "--eplb-config": "copies of experts; give them to iomodel.Layout",
    "--ep-num-redundant-experts": "copies of experts; give them to iomodel.Layout",
    "--extra-llm-api-options": "the options in a file; give them to iomodel.plan",
    "--extra_llm_api_options": "the options in a file; give them to iomodel.plan",
}
"""Options that a plan does not follow."""
DRAFTED = ("--speculative-config", "--speculative-algorithm")
"""Options of drafts, whose acceptance no command line states."""
UNFOLLOWED = {
    "--enforce-eager", "--compilation-config", "-O", "--no-enable-chunked-prefill", "--disable-cuda-graph",
    "--enable-mixed-chunk", "--mamba-ssm-dtype", "--mamba-ssm-cache-dtype", "--mamba-cache-dtype",
    "--mamba-cache-mode", "--mamba-block-size", "--kv-cache-config", "--kv-transfer-config", "--enable-eplb",
    "--enable-dbo", "--enable-two-batch-overlap", "--enable-hierarchical-cache", "--disable-hybrid-swa-memory",
    "--disable-hybrid-kv-cache-manager", "--calculate-kv-scales", "--kv-offloading-size", "--limit-mm-per-prompt",
    "--lora-paths", "--max-lora-rank", "--max-loras-per-batch", "--max_beam_width", "--attention-backend",
    "--disable-custom-all-reduce", "--moe-a2a-backend", "--schedule-conservativeness", "--enable-torch-compile",
    "--host-delay", "--max-prefill-tokens", "--quantization-param-path", "-ngl", "--n-gpu-layers", "-ub",
    "--ubatch-size", "-ot", "--override-tensor", "--n-cpu-moe", "--tensor-split", "-ts",
}  # fmt: skip
"""Options that change memory or times in ways that a plan does not follow."""
SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGkmg]?)")
SIZES = {"K": 2**10, "M": 2**20, "G": 2**30, "k": 10**3, "m": 10**6, "g": 10**9, "": 1}
"""Suffixes of sizes in bytes or tokens (vllm/engine/arg_utils.py, ``human_readable_int``)."""
DEGREES = {
    "tensor_parallel": "tensor",
    "pipeline_parallel": "pipeline",
    "data_parallel": "data",
    "expert_parallel": "experts",
    "decode_context_parallel": "context",
}
"""Settings of an engine's layout, by the names whose synonyms a command line may have."""


class Command(NamedTuple):
    """A command line of an engine: arguments of a plan, options without an effect on it, and the longest request.

    `limit` has the option of the longest request with its tokens, where given.
    """

    arguments: dict[str, Any]
    ignored: tuple[str, ...]
    limit: Mapping[str, int] = FrozenDict()

    @property
    def passed_over(self) -> str:
        """State the options that a plan passes over; empty without one."""
        kinds = {False: "without an effect on a plan", True: "not followed, though memory or times change"}
        lists = {kind: [name for name in self.ignored if (name in UNFOLLOWED) == kind] for kind in kinds}
        return "; ".join(f"{kinds[kind]}: {', '.join(names)}" for kind, names in lists.items() if names)


def is_command(model: object) -> bool:
    """Check for the command line of an engine in the place of a model.

    >>> is_command("vllm serve x"), is_command("llama-3-8b")
    (True, False)
    """
    if not isinstance(model, str) or len(model.split()) < 2:
        return False
    words = {word.rpartition("/")[2] for word in model.split()}
    return bool({"vllm", "sglang", "sglang.launch_server", "trtllm-serve", BENCH, *SERVERS} & words)


@strict
def engine_arguments(command: str) -> dict[str, Any]:
    """Read the command line of vLLM, SGLang, TensorRT-LLM or llama.cpp into arguments of :func:`iomodel.plan`.

    :func:`iomodel.plan` itself takes such a line in place of the model, and names the options that it passes over.

    Parameters
    ----------
    command : str
        Words from ``vllm serve``, ``python -m sglang.launch_server``, ``trtllm-serve``, ``trtllm-bench`` or
        ``llama-server`` on. Options without an effect on a plan, such as ``--port``, are passed over.

    Returns
    -------
    dict
        ``model``, ``engine``, ``count``, ``layout``, and where given ``batch``, ``step_tokens``, ``dtype``,
        ``weight_dtype``, ``kv_dtype``, ``page_size``, ``memory_utilization`` and ``prefix_cache``. Leave out ``batch``
        to plan with all requests that fit.

    Raises
    ------
    InputError
        The command line is not one of these, an option has a wrong value, or a plan does not follow it.

    Examples
    --------
    >>> import iomodel
    >>> line = "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --kv-cache-dtype fp8"
    >>> found = iomodel.planning.engine_arguments(line)
    >>> found["model"], found["engine"], found["layout"].tensor_parallel, found["kv_dtype"]
    ('llama-3.1-70b', 'vllm', 4, 'fp8')
    >>> iomodel.plan(hardware="h100-sxm5", prompt=2048, output=256, **found).replicas
    1
    """
    return read_command(command).arguments


def read_command(command: str, *, drafts: bool = False) -> Command:
    """Read the command line of an engine, and name the options that a plan passes over.

    Its drafts are passed over where the caller states them, with `drafts`.
    """
    engine, words = _engine(command)
    benchmark = engine is TRTLLM and words[:1] == [BENCH]
    options, model = _options(engine, [word for word in words[1:] if word not in RUNS] if benchmark else words)
    for name in () if drafts else options.keys() & {*DRAFTED}:
        raise InputError(
            f"command: {name} given without the share of drafts that are accepted; allowed: with a speculation beside "
            f"the line, such as --draft-tokens {_draft_tokens(options)} --acceptance 0.7"
        )
    for name, reason in REFUSED.items():
        if name in options:
            raise InputError(f"command: {name} given; allowed: none, because a plan does not follow {reason}")
    if engine is LLAMA_CPP:
        return _of_slots(options, model)
    layout = _layout(engine, options)
    name = BENCH if benchmark else OTHER_NAMES.get(engine.name, engine.name)
    fields: dict[str, Any] = {"model": shipped_name(model), "engine": name, "layout": layout, "count": layout.devices}
    groups = 1 if engine is SGLANG else layout.data_parallel
    own = engine.options
    for field, setting, times in (("batch", "batch", groups), ("page_size", "page", 1), ("step_tokens", "step", 1)):
        if own.get(setting) in options and options[own[setting]] != "-1":
            fields[field] = times * _integer(own[setting], options)
    if own["memory"] in options:
        fields["memory_utilization"] = _share(own["memory"], options)
    dtypes = {**{word: name for name, word in engine.dtypes.items()}, "half": "fp16"}
    caches = {
        **{word: name for name, word in engine.kv_dtypes.items()},
        "fp8_e5m2": "fp8",
        "fp8_e4m3": "fp8",
        "fp4_e2m1": "nvfp4",
    }
    named = (("dtype", "dtype", dtypes), ("kv_dtype", "cache", {**caches, **dtypes, "bf16": "bf16"}))
    for field, setting, known in (*named, ("weight_dtype", "weights", {"fp8": "fp8"})):
        fields |= _named(field, own[setting], options, known) if setting in own else {}
    if "prefix" in own and own["prefix"] in options:
        fields["prefix_cache"] = PrefixCache()
    fields |= _of_memory(engine, options)
    stated = SIZE.fullmatch(options.get(own["tokens"]) or "")
    limit = {} if stated is None else {own["tokens"]: _size(own["tokens"], options, "tokens, such as 8192 or 8k")}
    followed = {value for setting, value in own.items() if setting not in ("tokens", "file")} | limit.keys()
    return Command(fields, tuple(name for name in options if name not in {*followed, *MODELS}), FrozenDict(limit))


def _draft_tokens(options: Mapping[str, str | None]) -> str:
    """Return the draft tokens of a step that the options of an engine state, else 3."""
    stated = (options.get("--speculative-config"), options.get("--speculative-num-steps"))
    number = re.search(r"num_speculative_tokens\W+(\d{1,3})|^(\d{1,3})$", next(filter(None, stated), ""))
    return "3" if number is None else number[1] or number[2]


def _of_memory(engine: OptionNames, options: Mapping[str, str | None]) -> dict[str, Any]:
    """Read the options that set memory of caches, states and adapters: an engine with other figures, and adapters."""
    own = {setting: name for setting, name in engine.options.items() if name in options}
    base = ENGINES[OTHER_NAMES.get(engine.name, engine.name)]
    changed: dict[str, Any] = {}
    if "cache bytes" in own:
        changed["cache_bytes"] = _size(own["cache bytes"], options, "bytes, such as 10G")
    if "cache tokens" in own:
        changed["cache_tokens"] = _integer(own["cache tokens"], options)
    if "cache blocks" in own:
        page = _integer(engine.options["page"], options) if engine.options["page"] in options else base.block
        changed["cache_tokens"] = page * _integer(own["cache blocks"], options)
    for setting, field in (("state places", "state_places"), ("graph", "graph")):
        if setting in own:
            changed[field] = _integer(own[setting], options)
    for setting, field in (("state ratio", "state_ratio"), ("window ratio", "window_ratio")):
        if setting in own:
            changed[field] = Fraction(repr(_share(own[setting], options)))
    if "no prefixes" in own:
        changed["state_slots"] = 1
    fields: dict[str, Any] = {"engine": replace(base, **changed)} if changed else {}
    if "adapters" in own:
        sizes = (("adapter rank", 16), ("adapter slots", 1))
        rank, slots = (_integer(own[name], options) if name in own else usual for name, usual in sizes)
        fields["lora"] = Lora(rank=rank, adapters=slots)
    return fields


def _size(name: str, options: Mapping[str, str | None], allowed: str) -> int:
    """Read a size with the suffixes of vLLM."""
    value = SIZE.fullmatch(options[name] or "")
    if value is None or not float(value[1]):
        raise InputError(f"command: {name} {shown(options[name])} given; allowed: {allowed}")
    return int(float(value[1]) * SIZES[value[2]])


def _of_slots(options: Mapping[str, str | None], model: str) -> Command:
    """Read the options of llama.cpp: a cache of all tokens, in types of K and of V, divided among slots."""
    own = LLAMA_CPP.options
    slots = _integer(own["batch"], options) if own["batch"] in options else 1
    name, dtype = of_gguf(model)
    weights = {"weight_dtype": dtype} if dtype is not None else {}
    kept = [
        _named("kv_dtype", own[half], {own[half]: options.get(own[half]) or "f16"}, GGML_CACHES).get("kv_dtype", "fp16")
        for half in ("keys", "values")
    ]
    kv_dtype = {"kv_dtype": "/".join(dict.fromkeys(kept))}
    fields = {"model": name, "layout": Layout(), "count": 1, "batch": slots, "engine": GGML}
    followed = {*own.values(), *MODELS}
    limit = {}
    if (options.get(own["tokens"]) or "0") != "0":
        limit = {own["tokens"]: max(2, _integer(own["tokens"], options) // slots)}
    ignored = tuple(each for each in options if each not in followed)
    return Command({**fields, **weights, **kv_dtype}, ignored, FrozenDict(limit))


def _engine(command: object) -> tuple[OptionNames, list[str]]:
    if not isinstance(command, str) or len(command) > LONGEST:
        raise InputError(f"command: {shown(command)} given; allowed: a command line of vllm, sglang or trtllm")
    try:
        words = shlex.split(command.replace("\\\n", " "))
    except ValueError as error:
        raise InputError(f"command: {shown(command)} given; allowed: a command line ({error})") from None
    for place, word in enumerate(words):
        serves = words[place + 1 : place + 2] == ["serve"]
        if word == "vllm" and serves:
            return VLLM, words[place + 2 :]
        if word == "sglang.launch_server" or (word == "sglang" and serves):
            return SGLANG, words[place + 1 + (word == "sglang") :]
        if word == "trtllm-serve":
            return TRTLLM, words[place + 1 + serves :]
        if word == BENCH:
            return TRTLLM, words[place:]
        if word.rpartition("/")[2] in SERVERS:
            return LLAMA_CPP, words[place + 1 :]
    raise InputError(
        f"command: {shown(command)} given; allowed: 'vllm serve MODEL ...', 'sglang.launch_server ...', "
        "'trtllm-serve MODEL ...', 'trtllm-bench --model MODEL ...' or 'llama-server -m MODEL ...'"
    )


def _options(engine: OptionNames, words: list[str]) -> tuple[dict[str, str | None], str]:
    """Split a command line into options with their values, and the model."""
    options: dict[str, str | None] = {}
    plain: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if not word.startswith("-"):
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        name = name.replace("-", "_").replace("__", "--", 1) if engine is TRTLLM else name.replace("_", "-")
        name = _spelled(engine, engine.aliases.get(name, name))
        if equals:
            options[name] = value
        elif place < len(words) and (not words[place].startswith("-") or NEGATIVE.fullmatch(words[place])):
            options[name] = words[place]
            place += 1
        else:
            options[name] = None
    named = (options.get(name) for name in (("--model-path",) if engine is SGLANG else ("--model", "--hf-repo")))
    model = next(filter(None, named), None) or next(iter(plain), None)
    if model is None:
        raise InputError("command: no model given; allowed: the name of one, such as meta-llama/Llama-3.1-8B")
    return options, model


def _spelled(engine: OptionNames, name: str) -> str:
    """Return the engine's own option of a degree for another spelling of it, such as --tp for vLLM."""
    if name in engine.options.values():
        return name
    degree = key(name) if key(name) in DEGREES else same(name, DEGREES)
    return name if degree is None else engine.options.get(DEGREES[degree], name)


def _layout(engine: OptionNames, options: Mapping[str, str | None]) -> Layout:
    own = engine.options
    names = "tensor", "pipeline", "data", "context"
    tensor, stages, data, cached = (_integer(own[name], options) if own.get(name) in options else 1 for name in names)
    degrees = {"pipeline_parallel": stages, "decode_context_parallel": cached}
    if engine is VLLM:
        experts = tensor * data if own["experts"] in options else 1
        number = options.get(own["experts"]) or ""
        if number.isdigit() and number != str(experts):
            raise InputError(
                f"command: {own['experts']} {number} given; allowed: without a number, which is all {experts} ranks"
            )
        if data > 1 and experts == 1:
            raise InputError(
                f"command: {own['data']} {data} given without {own['experts']}; allowed: replicas, as count of a plan"
            )
        return Layout(tensor_parallel=tensor, expert_parallel=experts, **degrees)
    experts = _integer(own["experts"], options) if own["experts"] in options else 1
    if data > 1 and engine is SGLANG:
        if own["data attention"] not in options or tensor % data or experts != tensor:
            raise InputError(
                f"command: {own['data']} {data} given; allowed: with {own['data attention']} and {own['experts']} of "
                f"all {tensor} ranks, or replicas, as count of a plan"
            )
        tensor //= data
    return Layout(tensor_parallel=tensor, expert_parallel=experts, **degrees)


def of_gguf(model: str) -> tuple[str, str | None]:
    """Return the model that the name of a GGUF file means, and the type of weights that the name ends in.

    >>> of_gguf("models/Qwen2.5-7B-Instruct-Q4_K_M.gguf"), of_gguf("llama-2-7b.f16.gguf")
    (('qwen2.5-7b', 'q4_k_m'), ('llama-2-7b', 'fp16'))
    """
    if exists(model):  # noqa: PTH110
        return model, None
    named = re.split(r"[\\/]", model)[-1]
    ending = ENDING.search(named) or WIDE_TYPE.search(named)
    if ending is None:
        return shipped_name(named), None
    stated = ending[1].lower()
    return shipped_name(named[: ending.start()]), GGML_CACHES.get(stated, stated)


def shipped_name(name: str) -> str:
    """Find the shipped model of a repository, or return a path as it is."""
    if exists(name):  # noqa: PTH110
        return name
    shape, dtype = known_as(name)
    if shape is None:
        return name.rstrip("/").rpartition("/")[2].lower()
    return shape if dtype is None or find_model(name) == find_model(shape) else name


def _integer(name: str, options: Mapping[str, str | None]) -> int:
    value = options[name]
    if value is None or not value.isascii() or not value.isdigit() or len(value) > 15 or int(value) < 1:
        raise InputError(f"command: {name} {shown(value)} given; allowed: an integer from 1")
    return int(value)


def _share(name: str, options: Mapping[str, str | None]) -> float:
    value = options[name]
    try:
        return as_share(name, float(value or "nan"))
    except ValueError:
        raise InputError(f"command: {name} {shown(value)} given; allowed: a share, such as 0.9") from None


def _named(field: str, name: str, options: Mapping[str, str | None], known: Mapping[str, str]) -> dict[str, str]:
    """Read a type; the default of an engine leaves the field out."""
    value = options.get(name, "auto")
    if value == "auto":
        return {}
    if value is None or value not in known:
        raise InputError(f"command: {name} {shown(value)} given; allowed for a plan: auto, {', '.join(known)}")
    return {field: known[value]}
