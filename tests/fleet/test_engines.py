"""Every engine gives each item's result once, and loses none to an exception or a process that dies."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.engine_tasks import work

from tb_dlprof_plugin.fleet.engines import Engine, EngineError, Failure, engine_for
from tb_dlprof_plugin.fleet.engines.engine import Here
from tb_dlprof_plugin.fleet.engines.processes import InExecutor, Processes


def _results(engine: Engine, kinds: Sequence[str], folder: Path) -> dict[str, str | Failure]:
    found = list(engine.map_unordered(work, [(kind, str(folder)) for kind in kinds]))
    assert sorted(kind for (kind, _), _ in found) == sorted(kinds)
    return {kind: result for (kind, _), result in found}


def test_here_an_exception_ends_only_its_item(tmp_path: Path) -> None:
    found = _results(Here(), ["square 2", "raise", "square 3"], tmp_path)
    assert found == {"square 2": "4", "raise": Failure("ValueError: no such thing"), "square 3": "9"}


@pytest.mark.slow
def test_a_process_that_dies_loses_no_item_but_the_one_that_kills_it(tmp_path: Path) -> None:
    squares = [f"square {number}" for number in range(8)]
    found = _results(Processes(2), [*squares[:3], "die", "raise", "die once", *squares[3:]], tmp_path)
    died = found.pop("die")
    assert isinstance(died, Failure)
    assert died.died
    assert found.pop("raise") == Failure("ValueError: no such thing")
    assert found.pop("die once") == "alive"
    assert found == {kind: str(int(kind[7:]) ** 2) for kind in squares}


def test_an_executor_of_the_caller_stays_open(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert isinstance(engine_for(pool), InExecutor)
        assert _results(engine_for(pool), ["square 2", "raise"], tmp_path)["square 2"] == "4"
        assert pool.submit(int, "7").result() == 7


def test_engines_are_named_by_what_a_user_has() -> None:
    assert isinstance(engine_for(1), Here)
    assert isinstance(engine_for(None), Processes)
    with pytest.raises(EngineError, match="there is no engine 'spark'"):
        engine_for("spark")


class TestDask:
    def test_a_scheduler_that_does_not_answer_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("distributed")
        monkeypatch.setattr("tb_dlprof_plugin.fleet.engines.dask._CONNECT_S", 0.5)
        with pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 "):
            _results(engine_for("tcp://127.0.0.1:1"), ["square 2"], tmp_path)

    @pytest.mark.long
    def test_a_users_cluster_survives_and_a_dead_worker_loses_nothing(self, tmp_path: Path) -> None:
        dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": 1}),
            distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster) as client,
        ):
            theirs = client.submit(int, "7")
            squares = [f"square {number}" for number in range(8)]
            found = _results(engine_for(client), [*squares[:3], "raise", "die once", *squares[3:]], tmp_path)
            assert found.pop("die once") == "alive"
            assert found.pop("raise") == Failure("ValueError: no such thing")
            assert found == {kind: str(int(kind[7:]) ** 2) for kind in squares}
            # A client that is active here is used without a word.
            assert _results(engine_for(None), ["square 9"], tmp_path) == {"square 9": "81"}
            died = _results(engine_for(client), ["die"], tmp_path)["die"]
            assert isinstance(died, Failure)
            assert died.died
            assert theirs.result(timeout=20) == 7

    @pytest.mark.slow
    def test_what_a_worker_lacks_is_said(self, tmp_path: Path) -> None:
        distributed = pytest.importorskip("distributed")
        # Threads of this process: what they lack is what this process lacks.
        with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
            with pytest.raises(EngineError, match="lacks no_such_package; install it there"):
                _results(engine_for(client, needs=["no_such_package"]), ["square 2"], tmp_path)
            unseen = str(tmp_path / "only here.json")
            with pytest.raises(EngineError, match=r"does not see .*only here\.json: it needs a file system"):
                _results(engine_for(client, sees=[unseen]), ["square 2"], tmp_path)
