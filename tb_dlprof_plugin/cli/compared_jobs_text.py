"""A comparison of two jobs, printed for reading."""

from __future__ import annotations

from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_table, time
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.fleet.several_jobs.comparison import JobComparison
from tb_dlprof_plugin.fleet.several_jobs.parts import PARTS


def print_compared_jobs(found: JobComparison, limit: int) -> None:
    """Sentence, parts, delays, ranks, collectives, figures and notes."""
    say(found.sentence, "")
    _parts(found)
    if found.delays:
        say()
        print_table(
            (("delay", "left"), ("rank", "right"), ("cause", "left"), ("base", "right"), ("candidate", "right"),
             ("why", "left")),
            [
                (one.what, str(one.rank if one.rank is not None else one.base_rank), one.cause,
                 ms(one.base_winnable_ms, "-"), ms(one.winnable_ms, "-"), one.why)
                for one in found.delays[:limit]
            ],
        )  # fmt: skip
    say()
    _ranks(found, limit)
    if found.collectives:
        say()
        _collectives(found, limit)
    say()
    for label, values in (
        ("parallel efficiency", (found.base.parallel, found.candidate.parallel)),
        ("wasted by uneven ranks", (found.base.wasted_gpu_share, found.candidate.wasted_gpu_share)),
        ("FLOPs utilization", (found.base.flops_utilization, found.candidate.flops_utilization)),
    ):
        say(f"{label:<26}{' -> '.join(share(value) for value in values)}")
    for note in found.notes:
        say(f"Note: {note}")


def _parts(found: JobComparison) -> None:
    print_table(
        (("mean of all ranks", "left"), ("base", "right"), ("candidate", "right"), ("change", "right")),
        [
            (one.part, ms(one.base_ms), ms(one.candidate_ms), signed_ms(one.difference_ms))
            for one in found.parts
            if one.base_ms or one.candidate_ms or one.base_ms is None
        ]
        + [("step", ms(found.base.step.ms), ms(found.candidate.step.ms), signed_ms(found.difference_ms))],
    )


def _ranks(found: JobComparison, limit: int) -> None:
    """The ranks whose own time changes most: waiting evens out the steps."""

    def own(index: int) -> float:
        row = found.rank_changes[index]
        return -abs(sum(row.candidate.of(part) - row.base.of(part) for part in ("compute", "host")))

    shown = sorted(range(len(found.rank_changes)), key=lambda index: (own(index), index))[:limit]
    print_table(
        (("rank", "right"), ("base's", "right"), *((part, "right") for part in PARTS), ("step", "right")),
        [
            (
                str(row.rank),
                ", ".join(str(rank) for rank, _ in row.base_ranks[:4]) + (", ..." if len(row.base_ranks) > 4 else ""),
                *(
                    UNKNOWN
                    if part == "waiting" and row.candidate.waiting_ms is None
                    else signed_ms(row.candidate.of(part) - row.base.of(part))
                    for part in PARTS
                ),
                signed_ms(row.difference_ms),
            )
            for row in (found.rank_changes[index] for index in shown)
        ],
    )
    if len(found.rank_changes) > len(shown):
        say(f"The {len(shown)} of {len(found.rank_changes)} ranks whose own time changes most.")


def _collectives(found: JobComparison, limit: int) -> None:
    print_table(
        (("collective", "left"), ("dimension", "left"), ("size", "left"), ("calls", "right"), ("transfer", "right"),
         ("waiting", "right"), ("exposed", "right"), ("change", "right")),
        [
            (
                one.operation + (f" {one.module}" if one.module else ""),
                one.dimension,
                one.size,
                f"{_count(one.base_calls_per_step)} -> {_count(one.calls_per_step)}",
                f"{ms(one.base_transfer_ms, '-')} -> {ms(one.transfer_ms, '-')}",
                f"{ms(one.base_waiting_ms, '-')} -> {ms(one.waiting_ms, '-')}",
                f"{ms(one.base_exposed_ms, '-')} -> {ms(one.exposed_ms, '-')}",
                signed_ms(one.difference_ms),
            )
            for one in found.collectives[:limit]
        ],
    )  # fmt: skip


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def ms(value: float | None, missing: str = UNKNOWN) -> str:
    """A time in milliseconds as a duration."""
    return missing if value is None else time(value * 1e6)


def signed_ms(value: float | None) -> str:
    """A difference of times in milliseconds, with its sign."""
    if value is None:
        return UNKNOWN
    return ("+" if value > 0 else "-" if value < 0 else "") + time(abs(value) * 1e6)


def share(value: float | None) -> str:
    """A share from 0 to 1 as a percentage."""
    return percent(None if value is None else 100 * value)
