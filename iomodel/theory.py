"""Names for a reader of papers: formulas, bounds, optima, crossovers and sweeps."""

from iomodel.common.facades import attach_facade

__getattr__, __dir__, __all__ = attach_facade(__name__, __file__)
