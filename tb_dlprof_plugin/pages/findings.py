"""The findings as pages show them: no saving is above the step that it refers to."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

import msgspec

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.engine import Advice
from tb_dlprof_plugin.advice.finding import CombinedSaving, SavingItem
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import step_estimate

_Saving = TypeVar("_Saving", SavingItem | None, CombinedSaving | None)


def shown_advice(view: ProfileView, selection: Selection, set_aside: Collection[str] = ()) -> Advice:
    """The advice on the selected iterations with savings of at most the step without the profiler.

    Args:
        view: of the profile.
        selection: of its iterations.
        set_aside: rules whose findings the combined saving leaves out.
    """
    advice = advise(view, selection, set_aside=set_aside)
    step_ns = step_estimate(view, selection).ns
    return msgspec.structs.replace(
        advice,
        findings=[
            msgspec.structs.replace(finding, saving=_within_step(finding.saving, step_ns))
            for finding in advice.findings
        ],
        combined=_within_step(advice.combined, step_ns),
    )


def _within_step(saving: _Saving, step_ns: float) -> _Saving:
    """The saving, at most the step: some rules look at the recorded step, which may be longer."""
    if saving is None or saving.high_ns <= step_ns:
        return saving
    low, expected, high = (min(ns, int(step_ns)) for ns in (saving.low_ns, saving.expected_ns, saving.high_ns))
    share = saving.percent if expected == saving.expected_ns else 100.0
    return msgspec.structs.replace(saving, low_ns=low, expected_ns=expected, high_ns=high, percent=share)
