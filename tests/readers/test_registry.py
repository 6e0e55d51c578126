"""The reader of a file is found by its content; what no format recognises is one sentence."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers import registry
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.kineto import trace_format as kineto
from tb_dlprof_plugin.readers.options import ReadOptions
from tb_dlprof_plugin.readers.trace_names import COPY_MARK

EVENT = '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1.0, "dur": 2.0}'
TRACE = f'{{"traceEvents": [{EVENT}]}}'.encode()
RECOGNISED: dict[str, bytes] = {
    "a trace": TRACE,
    "gzip": gzip.compress(TRACE),
    "a byte order mark": b"\xef\xbb\xbf" + TRACE,
    "a list of events": f"[{EVENT}]".encode(),
    "a list without any": b"[]",
    "a header of megabytes": b'{"notes": "' + b"x" * (3 << 20) + b'", ' + TRACE[1:],
    "no text": b"",
    "cut in the header": b'{"schemaVersion": 1, "devicePr',
    "cut in the first event of a list": b'[\n{"name": "aten::mm", "p',
    "a damaged gzip file": gzip.compress(TRACE)[:12] + b"\xff" * 9,
}
OTHER: dict[str, bytes] = {
    "text": b"hello, world",
    "another JSON": b'{"name": "package", "version": "1.0"}',
    "a list of numbers": b"[1, 2, 3]",
    "a protobuf": b"\x0a\x90\x01\x12\x05hosts" * 100,
}
DATABASE = b"SQLite format 3\0" + bytes(4096)


@pytest.fixture
def file(tmp_path: Path):
    def write(content: bytes, name: str = "recording") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("case", RECOGNISED)
def test_what_the_pytorch_profiler_wrote_is_recognised_by_its_content(file, case: str) -> None:
    assert registry.format_of(file(RECOGNISED[case])) is kineto


@pytest.mark.parametrize("case", OTHER)
def test_what_no_format_recognises_is_one_sentence_with_the_file_and_the_known_formats(file, case: str) -> None:
    path = file(OTHER[case])
    with pytest.raises(TraceError) as caught:
        registry.read_timelines(path)
    known = ", ".join(one.TITLE for one in registry.FORMATS)
    assert "a trace of the PyTorch profiler (*.pt.trace.json, *.pt.trace.json.gz)" in known
    assert str(caught.value) == f"{path} is no trace in a known format; pass one of: {known}."


def test_a_database_of_another_program_is_none_and_one_that_cannot_be_opened_is_damaged(file, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as db:
        db.execute("CREATE TABLE runs (name TEXT)")
    with pytest.raises(TraceError, match=r"other\.sqlite is no trace in a known format"):
        registry.read_timelines(tmp_path / "other.sqlite")
    with pytest.raises(TraceError, match=r"recording is a damaged SQLite database \(.*\); copy it again"):
        registry.read_timelines(file(DATABASE))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"missing cannot be read \(No such file or directory\)"):
        registry.read_timelines(tmp_path / "missing")


def test_the_first_format_that_recognises_a_file_reads_it(file, monkeypatch) -> None:
    class Database:
        NAME = "database"
        TITLE = "a database (*.sqlite)"

        def recognises(self, path: Path) -> bool:
            return path.read_bytes().startswith(b"SQLite")

        def read(self, path: Path, options: ReadOptions, progress=None) -> list[Timeline]:
            raise TraceError(f"{path} was read as a database.")

        def files_below(self, folder: Path) -> set[Path]:
            return set(folder.rglob("*.sqlite"))

        def run_name(self, path: Path) -> str:
            return path.stem

    monkeypatch.setattr(registry, "FORMATS", (kineto, Database()))
    with pytest.raises(TraceError, match="was read as a database"):
        registry.read_timelines(file(DATABASE, "one.sqlite"))
    assert len(registry.read_timelines(file(TRACE, "two.pt.trace.json"))[0].host) == 1
    with pytest.raises(TraceError, match=r"PyTorch profiler \(.*\), a database \(\*\.sqlite\)\.$"):
        registry.read_timelines(file(OTHER["text"]))
    folder = file(b"").parent
    assert [path.name for path in registry.files_below(folder)] == ["one.sqlite", "two.pt.trace.json"]


def test_the_traces_of_a_directory_are_those_that_torch_wrote(file) -> None:
    folder = file(TRACE, "b.pt.trace.json").parent
    file(gzip.compress(f'{{"{COPY_MARK}": "another viewer", "traceEvents": []}}'.encode()), "a.pt.trace.json.gz")
    (folder / "kineto").mkdir()
    original = file(TRACE, "kineto/a.trace.json")
    file(TRACE, ".hidden.pt.trace.json")
    file(b'{"traceEvents": []}', "other.trace.json")
    file(b'{"text": "of a day"}', "notes.json")
    assert registry.files_below(folder) == [folder / "b.pt.trace.json", original]


def test_traces_that_a_program_named_itself_are_known_by_how_they_begin(file) -> None:
    begun = b'{"schemaVersion": 1, "traceEvents": []}'
    folder = file(begun, "rank0_trace.json").parent
    file(gzip.compress(begun), "rank1.json.gz")
    file(b'{"displayTimeUnit": "ns", "traceEvents": []}', "xla.json")
    file(b'{"metadata": {"repeats": [1]}, "traceEvents": [{"ph": "X", "cat": "cpu_op"}]}', "with_own_keys.json")
    file(b'{"metadata": {}, "traceEvents": [{"ph": "X", "cat": "browser"}]}', "page.json")
    file(begun, ".hidden.json")
    assert [path.name for path in registry.files_below(folder)] == [
        "rank0_trace.json",
        "rank1.json.gz",
        "with_own_keys.json",
    ]


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("worker0.1700000000000.pt.trace.json", "worker0.1700000000000"),
        ("rank3_trace.json.gz", "FOLDER"),
        ("rank-3.json", "FOLDER"),
        ("rank3.1700000000000000000.pt.trace.json.gz", "FOLDER"),
        ("llama_rank12.json", "llama"),
        ("llama.node1_rank12.pt.trace.json", "llama"),
        ("frank3.json", "frank3"),
    ],
)
def test_the_name_of_a_run_has_no_rank(tmp_path: Path, name: str, run: str) -> None:
    assert kineto.run_name(tmp_path / name) == run.replace("FOLDER", tmp_path.name)
