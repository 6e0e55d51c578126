"""``tb-dlprof try`` harms nothing: no file is written or removed, and no process is left, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")
if sys.platform != "linux":
    pytest.skip("reads /proc", allow_module_level=True)

from support.marks import long
from support.script_runs import TB_DLPROF, Done, environment, execute, write
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.trial import isolation

_ENDS_WITHIN_S = 15.0
_STARTS_WITHIN_S = 120.0

WRITES = """
    import json, os, pathlib, shutil, sqlite3, subprocess, sys, tempfile

    torch.save(model.state_dict(), "before.pt")
    assert pathlib.Path("notes.txt").read_text() == "mine"
    pathlib.Path("notes.txt").write_text("overwritten")
    assert open("notes.txt").read() == "overwritten"
    with open("log.csv", "a") as log:
        log.write("1,2")
    assert open("log.csv").read() == "head,1,2"
    os.remove("old.txt")
    assert not os.path.exists("old.txt") and "old.txt" not in os.listdir()
    shutil.rmtree("checkpoints")
    os.makedirs("checkpoints/new")
    assert os.listdir("checkpoints") == ["new"]
    os.rename("a.txt", "b.txt")
    assert open("b.txt").read() == "a" and not os.path.exists("a.txt")
    os.chmod("notes.txt", 0o600)
    os.symlink("notes.txt", "link.txt")
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
    # What is not Python.
    if "--native" in sys.argv:
        subprocess.run("echo more >> notes.txt; touch made.txt; rm -f kept.txt", shell=True, stderr=subprocess.DEVNULL)
        try:
            sqlite3.connect("runs.sqlite").execute("create table t (a)")
        except sqlite3.OperationalError:
            pass
    while True:
        train(8, model, optimizer)
        torch.save(model.state_dict(), "last.pt")
        torch.load("last.pt")
"""

RUNS_ON = """
    import subprocess, sys

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 1_000_000

        def __getitem__(self, index):
            return torch.ones(8)

    # Programs that the script started, two of them in sessions of their own, one of these without a parent.
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    subprocess.run(["sh", "-c", "setsid sleep 1000 &"])
    for batch in DataLoader(Rows(), batch_size=4, num_workers=1):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


def try_script(script: Path, *arguments: str, **env: str) -> Done:
    return execute(*TB_DLPROF, "try", *arguments, script, cwd=script.parent, **env)


def state(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Everything below a folder: mode, size, time of change and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        seen = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = (seen.st_mode, seen.st_size, seen.st_ctime_ns, content)
    return found


def marked(mark: str) -> list[str]:
    """Command lines of the living processes that have this in their environment."""
    return [line for line in processes(mark).values() if line]


def processes(mark: str) -> dict[int, str]:
    """The same by process."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(process.name)] = line.decode(errors="replace")
    return found


@pytest.fixture
def writing(tmp_path: Path) -> Path:
    """A script that writes, in a folder with some files; next to it an empty ``tmp``."""
    folder = tmp_path / "work"
    (folder / "checkpoints").mkdir(parents=True)
    for name, text in (
        ("notes.txt", "mine"), ("log.csv", "head,"), ("old.txt", "old"), ("a.txt", "a"), ("kept.txt", "kept"),
        ("checkpoints/1.pt", "weights"),
    ):  # fmt: skip
        (folder / name).write_text(text)
    (tmp_path / "tmp").mkdir()
    return write(folder, WRITES)


BRIEF = ("--remedies", "foreach_optimizer", "--record", "none", "--budget", "8s", "--format", "json")


def test_no_file_is_written_changed_or_removed(writing: Path, tmp_path: Path) -> None:
    before = state(writing.parent)
    done = execute(
        *TB_DLPROF, "try", *BRIEF, writing, "--native", cwd=writing.parent,
        TMPDIR=str(tmp_path / "tmp"), HOME=str(tmp_path / "home"), XDG_DATA_HOME=str(tmp_path / "data"),
    )  # fmt: skip
    assert state(writing.parent) == before
    assert list((tmp_path / "tmp").iterdir()) == []
    assert done.status == 0, done.err
    # It did run, with everything that it wrote.
    assert json.loads(done.out)["baseline_ms"] > 0


@pytest.mark.long
def test_in_a_copy_no_file_is_written_changed_or_removed(
    writing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "_works", lambda one: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(writing.parent)
    before = state(writing.parent)
    done = CliRunner().invoke(app, ["try", *BRIEF, str(writing)], env=environment(XDG_DATA_HOME=str(tmp_path / "data")))
    assert state(writing.parent) == before
    assert list((tmp_path / "tmp").iterdir()) == []
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["baseline_ms"] > 0
    assert f"a copy of {writing.parent}" in done.stderr


def test_a_large_folder_is_copied_only_where_that_is_asked_for(writing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_works", lambda one: False)
    monkeypatch.chdir(writing.parent)
    with (writing.parent / "data.bin").open("wb") as file:
        file.truncate(200_000_000)
    done = CliRunner().invoke(app, ["try", *BRIEF, str(writing)])
    assert done.exit_code == 2
    assert "200 MB" in done.stderr
    assert "--copy" in done.stderr


_WITHOUT_OPTIMIZER = """
    while True:
        model(torch.randn(4, 8)).sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 1e-6 * parameter.grad
    """
_INFERENCE = """
    while True:
        with torch.no_grad():
            model(torch.randn(4, 8))
    """


@pytest.mark.parametrize(
    ("loop", "said"),
    [
        long(_WITHOUT_OPTIMIZER, "without an optimizer of torch"),
        long(_INFERENCE, "without a backward pass: it does not train"),
    ],
)
def test_a_script_without_a_step_of_an_optimizer_is_not_waited_for(tmp_path: Path, loop: str, said: str) -> None:
    script = write(tmp_path, loop)
    done = try_script(script, "--budget", "6s", "--record", "none", XDG_DATA_HOME=str(tmp_path))
    assert done.status == 1
    assert said in done.out


@pytest.mark.parametrize("number", [signal.SIGINT, *map(long, (signal.SIGTERM, signal.SIGKILL))])
def test_no_process_is_left_however_it_ends(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    script = write(folder, RUNS_ON)
    (tmp_path / "tmp").mkdir()
    mark = f"TRIED={tmp_path}"
    command = [
        *TB_DLPROF,
        "try",
        "--remedies",
        "foreach_optimizer",
        "--record",
        "none",
        "--format",
        "json",
        str(script),
    ]
    process = subprocess.Popen(
        # A shell's job in the background ignores SIGINT, and what it starts inherits that.
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env=environment(TRIED=str(tmp_path), TMPDIR=str(tmp_path / "tmp"), XDG_DATA_HOME=str(tmp_path / "data")),
    )  # fmt: skip
    try:
        until = time.monotonic() + _STARTS_WITHIN_S
        while not any("sleep" in one for one in marked(mark)):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(2)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        until = time.monotonic() + _ENDS_WITHIN_S
        while (marked(mark) or list((tmp_path / "tmp").iterdir())) and time.monotonic() < until:
            time.sleep(0.1)
        assert marked(mark) == []
        assert list((tmp_path / "tmp").iterdir()) == []
        if number != signal.SIGKILL:
            assert process.returncode == 130, err
            assert json.loads(out)["interrupted"]
        assert [one.name for one in folder.iterdir()] == ["train.py"]
    finally:
        process.kill()
        process.wait()
        for left in processes(mark):
            with contextlib.suppress(OSError):
                os.kill(left, signal.SIGKILL)


@pytest.mark.long
def test_a_script_that_fails_is_no_traceback_of_ours(tmp_path: Path) -> None:
    script = write(tmp_path, "train(3, model, optimizer)\nraise RuntimeError('out of luck')")
    done = try_script(script, "--remedies", "foreach_optimizer", "--record", "none", XDG_DATA_HOME=str(tmp_path))
    assert done.status == 1
    assert "RuntimeError: out of luck" in done.out + done.err
    assert "Traceback" not in done.out + done.err
