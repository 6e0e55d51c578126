"""`show`: what it says where there is no notebook or no server that knows the plugin, and what it puts into a cell."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from tensorboard import manager

from tb_dlprof_plugin import notebook, show
from tb_dlprof_plugin.notebook import colab_script, jupyter_html, page_path


@pytest.fixture
def in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "_display", SimpleNamespace)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[str]], int]]:
    """A server with these tabs, which TensorBoard's own bookkeeping finds; its port."""
    servers: list[ThreadingHTTPServer] = []

    def start(tabs: list[str]) -> int:
        class Listing(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({tab: {} for tab in tabs}).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Listing)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        found = manager.StartReused(info=SimpleNamespace(port=server.server_port, pid=4321))
        monkeypatch.setattr(manager, "start", lambda arguments: found)
        return server.server_port

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_outside_of_a_notebook_it_says_what_to_run() -> None:
    with pytest.raises(RuntimeError, match="this is none; in a terminal run tensorboard --logdir"):
        show("runs")


@pytest.mark.usefixtures("in_a_notebook")
def test_without_tensorboard_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(RuntimeError, match="pip install tensorboard; `tb-dlprof view` needs none"):
        show("runs")


@pytest.mark.usefixtures("in_a_notebook")
def test_a_server_from_before_the_installation_is_named(running: Callable[[list[str]], int]) -> None:
    port = running(["scalars"])
    with pytest.raises(RuntimeError, match=f"port {port} was started before .* end it with !kill 4321"):
        show("runs")


@pytest.mark.usefixtures("in_a_notebook")
def test_a_server_that_was_killed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = manager.StartReused(info=SimpleNamespace(port=9, pid=4321))
    monkeypatch.setattr(manager, "start", lambda arguments: gone)
    with pytest.raises(RuntimeError, match=r"does not answer .* remove .*\.tensorboard-info"):
        show("runs")


@pytest.mark.usefixtures("in_a_notebook")
def test_what_tensorboard_said_when_it_ended_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = manager.StartFailed(exit_code=1, stdout="", stderr="Traceback\nno such flag\n")
    monkeypatch.setattr(manager, "start", lambda arguments: failed)
    with pytest.raises(RuntimeError, match="TensorBoard ended at once: no such flag"):
        show("runs")


class TestCell:
    def test_a_run_of_any_name_stays_a_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TENSORBOARD_PROXY_URL", raising=False)
        name = '</script>"&amp=1#'
        for cell in (colab_script(6006, page_path(name, None), 900), jupyter_html(6006, page_path(name, None), 900)):
            assert cell.count("</script>") == cell.count("<script>")
            assert "p.tb_dlprof.run=%3C/script%3E%22%26amp%3D1%23" in cell

    @pytest.mark.parametrize(
        ("proxy", "server", "port"),
        [(None, "/", 6007), ("/proxy/%PORT%/", "/proxy/6007/", 0), ("https://hub/user/me/proxy/%PORT%", None, 0)],
    )
    def test_jupyters_frame_is_where_the_proxy_is(
        self, monkeypatch: pytest.MonkeyPatch, proxy: str | None, server: str | None, port: int
    ) -> None:
        monkeypatch.delenv("TENSORBOARD_PROXY_URL", raising=False)
        if proxy is not None:
            monkeypatch.setenv("TENSORBOARD_PROXY_URL", proxy)
        cell = jupyter_html(6007, page_path("amp", "ops"), 900)
        assert f'new URL("{server or "https://hub/user/me/proxy/6007/"}", window.location)' in cell
        assert re.search(r"if \((\d+)\)", cell).group(1) == str(port)
        assert "alone=1#tb_dlprof&p.tb_dlprof.page=ops&p.tb_dlprof.run=amp" in cell
