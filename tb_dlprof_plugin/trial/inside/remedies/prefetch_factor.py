"""More batches that each worker loads ahead, where batches take unequal times."""

from __future__ import annotations

from typing import Any

from tb_dlprof_plugin.trial.inside.loader_remedy import LoaderRemedy, value
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

_FACTOR = 8
_DEFAULT = 2
"""torch's, where there are workers."""


class PrefetchFactor(LoaderRemedy):
    name = "prefetch_factor"
    title = f"Workers load {_FACTOR} batches ahead"
    rules = ("dataloader_bound",)
    changes = Changes.NOTHING
    may_change = "Nothing; each worker needs memory for more batches."
    keywords = (("prefetch_factor", str(_FACTOR)),)
    in_running_process = True

    def change(self, arguments: dict[str, Any]) -> str | None:
        if value(arguments, "num_workers", 0) == 0:
            return "it has no workers"
        if value(arguments, "prefetch_factor", _DEFAULT) >= _FACTOR:
            return "its workers load as many batches ahead already"
        arguments["prefetch_factor"] = _FACTOR
        return None


REMEDIES: tuple[type[Remedy], ...] = (PrefetchFactor,)
