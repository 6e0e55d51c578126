"""A process with all below it is frozen, continued and ended, whatever it has started."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tb_dlprof_plugin.trial.landlock import version
from tb_dlprof_plugin.trial.process_tree import descendants, end, freeze_below, thaw_below
from tb_dlprof_plugin.trial.supervisor import NOT_STARTED, supervised

if sys.platform != "linux":
    pytest.skip("reads /proc", allow_module_level=True)

_LONGEST_S = 30.0
Supervised = Callable[..., subprocess.Popen[bytes]]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LONGEST_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def state(pid: int) -> str:
    """Its letter in ``/proc``: T for a stopped process, Z for one that ended, "" for none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def gone(pid: int) -> bool:
    return state(pid) in ("", "Z")


def written(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Supervised]:
    """Runs a shell script in the folder ``scratch`` under supervision."""
    (tmp_path / "scratch").mkdir()
    started: list[subprocess.Popen[bytes]] = []

    def shell(script: str, restricted: bool = False, command: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        scratch = str(tmp_path / "scratch")
        words = supervised(
            command or ("sh", "-c", script), scratch, scratch, writable=[scratch] if restricted else None
        )
        started.append(
            subprocess.Popen(
                words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, cwd=tmp_path / "scratch"
            )
        )
        return started[-1]

    yield shell
    for one in started:
        end(one)
        assert one.stderr is not None
        one.stderr.close()


def test_all_below_are_frozen_and_go_on_and_the_process_itself_is_not(start: Supervised, tmp_path: Path) -> None:
    process = start("sleep 100 & echo $! > child; wait")
    child = written(tmp_path / "scratch" / "child")
    freeze_below(process.pid)
    until(lambda: state(child) == "T")
    assert state(process.pid) == "S"
    thaw_below(process.pid)
    until(lambda: state(child) == "S")


def test_a_daemon_in_a_session_of_its_own_is_ended(start: Supervised, tmp_path: Path) -> None:
    process = start("(setsid sh -c 'echo $$ > daemon; exec sleep 100' &); exec sleep 100")
    daemon = written(tmp_path / "scratch" / "daemon")
    until(lambda: daemon in descendants(process.pid))
    end(process)
    assert (gone(daemon), process.returncode) == (True, -9)


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("exit 0", 0), ("kill -TERM $$", -15)])
def test_it_ends_as_the_command_does_with_all_that_was_started(
    start: Supervised, tmp_path: Path, script: str, status: int
) -> None:
    process = start(f"sleep 100 & echo $! > child; {script}")
    child = written(tmp_path / "scratch" / "child")
    assert process.wait(_LONGEST_S) == status
    until(lambda: gone(child))
    # What is in the folder is still needed: the last line of the output.
    assert (tmp_path / "scratch").is_dir()


def test_without_the_process_that_started_it_nothing_is_left(start: Supervised, tmp_path: Path) -> None:
    process = start("setsid sh -c 'echo $$ > daemon; exec sleep 100'")
    daemon = written(tmp_path / "scratch" / "daemon")
    # As in a trial: what has no turn is frozen.
    freeze_below(process.pid)
    assert process.stdin is not None
    process.stdin.close()
    until(lambda: process.poll() is not None)
    until(lambda: gone(daemon))
    assert not (tmp_path / "scratch").exists()


def test_a_command_that_is_missing_is_said(start: Supervised) -> None:
    process = start("", command=("no-such-command",))
    assert process.stderr is not None
    assert b"no-such-command cannot be started" in process.stderr.read()
    assert process.wait(_LONGEST_S) == NOT_STARTED


@pytest.mark.parametrize("restricted", [False, *([True] if version() else [])])
def test_the_kernel_refuses_writes_elsewhere(start: Supervised, tmp_path: Path, restricted: bool) -> None:
    process = start("echo here > here; echo there > ../there", restricted)
    status = process.wait(_LONGEST_S)
    assert (status == 0, (tmp_path / "there").exists()) == (not restricted, not restricted)
    assert (tmp_path / "scratch" / "here").read_text() == "here\n"
