"""Returns the line about a new recording that ends ``with profile(...)``: what was recorded, the first finding, how to
see more."""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.finding import FindingItem
from tb_dlprof_plugin.metrics.trust import trust
from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate


def recorded_line(view: ProfileView, directory: str, sessions: Sequence[str] = ()) -> str:
    """One line about all iterations of a recording.

    Args:
        view: of the profile.
        directory: of the run, as it is typed in a shell.
        sessions: all that are in the directory.
    """
    selection = view.selection()
    step = step_estimate(view, selection)
    source, ranks = view.profile.source, view.profile.facts.world_size or 1
    of_rank = f" of rank {source.rank} of {ranks}" if ranks > 1 else ""
    earlier = sum(session < source.session for session in sessions)
    with_others = f", where {earlier} earlier session{'s are' if earlier > 1 else ' is'}, too" if earlier else ""
    verdict = trust(view, selection).verdict
    recorded = "" if verdict == "good" else f" (the recording is {verdict})"
    return (
        f"tb_dlprof: {recorded_iterations(view)}{of_rank} in {directory}{with_others}: "
        f"{duration(step.ns)} a step, {step.words}{recorded}. {_first(advise(view, selection).findings)} "
        f"See more: tb-dlprof summary {directory}, or tensorboard --logdir {directory}"
    )


def recorded_iterations(view: ProfileView) -> str:
    """All of a recording, such as "10 iterations (12 to 21)"; the numbers are the training's."""
    numbers = view.profile.iterations.number.tolist()
    return (
        f"iteration {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} iterations ({numbers[0]} to {numbers[-1]})"
    )


def _first(findings: list[FindingItem]) -> str:
    if not findings:
        return "No rule found anything to change."
    best = findings[0]
    if best.saving is None:
        return f"First finding: {best.title}."
    return (
        f"First finding: {best.title}; saves about {duration(best.saving.expected_ns)} "
        f"({best.saving.percent:.0f} %) a step."
    )
