"""The public names, modules and rooms of the package."""

from types import ModuleType
from typing import Any

import iomodel

MODULES = tuple(name for name in iomodel.__all__ if isinstance(getattr(iomodel, name), ModuleType))
ROOT: dict[str, Any] = {name: getattr(iomodel, name) for name in iomodel.__all__ if name not in MODULES}
"""The names of the root."""
MOVED = {name: room for room, names in iomodel._MOVED.items() for name in names}
"""The room of each name that was public at the root."""
PUBLIC = ROOT | {name: getattr(getattr(iomodel, room), name) for name, room in MOVED.items()}
ROOMS = ("devices", "explorer", "kernels", "planning", "results", "theory")
"""Modules that gather the public names for one kind of reader."""
