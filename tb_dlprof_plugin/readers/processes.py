"""What is said of a file that holds several processes."""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.model.timeline import TraceNote

_MOST_NAMED = 8


def processes_note(pids: Sequence[str]) -> TraceNote:
    """The processes of a file that are ranks, in the order of the ranks, none of which the file says."""
    text = (
        f"The file holds {len(pids)} processes, each of which is a rank: {_named(pids)}, from rank 0 on in this order. "
        "--rank shows another than the first."
    )
    return TraceNote("several_processes", text, len(pids))


def left_out_note(pids: Sequence[str]) -> TraceNote:
    """Processes of a file that are no ranks, because others of the file used a GPU."""
    who, are = ("Process", "is") if len(pids) == 1 else ("Processes", "are")
    text = (
        f"{who} {_named(pids)} of the file used no GPU, and {are} left out, because others did; record it alone to see "
        "what it did."
    )
    return TraceNote("processes_left_out", text, len(pids))


def _named(pids: Sequence[str]) -> str:
    more = f" and {len(pids) - _MOST_NAMED} more" if len(pids) > _MOST_NAMED else ""
    return ", ".join(pids[:_MOST_NAMED]) + more
