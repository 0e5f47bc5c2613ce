"""Command that serves tools to an agent."""

from __future__ import annotations


def mcp() -> None:
    """Serve bounds, tiles, limits and gaps to an agent, by the Model Context Protocol on the standard streams.

    Example:
      iomodel mcp --help
    """
    from iomodel.integrations.mcp.server import server

    server().run("stdio")
