"""The demo's scripts run from the command line on a CPU and leave event files."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from types import ModuleType

import pytest
from support.marks import long

import tb_dlprof_plugin

ROOT = Path(__file__).resolve().parents[2]
EVENT_FILES = "events.out.tfevents.*"


def _runs(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).parent.as_posix() for path in directory.rglob(EVENT_FILES))


def _demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo_run", ROOT / "demo/run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _pairs(address: str) -> dict[str, list[str]]:
    return urllib.parse.parse_qs(address.partition("#")[2])


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
    assert {run["result"]["device"] for run in recording["runs"]} == {"cpu"}
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
    recorded = sorted({f"recorded/{run}" for run in (*_runs(ROOT / "demo/recorded"), *_demo().OF_TESTS)})
    trained = ["trained here/lenet/amp-bf16", "trained here/lenet/fp32"]
    assert sorted(set(_runs(logdir))) == [*recorded, *trained]
    assert "training lenet in fp32 on the CPU" in done.stdout
    base, candidate = (
        tb_dlprof_plugin.read_profiles(logdir / "trained here/lenet" / precision)[0]
        for precision in ("fp32", "amp-bf16")
    )
    assert (
        f"trained here/lenet/amp-bf16 against trained here/lenet/fp32: {base.compare(candidate).headline}"
        in done.stdout
    )
    assert "without the profiler" not in done.stdout
    for run in (base, candidate):
        assert " holds at most " in run.page("memory").data.headline
        assert (run.path.parent / run.profile.source.trace_file).is_file()


@pytest.mark.long
def test_the_demo_states_the_speedup_of_the_compare_page_with_its_interval() -> None:
    demo = _demo()
    said = demo.comparison_text(ROOT / "demo", demo.RECORDED_PAIR)
    base, candidate = (tb_dlprof_plugin.read_profiles(ROOT / "demo" / run)[0] for run in demo.RECORDED_PAIR)
    page = base.compare(candidate).data
    assert page.headline in said
    assert page.explanation[0] in said
    assert "(95 %" in said


def test_the_demo_finds_the_pair_that_was_trained_last(tmp_path: Path) -> None:
    demo = _demo()
    assert demo.trained_pair(tmp_path, "mlp") is None
    (event_file,) = (ROOT / "demo/recorded/mlp/fp32").glob(EVENT_FILES)
    for age, precision in ((3, "fp32"), (2, "amp-fp16"), (1, "amp-bf16")):
        run = tmp_path / "trained here/mlp" / precision
        run.mkdir(parents=True)
        if precision != "amp-bf16":
            shutil.copy(event_file, run)
        os.utime(run, (1e9 - age, 1e9 - age))
    assert demo.trained_pair(tmp_path, "mlp") == ("trained here/mlp/fp32", "trained here/mlp/amp-fp16")
    shutil.copy(event_file, tmp_path / "trained here/mlp/amp-bf16")
    assert demo.trained_pair(tmp_path, "mlp") == ("trained here/mlp/fp32", "trained here/mlp/amp-bf16")


@pytest.mark.slow
@pytest.mark.parametrize("how", [long(signal.SIGINT), signal.SIGTERM], ids=["interrupt", "terminate"])
def test_the_demo_serves_on_a_free_port_and_ends_with_a_signal(tmp_path: Path, how: signal.Signals) -> None:
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
            server = address.partition("#")[0]
            assert f":{port}/" not in address
            asked = _pairs(address)
            assert asked["p.tb_dlprof.page"] == ["compare"]
            pair = asked["p.tb_dlprof.a.run"] + asked["p.tb_dlprof.b.run"]
            assert pair == ["recorded/resnet50/fp32", "recorded/resnet50/amp-fp16"]
            query = urllib.parse.urlencode({"a.run": pair[0], "b.run": pair[1]})
            with urllib.request.urlopen(f"{server}data/plugin/tb_dlprof/compare?{query}", timeout=60) as answer:
                assert json.load(answer)["speedup"] > 2
            demo.send_signal(how)
            assert demo.wait(timeout=30) == 0
        finally:
            demo.kill()
            demo.wait()
    time.sleep(0.1)
    with socket.socket() as probe:  # the server is gone with it
        assert probe.connect_ex(("localhost", int(address.split(":")[2].split("/")[0]))) != 0


def test_the_demo_has_a_run_for_each_place_of_the_page(tmp_path: Path) -> None:
    demo = _demo()
    assert demo.copy_recorded(tmp_path / "recorded") == 24 + len(demo.OF_TESTS)
    gpt = tb_dlprof_plugin.read_profiles(tmp_path / "recorded/gpt/fp32")[0]
    assert gpt.page("memory").data.curve is not None
    assert gpt.page("plan").data.largest_batch is not None
    assert gpt.page("energy").data.joules_per_step is not None
    assert len(tb_dlprof_plugin.read_profiles(tmp_path / "recorded/two_ranks")) == 2
    for _, run, page in demo._PLACES:
        assert (tmp_path / run).is_dir()
        assert page in {"memory", "distributed"}
