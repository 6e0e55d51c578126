"""The changes with which a failed configuration would have fitted: each fits, the next smaller does not."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from tb_dlprof_plugin.model.out_of_memory import HeldBytes, MemoryHeld, OomSummary
from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.pages.out_of_memory import oom_page
from tb_dlprof_plugin.planning.memory.allocator import rounded
from tb_dlprof_plugin.planning.memory.capacity import Capacity
from tb_dlprof_plugin.planning.memory.plan import MemoryPlan, MemoryPlanner, planner
from tb_dlprof_plugin.planning.memory.smallest_change import activations_when, smallest_change
from tb_dlprof_plugin.planning.memory.step_program import HeldKind
from tests.support.recorded_runs import ROOT, recorded_view

DATA = ROOT / "tests" / "data" / "memory_plan"
MODELS = ("held_out/bert", "recorded/resnet")


def planned(model: str) -> MemoryPlanner:
    return planner(recorded_view(DATA / model / "base"))


def failure(known: MemoryPlanner, times: int = 4, share: float = 0.6) -> OomSummary:
    """A batch of so many times the recorded one under a share of what it would take."""
    batch = times * (known.view.profile.facts.batch_size or 1)
    limit = int(share * known.plan(PlanRequest(batch_size=batch)).peak_allocated.value)
    parameters = known.program.held_bytes(HeldKind.PARAMETER)
    rest = limit - parameters
    rows = [HeldBytes("parameter", "", parameters, parameters, 1), HeldBytes("unnamed", "", rest, rest, 1)]
    held = MemoryHeld(
        device=0, allocated=limit, reserved=limit, whole_free=0, holes=0, largest_hole=0, expandable=False,
        rows=rows, stacks=[], sizes=[],
    )  # fmt: skip
    return OomSummary(held=held, batch_size=batch, limit=limit, requested=64 << 20, device_free=40 << 30)


@pytest.mark.parametrize("model", MODELS)
def test_each_change_fits_with_its_upper_end_and_the_failed_one_does_not(model: str) -> None:
    known = planned(model)
    found = failure(known)
    advised = smallest_change(known, found)
    room = Capacity("", advised.room, advised.room, "")
    assert {"batch", "accumulate", "checkpoint"} <= {change.kind for change in advised.changes}
    for change in advised.changes:
        plan = MemoryPlan(known, change.request, room)
        # The largest batch is searched to a quarter of a percent.
        assert plan.smallest_limit.high <= 1.03 * advised.room, change.kind
        assert plan.fits is not False
        samples = change.request.accumulate * (change.request.batch_size or 0)
        assert samples == found.batch_size or change.kind == "batch"
    assert MemoryPlan(known, PlanRequest(batch_size=found.batch_size), room).fits is False


@pytest.mark.parametrize("model", MODELS)
def test_a_batch_is_given_with_the_one_that_fails(model: str) -> None:
    known = planned(model)
    advised = smallest_change(known, failure(known))
    change = advised.changes[0]
    assert change.kind == "batch"
    assert change.fails_from
    assert (change.request.batch_size or 0) < change.fails_from < advised.batch_size
    too_large = MemoryPlan(
        known, PlanRequest(batch_size=change.fails_from), Capacity("", advised.room, advised.room, "")
    )
    assert too_large.fits is not True
    headline = oom_page(failure(known), known.view).headline
    assert f"batches of {change.request.batch_size:,} (not of {change.fails_from:,}" in headline


def test_one_module_less_does_not_fit() -> None:
    known = planned("recorded/resnet")
    advised = smallest_change(known, failure(known))
    (change,) = (one for one in advised.changes if one.kind == "checkpoint")
    fewer = replace(change.request, checkpoint=change.request.checkpoint[:-1])
    room = Capacity("", advised.room, advised.room, "")
    assert MemoryPlan(known, fewer, room).smallest_limit.high > advised.room


def test_activations_of_the_recorded_step_explain_what_nobody_named() -> None:
    known = planned("held_out/bert")
    found = failure(known)
    activations = activations_when(known, found)
    assert activations
    assert sum(activations.values()) == pytest.approx(found.held.of("unnamed"), rel=0.05)
    assert oom_page(found, known.view).unexplained_percent < 5


def test_the_request_that_failed_is_none_of_what_was_held() -> None:
    known = planned("held_out/bert")
    found = failure(known)
    program = known.changed(PlanRequest(batch_size=found.batch_size))
    level = most = known.program.held_bytes(HeldKind.PARAMETER) + sum(program.workspaces.values())
    largest = before = 0
    live: dict[int, int] = {}
    for event in program.events:
        slot = abs(event) - 1
        if event < 0:
            # What the step before has made is not there.
            level -= live.pop(slot, 0)
            continue
        live[slot] = rounded(program.slots[slot].bytes)
        # Of those that come when more is held than at any time before.
        if live[slot] > largest and level >= most:
            largest, before = live[slot], level
        level += live[slot]
        most = max(most, level)
    # WHEN a hundredth of it more was held than the replay holds where the largest one is asked for
    allocated = before + largest // 100
    unnamed = allocated - known.program.held_bytes(HeldKind.PARAMETER)
    rows = [found.held.rows[0], HeldBytes("unnamed", "", unnamed, unnamed, 1)]
    held = msgspec.structs.replace(found.held, allocated=allocated, rows=rows)
    activations = activations_when(known, msgspec.structs.replace(found, held=held))
    assert activations
    of_step = unnamed - sum(program.workspaces.values())
    assert sum(activations.values()) == pytest.approx(of_step, abs=largest / 50)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"batch_size": None}, "batch size of the step that failed"),
        ({"requested": None}, "no failed request"),
        ({"batch_size": 0}, "at least one sample"),
        ({"limit": 200 << 30, "device_free": 190 << 30}, "held something that the recorded one does not"),
    ],
)
def test_what_cannot_be_said_has_its_reason(changed: dict[str, int | None], why: str) -> None:
    known = planned("held_out/bert")
    found = msgspec.structs.replace(failure(known), **changed)
    with pytest.raises(PlanError, match=why):
        smallest_change(known, found)
    assert why in oom_page(found, known.view).cannot_say


def test_another_model_is_refused() -> None:
    known = planned("held_out/bert")
    with pytest.raises(PlanError, match="another model"):
        smallest_change(known, failure(planned("recorded/gpt")))
    assert activations_when(known, failure(planned("recorded/gpt"))) is None
