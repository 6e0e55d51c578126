"""The values that were used last, each made once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class LastUsed(Generic[_Value]):
    """Values by key that weigh ``most`` together: those that were used longest ago make room.

    Safe to call from several threads.

    Args:
        most: the weight of all.
        weight: of a value; 1 by default, so that ``most`` is their number.
    """

    def __init__(self, most: int, weight: Callable[[_Value], int] = lambda _: 1) -> None:
        self._most, self._weight = most, weight
        self._weighs = 0
        self._values: OrderedDict[Hashable, _Value] = OrderedDict()
        self._being_made: dict[Hashable, Future[_Value]] = {}
        self._lock = threading.Lock()

    def get(
        self, key: Hashable, make: Callable[[], _Value], is_kept: Callable[[_Value], bool] = lambda _: True
    ) -> _Value:
        """The value of a key, made where there is none.

        Threads that ask while it is made wait for it, and get the same value or error: the interpreter has one lock, so
        making it in each of them would take each as long as making it for all. ``make`` must not ask for its own key.

        ``is_kept`` says of a value that was made whether the next question gets it, too.
        """
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            waiting = self._being_made.get(key)
            if waiting is None:
                made: Future[_Value] = Future()
                self._being_made[key] = made
        if waiting is not None:
            return waiting.result()
        try:
            value = make()
            if is_kept(value):
                self.keep(key, value)
            made.set_result(value)
            return value
        except BaseException as error:
            made.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._being_made[key]

    def known(self, key: Hashable) -> _Value | None:
        """The value of a key; None where there is none."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: Hashable, value: _Value) -> None:
        """Makes it the value of a key."""
        with self._lock:
            self._drop(key)
            self._values[key] = value
            self._weighs += self._weight(value)
            while self._weighs > self._most:
                self._drop(next(iter(self._values)))

    def _drop(self, key: Hashable) -> None:
        if key in self._values:
            self._weighs -= self._weight(self._values.pop(key))
