"""The fixed text of a rule, for its page in the docs and for each of its findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Finding:
    """A finding, its saving with the changes behind it, and its group of alternatives."""

    item: FindingItem
    saving: Saving | None
    group: str


@dataclass(frozen=True)
class Rule:
    """The fixed text of a rule, in Markdown; findings hold what it observes in a run.

    ``looks_for`` is one sentence, ``why`` states what the problem costs, ``thresholds`` names constants of
    `tb_dlprof_plugin.advice.thresholds` whose docstrings give their sources, ``fix`` what to change and ``ignore_when``
    when to ignore it. ``peers`` are rules of other tools for the same problem. ``facts`` are the facts of a run
    (`comparison.run_table.FACTS`) that following the advice changes. ``needs`` is what a recording must have: to
    others the rule is not applicable.
    """

    id: str
    title: str
    looks_for: str
    why: str
    fix: str
    ignore_when: str
    thresholds: tuple[str, ...] = ()
    peers: tuple[Peer, ...] = ()
    references: tuple[Reference, ...] = field(default=())
    facts: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()

    def finding(
        self,
        *,
        title: str,
        seen: str,
        change: str,
        confirm: str,
        readings: Sequence[Reading] = (),
        evidence: Sequence[EvidenceRow] = (),
        code: str = "",
        saving: Saving | None = None,
        saving_unknown_because: str = "",
        group: str = "",
        confidence: Confidence = "medium",
        severity: Severity | None = None,
    ) -> Finding:
        """A finding of this rule.

        Args:
            title: the cost or the problem, in words and numbers.
            seen: what was observed, with numbers.
            change: what to do, in the user's terms.
            confirm: what a second run will show.
            readings: the numbers that were compared with thresholds.
            evidence: rows of other pages that show the numbers.
            code: of the change.
            saving: per step, with its derivation.
            saving_unknown_because: why there is no number; needed where there is none.
            group: savings of one group are alternatives, of which one can be applied.
            confidence: "high": measured or proven; "medium": an estimate; "low": a guess from signs.
            severity: by the saving where None.
        """
        if (saving is None) != bool(saving_unknown_because):
            raise ValueError(f"{self.id}: a finding needs a saving, or the reason why there is none")
        if saving is not None:
            saving_unknown_because = saving.unknown_because
        known = saving if saving is not None and not saving.unknown_because else None
        stated = None if known is None else known.item
        item = FindingItem(
            id=self.id,
            rule=self.id,
            severity=severity or severity_of(stated),
            title=title,
            seen=seen,
            readings=list(readings),
            evidence=list(evidence),
            change=change,
            code=code,
            saving=stated,
            saving_unknown_because=saving_unknown_because,
            confirm=confirm,
            confidence=confidence,
            references=list(self.references),
            peers=list(self.peers),
        )
        return Finding(item, known, group)
