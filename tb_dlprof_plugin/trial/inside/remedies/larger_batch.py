"""Twice as many samples per step: the time per sample is compared."""

from __future__ import annotations

from typing import Any

from tb_dlprof_plugin.trial.inside.loader_remedy import LoaderRemedy, value
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

_FACTOR = 2


class LargerBatchRemedy(LoaderRemedy):
    name = "larger_batch"
    title = f"Batch size × {_FACTOR}"
    usual_percent = -1.0
    rules = ("batch_size", "gpu_underutilized")
    changes = Changes.TRAINING
    may_change = (
        "Another training: half as many steps per epoch, and the learning rate, which stays as it is here, "
        "has to be chosen again (often × 2 for SGD)."
    )
    group = "batch_size"
    samples = float(_FACTOR)

    def __init__(self) -> None:
        super().__init__()
        # By id of the dataset, the sizes that were made: frameworks make a loader again from the first one's settings.
        self._made: dict[int, set[int]] = {}

    def change(self, arguments: dict[str, Any]) -> str | None:
        size = value(arguments, "batch_size", 1)
        if arguments.get("batch_sampler") is not None or size is None:
            return "a sampler of its own decides what is in a batch"
        made = self._made.setdefault(id(arguments["dataset"]), set())
        if size not in made:
            size *= _FACTOR
            made.add(size)
            arguments["batch_size"] = size
        return None

    def code(self) -> str:
        return (
            f"loader = DataLoader(dataset, batch_size={_FACTOR} * batch_size, ...)  # choose the learning rate again\n"
        )

    def patch(self, script: Any) -> Any:
        # The learning rate belongs to it, and is the user's decision.
        return None


REMEDIES: tuple[type[Remedy], ...] = (LargerBatchRemedy,)
