"""The hook in the training process: exports traces, reads facts and starts the analysis in a separate process.

Nothing here raises into user code: a failure becomes a `TbDlprofWarning`. Names are loaded on first use, so that
the analysis process, which is `tb_dlprof_plugin.capture.analysis_process`, starts without torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_dlprof_plugin.capture.handler import TraceHandler, trace_handler
    from tb_dlprof_plugin.capture.lightning import lightning_callback
    from tb_dlprof_plugin.capture.out_of_memory import explain_oom
    from tb_dlprof_plugin.capture.process_pool import wait_for_analysis
    from tb_dlprof_plugin.capture.rank_summaries import summarize_ranks
    from tb_dlprof_plugin.capture.session import ProfileSession, profile
    from tb_dlprof_plugin.capture.transformers import transformers_callback
    from tb_dlprof_plugin.capture.warn import TbDlprofWarning

_HOME = {
    "ProfileSession": "session",
    "TbDlprofWarning": "warn",
    "TraceHandler": "handler",
    "explain_oom": "out_of_memory",
    "lightning_callback": "lightning",
    "profile": "session",
    "summarize_ranks": "rank_summaries",
    "trace_handler": "handler",
    "transformers_callback": "transformers",
    "wait_for_analysis": "process_pool",
}

__all__ = [
    "ProfileSession",
    "TbDlprofWarning",
    "TraceHandler",
    "explain_oom",
    "lightning_callback",
    "profile",
    "summarize_ranks",
    "trace_handler",
    "transformers_callback",
    "wait_for_analysis",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_with_torch(f"{__name__}.{_HOME[name]}"), name)


def import_with_torch(module: str) -> Any:
    """A module of ours that imports torch.

    Raises:
        ModuleNotFoundError: torch is missing; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError("Recording needs PyTorch: pip install torch.", name="torch") from None
