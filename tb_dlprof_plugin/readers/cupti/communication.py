"""NCCL's calls of one process as communication events, its communicators as process groups.

Sizes and data types stand in the ranges of the calls themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tb_dlprof_plugin.model.process_groups import ProcessGroup
from tb_dlprof_plugin.model.timeline import CommunicationEvents
from tb_dlprof_plugin.readers.cupti.recording import Communicator, CuptiRecording
from tb_dlprof_plugin.readers.nvtx.emit_nvtx import Emitted


def process_groups(communicators: Sequence[Communicator], rank_of: Mapping[int, int]) -> list[ProcessGroup]:
    """The communicators, with their members where every one's process is in the recording.

    Args:
        communicators: of the recording.
        rank_of: the global rank of each process, where it is known.
    """
    result = []
    for communicator in communicators:
        place = {at: rank_of[process] for process, at in communicator.rank_of.items() if process in rank_of}
        whole = communicator.size > 0 and sorted(place) == list(range(communicator.size))
        members = tuple(place[at] for at in range(communicator.size)) if whole else ()
        result.append(ProcessGroup(f"NCCL {communicator.id % 2**64:x}", members=members))
    return result


def communications_of(
    recording: CuptiRecording, key: int, threads: Mapping[int, int], first: int, groups: Sequence[ProcessGroup]
) -> CommunicationEvents:
    """The calls of one process.

    Args:
        recording: of all processes.
        key: of the process.
        threads: its threads' numbers, by their keys.
        first: the time from which it counts.
        groups: those of the communicators.
    """
    calls = recording.nccl
    rows = np.flatnonzero((calls.process == key) & np.isin(calls.thread, list(threads)))
    if not len(rows):
        return CommunicationEvents.none()
    strings = recording.tables.strings
    texts = [recording.texts[text] for text in calls.text[rows].tolist()]
    peers = []
    for group, peer in zip(calls.communicator[rows].tolist(), calls.peer[rows].tolist(), strict=True):
        members = groups[group].members
        peers.append(members[peer] if 0 <= peer < len(members) else -1)
    unknown = np.full(len(rows), -1, dtype=np.int64)
    names = [strings.add(text.name if isinstance(text, Emitted) else text) for text in texts]
    return CommunicationEvents(
        start_ns=calls.start_ns[rows] - first,
        thread=np.array([threads[thread_key] for thread_key in calls.thread[rows].tolist()], dtype=np.int64),
        device=unknown,
        stream=unknown,
        name=np.array(names, dtype=np.int64),
        group=calls.communicator[rows],
        sequence=calls.number[rows],
        elements_in=unknown,
        elements_out=unknown,
        dtype=np.full(len(rows), strings.add(""), dtype=np.int64),
        peer=np.array(peers, dtype=np.int64),
    )
