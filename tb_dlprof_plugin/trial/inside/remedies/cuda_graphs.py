"""Forward and backward pass of the called modules are captured as CUDA graphs, and replayed with one launch each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.gpu import needs_gpu
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class CudaGraphs(Remedy):
    name = "cuda_graphs"
    title = "Model captured as CUDA graphs"
    usual_percent = 10.0
    rules = ("launch_bound", "small_kernels")
    changes = Changes.ROUNDING
    may_change = "The same kernels; batch norms see the first batch several times more, before the first step."
    group = "compile"
    # `in_running_process` stays False: once a model has trained, a capture may fail (three of three scripts, torch
    # 2.11), and what fails leaves the generator of random numbers in capture.

    def __init__(self) -> None:
        self._replayed = 0
        self._kept = ""

    def why_not(self, facts: TrialFacts) -> str | None:
        if facts.world_size > 1:
            return "CUDA graphs of distributed models need an order of their own: they are not applied from outside."
        return needs_gpu(facts)

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        """The graph is captured at the first call in training mode, whose arguments have the shapes that count."""
        from tb_dlprof_plugin.capture.wrappers import is_compiled_region

        if is_compiled_region(model):
            self._kept = "The script compiles the model: torch.compile has CUDA graphs of its own."
            return
        captured: dict[bool, Any] = {}

        def make(forward: Any) -> Any:
            def graphed(module: Any, *args: Any, **kwargs: Any) -> Any:
                if kwargs or not module.training or not _fit(args):
                    self._kept = self._kept or "Arguments of the model are not tensors on the GPU alone."
                    return forward(module, *args, **kwargs)
                if not captured:
                    captured[True] = _capture(lambda *inputs: forward(module, *inputs), module, args)
                    captured[False] = [(tensor.shape, tensor.dtype, tensor.requires_grad) for tensor in args]
                if [(tensor.shape, tensor.dtype, tensor.requires_grad) for tensor in args] != captured[False]:
                    return forward(module, *args)
                self._replayed += 1
                return captured[True](*args)

            return graphed

        hooks.wrap_method(model, "forward", make)

    def no_effect(self) -> str | None:
        return None if self._replayed else self._kept or "The script calls no module in training mode."

    def code(self) -> str:
        return "model = torch.cuda.make_graphed_callables(model, (inputs,))  # inputs: a batch of the usual shape\n"


def _fit(args: tuple[Any, ...]) -> bool:
    import torch

    return bool(args) and all(isinstance(one, torch.Tensor) and one.is_cuda for one in args)


def _capture(forward: Any, module: nn.Module, args: tuple[Any, ...]) -> Any:
    """A callable that replays the graphs. Buffers, such as the averages of batch norms, are put back afterwards."""
    import torch

    class Stand(torch.nn.Module):
        """Has the parameters of the module, and its forward without the hooks and replacements on the module."""

        def __init__(self) -> None:
            super().__init__()
            self.held = module

        def forward(self, *inputs: Any) -> Any:
            return forward(*inputs)

    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    samples = tuple(one.detach().clone().requires_grad_(one.requires_grad) for one in args)
    stand = Stand()
    # Not `train()`: the module may have parts in evaluation mode.
    stand.training = module.training
    # Casts that autocast keeps would lie outside of the graph.
    uncached = torch.autocast(
        "cuda",
        dtype=torch.get_autocast_dtype("cuda"),
        enabled=torch.is_autocast_enabled("cuda"),
        cache_enabled=False,
    )
    with uncached:
        graphed = torch.cuda.make_graphed_callables(stand, samples, allow_unused_input=True)
    with torch.no_grad():
        for buffer, before in buffers:
            buffer.copy_(before)
    return graphed


REMEDIES: tuple[type[Remedy], ...] = (CudaGraphs,)
