"""Pages in Firefox, which Playwright drives in a build of its own alone: commands of WebDriver BiDi over a socket."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

LISTENS = re.compile(r"WebDriver BiDi listening on ws://([\d.]+):(\d+)")
PATIENCE = 120
"""Time that a command may take on a loaded machine [s]."""


class Firefox:
    """A running Firefox with one tab, and what its pages said and asked for."""

    def __init__(self, stream: socket.socket, file: Any) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.last, self.stream, self.file = 0, stream, file
        host, port = stream.getpeername()
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall(
            f"GET /session HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        assert b" 101 " in self.file.readline()
        while self.file.readline().strip():
            pass
        self.command("session.new", capabilities={})
        self.command("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self.tab = self.command("browsingContext.getTree")["contexts"][0]["context"]

    def command(self, method: str, **params: Any) -> Any:
        """Send a command, and return its result."""
        self.last += 1
        self._send(json.dumps({"id": self.last, "method": method, "params": params}).encode())
        while True:
            message = json.loads(self._received())
            if message.get("method") == "log.entryAdded":
                self.said.append(message["params"]["text"])
            elif message.get("method") == "network.beforeRequestSent":
                self.asked.append(message["params"]["request"]["url"])
            elif message.get("id") == self.last:
                assert "result" in message, message
                return message["result"]

    def open(self, address: str, width: int, height: int) -> None:
        """Show a page in a window of some pixels, and wait until it is loaded."""
        self.command("browsingContext.setViewport", context=self.tab, viewport={"width": width, "height": height})
        self.command("browsingContext.navigate", context=self.tab, url=address, wait="complete")

    def evaluate(self, expression: str) -> Any:
        """Evaluate an expression, or what it promises, to plain data."""
        text = f"(async () => JSON.stringify(await ({expression})))()"
        found = self.command("script.evaluate", expression=text, target={"context": self.tab}, awaitPromise=True)
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def _send(self, data: bytes) -> None:
        """Send a text in one masked frame (RFC 6455, 5.2); Firefox refuses a mask of zeros."""
        size = bytes([254]) + len(data).to_bytes(2, "big") if 125 < len(data) < 2**16 else bytes([128 + len(data)])
        mask = os.urandom(4)
        self.stream.sendall(bytes([129]) + size + mask + bytes(one ^ mask[k % 4] for k, one in enumerate(data)))

    def _received(self) -> bytes:
        """Return the next message, of one frame or several."""
        data, last = b"", False
        while not last:
            first, size = self.file.read(2)
            if size >= 126:
                size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
            part = self.file.read(size)
            if first & 15 in (0, 1):
                data, last = data + part, first >= 128
        return data


@contextmanager
def firefox(command: str, profile: Path) -> Iterator[Firefox]:
    """Run Firefox without a window."""
    words = [command, "--headless", "--no-remote", "--remote-debugging-port=0", "--profile", str(profile)]
    log, began = profile / "stderr", monotonic()
    with log.open("w") as errors, subprocess.Popen(words, stderr=errors, stdout=subprocess.DEVNULL) as process:
        try:
            while (place := LISTENS.search(log.read_text(encoding="utf-8", errors="replace"))) is None:
                assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")
                assert monotonic() - began < PATIENCE
                sleep(0.1)
            with socket.create_connection((place[1], int(place[2])), PATIENCE) as stream, stream.makefile("rb") as file:
                yield Firefox(stream, file)
        finally:
            process.terminate()
