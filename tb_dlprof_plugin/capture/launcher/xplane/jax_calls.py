"""Passes each call of a function that the script compiles with ``jax.jit`` or ``jax.pmap`` on to a recorder."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.capture.launcher.xplane.call_recorder import CallRecorder

_numbers = itertools.count()


def attach(folder: str) -> None:
    """Install the recorder in this process, for the request in ``folder``.

    Raises:
        Exception: whatever goes wrong; the caller reports it.
    """
    request = RunRequest.read(Path(folder))
    if request.under_nsys:
        return
    profiler = JaxProfiler()
    recorder = CallRecorder(request, Path(folder), profiler)
    recorder.begin()
    _count_calls(recorder)
    _leave_to_script(recorder)


class JaxProfiler:
    """``jax.profiler``, without the frames of Python, which take more time than the rest."""

    framework = "jax"
    unit = "calls of a jitted function"

    def __init__(self) -> None:
        # The script's calls are watched, ours are not.
        self._start, self._stop = jax.profiler.start_trace, jax.profiler.stop_trace

    def start(self, folder: str) -> None:
        """Record from now on."""
        if "profiler_options" in inspect.signature(self._start).parameters:
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            self._start(folder, profiler_options=options)
        else:
            self._start(folder)

    def stop(self) -> None:
        """Write what was recorded into the folder."""
        self._stop()

    def step(self, number: int) -> contextlib.AbstractContextManager[Any]:
        """Marks an iteration."""
        mark: contextlib.AbstractContextManager[Any] = jax.profiler.StepTraceAnnotation("train", step_num=number)
        return mark

    def wait(self, arguments: object) -> None:
        """Wait until the device has computed what a call takes: the results of the iteration before it."""
        for leaf in jax.tree_util.tree_leaves(arguments):
            # A donated array is gone, and what is traced has no value.
            with contextlib.suppress(Exception):
                if isinstance(leaf, jax.Array):
                    leaf.block_until_ready()

    @property
    def runs_ahead(self) -> bool:
        """On a CPU: of a GPU the kernels say when an iteration's work ended."""
        return str(jax.default_backend()) == "cpu"

    def place(self) -> tuple[int, int]:
        """This process among those of the training, and how many they are."""
        return int(jax.process_index()), int(jax.process_count())


class CountedFunction:
    """A jitted function that reports its calls; in everything else the function that JAX made."""

    def __init__(self, jitted: Any, recorder: CallRecorder) -> None:
        self._jitted, self._recorder, self._number = jitted, recorder, next(_numbers)
        with contextlib.suppress(Exception):
            functools.update_wrapper(self, jitted, updated=())
        # As JAX' own: the function that was compiled.
        self.__wrapped__ = getattr(jitted, "__wrapped__", jitted)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._recorder.off:
            return self._jitted(*args, **kwargs)
        return self._recorder.call(self._number, self._jitted, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "_jitted":  # A copy that is not filled yet.
            raise AttributeError(name)
        return getattr(self._jitted, name)

    def __repr__(self) -> str:
        return repr(self._jitted)

    def __reduce__(self) -> Any:
        return _identity, (self._jitted,)

    # `jax.stages.Wrapped` is a protocol that asks the class for these.

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        return self._jitted.lower(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        return self._jitted.trace(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        return self._jitted.eval_shape(*args, **kwargs)

    def clear_cache(self) -> Any:
        return self._jitted.clear_cache()


def _identity(value: Any) -> Any:
    return value


def _count_calls(recorder: CallRecorder) -> None:
    """What the script compiles from now on is counted; JAX' own functions are compiled with its inner ``jit``."""
    for name in ("jit", "pmap"):
        original = getattr(jax, name, None)
        if original is not None:
            setattr(jax, name, _counting(original, recorder))


def _counting(original: Callable[..., Any], recorder: CallRecorder) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if recorder.off:
            return made
        if hasattr(made, "lower"):
            return CountedFunction(made, recorder)
        # A decorator with options: `jax.jit(static_argnums=0)`.
        return lambda fun: CountedFunction(made(fun), recorder)

    return compile


def _leave_to_script(recorder: CallRecorder) -> None:
    """JAX has one profiler: where the script starts it, ours ends first."""
    places: list[Any] = [jax.profiler]
    with contextlib.suppress(ImportError, AttributeError):
        places.append(inspect.getmodule(jax.profiler.start_trace))
    original = jax.profiler.start_trace

    @functools.wraps(original)
    def start_trace(*args: Any, **kwargs: Any) -> Any:
        recorder.leave()
        return original(*args, **kwargs)

    for place in places:
        if getattr(place, "start_trace", None) is original:
            place.start_trace = start_trace
