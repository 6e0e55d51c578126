"""Our figures against those of torch-tb-profiler 0.4.3, by its own definitions. Microseconds, except where said.

Its rules, read from its code: a step lasts from the end of the one before to the end of what it launched; kernels go
before copies, sets, communication, runtime calls, the DataLoader, ops; "GPU utilization" counts kernels, not copies;
an operator's self time leaves out children and runtime calls.

Traces of today's profiler hold categories that it does not know (``cuda_runtime``). It then links nothing: device times
are 0, steps are those of the host, self times include runtime calls, and every kernel counts once for each timeline
that has steps. It also takes the steps' copies on the GPU's timelines for more steps, and adds float microseconds.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from comparison_rows import Row

from tb_dlprof_plugin.metrics.averages import OperatorAverage, operator_averages
from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.model.profile import TIME_CATEGORIES, CallKind, Calls, KernelKind
from tb_dlprof_plugin.profile_view import ProfileView

UNLINKED = "does not know cuda_runtime: links nothing"
REPEATED = "does not know cuda_runtime: unlinked kernels count once a timeline with steps"
COPIES = "counts gpu_user_annotation as steps"
UNKNOWN_CALLS = "leaves runtime calls and annotations out of its call tree"
OWN_END = "a step without GPU work ends with its annotation, ours where the next begins"
CUT = "leaves out last steps that launched less than 80 % of the work of the step before"
NO_STEPS = "without steps: from the first op to the end of the last"
_STEP = "ProfilerStep#"
_COMMUNICATION = re.compile(r"ProfilerStep#|(nccl|gloo):(broadcast|reduce|all_reduce|all_gather|reduce_scatter)$")
"""Annotations that its call tree holds."""


class _Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    tid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """What matters of the trace itself.

    Attributes:
        linked: whether it holds the launch category that torch-tb-profiler knows.
        copies: durations (us) of each step's copies on GPU timelines, by step number.
        timelines: how many threads and streams have steps.
        spacing: distance (us) of neighbouring floats at its times.
    """

    linked: bool
    copies: dict[str, list[float]]
    timelines: int
    spacing: float

    @classmethod
    def of(cls, data: bytes) -> Source:
        """From the trace's JSON."""
        events = [event for event in msgspec.json.decode(data, type=_Trace).traceEvents if event.ph == "X"]
        copies: dict[str, list[float]] = defaultdict(list)
        for event in events:
            if event.cat == "gpu_user_annotation" and event.name.startswith(_STEP):
                copies[event.name.removeprefix(_STEP)].append(event.dur)
        return cls(
            linked=not any(event.cat in ("cuda_runtime", "cuda_driver") for event in events),
            copies=dict(copies),
            timelines=len({str(event.tid) for event in events if event.name.startswith(_STEP)}),
            spacing=float(np.spacing(max((event.ts for event in events), default=0.0))),
        )


def compare(data: bytes, view: ProfileView, theirs: dict[str, Any]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each table; ``data`` is the trace's JSON, ``theirs`` what the peer program printed."""
    source = Source.of(data)
    yield "steps", step_rows(view, theirs["steps"], source)
    yield "GPU utilization", utilization_rows(view, theirs["gpu_utilization"], source)
    yield "kernels", kernel_rows(view, theirs["kernels"])
    yield "kernels by operator", kernels_by_operator(view, theirs["kernels_by_op"], source)
    yield "operators", operator_rows(view, theirs["ops"], source)


def step_rows(view: ProfileView, theirs: list[dict[str, Any]], source: Source) -> list[Row]:
    """Duration of each step, and of its parts on the GPU."""
    iterations = view.profile.iterations
    index = {str(number): i for i, number in enumerate(iterations.number.tolist())}
    host = _annotation_durations(view)
    rounding = 2 * source.spacing
    if not host:
        total = float(iterations.duration_ns.sum()) / 1e3
        return [Row("recording", total, step["Total"], NO_STEPS, _ops_span(view), rounding) for step in theirs]
    # (iteration, part): mean over GPUs, as our pages show it.
    of = dict(zip(TIME_CATEGORIES, (iterations.category_ns.mean(axis=1) / 1e3).T, strict=True))
    kernels, memory = of["tensor_core"] + of["other_kernels"], of["memory"]
    rows, seen = [], set()
    for step in theirs:
        name = step["name"]
        i = index.get(name)
        if name in seen or i is None:
            durations = source.copies.get(name, [])
            nearest = min(durations, key=lambda duration: abs(duration - step["Total"]), default=None)
            rows.append(Row(f"step {name} again", None, step["Total"], COPIES, nearest, rounding))
            continue
        seen.add(name)
        total = float(iterations.duration_ns[i]) / 1e3
        reason, theirs_by_rule = ("", None) if source.linked else (UNLINKED, host.get(name))
        if not view.profile.has_gpu:
            reason, theirs_by_rule = OWN_END, host.get(name)
        rows.append(Row(f"step {name}", total, step["Total"], reason, theirs_by_rule, rounding))
        if source.linked and view.profile.has_gpu:
            gpu = step["Kernel"] + step["Communication"]
            rows.append(Row(f"step {name}: kernels", float(kernels[i]), gpu))
            rows.append(Row(f"step {name}: copies and sets", float(memory[i]), step["Memcpy"] + step["Memset"]))
            rest = step["Total"] - gpu - step["Memcpy"] - step["Memset"]
            rows.append(Row(f"step {name}: nothing on the GPU", total - float(kernels[i] + memory[i]), rest))
    for name in [name for name in index if name not in seen]:
        behind = index[name] > max((index[other] for other in seen), default=-1)
        rows.append(Row(f"step {name}", float(iterations.duration_ns[index[name]]) / 1e3, None, CUT if behind else ""))
    return rows


def utilization_rows(view: ProfileView, theirs: dict[str, float], source: Source) -> list[Row]:
    """Percent; one GPU only, as ours is the mean of all."""
    if len(theirs) != 1 or not source.linked:
        return []
    totals = step_totals(view, view.selection())
    names = ("tensor_core", "other_kernels")
    kernels = sum(totals.category_ns[name] or 0 for name in names)
    return [
        Row(
            "GPU utilization (%)",
            totals.gpu_utilization,
            100 * next(iter(theirs.values())),
            "counts kernels, not copies and sets",
            100 * kernels / totals.wall_ns,
        )
    ]


def kernel_rows(view: ProfileView, theirs: list[dict[str, Any]]) -> list[Row]:
    """All kernels by name."""
    profile = view.profile
    launches, strings = profile.launches, profile.strings
    chosen = profile.kernels.kind[launches.kernel] == KernelKind.KERNEL
    times: dict[str, list[int]] = defaultdict(list)
    for name, duration in zip(
        profile.kernels.name[launches.kernel[chosen]].tolist(), launches.duration_ns[chosen].tolist(), strict=True
    ):
        times[strings[name]].append(duration)
    published = {row["name"]: row for row in theirs}
    rows = []
    for name in sorted(times.keys() | published.keys()):
        own, their = times.get(name), published.get(name, {})
        figures = (
            {"count": float(len(own)), "sum": sum(own) / 1e3, "min": min(own) / 1e3, "max": max(own) / 1e3}
            if own
            else dict.fromkeys(("count", "sum", "min", "max"))
        )
        rows += [Row(f"{what} of {name}", value, their.get(what)) for what, value in figures.items()]
    return rows


def kernels_by_operator(view: ProfileView, theirs: list[dict[str, Any]], source: Source) -> list[Row]:
    """Kernels by name and by the operator that launched them; "N/A" for those without one."""
    profile = view.profile
    launches, strings = profile.launches, profile.strings
    ours: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for kernel, op, duration in zip(
        launches.kernel.tolist(), view.launch_op.tolist(), launches.duration_ns.tolist(), strict=True
    ):
        if profile.kernels.kind[kernel] == KernelKind.KERNEL:
            name = strings[profile.ops.name[op]] if op >= 0 and source.linked else "N/A"
            sums = ours[strings[profile.kernels.name[kernel]], name]
            sums[0] += 1
            sums[1] += duration / 1e3
    published: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    operators = _op_names(view)
    for row in theirs:
        # An annotation or the call tree's root is no operator.
        op_name = row["op"] if row["op"] in operators else "N/A"
        key = (row["name"], op_name)
        sums = published[key]
        sums[0] += row["calls"]
        sums[1] += row["sum"]
    rows = []
    for key in sorted(ours.keys() | published.keys()):
        own, their = ours.get(key), published.get(key)
        for column, what in enumerate(("calls", "sum")):
            value = own[column] if own else None
            repeated = value * source.timelines if value is not None and not source.linked else None
            rounding = source.spacing * their[0] if their and column else 0.0
            rows.append(
                Row(
                    f"{what} of {key[0]} in {key[1]}",
                    value,
                    their[column] if their else None,
                    REPEATED,
                    repeated,
                    rounding,
                )
            )
    return rows


def operator_rows(view: ProfileView, theirs: list[dict[str, Any]], source: Source) -> list[Row]:
    """Calls, host and device times of every operator."""
    ours = {row.name: row for row in operator_averages(view)}
    published = {row["name"]: row for row in theirs}
    known = view if source.linked else _known_calls(view)
    by_rule = ours if source.linked else {row.name: row for row in operator_averages(known)}
    children = _children(known)
    rows = []
    for name in sorted(published.keys() | (ours.keys() & _op_names(view))):
        own, their = ours.get(name), published.get(name, {})
        rule = _figures(by_rule.get(name))
        # A duration is the difference of two rounded times, a self time that of many.
        rounded = 0.0 if own is None else 2 * source.spacing * (own.calls + children.get(name, 0))
        for what, value in _figures(own).items():
            reason = "" if source.linked else UNKNOWN_CALLS if what.startswith("host") else UNLINKED
            rounding = rounded if what.startswith("host") else 0.0
            rows.append(Row(f"{what} of {name}", value, their.get(what), reason, rule[what], rounding))
    return rows


def _known_calls(view: ProfileView) -> ProfileView:
    """The recording with the calls that torch-tb-profiler knows; what lies in others lies in the call around them."""
    profile = view.profile
    calls = profile.calls
    kind = profile.ops.kind[calls.op]
    kept_names = np.array([_COMMUNICATION.match(text) is not None for text in profile.strings], dtype=np.bool_)
    removed = (kind != CallKind.OP) & ~kept_names[profile.ops.name[calls.op]]
    above = np.zeros(len(calls), dtype=np.int64)
    for level in range(1, int(calls.depth.max(initial=0)) + 1):
        rows = np.flatnonzero(calls.depth == level)
        parent = view.call_parent[rows]
        above[rows] = above[parent] + removed[parent]
    kept = ~removed
    columns = (calls.op, calls.start_ns, calls.duration_ns, calls.depth - above, calls.thread)
    unlaunched = dataclasses.replace(profile.launches, call=np.full(len(profile.launches), -1, dtype=np.int64))
    return ProfileView(
        dataclasses.replace(profile, calls=Calls(*(column[kept] for column in columns)), launches=unlaunched)
    )


def _children(view: ProfileView) -> dict[str, int]:
    """Per name the number of direct children of its calls."""
    calls, ops, strings = view.profile.calls, view.profile.ops, view.profile.strings
    parent = view.call_parent[view.call_parent >= 0]
    names, counts = np.unique(ops.name[calls.op[parent]], return_counts=True)
    return {strings[name]: count for name, count in zip(names.tolist(), counts.tolist(), strict=True)}


def _ops_span(view: ProfileView) -> float:
    calls = view.profile.calls
    rows = view.profile.ops.kind[calls.op] == CallKind.OP
    return float((calls.start_ns[rows] + calls.duration_ns[rows]).max() - calls.start_ns[rows].min()) / 1e3


def _figures(row: OperatorAverage | None) -> dict[str, float | None]:
    if row is None:
        return dict.fromkeys(("calls", "host_total", "host_self", "device_total", "device_self"))
    return {
        "calls": float(row.calls),
        "host_total": row.cpu_total_ns / 1e3,
        "host_self": row.cpu_self_ns / 1e3,
        "device_total": (row.device_total_ns or 0) / 1e3,
        "device_self": (row.device_self_ns or 0) / 1e3,
    }


def _op_names(view: ProfileView) -> set[str]:
    ops = view.profile.ops
    return {view.profile.strings[i] for i in np.unique(ops.name[ops.kind == CallKind.OP]).tolist()}


def _annotation_durations(view: ProfileView) -> dict[str, float]:
    """Duration of each step's own annotation on the host (us)."""
    calls, ops, strings = view.profile.calls, view.profile.ops, view.profile.strings
    result: dict[str, float] = {}
    for op, duration in zip(calls.op.tolist(), calls.duration_ns.tolist(), strict=True):
        name = strings[ops.name[op]]
        if name.startswith(_STEP):
            result.setdefault(name.removeprefix(_STEP), duration / 1e3)
    return result
