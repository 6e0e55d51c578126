"""A callback for the Trainer of Hugging Face's transformers that records the whole cycle."""

from __future__ import annotations

import importlib
import os
from typing import Any

from tb_dlprof_plugin.capture.callback_session import CallbackSession


def transformers_callback(logdir: str | os.PathLike[str], **options: Any) -> Any:
    """A callback for ``transformers.Trainer(callbacks=[...])`` that records the training: steps without the profiler,
    the light window and the full window. A step is one of the optimizer, with all batches that it accumulates.

    Args:
        logdir: the run's directory.
        options: those of `tb_dlprof_plugin.profile`; the model, the DataLoader and the optimizer are the trainer's.

    Raises:
        ModuleNotFoundError: transformers is not installed.
    """
    try:
        base = importlib.import_module("transformers").TrainerCallback
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        raise ModuleNotFoundError(
            "transformers is not installed: pip install transformers.", name="transformers"
        ) from None
    return type("DLProfCallback", (_Recording, base), {})(logdir, options)


class _Recording(CallbackSession):
    """The hooks of the callback; the Trainer passes what it knows by name."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """The training begins."""
        self._begin(args, known)

    def on_step_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """A step of the optimizer is over."""
        self._step()

    def on_train_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """The training ends."""
        self._end()

    def _facts(self, args: Any, known: dict[str, Any]) -> dict[str, Any]:
        facts = {"model": "model", "dataloader": "train_dataloader", "optimizer": "optimizer"}
        found = {option: known[name] for option, name in facts.items() if known.get(name) is not None}
        return {"rank": args.process_index, **found}
