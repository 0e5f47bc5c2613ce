"""Which layouts are worth trying: tensor parallelism in one server first, then pipelines of servers."""

from __future__ import annotations

from collections.abc import Iterable

from iomodel.decoder.layout import Layout
from iomodel.errors import InputError, SpecError
from iomodel.hardware import Hardware
from iomodel.model import ModelSpec
from iomodel.planning.memory import fit
from iomodel.planning.service import Service

SERVER = 8
"""Ranks of tensor parallelism at the most: the devices of a common server."""
STAGES = (1, 2, 4, 8)


def degrees(model: ModelSpec, allowed: Iterable[int]) -> list[int]:
    """The numbers of ranks that share out every layer evenly.

    >>> from iomodel.model import model
    >>> degrees(model("llama-3-8b"), range(1, 9))
    [1, 2, 4, 8]
    """
    return [ranks for ranks in allowed if _shared_by(model, ranks)]


def _shared_by(model: ModelSpec, ranks: int) -> bool:
    try:
        Layout(tensor_parallel=ranks).check(model)
    except InputError:
        return False
    return True


def default_layouts(service: Service, device: Hardware, most: int) -> list[Layout]:
    """Tensor parallelism over 1, 2, 4 or 8 devices; where none holds a request, over more and more stages.

    A model with experts may also have them shared out whole, with data-parallel attention, over eight devices.
    """
    ranks = degrees(service.model, (n for n in (1, 2, 4, SERVER) if n <= most))
    tried: list[Layout] = []
    for stages in STAGES:
        if stages > len(service.model.layers) or (tried and stages * max(ranks) > most):
            break
        some = ranks if stages == 1 else ranks[-1:]
        tried += [Layout(tensor_parallel=n, pipeline_parallel=stages) for n in some]
        if stages == 1 and most >= SERVER and _has_experts(service.model):
            tried.append(Layout(expert_parallel=SERVER))
        if any(_holds(service.laid_out(layout), device) for layout in tried):
            break
    return tried


def _holds(service: Service, device: Hardware) -> bool:
    """Whether a request fits, or nobody knows, so that to go on is in vain."""
    try:
        return fit(service, device).fits > 0
    except SpecError:
        return True


def _has_experts(model: ModelSpec) -> bool:
    """Whether there are experts, which a server's devices can divide among them."""
    experts = [layer.mlp.experts for layer in model.counted if layer.mlp.experts]
    return bool(experts) and not any(many % SERVER for many in experts)


def least_layout(service: Service, device: Hardware, count: int) -> Layout:
    """The least tensor parallelism that divides the devices and the heads, and leaves room for a request."""
    most = min(count, *(layer.attention.heads for layer in service.model.counted))  # that many share them out
    ranks = degrees(service.model, (n for n in range(1, most + 1) if count % n == 0))
    tried = [Layout(tensor_parallel=n) for n in ranks]
    return next((one for one in tried if fit(service.laid_out(one), device).fits), tried[-1])
