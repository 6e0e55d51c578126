"""``tb-dlprof compare``: the Compare page on the terminal, and a limit for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import Limit, OutputFormat, Printing
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_page, print_table, time
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import interval, uncapitalized
from tb_dlprof_plugin.model.regression import RegressionVerdict
from tb_dlprof_plugin.pages.compare import (
    CompareBucket,
    CompareCompiledModule,
    CompareKernelFamily,
    ComparePage,
    compare_page,
)
from tb_dlprof_plugin.pages.compare_metrics import CompareInput, CompareMetric
from tb_dlprof_plugin.pages.compare_ops import REASONS, CompareOp
from tb_dlprof_plugin.pages.compare_verdict import JudgedPage, judged
from tb_dlprof_plugin.pages.realised_savings import (
    ForecastCheckOp,
    ForecastCheckPanel,
    PredictionCheck,
    signed_duration,
)
from tb_dlprof_plugin.pages.sweep import value_text

SLOWER, UNSURE = 1, 4
"""Exit statuses: the candidate is slower than allowed; it cannot be said whether it is, with `--fail-if-unsure`."""


@takes_requests
def compare(
    base: Annotated[Path, typer.Argument(help="The base run: its directory, an event file, or a trace.")],
    candidate: Annotated[Path, typer.Argument(help="The candidate run, compared with the base run.")],
    fail_if_slower: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="PERCENT",
            help="Exit with 1 if the candidate's step without the profiler is longer by more than this, and the 95 % "
            "interval of the speedup excludes that it is no slower. JSON has the verdict.",
        ),
    ] = None,
    fail_if_unsure: Annotated[
        bool,
        typer.Option(
            "--fail-if-unsure",
            help="With --fail-if-slower: exit with 4 if the interval does not decide whether it is slower by more.",
        ),
    ] = False,
    limit: Limit = 20,
    *,
    printing: Printing,
) -> None:
    """Compare two runs: the step time and what changed it.

    With time categories, ops, Tensor Core time and memory, all per iteration. CSV contains the ops.
    """
    if fail_if_unsure and fail_if_slower is None:
        refuse("--fail-if-unsure needs a limit: add --fail-if-slower PERCENT")
    sides = [choose(path) for path in (base, candidate)]
    page = compare_page(*(CompareInput(side.view, side.ref, side.selection) for side in sides))
    if fail_if_slower is not None:
        page = judged(page, fail_if_slower)
    print_page(page, printing, text=lambda: _print_text(page, limit))
    if isinstance(page, JudgedPage):
        _check(page.regression, fail_if_unsure, is_said=printing.output is OutputFormat.text)


def _check(found: RegressionVerdict, fail_if_unsure: bool, is_said: bool) -> None:
    """Ends the command by the verdict; the message goes to stderr, so that JSON and CSV stay valid."""
    if found.verdict == "not_slower":
        return
    if not is_said:
        say(f"tb-dlprof: {uncapitalized(found.sentence)}", err=True)
    if found.verdict == "slower":
        raise typer.Exit(SLOWER)
    if fail_if_unsure:
        raise typer.Exit(UNSURE)


def _print_text(page: ComparePage, limit: int) -> None:
    say(f"Base: {page.a.title}", f"Candidate: {page.b.title}", page.headline)
    for text in page.explanation:
        say(f"- {text}")
    if isinstance(page, JudgedPage):
        say("", page.regression.sentence)
    say()
    whole = msgspec.structs.replace(
        page.buckets[0],
        label="Step without the profiler",
        base_ns=round(page.base_ms * 1e6),
        candidate_ns=round(page.candidate_ms * 1e6),
        difference_ns=page.step_difference_ns,
        noise=page.noise,
    )
    buckets = [bucket for bucket in page.buckets if bucket.base_ns or bucket.candidate_ns]
    print_rows(
        CompareBucket,
        [*buckets, whole],
        cells={"noise": lambda bucket: "noise" if bucket.noise and bucket.difference_ns else ""},
    )
    say()
    print_table(
        (("per iteration", "left"), ("base", "right"), ("candidate", "right"), ("gain", "right")),
        [(m.label, _value(m, m.a), _value(m, m.b), "-" if m.gain is None else f"{m.gain:.2f}") for m in page.metrics],
    )
    say()
    if page.across_frameworks:
        # What runs have in common whatever their ops are called.
        print_rows(CompareKernelFamily, page.families)
        say()
    print_rows(
        CompareOp,
        page.ops[:limit],
        headings={"name": f"Op ({page.basis.upper()} time)"},
        cells={"reason": lambda op: REASONS.get(op.reason, "") or ("noise" if op.noise and op.difference_ns else "")},
    )
    if page.compiled_modules:
        say("", "By module, eager against compiled; kernels of several modules are split by bytes.", "")
        print_rows(CompareCompiledModule, page.compiled_modules, limit=limit, total=page.total_compiled_modules)
    _print_matching(page, limit)
    if page.promises:
        _print_predictions(page.promises, limit)
    for text in (*page.warnings, *page.notes):
        say("", f"Note: {text}")


def _print_matching(page: ComparePage, limit: int) -> None:
    kind = "GPU" if page.basis == "gpu" else "CPU"
    say()
    print_table(
        ((f"of the {kind} time", "left"), ("base", "right"), ("candidate", "right")),
        [
            (label, percent(getattr(page.shares.base, name)), percent(getattr(page.shares.candidate, name)))
            for name, label in (
                ("matched", "matched"),
                ("casts", "casts"),
                ("scaler", "GradScaler"),
                ("compiled", "torch.compile"),
                ("unmatched", "not matched"),
                ("unlinked", "launched by no op"),
                ("matched_of_model", "matched, of all but casts and GradScaler"),
            )
        ],
    )
    left = [op for op in page.ops if op.reason not in ("", "casts", "scaler", "compiled")]
    left.sort(key=lambda op: -max(op.a_ns or 0, op.b_ns or 0))
    if left:
        say()
        print_table(
            (("not matched", "left"), ("direction", "left"), ("run", "left"), ("time", "right"), ("likely", "left")),
            [
                (
                    op.name,
                    op.direction,
                    "base" if op.b_ns is None else "candidate",
                    time(op.a_ns if op.b_ns is None else op.b_ns),
                    REASONS[op.reason],
                )
                for op in left[:limit]
            ],
        )


def _print_predictions(check: PredictionCheck, limit: int) -> None:
    """The forecast and the measured step, then predicted and measured savings."""
    if check.refusal:
        say("", f"No forecast to compare with the candidate: {check.refusal}")
    if check.forecast:
        _print_forecast(check.forecast, limit)
    for row in check.savings:
        say(
            "",
            f"Advised for the base: {row.title}",
            f"  Changed: {row.change}. Predicted saving: {signed_duration(row.expected_ns)} a step, "
            f"{interval(row.low_ns, row.high_ns, lambda ns: signed_duration(round(ns)))}.",
            f"  {row.text}",
        )


def _print_forecast(panel: ForecastCheckPanel, limit: int) -> None:
    say("", f"{panel.headline}")
    if panel.note:
        say(panel.note)
    step = f"{'~' if panel.estimated else ''}{_ms(panel.step_ms)}"
    print_table(
        (("per step", "left"), ("forecast", "right"), ("measured", "right"), ("error", "right")),
        [
            ("step without the profiler", _ms(panel.predicted_ms), step, _error(panel.error_percent)),
            *(
                (part.label, _ms(part.predicted_ms), _ms(part.measured_ms), _error(part.error_percent))
                for part in panel.parts
            ),
        ],
    )
    say()
    worst = panel.ops[: max(1, limit // 2)]
    print_rows(
        ForecastCheckOp,
        worst,
        headings={"name": "Kernels with the largest error"},
        cells={"error_percent": lambda op: _error(op.error_percent)},
    )


def _ms(value: float) -> str:
    return time(round(value * 1e6))


def _error(value: float | None) -> str:
    return "-" if value is None else f"{value:+.0f} %"


def _value(metric: CompareMetric, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    # Both sides in one unit.
    return f"{value / 2**30:.2f} GiB" if metric.unit == "bytes" else value_text(value, metric.unit)
