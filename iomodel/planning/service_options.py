"""Options of a service and of its steps, documented once for all functions that take them as keywords."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, cleandoc, signature
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar

from iomodel.common.keywords import refuse_unknown
from iomodel.planning.engines import AUTO

if TYPE_CHECKING:
    from iomodel.algorithms import AlgorithmLike
    from iomodel.planning.engines import Engine
    from iomodel.planning.prefix_cache import PrefixCache
    from iomodel.planning.speculation import Speculation
    from iomodel.planning.step.lora import Lora

F = TypeVar("F", bound=Callable[..., Any])
MARK = "**service"
"""The entry of a docstring in whose place the options are listed."""
WIDTH, SPACE = 112, "    "
"""Width of the lines of a docstring, and indentation of its entries."""
DEFAULTS = {"engine": AUTO}
"""Defaults of options other than None."""


class StepOptions(TypedDict, total=False):
    """Options that the time of one step depends on; :class:`ServiceOptions` documents each."""

    dtype: str | None
    weight_dtype: str | None
    kv_dtype: str | None
    linear_dtype: str | None
    precision: str | None
    page_size: int | None
    attention_algorithm: AlgorithmLike | None
    lora: Lora | None


class CapacityOptions(StepOptions, total=False):
    """Options of steps and of the memory of devices."""

    memory_utilization: float | None
    overhead_bytes: int | str | None
    engine: Engine | str | None
    step_tokens: int | None
    step_requests: int | None
    moe_backend: str | None


class ServiceOptions(CapacityOptions, total=False):
    """Options of a service.

    Parameters
    ----------
    dtype : str, optional
        Type of the activations; by default that of the released weights, or bf16 if these are quantised or fp32.
    weight_dtype : str, optional
        Type of the matrices in HBM; by default as released if quantised, else `dtype`. Routers and the output layer
        stay in `dtype`.
    kv_dtype : str, optional
        Type of the cache, and of the keys of indexers, or two, of K and of V, as "q8_0/q4_0"; by default that which
        the checkpoint recommends, or `dtype`.
    linear_dtype : str, optional
        Type of the products of linear layers, "fp4" among others; by default that of fp8 and nvfp4 weights on a device
        with such products, else `dtype`.
    precision : str, optional
        Types in one name: "bf16" and "fp8" set weights and cache, "fp4" weights in nvfp4 and a cache in fp8, "int8"
        weights and products (W8A8), "mxfp4" and "int4" weights alone; types given beside it take precedence.
    page_size : int, optional
        Tokens per page of the cache [tokens].
    attention_algorithm : str or Algorithm, optional
        One of :func:`iomodel.list_algorithms`, or a declaration; by default the fastest of those with a preference.
    lora : Lora, optional
        Adapters of low rank that requests use.
    memory_utilization : float, optional
        Usable share of a device's memory [-]; by default 0.9, or that of the engine.
    overhead_bytes : int, optional
        Memory for anything but weights and cache on each device [B]; by default 2 GiB, or estimated for the engine.
    engine : str, optional
        Engine whose memory, blocks, batches and host time are assumed: "vllm", "sglang" or "tensorrt-llm"; by default
        "auto", vLLM on devices that it runs on. None is a server without an engine.
    step_tokens : int, optional
        Most tokens of a step of the engine, ``max_num_batched_tokens`` of vLLM; by default its own [tokens].
    step_requests : int, optional
        Most requests in a step of the engine, ``max_num_seqs`` of vLLM; by default its own [-].
    moe_backend : str, optional
        Kernels that multiply experts in mxfp4, and pad them under an engine: "marlin", "triton" or "flashinfer"; by
        default those of the engine, or of vLLM without one.
    prefix_cache : PrefixCache, optional
        Tokens of prompts that are cached before their prefill: a shared prefix, or a hit rate.
    speculation : Speculation, optional
        Drafts that the model verifies in each step, and their acceptance.
    """

    prefix_cache: PrefixCache | None
    speculation: Speculation | None


class LayoutOptions(TypedDict, total=False):
    """Degrees of the layout of a replica, in place of a :class:`iomodel.Layout`.

    Parameters
    ----------
    tensor_parallel : int, optional
        Ranks that divide the heads and the widths of each layer; also ``tp``.
    pipeline_parallel : int, optional
        Stages that divide the layers; also ``pp``.
    expert_parallel : int, optional
        Ranks that divide the experts of each layer; also ``ep``.
    decode_context_parallel : int, optional
        Ranks that divide the tokens of the cache; also ``dcp``.
    redundant_experts : int, optional
        Experts with a second copy.
    devices_per_node : int, optional
        Devices of a node; by default all that links join.
    network_bandwidth : float or str, optional
        Bandwidth of a device to those of other nodes, such as "50GB/s" [B/s].
    """

    tensor_parallel: int | None
    pipeline_parallel: int | None
    expert_parallel: int | None
    decode_context_parallel: int | None
    redundant_experts: int | None
    devices_per_node: int | None
    network_bandwidth: float | str | None


class PlanOptions(ServiceOptions, LayoutOptions, total=False):
    """Options of a service with the layout of its replicas."""


class ServiceOption(NamedTuple):
    """One option.

    `kind` is its type in the words of a docstring, `annotation` its type in the words of a signature.
    """

    name: str
    kind: str
    annotation: str
    doc: str
    default: str | None = None


@cache
def options_of(group: type) -> dict[str, ServiceOption]:
    """Return the options of a group by name, in the order of its signature.

    >>> options_of(StepOptions)["page_size"][1:]
    ('int, optional', 'int | None', 'Tokens per page of the cache [tokens].', None)
    """
    entries = [cleandoc(one.__doc__ or "").partition("----------\n")[2] for one in (ServiceOptions, LayoutOptions)]
    docs: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in "\n".join(entries).splitlines():
        if line.startswith(" "):
            lines.append(line.strip())
        else:
            names, _, kind = line.partition(" : ")
            lines = [kind]
            docs |= dict.fromkeys(names.split(", "), lines)
    found = {}
    for name, annotation in group.__annotations__.items():
        kind, *texts = docs.get(name, [""])  # Python -OO has no docstrings
        found[name] = ServiceOption(name, kind, annotation.__forward_arg__, " ".join(texts), DEFAULTS.get(name))
    return found


def takes(group: type) -> Callable[[F], F]:
    """List the options of a group in the signature and the docstring of a function that takes them as ``**service``."""

    def listing(function: F) -> F:
        options, own = options_of(group).values(), signature(function)
        flat = [
            Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=option.annotation)
            for option in options
        ]
        shown: Any = function
        shown.__signature__ = own.replace(parameters=[*list(own.parameters.values())[:-1], *flat])
        entries = "\n".join(
            f"{option.name} : {option.kind}\n{fill(option.doc, WIDTH, initial_indent=SPACE, subsequent_indent=SPACE)}"
            for option in options
        )
        shown.__doc__ = cleandoc(function.__doc__ or "").replace(MARK, entries)
        return function

    return listing


def check_names(function: Callable[..., Any], service: Mapping[str, Any]) -> None:
    """Raise UnknownKeywordError if an option is not listed in the signature of a function."""
    refuse_unknown(function.__name__, service, signature(function).parameters)
