"""Passes each call of a ``tf.function`` on to a recorder: of Keras' training step, and of a loop written by hand."""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from pathlib import Path
from typing import Any

import tensorflow as tf

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.capture.launcher.xplane.call_recorder import CallRecorder


def attach(folder: str) -> None:
    """Install the recorder in this process, for the request in ``folder``.

    Raises:
        Exception: whatever goes wrong; the caller reports it.
    """
    request = RunRequest.read(Path(folder))
    if request.under_nsys:
        return
    recorder = CallRecorder(request, Path(folder), TensorFlowProfiler())
    recorder.begin()
    _count_calls(recorder)
    _leave_to_script(recorder)


class TensorFlowProfiler:
    """``tf.profiler.experimental``."""

    framework = "tensorflow"
    unit = "calls of a tf.function"
    runs_ahead = False

    def __init__(self) -> None:
        # The script's calls are watched, ours are not.
        self._start, self._stop = tf.profiler.experimental.start, tf.profiler.experimental.stop

    def start(self, folder: str) -> None:
        """Record from now on."""
        self._start(folder)

    def stop(self) -> None:
        """Write what was recorded into the folder."""
        self._stop()

    def step(self, number: int) -> contextlib.AbstractContextManager[Any]:
        """Marks an iteration."""
        mark: contextlib.AbstractContextManager[Any] = tf.profiler.experimental.Trace("train", step_num=number, _r=1)
        return mark

    def wait(self, arguments: object) -> None:
        """Wait until the devices have computed what was launched."""
        from tensorflow.python.eager import context

        context.context().sync_executors()

    def place(self) -> tuple[int, int]:
        """This process among those of ``TF_CONFIG``, and how many they are."""
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        cluster = resolver.cluster_spec().as_dict()
        workers = [*cluster.get("chief", []), *cluster.get("worker", [])]
        if len(workers) < 2 or resolver.task_id is None:
            return 0, 1
        before = len(cluster.get("chief", [])) if resolver.task_type == "worker" else 0
        return before + int(resolver.task_id), len(workers)


def _count_calls(recorder: CallRecorder) -> None:
    """One class has all functions, whenever they are made."""
    function_class: Any = type(tf.function(lambda: None))
    original = function_class.__call__
    numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
    made = itertools.count()

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.off:
            return original(self, *args, **kwargs)
        number = numbers.get(self)
        if number is None:
            number = numbers[self] = next(made)
        return recorder.call(number, functools.partial(original, self), args, kwargs)

    function_class.__call__ = __call__


def _leave_to_script(recorder: CallRecorder) -> None:
    """TensorFlow has one profiler: where the script or a callback of Keras starts it, ours ends first."""
    from tensorflow.python.profiler import profiler_v2

    original = profiler_v2.start

    @functools.wraps(original)
    def start(*args: Any, **kwargs: Any) -> Any:
        recorder.leave()
        return original(*args, **kwargs)

    for place in (profiler_v2, tf.profiler.experimental):
        if getattr(place, "start", None) is original:
            place.start = start
