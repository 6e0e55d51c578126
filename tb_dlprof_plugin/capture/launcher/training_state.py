"""What is recorded: the models in training and their DataLoader, found shortly before."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import nn
from torch.optim import Optimizer

from tb_dlprof_plugin.capture.around_window import OutsideSteps
from tb_dlprof_plugin.capture.launcher.first_forward_hook import Door
from tb_dlprof_plugin.capture.launcher.live_objects import Alive, training_loader
from tb_dlprof_plugin.capture.launcher.protocol import Order
from tb_dlprof_plugin.capture.launcher.recording import Handler, Ranges, Recording
from tb_dlprof_plugin.capture.launcher.root_modules import as_one, choose_roots, name_of
from tb_dlprof_plugin.capture.loader import dataloader_facts
from tb_dlprof_plugin.capture.warn import probe

OnCall = Callable[[nn.Module], None]
"""Called with the module before each call of a model; must not raise."""


class Subject:
    """Keeps the models alive while it lives; of the DataLoader only its settings.

    Args:
        alive: what lives in the process.
        optimizers: that have stepped; all that live where none is known.
        called: the first module that was called, if known.
    """

    def __init__(self, alive: Alive, optimizers: Iterable[Optimizer], called: nn.Module | None) -> None:
        stepped = list(optimizers) or alive.optimizers
        self.model = as_one(choose_roots(alive.modules, stepped, called))
        self._loader = probe(lambda: dataloader_facts(training_loader(alive)))

    @property
    def name(self) -> str:
        """Of the model's class; "" without one."""
        return "" if self.model is None else name_of(self.model)

    def door(self, on_call: OnCall) -> Door | None:
        """Hears of each call of the models; None where nothing can."""
        door = Door(on_call)
        return door if self.model is not None and door.install(self.model) else None

    def recording(
        self,
        order: Order,
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
        handler = Handler(order.run_directory, use_gzip=True, model=self.model, session=session, rank=rank)
        handler.world_size, handler.loader_facts = world_size, self._loader
        handler.cycle, handler.outside = cycle, outside
        ranges = None if self.model is None or order.simple else Ranges(self.model, on_call)
        return Recording(handler, ranges, iteration, order.simple)
