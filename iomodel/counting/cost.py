"""The exact cost of one algorithm on one workload at given tiles; the costs of layers, under their own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.algorithms import AlgorithmLike, list_algorithms
from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice, as_mapping
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.choice import split_choice
from iomodel.counting.result import Cost
from iomodel.errors import InputError
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.linear import Linear
from iomodel.workloads.workload import Workload

__all__ = ["Cost", "cost", "linear_cost", "pointwise_cost"]


@strict
def cost(algorithm: AlgorithmLike, workload: Workload, tiles: Mapping[str, Any] | None = None, **options: Any) -> Cost:
    """Count the traffic and the operations of an algorithm exactly.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention, VarlenAttention or Linear
        The workload.
    tiles : mapping of name to int
        Every tile that the algorithm takes, as ``{"block_q": 128, "block_kv": 64}`` [rows], or the `choice` of a
        :class:`iomodel.Solution`, whose options count too; tiles such as ``bwd_block_q`` default to their forward
        tile; ``warps`` and ``stages`` change no count. Standard attention needs no tiles: each operand then makes one
        ideal pass.
    **options
        Options of the algorithm (``lse=False``), and ``packed=True``; tiles by name (``block_q=128``).

    Raises
    ------
    UnknownNameError, InputError
        An unknown algorithm, tile or option; a missing tile; a size that is no positive integer.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> c = iomodel.cost("flash2", w, tiles={"block_q": 128, "block_kv": 64})
    >>> c.reads["K"], c.hbm_elements  # 32 passes over K and V
    (8388608, 17305600)
    """
    given, options = split_choice(algorithm, tiles, options)
    sizes = given or {}
    bound = BoundCall.bind(algorithm, workload, options, tiled=bool(sizes.keys() - LAUNCH_NAMES))
    return bound.at(bound.sizes(sizes))


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
        "embedding", "combine_experts", "softmax", "sample", and the others of ``list_algorithms("elementwise")``.
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
    as_choice("kernel", name, kernels)
    types = {"dtype": dtype, "kv_dtype": dtype if kv_dtype is None else kv_dtype}
    return cost(name, Elementwise(rows=rows, channels=channels, others=others, angles=angles, **types))
