"""A profile with the columns that follow from it, each computed once on first use."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tb_dlprof_plugin.analysis.measured_kernels import counters_of_launches
from tb_dlprof_plugin.model.direction import with_direction
from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, KernelKind, Profile, Role, Verdict
from tb_dlprof_plugin.model.run_facts import Gpu
from tb_dlprof_plugin.model.tree import any_in_subtree, inherit, nearest, parents, self_time, subtree_ends
from tb_dlprof_plugin.names.cuda_calls import CudaCall, cuda_call_column
from tb_dlprof_plugin.names.gpu_generations import tensor_core_capability
from tb_dlprof_plugin.names.kernel_rules import WHOLE_GRAPH
from tb_dlprof_plugin.names.tensor_core_eligibility import (
    computes_product,
    eligible_by_kernel,
    is_op_of_pytorch,
    tensor_core_precisions,
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Iterations ``first`` to ``last``, indices, both inclusive."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of iterations."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class OpGroups:
    """The ops of the model: outermost ops with the same module, type and role. Columns have one row per group.

    ``of_op`` gives the group of each row of `Profile.ops`, -1 for ops inside other ops.
    """

    of_op: Ints
    module: Ints
    op_type: Ints
    role: Ints
    ids: list[str]

    def __len__(self) -> int:
        return len(self.ids)


_KEPT_ANSWERS = 64
_Totals = TypeVar("_Totals")


def per_selection(function: Callable[[ProfileView, Selection], _Totals]) -> Callable[[ProfileView, Selection], _Totals]:
    """Caches a function's last results in the view: one page needs the same totals in several places. The results are
    shared, so callers must not change them.
    """

    # Not the function itself: it is not picklable, since its name in its module is that of the decorated one.
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def remembered(view: ProfileView, selection: Selection) -> _Totals:
        return view.kept((name, selection), lambda: function(view, selection))

    return remembered


def per_view(function: Callable[[ProfileView], _Totals]) -> Callable[[ProfileView], _Totals]:
    """Caches a function's result in the view, as long as the view exists: it depends on the profile alone. The result
    is shared, so callers must not change it.
    """

    # Not the function itself, as in `per_selection`.
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def remembered(view: ProfileView) -> _Totals:
        if name not in view.own_answers:
            view.own_answers[name] = function(view)
        return view.own_answers[name]

    return remembered


class ProfileView:
    """A profile and its derived columns. Columns follow `Profile.calls` or `Profile.launches`, as their names say.

    A view can be pickled. Its copy has the profiles of the same ranks, and computes its columns again.
    """

    def __init__(self, profile: Profile, other_ranks: Callable[[], Iterable[ProfileView]] = tuple) -> None:
        """``other_ranks`` opens other ranks of the same session and cycle; it is called when `ranks` is first used."""
        self.profile = profile
        self.answers: dict[tuple[Any, ...], Any] = {}
        self.own_answers: dict[str, Any] = {}
        self._other_ranks = other_ranks

    @cached_property
    def ranks(self) -> tuple[ProfileView, ...]:
        """The ranks of the same session and cycle that are looked at together, by rank, this one among them.

        Empty where there is only this one, or the others were not opened.
        """
        others = tuple(self._other_ranks())
        return tuple(sorted((self, *others), key=lambda view: view.profile.source.rank)) if others else ()

    def __getstate__(self) -> tuple[Profile, tuple[Profile, ...]]:
        return self.profile, tuple(view.profile for view in self.ranks if view is not self)

    def __setstate__(self, state: tuple[Profile, tuple[Profile, ...]]) -> None:
        profile, others = state
        self.__init__(profile, lambda: map(ProfileView, others))  # type: ignore[misc]

    def kept(self, key: tuple[Any, ...], compute: Callable[[], _Totals]) -> _Totals:
        """An answer that is kept with the view, under the name of the function that gives it and its arguments."""
        answer: _Totals | None = self.answers.get(key)
        if answer is None:
            answer = compute()
            if len(self.answers) >= _KEPT_ANSWERS:
                # Cleared as a whole rather than entry by entry: requests run in several threads.
                self.answers = {}
            self.answers[key] = answer
        return answer

    def selection(self, first: int | None = None, last: int | None = None) -> Selection:
        """The selection from ``first`` to ``last``, by default and at most all iterations.

        Raises:
            ValueError: the range is empty or outside the recording.
        """
        total = len(self.profile.iterations)
        low = 0 if first is None else first
        high = total - 1 if last is None else last
        if not 0 <= low <= high < total:
            raise ValueError(f"iterations {low} to {high} are not in this recording, which has 0 to {total - 1}")
        return Selection(low, high)

    @property
    def gpu(self) -> Gpu | None:
        """The first GPU that the run used; None without one, or where it was not recorded."""
        return next((gpu for gpu in self.profile.system.gpus if gpu.id in self.profile.iterations.gpu_ids), None)

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Of the first GPU that the run used; None without one, or where it was not recorded."""
        return self.profile.system.compute_capability_of(self.profile.iterations.gpu_ids)

    @property
    def tensor_core_capability(self) -> tuple[int, int] | None:
        """The same as far as Tensor Cores go: see `gpu_generations.tensor_core_capability`."""
        return tensor_core_capability(self.profile.system, self.profile.iterations.gpu_ids)

    @cached_property
    def launch_counters(self) -> Ints:
        """Per launch its row of `Profile.kernel_counters`, -1 where Nsight Compute measured none."""
        profile = self.profile
        return counters_of_launches(
            profile.kernel_counters, profile.kernels, profile.launches, profile.launch_configs, profile.strings
        )

    @cached_property
    def call_parent(self) -> Ints:
        """Row of the parent call, -1 for outermost calls."""
        return parents(self.profile.calls.depth)

    @cached_property
    def call_end(self) -> Ints:
        """The row after the last call inside each call."""
        return subtree_ends(self.call_parent)

    @cached_property
    def call_self_ns(self) -> Ints:
        """Duration less that of the direct children."""
        return self_time(self.profile.calls.duration_ns, self.call_parent)

    @cached_property
    def call_cuda(self) -> Ints:
        """What the call does where it is one of the CUDA runtime, the driver or HIP: a `CudaCall`; else 0."""
        ops = self.profile.ops
        runtime = ops.kind == CallKind.RUNTIME
        of_name = cuda_call_column(self.profile.strings, ops.name[runtime].tolist())
        return np.where(runtime, of_name[ops.name], 0)[self.profile.calls.op]

    def is_cuda_call(self, *meanings: CudaCall) -> Bools:
        """Which calls are CUDA calls that do any of this."""
        return np.isin(self.call_cuda, meanings)

    @cached_property
    def call_top(self) -> Ints:
        """Row of the outermost op around the call (itself included), -1 where there is none."""
        return nearest(self.profile.ops.top[self.profile.calls.op], self.call_parent)

    @cached_property
    def call_group(self) -> Ints:
        """The call's row in `groups`, that of the outermost op around it; -1 outside every op."""
        of_call = self.groups.of_op[self.profile.calls.op]
        return take_or(of_call, self.call_top, -1)

    @cached_property
    def call_iteration(self) -> Ints:
        """Index of the iteration in which the call started, -1 outside all."""
        return self.iteration_at(self.profile.calls.start_ns)

    @cached_property
    def call_in_matrix_op(self) -> Bools:
        """Whether the call is, or lies in, an op that can use Tensor Cores (or could, if the GPU were known)."""
        calls = self.profile.calls
        matrix = (self.profile.ops.tensor_core_eligible != Verdict.NO)[calls.op]
        return inherit(matrix, matrix, self.call_parent)

    @cached_property
    def call_has_matrix_op(self) -> Bools:
        """Whether the call is, or contains, an op that can use Tensor Cores, or launches a kernel that does."""
        matrix = (self.profile.ops.tensor_core_eligible == Verdict.YES)[self.profile.calls.op]
        return any_in_subtree(self._with_callers(matrix, self.launch_by_kernel == Verdict.YES), self.call_end)

    @cached_property
    def launch_iteration(self) -> Ints:
        """Index of the iteration in which the activity was launched, -1 where unknown or outside all."""
        call = self.profile.launches.call
        return np.where(call >= 0, self._of_launch_call(self.call_iteration), -1)

    @cached_property
    def launch_group(self) -> Ints:
        """Row in `groups` of the op that launched the activity, -1 for none."""
        call = self.profile.launches.call
        return np.where(call >= 0, self._of_launch_call(self.call_group), -1)

    @cached_property
    def launch_is_kernel(self) -> Bools:
        """Per row of `Profile.launches` whether it is a kernel, neither a copy nor a set."""
        kernels: Bools = self.profile.kernels.kind == KernelKind.KERNEL
        return kernels[self.profile.launches.kernel]

    @cached_property
    def launch_is_collective(self) -> Bools:
        """Per row of `Profile.launches` whether it is a kernel of a collective."""
        return self.profile.kernels_where(family="communication")[self.profile.launches.kernel] & self.launch_is_kernel

    @cached_property
    def launch_in_matrix_op(self) -> Bools:
        """Whether the activity was launched by an op that can use Tensor Cores, or is such work by its kernel."""
        return self._launched_in_matrix_op | (self.launch_by_kernel != Verdict.NO)

    @cached_property
    def launch_computes_product(self) -> Bools:
        """Whether the activity is a kernel that computes a product: see `computes_product`."""
        kernels, strings = self.profile.kernels, self.profile.strings
        product = np.array(
            [
                computes_product(strings[family], strings[rule])
                for family, rule in zip(kernels.family.tolist(), kernels.rule.tolist(), strict=True)
            ],
            dtype=np.bool_,
        )
        return product[self.profile.launches.kernel] & self.launch_is_kernel

    @cached_property
    def launch_by_kernel(self) -> Ints:
        """Per activity a `Verdict`: whether it is work for Tensor Cores by its kernel alone, see `eligible_by_kernel`.

        "No" for all that an op decides about.
        """
        kernels, launches, strings = self.profile.kernels, self.profile.launches, self.profile.strings
        result = np.full(len(launches), int(Verdict.NO), dtype=np.int64)
        whole_graph = self.profile.kernels_where(rule=WHOLE_GRAPH)[launches.kernel]
        capability = self.tensor_core_capability
        if capability is None or tensor_core_precisions(capability):
            # What a graph that was recorded whole computes is not known.
            result[whole_graph] = int(Verdict.UNKNOWN)
        columns = (kernels.name.tolist(), kernels.family.tolist(), kernels.rule.tolist())
        verdicts = [
            int(eligible_by_kernel(strings[name], strings[family], strings[rule], capability))
            for name, family, rule in zip(*columns, strict=True)
        ]
        rows = self.launch_is_kernel & ~whole_graph
        result[rows] = np.array(verdicts, dtype=np.int64)[launches.kernel[rows]]
        # Of PyTorch's own ops the name decides, and an op around generated code does.
        decided = take_or(self.profile.ops_named(is_op_of_pytorch), self.launch_op, False)
        result[(decided & rows) | self._launched_in_matrix_op] = int(Verdict.NO)
        return result

    @cached_property
    def _launched_in_matrix_op(self) -> Bools:
        return take_or(self.call_in_matrix_op, self.profile.launches.call, False)

    @cached_property
    def launch_op(self) -> Ints:
        """Row in `Profile.ops` of the innermost op that launched the activity, -1 for none."""
        calls, call = self.profile.calls, self.profile.launches.call
        is_op = (self.profile.ops.kind == CallKind.OP)[calls.op]
        innermost = inherit(np.where(is_op, calls.op, -1), is_op, self.call_parent)
        return np.where(call >= 0, self._of_launch_call(innermost), -1)

    @cached_property
    def groups(self) -> OpGroups:
        """The ops of the model."""
        ops, strings = self.profile.ops, self.profile.strings
        rows = np.flatnonzero(ops.top)
        (module, op_type, role), inverse = group_rows(ops.module[rows], ops.op_type[rows], ops.role[rows])
        of_op = np.full(len(ops), -1, dtype=np.int64)
        of_op[rows] = inverse
        return OpGroups(
            of_op=of_op,
            module=module,
            op_type=op_type,
            role=role,
            ids=[
                stable_id(strings[path], strings[kind], Role(which).name)
                for path, kind, which in zip(module.tolist(), op_type.tolist(), role.tolist(), strict=True)
            ],
        )

    @cached_property
    def groups_with_matrix_op(self) -> Bools:
        """Per group, whether it contains an op that multiplies matrices, on any device."""
        calls = self.profile.calls
        matrix = (self.profile.ops.tensor_core_eligible != Verdict.NO)[calls.op]
        matrix = self._with_callers(matrix, self.launch_by_kernel != Verdict.NO)
        inside = any_in_subtree(matrix, self.call_end) & self.profile.ops.top[calls.op]
        result = np.zeros(len(self.groups), dtype=np.bool_)
        result[self.call_group[inside]] = True
        return result

    def selected_calls(self, selection: Selection) -> Bools:
        """Which calls started in the selected iterations."""
        return (self.call_iteration >= selection.first) & (self.call_iteration <= selection.last)

    def selected_launches(self, selection: Selection) -> Bools:
        """Which GPU activities were launched in the selected iterations."""
        return (self.launch_iteration >= selection.first) & (self.launch_iteration <= selection.last)

    def selected_activities(self, selection: Selection) -> Bools:
        """The same; where no launch was recorded, of the GPU alone, the activities that began in them."""
        if (self.profile.launches.call >= 0).any():
            return self.selected_launches(selection)
        iteration = self.iteration_at(self.profile.launches.start_ns)
        return (iteration >= selection.first) & (iteration <= selection.last)

    def iteration_at(self, time_ns: Ints) -> Ints:
        """Index of the iteration whose host window holds each time, -1 outside all."""
        iterations = self.profile.iterations
        index = np.searchsorted(iterations.host_start_ns, time_ns, side="right") - 1
        inside = (index >= 0) & (time_ns < iterations.host_stop_ns[np.maximum(index, 0)])
        return np.where(inside, index, -1)

    def _with_callers(self, calls: Bools, launches: Bools) -> Bools:
        """The calls, and those that launched any of the activities."""
        result = calls.copy()
        rows = self.profile.launches.call[launches]
        result[rows[rows >= 0]] = True
        return result

    def _of_launch_call(self, column: Ints) -> Ints:
        if not len(column):
            return np.full(len(self.profile.launches), -1, dtype=np.int64)
        return column[np.maximum(self.profile.launches.call, 0)]


def op_name(module: str, op_type: str) -> str:
    """An op's name as DLProf writes it: its module and its type."""
    return f"{module}/{op_type}" if module else op_type


def op_label(view: ProfileView, group: int) -> str:
    """A row of `ProfileView.groups` in a list of ops: its `op_name`, a backward one marked: "fc/linear (backward)"."""
    name = group_name(view, group)
    return with_direction(name, "backward") if view.groups.role[group] == Role.BACKWARD else name


def group_name(view: ProfileView, group: int) -> str:
    """`op_name` of a row of `ProfileView.groups`."""
    groups, strings = view.groups, view.profile.strings
    return op_name(strings[groups.module[group]], strings[groups.op_type[group]])


def stable_id(*parts: str) -> str:
    """A short id that is the same in every run and version: used in the page's links."""
    return hashlib.blake2s("\0".join(parts).encode(), digest_size=6).hexdigest()


def kernel_id(view: ProfileView, kernel: int) -> str:
    """`stable_id` of a row of `Profile.kernels`; what the op around it decided is part of it."""
    kernels, strings = view.profile.kernels, view.profile.strings
    return stable_id(
        strings[kernels.name[kernel]],
        str(int(kernels.kind[kernel])),
        str(int(kernels.tensor_core[kernel])),
        *(strings[column[kernel]] for column in (kernels.precision, kernels.family, kernels.rule)),
    )
