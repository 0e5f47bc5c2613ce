"""Local server of one page."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from iomodel.errors import InputError

HOST = "127.0.0.1"


def server(html: str, port: int = 0) -> ThreadingHTTPServer:
    """Create a server of one page, reachable from this machine only; port 0 picks any free port.

    Raises
    ------
    InputError
        The port is taken or invalid.
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
            """Log nothing."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "not a port"
        raise InputError(
            f"port: {port} given; allowed: a free port from 1024 to 65535, or 0 for any ({reason})"
        ) from None
