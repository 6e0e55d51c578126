"""The demo's scripts run from the command line on a CPU and leave event files."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from support.marks import long

ROOT = Path(__file__).resolve().parents[2]
EVENT_FILES = "events.out.tfevents.*"


def _runs(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).parent.as_posix() for path in directory.rglob(EVENT_FILES))


def _run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, args)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=240)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
@pytest.mark.parametrize("precision", [long("fp32"), "amp-bf16"])
def test_train_profiles_a_model_and_prints_its_true_step_time(tmp_path: Path, precision: str) -> None:
    done = _run(
        *(ROOT / "demo/train.py", "--model", "lenet", "--precision", precision, "--quick", "--steps", "2"),
        *("--device", "cpu", "--workers", "1", "--channels-last", "--logdir", tmp_path),
    )
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["model"], result["precision"], result["recorded_steps"]) == ("lenet", precision, 2)
    assert result["unprofiled_step_ms"] > 0
    assert result["profiled_step_ms"] > 0
    assert len(list(tmp_path.glob(EVENT_FILES))) == 1


@pytest.mark.long
def test_record_keeps_event_files_and_says_where_they_come_from(tmp_path: Path) -> None:
    out, traces = tmp_path / "recorded", tmp_path / "traces"
    done = _run(
        *(ROOT / "demo/record.py", "--out", out, "--models", "mlp", "--precisions", "fp32", "tf32", "--quick"),
        *("--device", "cpu", "--steps", "2", "--keep-traces", traces, "--traces-of", "mlp/tf32"),
    )
    assert _runs(out) == ["mlp/fp32", "mlp/tf32"]
    assert not list(out.rglob("*.pt.trace.json*"))
    assert {path.relative_to(traces).parent.as_posix() for path in traces.rglob("*.pt.trace.json*")} == {"mlp/tf32"}
    recording = json.loads((out / "recording.json").read_text())
    assert recording["device"] == "cpu"
    assert [(run["model"], run["precision"], run["error"]) for run in recording["runs"]] == [
        ("mlp", "fp32", ""),
        ("mlp", "tf32", ""),
    ]
    assert all(run["event_bytes"] > 0 for run in recording["runs"])
    assert "| mlp/fp32 | 32 |" in done.stdout
    assert "| mlp/fp32 | 32 |" in (out / "README.md").read_text()


@pytest.mark.long
def test_the_demo_trains_two_runs_into_one_log_directory(tmp_path: Path) -> None:
    logdir = tmp_path / "logdir"
    done = _run(ROOT / "demo/run.py", "--no-serve", "--model", "lenet", "--device", "cpu", "--logdir", logdir)
    recorded = [f"recorded/{run}" for run in _runs(ROOT / "demo/recorded")]
    assert _runs(logdir) == ["here/lenet/amp-bf16", "here/lenet/fp32", *recorded]
    assert "training lenet in fp32 on the CPU" in done.stdout


@pytest.mark.slow
def test_the_demo_serves_on_a_free_port_and_ends_with_an_interrupt(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, str(ROOT / "demo/run.py"), "--no-train", "--port", port]
        command += ["--logdir", str(tmp_path / "logdir")]
        # A shell that runs the tests in the background has its children ignore interrupts.
        demo = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        )
        try:
            assert demo.stdout is not None
            address = next(line.strip() for line in demo.stdout if line.strip().startswith("http://"))
            assert address.endswith("/#tb_dlprof")
            assert f":{port}/" not in address
            with urllib.request.urlopen(address.replace("#tb_dlprof", "data/plugins_listing"), timeout=30) as answer:
                assert "tb_dlprof" in json.load(answer)
            demo.send_signal(2)
            assert demo.wait(timeout=30) == 0
        finally:
            demo.kill()
            demo.wait()
    time.sleep(0.1)
    with socket.socket() as probe:  # the server is gone with it
        assert probe.connect_ex(("localhost", int(address.split(":")[2].split("/")[0]))) != 0
