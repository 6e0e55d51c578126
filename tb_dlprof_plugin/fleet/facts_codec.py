"""Facts of a rank to bytes and back: at most 200 kB for ten iterations of 2,000 collectives.

A column is stored as differences that are small or repeat, byte by byte of equal weight, and deflated. What follows
from other columns is stored as the difference to it: a call mostly starts when the work and the idle time since the
call before are over. Calls of each step are deflated by themselves: of a job of thousands of ranks few steps are read.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ParamSpec, TypeAlias, TypeVar

import msgspec
import numpy as np

from tb_dlprof_plugin.fleet.facts_check import check, columns_of, fits, names_of
from tb_dlprof_plugin.fleet.facts_size import sizes_of_parts
from tb_dlprof_plugin.fleet.packed_columns import NO_NUMBERS, PackedColumn, numbers_of, packed, rows_of
from tb_dlprof_plugin.fleet.rank_facts import (
    NO_PATH,
    PATH_COLUMNS,
    PATHS,
    UNKNOWN,
    UNPROFILED,
    Collectives,
    Gradients,
    Group,
    KernelTimes,
    RankFacts,
    StepLength,
    Steps,
)
from tb_dlprof_plugin.fleet.world import is_world_size
from tb_dlprof_plugin.model.process_groups import members_of_runs, regular_runs
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.store.allowance import ENTRY_BYTES, NUMBER_BYTES, ZLIB, Allowance, TooLarge
from tb_dlprof_plugin.store.codec import ProfileError

FORMAT = 4
"""1 had no paths of host and GPU, 1 and 2 were deflated as a whole, 1 to 3 had no gradients."""
_ZLIB_BEGINS = b"\x78"
_MOST_COLUMNS = 64
"""Of a table; the largest has 25."""
_BYTES_OF_ROW, _BYTES_OF_STEP = 4, 40
"""Fewer than any recorded call, and step, has: the least are 6 and 100."""
_PIECE_BYTES = 2_500
"""Of the columns of one step, without their numbers: a dictionary of those that all steps share and of its own."""
_SAME_CALLS = ("iteration", "group", "operation", "sequence", "bytes", "dtype", "peer", "module", "stream")
_SAME = frozenset((*_SAME_CALLS, "number", "key", "count"))
"""Columns that are mostly equal on ranks of one program."""
_DIFFERENCES = ("iteration", "sequence")
_MOST_SHARED = 1000
_SMALL_BLOCK = 64
_PATH_UNIT_NS = 1000
_LONGEST_MS = 1e12
"""Of a step; 30 years."""
_NO_PATH = NO_PATH // _PATH_UNIT_NS
_T = TypeVar("_T", Steps, Collectives, KernelTimes)
_E = TypeVar("_E")
_R = TypeVar("_R")
_P = ParamSpec("_P")


@dataclass(slots=True)
class SharedParts:
    """Columns and members of groups by what was stored, for equal ones of other ranks: they take room once."""

    columns: dict[Hashable, Ints] = field(default_factory=dict)
    members: dict[bytes, tuple[int, ...]] = field(default_factory=dict)

    def ids(self) -> set[int]:
        """Of the objects."""
        return {id(part) for part in (*self.columns.values(), *self.members.values())}

    def cut(self, columns: int, members: int) -> None:
        """Leaves as many as there were before."""
        for parts, count in ((self.columns, columns), (self.members, members)):
            while len(parts) > count:
                parts.popitem()


_Table: TypeAlias = Annotated[dict[str, PackedColumn], msgspec.Meta(max_length=_MOST_COLUMNS)]
_COLUMNS: msgspec.msgpack.Decoder[dict[str, PackedColumn]] = msgspec.msgpack.Decoder(_Table)


class _Group(msgspec.Struct, array_like=True):
    name: str
    description: str
    member_runs: msgspec.Raw
    dimension: str


class _Stored(msgspec.Struct, array_like=True):
    """Lists are decoded one by one (`_listed`), when it is clear that there is room for them."""

    format: int
    rank: int
    world_size: int
    host: str
    gpu: str
    device: int
    base_ns: int
    framework: str
    backend: str
    step_length: tuple[float, float, float, str] | None
    groups: msgspec.Raw
    strings: msgspec.Raw
    mesh: msgspec.Raw
    notes: msgspec.Raw
    steps: _Table
    collectives: _Table
    kernels: _Table
    launch_share: float = 1.0
    batch_size: int = UNKNOWN
    wrapper: str = ""
    gradients: _Table = {}
    bucket_bytes: int = UNKNOWN


class _Steps(msgspec.Struct, array_like=True):
    """``steps`` has the deflated columns of each step's collectives, and ``head``, a deflated `_Stored`, those that are
    the same in all steps; all of them where ``steps`` is empty."""

    format: int
    head: bytes
    steps: msgspec.Raw


@dataclass(slots=True)
class _Opened:
    """The facts of a rank, unpacked; the numbers of its columns are not decoded."""

    stored: _Stored
    allowance: Allowance
    groups: list[_Group]
    strings: list[str]
    mesh: list[tuple[str, int]]
    notes: list[str]
    steps: list[bytes]

    def members(self, group: _Group, shared: SharedParts) -> tuple[int, ...]:
        """Of a group. Thousands of ranks store the same."""
        key = bytes(group.member_runs)
        if key in shared.members:
            return shared.members[key]
        members = members_of_runs(_listed(group.member_runs, _NUMBERS, self.allowance), self.allowance.may_take)
        if members:  # another rank may have room for them
            shared.members[key] = members
        return members


_GROUPS = msgspec.msgpack.Decoder(list[_Group])
_TEXTS = msgspec.msgpack.Decoder(list[str])
_PLACES = msgspec.msgpack.Decoder(list[tuple[str, int]])
_NUMBERS = msgspec.msgpack.Decoder(list[int])
_PIECES = msgspec.msgpack.Decoder(list[bytes])
_STEPS = msgspec.msgpack.Decoder(_Steps)
_STORED = msgspec.msgpack.Decoder(_Stored)


class OtherFormat(ProfileError):
    """Facts of an earlier format than is asked for, or of a later one."""


def encode_facts(facts: RankFacts) -> bytes:
    """The bytes to store."""
    length = facts.step_length
    calls = facts.collectives
    shared, pieces = _pieces(calls, facts.steps)
    stored = _Stored(
        format=FORMAT,
        rank=facts.rank,
        world_size=facts.world_size,
        host=facts.host,
        gpu=facts.gpu,
        device=facts.device,
        base_ns=facts.base_ns,
        framework=facts.framework,
        backend=facts.backend,
        step_length=None if length is None else (length.ms, length.low_ms, length.high_ms, length.source),
        groups=_raw([_Group(g.name, g.description, _raw(regular_runs(g.members)), g.dimension) for g in facts.groups]),
        strings=_raw(facts.strings),
        mesh=_raw(facts.mesh),
        notes=_raw(facts.notes),
        steps=packed(columns_of(facts.steps)),
        collectives=shared,
        kernels=packed(columns_of(facts.kernels)),
        launch_share=facts.launch_share,
        batch_size=facts.batch_size,
        wrapper=facts.wrapper,
        gradients=packed(_small_gradients(facts.gradients)) if len(facts.gradients) else {},
        bucket_bytes=facts.bucket_bytes,
    )
    for level in (9, 0):
        head = zlib.compress(msgspec.msgpack.encode(stored), level)
        data = msgspec.msgpack.encode(_Steps(FORMAT, head, _raw([_deflated(piece, level) for piece in pieces])))
        if not isinstance(decode_ranks([data])[0], ProfileError):
            break
        # It takes too much for its size.
    return data


def _raw(content: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(content))


def _pieces(calls: Collectives, steps: Steps) -> tuple[dict[str, PackedColumn], list[dict[str, PackedColumn]]]:
    """The packed columns that all steps share, and those of each step; no steps where calls are in no order of them."""
    if (np.diff(calls.iteration) < 0).any():
        return packed(_small(calls, steps)), []
    pieces = []
    for begin, stop in itertools.pairwise(np.searchsorted(calls.iteration, np.arange(len(steps.number) + 1))):
        own = {name: column[begin:stop] for name, column in columns_of(calls).items()}
        pieces.append(packed(_small(Collectives(**own), steps)))
    shared = {name: column for name, column in pieces[0].items() if all(column == piece[name] for piece in pieces)}
    # In order of the columns: equal facts are equal bytes, in whatever process.
    return shared, [{name: column for name, column in piece.items() if name not in shared} for piece in pieces]


def decode_facts(
    data: bytes, numbers: Container[int] | None = None, shared: SharedParts | None = None, oldest: int = 1
) -> RankFacts:
    """What `encode_facts` stored, of this version or an earlier one.

    Args:
        data: the bytes.
        numbers: of the steps whose calls are wanted; all by default.
        shared: parts of other ranks, to which those of this are added.
        oldest: format that will do; `FORMAT` is today's.

    Raises:
        ProfileError: it is damaged, older than that, or of a format that this version does not know.
    """
    (found,) = decode_ranks([data], numbers, shared, oldest)
    if isinstance(found, ProfileError):
        raise found
    return found


def decode_ranks(
    data: Sequence[bytes],
    numbers: Container[int] | None = None,
    shared: SharedParts | None = None,
    oldest: int = 1,
    allowances: Sequence[Allowance] | None = None,
) -> list[RankFacts | ProfileError]:
    """`decode_facts` of several ranks together, each the facts or why they cannot be read.

    Thousands of small ranks take a third of the time in this way: a call of numpy takes longer than a short column.

    ``allowances`` are what each may take, by default what its size allows.
    """
    if not data:
        return []
    if allowances is None:
        allowances = [Allowance(len(each)) for each in data]
    if shared is None:
        shared = SharedParts()
    opened = [_tried(_opened, each, oldest, allowance) for each, allowance in zip(data, allowances, strict=True)]
    sound = [one for one in opened if isinstance(one, _Opened)]
    together: list[RankFacts] | ProfileError = _tried(_decoded, sound, numbers, shared)
    if isinstance(together, ProfileError) and len(data) > 1:
        for allowance in allowances:
            allowance.reset()
        alone = zip(data, allowances, strict=True)
        return [decode_ranks([each], numbers, shared, oldest, [allowance])[0] for each, allowance in alone]
    decoded: Iterator[RankFacts | ProfileError] = iter([together] if isinstance(together, ProfileError) else together)
    result = [next(decoded) if isinstance(one, _Opened) else one for one in opened]
    for one, allowance in zip(result, allowances, strict=True):
        if isinstance(one, ProfileError):
            allowance.reset()
    return result


def _tried(decode: Callable[_P, _R], *args: _P.args, **named: _P.kwargs) -> _R | ProfileError:
    """What a function decodes, or why it cannot."""
    try:
        return decode(*args, **named)
    except ProfileError as error:
        return error
    except TooLarge as error:
        return too_large(error)
    except (msgspec.DecodeError, ValueError, IndexError, KeyError, OverflowError, RecursionError) as error:
        return ProfileError(f"the stored facts are damaged ({error}); import the traces again")


def too_large(reason: TooLarge) -> ProfileError:
    """The sentence about facts that ask for too much."""
    return ProfileError(f"what is stored of it {reason}, which no rank does; check where the file comes from")


def _decoded(opened: Sequence[_Opened], numbers: Container[int] | None, shared: SharedParts) -> list[RankFacts]:
    if not opened:
        return []
    before, counts = shared.ids(), (len(shared.columns), len(shared.members))
    try:
        facts = _facts(opened, numbers, shared)
        check(facts)
    except Exception:
        shared.cut(*counts)
        raise
    after = shared.ids()
    for one, of in zip(facts, opened, strict=True):
        parts = sizes_of_parts(one)
        of.allowance.keep(
            sum(size for part, size in parts.items() if part not in after),
            sum(size for part, size in parts.items() if part in after and part not in before),
        )
        before |= parts.keys()
    return facts


def _opened(data: bytes, oldest: int, allowance: Allowance) -> _Opened:
    pieces: list[bytes] = []
    head = data
    if data[:1] != _ZLIB_BEGINS:
        packed = _STEPS.decode(data)
        head, pieces = packed.head, _listed(packed.steps, _PIECES, allowance)
    stored = _STORED.decode(allowance.unpack(head, ZLIB))
    if not oldest <= stored.format <= FORMAT:
        raise OtherFormat(
            f"the stored facts have format {stored.format}, this version reads {oldest} to {FORMAT}; import the "
            "traces again"
        )
    whole = () if pieces else (stored.collectives,)
    for table in (stored.steps, stored.kernels, stored.gradients, *whole):
        allowance.take(NUMBER_BYTES * rows_of(table.values()))
        rows = max((rows_of((column,)) for column in table.values()), default=0)
        allowance.check_rows(rows, _BYTES_OF_STEP if table is stored.steps else _BYTES_OF_ROW)
    return _Opened(
        stored,
        allowance,
        _listed(stored.groups, _GROUPS, allowance),
        _listed(stored.strings, _TEXTS, allowance),
        _listed(stored.mesh, _PLACES, allowance),
        _listed(stored.notes, _TEXTS, allowance),
        pieces,
    )


def _listed(raw: msgspec.Raw, decoder: msgspec.msgpack.Decoder[list[_E]], allowance: Allowance) -> list[_E]:
    """The list, when it is clear that there is room for its entries."""
    begin = bytes(memoryview(raw)[:5])
    if not begin:
        raise ValueError("a list is missing")
    sizes = {0xDC: 2, 0xDD: 4}
    count = int.from_bytes(begin[1 : 1 + sizes[begin[0]]], "big") if begin[0] in sizes else begin[0] & 15
    allowance.take(ENTRY_BYTES * count)
    return decoder.decode(raw)


def _deflated(columns: dict[str, PackedColumn], level: int) -> bytes:
    """Bytes of each weight are distributed in their own way: as blocks of their own they take a tenth less room.

    They are numbers, in which few long strings repeat: without short matches (``Z_FILTERED``) they take 4 % less.
    """
    content = msgspec.msgpack.encode(columns)
    deflate = zlib.compressobj(level, strategy=zlib.Z_FILTERED)
    result, done = b"", 0
    for column in columns.values():
        begin = content.index(column.data, done)
        for stop in (begin + len(column.data) * weight // column.width for weight in range(column.width + 1)):
            result += deflate.compress(content[done:stop])
            # What lies between columns is too little for a block of its own, and the end is one anyway.
            if done + _SMALL_BLOCK < stop < len(content):
                result += deflate.flush(zlib.Z_SYNC_FLUSH)
            done = stop
    return result + deflate.compress(content[done:]) + deflate.flush()


def _facts(opened: Sequence[_Opened], numbers: Container[int] | None, shared: SharedParts) -> list[RankFacts]:
    all_steps = [_table(Steps, columns) for columns in _unpacked([one.stored.steps for one in opened], shared)]
    all_kernels = _unpacked([one.stored.kernels for one in opened], shared)
    if not all(fits(steps) and len(steps.number) for steps in all_steps):
        raise ValueError("its steps differ in number")
    all_calls = _calls(opened, all_steps, numbers, shared)
    return [
        RankFacts(
            rank=stored.rank,
            world_size=stored.world_size if is_world_size(stored.world_size) else UNKNOWN,
            host=stored.host,
            gpu=stored.gpu,
            device=stored.device,
            base_ns=stored.base_ns,
            framework=stored.framework,
            backend=stored.backend,
            steps=steps,
            step_length=_step_length(stored.step_length),
            groups=tuple(
                Group(group.name, group.description, one.members(group, shared), group.dimension)
                for group in one.groups
            ),
            collectives=calls,
            kernels=_table(KernelTimes, kernels),
            strings=tuple(one.strings),
            mesh=tuple(one.mesh),
            notes=tuple(one.notes),
            launch_share=stored.launch_share,
            batch_size=stored.batch_size if stored.batch_size > 0 else UNKNOWN,
            wrapper=stored.wrapper,
            gradients=_gradients(stored.gradients),
            bucket_bytes=stored.bucket_bytes if stored.bucket_bytes > 0 else UNKNOWN,
        )
        for one, steps, kernels, calls in zip(opened, all_steps, all_kernels, all_calls, strict=True)
        for stored in (one.stored,)
    ]


def _step_length(stored: tuple[float, float, float, str] | None) -> StepLength | None:
    """The step; None where it is not known, and of times that no step has."""
    if stored is None or not (0 <= stored[0] < _LONGEST_MS and 0 <= stored[1] <= stored[2] < _LONGEST_MS):
        return None
    return StepLength(*stored)


def _small_gradients(gradients: Gradients) -> dict[str, Ints]:
    """The columns, paths in microseconds."""
    columns = columns_of(gradients)
    return {name: column // _PATH_UNIT_NS if name.endswith("_ns") else column for name, column in columns.items()}


def _gradients(stored: dict[str, PackedColumn]) -> Gradients:
    """What `_small_gradients` made."""
    if not stored:
        return Gradients()
    (columns,) = _unpacked([stored])
    for name in columns:
        if name.endswith("_ns"):
            columns[name] = np.where(columns[name] == _NO_PATH, NO_PATH, columns[name] * _PATH_UNIT_NS)
    return Gradients(**{name: columns[name] for name in names_of(Gradients)})


def _calls(
    opened: Sequence[_Opened],
    all_steps: Sequence[Steps],
    numbers: Container[int] | None,
    shared: SharedParts,
) -> list[Collectives]:
    """Of each rank the calls of the steps with these numbers."""
    wanted = [[numbers is None or number in numbers for number in steps.number.tolist()] for steps in all_steps]
    parts = [_parts(one, chosen) for one, chosen in zip(opened, wanted, strict=True)]
    result: dict[int, Collectives] = {}
    # What an earlier version stored has fewer columns.
    alike: dict[tuple[str, ...], list[int]] = {}
    for index, own in enumerate(parts):
        alike.setdefault(_names_in(own), []).append(index)
    for names, indices in alike.items():
        joined = _joined(names, [parts[index] for index in indices], shared)
        result.update(zip(indices, _whole(joined, [all_steps[index] for index in indices]), strict=True))
    for index, one in enumerate(opened):
        if not one.steps and not all(wanted[index]):
            calls = result[index]
            rows = np.flatnonzero(np.array(wanted[index])[calls.iteration])
            result[index] = Collectives(**{name: column[rows] for name, column in columns_of(calls).items()})
    return [result[index] for index in range(len(opened))]


def _parts(opened: _Opened, wanted: list[bool]) -> list[dict[str, PackedColumn]]:
    """The stored columns of each wanted step; of all steps as one where they are not stored one by one."""
    stored, allowance = opened.stored, opened.allowance
    if not opened.steps:
        return [stored.collectives]
    if len(opened.steps) != len(wanted):
        raise ValueError("the calls of a step are lost")
    parts = []
    for piece in itertools.compress(opened.steps, wanted):
        allowance.take(_PIECE_BYTES)
        parts.append(stored.collectives | _COLUMNS.decode(allowance.unpack(piece, ZLIB)))
        allowance.take(NUMBER_BYTES * rows_of(parts[-1].values()))
    allowance.check_rows(rows_of([part["start_ns"] for part in parts]), _BYTES_OF_ROW)
    return parts


def _names_in(parts: list[dict[str, PackedColumn]]) -> tuple[str, ...]:
    """Columns that all steps have; those that each version stores are taken to be there."""
    return tuple(
        name for name in names_of(Collectives) if name not in PATH_COLUMNS or all(name in part for part in parts)
    )


def _joined(
    names: tuple[str, ...], all_parts: list[list[dict[str, PackedColumn]]], shared: SharedParts
) -> dict[str, list[Ints]]:
    """Of each column the numbers of each rank, its steps one under the other."""
    result: dict[str, list[Ints]] = {name: [] for name in names}
    unknown: list[tuple[str, int, list[PackedColumn]]] = []
    for name, of_ranks in result.items():
        for rank, parts in enumerate(all_parts):
            columns = [part[name] for part in parts]
            known = _known(shared, name, columns)
            if known is None:
                unknown.append((name, rank, columns))
            of_ranks.append(NO_NUMBERS if known is None else known)
    numbers = iter(numbers_of([column for _, _, columns in unknown for column in columns]))
    for name, rank, columns in unknown:
        own = list(itertools.islice(numbers, len(columns)))
        if name in _DIFFERENCES:
            own = [np.cumsum(column) for column in own]
        joined = own[0] if len(own) == 1 else np.concatenate([NO_NUMBERS, *own])
        result[name][rank] = _kept(shared, name, columns, joined)
    return result


def _known(shared: SharedParts | None, name: str, columns: list[PackedColumn]) -> Ints | None:
    """What another rank has in this column, if that is equal."""
    return None if shared is None or name not in _SAME else shared.columns.get(_key(name, columns))


def _kept(shared: SharedParts | None, name: str, columns: list[PackedColumn], numbers: Ints) -> Ints:
    """The numbers, from now on those of equal columns of other ranks."""
    if shared is None or name not in _SAME or len(shared.columns) >= _MOST_SHARED:
        return numbers
    numbers.flags.writeable = False
    return shared.columns.setdefault(_key(name, columns), numbers)


def _key(name: str, columns: list[PackedColumn]) -> Hashable:
    return (name, *((column.width, column.data) for column in columns))


def _table(kind: type[_T], columns: dict[str, Ints]) -> _T:
    wanted = names_of(kind)
    return kind(**{name: columns[name] for name in wanted if name in columns or name not in PATH_COLUMNS})


def _small(calls: Collectives, steps: Steps) -> dict[str, Ints]:
    """The columns of the collectives as differences."""
    columns = columns_of(calls)
    stop = calls.start_ns + calls.duration_ns
    since = _since(calls.iteration, steps.start_ns, stop)
    columns["start_ns"] = calls.start_ns - since - calls.work_ns - calls.idle_ns
    columns["exposed_ns"] = calls.duration_ns - calls.exposed_ns
    columns["launched_ns"] = np.where(calls.launched_ns == UNKNOWN, -1, calls.start_ns - calls.launched_ns)
    for name in ("iteration", "sequence"):
        columns[name] = np.diff(columns[name], prepend=0)
    _small_paths(columns)
    return columns


def _whole(of_ranks: dict[str, list[Ints]], all_steps: Sequence[Steps]) -> list[Collectives]:
    """Of each rank the calls that `_small` made differences of; columns of `_DIFFERENCES` are whole already."""
    counts = [len(own) for own in of_ranks["iteration"]]
    if any([len(own) for own in column] != counts for column in of_ranks.values()):
        raise ValueError("the columns of its collectives differ in length")
    steps = [len(one.number) for one in all_steps]
    columns = {name: np.concatenate(column) for name, column in of_ranks.items() if name not in _SAME_CALLS}
    iteration = np.concatenate(of_ranks["iteration"])
    if len(iteration) and (iteration.min() < 0 or (iteration >= np.repeat(steps, counts)).any()):
        raise ValueError("a collective belongs to no step")
    _whole_paths(columns)
    begins = np.concatenate([one.start_ns for one in all_steps])
    numbered = iteration + np.repeat(np.cumsum(steps) - steps, counts)
    late = columns["start_ns"] + columns["work_ns"] + columns["idle_ns"]
    start = _starts(numbered, late, columns["duration_ns"], begins)
    columns["start_ns"] = start
    columns["exposed_ns"] = columns["duration_ns"] - columns["exposed_ns"]
    ahead = columns["launched_ns"]
    columns["launched_ns"] = np.where(ahead == -1, UNKNOWN, start - ahead)
    edges = np.cumsum([0, *counts]).tolist()
    same = {name: column for name, column in of_ranks.items() if name in _SAME_CALLS}
    return [
        Collectives(
            **{name: column[rank] for name, column in same.items()},
            **{name: column[begin:stop] for name, column in columns.items()},
        )
        for rank, (begin, stop) in enumerate(itertools.pairwise(edges))
    ]


_USUAL: tuple[tuple[str, Callable[[dict[str, Ints]], Ints]], ...] = (
    (
        UNPROFILED + "gpu_after_host_ns",
        lambda of: of["gpu_after_host_ns"] - of["host_ns"] + of[UNPROFILED + "host_ns"],
    ),
    (UNPROFILED + "host_ns", lambda of: of["host_ns"] * 13 // 20),
    (UNPROFILED + "host_after_gpu_ns", lambda of: of["host_after_gpu_ns"]),
    (UNPROFILED + "gpu_ns", lambda of: of["gpu_ns"]),
    ("gpu_after_host_ns", lambda of: of["host_ns"]),
    ("gpu_ns", lambda of: of["work_ns"] // _PATH_UNIT_NS),
)
"""Paths with what they mostly are, by columns that come later."""


def _small_paths(columns: dict[str, Ints]) -> None:
    """Paths in microseconds, as differences to what they mostly are."""
    for name in PATH_COLUMNS:
        columns[name] = columns[name] // _PATH_UNIT_NS
    for name, usual in _USUAL:
        columns[name] = columns[name] - np.where(columns[name] == _NO_PATH, 0, usual(columns))


def _whole_paths(columns: dict[str, Ints]) -> None:
    """The columns that `_small_paths` made differences of; a format without paths has none of them."""
    if PATHS[0] not in columns:
        return
    for name, usual in reversed(_USUAL):
        columns[name] = columns[name] + np.where(columns[name] == _NO_PATH, 0, usual(columns))
    for name in PATH_COLUMNS:
        nothing = columns[name] == _NO_PATH
        if nothing.all():
            # As `Collectives` has it, without room.
            del columns[name]
            continue
        columns[name] = np.where(nothing, NO_PATH, columns[name] * _PATH_UNIT_NS)


def _since(iteration: Ints, begin: Ints, stop: Ints) -> Ints:
    """For each call the latest end of those before it in its iteration, else where the iteration begins."""
    result = np.empty_like(stop)
    for own in np.unique(iteration).tolist():
        rows = np.flatnonzero(iteration == own)
        result[rows] = np.r_[begin[own], np.maximum.accumulate(stop[rows])[:-1]]
    return result


def _starts(iteration: Ints, late: Ints, duration: Ints, begins: Ints) -> Ints:
    """When calls start.

    A call moves the latest end of its iteration by what it starts later and lasts, or not at all; the first one, which
    may end before its iteration begins, by that in any case.

    Args:
        iteration: of each call; iterations of other ranks have other numbers.
        late: how much later than `_since` it starts.
        duration: of each call.
        begins: of each iteration.
    """
    if not len(late):
        return late
    order: Ints | slice = slice(None)
    if (np.diff(iteration) < 0).any():
        order = np.argsort(iteration, kind="stable")
    iteration, ends = iteration[order], (late + duration)[order]
    first = np.flatnonzero(np.concatenate(([True], iteration[1:] != iteration[:-1])))
    moved = np.maximum(ends, 0)
    moved[first] = ends[first]
    before = np.cumsum(moved) - moved
    base = begins[iteration[first]] - before[first]
    start = np.empty_like(late)
    start[order] = before + np.repeat(base, np.diff(np.append(first, len(late)))) + late[order]
    return start


def _unpacked(tables: Sequence[dict[str, PackedColumn]], shared: SharedParts | None = None) -> list[dict[str, Ints]]:
    """The columns of each table."""
    result = [{name: _known(shared, name, [column]) for name, column in table.items()} for table in tables]
    unknown = [
        (own, name, table[name])
        for own, table in zip(result, tables, strict=True)
        for name, known in own.items()
        if known is None
    ]
    for (own, name, column), numbers in zip(unknown, numbers_of([column for *_, column in unknown]), strict=True):
        own[name] = _kept(shared, name, [column], numbers)
    return [{name: numbers for name, numbers in own.items() if numbers is not None} for own in result]
