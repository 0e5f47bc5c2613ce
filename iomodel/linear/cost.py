"""A linear layer as a tiled product: exact traffic, FLOPs and footprint, from the same folds as attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Integer

from iomodel.errors import InputError, UnknownNameError
from iomodel.linear.fold import Tabulated, folded_gemm, folded_pointwise, formulas, traffic
from iomodel.linear.layer import WEIGHT_QUARTERS, Linear
from iomodel.linear.nest import TILES, Form, g, gemm
from iomodel.linear.pointwise import BODIES
from iomodel.linear.result import LinearCost, cost_of
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import ELEMENT_SIZE

__all__ = ["WEIGHT_QUARTERS", "Linear", "LinearCost", "linear_cost", "linear_expressions", "pointwise_cost"]


def linear_cost(layer: Linear, tiles: Mapping[str, int]) -> LinearCost:
    """The exact cost of a linear layer at given tiles.

    Parameters
    ----------
    layer : Linear
        The layer and its rows.
    tiles : mapping of tile name to int
        ``block_m``, ``block_n`` [rows, columns] of an output tile and ``block_k`` terms at a time; ``splits``, 1 by
        default: parts of the sum, each for blocks of its own.

    Raises
    ------
    UnknownNameError, InputError
        An unknown tile; one that is missing or no positive integer; more splits than there are slices to deal out; a
        block_k that does not divide the block of a scale.

    Examples
    --------
    >>> layer = Linear(rows=256, in_features=4096, out_features=512)
    >>> c = linear_cost(layer, {"block_m": 128, "block_n": 128, "block_k": 64})
    >>> c.reads["X"], c.reads["W"], c.hbm_bytes  # X once a column of tiles, W once a row of tiles
    (4194304, 4194304, 17039360)
    """
    if not isinstance(layer, Linear):
        raise InputError(f"layer: {type(layer).__name__} given; allowed: an iomodel.Linear")
    return cost_of("Y = X W", tabulated(layer, sizes := tile_sizes(layer, tiles)).moves(layer.point(**sizes)))


def tabulated(layer: Linear, sizes: Mapping[str, int]) -> Tabulated:
    """The formulas of a layer at tiles that are known to be right."""
    return folded_gemm(layer.form(sizes["splits"]))


def tile_sizes(layer: Linear, tiles: Mapping[str, int]) -> dict[str, int]:
    """All tiles of a layer, checked."""
    given = as_mapping("tiles", tiles, "{'block_m': 128, 'block_n': 128, 'block_k': 64}")
    for name in given:
        if name not in TILES:
            raise UnknownNameError("tile of a linear layer", name, TILES)
    sizes = {"splits": 1, **given}
    for name in TILES:
        if name not in sizes:
            raise InputError(f"{name}: a linear layer needs this tile; allowed: an integer from 1 up")
        sizes[name] = as_integer(name, sizes[name])
    unit, word = sizes["block_k"], "slices"
    if layer.scale_block is not None:
        if layer.scale_block < layer.in_features and layer.scale_block % unit:
            raise InputError(f"block_k: {unit} given; allowed: a divisor of scale_block = {layer.scale_block}")
        unit, word = layer.scale_block, "blocks of scales"
    most = -(-layer.in_features // unit)
    if sizes["splits"] > most:
        raise InputError(f"splits: {sizes['splits']} given; allowed: up to {most}, the {word} of {unit} terms")
    return sizes


def linear_expressions(*, splits: bool = False, gated: bool = False, bias: bool = False) -> dict[str, Any]:
    """The exact formulas of one linear layer, over T rows, C_in and C_out features and tiles B_m, B_n, B_k.

    Parameters
    ----------
    splits, gated, bias : bool
        Whether the sum is split among blocks, the layer gated, a bias added.

    Examples
    --------
    >>> found = linear_expressions()
    >>> found["reads"]["W"], found["flops"]
    (C_in*C_out*ceiling(T/B_m), 2*C_in*C_out*T)
    """
    nest = gemm(Form(splits, gated, False, bias))
    one = {g: Integer(1)}
    reads, writes = ({name: expr.subs(one) for name, expr in side.items()} for side in traffic(nest))
    totals: dict[str, Expr] = {name: expr.subs(one) for name, expr in formulas(nest).items()}
    return {"reads": reads, "writes": writes, **totals}


def pointwise_cost(
    name: str, *, rows: int, channels: int, others: int = 1, dtype: str = "bf16", kv_dtype: str | None = None
) -> LinearCost:
    """The exact cost of an elementwise kernel.

    Parameters
    ----------
    name : str
        "norm", "add_norm", "rotary", "append", "append_latent", "gated_activation", "activation", "embedding" or
        "combine_experts".
    rows, channels, others : int
        Tokens [rows]; width of a row [elements]; a second width: that of V in "append", of the angles in "rotary",
        the experts of a token in "combine_experts" [elements], [-].
    dtype, kv_dtype : str
        Type of the activations and of the cache.

    Raises
    ------
    UnknownNameError, InputError
        An unknown kernel or dtype; a number that is no positive integer.

    Examples
    --------
    >>> pointwise_cost("add_norm", rows=8192, channels=4096).hbm_bytes  # x and residual in, both out, gamma a row
    335544320
    """
    if not isinstance(name, str) or name not in BODIES:
        raise UnknownNameError("kernel", name, BODIES)
    for field, value in (("dtype", dtype), ("kv_dtype", kv_dtype)):
        if value is not None and (not isinstance(value, str) or value not in ELEMENT_SIZE):
            raise UnknownNameError(field, value, ELEMENT_SIZE)
    sizes = {"rows": rows, "channels": channels, "others": others}
    shape = tuple(as_integer(field, value) for field, value in sizes.items())
    size, kv_size = ELEMENT_SIZE[dtype], ELEMENT_SIZE[kv_dtype or dtype]
    return cost_of(BODIES[name][0], folded_pointwise(name).moves((*shape, size, 32 * size, kv_size)))
