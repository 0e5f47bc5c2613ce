"""Build hook that puts the explorer into the wheel: the page of all calls, built from the code of the wheel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ExplorerPage(BuildHookInterface):
    """The page as package data of a wheel; an editable install has none, since its code may change."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, or take it from an earlier build of the same code."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from iomodel.explorer.built import NAME, kept

            page = kept(Path(self.root) / "build" / "explorer", self.metadata.version)
        finally:
            sys.path.remove(self.root)
        build_data["force_include"][str(page)] = f"iomodel/explorer/{NAME}"
