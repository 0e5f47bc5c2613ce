"""Pictures: rooflines, traffic, feasible tiles, times of tiles and resources, crossovers and staircases.

Each function returns a new matplotlib figure without the global state of pyplot, so it is safe to call from several
threads, and the figure displays in notebooks. Matplotlib is imported when the first picture is made.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
