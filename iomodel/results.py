"""Types of the answers, and of their parts, for annotations."""

from iomodel.common.facades import attach_facade

__getattr__, __dir__, __all__ = attach_facade(__name__, __file__)
