"""The public names, modules and rooms of the package."""

from types import ModuleType
from typing import Any

import iomodel

MODULES = tuple(name for name in iomodel.__all__ if isinstance(getattr(iomodel, name), ModuleType))
PUBLIC: dict[str, Any] = {name: getattr(iomodel, name) for name in iomodel.__all__ if name not in MODULES}
ROOMS = ("devices", "explorer", "kernels", "planning", "results", "theory")
"""Modules that gather the public names for one kind of reader."""
