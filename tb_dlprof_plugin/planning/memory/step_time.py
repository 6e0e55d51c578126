"""The step time of a planned configuration, where the simulator can say it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tb_dlprof_plugin.metrics.needs import Need, missing
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.names.gpu_memory import gpu_memory
from tb_dlprof_plugin.planning import Forecast, ForecastError, forecast
from tb_dlprof_plugin.planning.larger_batch import FACTORS, larger_batch
from tb_dlprof_plugin.planning.memory.recorded_step import recorded_program
from tb_dlprof_plugin.planning.memory.rewrites import batch_ratio, changes_of, input_ratio
from tb_dlprof_plugin.planning.memory.step_program import HeldKind, inside
from tb_dlprof_plugin.planning.memory.step_work import NoWork, StepWork, WorkChange
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.simulator import Simulation, simulation

SPREADS = {
    "checkpoint": 0.05,
    "layers": 0.01,
    "optimizer": 0.01,
    "kept gradients": 0.02,
    "batches": 0.02,
    "input": 0.05,
}
"""Shares of the step by which a forecast of other work was seen to differ, with `ANOTHER_START` on top: such that about
nine in ten of the steps lie within that were timed of twelve models on an H200 (`lab/memory_plan`). That of the
input is set: one image size was timed."""
ANOTHER_START = 0.02
"""Share by which a step differs from one start of a training to the next, in most of the same configurations."""


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
        more_gpu_ns: GPU time that other work adds, such as of modules that are computed again; below 0 for less.
    """

    time: StepTime
    found: Forecast | None
    more_gpu_ns: float = 0.0


@dataclass
class _OtherWork:
    """Of a request, in addition to another precision, batch size or GPU; ``batch`` is one more of those that it
    accumulates."""

    changes: list[Change]
    gpu_ns: float = 0.0
    spread: float = 0.0
    batch: WorkChange | None = None

    def add(self, work: WorkChange, kind: str) -> None:
        """Work of one kind of `SPREADS`."""
        self.changes.append(work.change)
        self.gpu_ns += work.gpu_ns
        self.spread += SPREADS[kind]


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
    if why := missing(view, view.selection(), Need.ITERATIONS):
        raise NoStepTime(why)
    for what, asked in (
        ("FP8", request.precision == "fp8"),
        ("memory on the CPU", bool(request.offload)),
        ("ReLUs behind their pooling", request.relu == "behind_pool"),
        ("several GPUs", request.shard is not None),
    ):
        if asked:
            raise NoStepTime(f"the step time with {what} is not forecast.")
    simulated = simulation(view, view.selection())
    base, predicted, work = _base(view, request, simulated)
    try:
        more = _other_work(view, work, request)
    except NoWork as error:
        raise NoStepTime(f"the step time is not forecast: {error}.") from None
    if not more.changes and more.batch is None:
        return PlannedStep(_wider(base, ANOTHER_START) if changes_of(view, request) or request.gpu else base, predicted)
    changes = [] if predicted is None else [predicted.change]
    before = simulated.step(changes).ns
    after = simulated.step([*changes, *more.changes]).ns
    gpu_ns = more.gpu_ns
    if more.batch is not None:
        # Each further batch takes as long as the first of them.
        further = request.accumulate - 1
        after += further * (simulated.step([*changes, *more.changes, more.batch.change]).ns - after)
        gpu_ns += further * more.batch.gpu_ns
    share = after / before if before else 1.0
    time = StepTime(base.ns * share, base.low_ns * share, base.high_ns * share)
    return PlannedStep(_wider(time, more.spread + ANOTHER_START), predicted, gpu_ns)


def _wider(time: StepTime, off: float) -> StepTime:
    return StepTime(time.ns, time.low_ns / (1 + off), time.high_ns * (1 + off))


def _other_work(view: ProfileView, work: StepWork, request: PlanRequest) -> _OtherWork:
    other = _OtherWork([])
    ratio = input_ratio(view, request)
    if ratio != 1:
        attention = work.longer_attention(ratio)
        other.add(attention, "input")
        work = work.after(attention.change)
    if request.checkpoint:
        other.add(work.checkpoints(request.checkpoint), "checkpoint")
    for module, count in request.layers.items():
        if count:
            other.add(work.more_layers(module, count), "layers")
            again = tuple(one for one in request.checkpoint if inside(one, module))
            again = again or ((module,) if any(inside(module, one) for one in request.checkpoint) else ())
            if again:
                other.add(work.checkpoints(again, count), "checkpoint")
    if request.optimizer is not None:
        other.add(work.optimizer(request.optimizer), "optimizer")
    if request.set_to_none is not None:
        kept = _gradients_are_kept(view)
        if kept and request.set_to_none:
            raise NoWork("how much the recorded step spends on gradients that are kept is not known")
        if not kept and not request.set_to_none:
            other.add(work.kept_gradients(), "kept gradients")
    if request.accumulate > 1:
        other.batch = work.another_batch
        other.spread += SPREADS["batches"]
    return other


def _gradients_are_kept(view: ProfileView) -> bool:
    """Whether the recorded step sets gradients to zero in place of freeing them."""
    try:
        program = recorded_program(view)
    except PlanError:
        raise NoWork("whether the recorded step frees its gradients was not recorded") from None
    return any(storage.kind == HeldKind.GRADIENT for storage in (*program.held, *program.states))


_Base = tuple[StepTime, "Forecast | None", StepWork]
"""The step in another precision, batch size, size of the input or on another GPU, and what makes other work for it."""


def _base(view: ProfileView, request: PlanRequest, simulated: Simulation) -> _Base:
    """Without other work; kept with the view."""
    key = (f"{__name__}._base", request.precision, request.batch_size, request.gpu, input_ratio(view, request))

    def base() -> _Base:
        time, predicted = _without_other_work(view, request, simulated)
        return time, predicted, StepWork(view, simulated, None if predicted is None else predicted.change)

    return view.kept(key, base)


def _without_other_work(
    view: ProfileView, request: PlanRequest, simulated: Simulation
) -> tuple[StepTime, Forecast | None]:
    known = simulated.estimate
    if _is_recorded(view, request):
        return StepTime(known.ns, known.low_ns, known.high_ns), None
    precision = request.precision or _as_recorded(view)
    try:
        gpu = gpu_memory(request.gpu).name if request.gpu else None
        predicted = forecast(view, precision, request.batch_size, gpu, input_ratio=input_ratio(view, request))
    except ForecastError as error:
        ratio = work_ratio(view, request)
        known_line = view.profile.has_gpu and ratio in FACTORS  # A CPU's own work grows with the batch, too.
        if request.precision is not None or request.gpu is not None or not known_line:
            raise NoStepTime(str(error)) from None
        larger, index = larger_batch(view, view.selection(), known.ns), FACTORS.index(int(ratio))
        low, high = larger.shortest_ns[index], larger.longest_ns[index]
        return StepTime(math.sqrt(low * high), low, high), None
    return StepTime(predicted.predicted_ns, predicted.low_ns, predicted.high_ns), predicted


def _as_recorded(view: ProfileView) -> str:
    mode = precision_mode(view)
    return "tf32" if mode.precision == "tf32" else "fp32"


def work_ratio(view: ProfileView, request: PlanRequest) -> float:
    """The tokens or pixels of a batch over those of the recorded one, samples where it has neither."""
    return batch_ratio(view, request) * input_ratio(view, request)


def _is_recorded(view: ProfileView, request: PlanRequest) -> bool:
    return request.precision is None and request.gpu is None and work_ratio(view, request) == 1
