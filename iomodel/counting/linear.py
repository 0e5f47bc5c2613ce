"""Costs of linear layers and of elementwise kernels, as functions with their own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.algorithms import list_algorithms
from iomodel.common.validation import as_mapping
from iomodel.counting.cost import Cost, cost
from iomodel.errors import InputError, UnknownNameError
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.linear import Linear


def linear_cost(layer: Linear, tiles: Mapping[str, int]) -> Cost:
    """Count the exact traffic and work of a linear layer: ``cost("gemm", layer, tiles)``.

    Parameters
    ----------
    layer : Linear
        The layer and its rows.
    tiles : mapping of tile name to int
        ``block_m``, ``block_n`` [rows, columns] of an output tile and ``block_k`` terms at a time; ``splits``, 1 by
        default: parts of the sum, each in separate blocks.

    Raises
    ------
    UnknownNameError, InputError
        An unknown or missing tile; a size that is no positive integer; more splits than slices of the sum; a block_k
        that does not divide the block of a scale.

    Examples
    --------
    >>> layer = Linear(rows=256, in_features=4096, out_features=512)
    >>> c = linear_cost(layer, {"block_m": 128, "block_n": 128, "block_k": 64})
    >>> c.reads["X"], c.reads["W"], c.hbm_bytes  # X once a column of tiles, W once a row of tiles
    (4194304, 4194304, 17039360)
    """
    if not isinstance(layer, Linear):
        raise InputError(f"layer: {type(layer).__name__} given; allowed: an iomodel.Linear")
    sizes = as_mapping("tiles", tiles, "{'block_m': 128, 'block_n': 128, 'block_k': 64}")
    options = {name: sizes.pop(name) for name in ("splits",) if name in sizes}
    return cost("gemm", layer, sizes, **options)


def pointwise_cost(
    name: str, *, rows: int, channels: int, others: int = 1, angles: int = 1, dtype: Any = "bf16", kv_dtype: Any = None
) -> Cost:
    """Count the exact traffic of an elementwise kernel: ``cost(name, Elementwise(...))``.

    Parameters
    ----------
    name : str
        "norm", "add_norm", "rotary", "rotary_append", "append", "append_latent", "gated_activation", "activation",
        "embedding", "combine_experts", "softmax" or "sample", and the others of ``list_algorithms("elementwise")``.
    rows, channels, others, angles, dtype, kv_dtype :
        Fields of :class:`iomodel.workloads.elementwise.Elementwise`.

    Raises
    ------
    UnknownNameError, InputError
        An unknown kernel or dtype; a number that is no positive integer.

    Examples
    --------
    >>> pointwise_cost("add_norm", rows=8192, channels=4096).hbm_bytes  # x and residual in, both out, gamma a row
    335544320
    """
    kernels = list_algorithms("elementwise")
    if not isinstance(name, str) or name not in kernels:
        raise UnknownNameError("kernel", name, kernels)
    types = {"dtype": dtype, "kv_dtype": dtype if kv_dtype is None else kv_dtype}
    return cost(name, Elementwise(rows=rows, channels=channels, others=others, angles=angles, **types))
