"""Local server of one page."""

from __future__ import annotations

import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any

from iomodel.errors import InputError

HOST = "127.0.0.1"
NAMES = frozenset({HOST, "localhost"})
"""Names of this machine by which the page may be asked for: another one comes from a page that names itself so."""
CONNECTIONS = 32
"""Connections that are answered at one time; a browser opens six."""
TIMEOUT = 10.0
"""Time that a connection may be silent [s]."""


class PageServer(ThreadingHTTPServer):
    """A server of one page with a limit of connections."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._free = BoundedSemaphore(CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own, or close it if as many are open as may be."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a connection that its other end closed."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def server(html: str, port: int = 0) -> PageServer:
    """Create a server of one page, reachable from this machine only; port 0 picks any free port.

    A request that names another host is refused, so that no page of another site can read from this server by a name
    of its own. A silent connection is closed after 10 s, and one beyond the 32 that are answered at a time at once.

    Raises
    ------
    InputError
        The port is taken or invalid.
    """
    body = html.encode()

    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT

        def do_GET(self) -> None:
            if self.headers.get("Host", "").rpartition(":")[0] not in NAMES:
                self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
                return
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
        return PageServer((HOST, port), Handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "not a port"
        raise InputError(
            f"port: {port} given; allowed: a free port from 1024 to 65535, or 0 for any ({reason})"
        ) from None
