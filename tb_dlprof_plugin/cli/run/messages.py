"""Messages of ``tb-dlprof run`` on standard error, by verbosity."""

from __future__ import annotations

import contextlib
import sys
from enum import IntEnum


class Level(IntEnum):
    """Verbosity levels. Failures are reported on each of them."""

    quiet = 0
    minimal = 1
    normal = 2
    verbose = 3


def tell(line: str = "") -> None:
    """Print a line to standard error, to keep pipes clean."""
    # A closed terminal must not end the process that watches the script.
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
