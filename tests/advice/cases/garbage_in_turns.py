"""Cases of `garbage_in_turns`: ranks that collect garbage in different steps, in simulated jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from advice.case import Case
from advice.recorded import recorded
from advice.simulated import posing

from tests.support.simulated_job import MS, Idle, ddp, simulate


def _job(collects: Callable[[int, int], bool]) -> Any:
    """Four ranks, which collect garbage for 6 ms where ``collects`` is true of the rank and the step."""
    return posing(
        lambda: simulate(4, ddp(4, idle=lambda rank, step: [Idle(6 * MS, "garbage")] if collects(rank, step) else []))
    )


CASES = (
    Case(
        "in turns",
        _job(lambda rank, step: step % 4 == rank),
        "fired",
        # Each step has one of 6 ms; a quarter of that is left if all collect in every fourth step.
        saving_ns=(0, pytest.approx(4.5 * MS, rel=0.01), pytest.approx(6 * MS, rel=0.01)),
    ),
    Case("at once", _job(lambda rank, step: step % 4 == 0), "silent"),
    Case("one rank", _job(lambda rank, step: rank == 1), "silent"),
    Case("none", _job(lambda rank, step: False), "silent"),
    Case("a recorded rank", recorded("ranks/recorded/ddp_garbage"), "silent"),
)
