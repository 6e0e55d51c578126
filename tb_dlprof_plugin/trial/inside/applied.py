"""Applies a set of remedies in the process of a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.remedies import make
from tb_dlprof_plugin.trial.inside.remedy import Remedy

_STEPS_WITH_NEW_MODELS = 3
"""A model that the first steps do not call is not part of each step."""


class AppliedRemedies:
    """The remedies of one process; made and started when torch has just been imported.

    Raises:
        KeyError: there is none of a name.
    """

    def __init__(self, names: Sequence[str]) -> None:
        from tb_dlprof_plugin.trial.inside.model_calls import FirstModelCalls

        self.remedies: list[Remedy] = [make(name) for name in names]
        self.hooks = TrialHooks()
        self._calls = FirstModelCalls(self._on_model)

    def start(self) -> None:
        """Apply all. An exception of a remedy goes to the caller: here, or into the script at the model's call."""
        for remedy in self.remedies:
            remedy.on_import(self.hooks)
        self._calls.start()

    def step_ended(self, step: int) -> None:
        """Called after each step, which are counted from 0."""
        if step == _STEPS_WITH_NEW_MODELS:
            self._calls.stop()
        for remedy in self.remedies:
            remedy.on_step(step)

    def no_effect(self) -> dict[str, str]:
        """By name of the remedy, why it changed nothing; without those that changed something."""
        return {remedy.name: said for remedy in self.remedies if (said := remedy.no_effect()) is not None}

    def codes(self) -> dict[str, str]:
        """By name of the remedy, how to write what it has changed in this script."""
        return {remedy.name: remedy.code() for remedy in self.remedies}

    @property
    def skipped_steps(self) -> int:
        """How many steps the remedies have kept optimizers from so far, because gradients were not finite."""
        return sum(remedy.skipped_steps for remedy in self.remedies)

    def stop(self) -> None:
        """Undo all that can be undone in a running process."""
        self._calls.stop()
        self.hooks.undo()

    def _on_model(self, model: Any) -> None:
        for remedy in self.remedies:
            remedy.on_model(model, self.hooks)
