"""Ranges named after the user's modules, around each module's call, while the profiler records.

A range is called ``tb_dlprof::module::`` plus the module's ``named_modules()`` path (the root's path is empty). The
backward pass needs no hooks: autograd's sequence numbers lead from a backward node to the forward op inside a range.
They never touch a tensor, so the training computes the same numbers with and without them.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.autograd.profiler as autograd_profiler
from torch import nn

from tb_dlprof_plugin.capture.facts.model import Observation, observe
from tb_dlprof_plugin.capture.module_calls import OBSERVED
from tb_dlprof_plugin.capture.wrappers import inner, is_compiled_region
from tb_dlprof_plugin.names.ops import MODULE_PREFIX

_FastRange: Any = getattr(torch._C._profiler, "_RecordFunctionFast", None)
_Range: Any = _FastRange or autograd_profiler.record_function
"""The fast one costs under 1 us, `record_function` about 8. In a trace they are `cpu_op` and `user_annotation`."""


class _Stack(list[tuple[Any, Any]]):
    """The ranges that are open in a thread, the innermost last, and the cycle they belong to."""

    __slots__ = ("generation",)

    def __init__(self) -> None:
        self.generation = 0


class _Open(threading.local):
    """The stack of each thread."""

    def __init__(self) -> None:
        self.stack = _Stack()


class ModuleRanges:
    """The ranges of one model, to which it holds a weak reference.

    Args:
        model: any module; DDP, DataParallel, FSDP and checkpointing wrappers are seen through.
        on_outermost: called before each recorded call of an outermost module; must not raise.

    Raises:
        TypeError: it is not a module.
    """

    def __init__(self, model: nn.Module, on_outermost: Callable[[], None] | None = None) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
        # Observed calls are kept globally: a reference would keep the model and all that it leads to alive.
        self._model = weakref.ref(model)
        self._on_outermost = on_outermost
        self._leave: list[Callable[[], None]] = []
        self.here = _Open()
        self.generation = 0
        self.observation: Observation | None = None
        self.recorded = False

    @property
    def installed(self) -> bool:
        """Whether calls of the model get ranges now."""
        return bool(self._leave)

    def install(self) -> None:
        """Begin to observe all modules, if they are not observed."""
        model = self._model()
        if self._leave or model is None:
            return
        for path, module in walk(model):
            self._leave.append(OBSERVED.observe(_ModuleRange(self, MODULE_PREFIX + path), module))

    def remove(self) -> None:
        """End the observation and close the ranges that this thread left open."""
        leave, self._leave = self._leave, []
        for end in leave:
            end()
        self._drain()

    def new_cycle(self) -> None:
        """Reset the observations of the last recorded cycle."""
        self.generation += 1
        self._drain()
        self.observation = None
        self.recorded = False

    def open(self, observer: _ModuleRange, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Begin a range in this thread."""
        if not autograd_profiler._is_profiler_enabled:
            return
        if self.here.stack.generation != self.generation:
            self._drain()
        stack = self.here.stack
        if not stack:
            if self._on_outermost is not None:
                self._on_outermost()
                if not autograd_profiler._is_profiler_enabled:
                    return
            # A validation pass may come first; the observation is of the training.
            if self.observation is None or not self.observation.training:
                self.observation = observe(module, args, kwargs)
        observer.enter(stack)
        self.recorded = True

    def close(self, observer: _ModuleRange) -> None:
        """End the innermost range of that observer, and those inside it that an exception left open."""
        stack = self.here.stack
        for index in range(len(stack) - 1, -1, -1):
            if stack[index][0] is observer:
                while len(stack) > index:
                    stack.pop()[1].__exit__(None, None, None)
                return

    def _drain(self) -> None:
        stack = self.here.stack
        while stack:
            stack.pop()[1].__exit__(None, None, None)
        stack.generation = self.generation


class _ModuleRange:
    """The range of one module.

    It runs at each call of each module while the profiler records: with a short path for calls inside another, and with
    a range that is used again, since making one takes as long as entering it.
    """

    __slots__ = ("free", "name", "owner")

    def __init__(self, owner: ModuleRanges, name: str) -> None:
        self.owner = owner
        self.name = name
        self.free: list[Any] = []

    def enter(self, stack: _Stack) -> None:
        """Open the range: another one where a call of the module is open already, here or in another thread."""
        try:
            entered = self.free.pop()
        except IndexError:
            entered = _Range(self.name)
        entered.__enter__()
        stack.append((self, entered))

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call begins."""
        if not autograd_profiler._is_profiler_enabled:
            return
        owner = self.owner
        try:
            stack = owner.here.stack
            if stack and stack.generation == owner.generation:
                self.enter(stack)
            else:
                owner.open(self, module, args, kwargs)
        except Exception:
            return

    def after(self, module: nn.Module) -> None:
        """A call ends."""
        try:
            stack = self.owner.here.stack
            if stack and stack[-1][0] is self:
                entered = stack.pop()[1]
                entered.__exit__(None, None, None)
                if _FastRange is not None:
                    self.free.append(entered)
            elif stack:
                self.owner.close(self)
        except Exception:
            return


def walk(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Path and module of everything that gets a range, in the order and under the names of ``named_modules()``.

    Wrappers are passed through, so that the paths are those of the user's own model. Of a compiled module only the
    outermost one gets a range: calls inside are not made by Python.
    """
    yield from _walk(model, "", set())


def _walk(module: nn.Module, path: str, seen: set[int]) -> Iterator[tuple[str, nn.Module]]:
    if id(module) in seen:
        return
    seen.add(id(module))
    held = inner(module)
    if held is not None:
        yield from _walk(held, path, seen)
        return
    if is_compiled_region(module):
        yield path, module
        return
    yield path, module
    if isinstance(module, torch.jit.ScriptModule):
        return
    for name, child in module._modules.items():
        if child is not None:
            yield from _walk(child, f"{path}.{name}" if path else name, seen)
