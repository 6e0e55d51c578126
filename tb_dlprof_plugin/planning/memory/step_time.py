"""The step time of a planned configuration, where the simulator can say it."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.model.profile import CallKind, Floats, Role
from tb_dlprof_plugin.names.gpu_memory import gpu_memory
from tb_dlprof_plugin.planning import Forecast, ForecastError, forecast
from tb_dlprof_plugin.planning.larger_batch import FACTORS, larger_batch
from tb_dlprof_plugin.planning.memory.module_events import inside
from tb_dlprof_plugin.planning.memory.plan_request import PlanRequest, batch_ratio
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Added, Change
from tb_dlprof_plugin.simulation.simulator import Simulation, simulation


@dataclass(frozen=True, slots=True)
class StepTime:
    """Duration of a step without the profiler in ns, with its interval."""

    ns: float
    low_ns: float
    high_ns: float


@dataclass(frozen=True)
class PlannedStep:
    """A configuration's step, with what the simulator was given for it.

    Attributes:
        time: of the step.
        found: the forecast behind it; None as recorded, or where it is the line through two batch sizes.
        changes: of the recorded step; empty in the same cases.
        again: the recomputation of checkpointed modules; None without.
    """

    time: StepTime
    found: Forecast | None
    changes: list[Change]
    again: Change | None


class NoStepTime(ValueError):
    """The step time is not forecast for this configuration; the message gives the reason."""


def step_time(view: ProfileView, request: PlanRequest) -> StepTime:
    """The step of a configuration.

    Raises:
        NoStepTime: it is not known.
    """
    return planned_step(view, request).time


def planned_step(view: ProfileView, request: PlanRequest) -> PlannedStep:
    """The step of a configuration, and how it was found.

    Raises:
        NoStepTime: it is not known.
    """
    for what, asked in (
        ("another optimizer", request.optimizer is not None),
        ("another size of the input", request.sequence_length is not None or request.image_size is not None),
        ("FP8", request.precision == "fp8"),
        ("memory on the CPU", bool(request.offload)),
        ("ReLUs in another place", request.relu is not None),
        ("several GPUs", request.shard is not None),
        ("more layers", any(request.layers.values())),
        ("several batches accumulated", request.accumulate > 1),
        ("gradients that are kept", request.set_to_none is not None),
    ):
        if asked:
            raise NoStepTime(f"the step time with {what} is not forecast.")
    simulated = simulation(view, view.selection())
    base, found = _base(view, request, simulated)
    changes = [] if found is None else [found.change]
    if not request.checkpoint:
        return PlannedStep(base, found, changes, None)
    again = recomputed(view, request.checkpoint, simulated, changes[0].gpu if changes else None)
    before, after = simulated.step(changes).ns, simulated.step([*changes, again]).ns
    share = after / before if before else 1.0
    return PlannedStep(StepTime(base.ns * share, base.low_ns * share, base.high_ns * share), found, changes, again)


def recomputed(view: ProfileView, modules: tuple[str, ...], simulated: Simulation, gpu: Floats | None = None) -> Change:
    """The forward pass of modules once more, before the first launch of each one's backward pass.

    Args:
        view: the run.
        modules: their paths.
        simulated: the simulation of the run.
        gpu: remaining share of the time of each row of `Profile.launches`, after other changes.
    """
    profile = view.profile
    launches, calls, ops = profile.launches, profile.calls, profile.ops
    own = np.array([any(inside(path, module) for module in modules) for path in profile.strings], dtype=np.bool_)
    op = calls.op[np.maximum(launches.call, 0)]
    chosen = own[ops.module[op]] & (launches.call >= 0) & (view.launch_iteration >= 0)
    is_op = (ops.kind[calls.op] == CallKind.OP) & (view.call_iteration >= 0)
    per_op = simulated.replayed_host_ns(simulated.share.expected) * len(profile.iterations) / max(int(is_op.sum()), 1)
    forward_calls = is_op & own[ops.module[calls.op]] & (ops.role[calls.op] == Role.FORWARD)
    forward = np.flatnonzero(chosen & (ops.role[op] == Role.FORWARD))
    host = per_op * int(forward_calls.sum()) / max(len(forward), 1)
    first: dict[tuple[int, str], int] = {}
    for row in np.flatnonzero(chosen & (ops.role[op] == Role.BACKWARD)).tolist():
        path = profile.strings[int(ops.module[op[row]])]
        module = next(one for one in modules if inside(path, one))
        first.setdefault((int(view.launch_iteration[row]), module), row)
    added: dict[int, list[Added]] = defaultdict(list)
    for row in forward.tolist():
        path = profile.strings[int(ops.module[op[row]])]
        module = next(one for one in modules if inside(path, one))
        place = first.get((int(view.launch_iteration[row]), module))
        if place is not None:
            share = 1.0 if gpu is None else float(gpu[row])
            added[place].append(Added(host, share * float(launches.duration_ns[row])))
    return Change(added=dict(added))


def _base(view: ProfileView, request: PlanRequest, simulated: Simulation) -> tuple[StepTime, Forecast | None]:
    """The step without checkpoints, and the changes that lead to it: kept with the view."""
    key = (f"{__name__}._base", request.precision, request.batch_size, request.gpu)
    known: tuple[StepTime, Forecast | None] | None = view.answers.get(key)
    if known is None:
        known = _without_checkpoints(view, request, simulated)
        view.keep(key, known)
    return known


def _without_checkpoints(
    view: ProfileView, request: PlanRequest, simulated: Simulation
) -> tuple[StepTime, Forecast | None]:
    known = simulated.estimate
    if _is_recorded(view, request):
        return StepTime(known.ns, known.low_ns, known.high_ns), None
    precision = request.precision or _as_recorded(view)
    try:
        gpu = gpu_memory(request.gpu).name if request.gpu else None
        found = forecast(view, precision, request.batch_size, gpu)
    except ForecastError as error:
        ratio = batch_ratio(view, request)
        if request.precision is not None or request.gpu is not None or ratio not in FACTORS:
            raise NoStepTime(str(error)) from None
        larger, index = larger_batch(view, view.selection(), known.ns), FACTORS.index(int(ratio))
        low, high = larger.shortest_ns[index], larger.longest_ns[index]
        return StepTime(math.sqrt(low * high), low, high), None
    return StepTime(found.predicted_ns, found.low_ns, found.high_ns), found


def _as_recorded(view: ProfileView) -> str:
    mode = precision_mode(view)
    return "tf32" if mode.precision == "tf32" else "fp32"


def _is_recorded(view: ProfileView, request: PlanRequest) -> bool:
    return request.precision is None and request.gpu is None and batch_ratio(view, request) == 1
