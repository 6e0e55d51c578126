"""The optimizer's update is captured as a CUDA graph once, and replayed with one launch for all parameters."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tb_dlprof_plugin.trial.inside.gpu import needs_gpu
from tb_dlprof_plugin.trial.inside.remedies.optimizer_implementation import count_steps
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_CLASSES = ("SGD", "Adam", "AdamW")
"""Of torch, whose fused update reads the learning rate from the GPU."""
_MOST_CAPTURES = 4


class OptimizerCudaGraph(Remedy):
    """The fused update, whose learning rate is copied to the GPU where it has changed: schedulers stay as they are.

    Args:
        device_type: of the parameters.
        capture: makes a function that repeats on the GPU what another one does.
    """

    name = "optimizer_cuda_graph"
    title = "Optimizer's update as a CUDA graph"
    # Less than `fused_optimizer`, which is in its group and holds no second copy of the gradients.
    usual_percent = 4.0
    rules = ("optimizer_not_fused", "single_tensor_optimizer")
    changes = Changes.ROUNDING
    may_change = (
        "The same update by fused kernels, which round in another order, with a learning rate in FP32. "
        "Gradients that each step makes again are copied into buffers that stay."
    )
    group = "optimizer"
    in_running_process = True

    def __init__(
        self, device_type: str = "cuda", capture: Callable[[Callable[[], object]], Callable[[], object]] | None = None
    ) -> None:
        self._device_type, self._capture = device_type, capture or _captured
        self._graphs: weakref.WeakKeyDictionary[Any, _Update] = weakref.WeakKeyDictionary()
        self._replayed = 0
        self._kept = ""

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_gpu(facts)

    def on_import(self, hooks: TrialHooks) -> None:
        """Replaces what is called within the step, so that hooks and schedulers around it see each step."""
        import torch

        hooks.on_undo(self._release)
        for function in {_innermost(getattr(torch.optim, name).step) for name in _CLASSES}:
            hooks.replace_everywhere(function, self._instead)

    def _instead(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def update(optimizer: Any, closure: Any = None) -> Any:
            import torch

            known = self._graphs.get(optimizer)
            if torch.compiler.is_compiling() or (known is None and (unfit := self._unfit(optimizer))):
                self._kept = self._kept or ("The script compiles it." if torch.compiler.is_compiling() else unfit)
                return step(optimizer, closure)
            if known is None:
                known = self._graphs[optimizer] = _Update(optimizer)
            if closure is not None or getattr(optimizer, "grad_scale", None) is not None:
                self._kept = self._kept or "The script's step has a closure or scales gradients."
                with known.capturable(optimizer):
                    return step(optimizer, closure)
            if known.run(optimizer, step, self._capture):
                self._replayed += 1
            self._kept = self._kept or known.failure
            return None

        return update

    def _unfit(self, optimizer: Any) -> str:
        import torch

        if type(optimizer).__module__.partition(".")[0] != "torch" or "fused" not in optimizer.defaults:
            return f"{type(optimizer).__name__} has no fused update."
        for group in optimizer.param_groups:
            if any(isinstance(value, torch.Tensor) for key, value in group.items() if key != "lr"):
                return "A setting of the optimizer is a tensor."
            if group.get("differentiable"):
                return "It is differentiable."
            for one in group["params"]:
                plain = type(one) in (torch.Tensor, torch.nn.Parameter) and one.layout is torch.strided
                if not plain or one.device.type != self._device_type or not one.is_floating_point():
                    return "A parameter is not of floating point numbers on the GPU, is sparse or is split over ranks."
        return ""

    def _release(self) -> None:
        for optimizer, known in self._graphs.items():
            known.release(optimizer)
        self._graphs.clear()

    def no_effect(self) -> str | None:
        if self._replayed:
            return None
        return f"Optimizer: {self._kept}" if self._kept else f"No {', '.join(_CLASSES)} of torch makes a step."

    def code(self) -> str:
        return (
            'lr = torch.tensor(1e-3, device="cuda")  # a scheduler writes into it\n'
            "optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True, capturable=True)\n"
            "graph = None\n"
            "# in the loop, with optimizer.zero_grad(set_to_none=False), in place of optimizer.step():\n"
            "if step < 3:\n"
            "    optimizer.step()\n"
            "elif graph is None:\n"
            "    graph = torch.cuda.CUDAGraph()\n"
            '    with torch.cuda.graph(graph, capture_error_mode="thread_local"):\n'
            "        optimizer.step()\n"
            "if graph is not None:\n"
            "    graph.replay()\n"
        )


class _Held(NamedTuple):
    """A parameter that is updated, and where all that the update reads and writes lies."""

    parameter: Any
    address: int
    gradient: Any
    gradient_address: int
    state: dict[str, Any]
    tensors: tuple[tuple[str, Any], ...]


class _Update:
    """The captured update of one optimizer, and what it reads and writes: held, so that nothing else gets its place."""

    def __init__(self, optimizer: Any) -> None:
        self._rates: list[Any] = []
        self._values: list[float] = []
        self._replay: Callable[[], object] | None = None
        self._settings: list[dict[str, Any]] = []
        self._held: list[_Held] = []
        self._without_gradient: list[Any] = []
        self._states: Any = None
        self._captures = 0
        self.failure = ""

    @property
    def gradients(self) -> list[Any]:
        """Where the captured update reads them."""
        return [one.gradient for one in self._held]

    def run(self, optimizer: Any, step: Callable[..., Any], capture: Callable[..., Callable[[], object]]) -> bool:
        """One update; whether it was a replay. The first one after a change of settings or tensors is none."""
        import torch

        moved = None if self.failure else self._moved(optimizer)
        if moved is None:
            self._replay = None
            count_steps(optimizer, lambda parameter: parameter.device)
            with self.capturable(optimizer):
                step(optimizer)
            # With the states that the first step makes.
            self._hold(optimizer)
            return False
        self._set_rates(optimizer)
        if moved:
            torch._foreach_copy_([one.gradient for one in moved], [one.parameter.grad for one in moved])
        if self._replay is None:
            self._captures += 1
            if self._captures > _MOST_CAPTURES:
                self.failure = "Its settings or tensors change again and again."
            else:
                self._capture(optimizer, step, capture)
        if self._replay is None:
            with self.capturable(optimizer):
                step(optimizer)
            return False
        self._replay()
        return True

    def _hold(self, optimizer: Any) -> None:
        import torch

        self._held, self._without_gradient = [], []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                gradient, state = parameter.grad, optimizer.state.get(parameter, {})
                if gradient is None:
                    self._without_gradient.append(parameter)
                    continue
                tensors = tuple((key, one) for key, one in state.items() if isinstance(one, torch.Tensor))
                self._held.append(_Held(parameter, parameter.data_ptr(), gradient, gradient.data_ptr(), state, tensors))
        self._states, self._settings = (optimizer.state, len(optimizer.state)), _settings(optimizer)

    def _moved(self, optimizer: Any) -> list[_Held] | None:
        """Those whose gradient lies elsewhere now; None where something else has changed. It is asked in each step, of
        all parameters: it takes a fraction of the time that the fused update takes to collect them."""
        states, count = self._states or (None, 0)
        if states is not optimizer.state or count != len(states) or self._settings != _settings(optimizer):
            return None
        if any(one.grad is not None for one in self._without_gradient):
            return None
        moved = []
        for one in self._held:
            parameter, address, ours, gradient_address, state, tensors = one
            gradient = parameter.grad
            if gradient is None or parameter.data_ptr() != address:
                return None
            for key, tensor in tensors:
                if state.get(key) is not tensor:
                    return None
            if gradient is not ours and gradient.data_ptr() != gradient_address:
                moved.append(one)
        return moved

    def _capture(self, optimizer: Any, step: Callable[..., Any], capture: Callable[..., Callable[[], object]]) -> None:
        theirs = [one.parameter.grad for one in self._held]

        def update() -> None:
            with self.capturable(optimizer):
                step(optimizer)

        try:
            for one in self._held:
                one.parameter.grad = one.gradient
            self._replay = capture(update)
        except RuntimeError as error:
            self.failure = f"{type(error).__name__}: {error}".splitlines()[0]
        finally:
            for one, gradient in zip(self._held, theirs, strict=True):
                one.parameter.grad = gradient

    @contextlib.contextmanager
    def capturable(self, optimizer: Any) -> Iterator[None]:
        """The groups as a captured update needs them; afterwards as they were."""
        self._set_rates(optimizer)
        before = []
        for group, rate in zip(optimizer.param_groups, self._rates, strict=True):
            change = {"fused": True, "foreach": False, "capturable": True, "lr": rate}
            change = {key: value for key, value in change.items() if key in group}
            before.append({key: group[key] for key in change})
            group.update(change)
        warned = getattr(optimizer, "_warned_capturable_if_run_uncaptured", None)
        optimizer._warned_capturable_if_run_uncaptured = True
        try:
            yield
        finally:
            if warned is None:
                del optimizer._warned_capturable_if_run_uncaptured
            else:
                optimizer._warned_capturable_if_run_uncaptured = warned
            for group, values in zip(optimizer.param_groups, before, strict=True):
                group.update(values)

    def _set_rates(self, optimizer: Any) -> None:
        """Learning rates on the GPU, written where they have changed."""
        import torch

        values = [float(group["lr"]) for group in optimizer.param_groups]
        if len(self._rates) != len(values):
            self._rates = [
                torch.full((), value, dtype=torch.float32, device=group["params"][0].device)
                for value, group in zip(values, optimizer.param_groups, strict=True)
            ]
        else:
            for rate, value, before in zip(self._rates, values, self._values, strict=True):
                if value != before:
                    rate.fill_(value)
        self._values = values

    def release(self, optimizer: Any) -> None:
        """Count the steps where the optimizer itself does."""
        import torch

        self._replay, self._held, self._states = None, [], None
        kind = torch.float64 if torch.get_default_dtype() is torch.float64 else torch.float32
        for group in optimizer.param_groups:
            if group.get("fused") or group.get("capturable"):
                continue
            for parameter in group["params"]:
                state = optimizer.state.get(parameter, {})
                if isinstance(state.get("step"), torch.Tensor):
                    state["step"] = state["step"].to("cpu", kind)


def _captured(update: Callable[[], object]) -> Callable[[], object]:
    import torch

    graph = torch.cuda.CUDAGraph()
    # Other threads, such as the one that pins memory, go on.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        update()
    return graph.replay


def _innermost(step: Any) -> Any:
    while hasattr(step, "__wrapped__"):
        step = step.__wrapped__
    return step


def _settings(optimizer: Any) -> list[dict[str, Any]]:
    return [
        {key: len(value) if key == "params" else value for key, value in group.items() if key != "lr"}
        for group in optimizer.param_groups
    ]


REMEDIES: tuple[type[Remedy], ...] = (OptimizerCudaGraph,)
