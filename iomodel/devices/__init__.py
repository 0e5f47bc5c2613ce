"""Hardware specifications: figures with units and sources, and rates derived from them."""

from iomodel.common.facades import attach_facade

__getattr__, __dir__, __all__ = attach_facade(__name__, __file__)
