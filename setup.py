"""The build step that `pyproject.toml` cannot express: the browser bundle is built before the package is.

`tools/generate.py` writes the TypeScript that is made from tables in Python, then npm compiles `frontend/` into
`tb_dlprof_plugin/static/`; neither is part of the repository. It happens for wheels, for editable installs and for
source distributions; an unpacked source distribution brings the finished bundle, so that it installs without npm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from setuptools import Command, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "tb_dlprof_plugin" / "static"
BUNDLE = STATIC / "index.js"
NOT_SOURCES = {"node_modules", "dist", "coverage", "test-results"}


def _sources() -> Iterator[Path]:
    for folder, folders, files in os.walk(FRONTEND):
        folders[:] = [name for name in folders if name not in NOT_SOURCES]
        yield from (Path(folder, name) for name in files)


def _is_current() -> bool:
    """Whether the bundle is there and no source is younger than it."""
    return BUNDLE.is_file() and all(path.stat().st_mtime <= BUNDLE.stat().st_mtime for path in _sources())


def build_frontend() -> None:
    """Make `tb_dlprof_plugin/static/` current, or end with one sentence that says what is missing."""
    if BUNDLE.is_file() and (ROOT / "PKG-INFO").is_file():
        return  # an unpacked source distribution: its bundle belongs to its sources
    if not (FRONTEND / "package.json").is_file():
        sys.exit(
            "error: neither frontend/package.json nor the bundle of a source distribution is here: this copy of the "
            "sources is incomplete."
        )
    npm = shutil.which("npm")
    if npm is None and not BUNDLE.is_file():
        sys.exit(
            "error: building tb_dlprof_plugin from its repository needs npm (Node.js 20 or newer) for the browser "
            "bundle, and npm was not found: install Node.js, or a wheel that `pip wheel --no-deps .` made elsewhere."
        )
    _run(ROOT, sys.executable, str(ROOT / "tools" / "generate.py"), "--frontend")
    if _is_current():
        return
    if npm is None:
        print("warning: npm was not found: packing the browser bundle as it is, though its sources are newer.")
        return
    installed = FRONTEND / "node_modules" / ".package-lock.json"
    lock = FRONTEND / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        _run(FRONTEND, npm, "ci")
    _run(FRONTEND, npm, "run", "build")
    if not BUNDLE.is_file():
        sys.exit("error: `npm run build` in frontend/ ended well but wrote no tb_dlprof_plugin/static/index.js.")


def _run(folder: Path, program: str, *args: str) -> None:
    """Runs a program that finds the package, installed or not."""
    command = " ".join((Path(program).name, *args))
    print(f"{command} (in {folder.name}/)", flush=True)
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    try:
        environment = {**os.environ, "PYTHONPATH": search}
        subprocess.run([program, *args], cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: `{command}` failed with status {error.returncode}; its output above says why.")


class BuildPy(build_py):
    """Builds the bundle first; editable installs come through here too."""

    def run(self) -> None:
        """Build the bundle, then what setuptools builds."""
        build_frontend()
        super().run()


class SDist(sdist):
    """A source distribution with the finished bundle in it."""

    def run(self) -> None:
        """Build the bundle, then the archive."""
        build_frontend()
        super().run()


COMMANDS: dict[str, type[Command]] = {"build_py": BuildPy, "sdist": SDist}

setup(cmdclass=COMMANDS)
