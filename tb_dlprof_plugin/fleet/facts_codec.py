"""Facts of a rank to bytes and back: at most 200 kB for ten iterations of 2,000 collectives.

A column is stored as differences that are small or repeat, byte by byte of equal weight, and deflated as a whole. What
follows from other columns is stored as the difference to it: a call mostly starts when the work and the idle time since
the call before are over.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import (
    NO_PATH,
    PATH_COLUMNS,
    PATHS,
    UNKNOWN,
    UNPROFILED,
    Collectives,
    Group,
    KernelTimes,
    Operation,
    RankFacts,
    StepLength,
    Steps,
)
from tb_dlprof_plugin.model.process_groups import members_of_runs, regular_runs
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.store.codec import ProfileError

FORMAT = 2
"""1 had no paths of host and GPU."""
_MOST_BYTES = 64_000_000
"""Unpacked; 20,000 collectives have 0.8 MB."""
_LARGEST = 2**61
_PATH_UNIT_NS = 1000
_NO_PATH = NO_PATH // _PATH_UNIT_NS
_T = TypeVar("_T", Steps, Collectives, KernelTimes)


class _Column(msgspec.Struct, array_like=True):
    """``width`` bytes a number, those of least weight of all numbers first; zigzag coded."""

    width: int
    data: bytes


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


def encode_facts(facts: RankFacts) -> bytes:
    """The bytes to store."""
    length = facts.step_length
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
        collectives=_packed(_small(facts)),
        kernels=_packed(_columns(facts.kernels)),
        launch_share=facts.launch_share,
    )
    return zlib.compress(msgspec.msgpack.encode(stored), 9)


def decode_facts(data: bytes, oldest: int = 1) -> RankFacts:
    """What `encode_facts` stored, of this version or an earlier one, which had no paths.

    Args:
        data: stored bytes.
        oldest: format that will do; `FORMAT` is today's.

    Raises:
        ProfileError: it is damaged, older than that, or of a format that this version does not know.
    """
    try:
        unpack = zlib.decompressobj()
        stored = msgspec.msgpack.decode(unpack.decompress(data, _MOST_BYTES), type=_Stored)
        if not oldest <= stored.format <= FORMAT:
            raise ProfileError(
                f"the stored facts have format {stored.format}, this version reads {oldest} to {FORMAT}; import the "
                "traces again"
            )
        facts = _facts(stored)
        _check(facts)
    except (zlib.error, msgspec.DecodeError, ValueError, IndexError, KeyError, OverflowError, RecursionError) as error:
        raise ProfileError(f"the stored facts are damaged ({error}); import the traces again") from None
    return facts


def _facts(stored: _Stored) -> RankFacts:
    steps = _table(Steps, _unpacked(stored.steps))
    if not _fits(steps) or not len(steps.number):
        raise ValueError("its steps differ in number")
    return RankFacts(
        rank=stored.rank,
        world_size=stored.world_size,
        host=stored.host,
        gpu=stored.gpu,
        device=stored.device,
        base_ns=stored.base_ns,
        framework=stored.framework,
        backend=stored.backend,
        steps=steps,
        step_length=None if stored.step_length is None else StepLength(*stored.step_length),
        groups=tuple(Group(g.name, g.description, members_of_runs(g.member_runs), g.dimension) for g in stored.groups),
        collectives=_whole(_unpacked(stored.collectives), steps),
        kernels=_table(KernelTimes, _unpacked(stored.kernels)),
        strings=tuple(stored.strings),
        mesh=tuple(stored.mesh),
        notes=tuple(stored.notes),
        launch_share=stored.launch_share,
    )


def _columns(table: Steps | Collectives | KernelTimes) -> dict[str, Ints]:
    return {column.name: getattr(table, column.name) for column in dataclasses.fields(table)}


def _table(kind: type[_T], columns: dict[str, Ints]) -> _T:
    names = [column.name for column in dataclasses.fields(kind)]
    return kind(**{name: columns[name] for name in names if name in columns or name not in PATH_COLUMNS})


def _fits(table: Any) -> bool:
    return len({len(column) for column in _columns(table).values()}) == 1


def _small(facts: RankFacts) -> dict[str, Ints]:
    """The columns of the collectives as differences."""
    calls = facts.collectives
    columns = _columns(calls)
    stop = calls.start_ns + calls.duration_ns
    since = _since(calls.iteration, facts.steps.start_ns, stop)
    columns["start_ns"] = calls.start_ns - since - calls.work_ns - calls.idle_ns
    columns["exposed_ns"] = calls.duration_ns - calls.exposed_ns
    columns["launched_ns"] = np.where(calls.launched_ns == UNKNOWN, -1, calls.start_ns - calls.launched_ns)
    for name in ("iteration", "sequence"):
        columns[name] = np.diff(columns[name], prepend=0)
    _small_paths(columns)
    return columns


def _whole(columns: dict[str, Ints], steps: Steps) -> Collectives:
    """The columns that `_small` made differences of."""
    for name in ("iteration", "sequence"):
        columns[name] = np.cumsum(columns[name])
    _whole_paths(columns)
    calls = _table(Collectives, columns)
    if not _fits(calls):
        raise ValueError("the columns of its collectives differ in length")
    if len(calls) and (calls.iteration.min() < 0 or calls.iteration.max() >= len(steps.number)):
        raise ValueError("a collective belongs to no step")
    length = calls.start_ns + calls.work_ns + calls.idle_ns
    start = np.empty_like(length)
    reached: dict[int, int] = {}
    begin = steps.start_ns.tolist()
    rows = zip(calls.iteration.tolist(), length.tolist(), calls.duration_ns.tolist(), strict=True)
    for row, (iteration, late, duration) in enumerate(rows):
        since = reached.get(iteration, begin[iteration])
        start[row] = at = since + late
        # The first call of an iteration may end before it begins.
        reached[iteration] = max(reached.get(iteration, at + duration), at + duration)
    ahead = columns["launched_ns"]
    return dataclasses.replace(
        calls,
        start_ns=start,
        exposed_ns=calls.duration_ns - columns["exposed_ns"],
        launched_ns=np.where(ahead == -1, UNKNOWN, start - ahead),
    )


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
    reached: dict[int, int] = {}
    starts = begin.tolist()
    for row, (own, end) in enumerate(zip(iteration.tolist(), stop.tolist(), strict=True)):
        result[row] = reached.get(own, starts[own])
        reached[own] = max(reached.get(own, end), end)
    return result


def _packed(columns: dict[str, Ints]) -> dict[str, _Column]:
    result = {}
    for name, values in columns.items():
        numbers = (values << 1) ^ (values >> 63)
        largest = int(numbers.view(np.uint64).max(initial=0))
        width = max(1, (largest.bit_length() + 7) // 8)
        planes = numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
        result[name] = _Column(width, planes.T.tobytes())
    return result


def _unpacked(columns: dict[str, _Column]) -> dict[str, Ints]:
    result = {}
    for name, column in columns.items():
        if not 1 <= column.width <= 8 or len(column.data) % column.width:
            raise ValueError("a column is cut short")
        count = len(column.data) // column.width
        planes = np.zeros((count, 8), dtype=np.uint8)
        planes[:, : column.width] = np.frombuffer(column.data, np.uint8).reshape(column.width, count).T
        numbers = planes.reshape(-1).view("<u8")
        result[name] = (numbers >> np.uint64(1)).astype(np.int64) ^ -(numbers & np.uint64(1)).astype(np.int64)
    return result


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
    for table in (facts.steps, calls, facts.kernels):
        if not _fits(table):
            raise ValueError("columns differ in length")
        for name, column in _columns(table).items():
            if name not in ("key", "work_hash") and np.abs(column.astype(np.float64)).sum() > _LARGEST:
                raise ValueError("a number is out of range")
    if (facts.steps.end_ns < facts.steps.start_ns).any() or not abs(facts.base_ns) < _LARGEST:
        raise ValueError("a step ends before it begins")
    if len(calls) and (min(calls.duration_ns.min(), calls.work_ns.min(), calls.idle_ns.min()) < 0):
        raise ValueError("a collective lasts less than nothing")
