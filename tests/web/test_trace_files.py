"""The traces of a run over HTTP: listed, read in pieces, and nothing else of the disk."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from tb_dlprof_plugin.store import run_files
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.run_files import RunFile
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.trace_files import PIECE_BYTES, piece_of, run_directory, traces_in

SECRET = b"not a trace"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a trace, its original, and what must never be read."""
    folder = tmp_path / "logs" / "run"
    (folder / "kineto").mkdir(parents=True)
    (folder / "w.1.pt.trace.json").write_bytes(b"x" * (PIECE_BYTES + 5))
    (folder / "kineto" / "w.1.trace.json").write_bytes(b"{}")
    (folder / "notes.txt").write_bytes(SECRET)
    (folder / ".w.2.pt.trace.json").write_bytes(SECRET)
    (tmp_path / "elsewhere.pt.trace.json").write_bytes(SECRET)
    (folder / "link.pt.trace.json").symlink_to(tmp_path / "elsewhere.pt.trace.json")
    (folder / "folder.pt.trace.json").mkdir()
    return folder


def test_only_regular_files_with_a_traces_name_are_listed(run: Path) -> None:
    assert [(f.name, f.size_bytes) for f in traces_in(run)] == [
        ("kineto/w.1.trace.json", 2),
        ("w.1.pt.trace.json", PIECE_BYTES + 5),
    ]


def test_a_file_comes_whole_in_pieces(run: Path) -> None:
    pieces = [piece_of(run, "w.1.pt.trace.json", offset, None) for offset in (0, PIECE_BYTES, 2 * PIECE_BYTES)]
    assert [len(piece) for piece in pieces] == [PIECE_BYTES, 5, 0]


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "../../elsewhere.pt.trace.json", "link.pt.trace.json", ".w.2.pt.trace.json", "folder.pt.trace.json",
     "kineto/../notes.txt", "", "/etc/passwd"],
)  # fmt: skip
def test_nothing_else_is_read(run: Path, name: str) -> None:
    with pytest.raises(RequestError, match="no trace"):
        piece_of(run, name, 0, None)


def test_originals_behind_a_link_are_not_read(run: Path, tmp_path: Path) -> None:
    (run / "kineto" / "w.1.trace.json").unlink()
    (run / "kineto").rmdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "w.1.trace.json").write_bytes(SECRET)
    (run / "kineto").symlink_to(tmp_path / "other")
    assert [f.name for f in traces_in(run)] == ["w.1.pt.trace.json"]


def test_a_trace_that_was_written_over_is_not_mixed_with_the_old(run: Path) -> None:
    version = traces_in(run)[0].version
    os.utime(run / "kineto" / "w.1.trace.json", ns=(1, 1))
    with pytest.raises(RequestError, match="replaced meanwhile"):
        piece_of(run, "kineto/w.1.trace.json", 0, version)


def test_a_pipe_in_the_place_of_a_trace_is_not_waited_for(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = traces_in(run)
    path = found[0].path

    def swapped(_: Path) -> list[RunFile]:
        path.unlink()
        os.mkfifo(path)
        return found

    monkeypatch.setattr(run_files, "traces_in", swapped)
    with pytest.raises(RequestError, match="no regular file any more"):
        piece_of(run, found[0].name, 0, None)


@pytest.mark.parametrize(("logdir", "why"), [("", "without --logdir"), ("gs://bucket/logs", "remote")])
def test_a_logdir_that_is_no_local_directory_gets_a_sentence(logdir: str, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        run_directory(logdir, "run", "")


@pytest.mark.parametrize("name", ["..", "../elsewhere", "/etc", "nowhere"])
def test_a_run_outside_of_the_logdir_has_no_directory(run: Path, name: str) -> None:
    with pytest.raises(RequestError, match="no directory"):
        run_directory(str(run.parent), name, "")


def test_events_in_a_subdirectory_find_the_trace_above(run: Path) -> None:
    (run / "dlprof").mkdir()
    logdir = str(run.parent)
    assert run_directory(logdir, "run/dlprof", "kineto/w.1.trace.json") == (run, "run")
    assert run_directory(logdir, "run/dlprof", "unknown.pt.trace.json") == (run / "dlprof", "run/dlprof")
    assert run_directory(str(run), ".", "w.1.pt.trace.json") == (run, "run")


def test_over_http_a_trace_is_offered_or_the_page_says_what_to_do(start_tensorboard, training, tmp_path: Path) -> None:
    profile = training("fp32").profile(session="s1")
    for name, trace in (("kept", "w.1.pt.trace.json"), ("gone", "w.9.pt.trace.json"), ("dropped", "")):
        source = dataclasses.replace(profile.source, trace_file=trace)
        write_profile(tmp_path / "logs" / name, dataclasses.replace(profile, source=source))
    content = os.urandom(PIECE_BYTES + 7)
    (tmp_path / "logs" / "kept" / "w.1.pt.trace.json").write_bytes(content)
    server = start_tensorboard(tmp_path / "logs", load_fast=False)
    server.wait_for(lambda: len(server.page("runs")[1]["runs"]) == 3)

    _, links = server.page("trace_links", run="kept")
    (file,) = links["files"]
    assert (file["name"], file["of_profile"], links["missing"]) == ("w.1.pt.trace.json", True, None)
    assert links["pytorch_tab"]["reads"] == "original"
    where = f"/data/plugin/tb_dlprof/trace?run=kept&version={file['version']}&name="
    pieces = [server.request(f"{where}{file['name']}&offset={offset}")[1] for offset in (0, PIECE_BYTES)]
    assert b"".join(pieces) == content
    status, answer = server.request(where + quote("../../../etc/passwd"))
    assert (status, b"no trace" in answer) == (404, True)

    assert "is not in" in server.page("trace_links", run="gone")[1]["missing"]
    assert "keep_trace=True" in server.page("trace_links", run="dropped")[1]["missing"]
