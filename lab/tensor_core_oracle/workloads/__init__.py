"""Everything that is run under the counters: each kernel family of a training, and whole models.

Importing this package imports torch; the modules below it register their workloads.
"""

from . import attention, compiled, convolution, holdout, matmul, models, pointwise, recurrent
from .registry import WORKLOADS, Workload

GROUPS = tuple(dict.fromkeys(workload.group for workload in WORKLOADS))

__all__ = [
    "GROUPS",
    "WORKLOADS",
    "Workload",
    "attention",
    "compiled",
    "convolution",
    "holdout",
    "matmul",
    "models",
    "pointwise",
    "recurrent",
]
