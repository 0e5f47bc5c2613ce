"""The command that makes the page."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from iomodel.commands.numbers import integer
from iomodel.commands.output import emit
from iomodel.commands.signature import option, switch, with_options
from iomodel.errors import InputError

DEFAULT = "iomodel-explorer.html"
PAGE = [
    option("algorithms", "Algorithms that the page knows, with commas between them (all).", "Page", "LIST"),
    option("hardware", "Devices that it knows, with commas between them (all).", "Page", "LIST"),
    option("output", f"The file ({DEFAULT}).", "Output", "FILE"),
    switch("force", "Replace a file that is there.", "Output"),
]
PORT = option("port", "With --serve, the port (any that is free).", "Server")


@with_options(PAGE, [PORT])
def explore(
    *,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the page from a server on 127.0.0.1.", rich_help_panel="Server")
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="With --serve, open no browser.", rich_help_panel="Server")
    ] = False,
    **given: Any,
) -> None:
    """Write a page that explores the formulas in a browser: one HTML file, which needs nothing else.

    Example:
      iomodel explore --output explorer.html
    """
    from iomodel.explore import explore as make

    if not serve and (given["port"] is not None or no_browser):
        raise InputError(f"{'port' if given['port'] is not None else 'no_browser'}: given alone; allowed: with --serve")
    if serve and (given["output"] is not None or given["force"]):
        raise InputError("output: given with --serve; allowed: without it, for a page that is served is not written")
    port = 0 if given["port"] is None else integer("port", given["port"])
    algorithms, hardware = _names("algorithms", given["algorithms"]), _names("hardware", given["hardware"])
    if serve:
        _shown(make(algorithms=algorithms, hardware=hardware, progress=True), port, not no_browser)
        return
    path = make(
        DEFAULT if given["output"] is None else given["output"],
        algorithms=algorithms,
        hardware=hardware,
        overwrite=bool(given["force"]),
        progress=True,
    )
    emit(f"{path}: {path.stat().st_size:,} B; open it in a browser")


def _names(field: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"{field}: {text!r} given; allowed: names with commas between them")
    return names


def _shown(html: str, port: int, browser: bool) -> None:
    """Serve the page until Ctrl-C."""
    import webbrowser

    from iomodel.explorer.serve import server

    with server(html, port) as running:
        address = f"http://{running.server_address[0]!s}:{running.server_address[1]}/"
        emit(f"{address} until Ctrl-C")
        if browser:
            webbrowser.open(address)
        running.serve_forever()
