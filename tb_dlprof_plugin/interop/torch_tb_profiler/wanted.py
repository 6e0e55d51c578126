"""Whether a recording leaves a copy for the PyTorch Profiler tab: by default where the extra is installed."""

from __future__ import annotations

import importlib.util
import os

ENVIRONMENT = "TB_DLPROF_PYTORCH_VIEWS"
"""0 for no copy, anything else for one, whatever is installed."""


def tab_is_installed() -> bool:
    """Whether torch-tb-profiler, which the extra ``[pytorch-views]`` installs, can be imported; it is not imported."""
    try:
        return importlib.util.find_spec("torch_tb_profiler") is not None
    except (ImportError, ValueError):  # a broken finder, or a module without a spec that a script made
        return False


def wants_copy(keep_trace: bool) -> bool:
    """Whether to leave a copy where the caller did not say: a trace that is not kept has none without being asked."""
    said = os.environ.get(ENVIRONMENT, "")
    if said:
        return said != "0"
    return keep_trace and tab_is_installed()
