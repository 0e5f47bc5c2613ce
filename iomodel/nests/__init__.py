"""The language for declaring algorithms: statements, axes and tensors, symbols, and the declaration itself.

An :class:`Algorithm` built from these names is accepted in place of the name of an algorithm:
``iomodel.cost(mine, workload, tiles)``. The grammar is in :mod:`iomodel.nests.language`. Every name is imported on
first use.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
