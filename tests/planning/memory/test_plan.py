"""The plan of a configuration: intervals, verdict, largest batch, the frontier of checkpoints and the step's time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tb_dlprof_plugin.model.plan_request import PlanError, PlanQuestion, PlanRequest
from tb_dlprof_plugin.names.gpu_memory import COMMON, DESKTOP, UnknownGpu, gpu_memory
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of
from tb_dlprof_plugin.pages.plan import plan_page
from tb_dlprof_plugin.pages.quantities import PEAK_RESERVED
from tb_dlprof_plugin.planning.memory.allocator import AllocatorSettings, CachingAllocator
from tb_dlprof_plugin.planning.memory.capacity import Capacity, capacity
from tb_dlprof_plugin.planning.memory.module_choices import frontier
from tb_dlprof_plugin.planning.memory.op_calls import OpCalls
from tb_dlprof_plugin.planning.memory.plan import MemoryPlanner, batch_that_fits, planner
from tb_dlprof_plugin.planning.memory.replay import runs_under
from tb_dlprof_plugin.planning.memory.rewrite_saved_tensors import with_checkpoints
from tb_dlprof_plugin.planning.memory.rewrites import REWRITES, SPREADS, check
from tb_dlprof_plugin.planning.memory.step_time import NoStepTime, step_time
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef
from tests.planning.memory.test_changes import peak, three_layers
from tests.planning.memory.test_recorded_step import GROWING, MLP
from tests.support.recorded_runs import ROOT, recorded_view

GIB = 1 << 30


@pytest.fixture(scope="module")
def view() -> ProfileView:
    return recorded_view(MLP)


@pytest.fixture(scope="module")
def mlp(view: ProfileView) -> MemoryPlanner:
    return planner(view)


def test_reserved_memory_that_the_run_kept_from_earlier_steps_is_in_the_interval() -> None:
    view = recorded_view(ROOT / "tests" / "data" / "memory_plan" / "held_out" / "unet")
    recorded, found = PEAK_RESERVED.value(view, view.selection()), planner(view).plan(PlanRequest())
    assert recorded is not None
    assert 1.1 * found.peak_reserved.value < recorded <= found.peak_reserved.high
    page = plan_page(view, RunRef("", "", 0, 0), PlanQuestion())
    assert "The interval has it." in " ".join(page.assumptions)


def test_the_recorded_configuration_has_the_recorded_figures(mlp: MemoryPlanner) -> None:
    found = mlp.plan(PlanRequest())
    assert (found.peak_allocated.value, found.peak_reserved.value) == (720_232_960, 765_460_480)
    assert found.verdict == "fits"
    assert found.fits


@pytest.mark.parametrize("change", [{"batch_size": 4096}, {"batch_size": 20_000}, {"optimizer": "adamw"}])
def test_each_figure_lies_in_its_interval_and_the_three_are_in_order(mlp: MemoryPlanner, change) -> None:
    found = mlp.plan(PlanRequest(**change))
    for figure in (found.peak_allocated, found.peak_reserved, found.smallest_limit):
        assert 0 < figure.low <= figure.value <= figure.high
    assert found.peak_allocated.value <= found.smallest_limit.value <= found.peak_reserved.value


def test_a_verdict_follows_the_memory_of_the_gpu(mlp: MemoryPlanner) -> None:
    outside = capacity(mlp.view)
    assert outside is not None
    need = mlp.plan(PlanRequest())
    total = next(gpu.memory_bytes for gpu in mlp.view.profile.system.gpus)
    aside = (total or 0) - outside.least

    def verdict(room: int) -> str:
        return mlp.plan(PlanRequest(memory_bytes=room + aside)).verdict

    assert verdict(need.peak_reserved.high) == "fits"
    assert verdict(need.smallest_limit.high) == "fits with retries"
    assert verdict(need.smallest_limit.low - 1) == "does not fit"


def test_the_largest_batch_runs_and_a_larger_one_does_not(mlp: MemoryPlanner) -> None:
    room = Capacity("", 4 * GIB, 4 * GIB, "given")
    most = mlp.largest_batch(PlanRequest(), room)
    assert most
    spread = 1.03
    assert runs_under(mlp.changed(PlanRequest(batch_size=most)), AllocatorSettings(), 4 * GIB)
    assert not runs_under(mlp.changed(PlanRequest(batch_size=int(most * spread))), AllocatorSettings(), 4 * GIB)


def test_nothing_fits_into_less_than_the_parameters(mlp: MemoryPlanner) -> None:
    assert mlp.largest_batch(PlanRequest(), Capacity("", 1 << 20, 1 << 20, "given")) == 0


class Replays:
    """Counts replays: each makes an allocator of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, begin = 0, CachingAllocator.__init__

        def counted(allocator: CachingAllocator, *given: Any) -> None:
            self.count += 1
            begin(allocator, *given)

        monkeypatch.setattr(CachingAllocator, "__init__", counted)

    def of(self, answer: Callable[[], object]) -> int:
        """How many an answer needs."""
        before = self.count
        answer()
        return self.count - before


@pytest.mark.parametrize("model", ["held_out/bert", "recorded/resnet"])
def test_a_question_replays_the_step_as_often_as_it_asks(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    view = recorded_view(ROOT / "tests" / "data" / "memory_plan" / model / "base")
    known, batch = planner(view), view.profile.facts.batch_size
    assert batch
    replays = Replays(monkeypatch)
    kept = PlanRequest(set_to_none=False)
    # Its own, and without the recorded batch one for each end of what workspaces may be.
    assert replays.of(lambda: known.plan(kept).verdict) == 1
    assert replays.of(lambda: known.plan(replace(kept, batch_size=2 * batch)).verdict) <= 3
    assert replays.of(lambda: known.plan(replace(kept, batch_size=2 * batch)).fits) == 0
    assert replays.of(lambda: known.plan(kept).largest_batch) <= 12
    points = frontier(view, known.changed(kept), known.settings(kept))
    assert replays.of(lambda: next(points)) == 1
    ref = RunRef("", "", 0, 0)
    assert replays.of(lambda: plan_page(view, ref, PlanQuestion(batch_size=3 * batch))) <= 24
    assert replays.of(lambda: plan_page(view, ref, PlanQuestion(batch_size=3 * batch, also=("gpus",)))) > 30


def test_each_point_of_the_frontier_saves_memory(view: ProfileView) -> None:
    points = list(frontier(view, three_layers(), AllocatorSettings()))
    assert points[0].modules == ()
    assert {len(point.modules) for point in points} == {0, 1, 2}
    assert [point.peak_allocated for point in points] == [
        peak(with_checkpoints(three_layers(), point.modules, OpCalls())) for point in points
    ]
    assert all(after.peak_allocated < before.peak_allocated for before, after in itertools.pairwise(points))


def test_a_module_whose_output_is_all_it_keeps_is_not_on_the_frontier(view: ProfileView, mlp: MemoryPlanner) -> None:
    assert [point.modules for point in frontier(view, mlp.program, AllocatorSettings())] == [()]


def test_checkpoints_make_the_step_longer_by_less_than_another_step(view: ProfileView) -> None:
    base = step_time(view, PlanRequest())
    again = step_time(view, PlanRequest(checkpoint=("0", "1", "2")))
    assert base.ns < again.ns < 2 * base.ns


@pytest.mark.parametrize("change", [{"optimizer": "adam"}, {"set_to_none": False}, {"precision": "fp8"}])
def test_a_step_that_is_not_forecast_is_refused_with_the_reason(view: ProfileView, change) -> None:
    with pytest.raises(NoStepTime, match="not forecast"):
        step_time(view, PlanRequest(**change))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"batch_size": 0}, "at least one sample"),
        ({"optimizer": "adagrad"}, "no optimizer"),
        ({"accumulate": 0}, "at least one batch"),
        ({"checkpoint": ("a", "a.b")}, "within another"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(view: ProfileView, change, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        check(view, PlanRequest(**change))


def test_precision_is_of_fp32_runs_alone() -> None:
    with pytest.raises(PlanError):
        check(recorded_view(GROWING), PlanRequest(precision="fp16"))


def test_half_precision_keeps_parameters_and_takes_less(mlp: MemoryPlanner) -> None:
    half, full = mlp.plan(PlanRequest(precision="bf16")), mlp.plan(PlanRequest())
    assert half.held == full.held
    assert 0.4 < half.peak_allocated.value / full.peak_allocated.value < 0.95


def test_the_batch_that_fits_is_a_line_without_events(view: ProfileView) -> None:
    selection = view.selection()
    replayed = batch_that_fits(view, selection, 0.9)
    without = replace(view.profile, memory=type(view.profile.memory).none())
    line = batch_that_fits(ProfileView(without), selection, 0.9)
    assert replayed is not None
    assert line is not None
    assert (replayed.source, line.source) == ("replay", "line")
    assert line.samples == pytest.approx(replayed.samples, rel=0.2)
    unknown = replace(without, facts=msgspec.structs.replace(without.facts, batch_size=None))
    assert batch_that_fits(ProfileView(unknown), selection, 0.9) is None


def test_gpus_are_found_by_words_of_their_names() -> None:
    assert gpu_memory("A100 40GB").name == "A100-PCIE-40GB"
    assert gpu_memory("NVIDIA H100 80GB HBM3").most == 80 * GIB
    for words in ("A100", "Radeon", ""):
        with pytest.raises(UnknownGpu):
            gpu_memory(words)


def test_gpus_of_the_tables_have_peak_rates() -> None:
    sizes = [gpu_memory(name).least for name in COMMON]
    assert sizes == sorted(sizes)
    assert all(ceilings_of(name) for name in (*COMMON, *DESKTOP))


def test_every_rewrite_has_a_spread_and_every_spread_a_rewrite() -> None:
    assert {rewrite.kind for rewrite in REWRITES} == set(SPREADS)


def test_the_runs_own_gpu_has_one_capacity_by_its_name_too() -> None:
    view = recorded_view(ROOT / "tests" / "data" / "memory_plan" / "recorded" / "convnext" / "base")
    own, named = capacity(view), capacity(view, "H200")
    assert (own.least, own.most) == (named.least, named.most)
    # Of which a plan without changes takes the same batch.
    known = planner(view)
    assert known.plan(PlanRequest()).largest_batch == known.plan(PlanRequest(gpu="H200")).largest_batch
