"""Facts of a rank to bytes and back: at most 200 kB for ten iterations of 2,000 collectives.

The stored facts are an array of `FORMAT` and the fields of `RankFacts` by their numbers; a table is a map of its packed
columns, as small differences (`facts_differences`), deflated byte by byte of equal weight. Calls of each step are
deflated by themselves: of a job of thousands of ranks few steps are read.
"""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ParamSpec, TypeAlias, TypeVar

import msgspec
import numpy as np

from tb_dlprof_plugin.fleet.facts_check import TABLES, check, fits, numbers_in, sizes_of_parts
from tb_dlprof_plugin.fleet.facts_differences import (
    DIFFERENCES,
    small_calls,
    small_gradients,
    whole_calls,
    whole_gradients,
)
from tb_dlprof_plugin.fleet.packed_columns import (
    NO_NUMBERS,
    PackedColumn,
    SharedParts,
    numbers_of,
    packed,
    rows_of,
    unpacked,
)
from tb_dlprof_plugin.fleet.rank_facts import (
    PATH_COLUMNS,
    UNKNOWN,
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
from tb_dlprof_plugin.store.layout import Field, fields_of
from tb_dlprof_plugin.store.validation import columns_of

FORMAT = 4
"""1 had no paths of host and GPU, 1 and 2 were deflated as a whole, 1 to 3 had no gradients."""
_FIELDS_OF_FORMAT_1 = 16
"""Field numbers that every format has."""
_ZLIB_BEGINS = b"\x78"
_LATER = ("outside_ns",)
"""Columns that earlier versions of `FORMAT` did not store."""
_MOST_COLUMNS = 64
"""Of a table; the largest has 25."""
_BYTES_OF_ROW, _BYTES_OF_STEP = 4, 40
"""Fewer than any recorded call, and step, has: the least are 6 and 100."""
_PIECE_BYTES = 2_500
"""Of the columns of one step, without their numbers: a dictionary of those that all steps share and of its own."""
_SMALL_BLOCK = 64
_LONGEST_MS = 1e12
"""Of a step; 30 years."""
_E = TypeVar("_E")
_R = TypeVar("_R")
_P = ParamSpec("_P")


class _Group(msgspec.Struct, array_like=True):
    name: str
    description: str
    member_runs: msgspec.Raw
    dimension: str


_Table: TypeAlias = Annotated[dict[str, PackedColumn], msgspec.Meta(max_length=_MOST_COLUMNS)]
_StepLength: TypeAlias = tuple[float, float, float, str] | None
_COLUMNS: msgspec.msgpack.Decoder[dict[str, PackedColumn]] = msgspec.msgpack.Decoder(_Table)
_NUMBERS = msgspec.msgpack.Decoder(list[int])
_PIECES = msgspec.msgpack.Decoder(list[bytes])
_LISTS: dict[str, msgspec.msgpack.Decoder[list[Any]]] = {
    "groups": msgspec.msgpack.Decoder(list[_Group]),
    "strings": msgspec.msgpack.Decoder(list[str]),
    "mesh": msgspec.msgpack.Decoder(list[tuple[str, int]]),
    "notes": msgspec.msgpack.Decoder(list[str]),
}
"""Lists whose entries `_listed` decodes singly, after the allowance has room for them."""


def _stored_field(field: Field) -> tuple[Any, ...]:
    """Name and type of a field as it is stored, with a default where it is not in every format."""
    if field.name in TABLES:
        kind: Any = _Table
    elif field.name in _LISTS:
        kind = msgspec.Raw
    else:
        kind = _StepLength if field.kind is StepLength else field.kind
    if field.number <= _FIELDS_OF_FORMAT_1:
        return field.name, kind
    return field.name, kind, {} if field.name in TABLES else RankFacts.__dataclass_fields__[field.name].default


_BY_NUMBER = sorted(fields_of(RankFacts), key=lambda field: field.number)
_AS_THEY_ARE = [field.name for field in _BY_NUMBER if field.name not in (*TABLES, *_LISTS, "step_length")]
_Stored: Any = msgspec.defstruct("_Stored", [("format", int), *map(_stored_field, _BY_NUMBER)], array_like=True)
_STORED = msgspec.msgpack.Decoder(_Stored)


class _StoredSteps(msgspec.Struct, array_like=True):
    """``steps`` has the deflated columns of each step's collectives, and ``head``, a deflated `_Stored`, those that are
    the same in all steps; all of them where ``steps`` is empty."""

    format: int
    head: bytes
    steps: msgspec.Raw


_STEPS = msgspec.msgpack.Decoder(_StoredSteps)


@dataclass(slots=True)
class _Opened:
    """The facts of a rank, unpacked; the numbers of its columns are not decoded."""

    stored: Any
    allowance: Allowance
    lists: dict[str, list[Any]]
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


class OtherFormat(ProfileError):
    """Facts of an earlier format than is asked for, or of a later one."""


def encode_facts(facts: RankFacts) -> bytes:
    """The bytes to store."""
    shared, pieces = _pieces(facts.collectives, facts.steps)
    groups = [_Group(g.name, g.description, _raw(regular_runs(g.members)), g.dimension) for g in facts.groups]
    stored = _Stored(
        format=FORMAT,
        step_length=None if facts.step_length is None else dataclasses.astuple(facts.step_length),
        **{name: _raw(groups if name == "groups" else getattr(facts, name)) for name in _LISTS},
        **{name: getattr(facts, name) for name in _AS_THEY_ARE},
        steps=packed(numbers_in(facts.steps)),
        collectives=shared,
        kernels=packed(numbers_in(facts.kernels)),
        gradients=packed(small_gradients(facts.gradients)) if len(facts.gradients) else {},
    )
    for level in (9, 0):
        head = zlib.compress(msgspec.msgpack.encode(stored), level)
        data = msgspec.msgpack.encode(_StoredSteps(FORMAT, head, _raw([_deflated(piece, level) for piece in pieces])))
        if not isinstance(decode_ranks([data])[0], ProfileError):
            break
        # It takes too much for its size.
    return data


def _raw(content: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(content))


def _pieces(calls: Collectives, steps: Steps) -> tuple[dict[str, PackedColumn], list[dict[str, PackedColumn]]]:
    """The packed columns that all steps share, and those of each step; no steps where calls are in no order of them."""
    if (np.diff(calls.iteration) < 0).any():
        return packed(small_calls(calls, steps)), []
    pieces = []
    for begin, stop in itertools.pairwise(np.searchsorted(calls.iteration, np.arange(len(steps) + 1))):
        own = {name: column[begin:stop] for name, column in numbers_in(calls).items()}
        pieces.append(packed(small_calls(Collectives(**own), steps)))
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
    lists = {name: _listed(getattr(stored, name), decoder, allowance) for name, decoder in _LISTS.items()}
    return _Opened(stored, allowance, lists, pieces)


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
    all_steps = [Steps(**columns) for columns in _tables("steps", opened, shared)]
    all_kernels = [KernelTimes(**columns) for columns in _tables("kernels", opened, shared)]
    if not all(fits(steps) and len(steps) for steps in all_steps):
        raise ValueError("its steps differ in number")
    all_calls = _calls(opened, all_steps, numbers, shared)
    return [
        RankFacts(
            **{name: getattr(stored, name) for name in _AS_THEY_ARE}
            | {name: tuple(one.lists[name]) for name in _LISTS}
            | {
                "world_size": stored.world_size if is_world_size(stored.world_size) else UNKNOWN,
                "batch_size": stored.batch_size if stored.batch_size > 0 else UNKNOWN,
                "bucket_bytes": stored.bucket_bytes if stored.bucket_bytes > 0 else UNKNOWN,
                "step_length": _step_length(stored.step_length),
                "groups": tuple(
                    Group(group.name, group.description, one.members(group, shared), group.dimension)
                    for group in one.lists["groups"]
                ),
                "steps": steps,
                "collectives": calls,
                "kernels": kernels,
                "gradients": _gradients(stored.gradients),
            }
        )
        for one, steps, kernels, calls in zip(opened, all_steps, all_kernels, all_calls, strict=True)
        for stored in (one.stored,)
    ]


def _tables(name: str, opened: Sequence[_Opened], shared: SharedParts) -> list[dict[str, Ints]]:
    """The columns of a table of each rank."""
    stored = unpacked([getattr(one.stored, name) for one in opened], shared)
    return [
        {column: columns[column] for column in columns_of(TABLES[name]) if column in columns or column not in _LATER}
        for columns in stored
    ]


def _gradients(stored: dict[str, PackedColumn]) -> Gradients:
    if not stored:
        return Gradients()
    (columns,) = unpacked([stored], SharedParts())
    return whole_gradients({name: columns[name] for name in columns_of(Gradients)})


def _step_length(stored: tuple[float, float, float, str] | None) -> StepLength | None:
    """The step; None where it is not known, and of times that no step has."""
    if stored is None or not (0 <= stored[0] < _LONGEST_MS and 0 <= stored[1] <= stored[2] < _LONGEST_MS):
        return None
    return StepLength(*stored)


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
        result.update(zip(indices, whole_calls(joined, [all_steps[index] for index in indices]), strict=True))
    for index, one in enumerate(opened):
        if not one.steps and not all(wanted[index]):
            calls = result[index]
            rows = np.flatnonzero(np.array(wanted[index])[calls.iteration])
            result[index] = Collectives(**{name: column[rows] for name, column in numbers_in(calls).items()})
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
        name for name in columns_of(Collectives) if name not in PATH_COLUMNS or all(name in part for part in parts)
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
            known = shared.known(name, columns)
            if known is None:
                unknown.append((name, rank, columns))
            of_ranks.append(NO_NUMBERS if known is None else known)
    numbers = iter(numbers_of([column for _, _, columns in unknown for column in columns]))
    for name, rank, columns in unknown:
        own = list(itertools.islice(numbers, len(columns)))
        if name in DIFFERENCES:
            own = [np.cumsum(column) for column in own]
        joined = own[0] if len(own) == 1 else np.concatenate([NO_NUMBERS, *own])
        result[name][rank] = shared.kept(name, columns, joined)
    return result
