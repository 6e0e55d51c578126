"""What the remedies of DataLoaders share: arguments of the constructor are changed, those of map-style datasets only.

An iterable dataset with more workers yields each sample once per worker, unless its own code prevents that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.remedy import Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.edit import Call, Edit, ScriptSource
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_DATA_LOADER = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


class LoaderRemedy(Remedy):
    """Changes arguments of each DataLoader that the script makes.

    Attributes:
        keywords: the arguments as they are written into a script.
    """

    keywords: tuple[tuple[str, str], ...] = ()
    of_loader = True

    def __init__(self) -> None:
        self._changed = 0
        self._kept: list[str] = []

    def change(self, arguments: dict[str, Any]) -> str | None:
        """Change the arguments of a constructor; returns why they stay as they are, else None."""
        raise NotImplementedError

    def on_import(self, hooks: TrialHooks) -> None:
        from torch.utils.data import DataLoader, IterableDataset

        def change(arguments: dict[str, Any]) -> None:
            if isinstance(arguments.get("dataset"), IterableDataset):
                kept: str | None = "the dataset is iterable: its own code decides what each worker yields"
            else:
                kept = self.change(arguments)
            if kept is None:
                self._changed += 1
            else:
                self._kept.append(kept)

        hooks.before_init(DataLoader, change)

    def no_effect(self) -> str | None:
        if self._changed:
            return None
        return f"DataLoader: {self._kept[0]}." if self._kept else "The script makes no DataLoader."

    def code(self) -> str:
        written = ", ".join(f"{name}={value}" for name, value in self.keywords)
        return f"loader = DataLoader(dataset, ..., {written})\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        call = training_loader(script)
        if call is None:
            return None
        edits = [call.file.set_keyword(call.node, name, value) for name, value in self.keywords]
        return None if None in edits else [edit for edit in edits if edit is not None]


def training_loader(script: ScriptSource) -> Call | None:
    """The call that makes the DataLoader of the training: the only one, or the only one that shuffles; None where there
    is no such."""
    calls = script.calls(*_DATA_LOADER)
    if len(calls) > 1:
        calls = [
            call
            for call in calls
            if any(one.arg == "shuffle" and call.file.source(one.value) != "False" for one in call.node.keywords)
        ]
    return calls[0] if len(calls) == 1 else None


def value(arguments: dict[str, Any], name: str, default: Any) -> Any:
    """An argument of the constructor, or its default."""
    given = arguments.get(name)
    return default if given is None else given
