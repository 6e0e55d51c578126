"""A file of a profiler that no format reads is named for what it is, with what to pass in its place."""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.readers import known_not_read
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.known_not_read import known_format, why_not_read
from tb_dlprof_plugin.readers.registry import read_timelines

HERE = Path(__file__).parent
RECORDED = HERE / "not_read"


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128, *varint(value >> 7)]) if value > 127 else bytes([value])


def field(number: int, body: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    return varint(number << 3 | 2) + varint(len(body)) + body


def database(path: Path, *tables: str) -> Path:
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    for table in tables:
        db.execute(f'CREATE TABLE IF NOT EXISTS "{table}" ("id" integer NOT NULL PRIMARY KEY, "name" varchar(255))')
    db.commit()
    db.close()
    return path


def snapshot(folder: Path) -> Path:
    return Path(shutil.copy(RECORDED / "snapshot.pickle", folder))


def perfetto(folder: Path) -> Path:
    path = folder / "trace.pftrace"
    clock = field(6, field(1, b"\x08\x06\x10\x80\x01"))
    described = b"\x50\x01" + field(60, b"\x08\x01" + field(2, b"main"))
    path.write_bytes(field(1, clock) + field(1, described))
    return path


def table(folder: Path) -> Path:
    return Path(shutil.copy(RECORDED / "key_averages.txt", folder))


def table_of_torch_1_5(folder: Path) -> Path:
    path = folder / "table.log"
    path.write_text(
        "epoch 1\n-----  -----  -----\nName                 Self CPU total %  Self CPU total   Number of Calls  \n"
    )
    return path


def rpd(folder: Path) -> Path:
    return database(folder / "trace.rpd", "rocpd_string", "rocpd_kernelcodeobject", "rocpd_op", "rocpd_api")


def execution_trace(folder: Path) -> Path:
    path = folder / "et.json"
    path.write_text(
        '{\n  "schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "2026-01-02 03:04:05", "start_ts": 15157346,\n'
        '  "nodes": [\n    {\n      "id": 2, "name": "[pytorch|profiler|execution_trace|thread]"\n    }]}\n'
    )
    return path


def sums_of_nsys(folder: Path) -> Path:
    path = folder / "report_cuda_gpu_kern_sum.csv"
    path.write_text(
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "45.1,123456,10,12345.6,12000.0,11000,15000,1000.0,ampere_sgemm_128x64_tn\n"
    )
    return path


def trace_of_nsys(folder: Path) -> Path:
    path = folder / "report_cuda_gpu_trace.csv"
    path.write_text(
        "Processing [report.sqlite] with [cuda_gpu_trace.py]...\n\nStart (ns),Duration (ns),CorrId,GrdX,GrdY,Name\n"
    )
    return path


def dldb(folder: Path) -> Path:
    return database(folder / "dlprof_dldb.sqlite", "read_only_ops", "read_only_op_instances", "read_only_kernels")


def viewers_copy(folder: Path) -> Path:
    return Path(shutil.copy(HERE / "xplane" / "jax_h200.trace.json.gz", folder / "host.trace.json.gz"))


def zipped(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "traces.zip", "w") as archive:
        archive.writestr("rank0.pt.trace.json", "{}")
    return folder / "traces.zip"


def tar(folder: Path) -> Path:
    with tarfile.open(folder / "traces.tgz", "w:gz") as archive:
        archive.add(RECORDED / "key_averages.txt", "key_averages.txt")
    return folder / "traces.tgz"


CASES: dict[Callable[[Path], Path], tuple[str, str]] = {
    snapshot: ("a snapshot of PyTorch's CUDA memory", "read it with `tb-dlprof oom "),
    perfetto: ("a Perfetto trace in protobuf", "open it on https://ui.perfetto.dev"),
    table: ("the text of key_averages().table()", "prof.export_chrome_trace("),
    table_of_torch_1_5: ("the text of key_averages().table()", "prof.export_chrome_trace("),
    rpd: ("a database of ROCm's tracers", "record with torch.profiler"),
    execution_trace: ("an execution trace of PyTorch", "it has no times: pass the trace"),
    sums_of_nsys: ("a table of nsys stats as CSV", "*.nsys-rep or *.sqlite"),
    trace_of_nsys: ("a table of nsys stats as CSV", "*.nsys-rep or *.sqlite"),
    dldb: ("DLProf's database", "pass the nsys_profile.sqlite"),
    viewers_copy: ("the copy for trace viewers of a profile of JAX or TensorFlow", "pass the *.xplane.pb"),
    zipped: ("a zip archive", "unpack it"),
    tar: ("a tar archive", "unpack it"),
}


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_the_file_is_named_for_what_it_is_with_the_way_out(make: Callable[[Path], Path], tmp_path: Path) -> None:
    what, instead = CASES[make]
    path = make(tmp_path)
    with pytest.raises(TraceError) as caught:
        read_timelines(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path} is {what}")
    assert ", which tb-dlprof does not read; " in sentence
    assert instead in sentence


def test_each_row_has_a_case(tmp_path: Path) -> None:
    assert {known_format(make(tmp_path)) for make in CASES} == set(known_not_read.KNOWN)


def test_the_recording_next_to_it_is_named(tmp_path: Path) -> None:
    copy, xplane = viewers_copy(tmp_path), tmp_path / "host.xplane.pb"
    (tmp_path / "another.xplane.pb").touch()
    xplane.touch()
    assert f"pass {xplane} next to it" in str(why_not_read(copy))
    database_of_nsys = tmp_path / "nsys_profile.qdrep"
    database_of_nsys.touch()
    assert f"pass {database_of_nsys} next to it" in str(why_not_read(dldb(tmp_path)))


@pytest.mark.parametrize(
    "command", ["import", "summary", "advise", "memory", "report", "plan", "distributed", "export"]
)
def test_commands_that_open_a_file_say_so(command: str, tmp_path: Path) -> None:
    path = table(tmp_path)
    more = {"import": ["--logdir", str(tmp_path / "runs")], "export": [str(tmp_path / "x.html"), "--html"]}
    result = CliRunner().invoke(app, [command, str(path), *more.get(command, [])])
    assert result.exit_code == 2
    assert f"tb-dlprof: {path} is the text of key_averages().table() of torch.profiler" in result.output


def test_an_import_of_a_directory_names_those_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    table(folder)
    arguments = ["import", str(folder), "--logdir", str(tmp_path / "runs")]
    refused = CliRunner().invoke(app, arguments)
    assert "holds no recording that can be read, but key_averages.txt: the text of key_averages" in refused.output
    shutil.copy(HERE / "xplane" / "jax_h200.xplane.pb.gz", folder / "host.xplane.pb.gz")
    read = CliRunner().invoke(app, arguments)
    assert read.exit_code == 0
    assert "Not read: the text of key_averages().table() of torch.profiler (key_averages.txt); pass" in read.output


def test_a_directory_without_a_profile_names_what_is_in_it(tmp_path: Path) -> None:
    snapshot(tmp_path)
    result = CliRunner().invoke(app, ["summary", str(tmp_path)])
    assert "holds no profile, but snapshot.pickle: a snapshot of PyTorch's CUDA memory" in result.output


def test_recordings_are_none_of_these(tmp_path: Path) -> None:
    for path in (HERE.parent / "traces" / "cpu_training.pt.trace.json.gz", HERE / "xplane" / "jax_h200.xplane.pb.gz"):
        assert known_format(path) is None
    assert known_format(database(tmp_path / "a.sqlite", "NVTX_EVENTS", "StringIds")) is None
