"""Options of a service and of its steps, documented once for all functions that take them as keywords."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from iomodel.common.option_groups import Option, listing, options_in
from iomodel.planning.engines import AUTO
from iomodel.timing.parameters import DEFAULT

if TYPE_CHECKING:
    from iomodel.algorithms import AlgorithmLike
    from iomodel.planning.engines import Engine
    from iomodel.planning.prefix_cache import PrefixCache
    from iomodel.planning.speculation import Speculation
    from iomodel.planning.step.layout import Layout
    from iomodel.planning.step.lora import Lora
    from iomodel.timing.parameters import Parameters

F = TypeVar("F", bound=Callable[..., Any])
DEFAULTS: Mapping[str, Any] = {
    "engine": AUTO,
    "scale": 1.0,
    "seed": 0,
    "logits": "last",
    "shared_keys": 0,
    "prompt_tokens": 0,
    "parameters": DEFAULT,
}
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
        stay in `dtype`. A file type of llama.cpp, such as "Q4_K_M", sets the type of each matrix and table.
    kv_dtype : str, optional
        Type of the cache, and of the keys of indexers, or two, of K and of V, as "q8_0/q4_0"; by default that which
        the checkpoint recommends, or `dtype`.
    linear_dtype : str, optional
        Type of the products of linear layers, "fp4" among others; by default that of fp8 and nvfp4 weights on a device
        with such products, else `dtype`.
    precision : str, optional
        Types in one name: "bf16", "fp16" and "fp8" set weights and cache, "fp32" and "tf32" products and
        activations too, "fp4" weights in nvfp4 and a cache in fp8, "int8" weights and products (W8A8), "mxfp4" and
        "int4" weights alone; types given beside it take precedence.
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
        Engine to assume: "vllm", "sglang", "tensorrt-llm", "llama.cpp", "none", or a release as "vllm==0.24". Its
        memory, blocks, batches and host time are assumed; "trtllm-bench" is a run that sets its own limits of a step.
        By default "auto": vLLM on devices that it runs on, "llama.cpp" for weights in its types. None is a server
        without an engine.
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


class NodeOptions(TypedDict, total=False):
    """Options of the nodes of a layout; :class:`LayoutOptions` documents each."""

    devices_per_node: int | None
    network_bandwidth: float | str | None


class LayoutOptions(NodeOptions, total=False):
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


class PlanOptions(ServiceOptions, LayoutOptions, total=False):
    """Options of a service with the layout of its replicas.

    Parameters
    ----------
    layout : Layout, optional
        Parallel layout of a replica, in place of its single degrees.
    """

    layout: Layout | None


class TargetOptions(TypedDict, total=False):
    """Load of a service, targets of its times, and price of its devices.

    Parameters
    ----------
    load : float, optional
        Arrival rate of requests, evenly spaced, that the whole replicas serve [1/s].
    ttft : float or str, optional
        Target of the time to the first token, such as "500ms" [s].
    tpot : float or str, optional
        Target of the time per output token behind the first, such as "50ms" [s].
    price : float or mapping of str to float, optional
        Price of one device, or of each device by name [1/h].
    """

    load: float | None
    ttft: float | str | None
    tpot: float | str | None
    price: float | Mapping[str, float] | None


class LoadedOptions(TargetOptions, PlanOptions, total=False):
    """Options of a service with its load and targets."""


class RequestOptions(TypedDict, total=False):
    """Requests of a simulation: their lengths, and when they arrive.

    Parameters
    ----------
    prompt : int, optional
        Tokens of each prompt, without a trace; with `lengths`, the most.
    output : int, optional
        Tokens of each output, without a trace; with `lengths`, the most.
    arrivals : path or mapping of sequences, optional
        A file of requests: CSV or JSON with columns of these meanings, such as the traces of Azure, Mooncake and
        BurstGPT, or what benchmarks of engines write; or arrays with the columns ``arrival`` [s], ``prompt`` and
        ``output`` [tokens]. With `concurrency` or `load`, only the lengths are used: requests draw rows at random.
    lengths : sequence of two float, optional
        Least and most tokens of prompts and outputs, as shares of `prompt` and `output`, such as (0.8, 1.0): each is
        drawn evenly between them, as in the benchmarks of engines. By default all requests have one length, so that
        the clients of a closed loop stay in step, and all their prompts arrive at once.
    concurrency : int, optional
        Clients of a closed loop: each sends its next request when its last one ends.
    load : float, optional
        Rate of Poisson arrivals [1/s].
    requests : int, optional
        Number of requests; by default all rows of a trace that is replayed, else 1000. Without a trace, `concurrency`
        and `load`, all are there at the start, as in an offline batch.
    scale : float
        Factor on the rate of the arrivals of a trace: 2 halves the times between them.
    seed : int
        Seed of random arrivals and lengths.
    """

    prompt: int | None
    output: int | None
    arrivals: Any
    lengths: Sequence[float] | None
    concurrency: int | None
    load: float | None
    requests: int | None
    scale: float
    seed: int


class SimulationOptions(RequestOptions, PlanOptions, total=False):
    """Options of a service with the requests that are simulated."""


class StepChoices(TypedDict, total=False):
    """Options of one step.

    Parameters
    ----------
    logits : {"last", "all", "none"}
        Rows to which the output layer is applied.
    routing : sequence of int, optional
        Tokens of each expert of a layer; by default expected values of uniform routing.
    shared_keys : int
        First keys that all sequences share. Attention without windows, chunks, indexers or latents then reads them once
        (cascade attention) where that is faster [tokens].
    prompt_tokens : int
        Tokens of a prompt that the step processes beside its sequences, as engines with chunked prefills do [tokens].
    parameters : Parameters
        Parameters of the time model other than the device's figures.
    """

    logits: Literal["last", "all", "none"]
    routing: Sequence[int] | None
    shared_keys: int
    prompt_tokens: int
    parameters: Parameters


class TimedStepOptions(StepChoices, PlanOptions, total=False):
    """Options of a service with those of one step."""


DOCUMENTED = (PlanOptions, TargetOptions, RequestOptions, StepChoices)
"""Groups whose options have a meaning of their own in functions that take all of the group."""


@cache
def options_of(group: type) -> dict[str, Option]:
    """Return the options of a group by name, in the order of its signature.

    >>> options_of(StepOptions)["page_size"][1:]
    ('int, optional', 'int | None', 'Tokens per page of the cache [tokens].', None)
    """
    own = [one for one in DOCUMENTED if one.__annotations__.keys() <= group.__annotations__.keys()]
    return options_in(group, ServiceOptions, LayoutOptions, *own, defaults=DEFAULTS)


def takes(group: type) -> Callable[[F], F]:
    """List the options of a group in the signature and the docstring of a function that takes them as keywords."""
    return listing(options_of(group).values())
