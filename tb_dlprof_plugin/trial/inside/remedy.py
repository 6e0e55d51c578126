"""What a remedy is: a change of a training that is switched on from outside, without an edit of the script.

A remedy lives in two processes. The command asks it what it changes, whether it can be tried and how it is written
into a script; the script's process calls `Remedy.on_import`, `Remedy.on_model` and `Remedy.on_step`. So torch is
imported inside methods only.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class Changes(enum.Enum):
    """What a remedy may change in the results of a training."""

    NOTHING = "nothing"
    """The same operations on the same numbers."""
    ROUNDING = "rounding"
    """The same formulas, rounded otherwise."""
    RANDOM = "random numbers"
    """Random numbers are drawn in another order, as with another seed."""
    TRAINING = "training"
    """Another training: another batch size, for example."""


class Remedy:
    """A remedy does nothing unless a method is overridden.

    Attributes:
        name: on the command line and in JSON, such as ``tf32``.
        title: a few words for tables.
        rules: ids of the rules whose advice it carries out.
        changes: what it may change in the results.
        may_change: the same in one sentence.
        group: of one group only one remedy is applied at a time; "": it excludes no other.
        samples: samples per step relative to the baseline's: where it is not 1, the time per sample is compared.
        measures_kernels: whether its first steps choose kernels by their time, so that nothing may run next to them.
        in_running_process: whether it can be switched on and off between the steps of a training that has begun.
        compiles: whether it takes tens of seconds until its steps are as they stay.
        of_kernels: whether it makes kernels of a GPU shorter alone: nothing where the GPU waits for the CPU.
        of_loader: whether it changes arguments of DataLoaders.
        usual_percent: what it is expected to gain where nothing better is known; below 0: it is not put into a set
            before it was measured alone.
    """

    name: str = ""
    title: str = ""
    rules: tuple[str, ...] = ()
    changes: Changes = Changes.NOTHING
    may_change: str = ""
    group: str = ""
    samples: float = 1.0
    measures_kernels: bool = False
    in_running_process: bool = False
    compiles: bool = False
    of_kernels: bool = False
    of_loader: bool = False
    usual_percent: float = 1.0

    def usual(self, facts: TrialFacts) -> float:
        """Percent that it is expected to gain in a training of this kind, where nothing better is known; of 0 it is not
        in the first set, but among the first that race against it."""
        return self.usual_percent

    def forecast(self, view: ProfileView) -> float | None:
        """Called in the command: percent of the step that it saves by a recording of the baseline, where that says it
        better than the advice of its rules; else None."""
        return None

    def why_not(self, facts: TrialFacts) -> str | None:
        """Called in the command, before: why it cannot or need not be tried, in one sentence; None: it can."""
        return None

    def environment(self) -> Mapping[str, str]:
        """Variables that are set before the process starts."""
        return {}

    def on_import(self, hooks: TrialHooks) -> None:
        """Called when torch has just been imported. Whatever it changes, it changes through ``hooks``."""

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        """Called with each module that the script itself calls (no other module is being called), before its first
        call. Whatever it changes, it changes through ``hooks``."""

    def on_optimizer(self, optimizer: Optimizer, hooks: TrialHooks) -> None:
        """Called with each optimizer of a training that has begun, where the remedy is switched on in it. Whatever it
        changes, it changes through ``hooks``."""

    def on_step(self, step: int) -> None:
        """Called after each step; the first is 0."""

    def no_effect(self) -> str | None:
        """Called after the warm-up: why it changed nothing, in one sentence; None: it changed something."""
        return None

    @property
    def skipped_steps(self) -> int:
        """How many steps it has kept the optimizer from so far, because gradients were not finite."""
        return 0

    def code(self) -> str:
        """Python code that shows how to write it into a script."""
        return ""

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        """Edits of the script that make it permanent; None where no edit is safe, and `code` is shown."""
        return None


def environment_of(remedies: Iterable[Remedy]) -> dict[str, str]:
    """Variables of a process with these remedies."""
    variables: dict[str, str] = {}
    for remedy in remedies:
        variables |= remedy.environment()
    return variables


def one_of_each_group(remedies: Iterable[Remedy]) -> list[Remedy]:
    """Those that can be applied together: of each group the first."""
    found: dict[str, Remedy] = {}
    for remedy in remedies:
        found.setdefault(remedy.group or f"{remedy.name} alone", remedy)
    return list(found.values())
