"""Pictures: rooflines, traffic, feasible tiles, times of tiles and resources, crossovers and staircases.

Each function returns a new matplotlib figure without the global state of pyplot, so it is safe to call from several
threads, and the figure displays in notebooks. Matplotlib is imported when the first picture is made.
"""

from iomodel.plots.breakdown import breakdown
from iomodel.plots.canvas import save
from iomodel.plots.crossover import crossover
from iomodel.plots.feasible import feasible_tiles
from iomodel.plots.moves import moves
from iomodel.plots.on_chip import on_chip
from iomodel.plots.pareto import pareto
from iomodel.plots.parity import parity
from iomodel.plots.roofline import Point, roofline
from iomodel.plots.roofs import Roofs, roofs
from iomodel.plots.staircase import staircase
from iomodel.plots.tile_times import tile_times
from iomodel.plots.traffic import traffic_against_sram

__all__ = [
    "Point",
    "Roofs",
    "breakdown",
    "crossover",
    "feasible_tiles",
    "moves",
    "on_chip",
    "pareto",
    "parity",
    "roofline",
    "roofs",
    "save",
    "staircase",
    "tile_times",
    "traffic_against_sram",
]
