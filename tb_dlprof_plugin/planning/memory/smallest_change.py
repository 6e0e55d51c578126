"""The changes with which a failed configuration would have fitted, by replays of a recorded step under the limit of the
failure: only those that fit with the upper end of their interval, each with its step time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.model.out_of_memory import OomSummary
from tb_dlprof_plugin.model.plan_request import OptimizerName, PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.allocator import rounded
from tb_dlprof_plugin.planning.memory.capacity import Capacity
from tb_dlprof_plugin.planning.memory.module_choices import frontier
from tb_dlprof_plugin.planning.memory.plan import MemoryPlan, MemoryPlanner
from tb_dlprof_plugin.planning.memory.rewrites import check
from tb_dlprof_plugin.planning.memory.step_program import HeldKind, SlotKind, UnknownModule
from tb_dlprof_plugin.planning.memory.step_time import NoStepTime, step_time

_ALIKE = 0.02
"""Of the parameters' bytes: what differs by more is another model."""
_PARTS = (2, 3, 4, 6, 8, 12, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Change:
    """One change that fits.

    Attributes:
        kind: "batch", "accumulate", "checkpoint", "optimizer", "precision" or "allocator".
        request: the configuration with it.
        limit: what it needs at the most (bytes): the upper end.
        ns_per_sample: of its step, with both ends; None where it is not forecast, for the reason in ``why``.
        fails_from: of a batch, the least samples that do not fit by the lower end; None for another change.
    """

    kind: str
    request: PlanRequest
    limit: int
    ns_per_sample: tuple[float, float, float] | None
    why: str = ""
    fails_from: int | None = None


@dataclass(frozen=True)
class SmallestChange:
    """The changes that fit, in the order of how little they change; ``room`` is what the allocator could have (bytes).

    ``as_was`` is the time of a sample (ns) in the failed configuration, had it fitted; None where it is not forecast.
    """

    batch_size: int
    room: int
    as_was: float | None
    changes: list[Change]


def room_of(found: OomSummary) -> int | None:
    """What the allocator could have had (bytes): its limit, or less where the GPU was full of others'."""
    sizes = []
    if found.limit is not None:
        sizes.append(found.limit)
    if found.device_free is not None:
        sizes.append(found.held.reserved + found.device_free)
    return min(sizes, default=None)


def smallest_change(planner: MemoryPlanner, found: OomSummary) -> SmallestChange:
    """The changes that would have fitted.

    Args:
        planner: of a recorded step of the same training.
        found: the failure.

    Raises:
        PlanError: it cannot be said; the message has the reason.
    """
    room, batch = room_of(found), found.batch_size
    recorded = planner.view.profile.facts.batch_size
    if found.requested is None or room is None:
        raise PlanError("the file has no failed request, or not its limit.")
    if not recorded:
        raise PlanError("the batch size of the recorded step is not known.")
    if batch is None:
        raise PlanError("the batch size of the step that failed is not known; pass batch_size= to profile.")
    check(planner.view, PlanRequest(batch_size=batch))
    _check_alike(planner, found)
    place = Capacity(found.gpu, room, room, "the failure")
    base = PlanRequest(batch_size=batch)
    failed = MemoryPlan(planner, base, place)
    if failed.smallest_limit.high <= room:
        raise PlanError(
            f"by the recorded step {batch:,} samples need {byte_size(failed.smallest_limit.value)} and fit into "
            f"{byte_size(room)}: the step that failed held something that the recorded one does not, such as longer "
            "inputs or tensors kept from step to step."
        )
    try:
        as_was = step_time(planner.view, base).ns / batch
    except NoStepTime:
        as_was = None
    return SmallestChange(batch, room, as_was, list(_changes(planner, found, base, place)))


def _check_alike(planner: MemoryPlanner, found: OomSummary) -> None:
    named, known = found.held.requested_of("parameter"), planner.program.held_bytes(HeldKind.PARAMETER)
    if named and known and abs(named - known) > _ALIKE * known:
        raise PlanError(
            f"the recorded step has {byte_size(known)} of parameters, and the one that failed {byte_size(named)}: "
            "it is another model."
        )


def _changes(planner: MemoryPlanner, found: OomSummary, base: PlanRequest, room: Capacity) -> Iterator[Change]:
    batch = base.batch_size or 1
    surely = planner.largest_batch(base, room, "high")
    if surely:
        most = planner.largest_batch(base, room, "low")
        request = replace(base, batch_size=min(surely, batch))
        plan = MemoryPlan(planner, request, room)
        yield _change("batch", planner, request, plan, None if most is None else most + 1)
    for kind, request in _requests(planner, found, base, room):
        try:
            plan = MemoryPlan(planner, request, room)
            if plan.smallest_limit.high <= room.least:
                yield _change(kind, planner, request, plan)
        except (PlanError, UnknownModule):
            continue


def _requests(
    planner: MemoryPlanner, found: OomSummary, base: PlanRequest, room: Capacity
) -> Iterator[tuple[str, PlanRequest]]:
    batch = base.batch_size or 1
    for parts in _PARTS:
        split = replace(base, batch_size=batch // parts, accumulate=parts)
        if batch % parts == 0 and MemoryPlan(planner, split, room).smallest_limit.high <= room.least:
            yield "accumulate", split
            break
    try:
        for point in frontier(planner.view, planner.changed(base), planner.settings(base)):
            with_set = replace(base, checkpoint=point.modules)
            if point.modules and MemoryPlan(planner, with_set, room).smallest_limit.high <= room.least:
                yield "checkpoint", with_set
                break
    except (PlanError, UnknownModule):
        pass
    if (eight := _eight_bit(planner)) is not None:
        yield "optimizer", replace(base, optimizer=eight)
    if precision_mode(planner.view).precision in ("fp32", "tf32"):
        yield "precision", replace(base, precision="bf16")
    if not planner.recorded_settings.expandable:
        yield "allocator", replace(base, expandable_segments=True)


def _eight_bit(planner: MemoryPlanner) -> OptimizerName | None:
    optimizer = (planner.view.profile.facts.optimizer or "").partition("(")[0].lower()
    return "adamw_8bit" if optimizer in ("adam", "adamw") else None


def _change(
    kind: str, planner: MemoryPlanner, request: PlanRequest, plan: MemoryPlan, fails_from: int | None = None
) -> Change:
    samples = (request.batch_size or 1) * request.accumulate
    try:
        step = step_time(planner.view, request)
    except NoStepTime as error:
        return Change(kind, request, plan.smallest_limit.high, None, str(error), fails_from)
    per_sample = step.ns / samples, step.low_ns / samples, step.high_ns / samples
    return Change(kind, request, plan.smallest_limit.high, per_sample, "", fails_from)


def activations_when(planner: MemoryPlanner, found: OomSummary) -> dict[str, int] | None:
    """Bytes by module that the recorded step has made, besides gradients, when it holds as much as the step that
    failed; None where its batch size is not known, or it is another model's.

    A replay of the step with the failed batch from its beginning: what was held before it is as the failure says.
    """
    if found.batch_size is None or not planner.view.profile.facts.batch_size:
        return None
    try:
        _check_alike(planner, found)
        program = planner.changed(PlanRequest(batch_size=found.batch_size))
    except PlanError:
        return None
    held = found.held.allocated - found.held.of("unnamed")
    gradients = found.held.of("gradient")
    live: dict[int, int] = {}
    allocated = held - gradients + sum(program.workspaces.values())
    for event in program.events:
        slot = abs(event) - 1
        if event < 0:
            allocated -= live.pop(slot, 0)
            continue
        size = rounded(program.slots[slot].bytes)
        beyond = allocated + size - found.held.allocated
        if beyond > found.held.allocated - allocated:
            # Nearer without it: it may be the request that failed.
            break
        live[slot] = size
        allocated += size
        if beyond >= 0:
            break
    by_module: Counter[str] = Counter()
    for slot, size in live.items():
        if program.slots[slot].kind != SlotKind.GRADIENT:
            by_module[program.slots[slot].module] += size
    return dict(by_module.most_common())
