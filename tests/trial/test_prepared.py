"""A process of `tb-dlprof try` that waited with its imports done runs the script as any other process does."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
if sys.platform != "linux":
    pytest.skip("named pipes and /proc", allow_module_level=True)

from support.marks import long
from support.script_runs import environment, write

from tb_dlprof_plugin.capture.launcher.protocol import INJECTED
from tb_dlprof_plugin.cli.try_remedies import ProgressPrinter
from tb_dlprof_plugin.trial import isolation
from tb_dlprof_plugin.trial.experiment import Bench
from tb_dlprof_plugin.trial.isolation import Isolation, IsolationKind, choose
from tb_dlprof_plugin.trial.measuring import Measuring
from tb_dlprof_plugin.trial.process_state import runs
from tb_dlprof_plugin.trial.process_tree import descendants
from tb_dlprof_plugin.trial.variant import Laboratory, Variant, VariantError, scratch_folder

_LONGEST_S = 120.0

FACTS = """
    import inspect, json, os, pickle, random, threading, traceback
    import numpy

    class Rows(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return torch.full((8,), float(index))

    def answer(rows, end):
        end.send([__name__, rows[2].sum().item()])

    def spawned():
        processes = torch.multiprocessing.get_context("spawn")
        ours, theirs = processes.Pipe()
        process = processes.Process(target=answer, args=(Rows(), theirs))
        process.start()
        answered = ours.recv()
        process.join()
        return answered

    def facts():
        main = sys.modules["__main__"]
        try:
            raise ValueError("raised")
        except ValueError:
            trace = traceback.format_exc()
        return {
            "arguments": sys.argv, "path": sys.path, "name": __name__, "file": main.__file__,
            "spec": getattr(main.__spec__, "name", ""), "package": __package__, "folder": os.getcwd(),
            "source": inspect.getsource(Rows), "trace": trace,
            "pickled": type(pickle.loads(pickle.dumps(Rows()))) is Rows, "threads": threading.active_count(),
            "spawned": spawned(), "hash": hash("text"),
            "random": [random.random(), numpy.random.rand(), torch.rand(1).item()],
            "ours": [name for name in os.environ if name.startswith("TB_DLPROF_TRY_")],
        }

    if __name__ == "__main__":
        print("FACTS", json.dumps(facts()))
        while True:
            train(8, model, optimizer)
"""


@contextlib.contextmanager
def laboratory_of(command: list[str], isolation: Isolation) -> Iterator[Laboratory]:
    """For a command that runs in a folder."""
    made = Laboratory([sys.executable, *command], scratch_folder(), INJECTED, isolation)
    try:
        yield made
    finally:
        made.close()
    assert not made.folder.exists()


def log(variant: Variant) -> str:
    assert variant._folder is not None
    return (variant._folder / "log.txt").read_text()


def wait(laboratory: Laboratory, count: int = 2) -> None:
    """Until the imports of all processes that wait are done."""
    until = time.monotonic() + _LONGEST_S
    while not all(one.imports_s is not None for one in laboratory.waiting):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert len(laboratory.waiting) >= count


def facts(variant: Variant) -> dict[str, Any]:
    """What the script says about its process."""
    line = next(one for one in log(variant).splitlines() if one.startswith("FACTS"))
    return dict(json.loads(line.removeprefix("FACTS")))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("kind", [IsolationKind.overlay, long(IsolationKind.copy)])
@pytest.mark.parametrize("command", [["-u", "train.py", "--lr", "1"], long(["-m", "package.train", "--lr", "1"])])
def test_a_process_that_waited_is_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: IsolationKind, command: list[str]
) -> None:
    write(tmp_path, FACTS)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from . import more\n")
    (tmp_path / "package" / "more.py").write_text("from math import pi\n")
    write(tmp_path / "package", FACTS)
    monkeypatch.setattr(isolation, "_works", lambda one: kind is IsolationKind.overlay)
    with laboratory_of(command, choose(str(tmp_path))) as laboratory:
        waited, other = Variant(laboratory), Variant(laboratory, environment={"OTHER": "1"})
        laboratory.prepare(2)
        wait(laboratory)
        waiting = laboratory.waiting
        ready, plain = waited.start(_LONGEST_S)[0], other.start(_LONGEST_S)[0]
        assert waited._process is waiting[0].process
        # A variable has to be set before anything is imported.
        assert other._process not in [one.process for one in waiting]
        assert laboratory.waiting == waiting[1:]
        assert ready.checks == plain.checks
        assert len(ready.checks.loss) > 3
        assert ready.since_start_s < plain.since_start_s
        said, expected = facts(waited), facts(other)
        if laboratory.isolation.kind is IsolationKind.copy:
            said, expected = (_without(one, variant) for one, variant in ((said, waited), (expected, other)))
        assert said == expected
        assert said["spawned"] == ["__mp_main__", 16.0]
        assert said["ours"] == []


def _without(facts: dict[str, Any], variant: Variant) -> dict[str, Any]:
    """Facts without the folder of the process's copy."""
    return dict(json.loads(json.dumps(facts).replace(str(variant._folder), "")))


def test_what_was_not_asked_never_runs_the_script(tmp_path: Path) -> None:
    write(tmp_path, "open('ran', 'w').close()")
    with laboratory_of(["train.py"], Isolation(IsolationKind.in_place, str(tmp_path))) as laboratory:
        laboratory.prepare(2)
        wait(laboratory)
        pids = [pid for one in laboratory.waiting for pid in descendants(one.process.pid)]
        assert len(pids) >= 4
        measuring = Measuring(laboratory, Bench(1.0), 60.0, ProgressPrinter())
        measuring.start_s = 1000.0
        assert 100 <= measuring.fresh_s(count=2) < 1000
        assert measuring.fresh_s({"OMP_NUM_THREADS": "1"}) == measuring.fresh_s(count=5) == 1000
    assert not any(map(runs, pids))
    assert [one.name for one in tmp_path.iterdir()] == ["train.py"]


def test_an_error_of_the_script_is_said_as_without_waiting(tmp_path: Path) -> None:
    write(tmp_path, "raise RuntimeError('out of luck')")
    with laboratory_of(["train.py"], choose(str(tmp_path))) as laboratory:
        laboratory.prepare(2)
        wait(laboratory)
        for environment_of_it in ({}, {"OTHER": "1"}):
            variant = Variant(laboratory, environment=environment_of_it)
            with pytest.raises(VariantError, match="it ended with status 1: RuntimeError: out of luck"):
                variant.start(_LONGEST_S)
        assert len(laboratory.waiting) in (1, 2)


@pytest.mark.parametrize(
    "how", ["os._exit(3)", "raise ValueError", "import torch.cuda; torch.cuda._initialized = True"]
)
def test_where_a_process_cannot_wait_the_script_starts_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    # Fails in a process that has no request yet.
    (installed / "waits_badly.py").write_text(
        f"import os\nif not os.path.exists(os.environ['TB_DLPROF_TRY'] + '/trial.json'):\n    {how}\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(installed), os.environ["PYTHONPATH"])))
    (tmp_path / "work").mkdir()
    script = write(tmp_path / "work", "while True:\n    train(8, model, optimizer)\n")
    script.write_text("import waits_badly\n" + script.read_text())
    with laboratory_of(["train.py"], choose(str(tmp_path / "work"))) as laboratory:
        laboratory.prepare(2)
        waiting = laboratory.waiting
        if how == "raise ValueError":
            # The script says what is wrong, where it comes to that.
            wait(laboratory)
        else:
            for one in waiting:
                one.process.wait(_LONGEST_S)
            assert laboratory.waiting == []
        variant = Variant(laboratory)
        assert len(variant.start(_LONGEST_S)[0].checks.loss) > 3


def test_a_script_that_sets_variables_of_torch_says_so(tmp_path: Path) -> None:
    write(tmp_path, "import os\nos.environ['TORCH_LOGS'] = ''\nwhile True:\n    train(8, model, optimizer)\n")
    with laboratory_of(["train.py"], choose(str(tmp_path))) as laboratory:
        variant = Variant(laboratory)
        assert not variant.starts_still
        variant.launch(_LONGEST_S)
        assert variant.starts_still
        assert variant.arrived()[0].sets_variables
        assert not variant.starts_still
        variant.end()
        laboratory.prepare(2)
        pids = [one.process.pid for one in laboratory.waiting]
        laboratory.end_waiting()
        assert not any(map(runs, pids))
