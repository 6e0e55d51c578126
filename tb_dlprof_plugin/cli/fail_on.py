"""``--fail-on straggler``: the exit status of a command about a job in which a rank delays the others."""

from __future__ import annotations

from enum import Enum

from tb_dlprof_plugin.cli.printing import time
from tb_dlprof_plugin.cli.terminal import tell
from tb_dlprof_plugin.fleet.job import Job

FAILED = 1
"""Exit status of `--fail-on`, where it is so."""


class FailOn(str, Enum):
    """What a build fails on."""

    straggler = "straggler"


def straggler_found(job: Job) -> bool:
    """Whether a rank delays the others by more than chance; the first of them is then named on standard error."""
    found = next((delay for delay in job.delays if delay.significant), None)
    if found is None:
        return False
    tell(
        f"tb-dlprof: rank {found.rank} delays the others ({found.cause}); repairing it wins "
        f"{time(found.winnable_ms * 1e6)} of a step."
    )
    return True
