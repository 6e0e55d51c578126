"""Runs the rules. A rule that raises is reported as failed; the others are not affected."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache

import msgspec

from tb_dlprof_plugin.advice.combined_saving import combined
from tb_dlprof_plugin.advice.finding import CombinedSaving, FindingItem, RuleOutcome, RuleStatus, Silent
from tb_dlprof_plugin.advice.needs import unmet
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.topics import modules_by_topic
from tb_dlprof_plugin.metrics.energy import StepEnergy, step_energy
from tb_dlprof_plugin.metrics.needs import Need, missing
from tb_dlprof_plugin.metrics.outlier_steps import steady
from tb_dlprof_plugin.metrics.trust import trust
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import step_estimate

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Implemented:
    """A rule, its check, and how its change is recognised in a later run.

    ``was_applied`` takes the base and the candidate and returns in words what was changed, "" for nothing. Where it is
    None, the change counts as applied when the rule no longer fires.
    """

    rule: Rule
    check: Callable[[RuleContext], Finding | Silent]
    was_applied: Callable[[ProfileView, ProfileView], str] | None

    def answer(self, context: RuleContext) -> Finding | Silent:
        """The check's answer; not applicable where the run lacks something that the rule needs."""
        why = self.rule.why_not(context.profile.source.framework) or unmet(self.rule.all_needs, context)
        return Silent(why, applicable=False) if why else self.check(context)


class Advice(msgspec.Struct, frozen=True):
    """``findings`` by falling expected saving, those without an estimate last; ``rules`` has an entry per rule.

    ``combined`` is their combined saving, None without any.
    """

    findings: list[FindingItem]
    rules: list[RuleStatus]
    combined: CombinedSaving | None = None


@cache
def all_rules() -> tuple[Implemented, ...]:
    """The rules in the folders of `advice.rules`, by name.

    A rule is a module with ``RULE``, ``check`` and optionally ``was_applied``; the other modules are helpers.
    """
    names = sorted(
        (name for names in modules_by_topic().values() for name in names), key=lambda name: name.rpartition(".")[2]
    )
    modules = [importlib.import_module(name) for name in names]
    return tuple(
        Implemented(module.RULE, module.check, getattr(module, "was_applied", None))
        for module in modules
        if hasattr(module, "RULE")
    )


def advise(
    view: ProfileView, selection: Selection, ranks: Sequence[ProfileView] = (), set_aside: Collection[str] = ()
) -> Advice:
    """Run all rules on the selected iterations. No saving is above the step without the profiler.

    Args:
        view: of the profile.
        selection: of its iterations.
        ranks: the profiles of all ranks of the same session, where there are several; by default `ProfileView.ranks`.
        set_aside: rules whose findings the combined saving leaves out.
    """
    whole = RuleContext(view, selection, ranks or view.ranks)
    context = RuleContext(view, steady(view, selection), whole.ranks)
    premises = _premises_of(context)
    source = view.profile.source
    findings: list[Finding] = []
    statuses: list[RuleStatus] = []
    for one in all_rules():
        rule = one.rule
        title = rule.title_for(source)
        try:
            answer = one.answer(whole if rule.all_iterations else context)
        except Exception as error:
            _log.exception("rule %s failed", rule.id)
            why = f"The rule itself failed ({error}); please report this."
            statuses.append(RuleStatus(rule.id, rule.title, "failed", why))
            continue
        if isinstance(answer, Silent):
            outcome: RuleOutcome = "silent" if answer.applicable else "not_applicable"
            statuses.append(RuleStatus(rule.id, title, outcome, answer.why))
        else:
            answer = premises.applied(answer.for_source(rule.remedies, source))
            findings.append(answer)
            statuses.append(RuleStatus(rule.id, title, "fired", answer.item.seen))
    findings.sort(key=lambda f: _rank(f.item))
    open_savings = [(f.saving, f.group) for f in findings if f.saving is not None and f.item.rule not in set_aside]
    together = combined(context, open_savings)
    step_ns, energy = step_estimate(view, context.selection).ns, step_energy(view, context.selection)
    items = [_with_joules(_within_step(f.item, step_ns), energy) for f in findings]
    return Advice(items, statuses, together)


@dataclass(frozen=True, slots=True)
class _Premises:
    """What no finding may say of a recording: a saving without steps, high confidence or severity without reliability.

    ``no_steps`` is the sentence that says so, "" where steps are known.
    """

    no_steps: str
    unsure: bool

    def applied(self, finding: Finding) -> Finding:
        item, saving = finding.item, finding.saving
        if self.no_steps and item.saving is not None:
            why = f"The saving cannot be said. {self.no_steps}"
            item, saving = msgspec.structs.replace(item, saving=None, saving_unknown_because=why), None
        if self.unsure:
            sure = {"high": "medium"}
            item = msgspec.structs.replace(
                item,
                severity=sure.get(item.severity, item.severity),
                confidence=sure.get(item.confidence, item.confidence),
            )
        return replace(finding, item=item, saving=saving)


def _premises_of(context: RuleContext) -> _Premises:
    """A single iteration may be any: a warm-up, a compilation."""
    view, selection = context.view, context.selection
    unsure = selection.count == 1 or trust(view, selection).verdict == "poor"
    return _Premises(missing(view, selection, Need.ITERATIONS), unsure)


def _within_step(item: FindingItem, step_ns: float) -> FindingItem:
    """The finding with a saving of at most the step: some rules look at the recorded step, which may be longer."""
    saving = item.saving
    if saving is None or saving.high_ns <= step_ns:
        return item
    low, expected, high = (min(ns, int(step_ns)) for ns in (saving.low_ns, saving.expected_ns, saving.high_ns))
    share = saving.percent if expected == saving.expected_ns else 100.0
    within = msgspec.structs.replace(saving, low_ns=low, expected_ns=expected, high_ns=high, percent=share)
    return msgspec.structs.replace(item, saving=within)


def _with_joules(item: FindingItem, energy: StepEnergy | None) -> FindingItem:
    """The finding with its saving in joules, where the energy of a step was measured."""
    saving = item.saving
    if saving is None or energy is None:
        return item
    low, high = energy.saved_joules(saving.low_ns, saving.high_ns)
    return msgspec.structs.replace(item, saving=msgspec.structs.replace(saving, low_joules=low, high_joules=high))


def _rank(item: FindingItem) -> tuple[bool, int, int]:
    """Sort key: findings with a saving first, the largest on top; then by severity."""
    return item.saving is None, -(item.saving.expected_ns if item.saving else 0), _SEVERITIES.index(item.severity)


_SEVERITIES = ("high", "medium", "low")
