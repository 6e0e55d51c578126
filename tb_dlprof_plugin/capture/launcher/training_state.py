"""The models in training and the settings of their DataLoader, found shortly before the recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import nn
from torch.optim import Optimizer

from tb_dlprof_plugin.capture.around_window import OutsideSteps
from tb_dlprof_plugin.capture.facts.loader import dataloader_facts
from tb_dlprof_plugin.capture.launcher.live_objects import LiveObjects, training_loader
from tb_dlprof_plugin.capture.launcher.model_calls import CallsOfModel
from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.capture.launcher.recording import Handler, Ranges, Recording
from tb_dlprof_plugin.capture.launcher.root_modules import as_one, choose_roots, name_of
from tb_dlprof_plugin.capture.warn import probe

OnCall = Callable[[nn.Module], None]
"""Called with the module before each call of a model; must not raise."""


class TrainingState:
    """Holds references to the models, and the settings of the DataLoader.

    Args:
        objects: the live objects of the process.
        optimizers: that have stepped; if none is known, all live ones.
        called: the first module that was called, if known.
    """

    def __init__(self, objects: LiveObjects, optimizers: Iterable[Optimizer], called: nn.Module | None) -> None:
        stepped = list(optimizers) or objects.optimizers
        self.model = as_one(choose_roots(objects.modules, stepped, called))
        self._loader = probe(lambda: dataloader_facts(training_loader(objects)))

    @property
    def name(self) -> str:
        """Name of the model's class; "" without a model."""
        return "" if self.model is None else name_of(self.model)

    def install_call_hook(self, on_call: OnCall) -> CallsOfModel | None:
        """Install a hook that reports each call of the models; None if that is not possible."""
        hook = CallsOfModel(on_call)
        return hook if self.model is not None and hook.install(self.model) else None

    def recording(
        self,
        request: RunRequest,
        on_call: OnCall,
        *,
        iteration: int,
        session: str | None,
        cycle: int,
        rank: int,
        world_size: int,
        outside: OutsideSteps,
    ) -> Recording:
        """A recording that begins with ``iteration``; not started yet."""
        handler = Handler(request.run_directory, use_gzip=True, model=self.model, session=session, rank=rank)
        handler.world_size, handler.loader_facts = world_size, self._loader
        handler.cycle, handler.outside = cycle, outside
        ranges = None if self.model is None or request.simple else Ranges(self.model, on_call)
        return Recording(handler, ranges, iteration, request.simple, request.memory)
