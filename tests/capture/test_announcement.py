"""The line on standard error that says what a with-block recorded."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.advice import advise  # noqa: E402
from tb_dlprof_plugin.capture import TbDlprofWarning, process_pool, profile  # noqa: E402
from tb_dlprof_plugin.model.formatting import duration  # noqa: E402
from tb_dlprof_plugin.model.shell_path import shell_path  # noqa: E402
from tb_dlprof_plugin.pages.recorded_line import recorded_line  # noqa: E402
from tb_dlprof_plugin.profile_view import ProfileView  # noqa: E402
from tb_dlprof_plugin.store.logdir import read_profiles  # noqa: E402

SCRIPT = """
import torch, tb_dlprof_plugin
model = torch.nn.Linear(4, 4)
with tb_dlprof_plugin.profile("run", model):
    model(torch.randn(2, 4))
print("last line")
"""


_STOPPED_S = 30.0


def record(directory, training, steps=4, **options):
    """The losses of a training that is recorded."""
    model, step = training
    losses = []
    with profile(directory, model, wait=True, **options) as prof:
        for _ in range(steps):
            losses.append(step())
            prof.step()
    return losses


def lines(capsys):
    # On a busy machine there is also the message that an analysis is waited for.
    return [line for line in capsys.readouterr().err.splitlines() if "See more: tb-dlprof summary" in line]


def test_a_block_ends_with_one_line_on_standard_error(tmp_path, kit, capsys, monkeypatch):
    monkeypatch.delenv("TB_DLPROF_QUIET")
    monkeypatch.chdir(tmp_path)
    losses = record("runs/fp 32", kit.make_training(), schedule=(0, 1, 3))
    (line,) = lines(capsys)
    assert line.startswith("tb_dlprof: 3 iterations (1 to 3) in 'runs/fp 32': ")
    assert line.endswith("See more: tb-dlprof summary 'runs/fp 32', or tensorboard --logdir 'runs/fp 32'")
    (stored,) = read_profiles("runs")
    assert line == recorded_line(ProfileView(stored.profile), "'runs/fp 32'")
    _, step = kit.make_training()
    assert losses == [step() for _ in range(4)]


def test_of_several_recordings_the_first_has_the_line(tmp_path, training, capsys):
    record(tmp_path, training, steps=9, schedule=(0, 1, 2, 3), quiet=False)
    (line,) = lines(capsys)
    assert "2 iterations (1 to 2)" in line
    assert len(read_profiles(tmp_path)) == 3


@pytest.mark.parametrize(
    ("options", "environment"),
    [({"quiet": True}, None), ({}, "1"), ({"quiet": False, "rank": 1}, None)],
    ids=["option", "environment", "another rank"],
)
def test_it_can_be_silenced_and_other_ranks_are_silent(tmp_path, training, capsys, monkeypatch, options, environment):
    monkeypatch.delenv("TB_DLPROF_QUIET")
    if environment is not None:
        monkeypatch.setenv("TB_DLPROF_QUIET", environment)
    record(tmp_path, training, schedule=(0, 1, 3), **options)
    assert lines(capsys) == []
    assert len(read_profiles(tmp_path)) == 1


def test_a_failed_analysis_is_a_warning_and_no_line(tmp_path, training, capsys, monkeypatch):
    monkeypatch.setattr(process_pool, "_WORKER_MODULE", "a_module_that_is_missing")
    with pytest.warns(TbDlprofWarning, match="was not written"):
        record(tmp_path, training, schedule=(0, 1, 3), quiet=False)
    assert lines(capsys) == []


def test_the_line_comes_during_the_training_and_a_running_analysis_is_not_waited_for(tmp_path, training, capsys):
    model, step = training
    with profile(tmp_path, model, schedule=(0, 1, 1), wait=False, quiet=False) as prof:
        worker = resume = None
        for _ in range(4):
            step()
            prof.step()
            if worker is None and (worker := prof.handler._announcing) is not None:
                # It runs until the checks are over, however slow this machine is. What waits for it fails them.
                worker.process.send_signal(signal.SIGSTOP)
                resume = threading.Timer(_STOPPED_S, worker.process.send_signal, [signal.SIGCONT])
                resume.start()
        assert not worker.finished()
        prof.handler.announce()
        assert lines(capsys) == []
        assert resume.is_alive()
        resume.cancel()
        worker.process.send_signal(signal.SIGCONT)
        prof.handler.complete()
        worker.process.wait(60)
        step()
        prof.step()
        assert len(lines(capsys)) == 1
        step()
        prof.step()
    assert prof.wait(60)
    assert lines(capsys) == []


@pytest.mark.slow
def test_a_script_prints_it_at_its_exit(tmp_path, training):
    (tmp_path / "train.py").write_text(SCRIPT)
    env = {name: value for name, value in os.environ.items() if name != "TB_DLPROF_QUIET"}
    record(tmp_path / "run", training, schedule=(0, 1, 3))
    # Sessions are named after the second.
    time.sleep(1)
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "last line\n"
    assert done.stderr.count("tb_dlprof: iteration 0 in run, where 1 earlier session is, too: ") == 1


def test_paths_in_commands_are_short_and_quoted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shell_path(tmp_path / "runs" / "a b") == "'runs/a b'"
    assert shell_path(tmp_path) == str(tmp_path)
    assert shell_path(tmp_path.parent / "x") == str(tmp_path.parent / "x")


def test_the_line_of_a_recorded_run_has_its_first_finding_with_the_saving_of_the_advice() -> None:
    profile_of = read_profiles(Path(__file__).parents[2] / "demo/recorded/resnet50/fp32")[0].profile
    view = ProfileView(profile_of)
    best = advise(view, view.selection()).findings[0]
    line = recorded_line(view, "runs/fp32", ["1", profile_of.source.session, "0"])
    assert line.startswith(
        "tb_dlprof: 10 iterations (12 to 21) in runs/fp32, where 2 earlier sessions are, too: 146 ms a"
    )
    assert f"First finding: {best.title}; saves about {duration(best.saving.expected_ns)} (" in line
    facts = msgspec.structs.replace(profile_of.facts, world_size=8)
    ranks = ProfileView(dataclasses.replace(profile_of, facts=facts))
    assert "(12 to 21) of rank 0 of 8 in runs/fp32: " in recorded_line(ranks, "runs/fp32")
