"""The fixture `dlprof` in a repository of its own: a step of the working tree against that of a commit, in turns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.marks import long

from tb_dlprof_plugin.trial.process_state import runs

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="a process is frozen")]

ROOT = Path(__file__).resolve().parents[2]
WORK = "import time\n\ndef step():\n    time.sleep({})\n"
SHORT, LONG = "0.002", "0.02"
TEST = """
import work

def test_step(dlprof):
    dlprof.not_slower(work.step, than="main", percent=20, seconds=15)
"""


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """With a short step on the branch main."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "work.py").write_text(WORK.format(SHORT))
    (folder / "test_speed.py").write_text(TEST)
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "short")
    return folder


def _command(*options: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "tb_dlprof_plugin.pytest_plugin", "-rs", *options]


def _environment(repository: Path) -> dict[str, str]:
    """Checkouts of the base are next to the repository."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(repository.parent)}


def _pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(*options), cwd=folder, env=_environment(folder), capture_output=True, text=True)


def test_a_slower_step_fails_and_the_repository_is_as_it_was(repository: Path, tmp_path: Path) -> None:
    (repository / "work.py").write_text(WORK.format(LONG))
    before = sorted(path for path in (repository / ".git").rglob("*"))
    done = _pytest(repository, f"--dlprof-json={tmp_path / 'verdicts.json'}")
    assert done.returncode == 1, done.stdout
    assert "longer a step" in done.stdout
    (step,) = json.loads((tmp_path / "verdicts.json").read_text())["steps"]
    assert step["verdict"] == "slower"
    assert step["low_percent"] > 0
    assert step["candidate_ms"] > 2 * step["base_ms"]
    assert sorted(path for path in (repository / ".git").rglob("*")) == before
    assert [path.name for path in repository.parent.iterdir() if path.name.startswith("tb_dlprof")] == []


def test_a_faster_step_passes_and_the_base_is_the_commit(repository: Path, tmp_path: Path) -> None:
    (repository / "work.py").write_text(WORK.format(LONG))
    _git(repository, "commit", "-q", "-a", "-m", "long")
    (repository / "work.py").write_text(WORK.format(SHORT))
    done = _pytest(repository, f"--dlprof-json={tmp_path / 'verdicts.json'}")
    assert done.returncode == 0, done.stdout
    (step,) = json.loads((tmp_path / "verdicts.json").read_text())["steps"]
    # On a busy machine nothing may be certain of it.
    assert step["verdict"] in ("not_slower", "cannot_say")
    assert step["candidate_ms"] < step["base_ms"]


@pytest.mark.parametrize(
    ("test", "work", "words"),
    [
        long(TEST.replace("main", "no-branch"), "", "git has no commit 'no-branch' here; `git fetch origin no-branch`"),
        long("def test_step(dlprof):\n    dlprof.not_slower(lambda: None)", "", "imports nothing of its repository"),
        long(TEST.replace("work.step", "work.other"), "\nother = step\n", "no attribute 'other'"),
        (f"import sys; sys.path.insert(0, {{folder!r}})\n{TEST}", "", "work.py of the working tree, not the base's"),
    ],
    ids=["no commit", "no code of the repository", "the base has no such function", "the base is not what is imported"],
)
def test_what_cannot_be_compared_fails_with_the_reason(repository: Path, test: str, work: str, words: str) -> None:
    (repository / "test_speed.py").write_text(test.replace("{folder!r}", repr(str(repository))))
    (repository / "work.py").write_text(WORK.format(SHORT) + work)
    done = _pytest(repository)
    assert done.returncode == 1, done.stdout
    assert words in done.stdout


def test_a_baseline_is_added_to_a_file_and_four_suffice(repository: Path) -> None:
    test = TEST.replace('"main"', '"steps.json"').replace("seconds=15", "seconds=0.1")
    (repository / "test_speed.py").write_text(test)
    unsure = _pytest(repository, "--dlprof-update-baselines")
    assert "has 0 of 4 runs that are needed on" in unsure.stdout
    assert unsure.returncode == 0
    file = json.loads((repository / "steps.json").read_text())
    (baseline,) = file["baselines"]
    (step_ms,) = baseline["step_ms"]
    baseline["step_ms"] = [step_ms, 1.01 * step_ms, 0.99 * step_ms, step_ms]
    (repository / "steps.json").write_text(json.dumps(file))
    (repository / "work.py").write_text(WORK.format(LONG))
    assert "it is slower" in _pytest(repository).stdout


def test_power_is_measured_from_the_step_against_itself(repository: Path) -> None:
    command = [sys.executable, "-m", "tb_dlprof_plugin.cli.main", "power", "--runs", "2", "--format", "json"]
    done = subprocess.run(
        [*command, "test_speed.py"], cwd=repository, env=_environment(repository), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (test,) = json.loads(done.stdout)["tests"]
    assert test["step_ms"] >= 2
    assert [row["slowdown_percent"] for row in test["slowdowns"]] == [0, 1, 2, 3, 5, 10, 20]


def test_nothing_runs_on_where_pytest_is_killed(repository: Path) -> None:
    (repository / "test_speed.py").write_text(TEST.replace("seconds=15", "seconds=60"))
    process = subprocess.Popen(
        _command(), cwd=repository, env=_environment(repository), stdout=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + 60
    while len(frozen := _frozen_below(process.pid)) < 1 and time.monotonic() < until:
        time.sleep(0.02)
    assert frozen
    process.send_signal(signal.SIGKILL)
    process.wait()
    while any(map(runs, frozen)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(runs, frozen))


def _frozen_below(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state == "T":
            found.append(int(path.parent.name))
    return found
