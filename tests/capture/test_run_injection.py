"""The injected start: it waits for torch, changes nothing before, and hands over to what it hides."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")

from support.script_runs import numbers, profiles, run, write

from tb_dlprof_plugin.capture.launcher.protocol import INJECTED, RunRequest, read_statuses


def python(folder: Path, code: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A Python as ``tb-dlprof run`` starts it, with a request in ``folder``."""
    RunRequest(str(folder / "runs" / "r"), 0.0).write(folder)
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)],
        env=os.environ | {"PYTHONPATH": str(INJECTED), "TB_DLPROF_RUN": str(folder)} | env,
        capture_output=True, text=True, timeout=120, cwd=folder, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_before_torch_nothing_of_ours_is_imported(tmp_path: Path) -> None:
    done = python(
        tmp_path, "import sys; print([m for m in sys.modules if m.startswith(('tb_dlprof', 'msgspec', 'json'))])"
    )
    assert done.stdout == "[]\n", done.stderr
    assert read_statuses(tmp_path) == []


def test_the_script_sees_the_path_that_it_would_see_without_us(tmp_path: Path) -> None:
    code = "import sys; print(sys.path)"
    plain = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )  # fmt: skip
    assert python(tmp_path, code).stdout == plain.stdout


def test_the_import_of_torch_is_noticed_from_any_module(tmp_path: Path) -> None:
    done = python(
        tmp_path,
        """
        import importlib.util, sys
        assert importlib.util.find_spec("torch").name == "torch"
        assert "torch" not in sys.modules
        __import__("torch.nn")
        import torch
        print(type(torch.__spec__.loader).__name__, "exec_module" in vars(torch.__spec__.loader))
        print([type(f).__name__ for f in sys.meta_path if "_AfterImport" in repr(f) and "torch" in f._expected])
        """,
    )
    assert done.stdout == "SourceFileLoader False\n[]\n", done.stderr
    (report,) = read_statuses(tmp_path)
    assert (report.phase, report.ended) == ("watching", True)


def test_a_torch_that_fails_to_import_fails_as_ever(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart is missing')")
    done = python(tmp_path, "import torch")
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ImportError: libcudart is missing")


def test_another_sitecustomize_runs_as_before(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import builtins\nbuiltins.seen = __file__\n")
    code = "import sitecustomize, builtins; print(builtins.seen == sitecustomize.__file__, builtins.seen)"
    path = os.pathsep.join((str(INJECTED), str(other)))
    assert python(tmp_path, code, PYTHONPATH=path).stdout == f"True {other / 'sitecustomize.py'}\n"


def test_an_error_of_another_sitecustomize_is_told_as_ever(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("1 / 0\n")
    path = os.pathsep.join((str(INJECTED), str(tmp_path)))
    done = python(tmp_path, "print('goes on')", PYTHONPATH=path)
    assert done.stdout == "goes on\n"
    assert "Error in sitecustomize" in done.stderr
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.long
def test_without_a_request_the_status_has_one_sentence(tmp_path: Path) -> None:
    done = python(tmp_path, "import os; os.remove('request.json'); import torch; print('goes on')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")
    (report,) = read_statuses(tmp_path)
    assert report.phase == "failed"
    assert "FileNotFoundError" in report.said


@pytest.mark.long
def test_a_python_without_the_package_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("raise ImportError('no msgspec here')")
    done = python(tmp_path, "import torch; print('goes on')", PYTHONPATH=f"{INJECTED}{os.pathsep}{tmp_path}")
    assert done.stdout == "goes on\n"
    said = (tmp_path / next(path.name for path in tmp_path.glob("*.status.json"))).read_text()
    assert "-m pip install tb_dlprof_plugin" in said


@pytest.mark.long
def test_a_module_of_a_package_that_a_shell_script_starts_is_profiled(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    write(package, "train(26, model, optimizer)\nprint(__name__, sys.argv[1:])\n")
    (tmp_path / "go.sh").write_text(f'#!/bin/sh\ncd {tmp_path}\n{sys.executable} -m package.train "$@" && exit 6\n')
    (tmp_path / "go.sh").chmod(0o755)
    done = run("--run-name", "r", "--", "./go.sh", "--", "-x", cwd=tmp_path)
    assert (done.status, done.out) == (6, "__main__ ['--', '-x']\n")
    (profile,) = profiles(tmp_path / "runs" / "r")
    assert numbers(profile) == list(range(12, 22))


@pytest.mark.long
def test_a_python_that_ignores_its_environment_cannot_be_watched(tmp_path: Path) -> None:
    script = write(tmp_path, "import torch\n", training=False)
    done = run("--", sys.executable, "-I", script, cwd=tmp_path)
    assert done.status == 0
    assert (
        "train.py did not import torch, jax or tensorflow, so nothing was recorded; a Python that is started with -I"
        in done.err
    )
    assert not (tmp_path / "runs" / "train").exists()
