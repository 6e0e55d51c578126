"""A training that is killed, and two that write to one run at once: what was complete is there, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tb_dlprof_plugin.store.logdir import read_profiles

# Cycles of four steps, of which two are recorded. In a step the training ends itself as the kernel does when memory is
# short: without any cleaning up.
SCRIPT = """
    import os, signal, sys, time, torch
    from pathlib import Path
    from tb_dlprof_plugin.capture import trace_handler

    run, killed_in, cycles = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 64)
    class Last(torch.nn.Module):
        def forward(self, x):
            if step == killed_in:
                os.kill(os.getpid(), signal.SIGKILL)
            return x
    net = torch.nn.Sequential(model, Last())
    handler = trace_handler(run)
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=0)
    step = 0
    with torch.profiler.profile(schedule=plan, on_trace_ready=handler) as recorder:
        while step < 4 * cycles:
            net(torch.randn(8, 64)).sum().backward()
            recorder.step()
            step += 1
            if step % 4 == 0:
                assert handler.wait(60)
    assert handler.wait(60)
"""


def _started(folder: Path, run: Path, killed_in: int, cycles: int) -> subprocess.Popen[str]:
    script = folder / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    (folder / "tmp").mkdir(exist_ok=True)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    env = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder / "tmp")}
    command = [sys.executable, str(script), str(run), str(killed_in), str(cycles)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _folders(path: Path) -> list[str]:
    """Of ours in the temporary directory, once those of analyses that still run are gone."""
    end = time.monotonic() + 30
    while (
        found := [one.name for one in path.iterdir() if one.name.startswith("tb_dlprof")]
    ) and time.monotonic() < end:
        time.sleep(0.1)
    return found


@pytest.mark.long
def test_a_training_that_is_killed_keeps_its_complete_cycles(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "one"
    # The second recorded step of the third cycle.
    training = _started(tmp_path, run, 11, cycles=4)
    _, told = training.communicate(timeout=120)
    assert training.returncode == -signal.SIGKILL, told
    stored = read_profiles(run)
    assert [one.profile.source.cycle for one in stored] == [0, 1]
    assert all(len(one.profile.iterations.number) == 2 for one in stored)
    assert _folders(tmp_path / "tmp") == []
    # Neither half an event file nor half a trace.
    assert all(one.suffix == ".tb_dlprof" or one.name.endswith(".json") for one in run.iterdir() if one.is_file())


@pytest.mark.long
def test_two_trainings_that_write_to_one_run_keep_a_session_each(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "one"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    trainings = [_started(tmp_path / name, run, -1, cycles=3) for name in ("a", "b")]
    for training in trainings:
        _, told = training.communicate(timeout=120)
        assert training.returncode == 0, told
    cycles: dict[str, list[int]] = {}
    for one in read_profiles(run):
        source = one.profile.source
        cycles.setdefault(source.session, []).append(source.cycle)
    assert sorted(map(sorted, cycles.values())) == [[0, 1, 2], [0, 1, 2]]
