"""A case of a rule: a trace, made event by event, and what the rule must answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tb_dlprof_plugin.advice.finding import RuleOutcome
from tb_dlprof_plugin.model.run_facts import RunFacts


@dataclass(frozen=True)
class Case:
    """``trace`` puts events into an empty `TraceBuilder`; ``seen`` is a part of what the rule says.

    ``readings`` are numbers of the finding by label, ``saving_ns`` its least, expected and largest saving where given.
    """

    name: str
    trace: Callable[[Any], None]
    outcome: RuleOutcome
    seen: str
    readings: Mapping[str, float | None] = field(default_factory=dict)
    saving_ns: tuple[int, int, int] | None = None
    facts: RunFacts = field(default_factory=RunFacts)
