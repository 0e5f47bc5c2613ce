"""Parallel layouts of a model, and the linear layers that each device runs."""

from __future__ import annotations

from math import gcd
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from iomodel.common.validation import Count, Distance, Measured, Model
from iomodel.errors import InputError, shown
from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.decoder_layer import DecoderLayer, MLPLayer
from iomodel.models.recurrent import RecurrentLayer
from iomodel.models.spec import ModelSpec

Sharing = Literal["columns", "rows", "experts", "replicated"]
"""Shard of a rank: some outputs; some inputs, so that results are summed; some experts; the entire layer."""


NETWORK = 50e9
"""Bandwidth of a network for each device, in one direction [B/s]: a port of 400 Gb/s (NVIDIA DGX H100 datasheet)."""


class Layout(Model):
    """Ranks that share a model.

    Parameters
    ----------
    tensor_parallel : int
        Ranks that divide the heads and the widths of each layer [-].
    pipeline_parallel : int
        Stages that divide the layers [-].
    expert_parallel : int
        Ranks that divide the experts [-]: a multiple of tensor_parallel, whose groups then process separate sequences
        (data-parallel attention), or a divisor of it, so that several ranks divide each expert.
    context_parallel : int
        Ranks that divide the tokens of a prompt [-], each with all layers: for a prefill of a model whose layers are
        full attention (:func:`iomodel.planning.context_parallel`). Plans take 1; a training step
        divides each sequence.
    decode_context_parallel : int
        Ranks of tensor_parallel that divide the tokens of a cache [-], in place of copies of the same head: a divisor
        of tensor_parallel, and at most its ranks for each key/value head.
    redundant_experts : int
        Further copies of experts, at most as many as experts [-]: experts and copies divide evenly among the ranks, and
        tokens among the copies of an expert (DeepSeek-V3, arXiv:2412.19437, section 3.4).
    devices_per_node : int, optional
        Devices of a node, which exchange by their own links [-]; nodes exchange by a network. By default as many as
        the links of a device join, where its file says so: 8 on an HGX board, 72 in a GB200 NVL72; else all.
    network_bandwidth : float, optional
        Bandwidth of the network for each device, in one direction [B/s]; 50e9 by default, a port of 400 Gb/s for each
        device, as in a DGX H100.

    Raises
    ------
    InputError
        A number is not positive, neither of expert_parallel and tensor_parallel divides the other, the ranks of a cache
        do not divide those of tensor_parallel, copies of experts are given without ranks, the ranks of a stage do not
        divide among nodes, or a network is given without nodes.

    Examples
    --------
    >>> Layout(tensor_parallel=4, pipeline_parallel=2).devices
    8
    >>> Layout(tensor_parallel=2, expert_parallel=16).data_parallel
    8
    >>> Layout(expert_parallel=32, devices_per_node=8).nodes(32)
    4
    >>> Layout(expert_parallel=144, redundant_experts=32).experts_of_rank(256)  # DeepSeek-V3's decoding
    2
    """

    tensor_parallel: Count = 1
    pipeline_parallel: Count = 1
    expert_parallel: Count = 1
    context_parallel: Count = 1
    decode_context_parallel: Count = 1
    redundant_experts: Distance = 0
    devices_per_node: Count | None = None
    network_bandwidth: Annotated[float, Measured, Field(strict=True, gt=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _nested(self) -> Self:
        experts, tensor = self.expert_parallel, self.tensor_parallel
        node = self.devices_per_node
        if self.redundant_experts and experts == 1:
            raise InputError(
                f"redundant_experts: {self.redundant_experts} given with expert_parallel = 1; allowed: 0, or "
                "ranks that divide the experts"
            )
        if self.context_parallel > 1 and experts > tensor:
            raise InputError(
                f"context_parallel: {self.context_parallel} given with expert_parallel = {experts}; allowed: 1, or "
                f"expert_parallel up to tensor_parallel = {tensor}"
            )
        cached = self.decode_context_parallel
        if tensor % cached:
            raise InputError(
                f"decode_context_parallel: {cached} given with tensor_parallel = {tensor}; allowed: a divisor of it, "
                f"such as {gcd(cached, tensor)}"
            )
        if node is None and self.network_bandwidth is not None:
            raise InputError(
                f"network_bandwidth: {self.network_bandwidth:g} given without devices_per_node; allowed: with it, such "
                "as devices_per_node = 8"
            )
        for field, ranks in (("tensor_parallel", tensor), ("expert_parallel", experts)):
            if node is not None and not self.in_whole_nodes(ranks):
                raise InputError(
                    f"devices_per_node: {node} given with {field} = {ranks}; allowed: a multiple or a divisor of it, "
                    f"such as {ranks * max(1, node // ranks)}"
                )
        if experts % tensor and tensor % experts:
            raise InputError(
                f"expert_parallel: {experts} given with tensor_parallel = {tensor}; allowed: a multiple or a divisor "
                f"of it, such as {tensor * max(1, experts // tensor)}"
            )
        return self

    @property
    def ranks(self) -> int:
        """Number of devices of one stage [-]."""
        return max(self.tensor_parallel, self.expert_parallel)

    @property
    def devices(self) -> int:
        """Number of all devices [-]."""
        return self.ranks * self.context_parallel * self.pipeline_parallel

    @property
    def data_parallel(self) -> int:
        """Number of groups of ranks with separate sequences [-]."""
        return self.ranks // self.tensor_parallel

    @property
    def decided(self) -> bool:
        """Whether it is more than nodes, whose layout a search decides.

        >>> Layout().decided, Layout(devices_per_node=8).decided
        (True, False)
        """
        return not self.model_fields_set or bool(self.model_fields_set - {"devices_per_node", "network_bandwidth"})

    def divided(self, **degrees: int) -> Layout:
        """Return a layout of some degrees in nodes like those of this one.

        >>> Layout(tensor_parallel=2, devices_per_node=8).divided(expert_parallel=4).devices_per_node
        8
        """
        return Layout(**degrees, devices_per_node=self.devices_per_node, network_bandwidth=self.network_bandwidth)

    def in_whole_nodes(self, ranks: int) -> bool:
        """Check that ranks fill whole nodes, or that a node holds whole groups of them."""
        node = self.devices_per_node
        return node is None or node % ranks == 0 or ranks % node == 0

    def nodes(self, ranks: int) -> int:
        """Compute the number of nodes that consecutive ranks occupy [-]."""
        return 1 if self.devices_per_node is None else -(-ranks // self.devices_per_node)

    @property
    def network(self) -> float:
        """Bandwidth of the network for each device, in one direction [B/s]."""
        return NETWORK if self.network_bandwidth is None else self.network_bandwidth

    @property
    def sends(self) -> tuple[int, int]:
        """Number of borders between consecutive stages within a node, and between nodes [-]."""
        borders = self.pipeline_parallel - 1
        between = 0
        if self.devices_per_node is not None:
            between = borders // max(1, self.devices_per_node // (self.ranks * self.context_parallel))
        return borders - between, between

    @property
    def expert_width(self) -> int:
        """Number of ranks that divide each expert [-]."""
        return self.ranks // self.expert_parallel

    def experts_of_rank(self, experts: int) -> int:
        """Compute the number of experts of a layer that a rank holds, copies included [-]."""
        return (experts + self.redundant_experts) // self.expert_parallel

    def check(self, model: ModelSpec) -> None:
        """Raise InputError unless the layout divides the model."""
        if not isinstance(model, ModelSpec):
            raise InputError(
                f"model: {shown(model)} given; allowed: an iomodel.ModelSpec, such as the result of iomodel.model"
            )
        for layer in model.counted:
            if layer.attention is not None:
                _check_attention(layer.attention, self.tensor_parallel)
                if self.decode_context_parallel > 1:
                    _check_cache(layer.attention, self, model.title)
            if layer.recurrent is not None:
                _check_recurrent(layer.recurrent, self.tensor_parallel)
            if layer.mlp is not None:
                _check_mlp(layer.mlp, self)
        if self.redundant_experts and not has_experts(model):
            raise InputError(f"redundant_experts: {self.redundant_experts} given; allowed: 0, for {model.title}")
        if self.context_parallel > 1 and not all(map(_full_attention, model.counted)):
            raise InputError(
                f"context_parallel: {self.context_parallel} given; allowed: 1, for {model.title}: some layers are not "
                "full attention with keys and values"
            )
        if self.pipeline_parallel > len(model.layers):
            raise InputError(
                f"pipeline_parallel: {self.pipeline_parallel} given; allowed: up to {len(model.layers)}, the layers"
            )


def has_experts(model: ModelSpec) -> bool:
    """Check for a layer with experts."""
    return any(layer.mlp is not None and layer.mlp.experts for layer in model.counted)


def _check_attention(attention: AttentionLayer, ranks: int) -> None:
    kv_heads = attention.cached_heads
    if attention.o_groups is not None:
        _divides("o_groups", attention.o_groups, "tensor_parallel", ranks)
    if attention.heads % ranks or (kv_heads % ranks and ranks % kv_heads):
        near = [n for n in range(1, min(ranks, attention.heads) + 1) if not attention.heads % n]
        near = [n for n in near if not kv_heads % n or not n % kv_heads]
        raise InputError(
            f"tensor_parallel: {ranks} given; allowed: a number that heads = {attention.heads} and kv_heads = "
            f"{attention.kv_heads} divide among, such as {near[-1]}"
        )


def cache_ranks(attention: AttentionLayer, tensor_parallel: int) -> list[int]:
    """List the numbers of ranks that may divide the tokens of a cache: as many as would hold the same head, or fewer.

    The query heads of a key/value head divide among them (vllm/config/model.py); a latent counts as one head of all.

    >>> cache_ranks(AttentionLayer(heads=64, kv_heads=4, head_dim=128), 8)
    [1, 2]
    """
    kv_heads = attention.cached_heads
    copies = tensor_parallel // kv_heads
    group = attention.heads // kv_heads
    return [n for n in range(1, copies + 1) if not (tensor_parallel % n or group % n)] or [1]


def _check_cache(attention: AttentionLayer, layout: Layout, title: str) -> None:
    """Raise InputError unless the tokens of a layer's cache divide among ranks that would hold the same head."""
    ranks, tensor = layout.decode_context_parallel, layout.tensor_parallel
    whole = attention.window is None and attention.chunk is None and attention.indexer is None
    if not whole or attention.tied_kv or attention.compression is not None:
        raise InputError(
            f"decode_context_parallel: {ranks} given; allowed: 1, for {title}: some layers see a window, a chunk or "
            "selected keys"
        )
    able = cache_ranks(attention, tensor)
    if ranks in able:
        return
    kv_heads = attention.cached_heads
    text = f"decode_context_parallel: {ranks} given with tensor_parallel = {tensor} and kv_heads = {kv_heads}"
    wider = ranks * kv_heads
    more = f", or tensor_parallel = {wider}" if not attention.heads % wider else ""
    raise InputError(f"{text}; allowed: {max(n for n in able if n < ranks)}{more}")


def _check_recurrent(recurrent: RecurrentLayer, ranks: int) -> None:
    """Raise InputError unless the heads of a recurrent layer, and what they share, divide among ranks."""
    for field, size in recurrent.widths.divided:
        _divides(field, size, "tensor_parallel", ranks)


def _check_mlp(mlp: MLPLayer, layout: Layout) -> None:
    if not mlp.experts:
        if layout.expert_parallel > layout.tensor_parallel:
            return  # a dense layer of a model with experts: attention and MLP are data parallel
        _divides("intermediate_size", mlp.intermediate_size, "tensor_parallel", layout.tensor_parallel)
        return
    _check_experts(mlp.experts, layout)
    _divides("expert_intermediate_size", mlp.expert_intermediate_size, "tensor_parallel", layout.expert_width)


def _full_attention(layer: DecoderLayer) -> bool:
    """Check that every query of a layer sees all keys before it, cached as keys and values."""
    attention = layer.attention
    if attention is None or layer.recurrent is not None or attention.latent or attention.tied_kv:
        return False
    return attention.indexer is None and attention.window is None and attention.chunk is None


def _check_experts(experts: int, layout: Layout) -> None:
    """Raise InputError unless the experts and their copies divide among the ranks."""
    ranks, copies = layout.expert_parallel, layout.redundant_experts
    if copies > experts:
        raise InputError(f"redundant_experts: {copies} given; allowed: up to experts = {experts}")
    if not (experts + copies) % ranks:
        return
    needed = -experts % ranks
    if copies and needed <= experts:
        raise InputError(
            f"redundant_experts: {copies} given; allowed: a number that fills expert_parallel = {ranks} ranks with "
            f"experts = {experts}, such as {needed}"
        )
    near = next(n for n in range(min(ranks, experts), 0, -1) if experts % n == 0)
    text = f"expert_parallel: {ranks} given; allowed: a divisor of experts = {experts}, such as {near}"
    raise InputError(f"{text}, or redundant_experts = {needed}" if needed <= experts else text)


def _divides(field: str, size: int, name: str, ranks: int) -> None:
    if size % ranks:
        near = next(n for n in range(min(ranks, size), 0, -1) if size % n == 0)
        raise InputError(f"{name}: {ranks} given; allowed: a divisor of {field} = {size}, such as {near}")


class LinearLayer(NamedTuple):
    """A linear layer of one rank: name, input and output widths [elements], number of copies, and sharding."""

    name: str
    in_features: int
    out_features: int
    times: int
    sharing: Sharing


ATTENTION: dict[str, Sharing] = {
    "q": "columns",
    "k": "columns",
    "v": "columns",
    "q_a": "replicated",
    "q_b": "columns",
    "kv_a": "replicated",
    "kv_b": "columns",
    "o": "rows",
    "kv": "replicated",
    "o_a": "columns",
    "o_b": "rows",
    "out gate": "columns",
}
"""Sharding of the projections of attention; those of compressors and indexers are replicated."""
RECURRENT: dict[str, Sharing] = {"f_a": "replicated", "g_a": "replicated", "out": "rows", "x": "rows"}
"""Sharding of the linear layers of a recurrent layer; those not named are divided by columns."""
MLPS: dict[str, Sharing] = {"gate": "columns", "up": "columns", "down": "rows"}


def shared(name: str, width_in: int, width_out: int, sharing: Sharing, ranks: int, times: int = 1) -> LinearLayer:
    """Compute one rank's shard of a linear layer."""
    if sharing == "columns":
        width_out = -(-width_out // ranks)
    elif sharing == "rows":
        width_in = -(-width_in // ranks)
    return LinearLayer(name, width_in, width_out, times, sharing)


def attention_linears(attention: AttentionLayer, hidden: int, layout: Layout) -> tuple[LinearLayer, ...]:
    """List the projections of one layer on one rank; KV heads are replicated if there are more ranks than heads."""
    ranks = layout.tensor_parallel
    shards = []
    for name, width_in, width_out in attention.projections(hidden):
        among = min(ranks, attention.kv_heads) if name in ("k", "v") else ranks
        shards.append(shared(name, width_in, width_out, ATTENTION.get(name, "replicated"), among))
    return tuple(shards)


def mlp_linears(mlp: MLPLayer, hidden: int, layout: Layout) -> tuple[LinearLayer, ...]:
    """List the layers of one MLP on one rank: dense, or router, experts and shared experts."""
    tensor = layout.tensor_parallel
    if not mlp.experts:
        return tuple(shared(name, a, b, MLPS[name], tensor) for name, a, b in mlp.projections(hidden))
    linears = [LinearLayer("router", hidden, mlp.routes, 1, "replicated")]
    linears += [LinearLayer(name, a, b, 1, "replicated") for name, a, b in mlp.latent_projections(hidden)]
    local_experts = layout.experts_of_rank(mlp.experts)
    for name, width_in, width_out in mlp.projections(hidden):
        shard = shared(name, width_in, width_out, MLPS[name], layout.expert_width, local_experts)
        linears.append(shard._replace(name=f"expert {name}", sharing="experts"))
    for name, width_in, width_out in mlp.shared_projections(hidden):
        shard = shared(name, width_in, width_out, MLPS[name], tensor, mlp.shared_experts)
        linears.append(shard._replace(name=f"shared {name}"))
    if mlp.shared_gate:
        linears.append(LinearLayer("shared router", hidden, 1, 1, "replicated"))
    return tuple(linears)


def recurrent_linears(recurrent: RecurrentLayer, hidden: int, layout: Layout) -> tuple[LinearLayer, ...]:
    """List the linear layers of a recurrent layer on one rank."""
    ranks = layout.tensor_parallel
    return tuple(
        shared(f"state {name}", width_in, width_out, RECURRENT.get(name, "columns"), ranks)
        for name, width_in, width_out in recurrent.projections(hidden)
    )


def layer_linears(layer: DecoderLayer, hidden: int, layout: Layout) -> tuple[LinearLayer, ...]:
    """List all linear layers of one decoder layer on one rank."""
    linears: tuple[LinearLayer, ...] = ()
    if layer.attention is not None:
        linears += attention_linears(layer.attention, hidden, layout)
    if layer.recurrent is not None:
        linears += recurrent_linears(layer.recurrent, hidden, layout)
    if layer.mlp is not None:
        linears += mlp_linears(layer.mlp, hidden, layout)
    side = (LinearLayer(one.name, one.in_features, one.out_features, one.times, "replicated") for one in layer.side)
    return (*linears, *side)
