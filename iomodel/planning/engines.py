"""Serving engines: the memory that each takes from a device, its blocks, and how it fills a step.

Engines mean different things by the share of memory that they are given:

- vLLM: the share of the whole memory for weights, activations, communicators and cache (vllm/v1/worker/gpu_worker.py).
- SGLang: the share for weights and cache of the memory that is free before the weights are loaded; activations and
  graphs have the rest (sglang/srt/model_executor/model_runner_kv_cache_mixin.py).
- TensorRT-LLM: the share for the cache of the memory that is free once the model has run
  (``kv_cache_free_gpu_mem_fraction``, docs/source/performance/perf-overview.md at commit 00f3768).

The memory that an engine keeps for anything but weights and cache is approximate, with an interval. Each part follows
an allocation of the engine; the constants were read from start-up logs among the calibration rows
(tests/measured/serving.csv), named beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any, Literal, NamedTuple

from iomodel.devices.device import Hardware
from iomodel.devices.edits import capacity
from iomodel.errors import InputError, SpecError, UnknownNameError, shown
from iomodel.errors.synonyms import same
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.spec import ModelSpec
from iomodel.planning.step.layout import Layout

GIB = 2**30
LARGE = 70 * GIB
"""Memory from which vLLM takes more requests and tokens by default [B] (vllm/engine/arg_utils.py)."""
SORTED, SCANNED, FUSED = 38.4, 21.0, 12.4
"""Memory of vLLM's sampler for each request and entry of the vocabulary [B], by what applies top-k and top-p.

A sort needs logits in two types, their order, and the cumulative probabilities of top-p: Llama 3.1 8B and Qwen3 32B;
Llama 3 8B of 2024 has the same. A kernel that scans the logits: gpt-oss-20b and Gemma 4 26B under 0.19. FlashInfer's
kernel: two logs of Qwen2 7B on one A100, at a quarter and a half of the memory (tests/measured/startup_logs_2.csv)."""
GRAPH_POOL = int(0.36 * GIB)
"""Memory that vLLM keeps for graphs within its share [B]: the median of what seven logs of releases from 0.21 on
estimate, 0.14 to 0.61 GiB (gpustack/runner#251, noonghunna/club-3090#127, aivrar/vllm-windows-build#4 among them)."""
STEPS_OF_MEMORY = (
    (20, 2048, (8, 8)),
    (35, 2048, (24, 80)),
    (60, 4096, (32, 160)),
    (160, 8192, (256, 512)),
    (inf, 16384, (512, 512)),
)
"""SGLang's defaults by memory below a number of GiB: tokens of a step, and requests of the largest graph on fewer than
four ranks and on more (``_handle_gpu_memory_settings`` of sglang/srt/server_args.py)."""
FLOOR = 10 * GIB
"""Memory that SGLang keeps at least on devices of more than 60 GiB [B] (the same)."""
STEP_HOST = 6e-4
"""Time between steps in which the device waits for the host that prepares them meanwhile [s]: of the tenths of a
millisecond the one with the least median error of times per token, without an engine, over the 39 open rows of
tests/measured/serving*.csv with fewer than 16 clients under TensorRT-LLM, SGLang and gpt-fast."""


@dataclass(frozen=True)
class Engine:
    """A serving engine with its default settings.

    Attributes
    ----------
    name : str
        Name of the engine.
    share_of : "all", "weights and cache" or "cache"
        Memory that the utilisation is a share of: see the module.
    share : float or None
        Default utilisation [-]; None if it follows from the tokens of a step.
    block : int
        Tokens of a block of the cache [tokens].
    step_tokens : int
        Most tokens of a step on a large device [tokens].
    requests : int
        Most requests in a step on a large device [-].
    mixes : bool
        Prompts and decode steps share a step.
    architectures : tuple of str
        First letters of the architectures that the engine runs on.
    divides : "keys and values", "latents" or None
        Caches whose tokens the engine divides among ranks in the server that also prefills.
    shares_blocks : bool
        Layers of several kinds draw blocks of one size, as in :mod:`iomodel.planning.cache_blocks`.
    state_ratio : Fraction or None
        Memory of the states over that of the caches, if states have a pool of their own [-].
    state_slots : int
        Places in that pool for each request in flight: for its state, and for those of prefixes [-].
    window_ratio : Fraction or None
        Tokens of the pool of layers with windows over those of other layers, if these have a pool of their own [-].
    keeps_windows : bool
        Layers with a window or chunks keep every token, as layers without do.
    narrow_states : frozenset of str
        Kinds of recurrences whose states have 16 bits an element, where the checkpoint states no type.
    step_host : float
        Time of the host between steps, in which the device waits [s].
    cache_bytes, cache_tokens : int or None
        Memory of the caches that a flag sets in place of the rest [B], and the most tokens that one allows [tokens].
    state_places : int or None
        Places of a pool of states that a flag sets in place of its share [-].
    graph : int or None
        Most requests of a graph that a flag sets [-].
    steps_of_memory : tuple
        Tokens of a step, and requests of the largest graph, by the memory of a device, or a quarter below 70 GiB.
    small_steps : tuple of str
        Words in the names of devices that take small steps, however large their memory is.
    logit_bytes : float
        Memory of the sampler for each request and entry of the vocabulary [B].
    graphs : int
        Memory for graphs within the share [B].
    tokens_of_requests : bool
        The log counts the tokens of as many longest requests as fit, in place of those of the blocks.
    rows_apart : bool
        Experts in nvfp4 on Blackwell have kernels of their own for the work on rows, apart from their products.
    scans : frozenset of str
        Architectures on which one kernel, FlashInfer's, computes all chunks of a gated delta rule.
    chunk_work : tuple of (str, float)
        Time of the kernels over chunks of a delta rule over that of most engines, by architecture [-].
    rotation_clocks : float
        Least time of an SM for each head of each token whose Q and K a kernel rotates [clk].
    tuned : bool
        A benchmark sets the most requests and tokens of a step, as :mod:`iomodel.planning.bench_limits` computes them.
    """

    name: str
    share_of: Literal["all", "weights and cache", "cache"]
    share: float | None
    block: int
    step_tokens: int
    requests: int
    mixes: bool
    architectures: tuple[str, ...] = ("sm_", "gfx")
    divides: Literal["keys and values", "latents"] | None = None
    shares_blocks: bool = False
    state_ratio: Fraction | None = None
    state_slots: int = 1
    window_ratio: Fraction | None = None
    keeps_windows: bool = False
    narrow_states: frozenset[str] = frozenset()
    step_host: float = STEP_HOST
    cache_bytes: int | None = None
    cache_tokens: int | None = None
    state_places: int | None = None
    graph: int | None = None
    steps_of_memory: tuple[tuple[float, int, tuple[int, int]], ...] = ()
    small_steps: tuple[str, ...] = ()
    logit_bytes: float = SORTED
    graphs: int = 0
    tokens_of_requests: bool = False
    rows_apart: bool = False
    scans: frozenset[str] = frozenset()
    chunk_work: tuple[tuple[str, float], ...] = ()
    rotation_clocks: float = 0.0
    tuned: bool = False

    @property
    def asked(self) -> str:
        """Name by which :func:`as_engine` finds the engine, as its benchmark runs it if that sets the limits."""
        return BENCH if self.tuned else self.name

    def check_cache(self, model: ModelSpec, layout: Layout) -> None:
        """Raise InputError for a layout that divides the tokens of a cache where the engine does not.

        vLLM divides latents, and keys and values (docs/serving/context_parallel_deployment.md); SGLang latents alone
        (docs/advanced_features/dcp); TensorRT-LLM latents in servers that only decode (docs/source/features/helix.md).
        """
        ranks = layout.decode_context_parallel
        if ranks == 1 or self.divides == "keys and values":
            return
        whole = any(layer.attention is not None and not layer.attention.latent for layer in model.counted)
        if self.divides is None or whole:
            able = ", ".join(engine.name for engine in ENGINES.values() if engine.divides and not whole) or "vllm"
            raise InputError(
                f"decode_context_parallel: {ranks} given for {model.title} with {self.name}; allowed: 1, or the engine "
                f"{able}"
            )


ENGINES = {
    "vllm": Engine(
        "vllm",
        "all",
        0.9,
        16,
        8192,
        1024,
        True,
        divides="keys and values",
        shares_blocks=True,
        narrow_states=frozenset({"mamba1", "mamba2", "gated_deltanet", "short_convolution"}),
        step_host=1.1e-3,
        small_steps=("a100",),
    ),
    "sglang": Engine(
        "sglang",
        "weights and cache",
        None,
        1,
        8192,
        2048,
        False,
        divides="latents",
        state_ratio=Fraction(9, 10),
        state_slots=5,
        window_ratio=Fraction(8, 10),
        steps_of_memory=STEPS_OF_MEMORY,
        chunk_work=(("sm_90", 1.4),),
    ),
    "tensorrt-llm": Engine(
        "tensorrt-llm", "cache", 0.9, 32, 8192, 2048, True, ("sm_",), keeps_windows=True, rotation_clocks=63.0
    ),
}
"""Engines with the defaults of their releases of 2025: vLLM 0.11, SGLang 0.5, TensorRT-LLM 1.0.

The states of vLLM: ``MambaStateDtypeCalculator`` of vllm/model_executor/layers/mamba/mamba_utils.py. The pools of
SGLang: ``mamba_full_memory_ratio``, five places for each running request with the radix cache
(sglang/srt/mem_cache/kv_cache_configurator.py; the log of sgl-project/sglang#38846), and ``swa_full_tokens_ratio``.
The chunks of SGLang: its prompts under a delta rule on an H100, working rows of tests/measured/recurrent_layers.csv.
The windows of TensorRT-LLM: without ``max_attention_window`` its cache keeps the whole of a sequence in each layer
(``KVCacheManager`` of tensorrt_llm/_torch/pyexecutor/resource_manager.py).
The rotation of TensorRT-LLM: its kernel (applyBiasRopeUpdateKVCacheV2 of
cpp/tensorrt_llm/kernels/unfusedAttentionKernels) loads for each head the cosine and sine of each pair by itself, 8
bytes at a stride of 64, whatever the width of a head; the clocks are the median over prefills of 1,536 to 4,096 tokens
with grouped heads on B200, B300, GB200 and GB300 (11 working rows of tests/measured/published_9.csv).
The host of vLLM: these releases schedule a step, and prepare its inputs, once the tokens of the last one are there,
where SGLang and TensorRT-LLM do so meanwhile; 1.1 ms is the median of what the times per token of Llama 3.1 70B under
vLLM on H200 lack (14 calibration rows of tests/measured/serving.csv, 4 to 64 clients).
"""
RELEASES: dict[str, tuple[tuple[tuple[int, ...], dict[str, Any]], ...]] = {
    "vllm": (
        ((0, 14), {"step_host": STEP_HOST}),
        ((0, 17), {"scans": frozenset({"sm_90"})}),
        ((0, 19), {"logit_bytes": SCANNED}),
        ((0, 21), {"logit_bytes": FUSED, "share": 0.92, "graphs": GRAPH_POOL, "tokens_of_requests": True}),
        ((0, 22), {"scans": frozenset({"sm_90", "sm_100", "sm_103"})}),
    ),
    "sglang": (((0,), {"window_ratio": None}), ((0, 5), {"window_ratio": ENGINES["sglang"].window_ratio})),
}
"""Changes of the defaults of engines, each with the first release that has it.

vLLM schedules a step while the last one runs since 0.14 (vllm-project/vllm#27614); since 0.21 graphs are within the
share, which is 0.92, and FlashInfer samples (#30515, #40376). Up to 0.11.0 it samples as well where it happens to be
installed (#26859), which is not assumed. FlashInfer's kernel of the gated delta rule came for Hopper with #32846, for
Blackwell with #40717.
"""
OTHER_NAMES = {"trtllm": "tensorrt-llm", "trt": "tensorrt-llm"}
"""Names of engines by the first word of their commands, and by their names in InferenceX."""
BENCH = "trtllm-bench"
"""The benchmark of TensorRT-LLM, and the engine as which it runs."""
AUTO = "auto"
"""Name of the engine that plans assume where none is given."""
GGML = "llama.cpp"
"""Name of the program that runs files of its own types: a server without an engine, on all of the memory."""
ASSUMED = replace(ENGINES["vllm"], step_host=STEP_HOST)
"""That engine: memory, blocks and batches of vLLM, which most servers run, and the host of engines that prepare a step
meanwhile, as vLLM does since release 0.14 (vllm-project/vllm#27614)."""
NAMED = {
    AUTO: ASSUMED,
    "none": None,
    GGML: None,
    BENCH: replace(ENGINES["tensorrt-llm"], tuned=True, rows_apart=True),
}
"""Names that stand for an assumption, or for an engine as its benchmark runs it.

The benchmark leaves ``MoeConfig.backend`` at CUTLASS, the default of release 1.0, or sets it
(docs/source/developer-guide/perf-overview.md at 03e27c7); servers take kernels of trtllm-gen, as vLLM and SGLang do."""


def command_name(engine: object) -> object:
    """Return the name of an engine in its command; anything else unchanged.

    >>> command_name("tensorrt-llm"), command_name("vllm")
    ('trtllm', 'vllm')
    """
    if not isinstance(engine, str):
        return engine
    return next((short for short, name in OTHER_NAMES.items() if name == engine), engine)


def engine_name(engine: object) -> object:
    """Return the name of an engine or an assumption that a synonym stands for; anything else unchanged.

    >>> engine_name("ollama"), engine_name("vllm==0.24")
    ('llama.cpp', 'vllm==0.24')
    """
    return same(engine, NAMED) or engine if isinstance(engine, str) else engine


def as_engine(engine: object) -> Engine | None:
    """Look up an engine by name; None and "none" are none.

    >>> as_engine("vllm").block
    16

    The benchmark of TensorRT-LLM sets limits of its own:

    >>> as_engine("trtllm-bench").name, as_engine("trtllm-bench").tuned
    ('tensorrt-llm', True)

    A release follows the name as in a requirement of pip:

    >>> [as_engine(name).share for name in ("vllm", "vllm==0.20", "vllm==0.24.1")]
    [0.9, 0.9, 0.92]
    """
    if engine is None or isinstance(engine, Engine):
        return engine
    if isinstance(named := engine_name(engine), str) and named in NAMED:
        return NAMED[named]
    name, release = name_and_release(engine) if isinstance(engine, str) else ("", "")
    found = ENGINES.get(name)
    if found is None:
        raise UnknownNameError("engine", engine, (*NAMED, *ENGINES))
    return of_release(found, release) if release else found


def name_and_release(engine: str) -> tuple[str, str]:
    """Split the text of an engine into its name on file and its release, which is empty where none is given.

    >>> name_and_release("trtllm"), name_and_release("vllm==0.24")
    (('tensorrt-llm', ''), ('vllm', '0.24'))
    """
    name, _, release = engine.partition("==")
    return OTHER_NAMES.get(name, name), release


def of_release(engine: Engine, release: str) -> Engine:
    """Return an engine with the defaults of a release.

    >>> of_release(ENGINES["sglang"], "0.4.4").window_ratio is None
    True
    >>> of_release(ENGINES["tensorrt-llm"], "0.17")
    Traceback (most recent call last):
        ...
    iomodel.errors.InputError: engine: 'tensorrt-llm==0.17' given; allowed: tensorrt-llm, or a release of vllm or sglang
    """
    numbers = re.match(r"\d{1,4}(\.\d{1,4}){0,3}", release)
    if engine.name not in RELEASES or numbers is None:
        given, able = shown(f"{engine.name}=={release}"), " or ".join(RELEASES)
        raise InputError(f"engine: {given} given; allowed: {engine.name}, or a release of {able}")
    version = tuple(int(number) for number in numbers[0].split("."))
    for since, changes in RELEASES[engine.name]:
        if version >= since:
            engine = replace(engine, **changes)
    return engine


def assumed_on(device: Hardware) -> Engine | None:
    """Return the engine that a plan for a device assumes; none for a simulated device, or one without engines.

    >>> from iomodel.devices.device import hardware
    >>> assumed_on(hardware("mi300x")).name, assumed_on(hardware("tpu-v5e"))
    ('vllm', None)
    """
    return None if device.simulated or ASSUMED.name not in engines_on(device) else ASSUMED


def engines_on(device: Hardware) -> list[str]:
    """Name the engines that run on the architecture of a device.

    >>> from iomodel.devices.device import hardware
    >>> engines_on(hardware("mi300x")), engines_on(hardware("tpu-v5e"))
    (['vllm', 'sglang'], [])
    """
    return [each.name for each in ENGINES.values() if (device.architecture or "").startswith(each.architectures)]


def step_host(engine: Engine | None, device: Hardware) -> float:
    """Return the time of the host between steps, in which the device waits [s]; without an engine that of most.

    >>> from iomodel.devices.device import hardware
    >>> step_host(None, hardware("mi300x")), step_host(ENGINES["vllm"], hardware("mi300x"))
    (0.0006, 0.0011)
    """
    if engine is not None:
        return engine.step_host
    return 0.0 if device.simulated else STEP_HOST


def check_architecture(engine: Engine, device: Hardware) -> None:
    """Raise SpecError if an engine does not run on a device that others run on.

    >>> from iomodel.devices.device import hardware
    >>> check_architecture(ENGINES["tensorrt-llm"], hardware("mi300x"))
    Traceback (most recent call last):
        ...
    iomodel.errors.SpecError: engine: tensorrt-llm given for mi300x; allowed: vllm, sglang
    """
    able = engines_on(device)
    if able and engine.name not in able:
        raise SpecError(f"engine: {engine.name} given for {device.label}; allowed: {', '.join(able)}")


SEEN = 0.99
"""Share of a nominal capacity that the driver offers [-]: 79.18 of 80 GiB (H100), 79.15 of 80 GiB (A100)."""
CONTEXT = int(0.61 * GIB)
"""Memory of the process on a device before anything is allocated [B]: 79.18 GiB less the 78.57 GiB that were free."""
NON_TORCH = int(0.13 * GIB)
"""Memory outside the allocator after the first run, without other ranks [B]: Llama 3.1 8B and Qwen3 32B under vLLM."""
PER_PEER = int(0.41 * GIB)
"""Memory of the communicators for each further rank [B]: Qwen3 32B under vLLM, 0.13 GiB on one H100 and 0.54 on two."""
PER_PLAIN_PEER = int(0.09 * GIB)
"""The same on devices of NVIDIA without multicast over NVLink [B]: three logs of Qwen2 7B on two A100, of one node and
of two; DeepSeek-V2-Lite on four L4 (tests/measured/startup_logs_2.csv)."""
NO_MULTICAST = ("sm_7", "sm_8")
"""First letters of architectures whose links do not add and copy by themselves."""
GRAPHS = (-GIB, GIB)
"""Change of the memory while graphs are captured [B]: -0.88 to 1.03 GiB in logs of vLLM."""


class Reserve(NamedTuple):
    """Memory that an engine may use on a device, and keeps for anything but weights and cache [B]."""

    usable: int
    overhead: int
    low: int | None
    high: int | None
    parts: tuple[tuple[str, int], ...] = ()
    """Parts of the overhead by name [B]."""


def seen_capacity(device: Hardware) -> int:
    """Return the memory that the driver offers [B]."""
    reported = device.memory.hbm.capacity_reported
    return capacity(device) if reported is not None else int(SEEN * capacity(device))


def peer_bytes(device: Hardware, layout: Layout) -> int:
    """Compute the memory of the communicators of a rank with the other ranks [B].

    NCCL keeps more for each of them where links add and copy by themselves: NVLink from Hopper on.

    >>> from iomodel.devices.device import hardware
    >>> pair = Layout(tensor_parallel=2)
    >>> [round(peer_bytes(hardware(name), pair) / GIB, 2) for name in ("h100-sxm5", "a100-sxm4-80gb", "rtx5090")]
    [0.41, 0.09, 0.09]
    """
    kind = device.architecture or ""
    plain = kind.startswith("sm_") and (device.interconnect.per_direction is None or kind.startswith(NO_MULTICAST))
    return (layout.devices - 1) * (PER_PLAIN_PEER if plain else PER_PEER)


def free_memory(device: Hardware, layout: Layout) -> int:
    """Compute the memory that is free before weights are loaded: all but the process and its communicators [B]."""
    return seen_capacity(device) - CONTEXT - peer_bytes(device, layout)


def of_memory(engine: Engine, total: int) -> tuple[int, tuple[int, int]]:
    """Return the tokens of a step, and the requests of the largest graph, on a device with some memory."""
    return next((tokens, graphs) for below, tokens, graphs in engine.steps_of_memory if total < below * GIB)


def step_limits(engine: Engine, device: Hardware) -> tuple[int, int]:
    """Return the most tokens and requests of a step by default: fewer on a device with less memory.

    vLLM counts every A100 among these (vllm/engine/arg_utils.py).

    >>> from iomodel.devices.device import hardware
    >>> [step_limits(ENGINES["sglang"], hardware(name))[0] for name in ("l4", "l40s", "h100-sxm5", "b200")]
    [2048, 4096, 8192, 16384]
    """
    if engine.steps_of_memory:
        return of_memory(engine, capacity(device))[0], engine.requests
    small = capacity(device) < LARGE or any(word in device.label for word in engine.small_steps)
    return engine.step_tokens // (4 if small else 1), engine.requests // (4 if small else 1)


def activation_bytes(layers: Iterable[DecoderLayer], hidden: int, layout: Layout, tokens: int) -> int:
    """Compute the activations of a step at their peak, in the widest layer, in 16 bits [B].

    The MLP holds gate and up, their product, and three rows of the model; attention holds Q, K, V, the output and three
    rows; experts hold the rows that are sent to them in place of those.
    """
    ranks = layout.tensor_parallel
    widest = 0
    for layer in dict.fromkeys(layers):
        if layer.attention is not None:
            heads = -(-layer.attention.heads // ranks)
            kv_heads = -(-layer.attention.kv_heads // ranks)
            width = (heads + kv_heads) * (layer.attention.head_dim + layer.attention.value_dim)
            widest = max(widest, width)
        mlp = layer.mlp
        if mlp is not None and mlp.experts:
            width = mlp.expert_intermediate_size // layout.expert_width
            widest = max(widest, mlp.experts_per_token * (max(2 * width, hidden) + width))
        elif mlp is not None:
            widest = max(widest, 3 * -(-mlp.intermediate_size // ranks))
    return 2 * tokens * (widest + 3 * hidden)


def reserve(
    engine: Engine,
    device: Hardware,
    layers: Iterable[DecoderLayer],
    model: ModelSpec,
    layout: Layout,
    weights: int,
    utilization: float | None,
    limits: tuple[int, int],
    samples: bool = True,
) -> Reserve:
    """Compute the memory that an engine uses and keeps on a device with some weights.

    Parameters
    ----------
    engine : Engine
        The engine.
    device : Hardware
        The device.
    layers : iterable of DecoderLayer
        Layers of the stage.
    model : ModelSpec
        The model.
    layout : Layout
        Parallel layout of the replica.
    weights : int
        Weights on the device [B].
    utilization : float or None
        Share of memory that the engine is given [-]; None for its default.
    limits : (int, int)
        Most tokens and most requests of a step.
    samples : bool
        The device draws tokens: it is in the last stage of a pipeline.
    """
    total = seen_capacity(device)
    budget, requests = limits
    peers = peer_bytes(device, layout)
    forward = activation_bytes(layers, model.hidden_size, layout, budget)
    if engine.share_of == "weights and cache":
        free = free_memory(device, layout)
        own = utilization is None
        graph = engine.graph or of_memory(engine, capacity(device))[1][layout.tensor_parallel >= 4]
        static = static_share(total, layout, budget, graph) if own else Fraction(repr(utilization))
        return Reserve(int(static * free), 0, -peers // 2, CONTEXT)
    share = Fraction(repr(engine.share if utilization is None else utilization))
    if engine.share_of == "all":
        logits = int(engine.logit_bytes * requests * model.vocab_size) if samples else 0
        sampler = logits + 2 * budget * model.hidden_size
        overhead = NON_TORCH + peers + max(forward, sampler) + engine.graphs
        largest = ("activations of a step", forward) if forward > sampler else ("the sampler of a step", sampler)
        parts = ("outside the allocator", NON_TORCH), ("communicators", peers), largest, ("graphs", engine.graphs)
        low, high = overhead - max(forward, sampler) // 4, overhead + GRAPHS[1]
        return Reserve(int(share * total), overhead, low, high, parts)
    kept = CONTEXT + peers + forward
    headroom = int((1 - share) * max(0, total - kept - weights))
    named = ("the process", CONTEXT), ("communicators", peers), ("activations of a step", forward)
    low, high = kept + headroom - forward // 2, kept + headroom + GRAPHS[1]
    return Reserve(total, kept + headroom, low, high, (*named, ("the share that is left free", headroom)))


def static_share(total: int, layout: Layout, tokens: int, requests: int) -> Fraction:
    """Compute SGLang's default share for weights and cache: the rest is for activations and graphs.

    In MiB it keeps 512, 1.5 for each token of a step (of 2048 at least), 2 for each request of the largest graph, and
    128 for each rank (sglang/srt/server_args.py).
    """
    ranks = layout.tensor_parallel * layout.pipeline_parallel
    kept = (512 + Fraction(3, 2) * max(tokens, 2048) + 2 * requests + 128 * ranks) * 2**20
    if total > 60 * GIB:
        kept = max(kept, Fraction(FLOOR))
    return max(Fraction(0), 1 - kept / total)
