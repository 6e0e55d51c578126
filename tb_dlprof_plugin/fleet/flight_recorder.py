"""Dumps of PyTorch's flight recorder: the ranks that a job which stands still waits for, and sequence numbers for
recordings that lack them.

A dump holds a rank's last calls of its process groups (``TORCH_NCCL_TRACE_BUFFER_SIZE``) as a pickle of plain
containers or as JSON, in a file ``_dump_<rank>`` or ``nccl_trace_rank_<rank>``. Nothing but containers, texts and
numbers is unpickled. A field that is not what it should be is as if absent.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tb_dlprof_plugin.fleet.matching import DTYPE_MISMATCH, SIZE_MISMATCH, TYPE_MISMATCH
from tb_dlprof_plugin.fleet.operations import operation_of
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation, RankFacts
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.readers.trace_names import DUMP_NAME

_MOST_BYTES = 1 << 28
_LARGEST = 1 << 62
_LONGEST_TEXT = 4096
_EVEN = (Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER, Operation.BROADCAST, Operation.REDUCE)
"""Operations to which all members give buffers of one size."""


class FlightRecordError(VisibleMessage):
    """A file that is no dump of the flight recorder."""


@dataclass(frozen=True, slots=True)
class FlightCall:
    """One call of a process group.

    Attributes:
        group: name of the group on this rank.
        operation: of it; ``name`` as the process group has it, such as "nccl:all_reduce".
        sequence: number of the collective in its group.
        sizes, dtypes: of its inputs.
        state: "scheduled", "started" or "completed".
        created_ns: unix time of the CPU's call.
        point_to_point: a send or receive, whose numbers count apart.
    """

    group: str
    operation: Operation
    name: str
    sequence: int
    sizes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    state: str
    created_ns: int
    point_to_point: bool


@dataclass(frozen=True, slots=True)
class FlightRecord:
    """A rank's dump: ``members`` and ``descriptions`` of its groups by name, and its calls in order."""

    rank: int
    members: dict[str, tuple[int, ...]]
    descriptions: dict[str, str]
    calls: tuple[FlightCall, ...]


@dataclass(frozen=True, slots=True)
class RankBehind:
    """A rank that has not made a call that others wait in, and itself waits for no such rank.

    Attributes:
        rank: it.
        waiting: ranks that wait for it, directly or through others.
        group: description of a group in which they wait. sequence: number of the first call that it has not made there.
    """

    rank: int
    waiting: tuple[int, ...]
    group: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Members of a group that disagree about the call of one number; ``word`` is the flight recorder's."""

    word: str
    group: str
    sequence: int
    ranks: tuple[int, ...]


def read_dump(path: str | os.PathLike[str], rank: int | None = None) -> FlightRecord:
    """A rank's dump; the rank is in the file's name where it is not given.

    Raises:
        FlightRecordError: the file is no dump, or does not say its rank.
    """
    source = Path(path)
    named = DUMP_NAME.search(source.name)
    own = rank if rank is not None else int(named["rank"]) if named else None
    try:
        if source.stat().st_size > _MOST_BYTES:
            raise FlightRecordError(f"{source} is larger than any dump of the flight recorder")
        data = source.read_bytes()
        content = json.loads(data) if data[:1] == b"{" else plain_pickle(data)
    except OSError as error:
        raise FlightRecordError(f"{source} cannot be read ({error.strerror})") from None
    except Exception as error:  # a damaged pickle raises errors of any kind
        raise FlightRecordError(f"{source} is no dump of the flight recorder ({error})") from None
    if own is None:
        raise FlightRecordError(f"{source} does not say its rank; name it _dump_<rank>")
    if not isinstance(content, dict) or not isinstance(content.get("entries"), list):
        raise FlightRecordError(f"{source} is no dump of the flight recorder: it has no entries")
    config = content.get("pg_config")
    groups = [group for group in config.values() if isinstance(group, dict)] if isinstance(config, dict) else []
    fields = _Fields(len(data))
    return FlightRecord(
        rank=own,
        members={fields.text(group.get("name")): fields.ranks(group.get("ranks")) for group in groups},
        descriptions={fields.text(group.get("name")): fields.text(group.get("desc")) for group in groups},
        calls=tuple(filter(None, (_call(entry, fields) for entry in content["entries"]))),
    )


def dumps_beside(directory: str | os.PathLike[str]) -> list[FlightRecord]:
    """The dumps in a directory, by rank; what is no dump is passed over."""
    by_rank: dict[int, FlightRecord] = {}
    for path in sorted(Path(directory).iterdir()):
        if path.is_file() and DUMP_NAME.search(path.name):
            try:
                record = read_dump(path)
            except FlightRecordError:
                continue
            by_rank.setdefault(record.rank, record)
    return [by_rank[rank] for rank in sorted(by_rank)]


def ranks_behind(records: Sequence[FlightRecord]) -> list[RankBehind]:
    """The ranks that a job which stands still waits for, those that most wait for first.

    A rank waits for a member of its group that has not made the call which it has not completed. A rank that is waited
    for and waits for no other is behind by itself; where ranks wait for each other in a circle, all of these are.
    """
    reached: dict[tuple[int, int], int] = {}
    own_groups = _group_numbers(records)
    for record, own in zip(records, own_groups, strict=True):
        for call in _collectives(record):
            key = (record.rank, own[call.group])
            reached[key] = max(reached.get(key, -1), call.sequence)
    recorded = {record.rank for record in records}
    with_dump = {
        number: sorted(recorded.intersection(record.members[name]))
        for record, own in zip(records, own_groups, strict=True)
        for name, number in own.items()
    }
    waits: dict[int, dict[int, tuple[str, int]]] = {}
    for record, own in zip(records, own_groups, strict=True):
        for call in _collectives(record):
            if call.state == "completed":
                continue
            group = own[call.group]
            for other in with_dump[group]:
                if reached.get((other, group), -1) < call.sequence:
                    where = (record.descriptions.get(call.group) or call.group, call.sequence)
                    known = waits.setdefault(record.rank, {}).get(other)
                    if known is None or where[1] < known[1]:
                        waits[record.rank][other] = where
    waited = {other for others in waits.values() for other in others}
    roots = [rank for rank in waited if rank not in waits] or sorted(waited)
    result = []
    for rank in roots:
        direct = [others[rank] for others in waits.values() if rank in others]
        group_name, sequence = min(direct, key=lambda one: one[1])
        result.append(RankBehind(rank, tuple(sorted(_waiting_for(rank, waits))), group_name, sequence))
    return sorted(result, key=lambda one: (-len(one.waiting), one.rank))


def contradictions(records: Sequence[FlightRecord]) -> list[Contradiction]:
    """Calls of one number about which the members of a group disagree, in the words of the flight recorder."""
    calls: dict[tuple[int, int], dict[int, tuple[FlightCall, str]]] = {}
    for record, own in zip(records, _group_numbers(records), strict=True):
        for call in _collectives(record):
            where = record.descriptions.get(call.group) or call.group
            calls.setdefault((own[call.group], call.sequence), {}).setdefault(record.rank, (call, where))
    result = []
    for (_, sequence), by_rank in calls.items():
        made = [call for call, _ in by_rank.values()]
        word = ""
        if len({call.operation for call in made}) > 1:
            word = TYPE_MISMATCH
        elif made[0].operation in _EVEN and len({call.sizes for call in made}) > 1:
            word = SIZE_MISMATCH
        elif len({call.dtypes for call in made}) > 1:
            word = DTYPE_MISMATCH
        if word:
            result.append(Contradiction(word, next(iter(by_rank.values()))[1], sequence, tuple(sorted(by_rank))))
    return result


def with_sequences(facts: RankFacts, record: FlightRecord) -> RankFacts:
    """The facts with the sequence numbers of a dump of the same process, where the recording has none.

    A collective is the one that the process group noted last, of its group and operation, before the CPU launched it.
    """
    calls = facts.collectives
    by_kind: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for call in _collectives(record):
        by_kind.setdefault((call.group, int(call.operation)), []).append((call.created_ns, call.sequence))
    sequence = calls.sequence.copy()
    for (name, operation), noted in by_kind.items():
        groups = [index for index, group in enumerate(facts.groups) if group.name == name]
        rows = np.flatnonzero(
            np.isin(calls.group, groups)
            & (calls.operation == operation)
            & (calls.sequence == UNKNOWN)
            & (calls.launched_ns != UNKNOWN)
        )
        noted.sort()
        created = np.array([time for time, _ in noted], dtype=np.int64)
        at = np.searchsorted(created, facts.base_ns + calls.launched_ns[rows] + 999, side="right") - 1
        numbers = np.array([number for _, number in noted], dtype=np.int64)
        # One note is of one call: a second one comes before the first note of the buffer, or after the last.
        own = (at >= 0) & (np.bincount(np.maximum(at, 0), minlength=len(noted))[np.maximum(at, 0)] == 1)
        sequence[rows[own]] = numbers[at[own]]
    return dataclasses.replace(facts, collectives=dataclasses.replace(calls, sequence=sequence))


_OBJECTS = frozenset(
    pickle.GLOBAL + pickle.STACK_GLOBAL + pickle.INST + pickle.OBJ + pickle.NEWOBJ + pickle.NEWOBJ_EX + pickle.REDUCE
    + pickle.BUILD + pickle.PERSID + pickle.BINPERSID + pickle.EXT1 + pickle.EXT2 + pickle.EXT4
    + pickle.BYTEARRAY8 + pickle.NEXT_BUFFER + pickle.READONLY_BUFFER
)  # fmt: skip
"""Operations that look up, make or fill anything but containers, texts and numbers, or reserve memory by a number."""


def plain_pickle(data: bytes) -> Any:
    """What the pickle holds.

    Raises:
        Exception: of any kind, where it is damaged or holds anything else.
    """
    return _Plain(io.BytesIO(data)).load()


def _refuse(unpickler: pickle.Unpickler) -> None:
    raise pickle.UnpicklingError("it holds more than containers, texts and numbers")


class _Plain(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Callable[[pickle.Unpickler], None]]] = {
        **pickle._Unpickler.dispatch,
        **dict.fromkeys(_OBJECTS, _refuse),
    }

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}")


@dataclass(slots=True)
class _Fields:
    """Reads fields of the file: another value than the field can have is as if absent.

    ``room`` is how many numbers and characters of lists are still taken, as many as the file has bytes: a pickle can
    name one long list again and again.
    """

    room: int

    def text(self, value: Any) -> str:
        """Of a name, which some versions write as a number."""
        if self.number(value) is not None:
            return str(value)
        return value if isinstance(value, str) and len(value) <= _LONGEST_TEXT else ""

    def number(self, value: Any) -> int | None:
        """Not below 0, and none that 64 bits do not hold."""
        return value if type(value) is int and 0 <= value < _LARGEST else None

    def ranks(self, value: Any) -> tuple[int, ...]:
        """Of a list of numbers, or of its text."""
        if not isinstance(value, str):
            return self.numbers(value)
        if not self._takes(len(value)):
            return ()
        return tuple(int(number) for number in re.findall(r"(?<!\d)\d{1,9}(?!\d)", value))

    def numbers(self, value: Any) -> tuple[int, ...]:
        """Of a list that holds nothing else."""
        if not isinstance(value, (list, tuple)) or not self._takes(len(value)):
            return ()
        return tuple(value) if all(self.number(one) is not None for one in value) else ()

    def list(self, value: Any) -> Sequence[Any]:
        """A list with whatever it holds."""
        return value if isinstance(value, (list, tuple)) and self._takes(len(value)) else ()

    def _takes(self, count: int) -> bool:
        self.room -= count
        return self.room >= 0


def _collectives(record: FlightRecord) -> Iterable[FlightCall]:
    return (call for call in record.calls if not call.point_to_point and call.group in record.members)


def _group_numbers(records: Sequence[FlightRecord]) -> list[dict[str, int]]:
    """Of each record, by name, the numbers of its groups: one for all groups of the same members."""
    numbers: dict[tuple[int, ...], int] = {}
    return [
        {name: numbers.setdefault(members, len(numbers)) for name, members in record.members.items()}
        for record in records
    ]


def _waiting_for(rank: int, waits: dict[int, dict[int, tuple[str, int]]]) -> set[int]:
    waiting: set[int] = set()
    further = {rank}
    while further:
        further = {own for own, others in waits.items() if further & others.keys()} - waiting
        waiting |= further
    return waiting - {rank}


def _call(entry: Any, fields: _Fields) -> FlightCall | None:
    if not isinstance(entry, dict):
        return None
    group, name = entry.get("process_group"), fields.text(entry.get("profiling_name"))
    number = fields.number(entry.get("collective_seq_id"))
    if not isinstance(group, (list, tuple)) or not group or not name or number is None:
        return None
    operation = operation_of(name.partition(" ")[0])
    return FlightCall(
        group=fields.text(group[0]),
        operation=operation,
        name=name,
        sequence=number,
        sizes=tuple(map(fields.numbers, fields.list(entry.get("input_sizes")))),
        dtypes=tuple(map(fields.text, fields.list(entry.get("input_dtypes")))),
        state=fields.text(entry.get("state")),
        created_ns=fields.number(entry.get("time_created_ns")) or 0,
        point_to_point=bool(entry.get("is_p2p")) or operation in (Operation.SEND, Operation.RECEIVE),
    )
