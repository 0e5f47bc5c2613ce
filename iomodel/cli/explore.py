"""Command that writes or serves the interactive page."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from iomodel.cli.numbers import integer
from iomodel.cli.output import emit
from iomodel.cli.signature import option, switch, with_options
from iomodel.errors import InputError

DEFAULT = "iomodel-explorer.html"
PAGE = [
    option("algorithms", "Algorithms on the page, separated by commas (all).", "Page", "LIST"),
    option("hardware", "Devices on the page, separated by commas (all).", "Page", "LIST"),
    option("output", f"Output file ({DEFAULT}).", "Output", "FILE"),
    switch("force", "Replace an existing file.", "Output"),
]
PORT = option("port", "Port of --serve (any free port).", "Server")


@with_options(PAGE, [PORT])
def explore(
    *,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the page on 127.0.0.1.", rich_help_panel="Server")
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser with --serve.", rich_help_panel="Server")
    ] = False,
    **arguments: Any,
) -> None:
    """Write an interactive page of the formulas for a browser: one self-contained HTML file.

    Example:
      iomodel explore --output explorer.html
    """
    from iomodel.explorer.explore import explore as make

    if not serve and (arguments["port"] is not None or no_browser):
        raise InputError(
            f"{'no_browser' if arguments['port'] is None else 'port'}: given without --serve; allowed: only with it"
        )
    if serve and (arguments["output"] is not None or arguments["force"]):
        raise InputError("output: given with --serve; allowed: only without --serve, which writes no file")
    port = 0 if arguments["port"] is None else integer("port", arguments["port"])
    algorithms, hardware = _names("algorithms", arguments["algorithms"]), _names("hardware", arguments["hardware"])
    if serve:
        _shown(make(algorithms=algorithms, hardware=hardware, progress=True), port, not no_browser)
        return
    path = make(
        DEFAULT if arguments["output"] is None else arguments["output"],
        algorithms=algorithms,
        hardware=hardware,
        overwrite=bool(arguments["force"]),
        progress=True,
    )
    emit(f"{path}: {path.stat().st_size:,} B; open it in a browser")


def _names(field: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"{field}: {text!r} given; allowed: names separated by commas")
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
