"""What an engine is, and what it gives for an item whose function failed; the one that works in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_LONGEST = 1000


class EngineError(Exception):
    """The engine cannot work at all: no scheduler, workers without what they need. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an item has no result; ``died``: its process was killed or lost, each time it was tried."""

    why: str
    died: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """An exception's type and message, cut to a length that a scheduler may carry."""
        return cls(f"{type(error).__name__}: {error}"[:_LONGEST])


class Engine(Protocol):
    """Applies a function to items, in any order and on any machine."""

    def map_unordered(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R | Failure]]:
        """Each item once with the function's result, as they come.

        An exception of the function, or the death of its process, becomes a `Failure` and ends nothing else. Function,
        items and results are pickled, and are to be small: data is read and written where the function runs.

        Raises:
            EngineError: nothing can run.
        """
        ...


class Here:
    """Applies the function in this process, one item after the other: see `Engine`."""

    def map_unordered(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R | Failure]]:
        """In the order of the items."""
        for item in items:
            yield item, _result(function, item)


def _result(function: Callable[[T], R], item: T) -> R | Failure:
    try:
        return function(item)
    except Exception as error:
        return Failure.of(error)
