"""A case of a rule: a small recording, made event by event, and what the rule must answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tb_dlprof_plugin.advice.finding import RuleOutcome
from tb_dlprof_plugin.model.run_facts import RunFacts, System


@dataclass(frozen=True)
class between:
    """Equal to each number from ``low`` to ``high``."""

    low: float
    high: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and self.low <= other <= self.high


ANY = between(float("-inf"), float("inf"))


@dataclass(frozen=True)
class Case:
    """What a rule answers to a recording.

    Attributes:
        name: of the case.
        trace: puts events into an empty `TraceBuilder`, or returns a view of its own, one for each rank, or a rule's
            context.
        outcome: of the rule.
        seen: a part of what the rule says.
        readings: numbers of the finding by label.
        saving_ns: its least, expected and largest saving; None where it has none, not looked at where left out.
        says: parts of the finding's texts and evidence.
        severity: of the finding, where given.
        facts: what the hook read.
        training: options of the recording `training` of `tests/conftest.py`, to which ``trace`` adds, in place of an
            empty one.
    """

    name: str
    trace: Callable[[Any], Any]
    outcome: RuleOutcome
    seen: str = ""
    readings: Mapping[str, Any] = field(default_factory=dict)
    saving_ns: Any = ANY
    says: Sequence[str] = ()
    severity: str = ""
    facts: RunFacts = field(default_factory=RunFacts)
    system: System | None = None
    training: Mapping[str, Any] | None = None
