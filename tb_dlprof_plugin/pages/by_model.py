"""Runs by model: a row for each, before and after mixed precision, with what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from tb_dlprof_plugin.comparison.run_table import BeforeAfter, NamedRun, before_and_after
from tb_dlprof_plugin.model.natural_order import natural_order
from tb_dlprof_plugin.model.speedup_change import FasterOrSlower
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.quantities import (
    DEVIATION,
    GPU_BUSY,
    PEAK_ALLOCATED,
    RECORDED_STEP,
    SAMPLES,
    STEP,
    TENSOR_CORE_UTILIZATION,
)
from tb_dlprof_plugin.pages.recorded_run import (
    FailedRun,
    RecordedRun,
    RunAdvice,
    ambiguous_models,
    changes_text,
    model_label,
    precision_label,
)
from tb_dlprof_plugin.store.run_ref import RunRef

_REMEDIES = {
    "amp_not_used": {"amp-fp16", "amp-bf16", "fp16", "bf16"},
    "tf32_off": {"tf32", "tf32-partly", "tf32-allowed"},
}
"""What a recorded run has tried, by rule: its precision."""


class ModelSide(msgspec.Struct, frozen=True):
    """A model's figures before or after, per iteration; None is unknown.

    ``step_ns`` is the step without the profiler, ``step_source`` its source, ``step_words`` the same in words.
    ``recorded_ns`` is the mean recorded iteration, ``deviation_ns`` the standard deviation of these.
    """

    ref: RunRef
    precision: str
    gpu_utilization: Annotated[float | None, GPU_BUSY]
    tensor_core_utilization: Annotated[float | None, TENSOR_CORE_UTILIZATION]
    step_ns: Annotated[int, STEP]
    step_source: str
    step_words: str
    recorded_ns: Annotated[int, RECORDED_STEP]
    deviation_ns: Annotated[int | None, DEVIATION]
    samples_per_second: Annotated[float | None, SAMPLES]
    peak_memory_bytes: Annotated[int | None, PEAK_ALLOCATED]
    problems: list[str]


class ModelRow(msgspec.Struct, frozen=True):
    """One model at one batch size on one GPU.

    ``after`` is its fastest run with mixed precision, None where none was recorded; ``changes`` are the facts besides
    the precision in which the two differ. ``best`` names the fastest run; ``next`` is its first finding whose remedy
    the recorded runs have not tried; ``recommendation`` says both in words.
    """

    model: str
    batch_size: int | None
    gpu: str
    before: ModelSide | None
    after: ModelSide | None
    changes: list[str]
    speedup: float | None
    low: float | None
    high: float | None
    change: FasterOrSlower
    best: str
    next: RunAdvice | None
    recommendation: str


class ByModelPage(msgspec.Struct, frozen=True):
    """``rows`` by model and batch size. A model of which no run is in FP32, TF32 or mixed precision has none."""

    headline: str
    done: int
    total: int
    rows: list[ModelRow]
    total_rows: int
    failed: list[FailedRun]


def by_model_page(
    recorded: Sequence[RecordedRun], failed: Sequence[FailedRun] = (), total: int | None = None
) -> ByModelPage:
    """The models of the runs, before and after mixed precision."""
    runs = list(recorded)
    by_name = {one.run.name: one for one in runs}
    ambiguous = ambiguous_models(runs)
    rows = [_row(pair, by_name, ambiguous) for pair in before_and_after([one.run for one in runs])]
    rows.sort(key=lambda row: (natural_order(row.model), row.batch_size or 0, row.gpu))
    done = len(runs) + len(failed)
    return ByModelPage(
        headline=_headline(rows),
        done=done,
        total=done if total is None else total,
        rows=rows,
        total_rows=len(rows),
        failed=list(failed),
    )


def _row(pair: BeforeAfter, runs: dict[str, RecordedRun], ambiguous: frozenset[str]) -> ModelRow:
    setup, gained = pair.best.figures.setup, pair.speedup
    first = _first_untried(pair, runs[pair.best.name].advice)
    return ModelRow(
        model=model_label(setup.model, setup.parameters, ambiguous),
        batch_size=setup.batch_size,
        gpu=setup.gpu or "",
        before=_side(pair.before, runs),
        after=_side(pair.after, runs),
        changes=(
            changes_text(pair.differs, pair.after.figures.setup, pair.before.figures.setup, ambiguous)
            if pair.before and pair.after
            else []
        ),
        speedup=gained.ratio if gained else None,
        low=gained.low if gained else None,
        high=gained.high if gained else None,
        change=gained.change if gained else "unknown",
        best=pair.best.name,
        next=first,
        recommendation=_recommendation(pair, first),
    )


def _side(run: NamedRun | None, runs: dict[str, RecordedRun]) -> ModelSide | None:
    if run is None:
        return None
    figures = run.figures
    return struct_from(
        ModelSide,
        figures,
        ref=runs[run.name].ref,
        precision=precision_label(figures.setup.precision),
        step_ns=round(figures.step.ns),
        step_source=figures.step.source,
        step_words=figures.step.words,
        recorded_ns=round(figures.step.recorded_ns),
        problems=[advice.problem for advice in runs[run.name].advice],
    )


def _first_untried(pair: BeforeAfter, advice: list[RunAdvice]) -> RunAdvice | None:
    """The first finding whose remedy the recorded runs have not tried yet."""
    tried = {rule for rule, precisions in _REMEDIES.items() if precisions & pair.tried}
    return next((finding for finding in advice if finding.rule not in tried), None)


def _recommendation(pair: BeforeAfter, first: RunAdvice | None) -> str:
    parts = []
    if pair.before is not None and pair.after is not None:
        after, best = _name(pair.after), _name(pair.best)
        change = pair.speedup.change if pair.speedup else "unknown"
        if change == "slower":
            parts.append(f"{after} makes this model slower.")
        elif change == "within noise":
            parts.append(f"These recordings do not show whether {after} makes this model faster.")
        if pair.best_speedup is not None:
            parts.append(f"Keep {best}, the fastest recorded: {pair.best_speedup.ratio:.2f} times as fast.")
        else:
            parts.append(f"Stay with {best}.")
    if first is not None:
        parts.append(first.change)
    elif pair.after is not None:
        parts.append("No rule finds more to change.")
    else:
        parts.append("No rule finds anything to change.")
    return " ".join(parts)


def _name(run: NamedRun) -> str:
    return precision_label(run.figures.setup.precision) or run.name


def _headline(rows: list[ModelRow]) -> str:
    if not rows:
        return "No run with a recorded model computes in FP32, TF32 or mixed precision."
    pairs = [row for row in rows if row.speedup is not None]
    models = "1 model" if len(rows) == 1 else f"{len(rows)} models"
    if not pairs:
        return f"{models}, none of them recorded both before and after mixed precision."
    faster = [row for row in pairs if row.change == "faster"]
    text = f"{models}; mixed precision makes {len(faster)} of {len(pairs)} faster"
    if faster:
        best = max(faster, key=lambda row: row.speedup or 0.0)
        text += f", {best.model} most: {best.speedup:.2f} times as fast"
    return text + "."
