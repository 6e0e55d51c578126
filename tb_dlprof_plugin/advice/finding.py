"""Findings as data: what a rule observed, what to change, the estimated saving. Printers do the layout."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["high", "medium", "low"]
Confidence = Literal["high", "medium", "low"]
RuleOutcome = Literal["fired", "silent", "not_applicable", "failed"]


class Reading(msgspec.Struct, frozen=True):
    """A number that a rule evaluated; ``threshold`` is the limit that it was compared with, in the same unit."""

    label: str
    value: float | None
    unit: Literal["ns", "percent", "count", "bytes", "ratio"]
    threshold: float | None = None


class EvidenceRow(msgspec.Struct, frozen=True):
    """A row behind a finding: ``page`` and ``id`` name the page and row that show it ("ops" and an op id, for
    example)."""

    label: str
    value_ns: int | None
    percent: float | None
    page: str
    id: str


class SavingItem(msgspec.Struct, frozen=True):
    """Estimated saving per iteration (ns), its interval, and how it was computed.

    ``low_joules`` and ``high_joules`` are what that saves at the least and at the most where energy was measured.
    """

    low_ns: int
    expected_ns: int
    high_ns: int
    percent: float
    derivation: str
    low_joules: float | None = None
    high_joules: float | None = None


class Reference(msgspec.Struct, frozen=True):
    """Further reading."""

    title: str
    url: str


class Peer(msgspec.Struct, frozen=True):
    """A rule of another tool for the same problem, by its name there."""

    tool: str
    name: str


class CombinedSaving(msgspec.Struct, frozen=True):
    """Saving per step (ns) of all findings with a saving, without counting overlapping time twice.

    ``added_up_ns`` is the plain sum of the expected savings, which overlap.
    """

    low_ns: int
    expected_ns: int
    high_ns: int
    percent: float
    findings: int
    added_up_ns: int


class FindingItem(msgspec.Struct, frozen=True):
    """One finding, of the rule whose page in the docs has its name.

    Where ``saving`` is None it cannot be estimated; ``saving_unknown_because`` gives the reason. ``confidence`` is
    "high" for what was measured or proven, "medium" for an estimate, "low" for a guess from signs.

    Findings with the same ``alternatives`` are choices of one change, which that text names; ``choice`` names this one.
    Both are "" for a finding that stands for itself.
    """

    id: str
    rule: str
    severity: Severity
    title: str
    seen: str
    readings: list[Reading]
    evidence: list[EvidenceRow]
    change: str
    code: str
    saving: SavingItem | None
    saving_unknown_because: str
    confirm: str
    confidence: Confidence
    references: list[Reference]
    peers: list[Peer]
    alternatives: str = ""
    choice: str = ""


class RuleStatus(msgspec.Struct, frozen=True):
    """Outcome of a rule, and the reason."""

    rule: str
    title: str
    outcome: RuleOutcome
    why: str


class Silent(msgspec.Struct, frozen=True):
    """A rule's result when it finds nothing."""

    why: str
    applicable: bool = True
