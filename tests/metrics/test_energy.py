"""Joules of a step: measured, divided among its work, forecast, and what is said where they are not known."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from support.recorded_runs import ROOT

from lab.energy.compare import CACHE_BYTES, errors_of, measured, rows_of
from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.metrics.energy import energy_missing, step_energy
from tb_dlprof_plugin.metrics.energy_split import NoSplit, energy_split, work_of_launches
from tb_dlprof_plugin.metrics.run_figures import run_figures
from tb_dlprof_plugin.metrics.unattributed_ops import all_ops
from tb_dlprof_plugin.model.plan_request import PlanQuestion, PlanRequest
from tb_dlprof_plugin.model.run_facts import ClockLimit, GpuEnergy
from tb_dlprof_plugin.names.gpu_power import Work
from tb_dlprof_plugin.pages.energy import energy_page
from tb_dlprof_plugin.pages.plan import plan_page
from tb_dlprof_plugin.planning.energy import NoEnergy, planned_energy
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = ROOT / "tests" / "data" / "energy" / "recorded"
REF = RunRef("resnet", "s", 0, 0)


@pytest.fixture(scope="module")
def resnet() -> ProfileView:
    (stored,) = read_profiles(RECORDED / "resnet" / "fp32")
    return ProfileView(stored.profile)


def _with(view: ProfileView, **facts: object) -> ProfileView:
    return ProfileView(replace(view.profile, facts=msgspec.structs.replace(view.profile.facts, **facts)))


def test_the_hook_measures_what_a_window_outside_of_it_does(resnet: ProfileView) -> None:
    outside = next(row for row in rows_of(RECORDED) if (row["model"], row["precision"]) == ("resnet", "fp32"))
    found = step_energy(resnet, resnet.selection())
    assert found is not None
    assert found.watts == pytest.approx(outside["watts"], rel=0.01)
    # The steps of this window differ by 4 % from its first to its second half.
    assert found.joules == pytest.approx(outside["joules_per_step"], rel=0.04)
    assert found.joules_per_sample == pytest.approx(found.joules / 128)
    assert found.idle_percent == pytest.approx(100 * 118.9 / found.watts)


def test_the_parts_sum_to_what_was_measured(resnet: ProfileView) -> None:
    split = energy_split(resnet, resnet.selection())
    assert split.trusted
    assert split.static_joules + sum(split.kinds.values()) == pytest.approx(split.measured.joules)
    assert max(split.kinds, key=lambda kind: split.kinds[kind]) == Work.FP32
    page = energy_page(resnet, REF, resnet.selection())
    assert sum(part.percent for part in page.parts) == pytest.approx(100)
    assert page.total_ops > len(page.ops) == 100
    every = all_ops(resnet)
    assert split.by(every.of_launch, len(every)).sum() == pytest.approx(sum(split.kinds.values()))
    assert page.modules[0].path == ""
    assert page.modules[0].joules >= page.modules[1].joules


def test_what_an_op_moves_in_the_cache_takes_no_memory_power(resnet: ProfileView) -> None:
    work, none = (work_of_launches(resnet, resnet.selection(), size) for size in (CACHE_BYTES, 1 << 60))
    products = work.flops > 0
    assert work.bytes.sum() > none.bytes.sum()
    assert none.bytes[~products].sum() == 0


def test_estimates_are_as_far_off_as_the_docs_say() -> None:
    found = errors_of(RECORDED)
    assert max(abs(one.off) for one in found["table alone"]) < 0.09
    assert sorted(abs(one.off) for one in found["precision"])[2] < 0.08
    assert len(measured(RECORDED)) == 13


def test_intervals_hold_models_that_the_table_is_not_fitted_to() -> None:
    errors = [errors_of(place) for place in (RECORDED, RECORDED.with_name("held_out"))]
    alone = [one.held for found in errors for one in found["table alone"]]
    forecasts = [one.held for found in errors for kind in ("precision", "precision and batch") for one in found[kind]]
    assert (len(alone), sum(map(bool, alone))) == (17, 16)
    assert forecasts == [True] * 10


def test_a_plan_has_joules(resnet: ProfileView) -> None:
    as_recorded = plan_page(resnet, REF, PlanQuestion())
    known = step_energy(resnet, resnet.selection())
    assert known is not None
    assert as_recorded.joules_per_step == pytest.approx(known.joules, rel=1e-3)
    half = plan_page(resnet, REF, PlanQuestion(precision="bf16"))
    assert half.joules_per_step is not None
    assert half.joules_per_step < 0.5 * known.joules
    twice = planned_energy(resnet, PlanRequest(batch_size=256))
    assert 1.7 < twice.joules / known.joules < 2.1
    assert twice.low_joules < twice.joules < twice.high_joules
    with pytest.raises(NoEnergy, match="another GPU"):
        planned_energy(resnet, PlanRequest(gpu="L4"))
    less = plan_page(resnet, REF, PlanQuestion(optimizer="sgd")).joules_per_step
    assert less is not None
    assert 0.95 * known.joules < less < known.joules
    again = plan_page(resnet, REF, PlanQuestion(accumulate=4)).joules_per_step
    assert again == pytest.approx(4 * known.joules, rel=0.05)
    assert "joules_per_step" in plan_page(resnet, REF, PlanQuestion(precision="fp8")).unknown


def test_an_epoch_has_a_price(resnet: ProfileView) -> None:
    view = _with(resnet, world_size=4)
    known = step_energy(view, view.selection())
    assert known is not None
    epoch = energy_page(view, REF, view.selection(), 0.5, 400.0, 10_000).epoch
    assert epoch is not None
    assert epoch.kwh == pytest.approx(known.joules * 10_000 * 4 / 3.6e6)
    assert (epoch.cost, epoch.co2_grams) == (pytest.approx(epoch.kwh * 0.5), pytest.approx(epoch.kwh * 400))
    without = energy_page(view, REF, view.selection())
    assert without.epoch is None
    assert "--steps-per-epoch" in without.unknown["epoch"]


def test_a_saving_has_joules_between_rest_and_work(resnet: ProfileView) -> None:
    known = step_energy(resnet, resnet.selection())
    assert known is not None
    savings = [item.saving for item in advise(resnet, resnet.selection()).findings if item.saving is not None]
    assert savings
    for saving in savings:
        assert saving.high_joules == pytest.approx(max(known.watts * saving.high_ns, 118.9 * saving.high_ns) / 1e9)
        assert saving.low_joules is not None
        assert saving.high_joules is not None
        assert saving.low_joules <= saving.high_joules


def test_runs_have_energy(resnet: ProfileView) -> None:
    figures = run_figures(resnet, resnet.selection())
    assert figures.joules_per_sample == pytest.approx((figures.joules_per_step or 0) / 128)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"energy": [], "energy_missing": "NVML: no library"}, "NVML: no library. The hook reads"),
        ({"energy": []}, "The energy was not recorded. The hook reads"),
        ({"energy": [GpuEnergy(0, 60_000, 100_000_000, 2)]}, "The energy was not recorded."),
    ],
)
def test_what_was_not_measured_says_why(resnet: ProfileView, facts: dict[str, object], says: str) -> None:
    view = _with(resnet, **facts)
    assert step_energy(view, view.selection()) is None
    assert says in energy_missing(view)
    page = energy_page(view, REF, view.selection())
    assert (page.joules_per_step, page.parts, page.epoch) == (None, [], None)
    assert page.headline == energy_missing(view)
    assert plan_page(view, REF, PlanQuestion()).unknown["joules_per_step"] == energy_missing(view)


def test_a_gpu_that_was_not_measured_has_its_whole_alone(resnet: ProfileView) -> None:
    system = msgspec.structs.replace(
        resnet.profile.system,
        gpus=[msgspec.structs.replace(gpu, name="NVIDIA L4") for gpu in resnet.profile.system.gpus],
    )
    view = ProfileView(replace(resnet.profile, system=system))
    page = energy_page(view, REF, view.selection())
    assert page.joules_per_step is not None
    assert (page.idle_watts, page.parts) == (None, [])
    assert "L4" in page.unknown["parts"]
    with pytest.raises(NoSplit):
        energy_split(view, view.selection())


def test_an_estimate_far_from_the_counter_shows_no_parts(resnet: ProfileView) -> None:
    energy = [msgspec.structs.replace(resnet.profile.facts.energy[0], millijoules=250_000)]
    view = _with(resnet, energy=energy)
    page = energy_page(view, REF, view.selection())
    assert page.parts == []
    assert "off the counter by" in page.unknown["parts"]
    assert {row.joules_per_step for row in page.choices[1:]} == {None}


def test_what_held_the_clock_down_is_named(resnet: ProfileView) -> None:
    (row,) = resnet.profile.facts.energy
    limited = msgspec.structs.replace(row, readings=4, clock_limits=[ClockLimit("power cap", 3)])
    view = _with(resnet, energy=[limited])
    page = energy_page(view, REF, view.selection())
    assert [(limit.name, limit.percent) for limit in page.limits] == [("power cap", 75.0)]
    assert "The clock was held down: power cap in 75 % of the readings." in page.headline
