"""How ``tb-dlprof run`` speaks: on standard error, a sentence at a time, as much as was asked for."""

from __future__ import annotations

import contextlib
import sys
from enum import IntEnum


class Level(IntEnum):
    """How much is said. Whatever went wrong is said on each of them."""

    quiet = 0
    minimal = 1
    normal = 2
    verbose = 3


def tell(line: str = "") -> None:
    """Print a line to standard error, where it is in nobody's pipe."""
    # A terminal that is gone must not end what watches the script.
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
