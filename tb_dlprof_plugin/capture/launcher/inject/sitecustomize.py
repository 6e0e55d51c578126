"""Runs at the start of every Python that ``tb-dlprof run`` starts, directly or not. Costs next to nothing there.

It waits for torch to be imported, and hands over to the ``sitecustomize`` that this one hides, if there is one. Nothing
is imported here but what every Python has loaded by now: most processes never import torch.
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


class _AfterTorch:
    """A finder that finds nothing itself: it has the loader of torch call `_arm` when it is done."""

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
            # Once: `importlib.util.find_spec("torch")` makes a loader that nobody uses.
            try:
                del loader.exec_module
            except AttributeError:
                pass
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                _arm()

        try:
            # The instance's own attribute: the loader stays of its class, which other tools look at.
            loader.exec_module = exec_module
        except AttributeError:
            pass


def _arm() -> None:
    try:
        try:
            from tb_dlprof_plugin.capture.launcher.attach import arm
        except ImportError:
            # Started from a source tree, or by another Python: what is compiled for that one may be missing here.
            sys.path.append(_ROOT)
            try:
                from tb_dlprof_plugin.capture.launcher.attach import arm
            finally:
                sys.path.remove(_ROOT)
        arm(_FOLDER)
    except Exception as error:
        _tell_failure(error)


def _tell_failure(error: Exception) -> None:
    """As a report, for which the package may be missing."""
    import json

    if isinstance(error, ImportError):
        python = sys.executable
        said = f"{python} has no tb_dlprof_plugin ({error}): {python} -m pip install tb_dlprof_plugin"
    else:
        said = f"the profiler could not be set up ({type(error).__name__}: {error})"
    try:
        with open(os.path.join(_FOLDER, f"{os.getpid()}.report.json"), "w") as file:
            json.dump({"pid": os.getpid(), "phase": "failed", "said": said, "ended": True}, file)
    except OSError:
        pass


def _run_hidden_sitecustomize() -> None:
    """What `import sitecustomize` would have found without this folder. Its errors are its own, as ever."""
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
        _arm()
    else:
        sys.meta_path.insert(0, _AfterTorch())
_run_hidden_sitecustomize()
