"""The replay of recorded steps on an H200 against what the allocator counted there."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import msgspec
import pytest

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.metrics.memory import DeviceMemory
from tb_dlprof_plugin.model.plan_request import PlanError
from tb_dlprof_plugin.model.run_facts import RunFacts, Storages
from tb_dlprof_plugin.planning.memory.allocator import AllocatorSettings
from tb_dlprof_plugin.planning.memory.recorded_step import recorded_program
from tb_dlprof_plugin.planning.memory.replay import Needs, replay
from tb_dlprof_plugin.planning.memory.rewrite_batch import with_batch
from tb_dlprof_plugin.planning.memory.step_program import HeldKind, SlotKind
from tb_dlprof_plugin.profile_view import ProfileView
from tests.support.recorded_runs import DEMO, ROOT, recorded_view

PLANTED = ROOT / "tests" / "data" / "planted"
MLP, GROWING, EXPANDABLE = (
    PLANTED / "profiler_overhead" / "fault",
    PLANTED / "allocator_churn" / "fault",
    PLANTED / "allocator_churn" / "fixed",
)
RESNET = ROOT / "tests" / "metrics" / "recorded" / "resnet18_memory_h200.pt.trace.json.gz"
LONGEST, STEPS_BEFORE = 262_144, 23
"""Of `allocator_churn` of `lab/planted/faults`, whose batches grow before they are recorded."""


@functools.cache
def resnet() -> ProfileView:
    """With the facts that the recorder of the trace knew: Adam, and no hook."""
    profile = analyze_trace(RESNET)
    facts = RunFacts(
        batch_size=32, parameter_count=11_689_512, parameter_dtypes=["float32"], optimizer_state_bytes=8 * 11_689_512
    )
    return ProfileView(dataclasses.replace(profile, facts=facts))


def test_peaks_of_an_mlp_are_those_that_were_recorded_to_the_byte() -> None:
    found = Needs(recorded_program(recorded_view(MLP)))
    assert (found.peak_allocated, found.peak_reserved, found.steady) == (720_232_960, 765_460_480, 110_355_456)
    assert found.peak_allocated < found.smallest_limit < found.peak_reserved


def test_reserved_memory_of_resnet_18_without_a_list_of_storages_is_nearly_what_was_recorded() -> None:
    memory, found = DeviceMemory(resnet(), 0), Needs(recorded_program(resnet()))
    assert found.peak_reserved == pytest.approx(1_558_183_936, rel=0.005)
    assert found.peak_allocated == pytest.approx(int(memory.allocated.max()), rel=0.003)


def test_batches_that_were_never_recorded_lead_to_what_was_reserved_to_the_byte() -> None:
    program = recorded_program(recorded_view(GROWING))
    grown = [LONGEST // 2 + LONGEST * (i + 1) // (2 * STEPS_BEFORE) for i in range(STEPS_BEFORE)]
    found = replay(program, history=[with_batch(program, length / LONGEST).sizes for length in grown])
    assert found.peak_reserved == 33_225_179_136
    assert found.peak_allocated == pytest.approx(6_060_249_600, rel=1e-4)


def test_expandable_segments_reserve_nearly_what_was_recorded() -> None:
    program = recorded_program(recorded_view(EXPANDABLE))
    grown = [LONGEST // 2 + LONGEST * (i + 1) // (2 * STEPS_BEFORE) for i in range(STEPS_BEFORE)]
    history = [with_batch(program, length / LONGEST).sizes for length in grown]
    found = replay(program, AllocatorSettings(expandable=True), history=history)
    assert found.peak_allocated == 6_060_066_816
    assert found.peak_reserved == pytest.approx(6_566_182_912, rel=0.04)


def test_the_batch_is_told_from_what_does_not_grow() -> None:
    slots = recorded_program(recorded_view(GROWING)).slots
    assert all(slot.batch == 0 for slot in slots if slot.kind == SlotKind.GRADIENT)
    copies = [slot for slot in slots if slot.bytes == 1024 * 1024 * 2]
    assert copies
    assert all(slot.batch == 0 for slot in copies)
    assert all(slot.batch == 1 for slot in slots if slot.bytes == LONGEST * 1024 * 2)


def test_a_limit_between_the_two_runs_with_retries() -> None:
    program = recorded_program(recorded_view(MLP))
    limit = Needs(program).smallest_limit
    under, free = replay(program, limit=limit), replay(program)
    assert under.fits
    assert under.retries > 0
    assert free.retries == 0
    assert not replay(program, limit=free.peak_allocated).fits


def test_listed_storages_are_the_ones_that_are_held() -> None:
    view = recorded_view(MLP)
    sizes = [slot.bytes for slot in recorded_program(view).slots if slot.kind == SlotKind.GRADIENT]
    listed = [
        Storages("parameter", "0", sizes),
        Storages("gradient", "0", sizes),
        Storages("other", "", [2**25, 8192 * 512 * 4, 2**25, 8192 * 8]),
    ]
    facts = msgspec.structs.replace(view.profile.facts, storages=listed)
    program = recorded_program(ProfileView(dataclasses.replace(view.profile, facts=facts)))
    assert sorted(program.workspaces.values()) == [2**25, 2**25]
    assert program.held_bytes(HeldKind.GRADIENT) == 0
    assert program.held_bytes(HeldKind.PARAMETER) == sum(sizes)
    found = Needs(program)
    assert (found.peak_allocated, found.peak_reserved) == (720_232_960, 765_460_480)


@pytest.mark.parametrize("run", ["lenet/fp32", "resnet50/amp-fp16"])
def test_a_run_without_memory_says_how_to_record_it(run: str) -> None:
    with pytest.raises(PlanError, match="profile_memory=True"):
        recorded_program(recorded_view(Path(DEMO / run)))
