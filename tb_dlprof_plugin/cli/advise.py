"""``tb-dlprof advise``: the Advice page on the terminal, and a limit for continuous integration."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec
import typer

from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.finding import FindingItem
from tb_dlprof_plugin.advice.rule_text import rule_text
from tb_dlprof_plugin.cli.advice_text import print_advice
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import Printing, Source
from tb_dlprof_plugin.cli.printing import print_page
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.near_names import did_you_mean, near_names
from tb_dlprof_plugin.model.run_choice import RangeChoice
from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.reports.advice import advice_report

FOUND = 1
"""Exit status if a finding reaches the severity limit."""


class Severity(str, Enum):
    """Severities, the highest first."""

    high = "high"
    medium = "medium"
    low = "low"


def _print_rule(name: str | None) -> None:
    """Prints what a rule says of itself, and ends the command."""
    if name is None:
        return
    known = _rules(name)
    for one in all_rules():
        if one.rule.id in known:
            say(*rule_text(one.rule).split("\n"))
    raise typer.Exit


@takes_requests
def advise(
    source: Source,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Show evidence, derivations of savings, and the rules that found nothing."
        ),
    ] = False,
    fail_on: Annotated[
        Severity | None,
        typer.Option(help="Exit with 1 if there is a finding of this severity or a higher one."),
    ] = None,
    ignore: Annotated[
        str, typer.Option(metavar="RULES", help="Leave out the findings of these rules, separated by commas.")
    ] = "",
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULES",
            help="Print what these rules look for, why it matters, what to change, their thresholds, and end.",
            callback=_print_rule,
            is_eager=True,
        ),
    ] = None,
    *,
    choice: RangeChoice,
    printing: Printing,
) -> None:
    """Show what to change and the estimated savings.

    With the observations and the code to change. CSV contains the findings.
    """
    ignored = _rules(ignore)
    chosen = choose(source, choice)
    page = advice_page(chosen.view, chosen.ref, chosen.selection, ignored)
    page = msgspec.structs.replace(page, findings=[one for one in page.findings if one.rule not in ignored])
    print_page(advice_report(page), printing, text=lambda: print_advice(page, verbose))
    if fail_on is not None:
        _check(page.findings, fail_on)


def _rules(text: str) -> frozenset[str]:
    """Ids of rules; ends the command if one is unknown."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    known = {one.rule.id for one in all_rules()}
    for name in names:
        if name not in known:
            refuse(f"there is no rule {name}; {did_you_mean(near_names(name, known)) or '--verbose names all rules.'}")
    return frozenset(names)


def _check(findings: list[FindingItem], limit: Severity) -> None:
    """Ends the command if a finding reaches the limit; the message goes to stderr, so that JSON and CSV stay valid."""
    order = list(Severity)
    counted = order[: order.index(limit) + 1]
    severe = [finding.rule for finding in findings if Severity(finding.severity) in counted]
    if severe:
        how = limit.value + ("" if limit is Severity.high else " or higher")
        noun = "finding" if len(severe) == 1 else "findings"
        say(f"tb-dlprof: {len(severe)} {noun} of severity {how}: {', '.join(severe)}.", err=True)
        raise typer.Exit(FOUND)
