"""Resources that a thread block takes of an SM, with their limits: the answer to whether a tile fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from iomodel.common.arithmetic import anywhere, floor_div, larger, smaller
from iomodel.devices.device import Hardware

UNITS = {"shared memory": "B", "registers": "-", "threads": "-", "tensor memory": "columns", "MMA shape": "rows"}
"""Unit of each resource of a kernel of attention."""


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
    """

    used: Mapping[str, Any]
    limits: Mapping[str, Any]
    blocks: Mapping[str, Any]
    units: Mapping[str, str] = UNITS

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
    def limited_by(self) -> str:
        """The resource that limits the concurrent blocks."""
        return min(self.blocks, key=self.blocks.__getitem__)


def in_one_memory(device: Hardware, footprint: Any) -> BlockFit:
    """Compute the resources of a block whose live data share one memory; footprints may be arrays [B]."""
    limit, per_sm = device.sram_per_block, device.memory.sram.per_sm
    name, available = "shared memory", limit if per_sm is None else int(per_sm.value)
    return BlockFit({name: footprint}, {name: limit}, {name: larger(1, floor_div(available, larger(1, footprint)))})
