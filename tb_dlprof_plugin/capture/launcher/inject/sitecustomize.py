"""Runs at the start of every Python process that ``tb-dlprof run`` starts, directly or not, at next to no cost.

Waits for a framework to be imported, and runs the ``sitecustomize`` that this one hides, if there is one. Imports only
what every Python process has loaded by now: most processes never import one.
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
_TRIAL = os.environ.get("TB_DLPROF_TRY", "")
_LONGEST_REASON = 300
"""Characters of an import's error: it is part of one sentence."""
_FRAMEWORKS = {
    "torch": "tb_dlprof_plugin.capture.launcher.attach",
    "jax": "tb_dlprof_plugin.capture.launcher.xplane.jax_calls",
    "tensorflow": "tb_dlprof_plugin.capture.launcher.xplane.tensorflow_calls",
}
"""Modules that are waited for, and ours whose `attach` is then called."""
_TRIAL_ATTACH = "tb_dlprof_plugin.trial.inside.attach"
_PREPARES = os.environ.pop("TB_DLPROF_TRY_IMPORTS", "")
_PREPARED = "tb_dlprof_plugin.trial.prepared"
_DIE_WITH_PARENT = 1
_KILLED = 9
_OTHER_FILE_SYSTEM = 18
"""EXDEV."""


class _AfterImport:
    """A module finder that only makes the loader of each framework call `_attach` after the import."""

    def __init__(self) -> None:
        self._expected = set(_FRAMEWORKS)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._expected:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                self._watch(name, spec.loader)
                return spec
        return None

    def _watch(self, framework: str, loader: Any) -> None:
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
                _write_status(framework, "not_imported", "it was interrupted")
                raise
            except BaseException as error:
                why = " ".join(str(error).split())[:_LONGEST_REASON]
                _write_status(framework, "not_imported", f"{type(error).__name__}: {why}".rstrip(".: "))
                raise
            if framework in self._expected:
                self._expected.remove(framework)
                if not self._expected and self in sys.meta_path:
                    sys.meta_path.remove(self)
                _attach(framework)

        try:
            # Set on the instance: the loader keeps its class, which other tools check.
            loader.exec_module = exec_module
        except AttributeError:
            pass


def _attach(framework: str) -> None:
    if _TRIAL and framework == "torch":
        _call_attach(framework, _TRIAL_ATTACH, _TRIAL)
    if _FOLDER:
        _call_attach(framework, _FRAMEWORKS[framework], _FOLDER)


def _call_attach(framework: str, module: str, folder: str) -> None:
    try:
        _imported(module).attach(folder)
    except Exception as error:
        _report_failure(framework, folder, error)


def _imported(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        # Started from a source tree or by another Python: packages compiled for that one may be missing here.
        sys.path.append(_ROOT)
        try:
            return import_module(module)
        finally:
            sys.path.remove(_ROOT)


def _prepare() -> None:
    """The first imports of a script that is tried, of which some processes are started before they are needed."""
    try:
        _imported(_PREPARED).prepare(_TRIAL)
    except Exception as error:
        if not os.path.exists(os.path.join(_TRIAL, "trial.json")):
            # The script must not run unasked.
            os.write(2, f"{error}\n".encode(errors="replace"))
            os._exit(1)


def _die_with_parent() -> None:
    """A script that is tried ends with the command, however that ends."""
    if sys.platform == "linux":
        try:
            import ctypes

            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, _KILLED, 0, 0, 0)
        except (ImportError, OSError):
            pass


def _rename_folders() -> None:
    """A folder that was there before can be renamed. The overlay of a user without privileges refuses that as a move to
    another file system, as `mv` and `shutil.move` expect and Python's callers of `os.rename` do not."""
    original = os.rename

    def rename(src: Any, dst: Any, *, src_dir_fd: Any = None, dst_dir_fd: Any = None) -> None:
        try:
            original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        except OSError as error:
            plain = src_dir_fd is None and dst_dir_fd is None
            if error.errno != _OTHER_FILE_SYSTEM or not plain or os.path.islink(src) or not os.path.isdir(src):
                raise
            import shutil

            shutil.copytree(src, dst, symlinks=True, dirs_exist_ok=os.path.isdir(dst) and not os.listdir(dst))
            shutil.rmtree(src)

    os.supports_dir_fd.add(rename)
    os.rename = os.replace = rename


def _report_failure(framework: str, folder: str, error: Exception) -> None:
    if isinstance(error, ImportError):
        python = sys.executable
        said = f"{python} has no tb_dlprof_plugin ({error}): install it there, too"
    else:
        said = f"the profiler could not be set up ({type(error).__name__}: {error})"
    _write_status(framework, "failed", said, folder)


def _write_status(framework: str, phase: str, said: str, folder: str = _FOLDER or _TRIAL) -> None:
    """Write a `ProcessStatus` by hand, because the package may be missing."""
    import json

    status = {"pid": os.getpid(), "framework": framework, "phase": phase, "said": said, "ended": True}
    try:
        with open(os.path.join(folder, f"{os.getpid()}.{framework}.status.json"), "w") as file:
            json.dump(status, file)
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
if _TRIAL:
    _die_with_parent()
    _rename_folders()
    if _PREPARES:
        _prepare()
if _FOLDER or _TRIAL:
    for _framework in _FRAMEWORKS:
        if _framework in sys.modules:
            _attach(_framework)
    sys.meta_path.insert(0, _AfterImport())
_run_hidden_sitecustomize()
