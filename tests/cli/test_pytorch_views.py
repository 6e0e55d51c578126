"""``tb-dlprof pytorch-views`` and ``import --pytorch-views``: what they leave, and that traces are never lost."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.readers.trace_names import is_copy
from tb_dlprof_plugin.store.logdir import read_profiles

TRACE = Path(__file__).resolve().parents[1] / "traces" / "cuda_training.pt.trace.json.gz"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    (tmp_path / "logs" / "fp32").mkdir(parents=True)
    shutil.copy(TRACE, tmp_path / "logs" / "fp32" / "w.1.pt.trace.json.gz")
    return tmp_path / "logs"


def test_the_copy_takes_the_place_and_the_trace_is_kept(logdir: Path) -> None:
    assert run("pytorch-views", logdir)[0] == 0
    assert names(logdir / "fp32") == ["kineto/w.1.trace.json.gz", "w.1.pt.trace.json.gz"]
    assert (logdir / "fp32" / "kineto" / "w.1.trace.json.gz").read_bytes() == TRACE.read_bytes()
    assert is_copy(logdir / "fp32" / "w.1.pt.trace.json.gz")
    assert run("pytorch-views", logdir) == (0, "Every trace has its copy already.\n")
    # A lost copy is made again.
    (logdir / "fp32" / "w.1.pt.trace.json.gz").unlink()
    assert run("pytorch-views", logdir)[0] == 0
    assert is_copy(logdir / "fp32" / "w.1.pt.trace.json.gz")


def test_a_copy_elsewhere_leaves_the_trace_alone(logdir: Path, tmp_path: Path) -> None:
    assert run("pytorch-views", TRACE, "--to", tmp_path / "new" / "run")[0] == 0
    assert names(tmp_path / "new") == ["run/cuda_training.pt.trace.json.gz"]


def test_a_trace_that_cannot_be_read_stays_where_it_is(logdir: Path) -> None:
    (logdir / "fp32" / "broken.pt.trace.json").write_text("{")
    code, output = run("pytorch-views", logdir)
    assert code == 2
    assert "broken" in output
    assert "ends in the middle" in output
    assert "fp32/broken.pt.trace.json" in names(logdir)
    assert "fp32/kineto/w.1.trace.json.gz" in names(logdir)


def test_a_directory_without_traces_is_named(tmp_path: Path) -> None:
    code, output = run("pytorch-views", tmp_path)
    assert (code, "holds no *.pt.trace.json" in output) == (2, True)


def test_import_takes_originals_and_no_copies(logdir: Path, tmp_path: Path) -> None:
    assert run("pytorch-views", logdir)[0] == 0
    assert run("import", logdir, "--logdir", tmp_path / "new", "--run", "fp32")[0] == 0
    (stored,) = read_profiles(tmp_path / "new")
    assert stored.profile.source.trace_file == "w.1.trace.json.gz"
    code, output = run("import", logdir / "fp32" / "w.1.pt.trace.json.gz", "--logdir", tmp_path / "none")
    assert (code, "is a copy for the PyTorch Profiler tab" in output) == (2, True)


def test_import_can_leave_a_copy_in_the_run(tmp_path: Path) -> None:
    assert run("import", TRACE, "--logdir", tmp_path, "--run", "fp32", "--pytorch-views")[0] == 0
    assert is_copy(tmp_path / "fp32" / "cuda_training.pt.trace.json.gz")


def test_a_damaged_gzip_is_no_copy(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(bytes(range(256)) * 100))
    packed[30] ^= 0xFF
    path = tmp_path / "w.1.pt.trace.json.gz"
    path.write_bytes(packed)
    assert not is_copy(path)
