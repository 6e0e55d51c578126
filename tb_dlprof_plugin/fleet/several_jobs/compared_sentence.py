"""The first line of a comparison of two jobs."""

from __future__ import annotations

from tb_dlprof_plugin.fleet.answers.sentences import CAUSES
from tb_dlprof_plugin.fleet.several_jobs.comparison import DelayChange, JobComparison
from tb_dlprof_plugin.fleet.several_jobs.parts import TITLES
from tb_dlprof_plugin.fleet.several_jobs.relative_work import SAME

_NAMED = 0.01
"""Of the base's step: a part that changes by less is not named."""
_MOST = 3


def compared_sentence(found: JobComparison) -> str:
    """The steps, the parts that change most, the work where it differs, then delays that are new or gone."""
    before, after, difference = found.base.step, found.candidate.step, found.difference_ms
    steps = f"{after.ms:.2f} ms, that of {found.base.name} {before.ms:.2f} ms"
    sizes = ""
    if found.base.world_size != found.candidate.world_size:
        sizes = f" on {found.candidate.world_size} GPUs in place of {found.base.world_size}"
    text = f"A step of {found.candidate.name}{sizes} takes {steps}: "
    percent, direction = abs(100 * difference / before.ms), "longer" if difference > 0 else "shorter"
    text += f"{abs(difference):.2f} ms ({percent:.1f} %) {direction}" if difference else "equal"
    changes = [
        (part.part, part.difference_ms)
        for part in sorted(found.parts, key=lambda one: -abs(one.difference_ms or 0.0))
        if part.difference_ms is not None and abs(part.difference_ms) >= _NAMED * before.ms
    ]
    if changes:
        text += " (" + ", ".join(f"{TITLES[part]} {value:+.2f} ms" for part, value in changes[:_MOST]) + ")"
    text += "." if found.beyond_intervals or not difference else ", though the intervals of the two steps overlap."
    if found.work is not None and found.throughput is not None and abs(found.work.ratio - 1) > SAME:
        text += (
            f" Its steps are {found.work.ratio:.2f} times the work, by {found.work.by}: it does {found.throughput:.2f} "
            "times as much per time."
        )
    for what, title in (("new", "New"), ("gone", "Gone")):
        listed = [_delay(one) for one in found.delays if one.what == what][:_MOST]
        if listed:
            text += f" {title}: {'; '.join(listed)}."
    return text


def _delay(one: DelayChange) -> str:
    rank = one.rank if one.rank is not None else one.base_rank
    cost = one.winnable_ms if one.winnable_ms is not None else one.base_winnable_ms or 0.0
    return f"rank {rank} delays the others, because {CAUSES[one.cause]} ({cost:.2f} ms)"
