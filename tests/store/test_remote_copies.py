"""Remote addresses in commands and in Python: what is copied, and that nothing is fetched twice."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin import distributed, read_profiles
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.model import addresses
from tb_dlprof_plugin.store import remote_copies
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.remote_copies import path_here

fsspec = pytest.importorskip("fsspec")
ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "ranks" / "recorded"
TRACES = ROOT / "tests" / "traces"


@pytest.fixture
def store() -> Iterator[Any]:
    """An object store in this process, memory://bucket, with two jobs, a trace of two ranks, and a checkpoint."""
    files = fsspec.filesystem("memory")
    for job in ("ddp_even", "ddp_slow_gpu"):
        for path in (RECORDED / job).iterdir():
            files.pipe_file(f"/bucket/runs/{job}/{path.name}", path.read_bytes())
        files.pipe_file(f"/bucket/runs/{job}/checkpoint.pt", b"large")
    for path in TRACES.glob("nccl_rank?.pt.trace.json.gz"):
        files.pipe_file(f"/bucket/traces/{path.name}", path.read_bytes())
    yield files
    files.rm("/bucket", recursive=True)


def _command(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


@pytest.mark.usefixtures("store")
def test_a_remote_run_gives_the_same_answers_as_the_local_one() -> None:
    assert distributed("memory://bucket/runs/ddp_slow_gpu") == distributed(RECORDED / "ddp_slow_gpu")
    assert [one.path.parent.name for one in read_profiles("memory://bucket/runs")] == ["ddp_even"] * 2 + [
        "ddp_slow_gpu"
    ] * 2


@pytest.mark.usefixtures("store")
def test_commands_take_remote_runs_patterns_and_files() -> None:
    code, text = _command("distributed", "memory://bucket/runs/ddp_slow_gpu")
    assert (code, "Rank 1 delays the others" in text) == (0, True)
    code, text = _command("distributed", "memory://bucket/traces/nccl_rank*.json.gz")
    assert (code, "2 of 2" in text) == (0, True)
    code, text = _command("ops", "memory://bucket/traces/nccl_rank0.pt.trace.json.gz")
    assert code == 0
    code, text = _command("summary", "memory://bucket/runs/ddp_even", "--rank", "1")
    assert code == 0
    code, text = _command("runs", "memory://bucket/runs/ddp_even", "memory://bucket/runs/ddp_slow_gpu")
    assert (code, "ddp_slow_gpu" in text) == (0, True)


@pytest.mark.usefixtures("store")
def test_what_is_no_recording_is_not_fetched() -> None:
    path = path_here("memory://bucket/runs")
    assert not list(path.rglob("*.pt"))
    assert len(list(path.rglob("*tfevents*"))) == 4


def test_only_changed_files_are_fetched_again(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path_here("memory://bucket/traces")
    fetched: list[str] = []
    whole = addresses.local_copy
    monkeypatch.setattr(addresses, "local_copy", lambda address: (fetched.append(address), whole(address))[1])
    path_here("memory://bucket/traces")
    assert fetched == []
    store.pipe_file("/bucket/traces/nccl_rank0.pt.trace.json.gz", b"{}")
    path = path_here("memory://bucket/traces")
    assert [one.rpartition("/")[2] for one in fetched] == ["nccl_rank0.pt.trace.json.gz"]
    assert (path / "nccl_rank0.pt.trace.json.gz").read_bytes() == b"{}"


@pytest.mark.usefixtures("store")
def test_an_address_without_recordings_is_one_sentence() -> None:
    with pytest.raises(ProfileError, match="memory://bucket/none holds neither profiles nor traces"):
        path_here("memory://bucket/none")
    code, text = _command("summary", "memory://bucket/none")
    assert (code, "holds neither profiles nor traces" in text, "Traceback" in text) == (2, True, False)


def test_a_path_of_this_machine_is_itself(tmp_path: Path) -> None:
    assert path_here(tmp_path) == tmp_path
    assert path_here(str(tmp_path / "s3:/x")) == tmp_path / "s3:/x"


def test_threads_that_copy_first_share_one_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[Path] = []

    def slowly(prefix: str) -> str:
        time.sleep(0.05)
        made.append(tmp_path / f"{prefix}{len(made)}")
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", slowly)
    remote_copies._made_folder.cache_clear()
    try:
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _: remote_copies._folder(), range(8)))
    finally:
        remote_copies._made_folder.cache_clear()
    assert found == set(made)
    assert len(made) == 1
