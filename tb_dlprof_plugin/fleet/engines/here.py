"""Applies the function in this process, one item after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tb_dlprof_plugin.fleet.engines.engine import Failure, R, T


class Here:
    """See `Engine`."""

    def map_unordered(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R | Failure]]:
        """In the order of the items."""
        for item in items:
            yield item, _result(function, item)


def _result(function: Callable[[T], R], item: T) -> R | Failure:
    try:
        return function(item)
    except Exception as error:
        return Failure.of(error)
