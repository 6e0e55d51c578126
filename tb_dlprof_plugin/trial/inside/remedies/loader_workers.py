"""Processes that load the next batches while a step runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.loader_remedy import LoaderRemedy, value
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.trial.facts import TrialFacts


class _LoaderWorkers(LoaderRemedy):
    workers = 0
    usual_percent = -1.0
    rules = ("dataloader_bound", "synchronous_dataloader")
    changes = Changes.RANDOM
    may_change = "Batches stay the same; random augmentation draws other numbers, each worker from a seed of its own."
    group = "loader_workers"
    in_running_process = True

    def __init__(self) -> None:
        super().__init__()
        # Without the second they start again with each epoch.
        self.keywords = (("num_workers", str(self.workers)), ("persistent_workers", "True"))

    def forecast(self, view: ProfileView) -> float | None:
        from tb_dlprof_plugin.metrics.loader.forecast import loader_forecast

        found = loader_forecast(view)
        steps = {} if found is None else {one.workers: one for one in found.steps}
        if found is None or self.workers not in steps:
            return None
        return 100 * (1 - steps[self.workers].ns / found.now.ns)

    def why_not(self, facts: TrialFacts) -> str | None:
        missing = super().why_not(facts)
        if missing is not None:
            return missing
        if self.workers > max(facts.cpu_count // facts.world_size, 1):
            return f"{self.workers} workers are more than the {facts.cpu_count} CPUs for {facts.world_size} ranks."
        return None

    def change(self, arguments: dict[str, Any]) -> str | None:
        has = value(arguments, "num_workers", 0)
        if has == self.workers:
            return f"it has {has} workers already"
        if has == 0 and "timeout" in arguments:
            # Given for no workers, where only 0 is allowed.
            arguments.pop("timeout")
        arguments["num_workers"] = self.workers
        arguments["persistent_workers"] = True
        return None


class LoaderWorkers1(_LoaderWorkers):
    name, title, workers = "loader_workers_1", "1 DataLoader worker", 1


class LoaderWorkers2(_LoaderWorkers):
    name, title, workers = "loader_workers_2", "2 DataLoader workers", 2


class LoaderWorkers4(_LoaderWorkers):
    name, title, workers = "loader_workers_4", "4 DataLoader workers", 4


class LoaderWorkers8(_LoaderWorkers):
    name, title, workers = "loader_workers_8", "8 DataLoader workers", 8


REMEDIES: tuple[type[Remedy], ...] = (LoaderWorkers1, LoaderWorkers2, LoaderWorkers4, LoaderWorkers8)
