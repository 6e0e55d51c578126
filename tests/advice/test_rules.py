"""Each rule on a made-up case: it fires with the right numbers, and stays silent where it must."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from advice.helpers import finding_of, readings_of, status_of
from support.recorded_runs import recorded_view

import tb_dlprof_plugin
from tb_dlprof_plugin.advice import advise, engine
from tb_dlprof_plugin.advice.finding import RuleStatus, SavingItem, Silent
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.precision import tf32_off
from tb_dlprof_plugin.advice.savings import severity
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, RunFacts, System
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


@pytest.fixture
def launch_bound(new_trace) -> ProfileView:
    """FP32 matrix kernels take 10 % of the step, the CPU all of it: nothing on the GPU can shorten it."""
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.op("aten::mm", 0, 990, dims=[[8, 8], [8, 8]], types=["float", "float"])
    trace.launch("ampere_sgemm_128x64_nn", 500, 510, 100)
    view: ProfileView = trace.view()
    return view


# -- AMP


def test_amp_fires_on_fp32_with_the_time_that_could_be_half_precision(run) -> None:
    finding = finding_of(run(), "amp_not_used")
    assert readings_of(finding) == {
        "Eligible kernel time per step": 700_000,
        "Of it in half precision": 0.0,
        "Of it in FP32, off the Tensor Cores": 700_000,
        "Of it in TF32": 0,
        "Step time": 1_000_000,
    }
    # THEN of 700 µs of kernels, which take the CPU's waits with them, a third is left; the CPU's other work, a tenth
    # longer under AMP, bounds what that saves
    assert finding.saving is not None
    assert 762_500 - 1.1 * 646_000 < finding.saving.expected_ns < 700_000 * (1 - 1 / 3)
    assert finding.saving.percent == pytest.approx(finding.saving.expected_ns / 10_000)
    assert finding.severity == "high"
    assert [(row.label, row.value_ns) for row in finding.evidence] == [
        ("conv1/conv2d (backward)", 300_000),
        ("conv1/conv2d", 200_000),
        ("fc/linear", 100_000),
        ("fc/linear (backward)", 100_000),
    ]
    assert "bfloat16" in finding.code


def test_amp_advises_fp16_with_a_scaler_on_gpus_without_bf16(run) -> None:
    finding = finding_of(run(capability=(7, 0)), "amp_not_used")
    assert "GradScaler" in finding.code
    assert "bfloat16" not in finding.code


@pytest.mark.parametrize(
    ("precision", "capability", "outcome", "why"),
    [
        ("fp16", (9, 0), "silent", "100 % of the eligible kernel time is in half precision"),
        ("fp32", (6, 1), "not_applicable", "no Tensor Cores"),
        ("fp32", None, "not_applicable", "was not recorded"),
    ],
)
def test_amp_is_silent_where_it_is_used_or_cannot_be(run, precision, capability, outcome: str, why: str) -> None:
    status = status_of(run(precision, capability=capability), "amp_not_used")
    assert (status.outcome, why in status.why) == (outcome, True), status.why


def test_amp_and_tf32_are_silent_where_the_cpu_sets_the_pace(launch_bound: ProfileView) -> None:
    amp, tf32 = status_of(launch_bound, "amp_not_used"), status_of(launch_bound, "tf32_off")
    assert (amp.outcome, "the CPU sets the pace" in amp.why) == ("silent", True)
    assert tf32.outcome == "silent"


# -- TF32


def test_tf32_fires_on_fp32_kernels_off_the_tensor_cores(run) -> None:
    finding = finding_of(run(matmul_allow_tf32=False, cudnn_allow_tf32=False), "tf32_off")
    assert readings_of(finding)["FP32 matrix kernels off the Tensor Cores, per step"] == 700_000
    assert "matmul is off, cuDNN is off" in finding.seen
    assert finding.saving is not None
    # 700 µs of kernels get 2.5 times as fast, and the CPU waits for most of them.
    assert 0.8 * 420_000 < finding.saving.expected_ns <= 420_000
    assert 0 < finding.saving.low_ns < 700_000 * (1 - 1 / 1.5)


@pytest.mark.parametrize(("matmul", "cudnn", "time"), [(False, True, 200_000), (True, False, 500_000)])
def test_tf32_counts_the_kernels_whose_own_switch_is_off(run, matmul: bool, cudnn: bool, time: int) -> None:
    finding = finding_of(run(matmul_allow_tf32=matmul, cudnn_allow_tf32=cudnn), "tf32_off")
    assert readings_of(finding)["FP32 matrix kernels off the Tensor Cores, per step"] == time


@pytest.mark.parametrize("facts", [RunFacts(), RunFacts(matmul_allow_tf32=False, cudnn_allow_tf32=False)])
@pytest.mark.parametrize("directory", TF32_RUNS, ids=lambda path: path.parent.name)
def test_tf32_is_silent_on_a_run_whose_kernels_are_in_tf32_whatever_was_recorded_of_the_switches(
    directory: Path, facts: RunFacts
) -> None:
    (stored,) = tb_dlprof_plugin.read_profiles(directory)
    view = ProfileView(replace(stored.profile, facts=facts))
    answer = tf32_off.check(RuleContext(view, view.selection()))
    assert isinstance(answer, Silent)


@pytest.mark.parametrize(
    ("precision", "capability", "facts", "outcome"),
    [
        ("fp32", (9, 0), {"matmul_allow_tf32": True, "cudnn_allow_tf32": True}, "silent"),
        ("fp32", (7, 5), {}, "not_applicable"),
        ("fp32", (7, 0), {"matmul_allow_tf32": False}, "not_applicable"),
        ("fp32", None, {}, "not_applicable"),
        ("tf32", (8, 0), {}, "silent"),
        ("fp16", (8, 0), {"matmul_allow_tf32": False, "cudnn_allow_tf32": False}, "silent"),
    ],
)
def test_tf32_is_silent_where_on_absent_or_of_no_use(run, precision, capability, facts, outcome: str) -> None:
    assert status_of(run(precision, capability=capability, **facts), "tf32_off").outcome == outcome


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


# -- DataLoader


def test_without_worker_processes_most_of_the_wait_can_go(cpu_trace) -> None:
    facts = RunFacts(dataloader=DataLoaderFacts(num_workers=0))
    finding = finding_of(cpu_trace.view(facts=facts, system=System(cpu_count=2)), "synchronous_dataloader")
    assert finding.saving is not None
    assert (finding.saving.low_ns, finding.saving.expected_ns, finding.saving.high_ns) == (5_000, 9_000, 10_000)
    assert "num_workers=2" in finding.code
    assert "num_workers=0" in finding.seen


def test_loading_while_the_gpu_works_is_no_waiting(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.op("aten::mm", 0, 10)
    trace.launch("ampere_sgemm_128x64_nn", 2, 10, 900)
    trace.loader(100, 400)
    view = trace.view()
    assert {status_of(view, rule).outcome for rule in ("dataloader_bound", "synchronous_dataloader")} == {"silent"}


# -- GPU utilization


def _busy(new_trace, microseconds: float) -> ProfileView:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.op("aten::add", 0, 100)
    trace.launch("void at::native::elementwise_kernel<128>(int)", 5, 100, microseconds)
    view: ProfileView = trace.view(facts=RunFacts(unprofiled_step_ns=1_000_000))
    return view


def test_the_utilization_rule_fires_below_half_of_the_step(new_trace) -> None:
    assert status_of(_busy(new_trace, 500), "gpu_underutilized").outcome == "silent"
    finding = finding_of(_busy(new_trace, 499), "gpu_underutilized")
    assert readings_of(finding) == {
        "GPU utilization": pytest.approx(49.9),
        "GPU idle per step": 501_000,
        "Kernels launched per step": 1,
        "GPU time per kernel": 499_000,
    }
    # What it costs stands with the rule that names the cause.
    assert finding.saving is None
    assert "launching" in finding.saving_unknown_because


# -- cudnn.benchmark


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({"cudnn_benchmark": None}, "not_applicable"),
        ({"cudnn_benchmark": True}, "silent"),
        ({"cudnn_benchmark": False}, "fired"),
        ({"cudnn_benchmark": False, "deterministic_algorithms": True}, "not_applicable"),
    ],
)
def test_cudnn_benchmark_fires_only_where_the_hook_saw_it_off(run, facts, outcome: str) -> None:
    assert status_of(run(**facts), "cudnn_benchmark_off").outcome == outcome


def test_cudnn_benchmark_counts_convolution_kernels_and_shapes(run) -> None:
    finding = finding_of(run(cudnn_benchmark=False), "cudnn_benchmark_off")
    assert readings_of(finding) == {
        "Convolution share of the step": 50.0,
        "Convolution kernels per step": 500_000,
        "Different convolution shapes": 2,
    }
    assert finding.saving is not None
    assert finding.saving.low_ns == 0
    assert finding.saving.expected_ns == round(500_000 * (1 - 1 / 1.2))
    # A replay that the CPU paces misses up to 6.4 % of what is left of the step.
    assert finding.saving.high_ns == pytest.approx(142_857 + 0.064 * 857_143, rel=0.01)


def test_cudnn_benchmark_does_not_apply_without_convolutions(launch_bound: ProfileView) -> None:
    launch_bound.profile.facts.cudnn_benchmark = False
    assert status_of(launch_bound, "cudnn_benchmark_off").outcome == "not_applicable"


# -- All rules


def test_without_a_gpu_only_the_dataloader_rule_applies(cpu_view: ProfileView) -> None:
    statuses = advise(cpu_view, cpu_view.selection()).rules
    outcomes = {status.rule: status.outcome for status in statuses if status.rule in RULES}
    assert outcomes == {
        "amp_not_used": "not_applicable",
        "tf32_off": "not_applicable",
        "synchronous_dataloader": "fired",
        "gpu_underutilized": "not_applicable",
        "cudnn_benchmark_off": "not_applicable",
    }


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
