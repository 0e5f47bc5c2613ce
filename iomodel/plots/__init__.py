"""Pictures: rooflines, traffic against SRAM, the tiles that fit, where the time goes, where algorithms cross.

Each function returns a matplotlib figure of its own, without the global state of pyplot: it may be called from several
threads, and shows itself in notebooks. Matplotlib is loaded when a picture is made, not before.
"""

from iomodel.plots.breakdown import breakdown
from iomodel.plots.canvas import save
from iomodel.plots.crossover import crossover
from iomodel.plots.feasible import feasible_tiles
from iomodel.plots.roofline import Point, roofline
from iomodel.plots.roofs import Roofs, roofs
from iomodel.plots.traffic import traffic_against_sram

__all__ = [
    "Point",
    "Roofs",
    "breakdown",
    "crossover",
    "feasible_tiles",
    "roofline",
    "roofs",
    "save",
    "traffic_against_sram",
]
