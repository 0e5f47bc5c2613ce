"""Times of one algorithm at arrays of shapes, tiles and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common.deprecation import warn_renamed
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice
from iomodel.counting.arrays.columns import columns_of_calls
from iomodel.counting.arrays.integers import as_integers, frozen
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError, InputError, shown
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.nests.implementation import Implementation
from iomodel.placement.implementations import named
from iomodel.solving.batch.pass_points import KERNELS
from iomodel.solving.question import rates_for
from iomodel.studies.attention_points import AttentionPoints
from iomodel.studies.estimate_array_result import EstimateArray
from iomodel.studies.layer_points import LayerPoints
from iomodel.timing.clock_points import Fastest
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.workloads.attention import Attention
from iomodel.workloads.linear import Linear
from iomodel.workloads.workload import Shape, Workload

BLOCK = 1 << 14
"""Points timed together, whose arrays fit a cache [-]."""


@strict
def estimate_array(
    algorithm: AlgorithmLike,
    workload: Shape | None = None,
    hardware: Hardware | str | None = None,
    *,
    tiles: Mapping[str, Any] | None = None,
    parameters: Parameters = DEFAULT,
    implementation: str | Implementation | None = None,
    infeasible: str = "raise",
    **columns: Any,
) -> EstimateArray:
    """Estimate the time of an algorithm at many shapes, tiles and options at once.

    Parameters
    ----------
    algorithm, hardware, parameters, implementation
        As for :func:`iomodel.estimate`.
    workload : Attention or Linear, optional
        A template, whose fields the columns replace.
    tiles : mapping of name to int or array, optional
        Tiles, launch and options as for :func:`iomodel.estimate`; without tiles each point takes the default ones.
    infeasible : {"raise", "mark"}
        The result where a tile does not fit: an error, or a time of NaN.
    **columns
        Fields of the workload, tiles and options by name, as for :func:`iomodel.cost_array`: any number may be an
        array, and all broadcast. ``warps`` and ``stages`` may be arrays too; without them the fastest launch of each
        tile counts. Options that the kernels choose per call are chosen for each point if they are not given.

    Raises
    ------
    InfeasibleError
        A tile does not fit the device; the error has its index.
    UnknownNameError, InputError, SpecError
        As for :func:`iomodel.estimate` and :func:`iomodel.cost_array`; arrays of dtypes; a workload other than
        attention and linear layers, which has no arrays of times.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(heads=16, q_len=2048, head_dim=128, mask="causal")
    >>> times = iomodel.estimate_array("flash3", w, "h100-sxm5", q_len=[2048, 4096, 8192], block_q=128, block_kv=128)
    >>> [f"{mfu:.2f}" for mfu in times.mfu], times.limited_by.tolist()
    (['0.47', '0.56', '0.60'], ['matrix', 'matrix', 'matrix'])
    """
    second: Any = workload
    if hardware is None and not isinstance(second, Workload | None):
        warn_renamed("estimate_array(algorithm, hardware)", "iomodel.estimate_array(algorithm, None, hardware)")
        workload, hardware = None, second
    if hardware is None:
        raise InputError("hardware: not given; allowed: a device, such as 'h100-sxm5'")
    device = as_device(hardware)
    declaration, implementation = named(algorithm, implementation, device)
    as_choice("infeasible", infeasible, ("raise", "mark"))
    if not isinstance(parameters, Parameters):
        raise InputError(f"parameters: {shown(parameters)} given; allowed: an iomodel.devices.Parameters")
    if declaration.answers not in (Attention.operation, Linear.operation):
        raise InputError(
            f"algorithm: {declaration.name} given; allowed: an algorithm of attention or of linear layers, in an array "
            "of times"
        )
    arguments = columns_of_calls(declaration, workload, tiles, columns)
    launch = {name: as_integers(name, arguments[name]) for name in sorted(LAUNCH_NAMES & arguments.keys())}
    plain = {name: value for name, value in arguments.items() if name not in launch}
    points: AttentionPoints | LayerPoints
    if declaration.answers == Linear.operation:
        points = LayerPoints.of(declaration, device, implementation, parameters, plain, launch)
    else:
        points = AttentionPoints.of(declaration, device, implementation, parameters, plain, launch)
    shape = points.shape
    size = prod(shape)
    parts = [points.fastest(slice(start, min(start + BLOCK, size))) for start in range(0, size, BLOCK)]
    columns = {name: _joined([part.column(name) for part in parts]) for name in _names(parts)}
    seconds = np.concatenate([part.seconds for part in parts]) if parts else np.zeros(0)
    misfits = np.flatnonzero(np.isinf(seconds))
    seconds[misfits] = np.nan
    shaped = {name: frozen(column, shape) for name, column in columns.items()}
    streamed = shaped.pop("streamed", np.zeros(shape))
    chosen = {name: frozen(shaped.pop(name).astype(np.int64), shape) for name in [*shaped] if name in points.chosen}
    kernels = points.implementations(chosen)
    chosen = {name: column for name, column in chosen.items() if not name.endswith(KERNELS)}
    costs = points.costs({name: values for name, values in chosen.items() if name in TILE_NAMES}, ~np.isnan(seconds))
    known = {**costs.arguments, **launch}
    inputs = FrozenDict({name: _frozen(known.get(name, value)) for name, value in arguments.items()})
    result = EstimateArray(
        name_of(declaration), device, costs, frozen(seconds, shape), FrozenDict(shaped), streamed, FrozenDict(chosen),
        rates_for(device, points.called.first), parameters, implementation, inputs, frozen(kernels, shape),
    )  # fmt: skip
    if len(misfits) and infeasible == "raise":
        place = tuple(map(int, np.unravel_index(misfits[0], shape)))
        try:
            result.element(place)
        except InfeasibleError as error:
            text = f"{error}; at index {place}, the first of {len(misfits):,} among {size:,} points"
            raise InfeasibleError(text, least=error.least, unit=error.unit) from None
    return result


def _joined(parts: Sequence[Any]) -> Any:
    """Concatenate the parts of a column; one value for all points takes no memory."""
    if all(len(part) and part.strides == (0,) and part[0] == parts[0][0] for part in parts):
        return np.broadcast_to(parts[0][0], sum(map(len, parts)))
    return np.concatenate(parts)


def _frozen(value: Any) -> Any:
    """Return an argument that cannot be changed."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.setflags(write=False)
    return value


def _names(parts: Sequence[Fastest]) -> list[str]:
    """List the columns of all blocks, in order."""
    return list(dict.fromkeys(name for part in parts for name in part.columns))
