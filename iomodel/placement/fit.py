"""Resources that a thread block takes of an SM, with their limits: the answer to whether a tile fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from iomodel.common.arithmetic import anywhere, floor_div, larger, smaller
from iomodel.devices.device import Hardware

UNITS = {"shared memory": "B", "registers": "-", "threads": "-", "tensor memory": "columns", "MMA shape": "rows"}
"""Unit of each resource of a kernel of attention."""
REPEATED = ("repeated", "spilled_registers")
"""Figures of a block beside its resources [-]."""


class BlockFit(NamedTuple):
    """Use and limit of each resource by a thread block, and the blocks per SM by each: numbers, or arrays over tiles.

    Attributes
    ----------
    used, limits : mapping of str to Any
        Use and limit by resource: ``shared memory`` [B], ``registers`` of a thread [-], ``threads`` [-], ``tensor
        memory`` [columns]; ``MMA shape``, the rows of the tiles beyond a multiple of the step of the warps, or off the
        sizes that the kernel is compiled for [rows]. The sums of a linear layer lie in ``registers`` or
        ``accumulators`` [B].
    blocks : mapping of str to Any
        Concurrent blocks per SM that each resource has room for [-].
    units : mapping of str to str
        Unit of each resource.
    spilled : tuple of Any
        Registers that a block stores and loads in each iteration: in the L1, and beyond it [B].
    spilled_registers : Any
        The same of a thread [-].
    repeated : Any
        Warps that compute the same rows [-].
    """

    used: Mapping[str, Any]
    limits: Mapping[str, Any]
    blocks: Mapping[str, Any]
    units: Mapping[str, str] = UNITS
    spilled: tuple[Any, Any] = (0.0, 0.0)
    repeated: Any = 1
    spilled_registers: Any = 0

    @property
    def fits(self) -> Any:
        """True where no limit is exceeded."""
        fits: Any = True
        for name, limit in self.limits.items():
            fits = fits & (self.used[name] <= limit)
        return fits

    @property
    def over(self) -> dict[str, int]:
        """The excess over each limit that is exceeded."""
        used = self.used
        return {name: used[name] - limit for name, limit in self.limits.items() if anywhere(used[name] > limit)}

    @property
    def blocks_per_sm(self) -> Any:
        """Concurrent blocks per SM [-]."""
        return smaller(*self.blocks.values())

    @property
    def spills(self) -> bool:
        """True if registers are stored to local memory anywhere."""
        return anywhere(self.spilled[0] + self.spilled[1] > 0)

    @property
    def limited_by(self) -> str:
        """The resource that limits the concurrent blocks."""
        return min(self.blocks, key=self.blocks.__getitem__)


def in_one_memory(device: Hardware, footprint: Any) -> BlockFit:
    """Compute the resources of a block whose live data share one memory; footprints may be arrays [B]."""
    limit, per_sm = device.sram_per_block, device.memory.sram.per_sm
    name, available = "shared memory", limit if per_sm is None else int(per_sm.value)
    return BlockFit({name: footprint}, {name: limit}, {name: larger(1, floor_div(available, larger(1, footprint)))})


ALONE = BlockFit({}, {}, {"blocks": 1})
"""A block of unknown resources, alone on its SM."""


def joined(fits: Sequence[BlockFit], places: Any) -> BlockFit:
    """Join blocks to arrays over points, each with the place of its block."""
    limits = {name: limit for fit in fits for name, limit in fit.limits.items()}
    used = {name: np.array([fit.used.get(name, 0) for fit in fits])[places] for name in limits}
    rooms = {name for fit in fits for name in fit.blocks}
    blocks = {name: np.array([fit.blocks.get(name, fit.blocks["blocks"]) for fit in fits])[places] for name in rooms}
    near, far = np.array([fit.spilled for fit in fits]).T[:, places]
    repeated, stacks = (np.array([getattr(fit, name) for fit in fits])[places] for name in REPEATED)
    return BlockFit(used, limits, blocks, fits[0].units, (near, far), repeated, stacks)
