"""Command that writes or serves the interactive page, or links to a call on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from iomodel.cli import values
from iomodel.cli.numbers import integer
from iomodel.cli.output import emit
from iomodel.cli.shared_options import ALGORITHM, IMPLEMENTATION, TILE, WORKLOAD, algorithm_names
from iomodel.cli.signature import option, switch, with_options
from iomodel.common.output_files import writable
from iomodel.errors import InputError, shown

DEFAULT = "iomodel-explorer.html"
SCRIPT = "iomodel-call.js"
PAGE = [
    option("algorithms", "Algorithms on the page, separated by commas (all).", "Page", "LIST"),
    option("hardware", "Devices on the page, separated by commas (all); with --link, the device.", "Page", "LIST"),
    option("out", f"Output file ({DEFAULT}).", "Output", "FILE"),
    switch("element", f"Write the script of the custom element beside the page ({SCRIPT}).", "Output"),
    switch("force", "Replace existing files.", "Output"),
]
PORT = option("port", "Port of --serve (any free port).", "Server")
BASE = option("base", "Address of a page for --link (the output file, which is written if it is missing).", "Link")
CALL = [IMPLEMENTATION, *WORKLOAD, *TILE, *ALGORITHM]
"""Options of the call of a link."""
Linked = Annotated[
    str | None, typer.Argument(help="The algorithm of --link.", autocompletion=algorithm_names, show_default=False)
]


@with_options(PAGE, [PORT, BASE], CALL)
def explore(
    algorithm: Linked = None,
    *,
    link: Annotated[
        bool, typer.Option("--link", help="Print a link that opens the page at a call.", rich_help_panel="Link")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the page on 127.0.0.1.", rich_help_panel="Server")
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser with --serve.", rich_help_panel="Server")
    ] = False,
    **arguments: Any,
) -> None:
    """Write an interactive page of the formulas for a browser: one self-contained HTML file.

    With --link, print a link to a call, which has the options of `iomodel estimate`.

    Example:
      iomodel explore --out explorer.html
    """
    from iomodel.explorer.explore_page import explore as make

    _check(algorithm, arguments, link=link, serve=serve, no_browser=no_browser)
    if link:
        emit(_link(algorithm, arguments))
        return
    port = 0 if arguments["port"] is None else integer("port", arguments["port"])
    algorithms, hardware = _names("algorithms", arguments["algorithms"]), _names("hardware", arguments["hardware"])
    if serve:
        _shown(make(algorithms=algorithms, hardware=hardware, progress=True), port, not no_browser)
        return
    beside = Path(arguments["out"] or DEFAULT).with_name(SCRIPT)
    if arguments["element"]:
        writable(beside, (".js",), overwrite=bool(arguments["force"]))
    path = make(
        DEFAULT if arguments["out"] is None else arguments["out"],
        algorithms=algorithms,
        hardware=hardware,
        overwrite=bool(arguments["force"]),
        progress=True,
    )
    emit(f"{path}: {path.stat().st_size:,} B; open it in a browser")
    if arguments["element"]:
        from iomodel.explorer.element import element

        element(beside, overwrite=bool(arguments["force"]))
        tags = f'<script src="{SCRIPT}"></script> <iomodel-call src="{path.name}"></iomodel-call>'
        emit(f"{beside}: in another page, {tags}")


def _check(algorithm: str | None, arguments: dict[str, Any], *, link: bool, serve: bool, no_browser: bool) -> None:
    """Raise InputError for options that do not go together."""
    names = {name for name, value in arguments.items() if value is not None}
    if not serve and (arguments["port"] is not None or no_browser):
        raise InputError(
            f"{'no_browser' if arguments['port'] is None else 'port'}: given without --serve; allowed: only with it"
        )
    for name in ("out", "force", "element") if serve else ():
        if name in names:
            raise InputError(f"{name}: given with --serve; allowed: only without --serve, which writes no file")
    for name in [] if link else [*(["algorithm"] if algorithm else []), "base", *(entry.name for entry in CALL)]:
        if name == "algorithm" or name in names:
            raise InputError(f"{name}: given without --link; allowed: only with it, for the call of the link")
    for name in ("algorithms", "element", "force", "out" if "base" in names else "") if link else ():
        if name in names:
            raise InputError(f"{name}: given with --link; allowed: --base, or --out with a page of everything")
    if link and serve:
        raise InputError("serve: given with --link; allowed: one of the two")


def _link(algorithm: str | None, arguments: dict[str, Any]) -> str:
    """Return the link to a call, on the page of everything at an address or in a file."""
    from iomodel.explorer.explore_page import explore as make
    from iomodel.explorer.link import link

    for name, text, example in (("algorithm", algorithm, "flash2"), ("hardware", arguments["hardware"], "h100-sxm5")):
        if text is None:
            raise InputError(f"{name}: none given, but required by --link; allowed: a name, such as {example}")
    assert algorithm is not None
    place = link(
        algorithm,
        values.workload(arguments, algorithm),
        arguments["hardware"],
        values.tiles(arguments),
        arguments["implementation"],
        **values.options(arguments),
    )
    base = arguments["base"]
    if base is not None:
        if not base or "#" in base or any(letter.isspace() for letter in base):
            raise InputError(f"base: {shown(base)} given; allowed: an address without #, such as https://host/page")
        return f"{base}#{place}"
    file = Path(arguments["out"] or DEFAULT)
    written = file if file.is_file() else make(file, progress=True)
    return f"{written.resolve().as_uri()}#{place}"


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
