"""The server of the explorer's page: what it answers, to whom, and for how long."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from iomodel.explorer import serve
from iomodel.explorer.serve import server


@contextlib.contextmanager
def served() -> Iterator[int]:
    """Serve a page; the value is the port."""
    with server("<!doctype html>") as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running.server_address[1]
        running.shutdown()


def test_the_server_shows_the_page_and_nothing_else() -> None:
    with served() as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            assert answer.read() == b"<!doctype html>"
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/etc/passwd")
        caught.value.close()


@pytest.mark.parametrize(
    ("name", "status"), [("127.0.0.1", 200), ("localhost", 200), ("rebound.example", 421), ("", 421)]
)
def test_the_server_answers_by_names_of_this_machine(name: str, status: int) -> None:
    with served() as port, contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.putrequest("GET", "/", skip_host=True)
        connection.putheader("Host", f"{name}:{port}")
        connection.endheaders()
        assert connection.getresponse().status == status


def connected(port: int) -> socket.socket:
    """Connect, and say nothing."""
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def test_the_server_closes_a_silent_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "TIMEOUT", 0.2)
    with served() as port, connected(port) as silent:
        assert silent.recv(1) == b""


def test_the_server_closes_a_connection_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "CONNECTIONS", 2)
    with served() as port, connected(port), connected(port), connected(port) as last:
        assert last.recv(1) == b""
