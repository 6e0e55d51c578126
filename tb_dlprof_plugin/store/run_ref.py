"""What names one stored profile."""

from __future__ import annotations

import msgspec


class RunRef(msgspec.Struct, frozen=True):
    """What names one profile: the TensorBoard run, the training process in it, its rank and the profiling cycle."""

    run: str
    session: str
    rank: int
    cycle: int
