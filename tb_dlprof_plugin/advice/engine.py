"""Runs the rules. A rule that fails is reported as failed and costs the others nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import FindingItem, RuleStatus, Silent
from tb_dlprof_plugin.advice.rules import (
    amp_not_used,
    cudnn_benchmark_off,
    dataloader_bound,
    gpu_underutilized,
    tf32_off,
)
from tb_dlprof_plugin.measures import Frame, Selection

_log = logging.getLogger(__name__)
_Check = Callable[[Case], FindingItem | Silent]
_RULES: tuple[tuple[str, str, _Check], ...] = tuple(
    (module.RULE, module.TITLE, module.check)
    for module in (amp_not_used, tf32_off, dataloader_bound, gpu_underutilized, cudnn_benchmark_off)
)


class Advice(msgspec.Struct, frozen=True):
    """``findings`` by falling expected saving, those without an estimate last; ``rules`` has an entry per rule."""

    findings: list[FindingItem]
    rules: list[RuleStatus]


def advise(frame: Frame, selection: Selection) -> Advice:
    """What all rules say of the selected iterations."""
    case = Case(frame, selection)
    findings: list[FindingItem] = []
    statuses: list[RuleStatus] = []
    for rule, title, check in _RULES:
        try:
            answer = check(case)
        except Exception as error:
            _log.exception("rule %s failed", rule)
            statuses.append(RuleStatus(rule, title, "failed", f"The rule itself failed ({error}); please report this."))
            continue
        if isinstance(answer, Silent):
            statuses.append(RuleStatus(rule, title, "silent" if answer.applicable else "not_applicable", answer.why))
        else:
            findings.append(answer)
            statuses.append(RuleStatus(rule, title, "fired", answer.seen))
    findings.sort(key=lambda f: -(f.saving.expected_ns if f.saving else -1))
    return Advice(findings, statuses)
