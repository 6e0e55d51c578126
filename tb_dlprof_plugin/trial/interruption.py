"""What is as it was after an interruption of ``tb-dlprof try``: one Ctrl-C counts, and folders are removed again."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def one_interrupt() -> Iterator[Callable[[], None]]:
    """The first of Ctrl-C and SIGTERM raises KeyboardInterrupt, and all others are ignored until the end of the block:
    a second one would stop the cleaning up. Yields a function that has the first one ignored as well."""

    def hold() -> None:
        for number in _NUMBERS:
            signal.signal(number, signal.SIG_IGN)

    def interrupt(*_: Any) -> None:
        hold()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _NUMBERS}
    try:
        yield hold
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class MadeFolders:
    """Folders that were made here, and are removed again where nothing came to be in them."""

    def __init__(self) -> None:
        self._made: list[Path] = []

    def make(self, folder: Path) -> None:
        """Make it with those above it that are missing. Raises OSError."""
        missing = []
        above = folder.absolute()
        while not above.exists():
            missing.append(above)
            above = above.parent
        self._made += reversed(missing)
        folder.mkdir(parents=True, exist_ok=True)

    def remove_empty(self) -> None:
        """Remove those that are empty."""
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):
                folder.rmdir()
