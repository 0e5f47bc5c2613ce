"""Settings common to the kernels of a step, and the kernels built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

from iomodel.devices.rates import Rates, rates
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.planning.step.attention_clock import AttentionClock
from iomodel.planning.step.converted import converted_seconds
from iomodel.planning.step.expert_loads import evenly
from iomodel.planning.step.layout import Layout, LinearLayer
from iomodel.planning.step.links import all_reduce
from iomodel.planning.step.lora import Lora
from iomodel.planning.step.step_arguments import MULTIPLIED, ROW_TYPE
from iomodel.planning.step.step_result import Kind
from iomodel.timing.layer_clock import IN_BLOCKS, LayerClock
from iomodel.timing.span import Span
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.dtypes import QUANTISED, WEIGHT_SIZE
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.linear import WEIGHT_QUARTERS, Linear

KEPT = 1 << 12
"""Layers kept for further steps."""
Part = tuple[str, Kind, Span]
CONVERTED = 0.3
"""Share of the peak that products of experts reach with weights of four bits that they convert [-]: gpt-oss 120B under
TensorRT-LLM on an H200, the open rows of tests/measured/serving_more.csv with long prompts and at saturation."""
NO_FP8_ATTENTION = ("sm_89",)
"""Architectures with fp8 products that the kernels of engines do not use in attention."""


@dataclass(frozen=True)
class StepSetting:
    """Common settings of the kernels of all layers; `batch` is that of one group of ranks.

    `released` is True if matrices have the types of the release; `narrow` lists the types of matrices that are
    multiplied with activations of their own type. `block_scales` is True if fp8 matrices have a scale for each
    block, as in models released in fp8. `shared_keys` are the first keys that all sequences share; `lora` are
    adapters beside the linear layers; `expert_kernels` multiply experts in mxfp4, by the names of an engine;
    `rows_apart` is True if those in nvfp4 have kernels of their own for the work on rows; `scans` has the
    architectures on which one kernel computes all chunks of a gated delta rule, `chunk_work` the time of kernels over
    chunks over that of most engines; `rotation_clocks` the least clocks of an SM for each head of each token that is
    rotated. `absorbs` is True if attention on latents may absorb their expansion; `serves` if
    the kernels are those of serving engines.
    """

    clock: LayerClock
    attention: AttentionClock
    layout: Layout
    hidden: int
    batch: int
    q_len: int
    kv_len: int
    dtype: str
    linear_dtype: str
    weight_dtype: str
    expert_dtype: str
    kv_dtype: str
    page_size: int | None
    released: bool
    narrow: frozenset[str]
    routing: Sequence[int] | None
    shared_keys: int = 0
    block_scales: bool = False
    lora: Lora | None = None
    expert_kernels: str | None = None
    rows_apart: bool = False
    scans: frozenset[str] = frozenset()
    chunk_work: float = 1.0
    rotation_clocks: float = 0.0
    absorbs: ClassVar[bool] = True
    serves: ClassVar[bool] = True

    @property
    def tokens(self) -> int:
        """Number of rows of the activations [rows]."""
        return self.batch * self.q_len

    @property
    def attention_dtype(self) -> str:
        """Type of Q and of the products of attention: fp8 for a cache in fp8 or nvfp4 on a device with such products.

        FlashAttention-3, FlashInfer and TensorRT-LLM quantise Q for an fp8 cache. An nvfp4 cache is converted to fp8 on
        chip (NVIDIA, "Optimizing Inference for Long Context and Large Batch Sizes with NVFP4 KV Cache", 2025).
        """
        fp8 = self.kv_dtype in ("fp8", "nvfp4") and bool(self.clock.device.compute.peak.fp8)
        return "fp8" if fp8 and self.clock.device.architecture not in NO_FP8_ATTENTION else self.dtype

    @property
    def latent_dtype(self) -> str:
        """Type of Q and of the products of attention on latents: fp8 for an fp8 cache on a device with accumulators.

        TensorRT-LLM, SGLang and vLLM quantise Q for an fp8 cache on Blackwell, where attention takes down to half the
        time. On Hopper, whose fp8 instructions read both operands along the summed axis, V must be transposed on chip,
        and the kernels of an fp8 cache are only 5 to 15 % faster than those of bf16 (aiconfigurator 0.12.0,
        generation_mla_perf).
        """
        return self.attention_dtype if self.clock.device.memory.accumulator.per_sm is not None else self.dtype

    def linear(
        self,
        rows: int,
        width_in: int,
        width_out: int,
        *,
        groups: int = 1,
        bias: bool = False,
        weight_dtype: str | None = None,
    ) -> Linear:
        """Build a linear layer with quantised weights."""
        weights, scales = stored(weight_dtype or self.weight_dtype)
        dtype = self.multiplied(weights)
        types = ROW_TYPE.get(dtype, dtype), weights, self.dtype
        return _linear((rows, width_in, width_out, groups), types, bias, scales)

    def multiplied(self, weights: str) -> str:
        """Return the type in which a matrix of weights of a type is multiplied."""
        if weights != self.weight_dtype and self.weight_dtype in QUANTISED and weights not in QUANTISED:
            return self.dtype  # a matrix left out of the quantisation
        return MULTIPLIED[weights] if weights in self.narrow else self.linear_dtype

    def product_size(self, weights: str) -> float:
        """Return the bytes of an element of the rows that a matrix of weights of a type is multiplied with."""
        kind = self.multiplied(stored(weights)[0])
        return float(WEIGHT_SIZE["nvfp4"]) if kind == "fp4" else ELEMENT_SIZE[kind]

    def type_of(self, layer: DecoderLayer, name: str) -> str:
        """Return the type of a matrix: that of the release, unless the step names one for all."""
        default = self.expert_dtype if name.startswith(("expert ", "shared ")) else self.weight_dtype
        return (layer.dtypes.get(name) if self.released else None) or default

    def wide(self, rows: int, width_in: int, width_out: int, groups: int = 1) -> Linear:
        """Build linear layers that are never quantised: a router, the output layer, groups of adapters."""
        return _linear((rows, width_in, width_out, groups), (self.dtype, self.dtype, self.dtype))

    def adapted(self, linears: Sequence[LinearLayer]) -> Iterator[Part]:
        """Time both kernels of the adapters beside layers of one input, if there are any.

        The requests are spread evenly over the adapters.
        """
        if self.lora is None:
            return
        rank, active = self.lora.rank, min(self.lora.active or self.lora.adapters, self.tokens)
        groups = evenly(self.tokens, active)
        name = " ".join(linear.name for linear in linears)
        width, outputs = linears[0].in_features, sum(linear.out_features for linear in linears)
        down = [self.wide(size, width, len(linears) * rank, count) for size, count in groups]
        up = [self.wide(size, rank, outputs, count) for size, count in groups]
        yield self.product(f"adapters of {name}, A", *down)
        yield self.product(f"adapters of {name}, B", *up)

    def product(self, name: str, *layers: Linear) -> Part:
        """Time linear layers as one part."""
        first = layers[0]
        span = self.clock.linear(*layers, products=self._products(first))
        if sum(layer.groups for layer in layers) > 1 and self.converts(first.weight_dtype):
            known = rates(self.clock.device, first.dtype)
            if self.in_triton(first.weight_dtype):
                least = self.clock.launch(known) + converted_seconds(layers, known, self.routing is None)
            else:
                least = span.flops / (CONVERTED * known.peak)
            span = replace(span, seconds=max(span.seconds, least))
        return name, "linear", span

    def converts(self, weights: str) -> bool:
        """Check that the kernels of experts convert weights of four bits, because the device has no units for them."""
        return self.serves and WEIGHT_QUARTERS[weights] < 32 and not self.clock.device.compute.peak.fp4

    def in_triton(self, weights: str) -> bool:
        """Check that experts of a type are multiplied by Triton's kernel, which takes the work around products too."""
        return weights == "mxfp4" and self.expert_kernels == "triton" and self.converts(weights)

    def has_fused(self, weights: str) -> bool:
        """Check for kernels that fuse the work on rows of experts of a type with their products: those of trtllm-gen.

        They multiply weights in nvfp4 on devices whose products accumulate in a memory of their own.
        """
        return weights == "nvfp4" and self.serves and self.clock.device.memory.accumulator.per_sm is not None

    def fuses_rows(self, weights: str) -> bool:
        """Check that the engine gathers, activates and quantises rows of experts of a type in their products."""
        return self.has_fused(weights) and not self.rows_apart

    def _products(self, first: Linear) -> str:
        """Return the type in which a layer is multiplied, with scales for each block where the model has them."""
        kind = first.dtype if first.dtype == self.dtype else self.multiplied(first.weight_dtype)
        if kind == "fp8" and self.block_scales and first.weight_dtype == "fp8":
            kind = IN_BLOCKS
        return kind

    def single(self, layer: DecoderLayer, linear: LinearLayer, bias: bool = False) -> Part:
        """Time one linear layer on all tokens."""
        dtype = self.type_of(layer, linear.name)
        shape = self.linear(self.tokens, linear.in_features, linear.out_features, bias=bias, weight_dtype=dtype)
        return self.product(linear.name, shape)

    def attended(self, call: Attention, note: str = "") -> Part:
        """Time an attention call by its fastest kernel; a note follows the name of the algorithm."""
        name, span = self.attention.fastest(call)
        return f"attention ({name}{note})", "attention", span

    def quantised(self, name: str, weights: str, channels: int, rows: int | None = None) -> Iterator[Part]:
        """Time the quantisation of activations for the product with a matrix of weights of a type, if it needs one.

        Norms and activations write rows with one scale for all; inputs from elsewhere take a kernel of their own.
        """
        kind = self.multiplied(stored(weights)[0])
        narrow = ROW_TYPE.get(kind, kind)
        if ELEMENT_SIZE[narrow] < ELEMENT_SIZE[self.dtype]:
            tokens = self.tokens if rows is None else rows
            shape = Elementwise(rows=tokens, channels=channels, dtype=self.dtype, kv_dtype=narrow)
            yield name, "other", self.clock.elementwise("append_latent", shape)

    def quantised_by_block(self, name: str, weights: str, channels: int, rows: int | None = None) -> Iterator[Part]:
        """Time the quantisation of what a norm or an activation writes, for weights with a scale for each block.

        Its kernel finds the largest value of each block of a row: `per_token_group_quant_fp8` of vLLM and SGLang, and
        `fp4_quantize` of TensorRT-LLM, which linear layers launch before the product.
        """
        narrow = stored(weights)[0]
        if narrow == "nvfp4" or (narrow == "fp8" and self.block_scales):
            yield from self.quantised(name, weights, channels, rows)

    def beside(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Hide the launches of parts behind those of other kernels, as on a second stream of a graph."""
        hidden = self.clock.launch(rates(self.clock.device, self.dtype))
        for name, kind, span in parts:
            yield name, kind, replace(span, seconds=max(0.0, span.seconds - hidden))

    def rowwise(self, name: str, kernel: str, channels: int, others: int = 1, rows: int | None = None) -> Part:
        """Time an elementwise kernel as one part."""
        tokens = self.tokens if rows is None else rows
        shape = _elementwise(tokens, channels, others, self.dtype, self.kv_dtype)
        return name, "other", self.clock.elementwise(kernel, shape)

    def rotated(self, heads: int, channels: int, angles: int) -> Part:
        """Time the rotation of Q and K, of so many heads of Q."""
        name, kind, span = self.rowwise("rotary", "rotary", channels, angles)
        if self.rotation_clocks:
            least = rotation_seconds(self.rotation_clocks, self.tokens * heads, rates(self.clock.device, self.dtype))
            span = replace(span, seconds=max(span.seconds, least))
        return name, kind, span

    def reduced(self, name: str) -> Iterator[Part]:
        """Time the sum of a row-parallel layer over its ranks."""
        if self.layout.tensor_parallel > 1:
            size = self.tokens * self.hidden * ELEMENT_SIZE[self.dtype]
            yield name, "communication", all_reduce(self.clock.device, self.layout.tensor_parallel, size, self.layout)


@dataclass(frozen=True)
class AskedProducts(LayerClock):
    """A clock that lists the linear layers that it is asked for, by the type of their products, and times nothing."""

    asked: dict[str, list[Linear]] = field(default_factory=dict, compare=False, repr=False)

    def linear(self, *layers: Linear, products: str | None = None) -> Span:
        """List a layer, or none of several in one launch, whose tiles are not ranked."""
        if len(layers) == 1:
            self.asked.setdefault(products or layers[0].dtype, []).append(layers[0])
        return NO_TIME

    def elementwise(self, *_: Any) -> Span:
        """Leave out the time of a kernel."""
        return NO_TIME


@dataclass(frozen=True)
class UntimedAttention(AttentionClock):
    """A clock that times no call."""

    def fastest(self, *_: Any) -> tuple[str, Span]:
        """Leave out the time of a call."""
        return "", NO_TIME


NO_TIME = Span(0.0, 0, 0, 0, ())


def rank_products(at: StepSetting, listed: Callable[[StepSetting], object]) -> None:
    """Rank the tiles of all linear layers of a step in arrays; `listed` lists its parts."""
    clock = AskedProducts(at.clock.device, at.clock.parameters)
    listed(replace(at, clock=clock, attention=UntimedAttention(at.attention.device, at.attention.parameters)))
    for products, layers in clock.asked.items():
        at.clock.rank(layers, products)


def seconds_of(parts: Iterable[Part]) -> float:
    """Sum the times of parts [s]."""
    return sum(span.seconds for _, _, span in parts)


def rotation_seconds(clocks: float, heads: int, known: Rates) -> float:
    """Return the least time of a rotation of so many heads of tokens [s]; 0 without SMs or a clock on file."""
    return 0.0 if known.units is None or known.clock is None else clocks * heads / (known.units * known.clock)


@lru_cache(maxsize=KEPT)
def _linear(
    sizes: tuple[int, int, int, int], types: tuple[str, str, str], bias: bool = False, scale_block: int | None = None
) -> Linear:
    """Build a linear layer once: steps at other contexts have the same."""
    (rows, width_in, width_out, groups), (dtype, weights, out) = sizes, types
    return Linear(
        rows=rows,
        in_features=width_in,
        out_features=width_out,
        groups=groups,
        bias=bias,
        dtype=dtype,
        weight_dtype=weights,
        out_dtype=out,
        scale_block=scale_block,
    )


@lru_cache(maxsize=KEPT)
def _elementwise(rows: int, channels: int, others: int, dtype: str, kv_dtype: str) -> Elementwise:
    return Elementwise(rows=rows, channels=channels, others=others, dtype=dtype, kv_dtype=kv_dtype)


def stored(dtype: str) -> tuple[str, int | None]:
    """Split a type of weights into that of the numbers, and the weights per scale of two bytes.

    Zero points are read as part of the scales. A type without a whole number of quarters of a bit has the group that
    comes closest to its size.

    >>> stored("int4-g128"), stored("nvfp4"), stored("q6_K")
    (('int4', 128), ('nvfp4', None), ('int6', 28))
    """
    if dtype in WEIGHT_QUARTERS:
        return dtype, None
    bits = 8 * WEIGHT_SIZE[dtype]
    whole = next(width for width in (8, 6, 5, 4, 3, 2, 0) if width < bits)
    return (f"int{whole}", round(16 / (bits - whole))) if whole else ("int2", None)
