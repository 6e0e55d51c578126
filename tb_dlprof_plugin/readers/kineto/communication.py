"""What process groups record of their calls: ``record_param_comms`` on the CPU, and the same arguments on kernels.

Kernels lack the arguments now and then (Kineto before 2026-04), and in files of torch before 2.2 always: each is read
for itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_dlprof_plugin.model.process_groups import ProcessGroup
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import CommunicationEvents, Ints
from tb_dlprof_plugin.readers.kineto.process_groups import members_of, text_of, whole_number

_LARGEST = 2**62 - 1
_LARGEST_RANK = 2**31 - 1
_NO_CALLS = ("wait", "init")
"""What the process group notes besides its calls."""


class CommunicationBuilder:
    """Columns under construction."""

    def __init__(self, strings: StringTable) -> None:
        self._strings = strings
        self._rows: list[tuple[int, ...]] = []
        self._group_ids: dict[tuple[str, str, str], int] = {}
        self._indexes: dict[tuple[str, str, tuple[int, ...]], int] = {}
        self.groups: list[ProcessGroup] = []

    def add(self, start_ns: Ints, thread: Ints, device: Ints, stream: Ints, args: list[Any]) -> None:
        """Takes in events that have the arguments; ``thread`` is -1 for kernels, ``device`` and ``stream`` for ops."""
        for *place, arg in zip(start_ns.tolist(), thread.tolist(), device.tolist(), stream.tolist(), args, strict=True):
            name = text_of(arg.collective)
            if name in _NO_CALLS:
                continue
            peers = (whole_number(one, _LARGEST_RANK) for one in (arg.source_rank, arg.target_rank))
            self._rows.append(
                (
                    *place,
                    self._strings.add(name),
                    self._group(arg),
                    whole_number(arg.communication_sequence, _LARGEST),
                    whole_number(arg.elements_in, _LARGEST),
                    whole_number(arg.elements_out, _LARGEST),
                    self._strings.add(text_of(arg.dtype)),
                    max(peers),
                )
            )

    def events(self) -> CommunicationEvents:
        """All of them, in the order of the file."""
        table = np.array(self._rows, dtype=np.int64).reshape(-1, len(CommunicationEvents.__slots__))
        return CommunicationEvents(*(table[:, column].copy() for column in range(table.shape[1])))

    def _group(self, arg: Any) -> int:
        name, description = text_of(arg.group_name), text_of(arg.group_description)
        ranks = arg.group_ranks if isinstance(arg.group_ranks, (str, list)) else ""
        if not name and not ranks:
            return -1
        key = (name, description, str(ranks))
        found = self._group_ids.get(key)
        if found is None:
            members = members_of(ranks, arg.group_size, arg.rank_start, arg.rank_stride)
            found = self._find(ProcessGroup(name, description, members))
            self._group_ids[key] = found
        return found

    def _find(self, group: ProcessGroup) -> int:
        """Its index; a kernel's list of ranks may be cut where the op's is not."""
        key = (group.name, group.description, () if group.name else tuple(group.members))
        index = self._indexes.setdefault(key, len(self.groups))
        if index == len(self.groups):
            self.groups.append(group)
        elif len(group.members) > len(self.groups[index].members):
            self.groups[index] = group
        return index
