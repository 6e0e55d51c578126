"""Workers that stay from epoch to epoch instead of being started again."""

from __future__ import annotations

from typing import Any

from tb_dlprof_plugin.trial.inside.loader_remedy import LoaderRemedy, value
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy


class PersistentWorkers(LoaderRemedy):
    name = "persistent_workers"
    title = "DataLoader workers stay from epoch to epoch"
    usual_percent = -1.0
    rules = ("worker_restart",)
    changes = Changes.RANDOM
    may_change = "Batches stay the same; random augmentation draws other numbers from the second epoch on."
    keywords = (("persistent_workers", "True"),)

    def change(self, arguments: dict[str, Any]) -> str | None:
        if value(arguments, "num_workers", 0) == 0:
            return "it has no workers"
        if value(arguments, "persistent_workers", False):
            return "its workers stay already"
        arguments["persistent_workers"] = True
        return None


REMEDIES: tuple[type[Remedy], ...] = (PersistentWorkers,)
