"""The exact cost of one algorithm on one workload at given tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.common.validation import as_mapping
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.result import Cost
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.workloads.workload import Workload

__all__ = ["Cost", "cost"]


def cost(algorithm: AlgorithmLike, workload: Workload, tiles: Mapping[str, int] | None = None, **options: Any) -> Cost:
    """Count the traffic and the operations of an algorithm exactly.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention, VarlenAttention or Linear
        The workload.
    tiles : mapping of tile name to int
        Every tile that the algorithm takes, as ``{"block_q": 128, "block_kv": 64}`` [rows]; tiles such as
        ``bwd_block_q`` default to their forward tile; ``warps`` and ``stages`` change no count. Standard attention
        needs no tiles: each operand then makes one ideal pass.
    **options
        Options of the algorithm (``lse=False``), and ``packed=True``.

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
    sizes = {} if tiles is None else as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    bound = BoundCall.bind(algorithm, workload, options, tiled=bool(sizes.keys() - LAUNCH_NAMES))
    return bound.at(bound.sizes(sizes))
