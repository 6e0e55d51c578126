"""Our figures against HTA's (Holistic Trace Analysis, without its rounding), by its own definitions. Microseconds.

Its rules, read from its code:

- Of a recording with several steps it keeps the GPU work whose launch call started before the last step ended, and so
  drops what was queued before the recording began.
- Idle time: from the first GPU activity to the end of the last, less the time in which something ran. Computation is
  what neither is communication (``nccl...Kernel``), nor a copy or set, nor has "Sync" in its name.
- Idle time by stream: host wait where the next launch call started after the gap did, kernel wait where the gap is
  under 30 us, else other.
- Launch statistics: ``cudaLaunchKernel``, ``cudaLaunchKernelExC``, ``cudaMemcpyAsync`` and ``cudaMemsetAsync`` only;
  the delay is from the call's end to the work's start, at least 0.
- Queue: per stream the launches that have begun less the work that has begun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from compare_tracelens import clock_spacing
from comparison_rows import ROUNDING, Row

from tb_dlprof_plugin.metrics.idle_gaps import GapKind, idle_gaps
from tb_dlprof_plugin.metrics.launches import launch_columns
from tb_dlprof_plugin.model.intervals import Intervals, merge, union
from tb_dlprof_plugin.model.profile import Bools, Ints, KernelKind
from tb_dlprof_plugin.profile_view import ProfileView

DROPPED = "drops work whose launch it does not see"
NAMED_CALLS = "counts cudaLaunchKernel(ExC), cudaMemcpyAsync and cudaMemsetAsync only"
STREAM_NAMED = "counts every event that names a stream as GPU work: waits, host calls of Triton"
_COMMUNICATION = re.compile(r"^nccl.*Kernel")
_NOT_COMPUTATION = re.compile(r"(^nccl.*Kernel)|(.*(Memcpy)|(Memset))|(.*Sync)")
_LAUNCH_STATISTICS = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"}
_QUEUE = _LAUNCH_STATISTICS | {
    "cuLaunchKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel",
    "hipMemsetAsync", "hipMemcpyAsync", "hipMemcpyWithStream",
}  # fmt: skip
_KERNEL_WAIT_US = 30.0
_GAP_KINDS = {GapKind.HOST_WAIT: "host_wait", GapKind.KERNEL_WAIT: "kernel_wait", GapKind.OTHER: "other"}
Floats = npt.NDArray[np.float64]
_CENT = 0.0051
"""HTA rounds some figures to hundredths."""


class _Args(msgspec.Struct):
    stream: int | str | None = None


class _Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float = 0.0
    dur: float = 0.0
    args: _Args | None = None


class _Document(msgspec.Struct):
    traceEvents: list[_Event]
    baseTimeNanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class NamedStreams:
    """Events that name a stream and are no GPU work; HTA counts them all the same. Times in ns of our recording."""

    start_ns: Ints
    stop_ns: Ints
    computation: Bools

    def with_these(self, intervals: Intervals, chosen: Bools | None = None) -> Intervals:
        """The intervals and these, or those of these that are chosen."""
        rows = np.ones(len(self.start_ns), dtype=np.bool_) if chosen is None else chosen
        return merge(intervals, union(self.start_ns[rows], self.stop_ns[rows]))


def compare(data: bytes, view: ProfileView, theirs: dict[str, Any]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each table; ``data`` is the trace's JSON, ``theirs`` what the peer program printed."""
    kept = _kept(view)
    # HTA computes with the file's own microseconds as floats.
    document = msgspec.json.decode(data, type=_Document)
    origin_ns = view.profile.base_time_unix_ns - document.baseTimeNanoseconds
    spacing = clock_spacing(data)
    named = _named_streams(document.traceEvents, origin_ns)
    yield "GPU time", time_rows(view, kept, named, theirs, spacing)
    yield "idle time", idle_rows(view, kept, theirs["idle"], origin_ns)
    yield "launches", launch_rows(view, kept, theirs["launches"], spacing)
    if theirs["queue"] is not None:
        yield "queue", queue_rows(view, kept, theirs["queue"])


def time_rows(
    view: ProfileView, kept: Bools, streams: NamedStreams, theirs: dict[str, Any], spacing: float
) -> list[Row]:
    """Busy, idle and computing time, and how much of the communication computation overlaps."""
    profile = view.profile
    launches = profile.launches
    everything = np.ones(len(launches), dtype=np.bool_)
    kind = profile.kernels.kind[launches.kernel]
    names = [profile.strings[name] for name in profile.kernels.name.tolist()]

    def named(pattern: re.Pattern[str]) -> Bools:
        matches = np.array([pattern.match(name) is not None for name in names], dtype=np.bool_)
        result: Bools = matches[launches.kernel]
        return result

    communication, computation = named(_COMMUNICATION), ~named(_NOT_COMPUTATION)
    rows = [
        Row(
            f"number of {name} events",
            float((kind == value).sum()),
            float(theirs["gpu_events"].get(name, theirs["gpu_events"].get(_OLD[name], 0))),
            DROPPED,
            float(((kind == value) & kept).sum()),
        )
        for name, value in _GPU_EVENTS.items()
    ]
    busy = _running(view, everything)
    their_busy = streams.with_these(_running(view, kept))
    their_computing = streams.with_these(_running(view, kept & computation), streams.computation)
    figures = {
        "kernel_time": (_span(busy), _span(their_busy)),
        "idle_time": (_span(busy) - _length(busy), _span(their_busy) - _length(their_busy)),
        "compute_time": (
            _length(_running(view, (kind == KernelKind.KERNEL) & ~communication)),
            _length(their_computing),
        ),
    }
    reason = STREAM_NAMED if kept.all() else DROPPED
    rounding = spacing * (2 + len(launches))
    rows += [
        Row(what, own / 1e3, theirs["temporal"][what], reason, by_rule / 1e3, rounding)
        for what, (own, by_rule) in figures.items()
    ]
    communicating = _running(view, kept & communication)
    overlapped = None
    if _length(communicating):
        both = _length(communicating) + _length(their_computing) - _length(merge(communicating, their_computing))
        overlapped = 100 * both / _length(communicating)
    rows.append(
        Row("communication overlapped by computation (%)", overlapped, theirs["overlap_percent"], rounding=_CENT)
    )
    return rows


_GPU_EVENTS = {"kernel": KernelKind.KERNEL, "gpu_memcpy": KernelKind.MEMCPY, "gpu_memset": KernelKind.MEMSET}
_OLD = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset"}


def idle_rows(view: ProfileView, kept: Bools, theirs: list[dict[str, Any]], origin_ns: int) -> list[Row]:
    """Idle time by stream and reason; and, where there is one stream only, our own table of gaps.

    A gap goes to host wait or not by which of two times is the earlier, so HTA's floats can turn it.
    """
    launches = view.profile.launches
    begins = _call_starts(view)
    theirs_by = {(row["stream"], row["category"]): row["time"] for row in theirs}
    exact: dict[tuple[int, str], float] = {}
    rounded: dict[tuple[int, str], float] = {}
    for stream in np.unique(launches.stream[kept]).tolist():
        rows = np.flatnonzero(kept & (launches.stream == stream))
        start, duration, begun = launches.start_ns[rows], launches.duration_ns[rows] / 1e3, begins[rows]
        launched = begun >= 0
        for sums, start_us, begun_us in (
            (exact, start / 1e3, begun / 1e3),
            (rounded, _floats(start, origin_ns), _floats(begun, origin_ns)),
        ):
            for reason, value in _gaps(start_us, duration, np.where(launched, begun_us, np.nan)).items():
                sums[stream, reason] = value
    result = [
        Row(
            f"{reason} on stream {stream}",
            exact.get((stream, reason), 0.0),
            theirs_by.get((stream, reason), 0.0),
            ROUNDING,
            rounded.get((stream, reason), 0.0),
            _CENT,
        )
        for stream, reason in sorted(exact.keys() | theirs_by.keys())
    ]
    if len({*zip(launches.device.tolist(), launches.stream.tolist(), strict=True)}) == 1 and kept.all():
        gaps = idle_gaps(view, view.selection())
        first, last = int(launches.start_ns.min()), int((launches.start_ns + launches.duration_ns).max())
        inner = (gaps.start_ns >= first) & (gaps.start_ns + gaps.duration_ns <= last)
        key = int(launches.stream[0])
        for kind, reason in _GAP_KINDS.items():
            own = float(gaps.duration_ns[inner & (gaps.kind == kind)].sum()) / 1e3
            their = theirs_by.get((key, reason), 0.0)
            result.append(
                Row(f"{reason} in our table of gaps", own, their, ROUNDING, rounded.get((key, reason), 0.0), _CENT)
            )
    return result


def _gaps(start: Floats, duration: Floats, begun: Floats) -> dict[str, float]:
    """Time before each activity but the first, by HTA's reason; ``begun`` is when its call began, NaN for unknown."""
    before = (start + duration)[:-1]
    gap = start[1:] - before
    host = begun[1:] > before
    reasons = np.where(host, "host_wait", np.where(gap < _KERNEL_WAIT_US, "kernel_wait", "other"))
    return {reason: float(gap[reasons == reason].sum()) for reason in _GAP_KINDS.values()}


def _floats(times_ns: Ints, origin_ns: int) -> Floats:
    """The times as the floats (us) that a JSON parser makes of them, from the first on."""
    texts = (divmod(int(time) + origin_ns, 1000) for time in times_ns.tolist())
    values = np.array([float(f"{us}.{ns:03d}") for us, ns in texts], dtype=np.float64)
    return values - float(np.floor(origin_ns / 1000))


def launch_rows(view: ProfileView, kept: Bools, theirs: dict[str, float], spacing: float) -> list[Row]:
    """HTA's launch statistics against our launch columns."""
    launches = view.profile.launches
    columns = launch_columns(view, view.selection())
    launched = columns.call_ns >= 0
    counted = kept & launched & _called(view, _LAUNCH_STATISTICS)

    def figures(rows: Bools) -> dict[str, float]:
        # Ours is unknown (-1) where the clocks disagree, HTA's is 0.
        delay = np.maximum(columns.delay_ns[rows], 0)
        call, work = columns.call_ns[rows], launches.duration_ns[rows]
        return {
            "count": float(rows.sum()),
            "cpu_duration": float(call.sum()) / 1e3,
            "gpu_duration": float(work.sum()) / 1e3,
            "launch_delay": float(delay.sum()) / 1e3,
            "max_launch_delay": float(delay.max(initial=0)) / 1e3,
            "short_kernels": float((work < call).sum()),
            "long_calls": float((call > 50_000).sum()),
            "long_delays": float((delay > 100_000).sum()),
        }

    ours, by_rule = figures(launched), figures(counted)
    rounding = {"launch_delay": 2 * spacing * by_rule["count"], "max_launch_delay": 2 * spacing}
    return [Row(what, ours[what], theirs[what], NAMED_CALLS, by_rule[what], rounding.get(what, 0.0)) for what in ours]


def queue_rows(view: ProfileView, kept: Bools, theirs: dict[str, float]) -> list[Row]:
    """The longest queue of each stream."""
    launches = view.profile.launches
    columns = launch_columns(view, view.selection())
    begins = _call_starts(view)
    counted = kept & (columns.call_ns >= 0) & _called(view, _QUEUE)
    rows = []
    for stream in np.unique(launches.stream[kept & (columns.call_ns >= 0)]).tolist():
        here = launches.stream == stream
        mine = np.flatnonzero(here & counted)
        longest = _longest_queue(begins[mine], launches.start_ns[mine]) if len(mine) else None
        theirs_here = theirs.get(str(stream))
        reason = NAMED_CALLS if (counted & here).sum() < (kept & here).sum() else DROPPED
        rows.append(
            Row(f"longest queue of stream {stream}", float(columns.queue[here].max()), theirs_here, reason, longest)
        )
    return rows


def _longest_queue(entered: Ints, left: Ints) -> float:
    times = np.concatenate((entered, left))
    steps = np.concatenate((np.ones(len(entered), dtype=np.int64), -np.ones(len(left), dtype=np.int64)))
    return float(np.cumsum(steps[np.argsort(times, kind="stable")]).max())


def _kept(view: ProfileView) -> Bools:
    """The GPU activities that HTA keeps."""
    profile = view.profile
    iterations = profile.iterations
    launches = profile.launches
    if iterations.found_by != "profiler_step" or len(iterations) < 2:
        return np.ones(len(launches), dtype=np.bool_)
    begins = _call_starts(view)
    result: Bools = (begins >= 0) & (begins <= int(iterations.host_stop_ns[-1]))
    return result


def _call_starts(view: ProfileView) -> Ints:
    """Start of the runtime call that launched each activity, -1 where it was not recorded."""
    profile = view.profile
    launched = launch_columns(view, view.selection()).call_ns >= 0
    result = np.full(len(profile.launches), -1, dtype=np.int64)
    result[launched] = profile.calls.start_ns[profile.launches.call[launched]]
    return result


def _called(view: ProfileView, names: set[str]) -> Bools:
    """Which activities were launched by a call of one of these names."""
    profile = view.profile
    wanted = np.array([text in names for text in profile.strings], dtype=np.bool_)
    call = profile.launches.call
    named: Bools = wanted[profile.ops.name[profile.calls.op[np.maximum(call, 0)]]]
    return (call >= 0) & named


def _running(view: ProfileView, rows: Bools) -> Intervals:
    launches = view.profile.launches
    return union(launches.start_ns[rows], launches.start_ns[rows] + launches.duration_ns[rows])


def _named_streams(events: list[_Event], origin_ns: int) -> NamedStreams:
    known = {*_GPU_EVENTS, *_OLD.values()}
    rows = [
        event
        for event in events
        if event.ph == "X" and event.cat not in known and event.args is not None and isinstance(event.args.stream, int)
        and event.args.stream >= 0
    ]  # fmt: skip
    start = np.array([round(event.ts * 1e3) - origin_ns for event in rows], dtype=np.int64)
    return NamedStreams(
        start_ns=start,
        stop_ns=start + np.array([round(event.dur * 1e3) for event in rows], dtype=np.int64),
        computation=np.array([_NOT_COMPUTATION.match(event.name) is None for event in rows], dtype=np.bool_),
    )


def _span(intervals: Intervals) -> int:
    return int(intervals[1][-1] - intervals[0][0]) if len(intervals[0]) else 0


def _length(intervals: Intervals) -> int:
    return int((intervals[1] - intervals[0]).sum())
