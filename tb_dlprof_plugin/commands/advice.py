"""``tb-dlprof advice``: the Advice page on the terminal."""

from __future__ import annotations

import textwrap

import typer

from tb_dlprof_plugin.advice.finding import FindingItem
from tb_dlprof_plugin.commands.options import Cycle, First, Json, Last, Rank, Source
from tb_dlprof_plugin.commands.printing import percent, print_json, print_table, time
from tb_dlprof_plugin.commands.source import choose
from tb_dlprof_plugin.views.advice import advice_page
from tb_dlprof_plugin.views.forecast import MixedPrecision, MixedPrecisionChoice


def advice(
    source: Source,
    cycle: Cycle = None,
    rank: Rank = None,
    first: First = None,
    last: Last = None,
    as_json: Json = False,
) -> None:
    """What to change, what was seen, what it should gain, and what will confirm it."""
    chosen = choose(source, cycle, rank, first, last)
    page = advice_page(chosen.frame, chosen.ref, chosen.selection)
    if as_json:
        print_json(page)
        return
    typer.echo(page.headline)
    for finding in page.findings:
        _print(finding)
    _print_forecasts(page.mixed_precision)
    typer.echo("\nRules that found nothing:")
    for status in page.rules:
        if status.outcome != "fired":
            typer.echo(f"  {status.rule} ({status.outcome.replace('_', ' ')}): {status.why}")


def _print_forecasts(found: MixedPrecision) -> None:
    """A line for each precision; one sentence where there is no forecast at all."""
    refusals = {choice.refusal for choice in found.choices}
    if len(refusals) == 1 and "" not in refusals:
        typer.echo(f"\nNo forecast of mixed precision: {refusals.pop()}")
        return
    typer.echo("\nWhat mixed precision would gain, a step without the profiler; tb-dlprof predict shows the ops:")
    print_table(
        (
            ("precision", "left"),
            ("now", "right"),
            ("forecast", "right"),
            ("between", "right"),
            ("times as fast", "right"),
            ("", "left"),
        ),
        [_line(choice) for choice in found.choices],
    )


def _line(choice: MixedPrecisionChoice) -> tuple[str, ...]:
    found = choice.forecast
    if found is None:
        return (choice.label, "", "", "", "", choice.refusal)
    return (
        choice.label,
        f"{found.unprofiled_step_ms:.2f} ms",
        f"{found.predicted_step_ms:.2f} ms",
        f"{found.low_ms:.2f} to {found.high_ms:.2f} ms",
        f"{found.speedup:.2f}",
        found.limit_text,
    )


def _print(finding: FindingItem) -> None:
    typer.echo(f"\n[{finding.severity}] {finding.title}")
    typer.echo(f"  Seen: {finding.seen}")
    for row in finding.evidence:
        typer.echo(f"    {row.label}: {time(row.value_ns)} a step, {percent(row.percent)}")
    if finding.saving is None:
        typer.echo(f"  Estimated saving: unknown. {finding.saving_unknown_because}")
    else:
        item = finding.saving
        typer.echo(
            f"  Estimated saving a step: {time(item.expected_ns)} ({percent(item.percent)}), "
            f"between {time(item.low_ns)} and {time(item.high_ns)}. {item.derivation}"
        )
    typer.echo(f"  Change: {finding.change}\n{textwrap.indent(finding.code.rstrip(), '      ')}")
    typer.echo(f"  Confirm: {finding.confirm}")
