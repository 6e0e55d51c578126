"""From a snapshot of `torch.cuda.memory._snapshot()`, as plain objects, to who holds what.

Written from the fields of torch 2.1 to 2.13; each may be missing. Values of another type than theirs are passed over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from tb_dlprof_plugin.model.out_of_memory import HeldBy, HeldBytes, MemoryHeld, OomSummary, SizeBytes, StackBytes

MOST_ROWS = 2000
"""By holder and module; a model with more has a row for the rest."""
_MOST_STACKS = 200
_MOST_SIZES = 500
_MOST_POINTS = 400
_CHUNK = 1 << 14
"""Entries of a history that are gathered at once."""
_DEPTH = 8
"""Frames of a stack that are kept."""
_LONGEST_TEXT = 150
LIMIT = 1 << 62
"""Sizes, addresses and times are below."""
_IN_USE = "active_allocated"
_PENDING = ("active_pending_free", "active_awaiting_free")
_NO_POOL = (0, 0)

Names = Mapping[int, tuple[HeldBy, str]]
"""Holder and module by the address of a storage."""


class NoSnapshot(ValueError):
    """It is no snapshot of torch; the message says what is wrong."""


def whole(value: Any) -> int | None:
    """A size, address or time; None for anything else."""
    return value if type(value) is int and 0 <= value < LIMIT else None


def devices_of(snapshot: object) -> list[int]:
    """GPUs with segments, that with most reserved first.

    Raises:
        NoSnapshot: it has no list of segments.
    """
    reserved: Counter[int] = Counter()
    for segment in _segments(snapshot):
        reserved[whole(segment.get("device")) or 0] += whole(segment.get("total_size")) or 0
    return [device for device, _ in reserved.most_common()]


def held_of(snapshot: object, device: int, names: Names | None = None) -> MemoryHeld:
    """Who holds what of a GPU.

    Args:
        snapshot: of torch.
        device: its number.
        names: holder and module by address.

    Raises:
        NoSnapshot: it has no list of segments.
    """
    tally = _Tally(names or {})
    for segment in _segments(snapshot):
        if (whole(segment.get("device")) or 0) == device:
            tally.add(segment)
    return tally.result(device)


@dataclass
class _Tally:
    names: Names
    addresses: list[int] = field(init=False)
    allocated: int = 0
    reserved: int = 0
    whole_free: int = 0
    holes: int = 0
    largest_hole: int = 0
    expandable: bool = False
    rows: dict[tuple[HeldBy, str], list[int]] = field(default_factory=dict)
    stacks: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    sizes: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.addresses = sorted(self.names)

    def add(self, segment: dict[str, Any]) -> None:
        self.reserved += whole(segment.get("total_size")) or 0
        expandable = segment.get("is_expandable") is True
        self.expandable |= expandable
        pool = segment.get("segment_pool_id")
        private = isinstance(pool, (tuple, list)) and tuple(pool) != _NO_POOL
        at = whole(segment.get("address")) or 0
        free, in_use = [], False
        blocks = segment.get("blocks")
        for block in blocks if isinstance(blocks, list) else ():
            if not isinstance(block, dict):
                continue
            size = whole(block.get("size")) or 0
            found = whole(block.get("address"))
            address = at if found is None else found
            at = address + size
            state = block.get("state")
            if state == _IN_USE:
                in_use = True
                self._hold(address, size, block, private)
            elif state in _PENDING:
                in_use = True
                self._count("pending", "", size, block)
            else:
                free.append(size)
        if in_use:
            self.holes += sum(free)
            self.largest_hole = max([self.largest_hole, *free])
        else:
            self.whole_free += sum(free)

    def _hold(self, address: int, size: int, block: dict[str, Any], private: bool) -> None:
        name = self._name(address, size)
        kind, module = name or ("graph_pool" if private else "unnamed", "")
        self._count(kind, module, size, block)
        stack = stack_of(block.get("frames") or _first_history(block))
        if stack:
            sums = self.stacks.setdefault(stack, [0, 0])
            sums[0] += size
            sums[1] += 1
        if kind == "unnamed":
            self.sizes[size] += 1

    def _name(self, address: int, size: int) -> tuple[HeldBy, str] | None:
        at = bisect_left(self.addresses, address)
        if at < len(self.addresses) and self.addresses[at] < address + size:
            return self.names[self.addresses[at]]
        return None

    def _count(self, kind: HeldBy, module: str, size: int, block: dict[str, Any]) -> None:
        self.allocated += size
        sums = self.rows.setdefault((kind, module), [0, 0, 0])
        sums[0] += size
        sums[1] += whole(block.get("requested_size")) or size
        sums[2] += 1

    def result(self, device: int) -> MemoryHeld:
        rows = sorted((HeldBytes(*key, *sums) for key, sums in self.rows.items()), key=lambda row: -row.bytes)
        stacks = sorted((StackBytes(list(key), *sums) for key, sums in self.stacks.items()), key=lambda row: -row.bytes)
        sizes = sorted((SizeBytes(*one) for one in self.sizes.items()), key=lambda row: -row.size * row.blocks)
        return MemoryHeld(
            device=device,
            allocated=self.allocated,
            reserved=self.reserved,
            whole_free=self.whole_free,
            holes=self.holes,
            largest_hole=self.largest_hole,
            expandable=self.expandable,
            rows=rows[:MOST_ROWS],
            stacks=stacks[:_MOST_STACKS],
            sizes=sizes[:_MOST_SIZES],
            left_out=sum(row.bytes for row in rows[MOST_ROWS:]),
        )


def summary_of(snapshot: object, histories: Mapping[int, History] | None = None) -> OomSummary:
    """A snapshot that torch wrote, of the GPU that failed last, else of that with most reserved.

    Args:
        snapshot: of torch.
        histories: what was read of lists of entries, by the id of the list; others are whole.

    Raises:
        NoSnapshot: it is none.
    """
    devices = devices_of(snapshot)
    traces = snapshot.get("device_traces") if isinstance(snapshot, dict) else None
    failed = [(trace, entry) for trace, entry in _failures(traces) if trace in devices or not devices]
    device = failed[-1][0] if failed else (devices[0] if devices else 0)
    entry = failed[-1][1] if failed else {}
    held = held_of(snapshot, device)
    settings = snapshot.get("allocator_settings") if isinstance(snapshot, dict) else None
    requested = whole(entry.get("size"))
    trace = traces[device] if isinstance(traces, list) and device < len(traces) else []
    history = (histories or {}).get(id(trace)) or History(trace)
    notes = ["A snapshot of torch names no parameter, gradient or optimizer state: the hook's file does."]
    if not held.stacks:
        notes.append("No stacks were recorded: torch.cuda.memory._record_memory_history(stacks='python') records them.")
    return OomSummary(
        held=held,
        requested=requested,
        device_free=whole(entry.get("device_free")) if whole(entry.get("addr")) is None else whole(entry.get("addr")),
        where=list(stack_of(entry.get("frames"))),
        allocator_settings=_settings(settings),
        over_time=history.over_time(held.allocated),
        notes=notes,
    )


def _settings(settings: object) -> str:
    if not isinstance(settings, dict):
        return ""
    return ",".join(f"{str(key)[:40]}:{str(value)[:40]}" for key, value in list(settings.items())[:30])


def _segments(snapshot: object) -> Iterator[dict[str, Any]]:
    segments = snapshot.get("segments") if isinstance(snapshot, dict) else snapshot
    if not isinstance(segments, list):
        raise NoSnapshot("it has no list of segments")
    return (segment for segment in segments if isinstance(segment, dict))


def _failures(traces: object) -> Iterator[tuple[int, dict[str, Any]]]:
    for device, trace in enumerate(traces if isinstance(traces, list) else ()):
        for entry in trace if isinstance(trace, list) else ():
            if isinstance(entry, dict) and entry.get("action") == "oom":
                yield device, entry


STEPS = {"alloc": 1, "free_completed": -1}
"""Actions of a history that change what is allocated."""


class History:
    """Allocated bytes over the entries of a history, in at most some hundred bins."""

    def __init__(self, entries: object = ()) -> None:
        self._times: list[int] = []
        self._changes: list[int] = []
        """Of entries that are in no bin yet: us and bytes."""
        self._width = 1
        self._bins: list[_Bin] = []
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and entry.get("action") in STEPS:
                self.add(entry, STEPS[entry["action"]])

    def add(self, entry: dict[str, Any], sign: int) -> None:
        """An allocation (1) or a free (-1)."""
        self.extend([whole(entry.get("time_us")) or 0], [sign * (whole(entry.get("size")) or 0)])

    def extend(self, times_us: list[int], changes: list[int]) -> None:
        """Times of entries, and the bytes that each allocates or, below 0, frees."""
        self._times.extend(times_us)
        self._changes.extend(changes)
        if len(self._times) >= max(_CHUNK, self._width):
            count = len(self._times) // self._width * self._width
            self._bins += self._binned(count)
            del self._times[:count], self._changes[:count]
            # Of an odd number the last would become a narrower one.
            while len(self._bins) > _MOST_POINTS and len(self._bins) % 2 == 0:
                self._bins, self._width = _in_pairs(self._bins), 2 * self._width

    def _binned(self, count: int) -> list[_Bin]:
        """The first of the entries that are in no bin yet."""
        found = []
        for at in range(0, count, self._width):
            end = min(at + self._width, count)
            changes = self._changes[at:end]
            found.append(_Bin(self._times[end - 1], sum(changes), max(0, *accumulate(changes))))
        return found

    def over_time(self, now: int) -> list[tuple[int, int]]:
        """Allocated bytes, which end at what is allocated now: the highest of each bin, at its last time (us)."""
        bins = [*self._bins, *self._binned(len(self._times))]
        while len(bins) > _MOST_POINTS:
            bins = _in_pairs(bins)
        level, points = now - sum(one.change for one in bins), []
        for one in bins:
            points.append((one.last_us, max(level + one.highest, 0)))
            level += one.change
        return points


class _Bin(NamedTuple):
    """Some entries: the last one's time, by how much they change what is allocated, and the highest on the way."""

    last_us: int
    change: int
    highest: int


def _in_pairs(bins: list[_Bin]) -> list[_Bin]:
    pairs = zip(bins[::2], bins[1::2], strict=False)
    joined = [
        _Bin(two.last_us, one.change + two.change, max(one.highest, one.change + two.highest)) for one, two in pairs
    ]
    return joined + bins[2 * len(joined) :]


def _first_history(block: dict[str, Any]) -> object:
    """Frames as torch 2.0 wrote them."""
    history = block.get("history")
    first = history[0] if isinstance(history, list) and history else None
    return first.get("frames") if isinstance(first, dict) else None


def stack_of(frames: object) -> tuple[str, ...]:
    """Lines of a stack, the innermost first: Python's outside of torch, else the innermost of any kind."""
    found: list[str] = []
    other: list[str] = []
    for frame in frames if isinstance(frames, list) else ():
        if not isinstance(frame, dict):
            continue
        name, line = frame.get("filename"), whole(frame.get("line"))
        if not isinstance(name, str) or not isinstance(frame.get("name"), str):
            continue
        text = f"{name[-_LONGEST_TEXT:]}:{line or 0} {frame['name'][:_LONGEST_TEXT]}"
        if name.endswith(".py") and "/torch/" not in name:
            found.append(text)
        else:
            other.append(text)
        if len(found) == _DEPTH:
            break
    return tuple(found or other[:_DEPTH])
