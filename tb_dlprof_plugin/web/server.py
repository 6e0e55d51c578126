"""A small server for the page alone: the routes at the paths that TensorBoard gives them, without TensorBoard.

It listens on this machine by default, answers GET and HEAD, and refuses a request whose ``Host`` is
not its own: a page of another site, whose name was made to mean this machine, reads nothing.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import os
import socket
from pathlib import Path

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from tb_dlprof_plugin.store.tags import PLUGIN_NAME
from tb_dlprof_plugin.web.apps import App, Apps
from tb_dlprof_plugin.web.event_file_runs import EventFileRuns
from tb_dlprof_plugin.web.listings import Listing, Listings
from tb_dlprof_plugin.web.respond import response

LOCALHOST = "127.0.0.1"
DEFAULT_PORT = 6006
_MOST_TRIED = 100
_ROUTES = f"data/plugin/{PLUGIN_NAME}/"
_SCRIPT = 'import("./index.js").then((m) => void m.render());'
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>DLProf</title><base href="{base}"><link rel="icon" href="data:,"></head>
<body><script type="module">{script}</script></body>
</html>
"""
_DIGEST = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; script-src 'self' 'sha256-{_DIGEST}'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; base-uri 'self'; form-action 'none'"
)


def app_of(logdir: Path, host: str = LOCALHOST, only: Path | None = None) -> App:
    """The WSGI app of a log directory, or of one event file in it.

    Args:
        logdir: an existing directory.
        host: where the server listens, one of the names by which requests may call it.
        only: an event file in that directory: no other is shown.
    """
    runs, listings = EventFileRuns(logdir, only), Listings()

    def listing(_: Request, names: tuple[str, ...]) -> Listing:
        return listings.of("", runs, names)

    apps = {f"/{_ROUTES}{path[1:]}": app for path, app in Apps(str(logdir), listing).by_path().items()}
    # Where TensorBoard has its own page, and where it has ours alone.
    apps |= {"/": _entry(_ROUTES), "/data/plugin_entry.html": _entry(_ROUTES.removeprefix("data/"))}

    @Request.application
    def serve(request: Request) -> App:
        if not is_own_host(request.headers.get("Host", ""), host):
            return response(request, b"This server has another name.", "text/plain", 403)
        return apps.get(request.path) or response(request, b"Not found", "text/plain", 404)

    return serve  # type: ignore[no-any-return]


def _entry(base: str) -> App:
    page = _PAGE.format(base=base, script=_SCRIPT).encode()

    @Request.application
    def serve(request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return response(request, b"Only GET is answered.", "text/plain", 405)
        return response(request, page, "text/html", policy=_POLICY)

    return serve  # type: ignore[no-any-return]


def is_own_host(header: str, host: str) -> bool:
    """Whether a request's ``Host`` names this server: this machine, or the host that it listens on.

    A server on all addresses is also called by any of them in figures, which no site can have for its name, and by the
    machine's name.
    """
    name = header.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name in ("localhost", LOCALHOST, "::1", host.lower()):
        return True
    if not _is_address(host) or not ipaddress.ip_address(host).is_unspecified:
        return False
    return _is_address(name) or name in (socket.gethostname().lower(), socket.getfqdn().lower())


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class _Quiet(WSGIRequestHandler):
    """Prints no line per request."""

    def log(self, type: str, message: str, *args: object) -> None:
        pass


def bound(app: App, host: str = LOCALHOST, port: int | None = None) -> BaseWSGIServer:
    """A server that listens; each request has a thread of its own.

    Args:
        app: what it serves.
        host: where it listens.
        port: 0 is a free one; by default `DEFAULT_PORT`, or the next that is free.

    Raises:
        OSError: the port is taken, or this machine has no such host.
    """
    tried = range(DEFAULT_PORT, DEFAULT_PORT + _MOST_TRIED) if port is None else (port,)
    for number in tried:
        # werkzeug ends the process where it cannot listen itself.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family)
        try:
            if os.name == "posix":  # Elsewhere it would share a port that is taken.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, number))
            listening.listen()
        except OSError:
            listening.close()
            if number == tried[-1]:
                raise
            continue
        with listening:
            taken = listening.getsockname()[1]
            return make_server(host, taken, app, threaded=True, request_handler=_Quiet, fd=listening.fileno())
    raise AssertionError("no port was tried")


def address_of(server: BaseWSGIServer, host: str) -> str:
    """Where a browser of this machine finds it."""
    name = LOCALHOST if _is_address(host) and ipaddress.ip_address(host).is_unspecified else host
    return f"http://{f'[{name}]' if ':' in name else name}:{server.port}/"
