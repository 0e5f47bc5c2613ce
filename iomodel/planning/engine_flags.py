"""Command line of a serving engine for a plan."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from math import floor

from iomodel.common.display import Result, Table
from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice
from iomodel.errors import InputError, shown
from iomodel.models.registry import model as find_model
from iomodel.models.spec import ModelSpec
from iomodel.planning.engine_options import ENGINES, OptionNames
from iomodel.planning.engines import as_engine, command_name, engines_on, free_memory
from iomodel.planning.plan_result import Plan
from iomodel.planning.speculation import FREE, OWN
from iomodel.workloads.dtypes import served

HUB = "https://huggingface.co/"
DIGITS = 10_000
"""Shares are rounded down to this part of one."""
CONFIG = "config.yaml"
VLLM_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks of adapters that vLLM takes (vllm/config/lora.py)."""

Flag = tuple[str, str | None]


@dataclass(frozen=True)
class EngineFlags(Result):
    """Command line that starts one replica of a plan.

    Attributes
    ----------
    engine : str
        ``vllm``, ``sglang`` or ``trtllm``.
    command : str
        Command line of one replica.
    config : str
        Text of the YAML file that the command line names; empty without one.
    replicas, devices : int
        Number of replicas, and devices of each [-].
    notes : tuple of str
        Settings of the plan that the command line does not hold.
    """

    engine: str
    command: str
    config: str
    replicas: int
    devices: int
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The command line as a shell script, with the file that it needs and the notes as comments."""
        lines = [f"# {self.replicas:,} x {self.devices:,} devices"]
        lines += [f"# {note}" for note in self.notes]
        if self.config:
            lines += [f"cat > {CONFIG} <<'END'", self.config.rstrip(), "END"]
        return "\n".join([*lines, self.command])

    def tables(self) -> list[Table | str]:
        """Return the text."""
        return [self.text]


@strict
def engine_flags(plan: Plan, engine: str) -> EngineFlags:
    """Write the command line of a serving engine for one replica of a plan.

    The options are documented by `vLLM <https://docs.vllm.ai/en/latest/configuration/engine_args.html>`_, `SGLang
    <https://docs.sglang.io/docs/advanced_features/server_arguments>`_ and `TensorRT-LLM
    <https://nvidia.github.io/TensorRT-LLM/commands/trtllm-serve.html>`_. Shares of the memory are those that leave the
    same bytes for the cache; batches of data-parallel groups are divided where an engine counts each group.

    Parameters
    ----------
    plan : Plan
        Result of :func:`iomodel.plan`.
    engine : {"vllm", "sglang", "trtllm"}
        The engine; ``"tensorrt-llm"`` is ``"trtllm"``.

    Raises
    ------
    UnknownNameError, InputError
        The engine is unknown; it does not run on the device or takes no such weights there; it has no option for the
        layout or the type of the cache.

    Examples
    --------
    >>> import iomodel
    >>> found = iomodel.plan("llama-3-8b", "h100-sxm5", prompt=2048, output=256, batch=64, engine="sglang")
    >>> iomodel.planning.engine_flags(found, "sglang").command  # doctest: +NORMALIZE_WHITESPACE
    'python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct --max-running-requests 64
    --context-length 2304 --mem-fraction-static 0.8342'
    """
    if not isinstance(plan, Plan):
        raise InputError(f"plan: {shown(plan)} given; allowed: the result of iomodel.plan")
    names = ENGINES[as_choice("engine", command_name(engine), ENGINES)]
    _check_device(plan, names)
    flags = [*_layout(plan, names), *_sizes(plan, names), *_types(plan, names), *_speculation(plan, names)]
    flags += _adapters(plan, names)
    config = "\n".join(_file(plan)) if names.name == "trtllm" else ""
    if config:
        flags.append((names.options["file"], CONFIG))
    words = [word for name, value in flags for word in (name, value) if word is not None]
    command = " ".join([names.launch, shlex.quote(hub_name(plan.prefill.model)), *map(shlex.quote, words)])
    return EngineFlags(names.name, command, config, plan.replicas, plan.layout.devices, tuple(_notes(plan, names)))


def _check_device(plan: Plan, names: OptionNames) -> None:
    """Raise InputError unless an engine runs on the device of a plan, with its weights."""
    architecture = plan.decode.hardware.architecture or ""
    able = [str(command_name(name)) for name in engines_on(plan.decode.hardware)]
    if names.name not in able:
        allowed = ", ".join(able) or "none of these engines"
        raise InputError(f"engine: {names.name} given for {plan.hardware}; allowed: {allowed}")
    if plan.decode.weight_dtype == "nvfp4" and not architecture.startswith(names.nvfp4):
        several = ", ".join(each.name for each in ENGINES.values() if architecture.startswith(each.nvfp4))
        raise InputError(
            f"weight_dtype: 'nvfp4' given for {plan.hardware}, which {names.name} does not run there; allowed: another "
            f"type, or the engine {several}"
        )


def hub_name(model: ModelSpec) -> str:
    """Return the repository of a model on the Hugging Face hub, or its name without one."""
    addresses = (source.url for source in model.sources if source.url and source.url.startswith(HUB))
    paths = (address.removeprefix(HUB).split("/") for address in addresses)
    return next(("/".join(path[:2]) for path in paths if len(path) > 1), model.label)


def _layout(plan: Plan, names: OptionNames) -> Iterator[Flag]:
    layout, options = plan.layout, names.options
    tensor = layout.ranks if names.all_ranks else layout.tensor_parallel
    if tensor > 1:
        yield options["tensor"], str(tensor)
    if layout.pipeline_parallel > 1:
        yield options["pipeline"], str(layout.pipeline_parallel)
    if layout.data_parallel > 1 and "data" in options:
        yield options["data"], str(layout.data_parallel)
        if "data attention" in options:
            yield options["data attention"], None
    if layout.decode_context_parallel > 1:
        as_engine(names.name).check_cache(plan.prefill.model, layout)  # type: ignore[union-attr]
        yield options["context"], str(layout.decode_context_parallel)
        yield "--dcp-comm-backend", "a2a"  # one exchange in place of a gather and a reduce-scatter
    if layout.expert_parallel > 1:
        if names.name != "vllm":
            yield options["experts"], str(layout.expert_parallel)
        elif layout.expert_parallel == layout.ranks:
            yield options["experts"], None
        else:
            raise InputError(
                f"layout.expert_parallel: {layout.expert_parallel} given; allowed with vllm: 1, or all "
                f"{layout.ranks} ranks of a stage"
            )
    yield from _copies(layout.redundant_experts, names)


def _copies(copies: int, names: OptionNames) -> Iterator[Flag]:
    """List the options of copies of experts."""
    if not copies:
        return
    if names.name == "trtllm":
        raise InputError(f"layout.redundant_experts: {copies} given; allowed with trtllm: 0, or vllm, sglang")
    if "copies" in names.options:
        yield names.options["copies"], str(copies)
        return
    yield "--enable-eplb", None
    yield "--eplb-config", json.dumps({"num_redundant_experts": copies})


def _sizes(plan: Plan, names: OptionNames) -> Iterator[Flag]:
    groups = 1 if names.name == "sglang" else plan.layout.data_parallel  # SGLang counts the requests of all groups
    yield names.options["batch"], str(-(-plan.batch // groups))
    yield names.options["tokens"], str(plan.prompt + plan.output)
    yield names.options["memory"], f"{memory_share(plan, names.name):g}"


def memory_share(plan: Plan, engine: str) -> float:
    """Compute the share of the memory that is passed to an engine, rounded down.

    vLLM takes the share of everything that it may use, SGLang that of weights and caches, and TensorRT-LLM the share
    of the caches in what weights and buffers leave.
    """
    fit = plan.memory
    share = fit.usable / fit.capacity
    if engine == "sglang":
        whole = fit.capacity if plan.engine != engine else free_memory(plan.decode.hardware, plan.layout)
        share = (fit.usable - fit.overhead) / whole
    elif engine == "trtllm":
        share = (fit.usable - fit.weights - fit.overhead) / (fit.capacity - fit.weights - fit.overhead)
    return floor(share * DIGITS + 1e-6) / DIGITS


def _types(plan: Plan, names: OptionNames) -> Iterator[Flag]:
    decode, model, options = plan.decode, plan.prefill.model, names.options
    if decode.dtype != served(model.dtype) and "dtype" in options:
        yield options["dtype"], names.dtypes.get(decode.dtype, decode.dtype)
    if decode.weight_dtype == "fp8" and model.dtype != "fp8" and "weights" in options:
        yield options["weights"], "fp8"
    if decode.kv_dtype != decode.dtype:
        if decode.kv_dtype not in names.kv_dtypes:
            allowed = ", ".join([decode.dtype, *names.kv_dtypes])
            raise InputError(f"kv_dtype: {decode.kv_dtype!r} given; allowed with {names.name}: {allowed}")
        if "cache" in options and "file" not in options:
            yield options["cache"], names.kv_dtypes[decode.kv_dtype]
    if plan.page_size is not None and "page" in options:
        yield options["page"], str(plan.page_size)
    if plan.prefix_cache is not None and "prefix" in options:
        yield options["prefix"], None


def _speculation(plan: Plan, names: OptionNames) -> Iterator[Flag]:
    drafts = plan.speculation
    if drafts is None or names.name == "trtllm":
        return
    own = drafts.draft in (OWN, FREE)
    repository = drafts.draft if own else hub_name(find_model(drafts.draft))
    if names.name == "vllm":
        kind = {"method": drafts.draft} if own else {"model": repository}
        yield "--speculative-config", json.dumps({**kind, "num_speculative_tokens": drafts.tokens})
        return
    yield "--speculative-algorithm", {OWN: "NEXTN", FREE: "NGRAM"}.get(drafts.draft, "STANDALONE")
    if not own:
        yield "--speculative-draft-model-path", repository
    if drafts.draft != FREE:
        yield "--speculative-num-steps", str(drafts.tokens)
        yield "--speculative-eagle-topk", "1"
    yield "--speculative-num-draft-tokens", str(drafts.tokens + (drafts.draft != FREE))


def _adapters(plan: Plan, names: OptionNames) -> Iterator[Flag]:
    """List the options of adapters; vLLM takes the next of its ranks, and TensorRT-LLM has them in its file."""
    lora = plan.lora
    if lora is None or names.name == "trtllm":
        return
    yield "--enable-lora", None
    if names.name == "vllm":
        rank = next((rank for rank in VLLM_RANKS if rank >= lora.rank), None)
        if rank is None:
            raise InputError(f"lora.rank: {lora.rank} given; allowed with vllm: up to {VLLM_RANKS[-1]}")
        yield "--max-loras", str(lora.adapters)
        yield "--max-lora-rank", str(rank)
        return
    yield "--max-loras-per-batch", str(lora.adapters)
    yield "--max-lora-rank", str(lora.rank)
    yield "--lora-target-modules", "all"


def _file(plan: Plan) -> Iterator[str]:
    """List the lines of the file of TensorRT-LLM, for what has no option."""
    cache = []
    if plan.decode.kv_dtype in ("fp8", "nvfp4"):
        cache.append(f"  dtype: {plan.decode.kv_dtype}")
    if plan.page_size is not None:
        cache.append(f"  tokens_per_block: {plan.page_size}")
    if plan.prefix_cache is not None:
        cache.append("  enable_block_reuse: true")
    if plan.layout.data_parallel > 1:
        yield "enable_attention_dp: true"
    if cache:
        yield "kv_cache_config:"
        yield from cache
    drafts = plan.speculation
    if drafts is not None and drafts.draft == OWN:
        yield "speculative_config:"
        yield "  decoding_type: MTP"
        yield f"  num_nextn_predict_layers: {drafts.tokens}"
    if plan.lora is not None:
        yield "lora_config:"
        yield f"  max_lora_rank: {plan.lora.rank}"
        yield f"  max_loras: {plan.lora.adapters}"
        yield f"  lora_target_modules: [{', '.join(_adapted(plan))}]"


def _adapted(plan: Plan) -> Iterator[str]:
    """List TensorRT-LLM's names of the layers with adapters, which its server needs (tensorrt_llm/lora_helper.py)."""
    yield from ("attn_q", "attn_k", "attn_v", "attn_dense")
    dense = [layer.mlp for layer in plan.prefill.model.counted if layer.mlp is not None and not layer.mlp.experts]
    if dense:
        yield from ("mlp_h_to_4h", "mlp_4h_to_h")
    if any(mlp.gated for mlp in dense):
        yield "mlp_gate"


def _notes(plan: Plan, names: OptionNames) -> Iterator[str]:
    weights, model = plan.decode.weight_dtype, plan.prefill.model
    online = weights == "fp8" and "weights" in names.options
    if weights not in (model.dtype, served(model.dtype)) and not online:
        yield f"name a checkpoint with weights in {weights} in place of the model"
    if plan.speculation is not None and plan.speculation.draft != OWN and names.name == "trtllm":
        yield f"add speculative_config for {plan.speculation.tokens} draft tokens to the file"
    if plan.layout.devices > 8:
        yield f"{plan.layout.devices} devices are more than a common server: add the options for several nodes"
