"""The ops and modules of two runs side by side, and the launches of one op before and after."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Literal

import msgspec

from tb_dlprof_plugin.comparison import Comparison, OpPair, OpSide
from tb_dlprof_plugin.comparison.noise import is_noise
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.direction import Direction, direction_of
from tb_dlprof_plugin.model.formatting import shapes_text
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.common import ROLES, KernelText, Role, Verdict
from tb_dlprof_plugin.profile_view import ProfileView, op_name

How = Literal["module", "sequence", "resized", ""]
Reason = Literal["", "casts", "scaler", "compiled", "layer", "replaced", "more_calls", "other_op"]
Status = Literal["", "added", "removed"]

REASONS: dict[str, str] = {
    "casts": "casts of mixed precision",
    "scaler": "GradScaler's work",
    "compiled": "inside a region of torch.compile",
    "layer": "the other run has no such module",
    "replaced": "the module runs other ops in the other run",
    "more_calls": "called more often here",
    "other_op": "no such op in the other run",
}
"""What `CompareOp.reason` says in words."""

_MOST_MODULES = 500


class CompareOp(msgspec.Struct, frozen=True):
    """One op of both runs, times per iteration. An op that only one run has carries None on the other side.

    ``basis`` of the page is the time that ``difference_ns`` (b - a) and ``speedup`` (a / b) are of: GPU time where both
    runs have a GPU, else CPU time; ``low_ns`` to ``high_ns`` is the 95 % interval of the difference, ``noise`` whether
    0 lies in it. ``how`` is the way of matching, ``reason`` the cause of a missing side. ``a_buckets`` and
    ``b_buckets`` are by the clock; ``change_ns`` is the difference of their sums, and ``change_percent`` its share of
    the change of the step. ``a_roof_percent`` is how much of its roofline ceiling the op reached. ``listed_in`` is the
    row of the modules that it counts to.
    """

    id: str
    name: Annotated[str, Column("Op", "opName", width=280)]
    role: Annotated[Role, Column("Pass", "pass")]
    a_ns: Annotated[int | None, Column("Base", "perIteration", missing="not in run")]
    b_ns: Annotated[int | None, Column("Candidate", "perIteration", missing="not in run")]
    difference_ns: Annotated[int | None, Column("Difference", "difference", terminal=False)]
    speedup: Annotated[float | None, Column("Speedup", "speedup", missing="–", unit="ratio")]
    change_percent: Annotated[float | None, Column("Of change", "changeShare", missing="–")]
    a_using_tc: Annotated[Verdict, Column("Base TC", "Whether the op uses Tensor Cores in the base.", terminal=False)]
    b_using_tc: Annotated[
        Verdict, Column("Cand. TC", "Whether the op uses Tensor Cores in the candidate.", terminal=False)
    ]
    a_precision: Annotated[str, Column("Base precision", "precision", choice=True, missing="–")]
    b_precision: Annotated[str, Column("Cand. precision", "precision", choice=True, missing="–")]
    a_kernels: Annotated[int | None, Column("Base kernels", "Kernels per iteration in the base.", missing="–")]
    b_kernels: Annotated[int | None, Column("Cand. kernels", "Kernels per iteration in the candidate.", missing="–")]
    a_roof_percent: Annotated[float | None, Column("Base roof", "ofRoof", missing="–")]
    b_roof_percent: Annotated[float | None, Column("Cand. roof", "ofRoof", missing="–")]
    reason: Annotated[
        Reason, Column("Match", "Why the op is in one run only, or how its partner was found.", width=190)
    ]
    op_type: Annotated[str, Column("Op type", "opType", width=190, terminal=False)]
    module: Annotated[str, Column("Module", "module", missing="–", width=180, terminal=False)]
    b_module: str
    listed_in: str
    direction: Direction
    dims: str
    how: How
    a_id: str | None
    b_id: str | None
    low_ns: int | None
    high_ns: int | None
    noise: bool | None
    change_ns: int
    a_cast_ns: int | None
    b_cast_ns: int | None
    a_buckets: dict[str, int]
    b_buckets: dict[str, int]


class CompareModule(msgspec.Struct, frozen=True):
    """The ops of one module itself, without the modules inside it; "" for ops outside all modules. Where the runs are
    of two frameworks, with those modules inside it that only one of them names.

    Times are sums over its ops, per iteration, None where a run has none of them; ``status`` says whether only one run
    has the module. Precisions are those of the op with most time, roofs means of its ops that have one, weighted by
    time.
    """

    module: str
    status: Status
    ops: int
    a_ns: int | None
    b_ns: int | None
    difference_ns: int
    low_ns: int | None
    high_ns: int | None
    noise: bool | None
    speedup: float | None
    change_ns: int
    change_percent: float | None
    a_precision: str
    b_precision: str
    a_kernels: int | None
    b_kernels: int | None
    a_roof_percent: float | None
    b_roof_percent: float | None
    a_buckets: dict[str, int]
    b_buckets: dict[str, int]


class CompareKernel(msgspec.Struct, frozen=True):
    """A kernel, copy or set that an op launched: launches and time (ns) per iteration; ``cast`` marks casts."""

    name: Annotated[str, Column("Kernel", "What ran on the GPU; casts are marked.", width=240)]
    ns: Annotated[float, Column("Time", "Time per iteration.", unit="ns")]
    calls: Annotated[float, Column("Calls", "Launches per iteration.")]
    uses_tc: Annotated[Verdict, Column("Tensor Cores", "kernelTc")]
    precision: Annotated[str, Column("Precision", "kernelPrecision", missing="–")]
    short_name: str
    cast: bool


class CompareOpDetail(msgspec.Struct, frozen=True):
    """One op of both runs with its launches before and after; ``reason_text`` explains a missing side."""

    op: CompareOp
    reason_text: str
    a_kernels: list[CompareKernel]
    b_kernels: list[CompareKernel]


def op_rows(comparison: Comparison) -> list[CompareOp]:
    """All ops by falling absolute difference."""
    step = comparison.step_ns[1] - comparison.step_ns[0]
    return [_op(pair, step) for pair in comparison.pairs]


def module_rows(comparison: Comparison) -> list[CompareModule]:
    """Modules by falling absolute change of the step."""
    step = comparison.step_ns[1] - comparison.step_ns[0]
    by_module: dict[str, list[OpPair]] = defaultdict(list)
    for pair in comparison.pairs:
        by_module[pair.listed_in].append(pair)
    rows = [_module(comparison, name, pairs, step) for name, pairs in by_module.items()]
    return sorted(rows, key=lambda row: (-abs(row.change_ns), row.module))


def shown_modules(rows: list[CompareModule]) -> list[CompareModule]:
    """As many as fit into a response."""
    return rows[:_MOST_MODULES]


def op_detail(comparison: Comparison, id: str, a: ProfileView, b: ProfileView) -> CompareOpDetail:
    """One op with its kernels.

    Raises:
        KeyError: there is no op of this id.
    """
    pair = comparison.pair(id)
    before, after = comparison.kernels(pair)
    step = comparison.step_ns[1] - comparison.step_ns[0]
    return CompareOpDetail(
        op=_op(pair, step),
        reason_text=REASONS.get(pair.reason, ""),
        a_kernels=[_kernel(a, *use) for use in before],
        b_kernels=[_kernel(b, *use) for use in after],
    )


def _op(pair: OpPair, step_change_ns: int) -> CompareOp:
    a, b = pair.a, pair.b
    return struct_from(
        CompareOp,
        pair,
        name=op_name(pair.module, pair.op_type),
        direction=direction_of(pair.role),
        role=ROLES[pair.role],
        dims=shapes_text(pair.dims),
        how=pair.how or "",
        a_id=a.id if a else None,
        b_id=b.id if b else None,
        a_ns=a.time_ns if a else None,
        b_ns=b.time_ns if b else None,
        difference_ns=b.time_ns - a.time_ns if a and b else None,
        low_ns=None if pair.low_ns is None else round(pair.low_ns),
        high_ns=None if pair.high_ns is None else round(pair.high_ns),
        speedup=a.time_ns / b.time_ns if a and b and b.time_ns else None,
        change_percent=percent(pair.change_ns, step_change_ns),
        a_cast_ns=a.cast_ns if a else None,
        b_cast_ns=b.cast_ns if b else None,
        a_precision=a.precision if a else "",
        b_precision=b.precision if b else "",
        a_using_tc=_using(a),
        b_using_tc=_using(b),
        a_kernels=round(a.kernels) if a and a.kernels is not None else None,
        b_kernels=round(b.kernels) if b and b.kernels is not None else None,
        a_roof_percent=a.roof_percent if a else None,
        b_roof_percent=b.roof_percent if b else None,
        a_buckets={key: before for key, (before, _) in pair.buckets.items() if before},
        b_buckets={key: after for key, (_, after) in pair.buckets.items() if after},
    )


def _module(comparison: Comparison, name: str, pairs: list[OpPair], step_change_ns: int) -> CompareModule:
    a, b = [pair.a for pair in pairs if pair.a], [pair.b for pair in pairs if pair.b]
    a_ns, b_ns = (sum(side.time_ns for side in sides) for sides in (a, b))
    interval = comparison.interval(pairs)
    change = sum(pair.change_ns for pair in pairs)
    there = comparison.module_names
    status: Status = ""
    if name and all(there):
        # A module that was renamed is in neither run's list, and has two sides.
        status = "removed" if name not in there[1] and not b else "added" if name not in there[0] and not a else ""
    return CompareModule(
        module=name,
        status=status,
        ops=len(pairs),
        a_ns=a_ns if a else None,
        b_ns=b_ns if b else None,
        difference_ns=b_ns - a_ns,
        low_ns=round(interval[0]) if interval else None,
        high_ns=round(interval[1]) if interval else None,
        noise=is_noise(*interval) if interval else None,
        speedup=a_ns / b_ns if a_ns and b_ns else None,
        change_ns=change,
        change_percent=percent(change, step_change_ns),
        a_precision=_main_precision(a),
        b_precision=_main_precision(b),
        a_kernels=_kernel_count(a),
        b_kernels=_kernel_count(b),
        a_roof_percent=_mean_roof(a),
        b_roof_percent=_mean_roof(b),
        a_buckets=_sums(pairs, 0),
        b_buckets=_sums(pairs, 1),
    )


def _sums(pairs: list[OpPair], side: int) -> dict[str, int]:
    result: dict[str, int] = defaultdict(int)
    for pair in pairs:
        for key, times in pair.buckets.items():
            if times[side]:
                result[key] += times[side]
    return dict(result)


def _main_precision(sides: list[OpSide]) -> str:
    named = [side for side in sides if side.precision]
    return max(named, key=lambda side: side.time_ns).precision if named else ""


def _kernel_count(sides: list[OpSide]) -> int | None:
    counts = [side.kernels for side in sides if side.kernels is not None]
    return round(sum(counts)) if counts else None


def _mean_roof(sides: list[OpSide]) -> float | None:
    roofs = [(side.roof_percent, side.time_ns) for side in sides if side.roof_percent is not None]
    whole = sum(time for _, time in roofs)
    return sum(roof * time for roof, time in roofs) / whole if whole else None


def _using(side: OpSide | None) -> Verdict:
    if side is None or side.kernels is None:
        return "unknown"
    if side.tensor_core_ns > 0:
        return "yes"
    return "unknown" if side.eligible_unknown_ns > 0 else "no"


def _kernel(view: ProfileView, kernel: int, calls: float, time_ns: float, cast: bool) -> CompareKernel:
    text = KernelText(view, kernel)
    uses = text.tensor_core if text.kind == "kernel" else "no"
    return struct_from(CompareKernel, text, calls=calls, ns=time_ns, uses_tc=uses, cast=cast)
