"""What tables of runs show, kept on this machine: what it gives back, and when the profile is asked instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tb_dlprof_plugin.model.user_folders import cache_folder
from tb_dlprof_plugin.pages import kept_runs as module
from tb_dlprof_plugin.pages.kept_runs import computed_run, kept_runs
from tb_dlprof_plugin.store import result_cache
from tb_dlprof_plugin.store.logdir import EventFileStore, runs_below
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
REF, MOVED = RunRef("a/b", "s1", 0, 0), RunRef("moved", "s1", 0, 0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder() / "results.sqlite3"


def blob_of(run: str) -> bytes:
    (blob,) = EventFileStore(runs_below(RECORDED / run)).all()
    return blob.read()


@pytest.mark.parametrize("run", ["lenet/fp32", "mlp/amp-bf16", "custom/tf32"])
def test_what_was_computed_is_there_for_the_next_table_under_the_runs_name_by_then(run: str) -> None:
    blob, other = blob_of(run), blob_of("vgg16/fp32")
    assert kept_runs([(REF, blob)]) == [None]
    computed = computed_run(REF, blob)
    missing, found, again = kept_runs([(REF, other), (REF, blob), (MOVED, blob)])
    assert (missing, found) == (None, computed)
    assert again is not None
    assert (again.ref, again.run.name, again.run.figures) == (MOVED, "moved", computed.run.figures)


def test_other_code_asks_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    blob = blob_of("lenet/fp32")
    computed_run(REF, blob)
    monkeypatch.setattr(module, "code_version", lambda: "another")
    assert kept_runs([(REF, blob)]) == [None]


def test_of_many_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cache, "_MOST", 2)
    blobs = [blob_of(f"lenet/{name}") for name in ("fp32", "tf32", "amp-bf16")]
    for blob in blobs:
        computed_run(REF, blob)
    assert [one is not None for one in kept_runs([(REF, blob) for blob in blobs])] == [False, True, True]


def _damaged(database: Path) -> None:
    database.write_bytes(b"no database" * 100)


def _of_another_program(database: Path) -> None:
    database.unlink()
    database.mkdir()


@pytest.mark.parametrize("spoilt", [_damaged, _of_another_program])
def test_without_a_cache_a_table_is_computed(spoilt: Callable[[Path], None], own_cache: Path) -> None:
    blob = blob_of("lenet/fp32")
    computed = computed_run(REF, blob)
    spoilt(own_cache)
    assert kept_runs([(REF, blob)]) == [None]
    assert computed_run(REF, blob) == computed


def test_without_a_home_a_table_is_computed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    blob = blob_of("lenet/fp32")
    assert computed_run(REF, blob).run.figures.iterations
    assert kept_runs([(REF, blob)]) == [None]
