"""The server: tools over the standard streams, by the official SDK."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from iomodel.errors import InputError, IOModelError
from iomodel.integrations.mcp.tools import TOOLS

INSTRUCTIONS = (
    "Analytical cost model of attention and matrix products on GPUs. Counts of traffic are exact; times are a model. "
    "Ask bound for the least traffic of any kernel, best_tile for a launch, what_binds for its limit, and gap for the "
    "distance of a measured time. Numbers are in base units: elements, B, FLOP, s."
)


def server() -> Any:
    """Build the server, as an `MCPServer` of the SDK.

    Raises
    ------
    InputError
        The SDK is not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise InputError("mcp: version 2 of the SDK is not installed; pip install 'iomodel[mcp]'") from None
    try:
        release = version("iomodel")
    except PackageNotFoundError:
        release = ""
    made = MCPServer("iomodel", instructions=INSTRUCTIONS, version=release, log_level="ERROR")
    for tool in TOOLS.values():
        made.add_tool(_refusing(tool, ToolError), structured_output=True)
    return made


def _refusing(tool: Callable[..., Any], error: type[Exception]) -> Callable[..., Any]:
    """Pass the one line of an error on to the client."""

    @wraps(tool)
    def answer(*arguments: Any, **named: Any) -> Any:
        try:
            return tool(*arguments, **named)
        except IOModelError as refused:
            raise error(str(refused)) from None

    return answer
