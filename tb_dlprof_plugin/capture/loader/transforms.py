"""Times the transforms of a dataset by class, in the batches in which it is switched on.

Found are lists called ``transforms``, as torchvision's and albumentations' ``Compose`` have them, and single objects
called ``transform``, in the dataset, its attributes and the datasets inside of it. A class is timed by its
``__call__``, so that an object stays what it is; a plain function by a function that takes its place in the list.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from typing import Any

_NAMES = ("transform", "transforms", "target_transform")
_DEEPEST, _MOST = 5, 64
_FUNCTIONS = (type(lambda: None), type(len), functools.partial)


class TransformClock:
    """Of one process.

    Attributes:
        times: by name [calls, wall ns, CPU ns], without the time of transforms inside.
    """

    def __init__(self, dataset: Any) -> None:
        self.times: dict[str, list[int]] = {}
        self._inside: list[list[int]] = []
        self._lists: list[list[Any]] = []
        self._kinds: dict[type, str] = {}
        self._functions: list[tuple[list[Any], int, Any]] = []
        self._undo: list[Callable[[], None]] = []
        self._search(dataset, set(), 0)

    def __bool__(self) -> bool:
        return bool(self._kinds or self._functions)

    def start(self) -> None:
        """Begin to time them."""
        # Before one is changed that another one inherits.
        originals = [(kind, name, kind.__call__) for kind, name in self._kinds.items()]
        for kind, name, original in originals:
            with contextlib.suppress(AttributeError, TypeError):
                own = "__call__" in vars(kind)
                setattr(kind, "__call__", self._timed(name, original))  # noqa: B010 (a method)
                self._undo.append(functools.partial(_put_back, kind, original if own else None))
        for steps, at, function in self._functions:
            if at < len(steps) and steps[at] is function:
                steps[at] = timed = self._timed(_name_of(function), function)
                self._undo.append(functools.partial(_replace, steps, at, timed, function))

    def stop(self) -> None:
        """Everything is as before `start`."""
        while self._undo:
            self._undo.pop()()
        self._inside.clear()

    def _timed(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        inside = self._inside

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            spent = [0, 0]
            inside.append(spent)
            cpu, begin = time.thread_time_ns(), time.perf_counter_ns()
            try:
                return original(*args, **kwargs)
            finally:
                took, on_cpu = time.perf_counter_ns() - begin, time.thread_time_ns() - cpu
                if inside and inside[-1] is spent:
                    inside.pop()
                total = self.times.setdefault(name, [0, 0, 0])
                total[0] += 1
                total[1] += took - spent[0]
                total[2] += on_cpu - spent[1]
                if inside:
                    inside[-1][0] += took
                    inside[-1][1] += on_cpu

        return call

    def _search(self, owner: Any, seen: set[int], depth: int) -> None:
        if depth > _DEEPEST or id(owner) in seen or len(self._kinds) + len(self._functions) >= _MOST:
            return
        seen.add(id(owner))
        try:
            held = dict(vars(owner))
        except TypeError:
            return
        for name, value in held.items():
            steps = value if name == "transforms" and isinstance(value, (list, tuple)) else None
            if steps is not None:
                for at, one in enumerate(steps):
                    self._add(one, steps, at)
                    self._search(one, seen, depth + 1)
            elif name in _NAMES and value is not None:
                inner = getattr(value, "transforms", None)
                # A list of transforms, or a pair of one for inputs and one for targets, is timed by what it holds.
                if not isinstance(inner, (list, tuple)) and not any(hasattr(value, one) for one in _NAMES):
                    self._add(value, None, 0)
                self._search(value, seen, depth + 1)
            elif name in ("dataset", "_dataset") or _has_list(value):
                self._search(value, seen, depth + 1)
            elif name == "datasets" and isinstance(value, (list, tuple)):
                for one in value:
                    self._search(one, seen, depth + 1)

    def _add(self, one: Any, steps: Any, at: int) -> None:
        if isinstance(one, _FUNCTIONS):
            if isinstance(steps, list):
                self._functions.append((steps, at, one))
        elif callable(one):
            self._kinds.setdefault(type(one), type(one).__name__)


def _has_list(value: Any) -> bool:
    """Whether it is a ``Compose``, whatever the dataset calls it."""
    try:
        return isinstance(vars(value).get("transforms"), (list, tuple))
    except TypeError:
        return False


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__qualname__", "function")).replace("<locals>.", "")


def _put_back(kind: Any, original: Any) -> None:
    if original is None:
        del kind.__call__
    else:
        kind.__call__ = original


def _replace(steps: list[Any], at: int, timed: Any, original: Any) -> None:
    if at < len(steps) and steps[at] is timed:
        steps[at] = original
