"""How much ``tb-dlprof run`` says on standard error."""

from __future__ import annotations

from enum import IntEnum


class Level(IntEnum):
    """Verbosity levels. Failures are reported on each of them."""

    quiet = 0
    minimal = 1
    normal = 2
    verbose = 3
