"""Runs the rules. A rule that fails is reported as failed and costs the others nothing."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec

from tb_dlprof_plugin.advice.combined_saving import combined
from tb_dlprof_plugin.advice.finding import CombinedSaving, FindingItem, RuleStatus, Silent
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.topics import modules_by_topic
from tb_dlprof_plugin.profile_view import ProfileView, Selection

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Implemented:
    """A rule, its check, and how its change is recognised in a later run.

    ``made`` gets the base and the candidate and says in words what was changed, "" for nothing; None where a rule has
    no way of its own: there the change is made when the rule has nothing more to find.
    """

    rule: Rule
    check: Callable[[RuleContext], Finding | Silent]
    made: Callable[[ProfileView, ProfileView], str] | None


class Advice(msgspec.Struct, frozen=True):
    """``findings`` by falling expected saving, those without an estimate last; ``rules`` has an entry per rule.

    ``combined`` is what the findings save together, None without a saving.
    """

    findings: list[FindingItem]
    rules: list[RuleStatus]
    combined: CombinedSaving | None = None


@cache
def all_rules() -> tuple[Implemented, ...]:
    """The rules in the folders of `advice.rules`, by name.

    A rule is a module with ``RULE`` and ``check``, and with ``made`` where it needs one; the others are helpers.
    """
    names = sorted(
        (name for names in modules_by_topic().values() for name in names), key=lambda name: name.rpartition(".")[2]
    )
    modules = [importlib.import_module(name) for name in names]
    return tuple(
        Implemented(module.RULE, module.check, getattr(module, "made", None))
        for module in modules
        if hasattr(module, "RULE")
    )


def advise(
    view: ProfileView, selection: Selection, ranks: Sequence[ProfileView] = (), set_aside: Collection[str] = ()
) -> Advice:
    """What all rules say of the selected iterations.

    Args:
        view: of the profile.
        selection: of its iterations.
        ranks: the profiles of all ranks of the same session, where there are several; by default `ProfileView.ranks`.
        set_aside: rules whose findings the combined saving leaves out.
    """
    context = RuleContext(view, selection, ranks or view.ranks)
    findings: list[Finding] = []
    statuses: list[RuleStatus] = []
    for one in all_rules():
        rule = one.rule
        try:
            answer = one.check(context)
        except Exception as error:
            _log.exception("rule %s failed", rule.id)
            why = f"The rule itself failed ({error}); please report this."
            statuses.append(RuleStatus(rule.id, rule.title, "failed", why))
            continue
        if isinstance(answer, Silent):
            statuses.append(
                RuleStatus(rule.id, rule.title, "silent" if answer.applicable else "not_applicable", answer.why)
            )
        else:
            findings.append(answer)
            statuses.append(RuleStatus(rule.id, rule.title, "fired", answer.item.seen))
    findings.sort(key=lambda f: _rank(f.item))
    open_savings = [(f.saving, f.group) for f in findings if f.saving is not None and f.item.rule not in set_aside]
    together = combined(context, open_savings)
    return Advice([f.item for f in findings], statuses, together)


def _rank(item: FindingItem) -> tuple[bool, int, int]:
    """Savings first, the largest at the top; then by severity."""
    return item.saving is None, -(item.saving.expected_ns if item.saving else 0), _SEVERITIES.index(item.severity)


_SEVERITIES = ("high", "medium", "low")
