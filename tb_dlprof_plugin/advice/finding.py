"""Findings as data: what a rule saw, what to change, what it should gain. Text is laid out by the printers."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["high", "medium", "low"]


class Reading(msgspec.Struct, frozen=True):
    """A number that a rule saw; ``threshold`` is what it was held against, in the same unit."""

    label: str
    value: float | None
    unit: Literal["ns", "percent", "count", "bytes", "ratio"]
    threshold: float | None = None


class EvidenceRow(msgspec.Struct, frozen=True):
    """A row behind a finding: ``page`` and ``id`` name where it can be seen ("ops" and an op id, for example)."""

    label: str
    value_ns: int | None
    percent: float | None
    page: str
    id: str


class SavingItem(msgspec.Struct, frozen=True):
    """Estimated saving per iteration (ns) with the interval it lies in, and how it was computed."""

    low_ns: int
    expected_ns: int
    high_ns: int
    percent: float
    derivation: str


class Reference(msgspec.Struct, frozen=True):
    """Where to read on."""

    title: str
    url: str


class FindingItem(msgspec.Struct, frozen=True):
    """One finding. Where ``saving`` is None no honest number can be given; ``saving_unknown_because`` says why."""

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
    references: list[Reference]
    dlprof_name: str


class RuleStatus(msgspec.Struct, frozen=True):
    """What became of a rule, and why."""

    rule: str
    title: str
    outcome: Literal["fired", "silent", "not_applicable", "failed"]
    why: str


class Silent(msgspec.Struct, frozen=True):
    """A rule's answer when it has nothing to say."""

    why: str
    applicable: bool = True
