"""Many runs: what each is compared with, how sure the difference is, and the lines over one fact."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from tb_dlprof_plugin.comparison.run_table import NamedRun, against_base, before_and_after, speedup
from tb_dlprof_plugin.comparison.sweep import Sweep, sweep, swept_facts
from tb_dlprof_plugin.metrics.run_figures import RunFigures
from tb_dlprof_plugin.metrics.run_setup import RunSetup
from tb_dlprof_plugin.simulation.estimate import StepEstimate, StepSource


def setup(**facts: Any) -> RunSetup:
    known: dict[str, Any] = {
        "model": "Net", "parameters": 1000, "precision": "fp32", "batch_size": 32, "workers": 8, "gpu": "H200",
        "gpus": 1, "processes": 1, "compiled": False, "channels_last": False, "cudnn_benchmark": False,
        "optimizer": "SGD", "torch": "2.11",
    }  # fmt: skip
    return RunSetup(**known | facts)


def run(name: str, step_ns: int = 1_000_000, deviation_ns: int | None = 1000, **facts: Any) -> NamedRun:
    """A run whose step is the recorded one."""
    iterations = facts.pop("iterations", 10)
    created = facts.pop("created", 0)
    # Iterations alternate around the mean, so that their sample standard deviation is the one given.
    apart = (deviation_ns or 0) * ((iterations - 1) / iterations) ** 0.5
    times = [round(step_ns + (apart if index % 2 else -apart)) for index in range(iterations)]
    figures = RunFigures(
        setup=setup(**facts), created_unix_ns=created, iterations=iterations, iteration_ns=times,
        step=StepEstimate(step_ns, step_ns, step_ns, "recorded", step_ns), deviation_ns=deviation_ns,
        samples_per_second=None, gpu_utilization=None, tensor_core_utilization=None, tensor_core_share=None,
        gpu_ns=None, launches=None, flops=None, peak_memory_bytes=None, peak_memory_of="", group_ns={}, op_types=[],
    )  # fmt: skip
    return NamedRun(name, figures)


def test_the_base_is_the_fp32_run_of_the_same_model_batch_size_and_gpu() -> None:
    runs = [
        run("amp", precision="amp-bf16"),
        run("tf32", precision="tf32"),
        run("compiled", compiled=True),
        run("later", created=2),
        run("fp32", created=1),
        run("other batch", batch_size=64),
        run("other gpu", gpu="A100", precision="tf32"),
        run("same class, other size", parameters=2000, precision="amp-fp16"),
        run("unnamed", model=None),
    ]
    bases = {
        compared.run.name: compared.base.name if compared.base else compared.why for compared in against_base(runs)
    }
    assert bases == {
        "amp": "fp32",
        "tf32": "fp32",
        "compiled": "fp32",
        "later": "fp32",
        "fp32": "fp32",
        "other batch": "other batch",
        "other gpu": "other gpu",
        "same class, other size": "no run in FP32 or TF32 has its model, batch size and GPU",
        "unnamed": "its model was not recorded",
    }


def test_a_chosen_base_is_everyones_and_what_differs_is_named() -> None:
    runs = [run("a"), run("b", step_ns=500_000, precision="amp-fp16", workers=None, compiled=True)]
    compared = against_base(runs, "a")[1]
    # A fact that only one of the two recorded is no difference.
    assert (compared.base and compared.base.name, compared.differs) == ("a", ["precision", "compiled"])
    assert compared.speedup is not None
    assert (compared.speedup.ratio, compared.speedup.of) == (2.0, "step_time")
    with pytest.raises(KeyError):
        against_base(runs, "c")


def test_runs_of_other_batch_sizes_are_compared_by_samples() -> None:
    gained = speedup(run("a").figures, run("b", step_ns=1_500_000, batch_size=64).figures)
    assert gained is not None
    assert (gained.of, round(gained.ratio, 6)) == ("samples_per_second", round(2 / 1.5, 6))


def test_the_interval_of_recorded_steps_holds_welchs_and_says_what_is_noise() -> None:
    base = run("a", step_ns=1_000_000, deviation_ns=100_000).figures
    near = speedup(base, run("b", step_ns=950_000, deviation_ns=100_000).figures)
    far = speedup(base, run("c", step_ns=700_000, deviation_ns=10_000).figures)
    slow = speedup(base, run("d", step_ns=1_300_000, deviation_ns=10_000).figures)
    assert near is not None
    assert far is not None
    assert slow is not None
    assert (near.change, far.change, slow.change) == ("within noise", "faster", "slower")
    # log(1000/950) +- t(0.975; 17.95) * sqrt(0.1^2/10 + (100/950)^2/10): t = 2.11 for 17 by any table. On top of that,
    # each recorded step is known to 2 %.
    half = math.hypot(2.11 * math.sqrt(0.1**2 / 10 + (100 / 950) ** 2 / 10), math.log(1.02), math.log(1.02))
    assert near.low == pytest.approx(1000 / 950 * math.exp(-half), abs=0.0002)
    assert near.high == pytest.approx(1000 / 950 * math.exp(half), abs=0.0002)


def test_steps_without_the_profiler_decide_not_the_recorded_ones() -> None:
    def timed(name: str, step_ns: int, source: StepSource) -> RunFigures:
        recorded = run(name, step_ns=2_000_000).figures
        step = StepEstimate(step_ns, 0.9 * step_ns, 1.1 * step_ns, source, 2_000_000)
        return msgspec.structs.replace(recorded, step=step)

    gained = speedup(timed("a", 1_500_000, "measured"), timed("b", 1_000_000, "simulated"))
    assert gained is not None
    assert (gained.ratio, gained.change) == (1.5, "faster")
    near = speedup(timed("a", 1_050_000, "measured"), timed("b", 1_000_000, "simulated"))
    assert near is not None
    assert near.change == "within noise"


def test_one_iteration_knows_no_noise() -> None:
    gained = speedup(run("a").figures, run("b", deviation_ns=None, iterations=1).figures)
    assert gained is not None
    assert (gained.low, gained.high, gained.change) == (None, None, "unknown")
    assert speedup(run("a").figures, run("b", step_ns=0).figures) is None


def test_a_model_is_shown_before_and_after_with_the_fastest_of_its_runs() -> None:
    runs = [
        run("fp32"),
        run("fp16", step_ns=700_000, precision="amp-fp16"),
        run("bf16", step_ns=600_000, precision="amp-bf16"),
        run("compiled", step_ns=300_000, precision="amp-bf16", compiled=True),
        run("cast", step_ns=500_000, precision="bf16"),
        run("slow fp32", batch_size=8),
        run("slow amp", step_ns=2_000_000, precision="amp-fp16", batch_size=8),
        run("alone", model="Other", precision="amp-fp16"),
    ]
    pairs = before_and_after(runs)
    names = [(p.before and p.before.name, p.after and p.after.name, p.best.name, p.differs) for p in pairs]
    assert names == [
        # The compiled run differs in more than the precision: its gain is not AMP's.
        ("fp32", "bf16", "cast", []),
        ("slow fp32", "slow amp", "slow fp32", []),
        (None, "alone", "alone", []),
    ]
    assert [p.speedup and p.speedup.change for p in pairs] == ["faster", "slower", None]


def _lines(made: Sweep) -> list[tuple[dict[str, Any], list[tuple[Any, str]]]]:
    return [(line.facts, [(point.x, point.run.name) for point in line.points]) for line in made.lines]


def _left_out(made: Sweep) -> dict[str, str]:
    return {left.run.name: left.why for left in made.left_out}


def test_runs_become_one_line_for_each_combination_of_their_other_facts() -> None:
    runs = [
        run("fp32/64", batch_size=64),
        run("fp32/8", batch_size=8),
        run("amp/8", batch_size=8, precision="amp-bf16"),
        run("amp/64", batch_size=64, precision="amp-bf16"),
        run("amp/128", batch_size=128, precision="amp-bf16"),
        run("lone", batch_size=8, workers=0),
        run("unknown", batch_size=None),
    ]
    made = sweep(runs, "batch_size", lambda figures: figures.step.ns, "step time")
    assert _lines(made) == [
        ({"precision": "amp-bf16"}, [(8, "amp/8"), (64, "amp/64"), (128, "amp/128")]),
        ({"precision": "fp32"}, [(8, "fp32/8"), (64, "fp32/64")]),
    ]
    assert made.common["workers"] == 8
    assert _left_out(made) == {
        "lone": "no other run differs from it in the batch size alone",
        "unknown": "its batch size was not recorded",
    }
    assert swept_facts(runs) == ["batch_size", "workers", "precision"]


def test_of_runs_at_one_point_the_newest_counts_and_unknown_values_make_no_point() -> None:
    runs = [
        run("old", batch_size=8, created=1),
        run("new", batch_size=8, created=2),
        run("big", batch_size=16),
        run("bigger", step_ns=0, batch_size=32),
    ]
    made = sweep(runs, "batch_size", lambda figures: figures.step.ns or None, "step time")
    assert _lines(made) == [({}, [(8, "new"), (16, "big")])]
    assert _left_out(made) == {
        "old": "new has the same facts and was recorded later",
        "bigger": "its step time is unknown",
    }


def test_over_the_model_each_model_keeps_its_own_batch_size() -> None:
    runs = [run("a", model="A", batch_size=8), run("b", model="B"), run("b64", model="B", batch_size=64)]
    made = sweep(runs, "model", lambda figures: figures.step.ns, "step time")
    assert _lines(made) == [
        ({}, [(("A", 1000, 8), "a"), (("B", 1000, 32), "b"), (("B", 1000, 64), "b64")]),
    ]


def test_nothing_that_differs_is_no_line() -> None:
    assert swept_facts([run("a")]) == []
    made = sweep([run("a")], "batch_size", lambda figures: figures.step.ns, "step time")
    assert (made.lines, made.common, len(made.left_out)) == ([], {}, 1)
