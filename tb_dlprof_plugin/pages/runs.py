"""The Runs page: any number of runs in one table, each against its base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from tb_dlprof_plugin.comparison.run_table import RunWithBase, against_base
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.model.speedup_change import FasterOrSlower
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.quantities import (
    DEVIATION,
    FLOPS,
    GPU_BUSY,
    JOULES,
    JOULES_PER_SAMPLE,
    LAUNCHES,
    PEAK_ALLOCATED,
    RECORDED_STEP,
    SAMPLES,
    STEP,
    TENSOR_CORE_SHARE,
    TENSOR_CORE_UTILIZATION,
    WATTS,
)
from tb_dlprof_plugin.pages.recorded_run import (
    FailedRun,
    RecordedRun,
    RunAdvice,
    ambiguous_models,
    changes_text,
    computed_in,
    model_label,
    precision_label,
)
from tb_dlprof_plugin.store.run_ref import RunRef

NOISE_NOTE = (
    "Steps are without the profiler; ~ marks those that are estimated. The 95 % interval comes from the uncertainty of "
    "both steps; it does not include variation between recordings. Deviations are those of the recorded iterations."
)


class RunRow(msgspec.Struct, frozen=True):
    """One run, per iteration; None is unknown, and so is an empty text.

    ``step_ns`` is the step without the profiler, ``step_low_ns`` to ``step_high_ns`` its interval and ``step_source``
    its source, as in `StepFigures.source`, ``step_words`` the same in words. ``recorded_ns`` is the mean recorded
    iteration, ``deviation_ns`` the standard deviation of these. ``precision_key`` is what most matrix work was computed
    in, the same in AMP and with half parameters; it gives the colour. ``base`` names its base, its own for a base; if
    it is "", ``no_base`` gives the reason. ``changes`` are the facts in which it differs from the base. ``low`` to
    ``high`` is the interval of ``speedup``. ``advice`` is the first finding.
    """

    ref: Annotated[RunRef, Column("Run", "The directory of the run, below the log directory.", width=230)]
    model: Annotated[str, Column("Model", "runModel", choice=True, width=170)]
    precision: Annotated[str, Column("Precision", "runPrecision", choice=True, width=120)]
    batch_size: Annotated[int | None, Column("Batch", "Samples in a batch.")]
    step_ns: Annotated[int, Column(), STEP]
    speedup: Annotated[float | None, Column("Speedup", "runSpeedup", missing="–", unit="ratio")]
    change: Annotated[FasterOrSlower, Column("95 %", "runNoise", missing="–", width=180)]
    base: Annotated[
        str, Column("Base", missing="none", width=190), Definition("runBase", "The base that the run is compared with.")
    ]
    changes: Annotated[
        list[str],
        Column("Differs in", missing="–", width=200, terminal=False),
        Definition("runChanges", "The recorded facts in which the run differs from its base."),
    ]
    samples_per_second: Annotated[float | None, Column(unit="per_second"), SAMPLES]
    recorded_ns: Annotated[int, Column(), RECORDED_STEP]
    step_words: Annotated[str, Column("Step is", "runSource", choice=True, width=170, terminal=False)]
    gpu_utilization: Annotated[float | None, Column(unit="percent"), GPU_BUSY]
    tensor_core_utilization: Annotated[float | None, Column(unit="percent"), TENSOR_CORE_UTILIZATION]
    tensor_core_share: Annotated[float | None, Column(unit="percent"), TENSOR_CORE_SHARE]
    peak_memory_bytes: Annotated[int | None, Column(), PEAK_ALLOCATED]
    joules_per_step: Annotated[float | None, Column(unit="joules"), JOULES]
    joules_per_sample: Annotated[float | None, Column(unit="joules", terminal=False), JOULES_PER_SAMPLE]
    flops: Annotated[float | None, Column(unit="flops", terminal=False), FLOPS]
    launches: Annotated[float | None, Column(terminal=False), LAUNCHES]
    advice: Annotated[
        RunAdvice | None,
        Column("First advice", "The finding with the largest expected saving.", choice=True, missing="–", width=230),
    ]
    workers: Annotated[int | None, Column("Workers", "Worker processes of the DataLoader.", terminal=False)]
    gpu: Annotated[str, Column("GPU", "The GPU, or the CPU where none was used.", choice=True, width=150)]
    precision_key: str
    gpus: int
    iterations: int
    step_low_ns: int
    step_high_ns: int
    step_source: str
    deviation_ns: Annotated[int | None, DEVIATION]
    no_base: str
    low: float | None
    high: float | None
    by_samples: bool
    peak_memory_of: str
    watts: Annotated[float | None, WATTS]


class ManyRunsPage(msgspec.Struct, frozen=True):
    """``done`` of ``total`` runs have been read; the page asks again until all are."""

    headline: str
    note: str
    base: str
    done: int
    total: int
    rows: list[RunRow]
    total_rows: int
    failed: list[FailedRun]


BaseOption = Annotated[str | None, Option("Base run for all; by default each model's FP32 run at its batch size.")]


def many_runs_page(
    recorded: Sequence[RecordedRun],
    base: BaseOption = None,
    failed: Sequence[FailedRun] = (),
    total: int | None = None,
) -> ManyRunsPage:
    """The runs, in the order given.

    Args:
        recorded: those that have been read.
        failed: those that cannot be read.
        total: number of all runs; by default those given.

    Raises:
        KeyError: there is no run of that name. Before it is read, the others are shown without a base.
    """
    runs = list(recorded)
    done = len(runs) + len(failed)
    if total is not None and done < total and base not in [one.run.name for one in runs]:
        base = None
    ambiguous = ambiguous_models(runs)
    against = against_base([one.run for one in runs], base)
    rows = [_row(one, compared, ambiguous) for one, compared in zip(runs, against, strict=True)]
    return ManyRunsPage(
        headline=_headline(rows, done if total is None else total),
        note=NOISE_NOTE,
        base=base or "",
        done=done,
        total=done if total is None else total,
        rows=rows,
        total_rows=len(rows),
        failed=list(failed),
    )


def _row(recorded: RecordedRun, compared: RunWithBase, ambiguous: frozenset[str]) -> RunRow:
    figures, setup, gained = recorded.run.figures, recorded.run.figures.setup, compared.speedup
    return struct_from(
        RunRow,
        figures,
        setup,
        ref=recorded.ref,
        model=model_label(setup.model, setup.parameters, ambiguous),
        precision=precision_label(setup.precision),
        precision_key=computed_in(setup.precision),
        gpu=setup.gpu or "",
        step_ns=round(figures.step.ns),
        step_low_ns=round(figures.step.low_ns),
        step_high_ns=round(figures.step.high_ns),
        step_source=figures.step.source,
        step_words=figures.step.words,
        recorded_ns=round(figures.step.recorded_ns),
        base=compared.base.name if compared.base else "",
        no_base=compared.why,
        changes=changes_text(compared.differs, setup, compared.base.figures.setup, ambiguous) if compared.base else [],
        speedup=gained.ratio if gained else None,
        low=gained.low if gained else None,
        high=gained.high if gained else None,
        by_samples=gained is not None and gained.of == "samples_per_second",
        change=gained.change if gained else "unknown",
        advice=recorded.advice[0] if recorded.advice else None,
    )


def _headline(rows: list[RunRow], total: int) -> str:
    if not rows:
        return "No run holds a profile that can be read." if total else "There is no run yet."
    if total == 1:
        return "One run: record another one next to it, for example with mixed precision, to compare them here."
    compared = [row for row in rows if row.speedup is not None]
    counts = [(name, sum(row.change == name for row in compared)) for name in ("faster", "slower", "within noise")]
    known = [f"{count} {name}" for name, count in counts if count]
    text = f"{len(rows)} runs" if len(rows) == total else f"{len(rows)} of {total} runs"
    if known:
        text += f"; {', '.join(known)} than their base" if "within noise" not in known[-1] else _with_noise(known)
    best = max((row for row in compared if row.change == "faster"), key=lambda row: row.speedup or 0.0, default=None)
    if best is not None:
        text += f". Fastest compared with its base: {best.ref.run}, {best.speedup:.2f} times as fast"
    return text + "."


def _with_noise(known: list[str]) -> str:
    *others, noise = known
    return f"; {', '.join(others)} than their base, {noise}" if others else f"; {noise} of their base"
