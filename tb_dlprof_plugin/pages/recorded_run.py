"""Summary of one run for the tables of many runs: its figures and findings. Small enough to cache."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.comparison.run_table import FACTS, Fact, NamedRun, fact_of
from tb_dlprof_plugin.metrics.run_figures import run_figures
from tb_dlprof_plugin.metrics.run_setup import RunSetup
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

PRECISIONS = {
    "fp32": "FP32",
    "tf32": "TF32",
    "tf32-allowed": "FP32 (TF32 allowed)",
    "tf32-partly": "FP32, partly TF32",
    "amp-fp16": "AMP FP16",
    "amp-bf16": "AMP BF16",
}
_YES_NO = {"compiled": "compiled", "channels_last": "channels last", "cudnn_benchmark": "cudnn.benchmark"}


class RunAdvice(msgspec.Struct, frozen=True):
    """A finding in a cell: the problem, the change, the saving per step (None: no estimate)."""

    rule: str
    severity: str
    problem: str
    change: str
    saving_ns: int | None
    saving_percent: float | None


class RecordedRun(msgspec.Struct, frozen=True):
    """A run with its findings, by falling expected saving."""

    ref: RunRef
    run: NamedRun
    advice: list[RunAdvice]


class FailedRun(msgspec.Struct, frozen=True):
    """A run whose profile cannot be read."""

    run: str
    why: str


def recorded_run(view: ProfileView, ref: RunRef, selection: Selection) -> RecordedRun:
    """The figures and findings of a run over the selected iterations."""
    advice = advise(view, selection)
    titles = {rule.rule: rule.title for rule in advice.rules}
    return RecordedRun(
        ref=ref,
        run=NamedRun(ref.run, run_figures(view, selection)),
        advice=[
            RunAdvice(
                f.rule,
                f.severity,
                titles.get(f.rule, f.title),
                f.change,
                f.saving.expected_ns if f.saving else None,
                f.saving.percent if f.saving else None,
            )
            for f in advice.findings
        ],
    )


def ambiguous_models(runs: list[RecordedRun]) -> frozenset[str]:
    """Classes of which there are models of several sizes: their labels need the number of parameters."""
    sizes: dict[str, set[int | None]] = {}
    for recorded in runs:
        setup = recorded.run.figures.setup
        if setup.model is not None:
            sizes.setdefault(setup.model, set()).add(setup.parameters)
    return frozenset(model for model, found in sizes.items() if len(found) > 1)


def model_label(model: str | None, parameters: int | None, ambiguous: frozenset[str]) -> str:
    """Such as "ResNet (25.6 M)" where there is another ResNet, "" for an unknown model."""
    if model is None:
        return ""
    return f"{model} ({parameters / 1e6:.1f} M)" if model in ambiguous and parameters is not None else model


def precision_label(precision: str | None) -> str:
    """Such as "AMP BF16", "" where unknown."""
    return "" if precision is None else PRECISIONS.get(precision, precision.upper())


def computed_in(precision: str | None) -> str:
    """What most matrix work was computed in, the same in AMP and with half parameters: "bf16"; "" where unknown."""
    if precision is None:
        return ""
    return "fp32" if precision in ("tf32-allowed", "tf32-partly") else precision.removeprefix("amp-")


def fact_text(fact: str, value: Fact, ambiguous: frozenset[str]) -> str:
    """A fact as a label: "batch size 32", "AMP BF16", "not compiled", "workers unknown"."""
    if value is None:
        return f"{FACTS[fact]} unknown"
    if fact == "model" and isinstance(value, tuple):
        model, parameters, *batch = value
        label = model_label(str(model), parameters if isinstance(parameters, int) else None, ambiguous)
        return f"{label}, batch {batch[0]}" if batch and batch[0] is not None else label
    if fact == "precision":
        return precision_label(str(value))
    if fact in _YES_NO:
        return _YES_NO[fact] if value else f"not {_YES_NO[fact]}"
    if fact in ("gpu", "optimizer"):
        return str(value)
    return f"{FACTS[fact]} {value}"


def changes_text(facts: list[str], setup: RunSetup, base: RunSetup, ambiguous: frozenset[str]) -> list[str]:
    """The changes of a run relative to its base: "FP32 to AMP BF16"."""
    return [
        f"{fact_text(fact, fact_of(base, fact), ambiguous)} to {fact_text(fact, fact_of(setup, fact), ambiguous)}"
        for fact in facts
    ]
