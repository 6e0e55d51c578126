"""Runs the tests that need no torch with the oldest and the newest Python and packages that pyproject.toml allows.

    python tools/environments.py            # both
    python tools/environments.py oldest

uv makes an environment for each below .make/environments: the oldest release of each dependency on the oldest Python,
the newest on the newest. A Python that is not on this machine, and that uv cannot download, is said to be left out, and
the exit status is then 0 only with ``--leave-out``. What views and analyses is tested; what records needs a torch.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".make" / "environments"
TESTERS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "setuptools<80")
"""Setuptools: TensorBoard before 2.21 imports its pkg_resources, which newer ones do not have."""
TESTS = ("model", "names", "readers", "analysis", "store", "metrics", "pages", "comparison", "reports", "cli")
"""Folders of tests/."""


@dataclass(frozen=True)
class Environment:
    """A Python, and which releases of the dependencies: a value of uv's ``--resolution``."""

    python: str
    resolution: str
    differs: tuple[str, ...]
    """Tests that hold only with other versions."""


_HELP = "cli/test_help.py"
_LIGHT = tuple(f"{_HELP}::test_help_imports_no_subcommand_and_nothing_heavy[{asked}]" for asked in ("", "ops", "run"))
_WORDED = (f"{_HELP}::test_help_is_what_the_subcommand_itself_says", f"{_HELP}::test_a_near_name_is_suggested")
_CORPUS = "readers/test_corpus.py::test_a_broken_file_gives_what_can_be_read_or_one_error"
_DEEP = tuple(f"{_CORPUS}[{name}.json]" for name in ("deep_nesting", "deep_nesting_of_the_header"))
ENVIRONMENTS = {
    # Older releases of typer import rich at each start, name types in other words, and suggest no names.
    "oldest": Environment("3.10", "lowest-direct", _LIGHT + _WORDED),
    # From 3.12 on Python has more room for nested values: what these files nest is read.
    "newest": Environment("3.13", "highest", _DEEP),
}


def python_of(version: str) -> str | None:
    """The path of such a Python: one that uv finds or downloads, or one of pyenv; None where there is none."""
    found = subprocess.run([*_uv(), "python", "find", version], capture_output=True, text=True)
    if found.returncode == 0:
        return found.stdout.strip()
    of_pyenv = sorted(
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python")
    )
    if of_pyenv:
        return str(of_pyenv[-1])
    installed = subprocess.run([*_uv(), "python", "install", version], capture_output=True, text=True)
    return version if installed.returncode == 0 else None


def make(name: str, python: str) -> Path:
    """Makes an environment, again where it is there; returns its Python."""
    folder = PLACE / name
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([*_uv(), "venv", "--quiet", "--python", python, str(folder)], check=True)
    own = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = [*_uv(), "pip", "install", "--quiet", "--python", str(own)]
    resolution = ENVIRONMENTS[name].resolution
    subprocess.run([*install, "--resolution", resolution, "-r", str(ROOT / "pyproject.toml")], check=True)
    subprocess.run([*install, *TESTERS], check=True)
    return own


def test(name: str, python: Path) -> int:
    """Runs the tests in an environment; the exit status of pytest."""
    folders = [str(ROOT / "tests" / name) for name in TESTS]
    chosen = ["-m", "not slow and not long and not e2e", "-p", "no:cacheprovider", "-n", "2"]
    for one in ENVIRONMENTS[name].differs:
        chosen += ["--deselect", f"tests/{one}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    return subprocess.run([str(python), "-m", "pytest", "-q", *chosen, *folders], cwd=ROOT, env=environment).returncode


def main() -> int:
    """Entry point of the script; the number of its exit status."""
    parser = argparse.ArgumentParser(description="Test with the oldest and the newest Python and packages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="some of " + ", ".join(ENVIRONMENTS))
    parser.add_argument("--leave-out", action="store_true", help="go on without a Python that cannot be had")
    given = parser.parse_args()
    if unknown := set(given.names) - set(ENVIRONMENTS):
        parser.error(f"there is no environment {sorted(unknown)[0]!r}; there are {', '.join(ENVIRONMENTS)}")
    worst = 0
    for name in given.names or ENVIRONMENTS:
        python = python_of(ENVIRONMENTS[name].python)
        if python is None:
            print(f"{name}: left out, there is no Python {ENVIRONMENTS[name].python} here", flush=True)
            worst = worst or (0 if given.leave_out else 1)
            continue
        print(f"{name}: {python}", flush=True)
        worst = test(name, make(name, python)) or worst
    return worst


def _uv() -> list[str]:
    return [sys.executable, "-m", "uv"]


if __name__ == "__main__":
    sys.exit(main())
