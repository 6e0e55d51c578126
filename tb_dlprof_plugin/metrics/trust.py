"""Whether a recording can be trusted: one verdict, and the reasons for it.

A reason concerns the recording, not the program: what makes the figures of the pages differ from those of the same
program without the profiler, on an otherwise idle machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.metrics.kernels import UNKNOWN_KERNELS_PERCENT, coverage, time_split
from tb_dlprof_plugin.metrics.outlier_steps import (
    FEWEST_ITERATIONS,
    STRAY_MEAN_PERCENT,
    IterationSpread,
    iteration_spread,
    steady,
)
from tb_dlprof_plugin.model.remedies import remedies_for, sentence
from tb_dlprof_plugin.names.gpu_power import HEAT
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.basis import basis
from tb_dlprof_plugin.simulation.clock_drift import clock_drift
from tb_dlprof_plugin.simulation.estimate import StepEstimate, step_estimate
from tb_dlprof_plugin.simulation.step_detection import unmarked

TrustLevel = Literal["good", "fair", "poor"]
"""Good: the figures are reliable. Fair: some of them are not, as the reasons say. Poor: the step, or most of what
depends on it, is not that of the program."""

RECORDER_PERCENT = 10.0
"""Of the step, added by the profiler, from which CPU times are noticeably too long. Ours: the most that a recording
should cost; steps of one process a minute apart differ by 1 to 2 %."""
RECORDER_POOR_RATIO = 4.0
"""Recorded over true step, from which more than the profiler slowed the recording. Ours: of recorded runs that the CPU
paces it is 1.6 at the median, 1.9 in nineteen of twenty, and 3.1 where a step is nothing but small launches."""
RECORDER_POOR_RATIO_CPU = 2.0
"""The same without a GPU, where every figure is a CPU time: above it, most of what the pages show is the overhead."""
SHORTER_PERCENT = 5.0
"""By which the recorded step may be shorter than the one without the profiler: the profiler makes none shorter, and
steps of one process differ by 1 to 2 %."""
WIDE_STEP_PERCENT = 5.0
WIDE_STEP_POOR_PERCENT = 25.0
"""Half the step's interval, in percent of it. Ours: from the first on, most changes to a training are within the
interval; from the second on, a speedup of 1.5 cannot."""
UNLINKED_PERCENT = 10.0
UNLINKED_POOR_PERCENT = 50.0
"""Of the kernels' time in the recorded steps, that of no known op. Ours: DLProf's coverage has no published limit."""
ORPHAN_PERCENT = 60.0
"""Of all GPU time, from kernels launched before the recording began. Ours: at most 53 % in five iterations whose CPU is
far ahead; with more, the recording holds more of other steps than of its own."""
DRIFT_PERCENT = 3.0
DRIFT_POOR_PERCENT = 15.0
"""Change of the same kernels' time. Ours: of 206 recordings on H200s it is below 0.3 % in nine of ten, and below 1.2 %
in 97 of 100."""
UNPROFILED_DRIFT_PERCENT = 5.0
UNPROFILED_DRIFT_POOR_PERCENT = 20.0
"""Change of the steps without the profiler. Ours: where the CPU paces them they drift by 10 to 30 % within a minute on
a shared machine, and by 1 to 2 % on one of their own."""
OTHER_GPU_MEMORY_BYTES = 4 << 30
"""Neither free nor with the training's allocator. Ours: CUDA's context and the driver's own share take 0.6 GiB on an
H200; work space of libraries and NCCL's buffers come on top, so that only several times as much is significant."""
LOAD_PER_CPU = 1.0
"""Runnable processes for each CPU of the machine, above which some of them wait: getloadavg(3)."""

_UNUSUAL_LIMITS = HEAT | {"hardware slowdown", "power brake"}
_REPAIRED = frozenset(
    (
        "bad_utf8", "control_characters", "not_a_number", "unescaped_text", "odd_fields", "negative_duration",
        "stray_text", "text_behind", "header_mended", "header_damaged",
    )
)  # fmt: skip
_CUT = frozenset(("gzip_cut", "gzip_damaged", "cut_short", "oversized", "events_lost", "absurd_time"))
"""`readers.kineto.json_recovery.log` names both; with these, events are missing."""


@dataclass(frozen=True, slots=True)
class TrustReason:
    """One reason; ``severity`` is the best verdict that it allows.

    Attributes:
        code: stable name.
        severity: "good" if it supports the recording.
        sentence: the fact, its effect on the figures, what to do.
        value: the number behind it, in the unit of its threshold; None without one.
    """

    code: str
    severity: TrustLevel
    sentence: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Trust:
    """The verdict is the worst severity of the reasons, which come worst first."""

    verdict: TrustLevel
    reasons: tuple[TrustReason, ...]


_ORDER: dict[TrustLevel, int] = {"poor": 0, "fair": 1, "good": 2}


@per_selection
def trust(view: ProfileView, selection: Selection) -> Trust:
    """Whether the recording's selected iterations can be trusted."""
    estimate, spread = step_estimate(view, selection), iteration_spread(view, selection)
    every_reason: Iterable[TrustReason] = itertools.chain(
        _iterations(view, selection, spread),
        _overhead(view, estimate, spread),
        _step(view, estimate),
        _replay(view, selection),
        _damage(view),
        _kernels(view, selection),
        _drift(view, selection),
        _machine(view),
    )
    reasons = tuple(sorted(every_reason, key=lambda reason: _ORDER[reason.severity]))
    return Trust(reasons[0].severity if reasons else "good", reasons)


def _iterations(view: ProfileView, selection: Selection, spread: IterationSpread) -> Iterator[TrustReason]:
    if unmarked(view):
        yield TrustReason(
            "no_iterations",
            "poor",
            "No iterations were found, so that the whole recording counts as one step. Choose a key node"
            + (f", or {steps}." if (steps := remedies_for(view.profile.source).steps) else "."),
        )
    elif selection.count < FEWEST_ITERATIONS:
        yield TrustReason(
            "few_iterations",
            "fair",
            f"Only {_count(selection.count, 'iteration')} {'is' if selection.count == 1 else 'are'} looked at: a slow "
            "one is not recognisable. Select or record more.",
            selection.count,
        )
    strays = int(spread.stray.sum())
    if not strays:
        return
    times = spread.duration_ns[spread.stray]
    shift, left_out = spread.shift_percent, steady(view, selection) != selection
    first, last = (selection.first + row for row in spread.kept)
    remedy = f"Select iterations {first} to {last}." if last > first else "Record more iterations."
    longest = "" if len(times) == 1 else f" to {_time(times.max())}"
    yield TrustReason(
        "stray_iterations",
        "poor" if abs(shift) >= STRAY_MEAN_PERCENT and not left_out else "fair",
        f"{strays} of {selection.count} iterations took {_time(times.min())}{longest}, unlike the others, which took "
        f"{_time(spread.middle_ns)}: {'it is' if strays == 1 else 'they are'} "
        + (f"not part of what is said of a step. {remedy}" if left_out else f"in every mean. {remedy}"),
        shift,
    )


def _overhead(view: ProfileView, estimate: StepEstimate, spread: IterationSpread) -> Iterator[TrustReason]:
    """The recorder's overhead. Outlier iterations are a separate reason."""
    middle_ns = spread.middle_ns
    ratio = middle_ns / estimate.ns if estimate.ns else 1.0
    timed = estimate.source in ("measured", "light")
    recorded = (
        f"The median recorded step takes {_time(middle_ns)}, {ratio:.1f} times as long as one without the profiler"
    )
    gpu = view.profile.has_gpu
    if ratio >= (RECORDER_POOR_RATIO if gpu else RECORDER_POOR_RATIO_CPU):
        hold = "Times of kernels hold, those of the CPU do not." if gpu else "Times of ops do not hold."
        yield TrustReason(
            "recorder_overhead",
            "poor",
            f"{recorded}: more than the profiler adds. The machine did something else at the time, or the recorded "
            f"steps do other work. {hold} Record again.",
            100 * (ratio - 1),
        )
    elif 100 * (ratio - 1) >= RECORDER_PERCENT:
        step_words = "The step itself was timed without it" if timed else "The step itself is estimated without it"
        yield TrustReason(
            "recorder_overhead",
            "fair",
            f"{recorded}. {step_words}; CPU times of single ops and calls are as recorded, so take them as shares.",
            100 * (ratio - 1),
        )
    elif timed and 100 * (1 - ratio) >= SHORTER_PERCENT:
        yield TrustReason(
            "recorded_shorter",
            "fair",
            f"The median recorded step takes {_time(middle_ns)}, less than the {_time(estimate.ns)} of one without the "
            "profiler: the steps that were timed waited for something, or do other work. Record again, later in the "
            "training.",
            100 * (ratio - 1),
        )


def _step(view: ProfileView, estimate: StepEstimate) -> Iterator[TrustReason]:
    half = 50 * (estimate.high_ns - estimate.low_ns) / estimate.ns if estimate.ns else 0.0
    high = _time(estimate.high_ns)
    # No step takes no time: such an end only says that nothing is known downwards.
    between = f"between {_time(estimate.low_ns)} and {high}" if estimate.low_ns > 0 else f"anywhere below {high}"
    timing = remedies_for(view.profile.source).timing
    if estimate.source == "simulated":
        yield TrustReason(
            "step_estimated",
            "poor" if half >= WIDE_STEP_POOR_PERCENT else "fair",
            f"No step was timed without the profiler: the step of {_time(estimate.ns)} is estimated from the recorded "
            + sentence(f"launches and lies {between}", timing),
            half,
        )
    elif estimate.source == "recorded":
        if view.profile.has_gpu:
            yield TrustReason(
                "step_recorded",
                "good",
                "No step was timed without the profiler. The GPU is busy for nearly all of the recorded "
                f"{_time(estimate.ns)}: the profiler cannot have made it much longer.",
            )
        else:
            yield TrustReason(
                "step_recorded",
                "fair",
                f"No step was timed without the profiler: the step of {_time(estimate.ns)} is as recorded, and longer "
                + sentence("than it is without", timing),
            )
    elif not estimate.whole_recording:
        by = "without the profiler" if estimate.source == "measured" else "with GPU activities alone"
        steps = f" over {estimate.steps} steps" if estimate.steps else ""
        severity: TrustLevel = (
            "poor" if half >= WIDE_STEP_POOR_PERCENT else "fair" if half >= WIDE_STEP_PERCENT else "good"
        )
        wide = "" if severity == "good" else ": it varies. Record more steps, on a machine that does nothing else"
        yield TrustReason(
            "step_timed", severity, f"The step was timed {by}{steps}: {_time(estimate.ns)}, {between}{wide}.", half
        )


def _replay(view: ProfileView, selection: Selection) -> Iterator[TrustReason]:
    """Its threshold is `simulation.basis.MOST_PERCENT`. Measured figures hold, so that it is never poor."""
    replayed = basis(view, selection)
    if replayed.off_percent is None or replayed.trusted:
        return
    steps = "recorded steps" if replayed.light is None else "light window's steps"
    change = f"{abs(replayed.off_percent):.0f} % {'longer' if replayed.off_percent > 0 else 'shorter'}"
    yield TrustReason(
        "replay_off",
        "fair",
        f"A replay of the {steps} is {change} than they were: the recording does not show everything that sets "
        "their pace. Savings that need the replay are not estimated; measured figures hold.",
        replayed.off_percent,
    )


def _damage(view: ProfileView) -> Iterator[TrustReason]:
    codes = {note.code for note in view.profile.notes}
    if codes & _CUT:
        yield TrustReason(
            "trace_incomplete",
            "fair",
            "Part of the trace file could not be read, and what it held is in no figure. The notes say what; record "
            "again if you can.",
        )
    elif codes & _REPAIRED:
        count = view.profile.source.repaired_events
        yield TrustReason(
            "trace_mended",
            "good",
            f"{_count(count, 'event') if count else 'Parts'} of the trace file had to be repaired; the notes say how.",
            count,
        )


def _kernels(view: ProfileView, selection: Selection) -> Iterator[TrustReason]:
    covered = coverage(view)
    own = covered.linked_ns + covered.unattributed_ns
    if not covered.total_ns:
        return
    unlinked = 100 * covered.unattributed_ns / own if own else 0.0
    if unlinked >= UNLINKED_PERCENT:
        yield TrustReason(
            "unlinked_kernels",
            "poor" if unlinked >= UNLINKED_POOR_PERCENT else "fair",
            sentence(
                f"{unlinked:.0f} % of the GPU's time belongs to no known op: tables of ops and modules lack it, "
                "those of kernels do not",
                remedies_for(view.profile.source).ops,
            ),
            unlinked,
        )
    orphans = 100 * covered.orphan_ns / covered.total_ns
    if orphans >= ORPHAN_PERCENT:
        yield TrustReason(
            "orphan_kernels",
            "fair",
            f"{orphans:.0f} % of the recorded GPU time was launched before the recording began and is in no step's "
            "figures. Record more iterations.",
            orphans,
        )
    unknown = time_split(view, selection).unknown_percent
    if unknown is not None and unknown >= UNKNOWN_KERNELS_PERCENT and not view.profile.of_amd:
        yield TrustReason(
            "unknown_kernels",
            "fair",
            f"Whether they use Tensor Cores is not known of kernels with {unknown:.0f} % of the kernel time: what is "
            "said of Tensor Cores is a range or unknown, all other figures hold.",
            unknown,
        )


def _drift(view: ProfileView, selection: Selection) -> Iterator[TrustReason]:
    drift = clock_drift(view, selection)
    for code, change, fair, poor, what in (
        (
            "kernel_drift",
            drift.kernels,
            DRIFT_PERCENT,
            DRIFT_POOR_PERCENT,
            "The same kernels took {change} in the last iterations than in the first ones",
        ),
        (
            "light_drift",
            drift.light,
            DRIFT_PERCENT,
            DRIFT_POOR_PERCENT,
            "The same kernels took {change} in the full recording than in the light window",
        ),
        (
            "step_drift",
            drift.unprofiled,
            UNPROFILED_DRIFT_PERCENT,
            UNPROFILED_DRIFT_POOR_PERCENT,
            "Steps without the profiler took {change} after the recording than before it",
        ),
    ):
        if change is None or abs(change) < fair:
            continue
        less = "longer" if change > 0 else "less"
        text = what.format(change=f"{abs(change):.0f} % {less}")
        yield TrustReason(
            code,
            "poor" if abs(change) >= poor else "fair",
            f"{text}: the speed of the machine changed meanwhile. Warm it up, leave it to the training alone, and "
            "record again before you compare runs.",
            change,
        )


def _machine(view: ProfileView) -> Iterator[TrustReason]:
    facts = view.profile.facts
    others, held = facts.other_gpu_processes, facts.other_gpu_memory_bytes
    memory = f", and {held / 2**30:.0f} GiB of its memory are not this training's" if held and held >= 2**30 else ""
    if others:
        yield TrustReason(
            "shared_gpu",
            "fair",
            f"{_count(others, 'other process', 'other processes')} had the GPU open{memory}: its work is not in the "
            "recording, its effect is. Record on a GPU without other users.",
            others,
        )
    elif others is None and held is not None and held >= OTHER_GPU_MEMORY_BYTES:
        yield TrustReason(
            "shared_gpu",
            "fair",
            f"{held / 2**30:.0f} GiB of the GPU's memory are neither free nor this training's: another process "
            "probably uses the GPU. Record on a GPU without other users.",
            held,
        )
    if facts.load_average is not None and facts.machine_cpus:
        load = facts.load_average / facts.machine_cpus
        if load > LOAD_PER_CPU:
            yield TrustReason(
                "busy_cpu",
                "fair",
                f"The machine's load was {facts.load_average:.1f} for {facts.machine_cpus} CPUs: the training had to "
                "wait for one. End what else runs, or give the DataLoader fewer workers.",
                load,
            )
    # At the end of the recording, and over the steps around it.
    seen = {*facts.clock_limits, *(limit.name for row in facts.energy for limit in row.clock_limits)}
    limits = sorted(seen & _UNUSUAL_LIMITS)
    if limits:
        read = (facts.gpu_temperature_c, *(row.temperature_c for row in facts.energy))
        warmest = max((degrees for degrees in read if degrees is not None), default=None)
        at = f" at {warmest} °C" if warmest is not None else ""
        yield TrustReason(
            "clock_limited",
            "fair",
            f"The GPU's clock was held down ({', '.join(limits)}){at}: kernels take longer than they would. See to its "
            "cooling, and record again.",
        )


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def _time(ns: float) -> str:
    """Three significant digits, in seconds from one on."""
    for size, unit in ((1e9, "s"), (1e6, "ms")):
        if ns >= 0.9995 * size:
            number = ns / size
            digits = f"{number:#.3g}".removesuffix(".") if number < 999.5 else f"{number:,.0f}"
            return f"{digits} {unit}"
    return f"{ns / 1e3:.3g} µs"
