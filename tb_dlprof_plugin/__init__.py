"""NVIDIA DLProf's successor for today's PyTorch, in TensorBoard.

The public API. Names are loaded on first use: importing the package imports neither torch nor TensorBoard, so that a
training script, TensorBoard and the command line each pay only for what they use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_dlprof_plugin.model.lazy_imports import imported_on_use
from tb_dlprof_plugin.version import __version__

if TYPE_CHECKING:
    from tb_dlprof_plugin.analysis import analyze_trace as analyze
    from tb_dlprof_plugin.api.distributed import compare_jobs, distributed, job_table, scaling
    from tb_dlprof_plugin.api.import_job import import_job
    from tb_dlprof_plugin.api.many_runs import by_model, many_runs, sweep
    from tb_dlprof_plugin.api.profiles import page, read_profiles, report
    from tb_dlprof_plugin.capture import (
        explain_oom,
        lightning_callback,
        profile,
        summarize_ranks,
        trace_handler,
        transformers_callback,
    )
    from tb_dlprof_plugin.comparison import compare
    from tb_dlprof_plugin.names import classify_kernel
    from tb_dlprof_plugin.notebook import show
    from tb_dlprof_plugin.planning import forecast as predict
    from tb_dlprof_plugin.trial import try_step

_HOME = {
    "analyze": "tb_dlprof_plugin.analysis:analyze_trace",
    "by_model": "tb_dlprof_plugin.api.many_runs",
    "classify_kernel": "tb_dlprof_plugin.names",
    "compare": "tb_dlprof_plugin.comparison",
    "compare_jobs": "tb_dlprof_plugin.api.distributed",
    "distributed": "tb_dlprof_plugin.api.distributed",
    "job_table": "tb_dlprof_plugin.api.distributed",
    "explain_oom": "tb_dlprof_plugin.capture",
    "import_job": "tb_dlprof_plugin.api.import_job",
    "lightning_callback": "tb_dlprof_plugin.capture",
    "many_runs": "tb_dlprof_plugin.api.many_runs",
    "page": "tb_dlprof_plugin.api.profiles",
    "predict": "tb_dlprof_plugin.planning:forecast",
    "profile": "tb_dlprof_plugin.capture",
    "read_profiles": "tb_dlprof_plugin.api.profiles",
    "report": "tb_dlprof_plugin.api.profiles",
    "scaling": "tb_dlprof_plugin.api.distributed",
    "show": "tb_dlprof_plugin.notebook",
    "summarize_ranks": "tb_dlprof_plugin.capture",
    "sweep": "tb_dlprof_plugin.api.many_runs",
    "trace_handler": "tb_dlprof_plugin.capture",
    "transformers_callback": "tb_dlprof_plugin.capture",
    "try_step": "tb_dlprof_plugin.trial",
}

__all__ = [
    "__version__",
    "analyze",
    "by_model",
    "classify_kernel",
    "compare",
    "compare_jobs",
    "distributed",
    "explain_oom",
    "import_job",
    "job_table",
    "lightning_callback",
    "many_runs",
    "page",
    "predict",
    "profile",
    "read_profiles",
    "report",
    "scaling",
    "show",
    "summarize_ranks",
    "sweep",
    "trace_handler",
    "transformers_callback",
    "try_step",
]

__getattr__ = imported_on_use(__name__, _HOME)
