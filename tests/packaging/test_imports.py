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
