"""Work that a configuration adds to a step or takes off it: modules computed again, more modules, another optimizer,
more batches, gradients that are kept. Each is a `Change` for the simulation."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Floats, Ints, Role
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.names.ops import OPTIMIZER_STEP
from tb_dlprof_plugin.planning.memory.op_calls import flat
from tb_dlprof_plugin.planning.memory.rewrite_batch import input_size, is_between_positions
from tb_dlprof_plugin.planning.memory.rewrite_optimizer import OPTIMIZER_WORK, OptimizerStepCost, recorded_optimizer
from tb_dlprof_plugin.planning.memory.step_program import inside
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import NOTHING_ADDED, Added, AddedRow, Change, without_calls
from tb_dlprof_plugin.simulation.simulator import Simulation

_GRADIENT_WORDS = 3.0
"""Values read and written per element to add a gradient to one that is there."""
_CLEARING_WORDS = 1.0
_SHORT_KERNEL_NS = 1_500.0
"""Of a kernel for one small tensor on a GPU of today, whatever it computes."""

RECOMPUTED_HOST = 3.75
"""The CPU's time that a checkpointed module adds, over that of its forward pass: for each tensor that it saves autograd
calls hooks in Python, when the forward pass saves it, when it is computed again, and when the backward pass reads it
(torch/utils/checkpoint.py). The least of 3.8 to 5.5, measured with tensors so small that nothing else counts
(`lab/memory_plan/checkpoint_cost.py`)."""
_NEARLY_NOTHING = 1e-9


class NoWork(ValueError):
    """What the work would be is not known; the message says why."""


@dataclass(frozen=True)
class WorkChange:
    """A change, and by how many ns of GPU time a step it makes the step's kernels longer; below 0 for shorter."""

    change: Change
    gpu_ns: float


class StepWork:
    """Of one recorded run.

    Args:
        view: the run.
        simulated: the simulation of the run.
        base: the change of precision, batch or GPU that comes first; None without.
    """

    def __init__(self, view: ProfileView, simulated: Simulation, base: Change | None = None) -> None:
        profile = view.profile
        self._view, self._profile, self._simulated = view, profile, simulated
        shares = base.gpu if base is not None else None
        self._gpu = np.ones(len(profile.launches)) if shares is None else shares
        self._added = base.added if base is not None else NOTHING_ADDED
        self._before = self._added.by_launch()
        launches, calls, ops = profile.launches, profile.calls, profile.ops
        self._op = take_or(calls.op, launches.call, 0)
        self._linked = (launches.call >= 0) & (view.launch_iteration >= 0)
        self._is_op = (ops.kind[calls.op] == CallKind.OP) & (view.call_iteration >= 0)
        self._iterations = max(len(profile.iterations), 1)
        replayed = simulated.replayed_host_ns(simulated.share.expected)
        self._op_ns = replayed * self._iterations / max(int(self._is_op.sum()), 1)
        """The CPU's time for an op."""

    def after(self, change: Change) -> StepWork:
        """The same once kernels take another share of their time, on top of what they do already."""
        gpu = self._gpu if change.gpu is None else self._gpu * change.gpu
        return StepWork(self._view, self._simulated, Change(gpu=gpu, added=self._added))

    def checkpoints(self, modules: Sequence[str], times: int = 1) -> WorkChange:
        """The forward pass of modules once more, before the first launch of each one's backward pass."""
        return self._of_modules(modules, [(Role.FORWARD, Role.BACKWARD)], times, RECOMPUTED_HOST)

    def more_layers(self, module: str, count: int) -> WorkChange:
        """More modules like one: both of its passes, and its part of the optimizer's step."""
        own = self._of_modules((module,), [(Role.FORWARD, Role.FORWARD), (Role.BACKWARD, Role.BACKWARD)], count)
        share, number = self._parameters_inside(module)
        step = self._optimizer_calls()
        rows = self._rows_of(step)
        longer = np.ones(len(self._gpu))
        longer[rows] = 1 + count * share
        added = own.change.added.by_launch()
        host = count * number * self._op_ns * int((step & self._is_op).sum()) / self._iterations
        for row in self._first_rows(rows).values():
            added.setdefault(row, []).append(AddedRow(host, 0.0))
        more = count * share * float(self._time(rows).sum()) / self._iterations
        return WorkChange(Change(gpu=longer, added=Added.of(added)), own.gpu_ns + more)

    def optimizer(self, name: str) -> WorkChange:
        """Another optimizer in place of the recorded one.

        Raises:
            NoWork: the recorded one is not known, or left no work to replace.
        """
        new = OPTIMIZER_WORK[name]
        calls = self._optimizer_calls()
        rows = self._rows_of(calls)
        known = self._recorded_optimizer(rows)
        was = float(self._time(rows).sum()) / self._iterations
        number = self._profile.facts.trainable_parameters or 0
        kernels = new.kernels_for(number)
        each = max(was * new.words / known.words / kernels, _SHORT_KERNEL_NS if new.by_parameter else 0.0)
        host = self._op_ns * (new.calls + new.calls_by_parameter * number) / kernels
        first = self._first_rows(rows).values()
        gone = without_calls(self._view, calls)
        left = np.ones(len(self._gpu)) if gone.gpu is None else gone.gpu
        # What has a launch removed loses what is added before it.
        left[list(first)] = _NEARLY_NOTHING
        return WorkChange(
            replace(gone, gpu=left, added=Added.of({row: [AddedRow(host, each)] * kernels for row in first})),
            each * kernels - was,
        )

    @cached_property
    def another_batch(self) -> WorkChange:
        """Forward and backward pass once more before the optimizer's step, its gradients added to those there are where
        the rate of such work is known.

        Raises:
            NoWork: the optimizer's step was not recorded.
        """
        calls = self._optimizer_calls()
        rows = self._rows_of(calls)
        places = self._first_rows(rows)
        if not places:
            raise NoWork("where the optimizer's step begins was not recorded")
        chosen = self._view.launch_iteration >= 0
        chosen[rows] = False
        others = np.flatnonzero(chosen)
        order = others[np.argsort(self._profile.launches.start_ns[others], kind="stable")]
        ops = float((self._is_op & ~self._inherited(calls)).sum())
        host = self._op_ns * ops / max(len(others), 1)
        added: dict[int, list[AddedRow]] = defaultdict(list)
        for row in order.tolist():
            place = places.get(int(self._view.launch_iteration[row]))
            if place is not None:
                added[place] += self._again(row, host)
        sums: list[AddedRow] = []
        with contextlib.suppress(NoWork):
            sums = self._per_parameter(rows, _GRADIENT_WORDS)
        for place in places.values():
            added[place] += sums
        more = sum(one.gpu_ns for one in sums)
        return WorkChange(Change(added=Added.of(added)), self._gpu_ns(others) + more)

    def kept_gradients(self) -> WorkChange:
        """Gradients that are set to zero and added to, in place of freed and made again.

        Raises:
            NoWork: the recorded optimizer is not known.
        """
        rows = self._rows_of(self._optimizer_calls())
        sums = self._per_parameter(rows, _GRADIENT_WORDS + _CLEARING_WORDS)
        added = dict.fromkeys(self._first_rows(rows).values(), sums)
        return WorkChange(Change(added=Added.of(added)), sum(one.gpu_ns for one in sums))

    def longer_attention(self, ratio: float) -> WorkChange:
        """What attention takes longer with so many times the positions of a sample, above what all kernels do."""
        view, profile = self._view, self._profile
        size, batch = input_size(view), profile.facts.batch_size or 0
        pairs = np.array(
            [
                is_between_positions(profile.strings[int(name)], flat(profile.shapes_of(op)), batch, size)
                for op, name in enumerate(profile.ops.name.tolist())
            ],
            dtype=np.bool_,
        )
        # The kernels of an op that has no shapes lie in one that has.
        inside_one = self._inherited(pairs[profile.calls.op] & self._is_op)
        rows = np.flatnonzero(self._linked & take_or(inside_one, profile.launches.call, False))
        longer = np.ones(len(self._gpu))
        longer[rows] = ratio
        return WorkChange(Change(gpu=longer), (ratio - 1) * float(self._time(rows).sum()) / self._iterations)

    @property
    def _number(self) -> int:
        return self._profile.facts.trainable_parameters or 0

    def _per_parameter(self, rows: Ints, words: float) -> list[AddedRow]:
        """A kernel for each parameter that reads and writes so many values per element, all together at the rate of the
        recorded optimizer's step."""
        known, number = self._recorded_optimizer(rows), max(self._number, 1)
        time = float(self._time(rows).sum()) / self._iterations * words / known.words
        return [AddedRow(self._op_ns, max(time / number, _SHORT_KERNEL_NS))] * number

    def _recorded_optimizer(self, rows: Ints) -> OptimizerStepCost:
        profile = self._profile
        names = {profile.strings[name] for name in np.unique(profile.ops.name[self._op[rows]]).tolist()}
        known = recorded_optimizer(profile.facts, names)
        if known is None or not len(rows):
            of = profile.facts.optimizer or "an optimizer"
            raise NoWork(f"the work of {of}, which was recorded, is not known")
        return known

    def _optimizer_calls(self) -> Bools:
        """Outermost calls of the optimizer's step."""
        profile, view = self._profile, self._view
        calls, ops = profile.calls, profile.ops
        ranges = profile.ops_named(lambda name: name.startswith(OPTIMIZER_STEP))[calls.op] & (view.call_iteration >= 0)
        if ranges.any():
            return ranges
        own = (ops.role[calls.op] == Role.OPTIMIZER) & (view.call_iteration >= 0)
        return own & ~take_or(own, view.call_parent, False)

    def _inherited(self, calls: Bools) -> Bools:
        return inherit(calls, calls, self._view.call_parent)

    def _rows_of(self, calls: Bools) -> Ints:
        """Launches within calls."""
        return np.flatnonzero(self._linked & take_or(self._inherited(calls), self._profile.launches.call, False))

    def _again(self, row: int, host_ns: float) -> list[AddedRow]:
        """A launch once more, with what another precision puts before it, such as casts."""
        return [*self._before.get(row, []), AddedRow(host_ns, float(self._time(row)))]

    def _gpu_ns(self, rows: Ints) -> float:
        """GPU time of launches and of what is put before them, per step."""
        return sum(added.gpu_ns for row in rows.tolist() for added in self._again(row, 0.0)) / self._iterations

    def _time(self, rows: Ints | int) -> Floats:
        """GPU time (ns) of launches after the change of precision, batch or GPU."""
        return self._profile.launches.duration_ns[rows] * self._gpu[rows]

    def _first_rows(self, rows: Ints) -> dict[int, int]:
        """By iteration the first of some launches."""
        first: dict[int, int] = {}
        for row in rows[np.argsort(self._profile.launches.start_ns[rows], kind="stable")].tolist():
            first.setdefault(int(self._view.launch_iteration[row]), row)
        return first

    def _parameters_inside(self, module: str) -> tuple[float, float]:
        """A module's part of the parameters' bytes, and of their number."""
        bytes_, number = [0, 0], [0, 0]
        for storage in self._profile.facts.storages:
            if storage.kind == "parameter":
                own = inside(storage.module, module)
                for i, add in ((0, True), (1, own)):
                    bytes_[i] += sum(storage.bytes) if add else 0
                    number[i] += len(storage.bytes) if add else 0
        return bytes_[1] / max(bytes_[0], 1), number[1] / max(number[0], 1)

    def _of_modules(
        self, modules: Sequence[str], passes: list[tuple[Role, Role]], times: int, host_factor: float = 1.0
    ) -> WorkChange:
        """Passes of modules so many times more: the launches of one role, before the first of another.

        ``host_factor`` is the CPU's time for them over that of the recorded ones.
        """
        profile, ops, calls = self._profile, self._profile.ops, self._profile.calls
        own = np.array([any(inside(path, module) for module in modules) for path in profile.strings], dtype=np.bool_)
        chosen = own[ops.module[self._op]] & self._linked
        own_calls = self._is_op & own[ops.module[calls.op]]
        owner = _owner(modules)
        added: dict[int, list[AddedRow]] = defaultdict(list)
        total = 0.0
        for role, behind in passes:
            rows = np.flatnonzero(chosen & (ops.role[self._op] == role))
            count = int((own_calls & (ops.role[calls.op] == role)).sum())
            host = host_factor * self._op_ns * count / max(len(rows), 1)
            first: dict[tuple[int, str], int] = {}
            for row in np.flatnonzero(chosen & (ops.role[self._op] == behind)).tolist():
                key = int(self._view.launch_iteration[row]), owner(profile.strings[int(ops.module[self._op[row]])])
                first.setdefault(key, row)
            for row in rows.tolist():
                key = int(self._view.launch_iteration[row]), owner(profile.strings[int(ops.module[self._op[row]])])
                place = first.get(key)
                if place is not None:
                    again = self._again(row, host)
                    added[place] += again * times
                    total += times * sum(one.gpu_ns for one in again)
        return WorkChange(Change(added=Added.of(added)), total / self._iterations)


def _owner(modules: Sequence[str]) -> Callable[[str], str]:
    """The module that a path lies in."""
    known: dict[str, str] = {}

    def of(path: str) -> str:
        if path not in known:
            known[path] = next(module for module in modules if inside(path, module))
        return known[path]

    return of
