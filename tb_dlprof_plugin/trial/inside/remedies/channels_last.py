"""Images and convolutions with their channels side by side in memory, as Tensor Cores read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.called_models import like, map_tensors
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class ChannelsLast(Remedy):
    name = "channels_last"
    title = "Memory format channels last"
    usual_percent = 5.0
    rules = ("channels_last",)
    changes = Changes.ROUNDING
    may_change = "Shapes and formulas stay; other kernels may add in another order."
    in_running_process = True
    of_kernels = True

    def __init__(self) -> None:
        self._converted: set[int] = set()
        self._already = self._changed = False
        self._optimizers: list[Any] = []

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        # Before DistributedDataParallel lays out its buckets like the parameters.
        def change(arguments: dict[str, Any]) -> None:
            self._convert(arguments["module"], hooks)

        hooks.before_init(torch.nn.parallel.DistributedDataParallel, change)

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        import torch

        if not self._convert(model, hooks):
            return

        def images(tensor: Any) -> Any:
            is_image = tensor.dim() == 4 and tensor.is_floating_point()
            return tensor.contiguous(memory_format=torch.channels_last) if is_image else tensor

        def make(forward: Any) -> Any:
            def with_channels_last(module: Any, *args: Any, **kwargs: Any) -> Any:
                return forward(module, *map_tensors(images, args), **map_tensors(images, kwargs))

            return with_channels_last

        hooks.wrap_method(model, "forward", make)

    def on_optimizer(self, optimizer: Any, hooks: TrialHooks) -> None:
        """Its moments lie as they would in a training that began so: a fused update needs them like the parameters."""
        self._optimizers.append(optimizer)
        hooks.on_undo(self._optimizers.clear)

    def _convert(self, model: Any, hooks: TrialHooks) -> bool:
        """Whether it has two-dimensional convolutions, which have their channels last now by this remedy."""
        import torch

        weights = [
            module.weight
            for module in model.modules()
            if isinstance(module, torch.nn.Conv2d | torch.nn.ConvTranspose2d)
        ]
        if not weights:
            return False
        wide = [weight for weight in weights if weight.shape[1] > 1 and weight.shape[2:].numel() > 1]
        if id(weights[0]) not in self._converted:
            if all(weight.is_contiguous(memory_format=torch.channels_last) for weight in wide):
                self._already = True
                return False
            self._lay_out(model, torch.channels_last)
            self._converted.add(id(weights[0]))
            self._changed = True

            def undo() -> None:
                self._lay_out(model, torch.contiguous_format)
                self._converted.discard(id(weights[0]))

            hooks.on_undo(undo)
        return True

    def _lay_out(self, model: Any, memory_format: Any) -> None:
        model.to(memory_format=memory_format)
        for parameter in model.parameters():
            for state in [one.state[parameter] for one in self._optimizers if parameter in one.state]:
                state |= {
                    name: like(parameter, value)
                    for name, value in state.items()
                    if getattr(value, "shape", None) == parameter.shape
                }

    def no_effect(self) -> str | None:
        if self._changed:
            return None
        return (
            "The convolutions have their channels last."
            if self._already
            else "The model has no convolutions of images."
        )

    def code(self) -> str:
        return (
            "model = model.to(memory_format=torch.channels_last)\n"
            "images = images.to(memory_format=torch.channels_last)  # each batch\n"
        )

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        # The images of a batch are not known from the source; the weights alone gain less than was measured.
        return None


REMEDIES: tuple[type[Remedy], ...] = (ChannelsLast,)
