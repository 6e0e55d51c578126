"""Runs at the start of every Python process that ``tb-dlprof run`` starts, directly or not, at next to no cost.

Waits for torch to be imported, and runs the ``sitecustomize`` that this one hides, if there is one. Imports only what
every Python process has loaded by now: most processes never import torch.
"""

# ruff: noqa: SIM105 (contextlib would have to be imported)
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(_HERE))))
_FOLDER = os.environ.get("TB_DLPROF_RUN", "")
_LONGEST_REASON = 300
"""Characters of an import's error: it is part of one sentence."""


class _AfterTorch:
    """A module finder that only makes torch's loader call `_attach` after the import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                self._watch(spec.loader)
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: Any) -> None:
            # Once: `importlib.util.find_spec("torch")` creates a loader that is never used.
            try:
                del loader.exec_module
            except AttributeError:
                pass
            try:
                execute(module)
            except KeyboardInterrupt:
                _write_status("not_imported", "it was interrupted")
                raise
            except BaseException as error:
                why = " ".join(str(error).split())[:_LONGEST_REASON]
                _write_status("not_imported", f"{type(error).__name__}: {why}".rstrip(".: "))
                raise
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                _attach()

        try:
            # Set on the instance: the loader keeps its class, which other tools check.
            loader.exec_module = exec_module
        except AttributeError:
            pass


def _attach() -> None:
    try:
        try:
            from tb_dlprof_plugin.capture.launcher.attach import attach
        except ImportError:
            # Started from a source tree or by another Python: packages compiled for that one may be missing here.
            sys.path.append(_ROOT)
            try:
                from tb_dlprof_plugin.capture.launcher.attach import attach
            finally:
                sys.path.remove(_ROOT)
        attach(_FOLDER)
    except Exception as error:
        _report_failure(error)


def _report_failure(error: Exception) -> None:
    if isinstance(error, ImportError):
        python = sys.executable
        said = f"{python} has no tb_dlprof_plugin ({error}): {python} -m pip install tb_dlprof_plugin"
    else:
        said = f"the profiler could not be set up ({type(error).__name__}: {error})"
    _write_status("failed", said)


def _write_status(phase: str, said: str) -> None:
    """Write a `ProcessStatus` by hand, because the package may be missing."""
    import json

    try:
        with open(os.path.join(_FOLDER, f"{os.getpid()}.status.json"), "w") as file:
            json.dump({"pid": os.getpid(), "phase": phase, "said": said, "ended": True}, file)
    except OSError:
        pass


def _run_hidden_sitecustomize() -> None:
    """What `import sitecustomize` would have found without this folder. Its errors propagate as usual."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


# The script sees the path that it would see without us.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
if _FOLDER:
    if "torch" in sys.modules:
        _attach()
    else:
        sys.meta_path.insert(0, _AfterTorch())
_run_hidden_sitecustomize()
