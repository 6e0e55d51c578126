"""Each rule on a made-up case: it fires with the right numbers, and stays silent where it must."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from advice.helpers import finding_of, status_of
from support.recorded_runs import recorded_view

import tb_dlprof_plugin
from tb_dlprof_plugin.advice import advise, engine
from tb_dlprof_plugin.advice.finding import RuleStatus, SavingItem, Silent
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.precision import tf32_off
from tb_dlprof_plugin.advice.savings import severity
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.planning import forecast
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
PAIRS = Path(__file__).resolve().parents[2] / "tests" / "data" / "precision_pairs"
TF32_RUNS = sorted(path for folder in (RECORDED, PAIRS) for path in folder.rglob("tf32") if path.is_dir())
RULES = ("amp_not_used", "tf32_off", "synchronous_dataloader", "gpu_underutilized", "cudnn_benchmark_off")


@pytest.fixture
def run(training) -> Any:
    """Makes the view of two steps of `training` with facts as keywords.

    Nothing is known of its GPU but its compute capability, so that there is no forecast.
    """

    def make(precision: str = "fp32", *, capability: Any = (9, 0), loader: float = 100, **facts: Any) -> ProfileView:
        trace = training(precision, steps=2, capability=capability, loader=loader)
        view: ProfileView = trace.view(facts=RunFacts(**{"unprofiled_step_ns": 1_000_000} | facts))
        for gpu in view.profile.system.gpus:
            gpu.name = "a GPU of unknown rates"
        return view

    return make


@pytest.fixture(scope="module")
def recorded() -> Any:
    """Reads a run of the demo, each once."""

    @functools.cache
    def read(name: str) -> ProfileView:
        return recorded_view(RECORDED / name)

    return read


# -- TF32


@pytest.mark.parametrize("facts", [RunFacts(), RunFacts(matmul_allow_tf32=False, cudnn_allow_tf32=False)])
@pytest.mark.parametrize("directory", TF32_RUNS, ids=lambda path: path.parent.name)
def test_tf32_is_silent_on_a_run_whose_kernels_are_in_tf32_whatever_was_recorded_of_the_switches(
    directory: Path, facts: RunFacts
) -> None:
    (stored,) = tb_dlprof_plugin.read_profiles(directory)
    view = ProfileView(replace(stored.profile, facts=facts))
    answer = tf32_off.check(RuleContext(view, view.selection()))
    assert isinstance(answer, Silent)


# -- What the forecast says


@pytest.mark.parametrize("model", ["vgg16", "resnet50", "custom"])
@pytest.mark.parametrize(("rule", "precision"), [("amp_not_used", "bf16"), ("tf32_off", "tf32")])
def test_where_there_is_a_forecast_the_saving_is_its(recorded, model: str, rule: str, precision: str) -> None:
    view = recorded(f"{model}/fp32")
    found = forecast(view, precision)
    saving = finding_of(view, rule).saving
    assert saving is not None
    assert saving.expected_ns == round(found.base_ns - found.predicted_ns)
    # The ends are wider by what is not known of the step itself.
    assert 0 < saving.low_ns <= found.base_ns * (1 - found.most_share) <= saving.expected_ns
    assert saving.expected_ns <= found.base_ns * (1 - found.least_share) <= saving.high_ns <= found.base_ns
    assert saving.percent == pytest.approx(100 * (1 - 1 / found.speedup), abs=0.001)
    assert f"{found.predicted_ns / 1e6:.2f} ms a step" in saving.derivation


@pytest.mark.parametrize("model", ["lenet", "mlp"])
def test_no_gain_is_predicted_where_the_forecast_has_none(recorded, model: str) -> None:
    view = recorded(f"{model}/fp32")
    found = forecast(view, "bf16")
    amp, tf32 = status_of(view, "amp_not_used"), status_of(view, "tf32_off")
    assert (amp.outcome, tf32.outcome) == ("silent", "silent")
    longer = f"BF16 would make the step {100 * (found.predicted_ns / found.base_ns - 1):.0f} % longer"
    assert longer in amp.why
    assert "the CPU sets the pace" in amp.why
    assert "TF32 would change little" in tf32.why


def test_a_saving_that_may_be_none_is_less_severe() -> None:
    assert [severity(SavingItem(low, 30, 40, percent, "")) for low in (1, -1) for percent in (25.0, 6.0, 3.0)] == [
        "high", "medium", "low", "medium", "low", "low",
    ]  # fmt: skip


# -- All rules


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16"])
@pytest.mark.parametrize("loader", [0, 90])
def test_every_saving_is_an_ordered_interval_within_the_step(run, precision: str, loader: float) -> None:
    view = run(precision, loader=loader, cudnn_benchmark=False)
    advice = advise(view, view.selection())
    assert set(RULES) <= {status.rule for status in advice.rules}
    expected = [finding.saving.expected_ns for finding in advice.findings if finding.saving]
    assert expected == sorted(expected, reverse=True)
    for finding in advice.findings:
        if finding.saving is None:
            assert finding.saving_unknown_because
            continue
        assert 0 <= finding.saving.low_ns <= finding.saving.expected_ns <= finding.saving.high_ns <= 1_000_000
        # Of the recorded step, or of the step without the profiler, which is no longer.
        assert finding.saving.expected_ns / 10_000 - 0.001 <= finding.saving.percent <= 100


def test_no_saving_is_above_the_step_whatever_a_rule_says(run, monkeypatch: pytest.MonkeyPatch) -> None:
    view = run()
    found = next(
        one for one in engine.all_rules() if isinstance(one.check(RuleContext(view, view.selection())), Finding)
    )

    def boasts(context: RuleContext) -> Finding:
        whole = found.check(context)
        assert isinstance(whole, Finding)
        saving = SavingItem(low_ns=5, expected_ns=10**15, high_ns=10**16, percent=1e8, derivation="")
        return replace(whole, item=msgspec.structs.replace(whole.item, saving=saving))

    monkeypatch.setattr(engine, "all_rules", lambda: (engine.Implemented(found.rule, boasts, None),))
    (finding,) = advise(view, view.selection()).findings
    step = int(step_estimate(view, view.selection()).ns)
    assert finding.saving == SavingItem(low_ns=5, expected_ns=step, high_ns=step, percent=100.0, derivation="")


def test_a_rule_that_fails_is_reported_and_the_others_still_run(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: object) -> Finding:
        raise ZeroDivisionError("by nothing")

    text = Rule("rules.broken", "Broken.")
    rules = (engine.Implemented(text, broken, None), *engine.all_rules())

    view = run()
    before = advise(view, view.selection())
    monkeypatch.setattr(engine, "all_rules", lambda: rules)
    after = advise(view, view.selection())
    assert after.rules[0] == RuleStatus(
        "broken", "Broken", "failed", "The rule itself failed (by nothing); please report this."
    )
    assert (after.rules[1:], after.findings) == (before.rules, before.findings)
