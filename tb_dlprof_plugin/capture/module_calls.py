"""Observes calls of modules and leaves nothing on them.

A hook on a module would be copied, pickled and exported with it, keeps ``torch.jit.script`` from compiling it and takes
the fast path from ``nn.TransformerEncoderLayer``. A global hook slows down every module, makes torch.compile warn and
causes recompilations. So ``nn.Module.__call__`` is replaced while anybody observes, except while Dynamo compiles and
within compiled modules. Where a module's own ``__call__`` calls that of ``nn.Module``, as the layers of transformers
do, what Dynamo compiles is guarded by the code of that method, and each step would be compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import nn
from torch.compiler import is_compiling

from tb_dlprof_plugin.capture.profiler_turn import PROFILER

_MADE_BY_COMPILE = "dynamo_ctx"
"""An attribute of the module that ``torch.compile`` makes of one."""
_DYNAMO = "torch._dynamo.utils"
"""Stores ``nn.Module.__call__`` at import, and compiles differently if it is another one later."""


class CallObserver(Protocol):
    """Observes calls. What its methods raise goes to the caller of the module."""

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call begins, before all hooks of the module."""

    def after(self, module: nn.Module) -> None:
        """A call ends, after all hooks of the module, also with an exception."""


class ObservedCalls:
    """The calls that observers see, of all modules or of single ones. There is one of it, `OBSERVED`."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[CallObserver, ...]] = {}
        # An id may be that of a new module once the old one is freed.
        self._modules: dict[int, weakref.ref[nn.Module]] = {}
        self._everywhere: list[CallObserver] = []
        self._original: Any = None
        self._replacement: Any = None
        self._compile: Any = None
        self._compile_replacement: Any = None
        self._compilations: Any = None
        self._in_compile = False
        self._gave_way = False

    def observe(self, observer: CallObserver, module: nn.Module | None = None) -> Callable[[], None]:
        """Call the observer at each call of the module; without one, at each call of any module. Of several, the last
        added is called first.

        Returns:
            A function that ends it.
        """
        key = None if module is None else id(module)
        if key is None:
            self._everywhere.append(observer)
        else:
            assert module is not None
            self._modules[key] = weakref.ref(module, functools.partial(self._freed, key))
            self._of[key] = (observer, *self._of.get(key, ()))
        if self._original is None:
            self._install()
        return functools.partial(self._leave, observer, key)

    def _leave(self, observer: CallObserver, key: int | None) -> None:
        if key is None:
            self._everywhere.remove(observer)
        elif left := tuple(one for one in self._of.get(key, ()) if one is not observer):
            self._of[key] = left
        else:
            self._forget(key)
        self._uninstall_unused()

    def pause(self, *_: Any) -> None:
        """Let ``nn.Module.__call__`` be torch's own until `resume`."""
        if nn.Module.__call__ is self._replacement:
            setattr(nn.Module, "__call__", self._original)  # noqa: B010

    def resume(self, *_: Any) -> None:
        """Let observers see calls again; does nothing without an observer."""
        held = self._in_compile or self._gave_way
        if self._original is not None and nn.Module.__call__ is self._original and not held:
            setattr(nn.Module, "__call__", self._replacement)  # noqa: B010 (as a method it must not be assigned to)

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """`pause` for as long as it lasts."""
        inside, self._in_compile = self._in_compile, True
        self.pause()
        try:
            yield
        finally:
            self._in_compile = inside
            self.resume()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """A module finder that finds nothing, but removes the replacement while Dynamo is imported."""
        if name == _DYNAMO:
            # Replaced again at the next module lookup: Dynamo's own imports continue after this one.
            self.pause()
        elif _DYNAMO in sys.modules and hasattr(sys.modules[_DYNAMO], "unpatched_nn_module_call"):
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self)
            if self._original is not None:
                self.resume()
                self._watch_compilations()

    def _freed(self, key: int, _: Any) -> None:
        if not sys.is_finalizing():
            self._forget(key)
            self._uninstall_unused()

    def _forget(self, key: int) -> None:
        self._modules.pop(key, None)
        self._of.pop(key, None)

    def _uninstall_unused(self) -> None:
        if self._original is not None and not self._of and not self._everywhere:
            self._uninstall()

    def _install(self) -> None:
        self._original, self._compile = nn.Module.__call__, torch.compile
        self._replacement = self._make_call(self._original)
        self._compile_replacement = torch.compile = self._make_compile(self._compile)
        self.resume()
        # torch's profiler notes at its first start which function is ``nn.Module.__call__``.
        PROFILER.add(self, on_start=self.pause, after_start=self.resume)
        if _DYNAMO in sys.modules:
            self._watch_compilations()
        else:
            sys.meta_path.insert(0, self)

    def _uninstall(self) -> None:
        self.pause()
        PROFILER.remove(self)
        if torch.compile is self._compile_replacement:
            torch.compile = self._compile
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)
        handler, self._compilations = self._compilations, None
        if handler is not None:
            with contextlib.suppress(Exception):
                handler.remove_start_callback(self._compile_starts)
            with contextlib.suppress(Exception):
                handler.remove_end_callback(self.resume)
        self._original = self._compile = None
        self._gave_way = False

    def _compile_starts(self, args: Any = None, *_: Any) -> None:
        if nn.Module.__call__ is self._replacement and _is_again(args):
            # Perhaps because of the replacement: what was compiled first fits without it.
            self._gave_way = True
        self.pause()
        with contextlib.suppress(Exception):
            _leave_us_alone()

    def _watch_compilations(self) -> None:
        with contextlib.suppress(Exception):
            from torch._dynamo.callback import callback_handler as handler

            handler.register_start_callback(self._compile_starts)
            handler.register_end_callback(self.resume)
            self._compilations = handler

    def _make_call(self, original: Any) -> Callable[..., Any]:
        of, everywhere, aside = self._of, self._everywhere, self._aside

        def run_compiled(module: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
            with aside():
                return original(module, *args, **kwargs)

        # torch's profiler takes the local variable `self` of this function for the module. The module's keyword
        # arguments may have any name.
        def __call__(self: nn.Module, /, *args: Any, **kwargs: Any) -> Any:
            # First, because Dynamo evaluates this condition at compile time: what it compiles has no trace of the rest.
            if is_compiling():
                return original(self, *args, **kwargs)
            compiled = self._compiled_call_impl is not None or _MADE_BY_COMPILE in self.__dict__
            run = run_compiled if compiled else original
            if not everywhere:
                observers = of.get(id(self), ())
                if not observers:
                    return run(self, *args, **kwargs)
                if len(observers) == 1:
                    # As nearly always: the shortest way, since it is part of each call.
                    (observer,) = observers
                    observer.before(self, args, kwargs)
                    try:
                        return run(self, *args, **kwargs)
                    finally:
                        observer.after(self)
            begun: tuple[CallObserver, ...] = tuple(everywhere)
            for observer in begun:
                observer.before(self, args, kwargs)
            # Observers that the others have just added see this call, too.
            observers = of.get(id(self), ())
            for observer in observers:
                observer.before(self, args, kwargs)
            begun += observers
            if not begun:
                return run(self, *args, **kwargs)
            try:
                return run(self, *args, **kwargs)
            finally:
                for observer in reversed(begun):
                    observer.after(self)

        return __call__

    def _make_compile(self, original: Any) -> Any:
        @functools.wraps(original)
        def compile(*args: Any, **kwargs: Any) -> Any:
            # A compiled module keeps the bound ``__call__`` of the module that it was made from.
            with self._aside():
                return original(*args, **kwargs)

        return compile


def _is_again(args: Any) -> bool:
    """Whether Dynamo compiles code that it has compiled before: "3/1" is the second time of the code number 3."""
    _, _, times = str(getattr(args, "compile_id", "")).partition("/")
    return times.partition("_")[0] not in ("", "0")


@functools.cache
def _leave_us_alone() -> None:
    """Behind a graph break Dynamo sees the replacement itself, whose code is that of all modules: it would compile it
    for each, and give up after some."""
    from torch._dynamo import trace_rules

    trace_rules.add("tb_dlprof_plugin")


OBSERVED = ObservedCalls()
