"""The light window as a run of its own, and how rows of the full recording become its rows.

The light window has the true times of launches, waits and GPU activities, and nothing else; rules and forecasts refer
to the full recording's ops, calls and times. A change to the one is translated to the same calls of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.model.intervals import union
from tb_dlprof_plugin.model.lookup import rows_of_each, take_or, take_rows
from tb_dlprof_plugin.model.profile import (
    CallKind,
    Calls,
    Floats,
    Ints,
    Iterations,
    Kernels,
    Launches,
    LightWindow,
    Memory,
    Ops,
)
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.change import Change

_LEAST_STEPS = 2


@dataclass(frozen=True, eq=False)
class Light:
    """The light window's steps.

    Attributes:
        view: of a profile with these steps as its iterations.
        launch, call: per row of its launches and calls that of the full recording, -1 for none.
        full_ns, light_ns: CPU times of the full recording, rising, and the same moments in the light window, by step.
    """

    view: ProfileView
    launch: Ints
    call: Ints
    full_ns: tuple[Floats, ...]
    light_ns: tuple[Floats, ...]

    @cached_property
    def _row_of_launch(self) -> Ints:
        """Per row of the full recording's launches the last one here, -1 for none."""
        known = np.flatnonzero(self.launch >= 0)
        rows = np.full(int(self.launch.max(initial=-1)) + 1, -1)
        rows[self.launch[known]] = known
        return rows

    def translated(self, change: Change) -> Change:
        """A change of the full recording as one of the light window."""
        gpu = concurrent = removed_waits = cpu = None
        if change.gpu is not None and len(change.gpu):
            gpu = take_or(change.gpu, self.launch, 1.0)
        if change.concurrent is not None and len(change.concurrent):
            concurrent = take_or(change.concurrent, self.launch, False)
        if change.removed_waits is not None and len(change.removed_waits):
            removed_waits = take_or(change.removed_waits, self.call, False)
        if change.cpu is not None:
            starts, stops = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
            for full, light in zip(self.full_ns, self.light_ns, strict=True):
                inside = (change.cpu[1] > full[0]) & (change.cpu[0] < full[-1])
                starts.append(np.round(np.interp(change.cpu[0][inside], full, light)).astype(np.int64))
                stops.append(np.round(np.interp(change.cpu[1][inside], full, light)).astype(np.int64))
            cpu = union(np.concatenate(starts), np.concatenate(stops))
        added = change.added
        if len(added):
            rows = self._row_of_launch
            mine = np.where(added.launch < len(rows), rows[np.minimum(added.launch, len(rows) - 1)], -1)
            added = take_rows(replace(added, launch=mine), mine >= 0)
        return replace(change, gpu=gpu, concurrent=concurrent, removed_waits=removed_waits, cpu=cpu, added=added)


@per_selection
def light(view: ProfileView, selection: Selection) -> Light | None:
    """The steps of the light window that were matched with selected iterations; None with fewer than two of them.

    If none of its iterations is selected, selected ones with the same calls replace them.
    """
    window = view.profile.light_window
    if len(window) < _LEAST_STEPS or not len(window.launches):
        return None
    substitutes = _iterations(view, window, selection)
    steps = [step for step, found in enumerate(substitutes) if found is not None]
    if len(steps) < _LEAST_STEPS:
        return None
    if steps[0] == 0 and len(steps) > _LEAST_STEPS:
        # The first step after a profiler's start is longer than the others.
        steps = steps[1:]
    return _LightRunBuilder(view, window, substitutes).light(steps)


@dataclass(frozen=True, slots=True)
class _Substitute:
    """The iteration that represents a step, with the rows of calls and launches of the matched one and its own."""

    iteration: int
    calls: tuple[Ints, Ints] | None = None
    launches: tuple[Ints, Ints] | None = None


def _iterations(view: ProfileView, window: LightWindow, selection: Selection) -> list[_Substitute | None]:
    """Per step of the window the selected iteration that it is matched with; None if there is none."""
    matched: list[int] = window.iteration.tolist()
    chosen = [
        _Substitute(iteration) if selection.first <= iteration <= selection.last else None for iteration in matched
    ]
    if sum(step is not None for step in chosen) >= _LEAST_STEPS:
        return chosen
    result: list[_Substitute | None] = []
    for place, one in enumerate(matched):
        like = selection.first + place % selection.count
        result.append(chosen[place] or (_like(view, one, like) if one >= 0 else None))
    return result


def _like(view: ProfileView, matched: int, like: int) -> _Substitute | None:
    """An iteration in place of another, if both launch the same kernels."""
    calls, ops, launches = view.profile.calls, view.profile.ops, view.profile.launches
    runtime = ops.kind[calls.op] == CallKind.RUNTIME

    def rows(iteration: int) -> tuple[Ints, Ints]:
        called = np.flatnonzero(runtime & (view.call_iteration == iteration))
        called = called[np.argsort(calls.start_ns[called], kind="stable")]
        launched = np.flatnonzero(view.launch_iteration == iteration)
        begun = calls.start_ns[launches.call[launched]]
        return called, launched[np.lexsort((launches.start_ns[launched], begun))]

    (calls_a, launches_a), (calls_b, launches_b) = rows(matched), rows(like)
    if not np.array_equal(launches.kernel[launches_a], launches.kernel[launches_b]):
        return None
    if not np.array_equal(ops.name[calls.op[calls_a]], ops.name[calls.op[calls_b]]):
        calls_a, calls_b = launches.call[launches_a], launches.call[launches_b]
    return _Substitute(like, (calls_a, calls_b), (launches_a, launches_b))


class _LightRunBuilder:
    """Makes a profile of some steps of the window."""

    def __init__(self, view: ProfileView, window: LightWindow, substitutes: Sequence[_Substitute | None]) -> None:
        self._view, self._window, self._substitutes = view, window, substitutes
        self._step = window.step_of_calls()
        # Work launched before the window belongs to no step.
        self._launch_step = np.where(window.launches.call >= 0, window.step_of_launches(), -1)
        self._call = self._mapped(window.calls.call, self._step, "calls")
        self._launch = self._mapped(window.launches.launch, self._launch_step, "launches")

    def light(self, steps: Sequence[int]) -> Light:
        launches, window = self._view.profile.launches, self._window
        order = np.lexsort((window.calls.start_ns, window.calls.thread))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        ops, op_of = self._ops()
        kernels = _with_unknown(self._view.profile.kernels)
        found = window.launches.launch
        nothing = np.full(len(found), -1)
        profile = replace(
            self._view.profile,
            strings=[*self._view.profile.strings, ""],
            iterations=self._steps(steps),
            ops=ops,
            calls=Calls(
                op=op_of[order],
                start_ns=window.calls.start_ns[order],
                duration_ns=window.calls.duration_ns[order],
                depth=np.zeros(len(order), dtype=np.int64),
                thread=window.calls.thread[order],
            ),
            kernels=kernels,
            launches=Launches(
                kernel=take_or(launches.kernel, found, len(kernels) - 1),
                call=take_or(place, window.launches.call, -1),
                start_ns=window.launches.start_ns,
                duration_ns=window.launches.duration_ns,
                device=window.launches.device,
                stream=window.launches.stream,
                config=nothing,
                bytes=nothing,
                attribution=np.zeros(len(found), dtype=np.int64),
            ),
            memory=Memory.none(),
            light_window=LightWindow.none(),
        )
        moments = [self._moments(step) for step in steps]
        return Light(
            view=ProfileView(profile),
            launch=self._launch,
            call=self._call[order],
            full_ns=tuple(full for full, _ in moments),
            light_ns=tuple(own for _, own in moments),
        )

    def _mapped(self, full: Ints, step: Ints, what: str) -> Ints:
        """Rows of the full recording, from the substitute iterations if there are any."""
        result = full.copy()
        matched = np.flatnonzero((step >= 0) & (step < len(self._substitutes)) & (full >= 0))
        for number, mine in rows_of_each(step[matched]):
            substitute, mine = self._substitutes[number], matched[mine]
            pairs = None if substitute is None else getattr(substitute, what)
            if pairs is None:
                continue
            table = dict(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True))
            result[mine] = [table.get(row, -1) for row in full[mine].tolist()]
        return result

    def _ops(self) -> tuple[Ops, Ints]:
        """The full recording's ops with those of CUDA calls that it lacks, and the op of each call."""
        ops, names = self._view.profile.ops, self._window.calls.name
        of_name = {int(ops.name[row]): int(row) for row in np.flatnonzero(ops.kind == CallKind.RUNTIME)}
        missing = [name for name in np.unique(names).tolist() if name not in of_name]
        of_name.update({name: len(ops) + place for place, name in enumerate(missing)})
        more, count = np.array(missing, dtype=np.int64), len(missing)
        empty = np.full(count, len(self._view.profile.strings))
        zeros = np.zeros(count, dtype=np.int64)
        longer = Ops(
            name=np.concatenate([ops.name, more]),
            kind=np.concatenate([ops.kind, np.full(count, int(CallKind.RUNTIME))]),
            op_type=np.concatenate([ops.op_type, empty]),
            module=np.concatenate([ops.module, empty]),
            role=np.concatenate([ops.role, zeros]),
            shapes=np.concatenate([ops.shapes, empty]),
            dtypes=np.concatenate([ops.dtypes, empty]),
            top=np.concatenate([ops.top, np.zeros(count, dtype=np.bool_)]),
            tensor_core_eligible=np.concatenate([ops.tensor_core_eligible, zeros]),
            continuation=np.concatenate([ops.continuation, np.zeros(count, dtype=np.bool_)]),
            compiled=np.concatenate([ops.compiled, zeros - 1]),
        )
        return longer, np.array([of_name[name] for name in names.tolist()], dtype=np.int64)

    def _steps(self, steps: Sequence[int]) -> Iterations:
        """The steps as iterations: from completion to completion."""
        boundary, launches = self._window.boundary_ns, self._window.launches
        done = boundary.copy()
        ended = launches.start_ns + launches.duration_ns
        inside = (self._launch_step >= 0) & (self._launch_step < len(boundary) - 1)
        np.maximum.at(done, self._launch_step[inside] + 1, ended[inside])
        before = launches.call < 0
        done[0] = int(ended[before].max(initial=boundary[0]))
        done = np.maximum.accumulate(done)
        chosen = np.array(steps, dtype=np.int64)
        whole = self._view.profile.iterations
        return replace(
            whole,
            number=chosen,
            start_ns=done[chosen],
            stop_ns=done[chosen + 1],
            host_start_ns=boundary[chosen],
            host_stop_ns=boundary[chosen + 1],
            category_ns=np.zeros((len(chosen), *whole.category_ns.shape[1:]), dtype=np.int64),
        )

    def _moments(self, step: int) -> tuple[Floats, Floats]:
        """Begin and end of a step and of its matched calls, in the full recording and in the window."""
        calls, iterations, window = self._view.profile.calls, self._view.profile.iterations, self._window
        one = self._substitutes[step]
        assert one is not None
        mine = np.flatnonzero((self._step == step) & (self._call >= 0))
        row = self._call[mine]
        begin, end = iterations.host_start_ns[one.iteration], iterations.host_stop_ns[one.iteration]
        starts, own = calls.start_ns[row], window.calls.start_ns[mine]
        full = np.concatenate([[begin], starts, starts + calls.duration_ns[row], [end]])
        light_ns = np.concatenate(
            [
                [window.boundary_ns[step]],
                own,
                own + window.calls.duration_ns[mine],
                [window.boundary_ns[step + 1]],
            ]
        )
        order = np.argsort(full, kind="stable")
        # Threads that call at the same time may have done so in another order.
        rising = np.maximum.accumulate(light_ns[order])
        return full[order].astype(np.float64), np.minimum(rising, light_ns[-1]).astype(np.float64)


def _with_unknown(kernels: Kernels) -> Kernels:
    """With a kernel without a name, for activities that the full recording lacks."""
    columns = (kernels.name, kernels.kind, kernels.family, kernels.tensor_core, kernels.precision, kernels.rule)
    first = np.zeros(1, dtype=np.int64)
    return Kernels(*(np.concatenate([column, first]) for column in columns))
