"""A rule as its module declares it: the page in the module's docstring, and what all its findings share.

What else a rule's module needs is imported from here, too: its input, its needs and the parts of its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import msgspec

from tb_dlprof_plugin.advice.finding import (
    Confidence,
    EvidenceRow,
    FindingItem,
    Peer,
    Reading,
    Reference,
    Severity,
    Silent,
)  # fmt: skip
from tb_dlprof_plugin.advice.frameworks import Remedies, remedy_for
from tb_dlprof_plugin.advice.needs import JobNeed, lacks
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.savings import Saving
from tb_dlprof_plugin.advice.savings import severity as severity_of
from tb_dlprof_plugin.metrics.needs import Need
from tb_dlprof_plugin.model.frameworks import PYTORCH, recording_of
from tb_dlprof_plugin.model.profile import Source

__all__ = [
    "Confidence", "EvidenceRow", "Finding", "JobNeed", "Need", "Reading", "Rule", "RuleContext", "Severity", "Silent",
    "lacks",
]  # fmt: skip

WHY, FIX, LEAVE, CONFIRM = "Why it matters", "What to change", "When to leave it", "To confirm"
"""Sections of a rule's docstring: each is a paragraph that begins with its heading and a colon."""
PEERS, READ_ON = "In other tools", "Read on"
"""Its lists: rules of other tools for the same problem, as "- tool: rule", and links in Markdown."""


ALTERNATIVES = {"precision": "Change the precision"}
"""Groups whose findings are choices of one change, and what that change is."""


@dataclass(frozen=True)
class Finding:
    """A finding, its saving with the changes behind it, and its group of alternatives."""

    item: FindingItem
    saving: Saving | None
    group: str

    def but(
        self,
        *,
        confidence: Confidence | None = None,
        severity: Severity | None = None,
        confirm: str = "",
        group: str = "",
    ) -> Finding:
        """The finding with these in place of its rule's, where given."""
        item = msgspec.structs.replace(
            self.item,
            confidence=confidence or self.item.confidence,
            severity=severity or self.item.severity,
            confirm=confirm or self.item.confirm,
        )
        return replace(self, item=item, group=group or self.group)

    def for_source(self, remedies: Remedies, source: Source) -> Finding:
        """The finding with the remedy for what was recorded in place of that for PyTorch under its own profiler."""
        remedy = remedy_for(remedies, source)
        if remedy is not None:
            change, code, references = remedy.change, remedy.code, list(remedy.references)
        elif source.framework == PYTORCH:
            return self
        else:
            code = self.item.code if self.item.code.startswith("tb-dlprof ") else ""
            change, references = self.item.change, []
        item = msgspec.structs.replace(self.item, change=change, code=code, references=references)
        return replace(self, item=item)


@dataclass(frozen=True)
class Rule:
    """A rule of the advice. Its id is the name of its module, its page the module's docstring, in Markdown.

    The docstring's first line is the title. Its second paragraph is a sentence on what the rule looks for; a paragraph
    follows for each of `WHY`, `FIX`, `LEAVE` and `CONFIRM` (what a second run shows), then the lists.

    Args:
        module: ``__name__`` of the rule's module, whose documented constants are the rule's own thresholds.
        documentation: its docstring; None under ``python -OO``, where the rule has no page.
        needs: what the rule cannot do without, in the order of asking; without it the rule is not applicable.
        without_steps: it says something of a recording without iterations, too; all other rules are about steps.
        all_iterations: it looks at iterations unlike the others, too; all other rules leave them out (`steady`).
        thresholds: names of constants that several rules share and that this one depends on.
        confidence: "high": measured or proven; "medium": an estimate; "low": a guess from signs.
        severity: of each finding; by its saving where None.
        group: savings of one group are alternatives, of which one can be applied.
        remedies: what to do in other frameworks than PyTorch, or under other recorders than its own profiler.
        any_framework: its texts hold for every framework; where they have no remedy, code of PyTorch is left out.
        facts: facts of a run (`comparison.run_table.FACTS`) that following the advice changes.
    """

    module: str
    documentation: str | None
    needs: tuple[Need | JobNeed, ...] = ()
    without_steps: bool = False
    all_iterations: bool = False
    thresholds: tuple[str, ...] = ()
    confidence: Confidence = "medium"
    severity: Severity | None = None
    group: str = ""
    remedies: Remedies = field(default_factory=dict)
    any_framework: bool = False
    facts: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The name of the rule's module."""
        return self.module.rpartition(".")[2]

    @property
    def all_needs(self) -> tuple[Need | JobNeed, ...]:
        """What it cannot do without: a saving, and what happens in each step, need steps."""
        return self.needs if self.without_steps else (*self.needs, Need.ITERATIONS)

    @cached_property
    def _paragraphs(self) -> list[str]:
        return [" ".join(part.split()) for part in (self.documentation or self.id).strip().split("\n\n")]

    @cached_property
    def title(self) -> str:
        """The problem, in a few words."""
        return self._paragraphs[0].removesuffix(".")

    def title_for(self, source: Source) -> str:
        """The title in the words of what was recorded."""
        remedy = remedy_for(self.remedies, source)
        return remedy.title if remedy is not None and remedy.title else self.title

    def why_not(self, framework: str) -> str:
        """The reason why the rule does not apply to a framework; "" where it does."""
        if self.any_framework or framework == PYTORCH or framework in self.remedies:
            return ""
        return f"Not applicable: the rule is about PyTorch, and {recording_of(framework)}."

    @property
    def looks_for(self) -> str:
        """What the rule finds, in one or two sentences."""
        return "" if len(self._paragraphs) < 2 else self._paragraphs[1]

    @property
    def why(self) -> str:
        """What the problem costs."""
        return self._section(WHY)

    @property
    def fix(self) -> str:
        """What to change."""
        return self._section(FIX)

    @property
    def ignore_when(self) -> str:
        """When to ignore a finding."""
        return self._section(LEAVE)

    @property
    def confirm(self) -> str:
        """What a second run shows."""
        return self._section(CONFIRM)

    @cached_property
    def peers(self) -> list[Peer]:
        """Rules of other tools for the same problem."""
        return [Peer(*item.split(": ", 1)) for item in self._list(PEERS)]

    @cached_property
    def references(self) -> list[Reference]:
        """Further reading."""
        return [Reference(*item.removeprefix("[").removesuffix(")").rsplit("](", 1)) for item in self._list(READ_ON)]

    def _list(self, heading: str) -> list[str]:
        lines = (self.documentation or "").partition(f"{heading}:\n")[2].partition("\n\n")[0].splitlines()
        return [line.removeprefix("- ") for line in lines if line]

    def _section(self, heading: str) -> str:
        texts = (part.removeprefix(f"{heading}: ") for part in self._paragraphs if part.startswith(f"{heading}: "))
        return next(texts, "")

    def finding(
        self,
        title: str,
        seen: str,
        change: str,
        saving: Saving | str,
        code: str = "",
        readings: Sequence[Reading] = (),
        evidence: Sequence[EvidenceRow] = (),
        choice: str = "",
    ) -> Finding:
        """A finding of this rule, with the confidence, severity and group that the rule declares.

        Args:
            title: the cost or the problem, in words and numbers.
            seen: what was observed, with numbers.
            change: what to do, in the user's terms.
            saving: per step, with its derivation; or the reason why there is no number.
            code: of the change.
            readings: the numbers that were compared with thresholds.
            evidence: rows of other pages that show the numbers.
            choice: the change in a word, such as "BF16", where its group has a name in `ALTERNATIVES`.
        """
        unknown = saving if isinstance(saving, str) else saving.unknown_because
        known = None if isinstance(saving, str) or unknown else saving
        stated = None if known is None else known.item
        item = FindingItem(
            id=self.id,
            rule=self.id,
            severity=self.severity or severity_of(stated),
            title=title,
            seen=seen,
            readings=list(readings),
            evidence=list(evidence),
            change=change,
            code=code,
            saving=stated,
            saving_unknown_because=unknown,
            confirm=self.confirm,
            confidence=self.confidence,
            references=self.references,
            peers=self.peers,
            alternatives=ALTERNATIVES[self.group] if choice else "",
            choice=choice,
        )
        return Finding(item, known, self.group)
