"""Returns the outcome of each rule on recorded planted trainings.

The saving that a rule states for the training with its fault is compared with the realised one: the step of the
training with the fault less that of the fixed one, both the median of steps that ran without the profiler. Where the
two train on batches of different size the fixed step is scaled to the batch of the other.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.engine import Advice, all_rules
from tb_dlprof_plugin.advice.finding import FindingItem, RuleStatus
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.profile_view import ProfileView, Selection

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
RECORDED = DATA / "planted"
"""``<rule>/fault`` and ``<rule>/fixed``, made by `lab.planted.record`."""
LARGER = DATA / "planted_larger"
"""The same trainings at 1.5 times the sizes (PLANTED_SCALE), recorded when all rules had been written."""


class Run:
    """A recorded run and what the rules say of it."""

    def __init__(self, directory: Path) -> None:
        chosen = choose(directory)
        self.view: ProfileView = chosen.view
        self.selection: Selection = chosen.selection

    @cached_property
    def advice(self) -> Advice:
        """Of all iterations."""
        return advise(self.view, self.selection)

    def finding(self, rule: str) -> FindingItem | None:
        """The rule's finding."""
        return next((found for found in self.advice.findings if found.rule == rule), None)

    def status(self, rule: str) -> RuleStatus | None:
        """The outcome of a rule; None if there is no such rule."""
        return next((status for status in self.advice.rules if status.rule == rule), None)

    @property
    def step_ns(self) -> int | None:
        """The median step without the profiler."""
        facts = self.view.profile.facts
        # Files of version 0.1 have the median alone.
        return round(median(facts.unprofiled_before_ns)) if facts.unprofiled_before_ns else facts.unprofiled_step_ns

    @property
    def batch_size(self) -> int | None:
        """Samples per step of all processes; None where it was not recorded."""
        size = self.view.profile.facts.batch_size
        return None if size is None else size * max(1, len(self.view.ranks))


OF_JOBS = {"straggler": "imbalanced_gpu"}
"""Rules about all ranks, whose trainings are those of lab/ranks, and the one here that has their fault too."""
SETTINGS = DATA / "ranks" / "settings_recorded"
OF_SETTINGS = {
    "fsdp_large_units": ("gloo_one_unit", "gloo_units"),
    "fsdp_reshard": ("gloo_one_unit", "gloo_units"),
    "fsdp_units": ("sharded_tiny_units", "sharded"),
    "gradient_bucket_copies": ("wide_copied", "wide"),
    "gradient_buckets": ("wide_one", "wide"),
    "hybrid_sharding": ("gloo_flat", "gloo_hybrid"),
    "microbatches": ("gpipe", "gpipe_few"),
    "slow_link": ("../recorded/ddp_slow_link", "../recorded/ddp_even"),
}
"""Rules about settings of all ranks: a job of `SETTINGS` with the fault, and the fixed one."""
OF_GPUS = {
    "clock_held_down": ("planted/out_of_memory_ahead/fault", "energy/held_out/vgg/fp32"),
    "gpu_too_large": ("planted/batch_size/fault", "planted/batch_size/fixed"),
}
"""Rules about the GPU: in `DATA` a training on one with what they look for, and one without. For the clock it is
another training: the power that a training takes is no mistake in it."""
NOT_RECORDED = {
    "cheap_checkpoints": "No recorded training both fills its GPU and keeps what is cheap to compute again. "
    "On a GPU of their own size it fires on seven of fifteen networks of `lab/memory_plan`.",
    "fsdp_prefetch": "Over NVLink FSDP's gathers are hidden or wait for the CPU; jobs over slower links are simulated.",
    "garbage_in_turns": "In the recorded job with garbage collection only one rank collects (rule straggler).",
    "static_graph": "In the recorded jobs all parameters are used, or the search takes less than 2 % of the step.",
    "tensor_parallel_overlap": "In the recorded jobs the CPU sets the pace, so that hiding collectives saves nothing.",
}
"""Rules that no recorded training has reason to fire on, and why: `tests/advice/cases` make what they look for."""
_ON_CPU = "gloo_"
"""Jobs of CPUs, which were recorded for what their structure shows, on a machine that was busy with other things."""


@dataclass(frozen=True)
class Held:
    """A rule and its planted training. ``machine`` says what it was recorded on, "" where that is not known."""

    rule: str
    machine: str
    fault: Run
    fixed: Run

    @property
    def finding(self) -> FindingItem | None:
        """What the rule says of the training with its fault."""
        return self.fault.finding(self.rule)

    @property
    def fires(self) -> bool:
        """Whether the rule finds its fault."""
        return self.finding is not None

    @property
    def silent(self) -> bool:
        """Whether the rule is silent on the fixed training, because it looked or because it does not apply."""
        status = self.fixed.status(self.rule)
        return status is not None and status.outcome in ("silent", "not_applicable")

    @property
    def others(self) -> list[str]:
        """Other rules that fire on the fixed training."""
        return sorted(found.rule for found in self.fixed.advice.findings if found.rule != self.rule)

    @property
    def realised_ns(self) -> float | None:
        """What fixing saved per step; None where a step was not timed."""
        before, after = self.fault.step_ns, self.fixed.step_ns
        if before is None or after is None or OF_SETTINGS.get(self.rule, ("",))[0].startswith(_ON_CPU):
            return None
        batches = self.fault.batch_size, self.fixed.batch_size
        scale = batches[0] / batches[1] if batches[0] and batches[1] else 1.0
        return before - scale * after

    @property
    def within(self) -> bool | None:
        """Whether the realised saving lies in the stated interval; None without a saving or without timed steps."""
        if self.finding is None or self.finding.saving is None or self.realised_ns is None:
            return None
        return self.finding.saving.low_ns <= self.realised_ns <= self.finding.saving.high_ns


def planted_rules(recorded: Path = RECORDED) -> list[str]:
    """The rules whose training is recorded with its fault and fixed, by name."""
    return sorted(
        path.name for path in recorded.glob("*") if all((path / variant).is_dir() for variant in ("fault", "fixed"))
    )


@functools.cache
def held(rule: str, recorded: Path = RECORDED) -> Held:
    """The recordings of a rule, each read and advised once."""
    runs = _recording(recorded).get("runs", [])
    machines = [
        f"{run['device']}, torch {run['torch']}" if run.get("gpus") else f"CPU, torch {run['torch']}"
        for run in runs
        if run["rule"] == rule
    ]
    if rule in OF_SETTINGS and recorded == RECORDED:
        fault, fixed = (SETTINGS / job for job in OF_SETTINGS[rule])
        machine = "CPUs, torch 2.13.0" if fault.name.startswith(_ON_CPU) else "two NVIDIA H200, torch 2.11.0+cu130"
        return Held(rule, machine, Run(fault), Run(fixed))
    if rule in OF_GPUS and recorded == RECORDED:
        fault, fixed = (DATA / place for place in OF_GPUS[rule])
        return Held(rule, "an NVIDIA H200, torch 2.11.0+cu130", Run(fault), Run(fixed))
    directory = recorded / rule
    return Held(rule, machines[0] if machines else "", Run(directory / "fault"), Run(directory / "fixed"))


def all_held(recorded: Path = RECORDED) -> Iterator[Held]:
    """All recorded planted trainings that there is a rule for, by the rules' names."""
    known = {one.rule.id for one in all_rules()}
    for rule in planted_rules(recorded):
        if rule in known:
            yield held(rule, recorded)


def _recording(recorded: Path) -> dict[str, Any]:
    path = recorded / "recording.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found
