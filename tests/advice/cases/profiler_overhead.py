"""Cases of `profiler_overhead`: recorded steps that take twice as long, or more."""

from __future__ import annotations

import pytest
from advice.case import Case
from advice.recordings import steps

from tb_dlprof_plugin.model.run_facts import RunFacts

_PLAIN = RunFacts(unprofiled_step_ns=50_000, with_stack=False)

CASES = (
    Case(
        "options that cost",
        steps(100, 100, 900, 100),
        "fired",
        readings={"Recorded over unprofiled step": pytest.approx(2.0)},
        says=["with_stack=False, profile_memory=False"],
        severity="medium",
        facts=RunFacts(unprofiled_step_ns=50_000, unprofiled_steps=12, with_stack=True, profile_memory=True),
    ),
    Case("more than twice", steps(101), "fired", facts=_PLAIN),
    Case("less than twice", steps(99), "silent", facts=_PLAIN),
    Case("no step without the profiler", steps(74), "not_applicable"),
)
