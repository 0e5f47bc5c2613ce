"""Exact HBM traffic, fastest tiles, lower bounds and times of attention kernels, layers and served models.

`__init__.pyi` lists the public names. Each is imported on its first use: `import iomodel` alone loads no other library.
"""

from __future__ import annotations

from typing import Any

import lazy_loader as lazy

_public, __dir__, __all__ = lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _public(name)
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
