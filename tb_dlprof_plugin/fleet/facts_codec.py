"""Facts of a rank to bytes and back: at most 200 kB for ten iterations of 2,000 collectives.

A column is stored as differences that are small or repeat, byte by byte of equal weight, and deflated. What follows
from other columns is stored as the difference to it: a call mostly starts when the work and the idle time since the
call before are over. Calls of each step are deflated by themselves: of a job of thousands of ranks few steps are read.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Container, Hashable, Sequence
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np

from tb_dlprof_plugin.fleet.facts_check import check, columns_of, fits, names_of
from tb_dlprof_plugin.fleet.packed_columns import NO_NUMBERS, Column, numbers_of, packed
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
from tb_dlprof_plugin.store.codec import ProfileError

FORMAT = 4
"""1 had no paths of host and GPU, 1 and 2 were deflated as a whole, 1 to 3 had no gradients."""
_ZLIB_BEGINS = b"\x78"
_MOST_BYTES = 64_000_000
"""Unpacked; 20,000 collectives have 0.8 MB."""
_LARGEST = 2**61
_SAME_CALLS = ("iteration", "group", "operation", "sequence", "bytes", "dtype", "peer", "module", "stream")
_SAME = frozenset((*_SAME_CALLS, "number", "key", "count"))
"""Columns that are mostly equal on ranks of one program."""
_DIFFERENCES = ("iteration", "sequence")
_MOST_SHARED = 1000
SharedColumns: TypeAlias = dict[Hashable, Ints]
"""Columns of other ranks by what was stored, for equal ones of further ranks: they take time and room once."""
_SMALL_BLOCK = 64
_PATH_UNIT_NS = 1000
_NO_PATH = NO_PATH // _PATH_UNIT_NS
_T = TypeVar("_T", Steps, Collectives, KernelTimes)


_COLUMNS = msgspec.msgpack.Decoder(dict[str, Column])


class _Group(msgspec.Struct, array_like=True):
    name: str
    description: str
    member_runs: list[int]
    dimension: str


class _Stored(msgspec.Struct, array_like=True):
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
    groups: list[_Group]
    strings: list[str]
    mesh: list[tuple[str, int]]
    notes: list[str]
    steps: dict[str, Column]
    collectives: dict[str, Column]
    kernels: dict[str, Column]
    launch_share: float = 1.0
    batch_size: int = UNKNOWN
    wrapper: str = ""
    gradients: dict[str, Column] = {}
    bucket_bytes: int = UNKNOWN


class _Steps(msgspec.Struct, array_like=True):
    """``steps`` has the deflated columns of each step's collectives, and ``head``, a deflated `_Stored`, those that are
    the same in all steps; all of them where ``steps`` is empty."""

    format: int
    head: bytes
    steps: list[bytes]


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
        groups=[_Group(g.name, g.description, regular_runs(g.members), g.dimension) for g in facts.groups],
        strings=list(facts.strings),
        mesh=list(facts.mesh),
        notes=list(facts.notes),
        steps=packed(columns_of(facts.steps)),
        collectives=shared,
        kernels=packed(columns_of(facts.kernels)),
        launch_share=facts.launch_share,
        batch_size=facts.batch_size,
        wrapper=facts.wrapper,
        gradients=packed(_small_gradients(facts.gradients)) if len(facts.gradients) else {},
        bucket_bytes=facts.bucket_bytes,
    )
    head = zlib.compress(msgspec.msgpack.encode(stored), 9)
    return msgspec.msgpack.encode(_Steps(FORMAT, head, [_deflated(piece) for piece in pieces]))


def _pieces(calls: Collectives, steps: Steps) -> tuple[dict[str, Column], list[dict[str, Column]]]:
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
    data: bytes, numbers: Container[int] | None = None, shared: SharedColumns | None = None, oldest: int = 1
) -> RankFacts:
    """What `encode_facts` stored, of this version or an earlier one.

    Args:
        data: the bytes.
        numbers: of the steps whose calls are wanted; all by default.
        shared: columns of other ranks, to which those of this are added.
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
    shared: SharedColumns | None = None,
    oldest: int = 1,
) -> list[RankFacts | ProfileError]:
    """`decode_facts` of several ranks together, each the facts or why they cannot be read.

    Thousands of small ranks take a third of the time in this way: a call of numpy takes longer than a short column.
    """
    if not data:
        return []
    try:
        return [*_decoded(data, numbers, shared, oldest)]
    except ProfileError as error:
        damaged = error
    except (zlib.error, msgspec.DecodeError, ValueError, IndexError, KeyError, OverflowError, RecursionError) as error:
        damaged = ProfileError(f"the stored facts are damaged ({error}); import the traces again")
    if len(data) == 1:
        return [damaged]
    return [one for each in data for one in decode_ranks([each], numbers, shared, oldest)]


def _decoded(
    data: Sequence[bytes], numbers: Container[int] | None, shared: SharedColumns | None, oldest: int
) -> list[RankFacts]:
    opened = [_opened(each) for each in data]
    for stored, _ in opened:
        if not oldest <= stored.format <= FORMAT:
            raise ProfileError(
                f"the stored facts have format {stored.format}, this version reads {oldest} to {FORMAT}; import the "
                "traces again"
            )
    facts = _facts(opened, numbers, shared)
    check(facts)
    return facts


def _opened(data: bytes) -> tuple[_Stored, list[bytes]]:
    if data[:1] == _ZLIB_BEGINS:
        return msgspec.msgpack.decode(_inflated(data), type=_Stored), []
    packed = msgspec.msgpack.decode(data, type=_Steps)
    return msgspec.msgpack.decode(_inflated(packed.head), type=_Stored), packed.steps


def _deflated(columns: dict[str, Column]) -> bytes:
    """Bytes of each weight are distributed in their own way: as blocks of their own they take a tenth less room.

    They are numbers, in which few long strings repeat: without short matches (``Z_FILTERED``) they take 4 % less.
    """
    content = msgspec.msgpack.encode(columns)
    deflate = zlib.compressobj(9, strategy=zlib.Z_FILTERED)
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


def _inflated(data: bytes, most: int = _MOST_BYTES) -> bytes:
    return zlib.decompressobj().decompress(data, most)


def _facts(
    opened: Sequence[tuple[_Stored, list[bytes]]], numbers: Container[int] | None, shared: SharedColumns | None
) -> list[RankFacts]:
    all_steps = [_table(Steps, columns) for columns in _unpacked([stored.steps for stored, _ in opened], shared)]
    all_kernels = _unpacked([stored.kernels for stored, _ in opened], shared)
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
            step_length=None if stored.step_length is None else StepLength(*stored.step_length),
            groups=tuple(
                Group(g.name, g.description, _members(tuple(g.member_runs)), g.dimension) for g in stored.groups
            ),
            collectives=calls,
            kernels=_table(KernelTimes, kernels),
            strings=tuple(stored.strings),
            mesh=tuple(stored.mesh),
            notes=tuple(stored.notes),
            launch_share=stored.launch_share,
            batch_size=stored.batch_size if stored.batch_size > 0 else UNKNOWN,
            wrapper=stored.wrapper,
            gradients=_gradients(stored.gradients),
            bucket_bytes=stored.bucket_bytes if stored.bucket_bytes > 0 else UNKNOWN,
        )
        for (stored, _), steps, kernels, calls in zip(opened, all_steps, all_kernels, all_calls, strict=True)
    ]


def _small_gradients(gradients: Gradients) -> dict[str, Ints]:
    """The columns, paths in microseconds."""
    columns = columns_of(gradients)
    return {name: column // _PATH_UNIT_NS if name.endswith("_ns") else column for name, column in columns.items()}


def _gradients(stored: dict[str, Column]) -> Gradients:
    """What `_small_gradients` made."""
    if not stored:
        return Gradients()
    (columns,) = _unpacked([stored])
    for name in columns:
        if name.endswith("_ns"):
            columns[name] = np.where(columns[name] == _NO_PATH, NO_PATH, columns[name] * _PATH_UNIT_NS)
    return Gradients(**{name: columns[name] for name in names_of(Gradients)})


@functools.lru_cache(maxsize=256)
def _members(runs: tuple[int, ...]) -> tuple[int, ...]:
    """Of thousands of ranks, each of which stores the same members."""
    return members_of_runs(runs)


def _calls(
    opened: Sequence[tuple[_Stored, list[bytes]]],
    all_steps: Sequence[Steps],
    numbers: Container[int] | None,
    shared: SharedColumns | None,
) -> list[Collectives]:
    """Of each rank the calls of the steps with these numbers."""
    wanted = [[numbers is None or number in numbers for number in steps.number.tolist()] for steps in all_steps]
    parts = [_parts(stored, pieces, chosen) for (stored, pieces), chosen in zip(opened, wanted, strict=True)]
    result: dict[int, Collectives] = {}
    # What an earlier version stored has fewer columns.
    alike: dict[tuple[str, ...], list[int]] = {}
    for index, own in enumerate(parts):
        alike.setdefault(_names_in(own), []).append(index)
    for names, indices in alike.items():
        joined = _joined(names, [parts[index] for index in indices], shared)
        result.update(zip(indices, _whole(joined, [all_steps[index] for index in indices]), strict=True))
    for index, (_, pieces) in enumerate(opened):
        if not pieces and not all(wanted[index]):
            calls = result[index]
            rows = np.flatnonzero(np.array(wanted[index])[calls.iteration])
            result[index] = Collectives(**{name: column[rows] for name, column in columns_of(calls).items()})
    return [result[index] for index in range(len(opened))]


def _parts(stored: _Stored, pieces: list[bytes], wanted: list[bool]) -> list[dict[str, Column]]:
    """The stored columns of each wanted step; of all steps as one where they are not stored one by one."""
    if not pieces:
        return [stored.collectives]
    if len(pieces) != len(wanted):
        raise ValueError("the calls of a step are lost")
    left, parts = _MOST_BYTES, []
    for piece, chosen in zip(pieces, wanted, strict=True):
        if chosen:
            content = _inflated(piece, left)
            left -= len(content)
            if left <= 0:
                raise ValueError("it is too large")
            parts.append(stored.collectives | _COLUMNS.decode(content))
    return parts


def _names_in(parts: list[dict[str, Column]]) -> tuple[str, ...]:
    """Columns that all steps have; those that each version stores are taken to be there."""
    return tuple(
        name for name in names_of(Collectives) if name not in PATH_COLUMNS or all(name in part for part in parts)
    )


def _joined(
    names: tuple[str, ...], all_parts: list[list[dict[str, Column]]], shared: SharedColumns | None
) -> dict[str, list[Ints]]:
    """Of each column the numbers of each rank, its steps one under the other."""
    result: dict[str, list[Ints]] = {name: [] for name in names}
    unknown: list[tuple[str, int, list[Column]]] = []
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


def _known(shared: SharedColumns | None, name: str, columns: list[Column]) -> Ints | None:
    """What another rank has in this column, if that is equal."""
    return None if shared is None or name not in _SAME else shared.get(_key(name, columns))


def _kept(shared: SharedColumns | None, name: str, columns: list[Column], numbers: Ints) -> Ints:
    """The numbers, from now on those of equal columns of other ranks."""
    if shared is None or name not in _SAME or len(shared) >= _MOST_SHARED:
        return numbers
    numbers.flags.writeable = False
    return shared.setdefault(_key(name, columns), numbers)


def _key(name: str, columns: list[Column]) -> Hashable:
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


def _unpacked(tables: Sequence[dict[str, Column]], shared: SharedColumns | None = None) -> list[dict[str, Ints]]:
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
