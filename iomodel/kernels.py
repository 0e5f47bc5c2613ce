"""Names for an engineer of kernels: verbs, and the types that describe a kernel."""

from iomodel.common.facades import attach_facade

__getattr__, __dir__, __all__ = attach_facade(__name__, __file__)
