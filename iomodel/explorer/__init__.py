"""Page of `iomodel.explorer.explore`: formulas as JavaScript and MathML, data, and assembly."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
