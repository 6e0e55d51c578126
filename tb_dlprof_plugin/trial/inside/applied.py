"""Applies a set of remedies in the process of a training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.remedies import make
from tb_dlprof_plugin.trial.inside.remedy import Remedy

_STEPS_WITH_NEW_MODELS = 3
"""A model that the first steps do not call is not part of each step."""


class AppliedRemedies:
    """The remedies of one process; made and started when torch has just been imported.

    Attributes:
        failure: the error of a remedy in a running process, which has switched all of them off; "" without one.

    Raises:
        KeyError: there is none of a name.
    """

    def __init__(self, names: Sequence[str]) -> None:
        from tb_dlprof_plugin.trial.inside.model_calls import FirstModelCalls

        self.remedies: list[Remedy] = [make(name) for name in names]
        self.hooks = TrialHooks()
        self.failure = ""
        self._calls = FirstModelCalls(self._on_model)
        self._goes_on = False

    def start(self) -> None:
        """Apply all. An exception of a remedy goes to the caller: here, or into the script at the model's call."""
        for remedy in self.remedies:
            remedy.on_import(self.hooks)
        self._calls.start()

    def start_in_running_process(self, optimizers: Sequence[Any]) -> None:
        """Apply all to a training that has begun. An exception of a remedy, then or in a pass or an update, is kept in
        `failure`, and all remedies are off: the training goes on."""
        import torch

        self.failure, self._goes_on = "", True
        try:
            self.start()
            for remedy in self.remedies:
                for optimizer in optimizers:
                    remedy.on_optimizer(optimizer, self.hooks)
            for optimizer in optimizers:
                self.hooks.wrap_method(optimizer, "step", self._guarded)
            self.hooks.replace(torch.autograd, "backward", self._guarded)
        except Exception as error:
            self._fail(error)

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
        if not self._goes_on:
            for remedy in self.remedies:
                remedy.on_model(model, self.hooks)
            return
        try:
            for remedy in self.remedies:
                remedy.on_model(model, self.hooks)
        except Exception as error:
            self._fail(error)
            return
        from torch.utils import checkpoint

        # torch before 2.1 has none.
        ended_early = getattr(checkpoint, "_StopRecomputationError", ())
        compiled = model._compiled_call_impl

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return (compiled or model._call_impl)(*args, **kwargs)
            except Exception as error:
                # A checkpoint ends its second forward pass by an exception, as soon as it has what it needs.
                if self.failure or isinstance(error, ended_early):
                    raise
                self._fail(error)
            return model(*args, **kwargs)

        self.hooks.set(model, "_compiled_call_impl", call)

    def _guarded(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except Exception as error:
                if self.failure:
                    raise
                # This step has no gradients or no update; the state of the training is set back before the next one
                # that counts.
                self._fail(error)
            return None

        return guarded

    def _fail(self, error: Exception) -> None:
        self.failure = (f"{type(error).__name__}: {error}".splitlines() or [""])[0]
        self.stop()
