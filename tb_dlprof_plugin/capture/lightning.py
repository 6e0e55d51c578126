"""A callback for Lightning that records the whole cycle, as `tb_dlprof_plugin.profile` does.

Lightning's own PyTorchProfiler wraps each of its hooks in a range for the whole training, and ends a step in the middle
of it; a callback needs neither.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from tb_dlprof_plugin.capture.callback_session import CallbackSession
from tb_dlprof_plugin.capture.warn import probe

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def lightning_callback(logdir: str | os.PathLike[str], **options: Any) -> Any:
    """A callback for ``lightning.Trainer(callbacks=[...])`` that records the training: steps without the profiler, the
    light window and the full window.

    Args:
        logdir: the run's directory.
        options: those of `tb_dlprof_plugin.profile`; the model, the DataLoader and the optimizer are the trainer's.

    Raises:
        ModuleNotFoundError: neither ``lightning`` nor ``pytorch_lightning`` is installed.
    """
    return _callback(logdir, options)


def _callback(logdir: str | os.PathLike[str], options: dict[str, Any]) -> Any:
    return type("DLProfCallback", (_Recording, *_callback_classes()), {})(logdir, options)


def _callback_classes() -> list[type]:
    """From each Lightning package that the script has imported, because a trainer accepts only its own; else from an
    installed one."""
    loaded = [name for name in _PACKAGES if name in sys.modules]
    for name in loaded or _PACKAGES:
        try:
            found = importlib.import_module(name).Callback
        except ModuleNotFoundError:
            continue
        return [found, *(importlib.import_module(other).Callback for other in loaded if other != name)]
    raise ModuleNotFoundError("Lightning is not installed: pip install lightning.", name="lightning")


class _Recording(CallbackSession):
    """The hooks of the callback."""

    def __reduce__(self) -> Any:
        # The class is created again in a process that a trainer spawns.
        return _callback, (self._logdir, self._options)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The training begins."""
        self._begin(trainer, pl_module)

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
        """A step is over."""
        self._step()

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        """The training ends."""
        self._end()

    def on_exception(self, *args: Any, **kwargs: Any) -> None:
        """The training fails."""
        self._end(wait=False)

    def _facts(self, trainer: Any, module: Any) -> dict[str, Any]:
        # Each process records; Lightning's rank may be known before that of torch.distributed.
        facts = {
            "model": module,
            "dataloader": probe(lambda: trainer.train_dataloader),
            "rank": trainer.global_rank,
        }
        return facts | ({"optimizer": trainer.optimizers[0]} if len(trainer.optimizers) == 1 else {})
