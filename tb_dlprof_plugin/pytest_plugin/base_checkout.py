"""The files of a commit in a temporary folder. Nothing in the repository or its `.git` is written."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path


class BaseError(Exception):
    """There is no such base. The message says what to do."""


@dataclass(frozen=True)
class Checkout:
    """The files of a commit.

    Attributes:
        folder: in which they are.
        root: of the working tree, whose place ``folder`` takes.
        commit: its full hash.
    """

    folder: Path
    root: Path
    commit: str

    def place_of(self, path: Path) -> Path:
        """Where a path of the working tree is in the checkout."""
        return self.folder / path.relative_to(self.root)

    def with_test(self, test_file: Path, upwards_to: Path) -> None:
        """Put the working tree's test in, with the conftest.py files of its folders: both sides run the same test.

        Raises:
            BaseError: the test is in no folder of the repository, or a link of the commit leads out of the checkout.
        """
        if not test_file.is_relative_to(self.root):
            raise BaseError(f"{test_file} is not in the repository {self.root}, whose commit is the base")
        folders = [one for one in test_file.parents if one.is_relative_to(upwards_to)]
        for path in (test_file, *(folder / "conftest.py" for folder in folders)):
            if path.is_file():
                place = self.place_of(path)
                if not place.parent.resolve().is_relative_to(self.folder):
                    raise BaseError(f"at {self.commit[:9]} the folder of {path} is a link that leads elsewhere")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.unlink(missing_ok=True)
                shutil.copyfile(path, place)

    def remove(self) -> None:
        """Remove the folder. Never raises."""
        shutil.rmtree(self.folder, ignore_errors=True)


def check_out(ref: str, inside: Path) -> Checkout:
    """The files of a branch, tag or commit of the repository that holds the folder ``inside``.

    A branch that is not here is looked for at ``origin``. Submodules stay empty.

    Raises:
        BaseError: no repository, or no such commit in it.
    """
    if shutil.which("git") is None:
        raise BaseError("git is missing, which checks out the base")
    try:
        root = Path(_git(inside, "rev-parse", "--show-toplevel")).resolve()
    except BaseError:
        raise BaseError(f"{inside} is in no git repository, so that there is no base {ref!r}") from None
    for name in (ref, f"origin/{ref}"):
        try:
            commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            break
        except BaseError:
            continue
    else:
        raise BaseError(
            f"git has no commit {ref!r} here; `git fetch origin {ref}` brings it, in a workflow `fetch-depth: 0`"
        )
    checkout = Checkout(Path(tempfile.mkdtemp(prefix="tb_dlprof_base_")).resolve(), root, commit)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
            _git(root, "read-tree", commit, more=index)
            _git(root, "checkout-index", "--all", f"--prefix={checkout.folder}/", more=index)
    except BaseException:
        checkout.remove()
        raise
    return checkout


def _git(folder: Path, *arguments: str, more: dict[str, str] | None = None) -> str:
    # A hook of git, which may run the tests, names its repository and index in the environment.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | (more or {})
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, env=env)
    if done.returncode:
        raise BaseError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()
