"""A rule as its module declares it: the page in the module's docstring, and what all its findings share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
)
from tb_dlprof_plugin.advice.needs import Need
from tb_dlprof_plugin.advice.savings import Saving
from tb_dlprof_plugin.advice.savings import severity as severity_of

WHY, FIX, LEAVE, CONFIRM = "Why it matters", "What to change", "When to leave it", "To confirm"
"""Sections of a rule's docstring: each is a paragraph that begins with its heading and a colon."""


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


@dataclass(frozen=True)
class Rule:
    """A rule of the advice. Its id is the name of its module, its page the module's docstring, in Markdown.

    The docstring's first line is the title. Its second paragraph is a sentence on what the rule looks for; a paragraph
    follows for each of `WHY`, `FIX`, `LEAVE` and `CONFIRM` (what a second run shows).

    Args:
        module: ``__name__`` of the rule's module, whose documented constants are the rule's own thresholds.
        documentation: its docstring; None under ``python -OO``, where the rule has no page.
        needs: what the rule cannot do without, in the order of asking; without it the rule is not applicable.
        thresholds: names of constants that several rules share and that this one depends on.
        confidence: "high": measured or proven; "medium": an estimate; "low": a guess from signs.
        severity: of each finding; by its saving where None.
        group: savings of one group are alternatives, of which one can be applied.
        peers: rules of other tools for the same problem.
        references: further reading.
        facts: facts of a run (`comparison.run_table.FACTS`) that following the advice changes.
    """

    module: str
    documentation: str | None
    needs: tuple[Need, ...] = ()
    thresholds: tuple[str, ...] = ()
    confidence: Confidence = "medium"
    severity: Severity | None = None
    group: str = ""
    peers: tuple[Peer, ...] = ()
    references: tuple[Reference, ...] = ()
    facts: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The name of the rule's module."""
        return self.module.rpartition(".")[2]

    @cached_property
    def _paragraphs(self) -> list[str]:
        return [" ".join(part.split()) for part in (self.documentation or self.id).strip().split("\n\n")]

    @cached_property
    def title(self) -> str:
        """The problem, in a few words."""
        return self._paragraphs[0].removesuffix(".")

    @property
    def looks_for(self) -> str:
        """One sentence."""
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
            references=list(self.references),
            peers=list(self.peers),
        )
        return Finding(item, known, self.group)
