"""Which processes of a recording become Timelines, and which rank each of them is."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.timeline import TraceNote
from tb_dlprof_plugin.readers.cupti.recording import CuptiRecording, ProcessFacts
from tb_dlprof_plugin.readers.processes import left_out_note, processes_note


def processes(recording: CuptiRecording) -> tuple[list[int], list[TraceNote]]:
    """The keys of the processes that become Timelines, in the order of their ranks, and notes on which these are."""
    worked = set(np.unique(recording.activities.process).tolist())
    named = set(np.unique(recording.ranges.process).tolist())
    kept = worked or named or set(np.unique(recording.calls.process).tolist())
    facts = recording.processes
    keys = sorted(kept, key=lambda key: (_rank(facts.get(key)), key))
    others = sorted(named - kept)
    notes = [left_out_note(_pids(others, recording))] if others else []
    if len(keys) > 1 and not _ranks_are_recorded(keys, recording):
        notes.append(processes_note(_pids(keys, recording)))
    return keys, notes


def _pids(keys: list[int], recording: CuptiRecording) -> list[str]:
    return [str(recording.processes.get(key, ProcessFacts()).pid or "unknown") for key in keys]


def _rank(facts: ProcessFacts | None) -> int:
    return facts.rank if facts is not None and facts.rank is not None else -1


def rank_numbers(keys: list[int], recording: CuptiRecording) -> dict[int, int]:
    """The rank of each process, as `tb_dlprof_plugin.analysis` numbers them; none where one process says none."""
    if _ranks_are_recorded(keys, recording):
        return {key: _rank(recording.processes.get(key)) for key in keys}
    return {key: place for place, key in enumerate(keys)} if len(keys) > 1 else {}


def _ranks_are_recorded(keys: list[int], recording: CuptiRecording) -> bool:
    own = [_rank(recording.processes.get(key)) for key in keys]
    return min(own) >= 0 and len(set(own)) == len(own)
