"""Shows one page from a server that only this machine reaches."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from iomodel.errors import InputError

HOST = "127.0.0.1"


def server(html: str, port: int = 0) -> ThreadingHTTPServer:
    """A server of one page on this machine alone; port 0 is any that is free.

    Raises
    ------
    InputError
        The port is taken, or none.
    """
    body = html.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "no port"
        raise InputError(
            f"port: {port} given; allowed: one that is free, from 1024 to 65535, or 0 for any ({reason})"
        ) from None
