"""A job's recordings become runs: from any file system to any, the same on every engine, and what is there is kept."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.object_store import empty_bucket

from tb_dlprof_plugin.api.import_job import ImportedRun, import_job
from tb_dlprof_plugin.model.addresses import AddressError
from tb_dlprof_plugin.store.logdir import read_profiles

WORLD = 6


@pytest.fixture(scope="module")
def job(training: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of six ranks in two folders. In the second that of rank 4 is damaged, and that of rank 5 is lost."""
    folder = tmp_path_factory.mktemp("job")
    for step in ("step1", "step2"):
        (folder / step).mkdir()
        for rank in range(WORLD):
            trace = training(steps=2)
            trace.rest["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": WORLD}
            trace.folder = folder / step
            trace.write(f"rank{rank}.json.gz")
    (folder / "step2" / "rank4.json.gz").write_bytes(b"not a trace")
    (folder / "step2" / "rank5.json.gz").unlink()
    return folder


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _facts(runs: list[ImportedRun]) -> list[tuple[str, list[int], list[int]]]:
    return [(run.name, run.ranks, run.missing_ranks) for run in runs]


WHOLE = [("step1", [0, 1, 2, 3, 4, 5], []), ("step2", [0, 1, 2, 3], [4, 5])]


def test_a_folder_of_a_pattern_is_a_run_and_its_missing_ranks_are_named(job: Path, tmp_path: Path) -> None:
    runs = import_job(f"{job}/*/rank*.json.gz", tmp_path, engine="here")
    assert _facts(runs) == WHOLE
    (failed,) = [one for one in runs[1].recordings if one.error]
    assert "rank4.json.gz" in failed.error
    stored = [one.profile.source for one in read_profiles(tmp_path / "step1")]
    assert [(source.rank, source.session, source.cycle) for source in stored] == [(r, "step1", 0) for r in range(WORLD)]


def test_an_import_goes_on_where_it_ended(job: Path, tmp_path: Path) -> None:
    def earlier(runs: list[ImportedRun]) -> int:
        return sum(one.earlier for run in runs for one in run.recordings)

    # GIVEN an import that lost one event file, and a recording that was written over since
    copy = tmp_path / "traces"
    for path in sorted((job / "step1").iterdir()):
        (copy / "step1").mkdir(parents=True, exist_ok=True)
        (copy / "step1" / path.name).write_bytes(path.read_bytes())
    first = import_job(copy, tmp_path / "runs", engine="here")
    lost = Path(first[0].recordings[1].event_files[0])
    before = _contents(tmp_path / "runs")
    lost.unlink()
    # WHEN it is made again THEN only the lost one is, as it was
    again = import_job(copy, tmp_path / "runs", engine="here")
    assert (earlier(first), earlier(again), _facts(again)) == (0, WORLD - 1, _facts(first))
    assert _contents(tmp_path / "runs") == before
    # AND a changed recording takes the place of what it was
    (copy / "step1" / "rank3.json.gz").write_bytes((job / "step1" / "rank3.json.gz").read_bytes())
    changed = import_job(copy, tmp_path / "runs", engine="here")
    assert earlier(changed) == WORLD - 1
    assert len(_contents(tmp_path / "runs")) == WORLD


def test_cycles_of_a_worker_follow_the_times_in_its_names(training: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    for time in (1700000000000000002, 1700000000000000001):
        trace = training(steps=2)
        trace.folder = tmp_path / "job"
        trace.write(f"host_7.{time}.pt.trace.json")
    import_job(tmp_path / "job", tmp_path / "runs", engine="here")
    stored = [one.profile.source for one in read_profiles(tmp_path / "runs")]
    assert [(source.cycle, source.trace_file[7:26]) for source in stored] == [
        (0, "1700000000000000001"),
        (1, "1700000000000000002"),
    ]


def test_nothing_that_matches_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AddressError, match="no file matches"):
        import_job(f"{tmp_path}/*/rank*.json", tmp_path / "runs")


@pytest.fixture
def bucket() -> Iterator[Any]:
    """The file system of an empty bucket, job-traces."""
    with empty_bucket("job-traces"):
        yield pytest.importorskip("s3fs").S3FileSystem(use_listings_cache=False)


@pytest.mark.slow
def test_dask_imports_on_object_storage_what_is_imported_here_though_a_worker_is_killed(
    job: Path, tmp_path: Path, bucket: Any
) -> None:
    distributed = pytest.importorskip("distributed")
    bucket.put(f"{job}/", "job-traces/job/", recursive=True)
    recordings, runs = "s3://job-traces/job/*/rank*.json.gz", "s3://job-traces/runs"
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        processes = client.run(os.getpid)
        killed: list[int] = []

        def kill_one(done: int, of: int) -> None:
            if done > 2 and not killed:
                killed.append(next(iter(processes.values())))
                os.kill(killed[0], signal.SIGKILL)

        found = import_job(recordings, runs, engine=client, progress=kill_one)
    assert killed
    assert _facts(found) == WHOLE
    # The same bytes under the same names as one process makes of the same objects.
    import_job(recordings, tmp_path / "here", engine="here")
    stored = {name.removeprefix("job-traces/runs/"): bucket.cat_file(name) for name in bucket.find("job-traces/runs")}
    assert stored == _contents(tmp_path / "here")
    # Nothing is done twice.
    again = import_job(recordings, runs, engine="here")
    assert _facts(again) == WHOLE
    assert all(one.earlier for run in again for one in run.recordings if not one.error)


@pytest.mark.slow
def test_the_command_imports_a_job(job: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from tb_dlprof_plugin.cli.main import app

    arguments = ["import", f"{job}/*/rank*.json.gz", "--logdir", str(tmp_path / "runs"), "--workers", "2"]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 2
    lines = first.stdout.splitlines()
    assert lines[:2] == [
        "step1: 6 ranks. 6 recordings imported.",
        "step2: 4 ranks of 6; missing: 4-5. 4 recordings imported.",
    ]
    assert "rank4.json.gz" in lines[2]
    again = json.loads(CliRunner().invoke(app, [*arguments[:-2], "--engine", "here", "--format", "json"]).stdout)
    assert [(run["run"], run["ranks"], run["missing_ranks"]) for run in again["runs"]] == [
        ("step1", 6, []),
        ("step2", 4, [4, 5]),
    ]
    assert sum(one["earlier"] for one in again["profiles"]) == 10
    refused = CliRunner().invoke(app, [*arguments, "--rank", "3"])
    assert (refused.exit_code, "--rank is for single recordings" in refused.stderr) == (2, True)
