"""``--fail-on straggler``: the exit status of a command about a job in which a rank delays the others."""

from __future__ import annotations

from enum import Enum

from tb_dlprof_plugin.cli.terminal import tell
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.model.formatting import uncapitalized

FAILED, CANNOT_BE_SAID = 1, 3
"""Exit statuses of `--fail-on`: it is so; the recordings do not say."""


class FailOn(str, Enum):
    """What a build fails on."""

    straggler = "straggler"


def exit_status(job: Job) -> int:
    """0 where no rank delays the others; else the verdict is repeated on standard error."""
    found = job.verdict
    if found is None or found.kind in ("none", "hidden"):
        return 0
    tell(f"tb-dlprof: {uncapitalized(found.sentence)}")
    return FAILED if found.kind == "delays" else CANNOT_BE_SAID
