"""Compares two runs: the parts of a step before and after, op by op, and which differences are noise.

Steps are those without the profiler (`simulation.estimate`). Op times are summed durations of what an op launched, as
on every page; bucket times are by the clock and sum to the step (`metrics.step_account`). So the buckets of all ops and
of the time outside ops add up to the difference of the steps, to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from tb_dlprof_plugin.comparison.compared_run import ComparedRun, KernelUse, OpSide
from tb_dlprof_plugin.comparison.compiled import Replaced, replaced_by_compiled
from tb_dlprof_plugin.comparison.match import Batches, How, match_sites
from tb_dlprof_plugin.comparison.noise import differences, is_noise
from tb_dlprof_plugin.comparison.rows import Reason, Rows, gather
from tb_dlprof_plugin.comparison.shares import Shares, shares_of
from tb_dlprof_plugin.comparison.step_intervals import difference_interval, ratio_interval
from tb_dlprof_plugin.metrics.op_sites import run_of
from tb_dlprof_plugin.metrics.step_buckets import Basis
from tb_dlprof_plugin.model.profile import Profile, Role
from tb_dlprof_plugin.model.shapes import InputShapes, inputs_text
from tb_dlprof_plugin.model.speedup_change import FasterOrSlower, change_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection, stable_id
from tb_dlprof_plugin.simulation.estimate import StepEstimate


class OpPair(msgspec.Struct, frozen=True):
    """An op of both runs; a side is None if its run lacks the op, with the cause in ``reason``.

    ``module`` is that of the base where it has the op; ``b_module`` that of the candidate; ``listed_in`` is the module
    that it counts to, which differs between runs of two frameworks. ``low_ns`` to ``high_ns`` is the 95 % interval of
    b - a, None where a side has a single iteration or lacks the op. ``buckets`` has the time by the clock of both
    sides, per iteration, for each bucket in which the op has any.
    """

    id: str
    module: str
    b_module: str
    listed_in: str
    op_type: str
    role: int
    dims: InputShapes
    how: How | None
    reason: Reason
    a: OpSide | None
    b: OpSide | None
    low_ns: float | None
    high_ns: float | None
    buckets: dict[str, tuple[int, int]]

    @property
    def difference_ns(self) -> int:
        """b - a, a missing side counting as no time."""
        return (self.b.time_ns if self.b else 0) - (self.a.time_ns if self.a else 0)

    @property
    def change_ns(self) -> int:
        """How much longer the step is for this op, by the clock."""
        return sum(after - before for before, after in self.buckets.values())

    @property
    def noise(self) -> bool | None:
        """Whether the difference is inside its interval of noise; None where there is none."""
        return is_noise(self.low_ns, self.high_ns)


class Bucket(msgspec.Struct, frozen=True):
    """One bar of the waterfall, per iteration (ns); ``low_ns`` to ``high_ns`` is the 95 % interval of b - a."""

    key: str
    label: str
    a_ns: int
    b_ns: int
    low_ns: float | None
    high_ns: float | None

    @property
    def difference_ns(self) -> int:
        """b - a."""
        return self.b_ns - self.a_ns

    @property
    def noise(self) -> bool | None:
        """Whether the difference is inside its interval of noise; None where there is none."""
        return is_noise(self.low_ns, self.high_ns)


@dataclass(frozen=True)
class Comparison:
    """``basis`` is the time compared: "gpu" where both runs have a GPU, else "cpu". Run a is the base.

    ``steps`` are those without the profiler. ``step_ns`` are their lengths in whole nanoseconds; ``buckets`` sum to
    them on each side. ``step_interval_ns`` is the 95 % interval of their difference, b - a. ``speedup`` and its
    interval are base over candidate; None where unknown. ``module_names`` are those of each run's modules, as
    `OpPair.listed_in` has them. ``replaced`` is None where not exactly one of the runs is compiled.
    """

    basis: Basis
    pairs: list[OpPair]
    buckets: list[Bucket]
    steps: tuple[StepEstimate, StepEstimate]
    step_ns: tuple[int, int]
    step_interval_ns: tuple[float, float] | None
    speedup: float | None
    speedup_interval: tuple[float, float] | None
    shares: tuple[Shares, Shares]
    batches: Batches | None
    module_names: tuple[frozenset[str], frozenset[str]]
    replaced: Replaced | None
    _sides: tuple[ComparedRun, ComparedRun]
    _row_of: dict[str, int]

    @property
    def matched_percent(self) -> float | None:
        """How much of the base's time is in ops that the candidate has too."""
        return self.shares[0].matched_percent

    @property
    def per_sample(self) -> float | None:
        """Speedup per sample where the batch sizes differ; the plain one where they do not."""
        if self.speedup is None or self.batches is None:
            return self.speedup
        return self.speedup * self.batches.b / self.batches.a

    @property
    def step_noise(self) -> bool | None:
        """Whether the steps may be the same: 1 lies in the interval of the speedup. None where there is none."""
        return change_of(self.speedup_interval) == "within noise" if self.speedup_interval else None

    @property
    def change(self) -> FasterOrSlower:
        """Which run is faster: per sample where the batch sizes differ."""
        return change_of(self.per_sample_interval)

    @property
    def per_sample_interval(self) -> tuple[float, float] | None:
        """95 % interval of `per_sample`."""
        if self.speedup_interval is None:
            return None
        low, high = (end / self._batch_scale for end in self.speedup_interval)
        return low, high

    @property
    def saving_ns(self) -> float:
        """The base's step less the candidate's, where the batch sizes differ less that of a batch of the base's
        size."""
        return self.steps[0].ns - self._batch_scale * self.steps[1].ns

    @property
    def saving_interval_ns(self) -> tuple[float, float] | None:
        """95 % interval of `saving_ns`; None where a recorded step has a single iteration."""
        base, candidate = self._sides
        longer = difference_interval(base.step, candidate.step, self._batch_scale)
        return (-longer[1], -longer[0]) if longer else None

    @property
    def _batch_scale(self) -> float:
        return self.batches.a / self.batches.b if self.batches is not None and self.batches.differ else 1.0

    def kernels(self, pair: OpPair) -> tuple[list[KernelUse], list[KernelUse]]:
        """The kernels, copies and sets of the op in both runs, by falling time."""
        row = self._row_of[pair.id]
        return self._sides[0].kernels_of(row), self._sides[1].kernels_of(row)

    def interval(self, pairs: Sequence[OpPair]) -> tuple[float, float] | None:
        """95 % interval of b - a of these ops together (ns); None where a side has a single iteration."""
        rows = [self._row_of[pair.id] for pair in pairs]
        found = differences(*(side.by_iteration[rows].sum(axis=0, keepdims=True) for side in self._sides))
        return _known(found.low[0], found.high[0])

    def pair(self, id: str) -> OpPair:
        """The row of this id.

        Raises:
            KeyError: there is none.
        """
        found = next((pair for pair in self.pairs if pair.id == id), None)
        if found is None:
            raise KeyError(id)
        return found


def compare(
    a: Profile | ProfileView,
    b: Profile | ProfileView,
    a_selection: Selection | None = None,
    b_selection: Selection | None = None,
) -> Comparison:
    """The ops of two runs side by side, by falling absolute difference; all iterations where none are selected."""
    frame_a = a if isinstance(a, ProfileView) else ProfileView(a)
    frame_b = b if isinstance(b, ProfileView) else ProfileView(b)
    basis: Basis = "gpu" if frame_a.profile.has_gpu and frame_b.profile.has_gpu else "cpu"
    runs = (run_of(frame_a, a_selection or frame_a.selection()), run_of(frame_b, b_selection or frame_b.selection()))
    matching = match_sites(*runs)
    rows = gather(*runs, matching)
    sides = (ComparedRun(runs[0], rows.of_a, rows.group_a, basis), ComparedRun(runs[1], rows.of_b, rows.group_b, basis))
    pairs = _pairs(rows, *sides, matching.names)
    pairs.sort(key=lambda pair: (-abs(pair.difference_ns), pair.id))
    steps = (sides[0].step, sides[1].step)
    return Comparison(
        basis=basis,
        pairs=pairs,
        buckets=_buckets(*sides),
        steps=(steps[0].estimate, steps[1].estimate),
        step_ns=(sides[0].step_ns, sides[1].step_ns),
        step_interval_ns=difference_interval(*steps),
        speedup=steps[0].estimate.ns / steps[1].estimate.ns if all(step.estimate.is_step for step in steps) else None,
        speedup_interval=ratio_interval(*steps),
        shares=(
            shares_of(runs[0], rows, rows.of_a, basis),
            shares_of(runs[1], rows, rows.of_b, basis),
        ),
        batches=matching.batches,
        module_names=(frozenset(matching.names[0].values()), frozenset(matching.names[1].values())),
        replaced=replaced_by_compiled(*runs),
        _sides=sides,
        _row_of={_pair_id(rows, index, *sides): index for index in range(len(rows))},
    )


def _pairs(
    rows: Rows, a: ComparedRun, b: ComparedRun, names: tuple[Mapping[str, str], Mapping[str, str]]
) -> list[OpPair]:
    intervals = differences(a.by_iteration, b.by_iteration)
    keys = list(a.times.labels)
    pairs = []
    for row in range(len(rows)):
        side_a, side_b = a.side(row), b.side(row)
        if side_a is None and side_b is None:
            # Views and similar ops: their CPU time is in the remaining bucket.
            continue
        module_a, module_b = (_module(side, group) for side, group in ((a, rows.group_a[row]), (b, rows.group_b[row])))
        named, module, of = (a, module_a, names[0]) if rows.group_a[row] >= 0 else (b, module_b, names[1])
        group = named.groups[row]
        interval = _known(intervals.low[row], intervals.high[row]) if side_a and side_b else None
        pairs.append(
            OpPair(
                id=_pair_id(rows, row, a, b),
                module=module,
                b_module=module_b if rows.group_b[row] >= 0 else module_a,
                listed_in=of.get(module, module),
                op_type=named.run.view.profile.strings[named.run.view.groups.op_type[group]],
                role=int(named.run.view.groups.role[group]),
                dims=rows.dims[row],
                how=rows.how[row],
                reason=rows.reason[row] or _one_sided(side_a, side_b),
                a=side_a,
                b=side_b,
                low_ns=interval[0] if interval else None,
                high_ns=interval[1] if interval else None,
                buckets={
                    key: (before, after)
                    for index, key in enumerate(keys)
                    if (before := a.bucket_ns_of(row, index)) + (after := b.bucket_ns_of(row, index))
                },
            )
        )
    return pairs


def _one_sided(a: OpSide | None, b: OpSide | None) -> Reason:
    """Of an op that both runs have: backward nodes that view in one and cast in the other."""
    alone = b if a is None else a if b is None else None
    return "casts" if alone and alone.cast_ns == alone.time_ns else ""


def _pair_id(rows: Rows, row: int, a: ComparedRun, b: ComparedRun) -> str:
    """Names the same row whenever these two runs are compared."""
    parts = []
    for side, group in ((a, rows.group_a[row]), (b, rows.group_b[row])):
        groups, strings = side.run.view.groups, side.run.view.profile.strings
        if group >= 0:
            parts += [strings[groups.module[group]], strings[groups.op_type[group]], Role(int(groups.role[group])).name]
        parts.append("|")
    return stable_id(*parts, inputs_text(rows.dims[row]), rows.reason[row])


def _module(side: ComparedRun, group: int) -> str:
    return side.run.view.profile.strings[side.run.view.groups.module[group]] if group >= 0 else ""


def _buckets(a: ComparedRun, b: ComparedRun) -> list[Bucket]:
    """The bars; the interval of each combines the variation of iterations with the uncertainty of both steps."""
    before, after = a.bucket_means(), b.bucket_means()
    varying = differences(*((side.times.by_iteration * side.kept).T / side.times.gpus for side in (a, b)))
    half = (varying.high - varying.low) / 2
    (a_below, a_above), (b_below, b_above) = a.bucket_errors(), b.bucket_errors()
    difference = b.true_ns - a.true_ns
    low = difference - np.sqrt(b_below**2 + a_above**2 + half**2)
    high = difference + np.sqrt(b_above**2 + a_below**2 + half**2)
    result = []
    for index, (key, label) in enumerate(a.times.labels.items()):
        interval = _known(low[index], high[index])
        result.append(Bucket(key, label, int(before[index]), int(after[index]), *(interval or (None, None))))
    return result


def _known(low: float, high: float) -> tuple[float, float] | None:
    return None if np.isnan(low) or np.isnan(high) else (float(low), float(high))
