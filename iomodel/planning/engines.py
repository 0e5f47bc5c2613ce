"""Serving engines: the memory that each takes from a device, its blocks, and how it fills a step.

Engines mean different things by the share of memory that they are given:

- vLLM: the share of the whole memory for weights, activations, communicators and cache (vllm/v1/worker/gpu_worker.py).
- SGLang: the share for weights and cache of the memory that is free before the weights are loaded; activations and
  graphs have the rest (sglang/srt/model_executor/model_runner_kv_cache_mixin.py).
- TensorRT-LLM: the share for the cache of the memory that is free once the model has run
  (``kv_cache_free_gpu_mem_fraction``, docs/source/performance/perf-overview.md at commit 00f3768).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iomodel.devices.device import Hardware
from iomodel.errors import InputError, SpecError, UnknownNameError
from iomodel.models.registry import ModelSpec
from iomodel.planning.step.layout import Layout

GIB = 2**30
LARGE = 70 * GIB
"""Memory from which vLLM takes more requests and tokens by default [B] (vllm/engine/arg_utils.py)."""


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
    "vllm": Engine("vllm", "all", 0.9, 16, 8192, 1024, True, divides="keys and values"),
    "sglang": Engine("sglang", "weights and cache", None, 1, 8192, 2048, False, divides="latents"),
    "tensorrt-llm": Engine("tensorrt-llm", "cache", 0.9, 32, 8192, 2048, True, ("sm_",)),
}
"""Engines with the defaults of their releases of 2025: vLLM 0.11, SGLang 0.5, TensorRT-LLM 1.0."""
OTHER_NAMES = {"trtllm": "tensorrt-llm"}
"""Names of engines by the first word of their commands."""


def command_name(engine: object) -> object:
    """Return the name of an engine in its command; anything else unchanged.

    >>> command_name("tensorrt-llm"), command_name("vllm")
    ('trtllm', 'vllm')
    """
    if not isinstance(engine, str):
        return engine
    return next((short for short, name in OTHER_NAMES.items() if name == engine), engine)


def as_engine(engine: object) -> Engine | None:
    """Look up an engine by name; None stays None.

    >>> as_engine("vllm").block
    16
    """
    if engine is None or isinstance(engine, Engine):
        return engine
    if isinstance(engine, str) and (name := OTHER_NAMES.get(engine, engine)) in ENGINES:
        return ENGINES[name]
    raise UnknownNameError("engine", engine, ENGINES)


def engines_on(device: Hardware) -> list[str]:
    """Name the engines that run on the architecture of a device.

    >>> from iomodel.devices.device import hardware
    >>> engines_on(hardware("mi300x")), engines_on(hardware("tpu-v5e"))
    (['vllm', 'sglang'], [])
    """
    return [each.name for each in ENGINES.values() if (device.architecture or "").startswith(each.architectures)]


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
        raise SpecError(f"engine: {engine.name} given for {device.id or device.name}; allowed: {', '.join(able)}")
