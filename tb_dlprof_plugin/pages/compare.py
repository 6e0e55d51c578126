"""The Compare page: two runs side by side."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.comparison import Comparison, compare
from tb_dlprof_plugin.comparison.compiled import ReplacedModule
from tb_dlprof_plugin.comparison.noise import is_noise
from tb_dlprof_plugin.comparison.shares import Shares
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.kernels import coverage, kernel_totals
from tb_dlprof_plugin.metrics.trust import ORPHAN_PERCENT
from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.model.profile import Verdict as Verdicts
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.model.speedup_change import FasterOrSlower, direction_text
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.common import (
    ITSELF,
    Slice,
    StepFigures,
    step_figures,
)
from tb_dlprof_plugin.pages.compare_metrics import CompareInput, CompareMetric, CompareSide, metrics_of
from tb_dlprof_plugin.pages.compare_ops import (
    REASONS,
    CompareModule,
    CompareOp,
    CompareOpDetail,
    module_rows,
    op_detail,
    op_rows,
    shown_modules,
)
from tb_dlprof_plugin.pages.compare_text import (
    across_frameworks,
    different_models,
    explanation,
    headline,
)
from tb_dlprof_plugin.pages.realised_savings import PredictionCheck, prediction_check
from tb_dlprof_plugin.profile_view import ProfileView, Selection

_ORPHANS_NOTE_PERCENT = 5.0
"""Of the GPU time, from which orphans are a note; from `ORPHAN_PERCENT` on the recording is not one of its steps."""
_UNEVEN_PERCENT = 20.0
_MS = 1e6
_MOST_MODULES = 300


class CompareBucket(msgspec.Struct, frozen=True):
    """One bar of the waterfall, per iteration: time of the step without the profiler, exclusive of the other buckets.

    The buckets of a side sum to its step, to the nanosecond; the recorder's overhead is in none. ``low_ms`` to
    ``high_ms`` is the 95 % interval of the difference, None where a run has a single iteration; ``noise`` whether 0
    lies in it. ``base_outside_ns`` and ``candidate_outside_ns`` are outside all ops of the page: Python between ops,
    views, work that no op launched.
    """

    key: str
    base_outside_ns: int
    candidate_outside_ns: int
    base_ms: float
    candidate_ms: float
    difference_ms: float
    label: Annotated[str, Column("Where the step goes", "waterfall", width=180)]
    base_ns: Annotated[int, Column("Base", "perIteration")]
    candidate_ns: Annotated[int, Column("Candidate", "perIteration")]
    difference_ns: Annotated[int, Column("Change", "difference", signed=True)]
    low_ms: Annotated[float | None, Column("Change, 95 % from", "noise", terminal=False)]
    high_ms: Annotated[float | None, Column("Change, 95 % to", "noise", terminal=False)]
    noise: Annotated[bool | None, Column("Noise", "noise")]


class CompareShares(msgspec.Struct, frozen=True):
    """Where one run's time is, in percent of its GPU time (of its ops' CPU time where a run has no GPU).

    ``matched`` has a counterpart in the other run, ``unmatched`` has none and ``unlinked`` was launched by no recorded
    op. ``matched_of_model`` is matched over all but casts and GradScaler's work, which only one precision has.
    """

    total_ns: int
    matched: float | None
    casts: float | None
    scaler: float | None
    compiled: float | None
    unmatched: float | None
    unlinked: float | None
    matched_of_model: float | None


class CompareBoth(msgspec.Struct, frozen=True):
    """A percentage of both runs, None where unknown."""

    base: float | None
    candidate: float | None


class CompareSharesOfBoth(msgspec.Struct, frozen=True):
    """The shares of both runs."""

    base: CompareShares
    candidate: CompareShares


class CompareBatches(msgspec.Struct, frozen=True):
    """Batch sizes that differ; where ``recorded`` is false only their ratio is known, from the input dims."""

    base: int
    candidate: int
    recorded: bool
    speedup_per_sample: float | None


class CompareKernelFamily(msgspec.Struct, frozen=True):
    """Kernel time per iteration of one family of kernels."""

    family: Annotated[str, Column("Family", "kernelFamily", width=180)]
    a_ns: Annotated[int, Column("Base", "perIteration")]
    b_ns: Annotated[int, Column("Candidate", "perIteration")]
    a_calls: Annotated[float, Column("Base calls", "Kernels per iteration in the base.")]
    b_calls: Annotated[float, Column("Cand. calls", "Kernels per iteration in the candidate.")]
    a_tensor_core_ns: Annotated[
        int, Column("Base on TC", "Kernel time on Tensor Cores per iteration, in the base.", terminal=False)
    ]
    b_tensor_core_ns: Annotated[
        int, Column("Cand. on TC", "Kernel time on Tensor Cores per iteration, in the candidate.", terminal=False)
    ]


class CompareCompiledModule(msgspec.Struct, frozen=True):
    """GPU time per iteration of a module's own ops in an eager and a compiled run."""

    module: Annotated[
        str, Column("Module", "The module, by its path.", missing="shared by several, not split", width=220)
    ]
    a_ns: Annotated[int, Column("Base", "GPU time of its own ops; in the compiled run with parts of shared kernels.")]
    b_ns: Annotated[int, Column("Candidate", "As for the base.")]
    difference_ns: Annotated[int, Column("Change", "Candidate less base.", signed=True)]
    ops: Annotated[str, Column("Eager ops", "Op types that its kernels replaced.", missing="–", width=300)]


class ComparePage(msgspec.Struct, frozen=True):
    """``a`` is the base, ``b`` the candidate; everything is per iteration, so that ranges of other lengths compare.

    ``base_ms`` and ``candidate_ms`` are the steps without the profiler; ``base_step`` and ``candidate_step`` give their
    sources. ``speedup_low`` to ``speedup_high`` is the 95 % interval of the speedup, ``noise`` whether it holds 1.
    ``change`` is which run is faster, per sample where the batch sizes differ; ``direction`` says it as a sentence.
    ``different_models`` is whether the runs train different ones: the speedup is then the ratio of two steps, and no
    page states it. ``warnings`` limit the answer, ``notes`` do not.
    ``matched_gpu_time_percent`` is `CompareShares.matched_of_model`, None where a run has no GPU. ``batches`` is None
    where the batch sizes are the same, or unknown. ``modules`` are the first of ``total_modules``; ``reason_texts`` has
    the ops' reasons in words. ``compiled_modules`` are the first of ``total_compiled_modules`` where one run is
    compiled and the other is not. ``promises`` compares predicted with measured savings, None without a prediction.
    """

    a: CompareSide
    b: CompareSide
    headline: str
    different_models: bool
    across_frameworks: bool
    explanation: list[str]
    basis: Literal["gpu", "cpu"]
    base_ms: float
    candidate_ms: float
    base_step: StepFigures
    candidate_step: StepFigures
    step_difference_ns: int
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    noise: bool | None
    change: FasterOrSlower
    direction: str
    batches: CompareBatches | None
    matched_gpu_time_percent: CompareBoth
    shares: CompareSharesOfBoth
    buckets: list[CompareBucket]
    metrics: list[CompareMetric]
    a_categories: list[Slice]
    b_categories: list[Slice]
    families: list[CompareKernelFamily]
    modules: list[CompareModule]
    total_modules: int
    ops: list[CompareOp]
    total_rows: int
    reason_texts: dict[str, str]
    promises: PredictionCheck | None
    compiled_modules: list[CompareCompiledModule]
    total_compiled_modules: int
    warnings: list[str]
    notes: list[str]


def compare_page(a: CompareInput, b: CompareInput) -> ComparePage:
    """Run ``b`` against the base ``a``."""
    comparison = _compared(a.view, b.view, a.selection, b.selection)
    interval = comparison.speedup_interval
    gpu = comparison.basis == "gpu"
    left, right = a.side(), b.side()
    differ = different_models(comparison, left.model, right.model)
    models = (left.model, right.model) if differ else None
    frameworks = tuple(side.view.profile.source.framework for side in (a, b))
    ops, modules = op_rows(comparison), module_rows(comparison)
    replaced = comparison.replaced.modules if comparison.replaced else []
    return ComparePage(
        a=left,
        b=right,
        headline=headline(comparison, models),
        different_models=differ,
        across_frameworks=len(set(frameworks)) > 1,
        explanation=[*across_frameworks(frameworks), *explanation(comparison, models)],
        basis=comparison.basis,
        base_ms=comparison.step_ns[0] / _MS,
        candidate_ms=comparison.step_ns[1] / _MS,
        base_step=step_figures(comparison.steps[0]),
        candidate_step=step_figures(comparison.steps[1]),
        step_difference_ns=comparison.step_ns[1] - comparison.step_ns[0],
        speedup=comparison.speedup,
        speedup_low=interval[0] if interval else None,
        speedup_high=interval[1] if interval else None,
        noise=comparison.step_noise,
        change=comparison.change,
        direction=direction_text(comparison.change),
        batches=_batches(comparison),
        matched_gpu_time_percent=CompareBoth(*(side.matched_percent if gpu else None for side in comparison.shares)),
        shares=CompareSharesOfBoth(*(_shares(side) for side in comparison.shares)),
        buckets=_buckets(comparison),
        metrics=metrics_of(a, b),
        a_categories=a.categories(),
        b_categories=b.categories(),
        families=_families(a, b),
        modules=shown_modules(modules),
        total_modules=len(modules),
        ops=ops,
        total_rows=len(ops),
        reason_texts=REASONS,
        promises=prediction_check(comparison, a.view, b.view, a.selection, b.selection),
        compiled_modules=[_compiled_module(row) for row in replaced[:_MOST_MODULES]],
        total_compiled_modules=len(replaced),
        warnings=_warnings(a, b, comparison, differ),
        notes=_notes(a, b),
    )


def _compiled_module(row: ReplacedModule) -> CompareCompiledModule:
    module = "" if row.module is None else row.module or ITSELF
    return CompareCompiledModule(module, row.a_ns, row.b_ns, row.b_ns - row.a_ns, ", ".join(row.ops))


def compare_op(a: CompareInput, b: CompareInput, id: Annotated[str, Option("Id of an op.")]) -> CompareOpDetail:
    """One op of both runs with its kernels before and after.

    Raises:
        KeyError: there is no op of this id.
    """
    return op_detail(_compared(a.view, b.view, a.selection, b.selection), id, a.view, b.view)


@functools.lru_cache(maxsize=2)
def _compared(a: ProfileView, b: ProfileView, a_selection: Selection, b_selection: Selection) -> Comparison:
    """The last pairs are cached: opening one op of a comparison usually leads to others."""
    return compare(a, b, a_selection, b_selection)


def _families(a: CompareInput, b: CompareInput) -> list[CompareKernelFamily]:
    left, right = _by_family(a), _by_family(b)
    nothing = (0, 0.0, 0)
    rows = []
    for family in {**left, **right}:
        (a_ns, a_calls, a_tc), (b_ns, b_calls, b_tc) = left.get(family, nothing), right.get(family, nothing)
        rows.append(CompareKernelFamily(family, a_ns, b_ns, a_calls, b_calls, a_tc, b_tc))
    return sorted(rows, key=lambda row: -max(row.a_ns, row.b_ns))


def _by_family(side: CompareInput) -> dict[str, tuple[int, float, int]]:
    """Per family: time per step, calls per step, Tensor Core time per step."""
    profile, count = side.view.profile, side.selection.count
    totals = kernel_totals(side.view, side.selection)
    result: dict[str, tuple[int, float, int]] = {}
    for family in np.unique(profile.kernels.family).tolist():
        rows = profile.kernels.family == family
        time = int(totals.total_ns[rows].sum())
        tensor = int(totals.total_ns[rows & (profile.kernels.tensor_core == Verdicts.YES)].sum())
        if time:
            result[profile.strings[family]] = (time // count, int(totals.calls[rows].sum()) / count, tensor // count)
    return result


def _buckets(comparison: Comparison) -> list[CompareBucket]:
    return [
        CompareBucket(
            key=bucket.key,
            label=bucket.label,
            base_ns=bucket.a_ns,
            candidate_ns=bucket.b_ns,
            difference_ns=bucket.difference_ns,
            base_outside_ns=_outside(comparison, bucket.key, bucket.a_ns, 0),
            candidate_outside_ns=_outside(comparison, bucket.key, bucket.b_ns, 1),
            base_ms=bucket.a_ns / _MS,
            candidate_ms=bucket.b_ns / _MS,
            difference_ms=bucket.difference_ns / _MS,
            low_ms=None if bucket.low_ns is None else bucket.low_ns / _MS,
            high_ms=None if bucket.high_ns is None else bucket.high_ns / _MS,
            noise=is_noise(bucket.low_ns, bucket.high_ns),
        )
        for bucket in comparison.buckets
    ]


def _outside(comparison: Comparison, key: str, whole_ns: int, side: int) -> int:
    in_ops = sum(pair.buckets[key][side] for pair in comparison.pairs if key in pair.buckets)
    # Ops are rounded one by one, so that their sum may be some nanoseconds above.
    return max(0, whole_ns - in_ops)


def _shares(side: Shares) -> CompareShares:
    total = side.total_ns
    return CompareShares(
        total_ns=total,
        matched=percent(side.matched_ns, total),
        casts=percent(side.casts_ns, total),
        scaler=percent(side.scaler_ns, total),
        compiled=percent(side.compiled_ns, total),
        unmatched=percent(side.unmatched_ns, total),
        unlinked=percent(side.unlinked_ns, total),
        matched_of_model=side.matched_percent,
    )


def _batches(comparison: Comparison) -> CompareBatches | None:
    batches = comparison.batches
    if batches is None or not batches.differ:
        return None
    return CompareBatches(batches.a, batches.b, batches.recorded, comparison.per_sample)


def _warnings(a: CompareInput, b: CompareInput, comparison: Comparison, different_models: bool) -> list[str]:
    left, right = a.side(), b.side()
    texts = []
    if left.model and right.model and left.model != right.model and not different_models:
        texts.append(f"The models have different names: {left.model} and {right.model}.")
    if left.device != right.device:
        texts.append(f"The devices differ: {left.device} and {right.device}.")
    batches = comparison.batches
    if batches and batches.differ and batches.recorded:
        texts.append(f"The batch sizes differ: {batches.a} and {batches.b}; compare samples per second.")
    elif batches and batches.differ:
        times = batches.b / batches.a
        texts.append(
            f"According to the input dims the candidate's batch is {times:.3g} times the base's: compare per sample."
        )
    for name, side in (("base", a), ("candidate", b)):
        spread = percent(side.steps.deviation_ns, side.step.recorded_ns)
        if spread is not None and spread > _UNEVEN_PERCENT:
            texts.append(
                f"The {name}'s recorded steps vary a lot, {duration(side.step.recorded_ns)} ± "
                f"{duration(side.steps.deviation_ns or 0)}: pick a range of even iterations."
            )
        orphans = _orphan_percent(side)
        if orphans is not None and orphans > ORPHAN_PERCENT:
            texts.append(_orphans_text(orphans, name))
    return texts


def _notes(a: CompareInput, b: CompareInput) -> list[str]:
    """Facts that do not change the answer."""
    percents = ((name, _orphan_percent(side)) for name, side in (("base", a), ("candidate", b)))
    return [
        _orphans_text(orphans, name)
        for name, orphans in percents
        if orphans is not None and _ORPHANS_NOTE_PERCENT < orphans <= ORPHAN_PERCENT
    ]


def _orphans_text(orphans: float, name: str) -> str:
    return (
        f"{orphans:.0f} % of the {name}'s GPU time was launched before its recording began: it is in no op and no "
        "iteration."
    )


def _orphan_percent(side: CompareInput) -> float | None:
    covered = coverage(side.view)
    return percent(covered.orphan_ns, covered.total_ns)
