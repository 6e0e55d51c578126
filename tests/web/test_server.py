"""The server of `tb-dlprof view`: the same bytes as under TensorBoard, for those who call it by its name."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client, TestResponse

from tb_dlprof_plugin.plugin import DlprofPlugin
from tb_dlprof_plugin.store.event_file import event_files, write_profile
from tb_dlprof_plugin.web import page_file as page_file_module
from tb_dlprof_plugin.web.event_file_runs import EventFileRuns
from tb_dlprof_plugin.web.export import page as page_module
from tb_dlprof_plugin.web.routes import ROUTES
from tb_dlprof_plugin.web.server import address_of, app_of, bound, is_own_host

ROUTE = "/data/plugin/tb_dlprof"
TRACE = "worker.1.pt.trace.json"
KIND_AND_ID = {"run": "fp32", "kind": "op_type", "id": "conv2d"}
OF_JOB = {"run": "deep/ranks"}
QUERIES: dict[str, dict[str, str]] = {
    "work_detail": KIND_AND_ID,
    "related": KIND_AND_ID,
    "timeline_events": {"run": "fp32", "chunk": "0"},
    "timeline_event": {"run": "fp32", "id": "g1"},
    "timeline_matches": {"run": "fp32", "text": "conv"},
    "distributed": OF_JOB,
    "other_jobs": OF_JOB | {"against": "fp32"},
    "rank_lines": OF_JOB | {"ranks": "0,1"},
    "search": {"run": "fp32", "text": "conv"},
    "report": {"run": "fp32", "name": "kernel"},
    "compare_op": {"id": "0"},
    "forecast": {"run": "fp32", "precision": "bf16"},
    "trace": {"run": "fp32", "name": TRACE},
    "sweep": {"over": "precision", "measure": "share", "kernel_group": "convolution"},
}
"""What a route needs besides a run, or two."""
REFUSED = {"compare_op", "timeline_event", "timeline_events"}
"""Routes that have nothing of what their query names; their sentence is compared."""


@pytest.fixture(scope="module")
def root(logdir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory of this module, with a trace."""
    folder = tmp_path_factory.mktemp("served") / "runs"
    shutil.copytree(logdir, folder)
    (folder / "fp32" / TRACE).write_text('{"traceEvents": []}')
    return folder


@pytest.fixture(scope="module")
def under_tensorboard(root: Path) -> Callable[..., TestResponse]:
    """Asks the plugin over what TensorBoard's own loader has read."""
    loader = EventMultiplexer(tensor_size_guidance={"tb_dlprof": 0})
    loader.AddRunsFromDirectory(str(root))
    loader.Reload()
    provider = MultiplexerDataProvider(loader, str(root))
    apps = DlprofPlugin(TBContext(data_provider=provider, logdir=str(root))).get_plugin_apps()
    return lambda path, **request: Client(apps[path]).open(f"{ROUTE}{path}", **request)


@pytest.fixture(scope="module")
def viewed(root: Path) -> Callable[..., TestResponse]:
    """Asks the server of `tb-dlprof view`."""
    client = Client(app_of(root))
    return lambda path, **request: client.open(f"{ROUTE}{path}", **request)


def _complete(ask: Callable[..., TestResponse], path: str, query: dict[str, str]) -> TestResponse:
    """The answer once all runs are read."""
    while True:
        answer = ask(path, query_string=query)
        page = answer.json if answer.is_json else {}
        if not isinstance(page, dict) or page.get("done", page.get("total")) == page.get("total"):
            return answer


def _sent(answer: TestResponse) -> tuple[str, dict[str, str], bytes]:
    """All of it but the time."""
    return answer.status, {name: value for name, value in answer.headers.items() if name != "Date"}, answer.data


# An HTML file says when it was made.
@pytest.mark.parametrize("name", sorted(ROUTES.keys() - {"page_file"}))
def test_every_route_gives_the_same_bytes_as_under_tensorboard(under_tensorboard, viewed, name: str) -> None:
    first = {
        "AnyQuery": {}, "ProfileQuery": {"run": "fp32"}, "RangeQuery": {"run": "fp32"},
        "CompareQuery": {"a.run": "fp32", "b.run": "fp16"},
    }[ROUTES[name].query]  # fmt: skip
    query = first | QUERIES.get(name, {})
    expected, found = (_complete(ask, f"/{name}", query) for ask in (under_tensorboard, viewed))
    assert (found.status_code == 200) == (name not in REFUSED), found.text
    assert _sent(found) == _sent(expected)
    if tag := found.headers.get("ETag"):
        assert viewed(f"/{name}", query_string=query, headers={"If-None-Match": tag}).status_code == 304


def test_the_pages_of_two_runs_come_as_one_file_in_pieces(viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "chunks", lambda: {"standalone-1.js": "export {}"})
    monkeypatch.setattr(page_file_module, "PIECE_BYTES", 10_000)
    query = {"run": "fp32", "other": "fp16"}
    pieces = [viewed("/page_file", query_string=query)]
    while len(pieces[-1].data) == 10_000:
        pieces.append(viewed("/page_file", query_string=query | {"offset": 10_000 * len(pieces)}))
    text = b"".join(piece.data for piece in pieces).decode()
    assert len(pieces) > 2
    assert {piece.content_type for piece in pieces} == {"application/octet-stream"}
    assert (text.startswith("<!"), text.rstrip().endswith("</html>")) == (True, True)
    assert "<title>fp32 and fp16" in text
    missing = viewed("/page_file", query_string={"run": "fp32", "other": "gone"})
    assert (missing.status_code, "gone" in missing.text) == (404, True)


@pytest.mark.parametrize(
    ("path", "request_"),
    [
        ("/ops", {"query_string": {"run": "damaged"}}),
        ("/ops", {"query_string": {"run": "missing"}}),
        ("/ops", {"query_string": {"run": "fp32", "cycle": "5"}, "headers": {"Accept-Encoding": "gzip"}}),
        ("/ops", {"method": "POST", "data": "x"}),
        ("/runs", {"method": "HEAD"}),
        ("/index.js", {}),
        ("/index.js", {"method": "HEAD", "headers": {"Accept-Encoding": "gzip"}}),
        ("/index.js", {"method": "PUT"}),
    ],
)
def test_refusals_methods_and_packing_are_the_same_too(under_tensorboard, viewed, path: str, request_: Any) -> None:
    assert _sent(viewed(path, **request_)) == _sent(under_tensorboard(path, **request_))


def test_the_page_is_where_tensorboard_has_its_own_and_ours_alone(root: Path) -> None:
    client = Client(app_of(root))
    for path, base in (
        ("/", "data/plugin/tb_dlprof/"),
        ("/data/plugin_entry.html?name=tb_dlprof", "plugin/tb_dlprof/"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.mimetype) == (200, "text/html")
        assert f'<base href="{base}">' in answer.text
        assert "script-src 'self' 'sha256-" in answer.headers["Content-Security-Policy"]
        assert client.post(path, data="x").status_code == 405
    for path in ("/nothing", f"{ROUTE}/../../etc/passwd", f"{ROUTE}/", f"{ROUTE}/nothing.js"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("header", "host", "is_own"),
    [
        ("localhost:6006", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("[::1]:6006", "::1", True),
        ("LOCALHOST", "127.0.0.1", True),
        ("gpu3.example:6006", "gpu3.example", True),
        ("", "127.0.0.1", False),
        ("rebound.example:6006", "127.0.0.1", False),
        ("localhost.rebound.example", "127.0.0.1", False),
        ("192.168.1.4:6006", "127.0.0.1", False),
        ("192.168.1.4:6006", "0.0.0.0", True),
        ("[fe80::1]:6006", "::", True),
        ("rebound.example", "0.0.0.0", False),
        ("rebound.example", "::", False),
    ],
)
def test_a_request_must_name_this_server(root: Path, header: str, host: str, is_own: bool) -> None:
    assert is_own_host(header, host) == is_own
    status = Client(app_of(root, host)).get(f"{ROUTE}/runs", headers={"Host": header}).status_code
    assert status == (200 if is_own else 403)


def _runs(client: Client) -> dict[str, list[int]]:
    return {run["run"]: run["cycles"] for run in client.get(f"{ROUTE}/runs").json["runs"]}


def test_what_is_recorded_removed_or_damaged_meanwhile_is_followed(
    profiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tb_dlprof_plugin.web.listings._FRESH_S", 0.0)
    monkeypatch.setattr("tb_dlprof_plugin.web.listings._FRESH_SHARE", 0.0)
    client = Client(app_of(tmp_path))
    assert _runs(client) == {}
    path = write_profile(tmp_path / "a", profiles["fp16"])
    assert _runs(client) == {"a": [0]}
    write_profile(tmp_path / "a", profiles["fp32"])
    write_profile(tmp_path, profiles["fp16"])
    # A log directory that is a run itself is called ".", as in TensorBoard.
    assert _runs(client) == {".": [0], "a": [0, 11]}
    path.write_bytes(path.read_bytes()[:-9])
    with caplog.at_level(logging.WARNING):
        assert _runs(client) == {".": [0], "a": [11]}
        assert _runs(client) == {".": [0], "a": [11]}
    assert [record.getMessage() for record in caplog.records if str(path) in record.getMessage()] != []
    assert len(caplog.records) == 1
    path.unlink()
    assert _runs(client) == {".": [0], "a": [11]}


def test_a_file_that_goes_between_listing_and_reading_is_this_runs_error(profiles, tmp_path: Path) -> None:
    path = write_profile(tmp_path / "a", profiles["fp16"])
    client = Client(app_of(tmp_path))
    assert _runs(client) == {"a": [0]}
    path.unlink()
    answer = client.get(f"{ROUTE}/ops?run=a")
    assert (answer.status_code, "its event file cannot be read" in answer.json["error"]) == (422, True)


def test_one_event_file_is_shown_without_its_neighbours(profiles, tmp_path: Path) -> None:
    write_profile(tmp_path, profiles["fp32"])
    only = write_profile(tmp_path, profiles["fp16"])
    assert _runs(Client(app_of(tmp_path, only=only))) == {".": [0]}


def test_a_file_is_read_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = EventFileRuns(root)
    known = list(runs.blobs())
    monkeypatch.setattr("tb_dlprof_plugin.web.event_file_runs.placed_in", lambda *_: pytest.fail("read again"))
    assert [blob.key for blob in runs.blobs()] == [blob.key for blob in known]
    assert len({blob.key for blob in known}) == len(known) == len(event_files(root))


def test_a_port_is_free_the_next_or_refused(root: Path) -> None:
    app = app_of(root)
    first, second = bound(app), bound(app)
    try:
        assert second.port > first.port >= 6006
        assert address_of(second, "127.0.0.1") == f"http://127.0.0.1:{second.port}/"
        assert address_of(second, "0.0.0.0") == f"http://127.0.0.1:{second.port}/"
        with pytest.raises(OSError, match="in use"):
            bound(app, port=first.port)
        with pytest.raises(OSError, match="assign"):
            bound(app, "192.0.2.1", 0)
    finally:
        first.server_close()
        second.server_close()
