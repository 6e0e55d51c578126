"""The runs of a logdir, for the pickers: from the summary metadata alone, without decoding a profile."""

from __future__ import annotations

import msgspec


class RunEntry(msgspec.Struct, frozen=True):
    """One (run, session, rank); ``cycles`` are ascending. Unknown facts are None.

    ``world_size`` is that of the job, of which not all ranks need be here. ``recorded_iteration_ns`` is the mean
    recorded step, the profiler's time included. ``unreadable`` says why its last profile cannot be read, where that is
    known; a page that is not told which run to show takes another.
    """

    run: str
    session: str
    rank: int
    cycles: list[int]
    model: str | None
    precision: str | None
    device: str | None
    created_unix_ns: int | None
    iterations: int | None
    recorded_iteration_ns: int | None
    world_size: int | None = None
    unreadable: str = ""


class RunIndex(msgspec.Struct, frozen=True):
    """``runs`` in natural order of run, then session, rank: from the ``offset``-th on as many as fit into an answer.

    There are ``total``; the page asks for the next ones until it has all. ``revision`` changes with any of them, those
    beyond this answer too; it is empty in the answers that continue the first. ``import_command`` makes runs of the
    sessions of TensorFlow's and JAX' profilers that lie in the log directory and are no runs yet; "" without any.
    """

    plugin_version: str
    logdir: str
    runs: list[RunEntry]
    offset: int
    total: int
    revision: str = ""
    import_command: str = ""
