"""A callback for Lightning that records the whole cycle, as `tb_dlprof_plugin.profile` does.

Lightning's own PyTorchProfiler wraps each of its hooks in a range for the whole training, and ends a step in the middle
of it; a callback needs neither.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from tb_dlprof_plugin.capture.schedule import DEFAULT
from tb_dlprof_plugin.capture.session import ProfileSession, profile
from tb_dlprof_plugin.capture.warn import probe, warn

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


class _Recording:
    """The hooks of the callback. None of them raises into the training."""

    def __init__(self, logdir: str | os.PathLike[str], options: dict[str, Any]) -> None:
        super().__init__()
        self._logdir, self._options = logdir, options
        self.session: ProfileSession | None = None
        """The recording, once the training has begun."""

    def __reduce__(self) -> Any:
        # The class is created again in a process that a trainer spawns.
        return _callback, (self._logdir, self._options)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The training begins."""
        try:
            self._start(trainer, pl_module)
        except Exception as error:
            warn(f"The training is not recorded: {type(error).__name__}: {error}.")

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
        """A step is over."""
        if self.session is not None:
            self.session.step()

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        """The training ends."""
        self._stop()

    def on_exception(self, *args: Any, **kwargs: Any) -> None:
        """The training fails."""
        self._stop(wait=False)

    def _start(self, trainer: Any, module: Any) -> None:
        loader = probe(lambda: trainer.train_dataloader)
        given = {"model": module, "dataloader": loader} | self._options
        if len(trainer.optimizers) == 1:
            given.setdefault("optimizer", trainer.optimizers[0])
        # Each process records; Lightning's rank may be known before that of torch.distributed.
        given.setdefault("rank", trainer.global_rank)
        # As in a loop that calls `step`: the first step is not recorded and discarded.
        given.setdefault("schedule", DEFAULT)
        self.session = profile(self._logdir, **given)
        self.session.start()

    def _stop(self, wait: bool | None = None) -> None:
        session, self.session = self.session, None
        if session is not None:
            session.stop(wait)
