"""A notebook page and the proxy between it and TensorBoard, with the limits that Colab's has.

Colab shows a server of its machine in an iframe of another site, through a proxy that answers for one port of that
machine. This one is as strict as a page can notice: the server lies under a path prefix; only GET and HEAD pass; there
is no WebSocket; a body is cut at 2 MB; what may be cached is kept by its address and never asked for again; a tab of
its own has no credentials and gets 403; and the view is a third party, to which Chromium denies storage.

The notebook page runs the script of a cell as Colab does, with `google.colab.kernel.proxyPort` defined.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from tensorboard import notebook

PREFIX = "/tun/m/gpu-t4-s-1abc/6006/"
MAX_BODY = 2_000_000
_NOT_PASSED_ON = {
    "connection",
    "transfer-encoding",
    "keep-alive",
    "server",
    "date",
    "content-length",
    "cache-control",
    "expires",
}
_PAGE = """<!doctype html><html theme="dark"><title>A notebook</title><body style="margin: 8px">
<script>
  const google = { colab: { kernel: { proxyPort: async (port, options) => {
    if (!options.cache) throw new Error("the cell does not ask for the cache");
    return "%s";
  } } } };
  %s
</script>"""


@dataclass
class ColabProxy:
    """A running proxy.

    ``notebook`` is the address of the page that runs ``cell``. ``refused`` are requests that did not pass, ``cut`` the
    paths whose bodies were cut, ``from_cache`` those that were answered without asking TensorBoard, ``passed`` those
    that were asked for.
    """

    server: ThreadingHTTPServer
    notebook: str
    origin: str
    cell: str = ""
    passed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    from_cache: list[str] = field(default_factory=list)
    cache: dict[str, tuple[int, list[tuple[str, str]], bytes]] = field(default_factory=dict)

    def close(self) -> None:
        """Ends it."""
        self.server.shutdown()
        self.server.server_close()


def start_colab_proxy(tensorboard: str) -> ColabProxy:
    """In front of the TensorBoard at this URL. The notebook is on `localhost`, the view on `127.0.0.1`: two sites."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    port = server.server_port
    proxy = ColabProxy(server, f"http://localhost:{port}/notebook", f"http://127.0.0.1:{port}{PREFIX}")
    server.proxy, server.tensorboard = proxy, urlsplit(tensorboard).netloc  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return proxy


def tensorboard_cell() -> str:
    """The script that `%tensorboard` writes into a cell of Colab."""
    shown: list[Any] = []
    notebook._display_colab(6006, 900, SimpleNamespace(update=shown.append))
    return str(shown[0].data)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        proxy: ColabProxy = self.server.proxy  # type: ignore[attr-defined]
        if self.path == "/notebook":
            self._answer(200, [("Content-Type", "text/html")], (_PAGE % (proxy.origin, proxy.cell)).encode())
        elif self.path == "/favicon.ico":
            self._answer(204, [], b"")
        elif not self.path.startswith(PREFIX):
            self._refuse(404)
        elif "upgrade" in self.headers.get("Connection", "").lower():
            self._refuse(400)
        elif self.headers.get("Sec-Fetch-Mode") == "navigate" and self.headers.get("Sec-Fetch-Dest") == "document":
            self._refuse(403)  # a new tab has none of the notebook's credentials
        elif self.path in proxy.cache:
            proxy.from_cache.append(self.path)
            self._answer(*proxy.cache[self.path])
        else:
            self._pass(proxy)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._refuse(405)

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_POST

    def _pass(self, proxy: ColabProxy) -> None:
        upstream = http.client.HTTPConnection(self.server.tensorboard, timeout=60)  # type: ignore[attr-defined]
        passed_on = {name: self.headers[name] for name in ("Accept", "Accept-Encoding") if name in self.headers}
        try:
            upstream.request("GET", "/" + self.path.removeprefix(PREFIX), headers=passed_on)
            response = upstream.getresponse()
            body = response.read()
        finally:
            upstream.close()
        proxy.passed.append(self.path)
        headers = [(name, value) for name, value in response.getheaders() if name.lower() not in _NOT_PASSED_ON]
        headers.append(("Cache-Control", "no-store"))  # it is this cache that is tested, not the browser's
        if len(body) > MAX_BODY:
            proxy.cut.append(self.path)
            body = body[:MAX_BODY]
        if response.status == 200 and _may_be_kept(response.getheader("Cache-Control", "")):
            proxy.cache[self.path] = (response.status, headers, body)
        self._answer(response.status, headers, body)

    def _refuse(self, status: int) -> None:
        self.server.proxy.refused.append(f"{self.command} {self.path}")  # type: ignore[attr-defined]
        self._answer(status, [], b"")

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(ConnectionError):  # the browser gave the request up
                self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests look at the lists."""


def _may_be_kept(cache_control: str) -> bool:
    """Everything but what says no: a cache that obeys the least that it has to."""
    return not re.search(r"no-store|no-cache|max-age=0", cache_control)
