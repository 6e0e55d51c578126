"""A script that `tb-dlprof try` runs changes nothing of the user's, and works as it does alone: in an overlay as any
user, and in a copy of its folder where the machine allows no overlay."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("overlays and Landlock are Linux's", allow_module_level=True)

from support.marks import short_of
from support.script_runs import ROOT
from support.watcher import Watched
from trial.file_scripts import SCRIPTS, drawn, fill, script

from tb_dlprof_plugin.capture.launcher.protocol import INJECTED
from tb_dlprof_plugin.trial import isolation, landlock
from tb_dlprof_plugin.trial.isolation import Isolation, IsolationError, IsolationKind, choose
from tb_dlprof_plugin.trial.overlay import remove_folder

_SOMEBODY = 61234
_TIMEOUT_S = 60
SHORT = (
    "hydra", "renamed folder", "attributes", "sqlite's log", "memory map", "through a link", "named segment", "home",
    "shell's move", "daemon", "C",
)  # fmt: skip
SEEDS = range(500)
SHORT_SEEDS = ("3",)


@dataclass
class Place:
    """The folders of a user with files in them, all below ``root`` but that in shared memory."""

    root: Path
    folders: dict[str, Path]
    user: int | None
    """Who runs the script; None: who runs the tests."""

    def make(self) -> None:
        """Make all as they are before a script runs."""
        for folder in self.folders.values():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            fill(folder)
        if self.user is not None:
            for top in (self.root, self.folders["MEMORY"]):
                for path in (top, *top.rglob("*")):
                    os.chown(path, self.user, self.user, follow_symlinks=False)

    def run(self, body: str, how: Isolation | None) -> tuple[int, str]:
        """Run a script as ``try`` does, or as it is; its status and what it said."""
        scratch = Path(tempfile.mkdtemp(prefix="tbt_", dir=self.root.parent / "scratch"))
        folder = scratch / "1"
        (folder / "tmp").mkdir(parents=True)
        text = self.folders["HERE"] / "script.py"
        text.write_text(script(body))
        command = [sys.executable, "script.py"]
        if how is not None:
            command = how.command(command, scratch, folder)
        if self.user is not None:
            for path in (text, scratch, *scratch.rglob("*")):
                os.chown(path, self.user, self.user, follow_symlinks=False)
        before = Watched.take(self.root, names=self.folders["MEMORY"].name)
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            user=self.user, group=self.user, extra_groups=None if self.user is None else [],
            cwd=self.folders["HERE"],
            env={**os.environ, **{k: str(v) for k, v in self.folders.items()}, "TMPDIR": str(folder / "tmp"),
                 "PYTHONDONTWRITEBYTECODE": "1", "TB_DLPROF_TRY": str(folder),
                 "PYTHONPATH": f"{INJECTED}:{ROOT}"},
        )  # fmt: skip
        try:
            status = process.wait(_TIMEOUT_S)
            assert process.stderr is not None
            said = process.stderr.read()
        finally:
            process.kill()
            process.communicate()
            remove_folder(scratch)
        if how is not None:
            assert before.changes() == []
            assert not Path("/tmp/made_by_a_script").exists()
        return status, said


def made(user: int | None) -> Iterator[Place]:
    """A place, and its end."""
    top = Path(tempfile.mkdtemp(prefix="tb_dlprof_isolation_", dir="/var/tmp"))
    (top / "scratch").mkdir()
    names = {"HERE": "here", "HOME": "home", "ELSEWHERE": "elsewhere"}
    folders = {name: top / "root" / place for name, place in names.items()}
    place = Place(top / "root", {**folders, "MEMORY": Path("/dev/shm") / f"tb_dlprof_{uuid.uuid4().hex}"}, user)
    for one in (top, top / "scratch"):
        one.chmod(0o777)
    place.make()
    yield place
    for folder in (top, place.folders["MEMORY"]):
        shutil.rmtree(folder)


def _as_nobody() -> bool:
    """Whether these tests may become another user, who may run this Python."""
    if os.geteuid() != 0:
        return False
    command = [sys.executable, "-c", ""]
    try:
        done = subprocess.run(command, user=_SOMEBODY, group=_SOMEBODY, check=False, capture_output=True)
    except PermissionError:  # it lies below a folder of this user alone
        return False
    return done.returncode == 0


USERS = {"this user": None, **({"another user": _SOMEBODY} if _as_nobody() else {})}


@pytest.fixture(scope="module", params=USERS.values(), ids=USERS.keys())
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    yield from made(request.param)


@functools.cache
def kinds(user: int | None) -> tuple[IsolationKind, ...]:
    """What is checked: all that this machine has, and for another user the overlay."""
    best = choose(os.getcwd()).kind
    if user is not None:
        return (best,) if best is IsolationKind.overlay else ()
    return (best, *([IsolationKind.copy] if landlock.version() and best is not IsolationKind.copy else []))


def check(place: Place, body: str) -> None:
    place.make()
    for kind in kinds(place.user):
        status, said = place.run(body, Isolation(kind, str(place.folders["HERE"])))
        # It works as it does alone, but a folder that was there before, renamed by a program in C, needs privileges.
        if kind is IsolationKind.overlay and (place.user is None or "libc.rename(b'checkpoints'" not in body):
            assert status == 0, said


@pytest.mark.parametrize("name", short_of(SCRIPTS, SHORT))
def test_a_script_changes_nothing_and_works(place: Place, name: str) -> None:
    check(place, SCRIPTS[name])


@pytest.mark.parametrize("seed", short_of(SEEDS, SHORT_SEEDS))
def test_a_drawn_script_changes_nothing_and_ends_as_it_does_alone(place: Place, seed: int) -> None:
    check(place, drawn(seed, place.folders))
    assert place.run(drawn(seed, place.folders), None)[0] == 0


def test_a_copy_keeps_the_ways_to_what_lies_beside_it() -> None:
    for place in made(None):
        copied(place)


def copied(place: Place) -> None:
    copy = Isolation(IsolationKind.copy, str(place.folders["HERE"]))
    beside = "assert open('../elsewhere/notes.txt').read() == 'mine'"
    assert place.run(f"{beside}; open('notes.txt', 'a').write('x'); os.chmod('notes.txt', 0)", copy) == (0, "")
    status, said = place.run("open(ELSEWHERE + '/notes.txt', 'a')", copy)
    assert (status, "PermissionError" in said) == (1, True)


def test_without_overlay_and_landlock_the_user_has_to_ask_for_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_works", lambda one: False)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    with pytest.raises(IsolationError, match="--in-place"):
        choose(os.getcwd())
    assert "stays so" in choose(os.getcwd(), in_place=True).sentence
