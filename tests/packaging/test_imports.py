"""Viewing and analysing work where torch is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

WITHOUT_TORCH = """
import importlib, importlib.abc, sys

class NoTorch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "lightning", "pytorch_lightning", "accelerate"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


IN_A_TRAINING = ("tb_dlprof_plugin.capture", "tb_dlprof_plugin.trial.inside")


def _modules() -> list[str]:
    """Every module outside the two packages that run in a training process, where torch may be imported."""
    paths = sorted((ROOT / "tb_dlprof_plugin").rglob("*.py"))
    parts = [path.relative_to(ROOT).with_suffix("").parts for path in paths]
    names = [".".join(part[:-1] if part[-1] == "__init__" else part) for part in parts]
    # Their packages are extras.
    for name in ("agent_tools.mcp_server", "run_widget"):
        names.remove(f"tb_dlprof_plugin.{name}")
    return [name for name in names if not name.startswith(IN_A_TRAINING) and "__main__" not in name]


def _python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], cwd=ROOT, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )


def test_every_module_outside_a_training_imports_without_torch() -> None:
    done = _python("-c", WITHOUT_TORCH, *_modules())
    assert done.returncode == 0, done.stderr


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = {"torch", "tensorboard", "numpy", "pandas", "tb_dlprof_plugin.pages"}
    done = _python("-c", f"import sys, tb_dlprof_plugin; print(*{heavy!r} & set(sys.modules))")
    assert (done.returncode, done.stdout.strip()) == (0, "")


COMMAND = """
import sys
from tb_dlprof_plugin.cli.main import app
app(sys.argv[1:], standalone_mode=False)
print(*(name for name in sys.modules if name.startswith("tb_dlprof_plugin")))
"""
MOST, MOST_OF_IMPORT = 120, 125
"""Modules of ours for a stored run, and for an import; each costs about two milliseconds."""


def _imported_by(*command: str) -> list[str]:
    done = _python("-c", COMMAND, *command)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def test_a_command_on_a_stored_run_imports_neither_readers_nor_rules() -> None:
    ours = _imported_by("ops", "demo/recorded/lenet/fp32", "--limit", "1")
    packages = ("readers.kineto", "readers.nsys", "analysis.build", "advice", "planning.predict", "fleet")
    assert not [name for name in ours if name.removeprefix("tb_dlprof_plugin.").startswith(packages)]
    assert len(ours) <= MOST


def test_an_import_of_a_trace_imports_no_page_and_no_other_reader(tmp_path: Path) -> None:
    ours = _imported_by("import", "tests/traces/cpu_plain.pt.trace.json.gz", "--logdir", str(tmp_path))
    packages = ("pages", "metrics", "simulation", "advice", "planning", "readers.sqlite_tables", "readers.xplane.space")
    assert not [name for name in ours if name.removeprefix("tb_dlprof_plugin.").startswith(packages)]
    assert len(ours) <= MOST_OF_IMPORT
