"""Capacity planning: memory, a replica under load, the smallest fleet, and a simulated engine."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
