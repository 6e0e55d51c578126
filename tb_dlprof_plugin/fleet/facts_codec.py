"""Facts of a rank to bytes and back: at most 200 kB for ten iterations of 2,000 collectives.

A column is stored as differences that are small or repeat, byte by byte of equal weight, and deflated. What follows
from other columns is stored as the difference to it: a call mostly starts when the work and the idle time since the
call before are over. Calls of each step are deflated by themselves: of a job of thousands of ranks few steps are read.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import zlib
from collections.abc import Callable, Container, Hashable
from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

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
    Operation,
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


class _Column(msgspec.Struct, array_like=True):
    """``width`` bytes a number, those of least weight of all numbers first; zigzag coded."""

    width: int
    data: bytes


_COLUMNS = msgspec.msgpack.Decoder(dict[str, _Column])


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
    steps: dict[str, _Column]
    collectives: dict[str, _Column]
    kernels: dict[str, _Column]
    launch_share: float = 1.0
    batch_size: int = UNKNOWN
    wrapper: str = ""
    gradients: dict[str, _Column] = {}
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
        steps=_packed(_columns(facts.steps)),
        collectives=shared,
        kernels=_packed(_columns(facts.kernels)),
        launch_share=facts.launch_share,
        batch_size=facts.batch_size,
        wrapper=facts.wrapper,
        gradients=_packed(_small_gradients(facts.gradients)) if len(facts.gradients) else {},
        bucket_bytes=facts.bucket_bytes,
    )
    head = zlib.compress(msgspec.msgpack.encode(stored), 9)
    return msgspec.msgpack.encode(_Steps(FORMAT, head, [_deflated(piece) for piece in pieces]))


def _pieces(calls: Collectives, steps: Steps) -> tuple[dict[str, _Column], list[dict[str, _Column]]]:
    """The packed columns that all steps share, and those of each step; no steps where calls are in no order of them."""
    if (np.diff(calls.iteration) < 0).any():
        return _packed(_small(calls, steps)), []
    pieces = []
    for begin, stop in itertools.pairwise(np.searchsorted(calls.iteration, np.arange(len(steps.number) + 1))):
        own = {name: column[begin:stop] for name, column in _columns(calls).items()}
        pieces.append(_packed(_small(Collectives(**own), steps)))
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
    try:
        stored, pieces = _opened(data)
        if not oldest <= stored.format <= FORMAT:
            raise ProfileError(
                f"the stored facts have format {stored.format}, this version reads {oldest} to {FORMAT}; import the "
                "traces again"
            )
        facts = _facts(stored, pieces, numbers, shared)
        _check(facts)
    except (zlib.error, msgspec.DecodeError, ValueError, IndexError, KeyError, OverflowError, RecursionError) as error:
        raise ProfileError(f"the stored facts are damaged ({error}); import the traces again") from None
    return facts


def _opened(data: bytes) -> tuple[_Stored, list[bytes]]:
    if data[:1] == _ZLIB_BEGINS:
        return msgspec.msgpack.decode(_inflated(data), type=_Stored), []
    packed = msgspec.msgpack.decode(data, type=_Steps)
    return msgspec.msgpack.decode(_inflated(packed.head), type=_Stored), packed.steps


def _deflated(columns: dict[str, _Column]) -> bytes:
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
    stored: _Stored, pieces: list[bytes], numbers: Container[int] | None, shared: SharedColumns | None
) -> RankFacts:
    steps = _table(Steps, _unpacked(stored.steps, shared))
    if not _fits(steps) or not len(steps.number):
        raise ValueError("its steps differ in number")
    return RankFacts(
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
        groups=tuple(Group(g.name, g.description, _members(tuple(g.member_runs)), g.dimension) for g in stored.groups),
        collectives=_calls(stored, pieces, steps, numbers, shared),
        kernels=_table(KernelTimes, _unpacked(stored.kernels, shared)),
        strings=tuple(stored.strings),
        mesh=tuple(stored.mesh),
        notes=tuple(stored.notes),
        launch_share=stored.launch_share,
        batch_size=stored.batch_size if stored.batch_size > 0 else UNKNOWN,
        wrapper=stored.wrapper,
        gradients=_gradients(stored.gradients),
        bucket_bytes=stored.bucket_bytes if stored.bucket_bytes > 0 else UNKNOWN,
    )


def _small_gradients(gradients: Gradients) -> dict[str, Ints]:
    """The columns, paths in microseconds."""
    columns = _columns(gradients)
    return {name: column // _PATH_UNIT_NS if name.endswith("_ns") else column for name, column in columns.items()}


def _gradients(stored: dict[str, _Column]) -> Gradients:
    """What `_small_gradients` made."""
    if not stored:
        return Gradients()
    columns = _unpacked(stored)
    for name in columns:
        if name.endswith("_ns"):
            columns[name] = np.where(columns[name] == _NO_PATH, NO_PATH, columns[name] * _PATH_UNIT_NS)
    return Gradients(**{name: columns[name] for name in _NAMES[Gradients]})


@functools.lru_cache(maxsize=256)
def _members(runs: tuple[int, ...]) -> tuple[int, ...]:
    """Of thousands of ranks, each of which stores the same members."""
    return members_of_runs(runs)


def _calls(
    stored: _Stored,
    pieces: list[bytes],
    steps: Steps,
    numbers: Container[int] | None,
    shared: SharedColumns | None,
) -> Collectives:
    """The calls of the steps with these numbers."""
    wanted = [numbers is None or number in numbers for number in steps.number.tolist()]
    if not pieces:
        calls = _whole(_joined([stored.collectives], shared), steps)
        if all(wanted):
            return calls
        rows = np.flatnonzero(np.array(wanted)[calls.iteration])
        return Collectives(**{name: column[rows] for name, column in _columns(calls).items()})
    if len(pieces) != len(steps.number):
        raise ValueError("the calls of a step are lost")
    left, parts = _MOST_BYTES, []
    for piece, chosen in zip(pieces, wanted, strict=True):
        if chosen:
            content = _inflated(piece, left)
            left -= len(content)
            if left <= 0:
                raise ValueError("it is too large")
            parts.append(stored.collectives | _COLUMNS.decode(content))
    return _whole(_joined(parts, shared), steps)


def _joined(parts: list[dict[str, _Column]], shared: SharedColumns | None) -> dict[str, Ints]:
    """The columns of several steps, one under the other."""
    result: dict[str, Ints] = {}
    unknown: dict[str, list[_Column]] = {}
    for name in _NAMES[Collectives]:
        if name in PATH_COLUMNS and not all(name in part for part in parts):
            continue
        columns = [part[name] for part in parts]
        known = _known(shared, name, columns)
        if known is None:
            unknown[name] = columns
        result[name] = _NO_NUMBERS if known is None else known
    numbers = iter(_numbers([column for columns in unknown.values() for column in columns]))
    for name, columns in unknown.items():
        own = list(itertools.islice(numbers, len(columns)))
        if name in _DIFFERENCES:
            own = [np.cumsum(column) for column in own]
        result[name] = np.concatenate([_NO_NUMBERS, *own])
        _keep(shared, name, columns, result[name])
    return result


def _known(shared: SharedColumns | None, name: str, columns: list[_Column]) -> Ints | None:
    """What another rank has in this column, if that is equal."""
    return None if shared is None or name not in _SAME else shared.get(_key(name, columns))


def _keep(shared: SharedColumns | None, name: str, columns: list[_Column], numbers: Ints) -> None:
    if shared is not None and name in _SAME and len(shared) < _MOST_SHARED:
        numbers.flags.writeable = False
        shared[_key(name, columns)] = numbers


def _key(name: str, columns: list[_Column]) -> Hashable:
    return (name, *((column.width, column.data) for column in columns))


_NAMES: dict[Any, tuple[str, ...]] = {
    kind: tuple(column.name for column in dataclasses.fields(kind))
    for kind in (Steps, Collectives, KernelTimes, Gradients)
}


def _columns(table: Steps | Collectives | KernelTimes | Gradients) -> dict[str, Ints]:
    return {name: getattr(table, name) for name in _NAMES[type(table)]}


def _table(kind: type[_T], columns: dict[str, Ints]) -> _T:
    wanted = _NAMES[kind]
    return kind(**{name: columns[name] for name in wanted if name in columns or name not in PATH_COLUMNS})


def _fits(table: Any) -> bool:
    return len({len(column) for column in _columns(table).values()}) == 1


def _small(calls: Collectives, steps: Steps) -> dict[str, Ints]:
    """The columns of the collectives as differences."""
    columns = _columns(calls)
    stop = calls.start_ns + calls.duration_ns
    since = _since(calls.iteration, steps.start_ns, stop)
    columns["start_ns"] = calls.start_ns - since - calls.work_ns - calls.idle_ns
    columns["exposed_ns"] = calls.duration_ns - calls.exposed_ns
    columns["launched_ns"] = np.where(calls.launched_ns == UNKNOWN, -1, calls.start_ns - calls.launched_ns)
    for name in ("iteration", "sequence"):
        columns[name] = np.diff(columns[name], prepend=0)
    _small_paths(columns)
    return columns


def _whole(columns: dict[str, Ints], steps: Steps) -> Collectives:
    """The columns that `_small` made differences of; those of `_DIFFERENCES` are whole already."""
    _whole_paths(columns)
    calls = _table(Collectives, columns)
    if not _fits(calls):
        raise ValueError("the columns of its collectives differ in length")
    if len(calls) and (calls.iteration.min() < 0 or calls.iteration.max() >= len(steps.number)):
        raise ValueError("a collective belongs to no step")
    start = _starts(calls, steps)
    columns["start_ns"] = start
    columns["exposed_ns"] = calls.duration_ns - columns["exposed_ns"]
    ahead = columns["launched_ns"]
    columns["launched_ns"] = np.where(ahead == -1, UNKNOWN, start - ahead)
    return _table(Collectives, columns)


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


def _starts(calls: Collectives, steps: Steps) -> Ints:
    """When the calls start, from how much later than `_since` they do, which is in ``start_ns``.

    A call moves the latest end of its iteration by what it starts later and lasts, or not at all; the first one, which
    may end before its iteration begins, by that in any case.
    """
    late = calls.start_ns + calls.work_ns + calls.idle_ns
    if not len(late):
        return late
    order: Ints | slice = slice(None)
    if (np.diff(calls.iteration) < 0).any():
        order = np.argsort(calls.iteration, kind="stable")
    iteration, ends = calls.iteration[order], (late + calls.duration_ns)[order]
    first = np.flatnonzero(np.concatenate(([True], iteration[1:] != iteration[:-1])))
    moved = np.maximum(ends, 0)
    moved[first] = ends[first]
    before = np.cumsum(moved) - moved
    base = steps.start_ns[iteration[first]] - before[first]
    start = np.empty_like(late)
    start[order] = before + np.repeat(base, np.diff(np.append(first, len(late)))) + late[order]
    return start


def _packed(columns: dict[str, Ints]) -> dict[str, _Column]:
    result = {}
    for name, values in columns.items():
        numbers = (values << 1) ^ (values >> 63)
        largest = int(numbers.view(np.uint64).max(initial=0))
        width = max(1, (largest.bit_length() + 7) // 8)
        planes = numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
        result[name] = _Column(width, planes.T.tobytes())
    return result


def _unpacked(columns: dict[str, _Column], shared: SharedColumns | None = None) -> dict[str, Ints]:
    result = {name: _known(shared, name, [column]) for name, column in columns.items()}
    unknown = {name: column for name, column in columns.items() if result[name] is None}
    for (name, column), numbers in zip(unknown.items(), _numbers(list(unknown.values())), strict=True):
        _keep(shared, name, [column], numbers)
        result[name] = numbers
    return {name: numbers for name, numbers in result.items() if numbers is not None}


def _numbers(columns: list[_Column]) -> list[Ints]:
    """The numbers of each column; those of equal width and length at once, which is what makes a small rank fast."""
    alike: dict[tuple[int, int], list[int]] = {}
    for index, column in enumerate(columns):
        if not 1 <= column.width <= 8 or len(column.data) % column.width:
            raise ValueError("a column is cut short")
        alike.setdefault((column.width, len(column.data)), []).append(index)
    result = [_NO_NUMBERS] * len(columns)
    for (width, _), indices in alike.items():
        data = b"".join([columns[index].data for index in indices])
        planes = np.frombuffer(data, np.uint8).reshape(len(indices), width, -1)
        for index, numbers in zip(indices, _signed(planes), strict=True):
            result[index] = numbers
    return result


def _signed(planes: npt.NDArray[np.uint8]) -> Ints:
    """The numbers (columns x rows) of bytes (columns x weight x rows)."""
    width = planes.shape[1]
    if width == 1:
        narrow: Ints = _ZIGZAG[planes[:, 0]]
        return narrow
    if width <= 4:
        # Numbers of half the size take less time.
        small = planes[:, 0].astype(np.uint32)
        for weight in range(1, width):
            small |= planes[:, weight].astype(np.uint32) << np.uint32(8 * weight)
        signed = (small >> np.uint32(1)).view(np.int32) ^ -(small & np.uint32(1)).view(np.int32)
        wide: Ints = signed.astype(np.int64)
        return wide
    numbers = planes[:, 0].astype(np.uint64)
    for weight in range(1, width):
        numbers |= planes[:, weight].astype(np.uint64) << np.uint64(8 * weight)
    result: Ints = (numbers >> np.uint64(1)).astype(np.int64) ^ -(numbers & np.uint64(1)).astype(np.int64)
    return result


_NO_NUMBERS: Ints = np.zeros(0, dtype=np.int64)
_ZIGZAG = np.array([number >> 1 if number % 2 == 0 else -(number >> 1) - 1 for number in range(256)], dtype=np.int64)


def _check(facts: RankFacts) -> None:
    """What all that read facts rely on.

    Raises:
        ValueError: a row is not there, or a number is out of range.
    """
    calls = facts.collectives
    for column, rows in (
        (calls.group, len(facts.groups)),
        (calls.dtype, len(facts.strings)),
        (calls.module, len(facts.strings)),
    ):
        if len(column) and (column.min() < UNKNOWN or column.max() >= rows):
            raise ValueError("a collective names a group, data type or module that is not there")
    if len(calls) and (calls.operation.min() < 0 or calls.operation.max() > max(Operation)):
        raise ValueError("an operation is none")
    if not 0 < facts.launch_share <= 1:
        raise ValueError("the share of launching is none")
    parts = facts.gradients
    if len(parts) and (min(parts.iteration.min(), parts.call.min(), parts.bytes.min()) < 0):
        raise ValueError("gradients belong to no call")
    if len(parts) and parts.iteration.max() >= len(facts.steps.number):
        raise ValueError("gradients belong to no step")
    for table in (facts.steps, calls, facts.kernels, parts):
        if not _fits(table):
            raise ValueError("columns differ in length")
        if _largest_sum(table) > _LARGEST:
            raise ValueError("a number is out of range")
    if (facts.steps.end_ns < facts.steps.start_ns).any() or not abs(facts.base_ns) < _LARGEST:
        raise ValueError("a step ends before it begins")
    if len(calls) and (min(calls.duration_ns.min(), calls.work_ns.min(), calls.idle_ns.min()) < 0):
        raise ValueError("a collective lasts less than nothing")


def _largest_sum(table: Steps | Collectives | KernelTimes | Gradients) -> float:
    """Of the absolute values of a column, or a bound of it; hashes are no quantities."""
    columns = [column for name, column in _columns(table).items() if name not in ("key", "work_hash")]
    if not len(columns[0]):
        return 0.0
    # A column of one value that takes no room has no stride.
    short = np.concatenate([column if column.strides[0] else column[:1] for column in columns])
    bound = len(columns[0]) * max(abs(int(short.max())), abs(int(short.min())))
    if bound <= _LARGEST:
        return float(bound)
    return max(float(np.abs(one.astype(np.float64)).sum()) for one in columns)
