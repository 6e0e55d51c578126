"""The Compare page's sentences, buckets and modules, on the demo's recordings and on literal traces."""

from __future__ import annotations

import dataclasses

import pytest
from support.recorded_runs import demo_run

from tb_dlprof_plugin.comparison import compare
from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages import compare as compare_module
from tb_dlprof_plugin.pages.compare import ComparePage, compare_op, compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.pages.compare_text import explanation
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.store.run_ref import RunRef

KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


@pytest.fixture(scope="module")
def vgg() -> ComparePage:
    return compare_page(demo_run("vgg16/fp32"), demo_run("vgg16/amp-fp16"))


def test_buckets_modules_and_ops_say_the_same(vgg: ComparePage) -> None:
    for bucket in vgg.buckets:
        for side, whole, outside in (
            ("a_buckets", bucket.base_ns, bucket.base_outside_ns),
            ("b_buckets", bucket.candidate_ns, bucket.candidate_outside_ns),
        ):
            in_ops = sum(getattr(op, side).get(bucket.key, 0) for op in vgg.ops)
            assert in_ops == sum(getattr(module, side).get(bucket.key, 0) for module in vgg.modules)
            assert in_ops + outside == pytest.approx(whole, abs=len(vgg.ops))
        assert bucket.difference_ms == pytest.approx(bucket.candidate_ms - bucket.base_ms)
        assert bucket.low_ms <= bucket.difference_ms <= bucket.high_ms
    changes = sum(bucket.difference_ns for bucket in vgg.buckets)
    assert changes == vgg.step_difference_ns == round(1e6 * vgg.candidate_ms) - round(1e6 * vgg.base_ms)


def test_the_change_is_explained_in_words(vgg: ComparePage) -> None:
    assert vgg.headline == "The candidate is 3.62 times as fast: 113 ms became 31.1 ms a step."
    assert vgg.explanation[0].startswith("The speedup lies between 3.")
    assert vgg.explanation[1] == (
        "Base: 113 ms a step, timed without the profiler. Candidate: 31.1 ms a step, timed without the profiler; "
        "recorded 32.0 ms, of which the recorder added 876 µs."
    )
    assert vgg.explanation[2].startswith("The change of −81.6 ms a step is made of: Other kernels −")
    assert any(text.startswith("Casts and GradScaler take ") for text in vgg.explanation)
    assert vgg.noise is False


def test_an_estimated_step_is_named_so_once_and_the_recorders_part_is_told() -> None:
    page = compare_page(demo_run("custom/fp32"), demo_run("custom/amp-fp16"))
    candidate = step_estimate(demo_run("custom/amp-fp16").view, Selection(0, 9))
    step = duration(candidate.ns)
    assert page.headline.startswith("The candidate is 2.9")
    assert page.headline.endswith(f" times as fast: 48.4 ms became an estimated {step} a step.")
    assert page.candidate_ms == pytest.approx(candidate.ns / 1e6)
    assert (page.base_step.source, page.candidate_step.source) == ("recorded", "simulated")
    assert page.candidate_step.recorded_ms > 1.25 * page.candidate_ms
    assert page.b.step_text == (
        f"estimated; recorded 21.0 ms, of which the recorder added {duration(candidate.recorder_ns)}"
    )
    # In truth 3.09, as recording.json has it; by the recorded steps it would be 2.30.
    assert page.speedup_low < 3.09 < page.speedup_high
    both = compare_page(demo_run("custom/amp-fp16"), demo_run("custom/amp-bf16"))
    assert both.headline.count("estimated") == 1


def test_figures_of_the_gpu_are_listed_where_one_of_the_runs_has_a_gpu(
    gpu_view: ProfileView, cpu_view: ProfileView, ref: RunRef
) -> None:
    gpu, cpu = (CompareInput(view, ref, view.selection()) for view in (gpu_view, cpu_view))
    everywhere = ["step_time", "recorded_step", "samples_per_second"]
    assert [row.key for row in compare_page(cpu, cpu).metrics] == everywhere
    of_both = [row.key for row in compare_page(gpu, gpu).metrics]
    assert set(everywhere) < set(of_both)
    mixed = {row.key: (row.a, row.b) for row in compare_page(gpu, cpu).metrics}
    assert list(mixed) == of_both
    assert mixed["kernel_calls"] == (22 / 3, None)


@pytest.mark.parametrize(
    ("base_ns", "candidate_ns", "says"),
    [
        (900_000, 700_000, "The candidate is 1.29 times as fast: 900 µs became 700 µs a step."),
        (700_000, 900_000, "The candidate is slower: 700 µs became 900 µs a step, 1.29 times as long."),
        (900_000, 910_000, "Both runs take about the same, 900 µs and 910 µs a step: cannot tell which is faster."),
        (None, None, "Cannot tell whether the candidate is faster: an estimated "),
    ],
)
def test_the_steps_without_the_profiler_and_their_interval_decide_what_is_said(
    training, ref: RunRef, base_ns: int | None, candidate_ns: int | None, says: str
) -> None:
    # GIVEN the same recording twice, in steps of 1000 µs
    sides = []
    for step_ns in (base_ns, candidate_ns):
        view = training("fp32").view(facts=RunFacts(unprofiled_step_ns=step_ns))
        sides.append(CompareInput(view, ref, view.selection()))
    page = compare_page(*sides)
    assert page.headline.startswith(says)
    unknown = "cannot" in says.lower()
    assert page.noise is unknown
    assert page.change == ("within noise" if unknown else "slower" if "slower" in says else "faster")
    assert page.direction == ("Cannot tell which run is faster." if unknown else f"The candidate is {page.change}.")


@pytest.mark.parametrize(
    ("batch", "candidate_ns", "says", "change"),
    [
        (16, 900_000, "The candidate is slower: 700 µs became 900 µs a step, 1.29 times as long.", "slower"),
        (32, 900_000, "Per sample the candidate is 1.56 times as fast: 700 µs became 900 µs a step, ", "faster"),
        (32, 1_400_000, "Cannot tell whether the candidate is faster per sample: ", "within noise"),
        (32, 1_800_000, "Per sample the candidate is slower, 1.29 times as long: ", "slower"),
    ],
)
def test_where_batch_sizes_differ_samples_decide_in_headline_and_colour_alike(
    training, ref: RunRef, batch: int, candidate_ns: int, says: str, change: str
) -> None:
    sides = []
    for size, step_ns in ((16, 700_000), (batch, candidate_ns)):
        view = training("fp32").view(facts=RunFacts(unprofiled_step_ns=step_ns, batch_size=size))
        sides.append(CompareInput(view, ref, view.selection()))
    page = compare_page(*sides)
    assert page.headline.startswith(says)
    assert page.change == change


def test_each_op_has_its_kernels_before_and_after() -> None:
    sides = demo_run("lenet/fp32"), demo_run("lenet/amp-fp16")
    page = compare_page(*sides)
    for op in page.ops:
        detail = compare_op(*sides, op.id)
        for kernels, time, casts, calls in (
            (detail.a_kernels, op.a_ns, op.a_cast_ns, op.a_kernels),
            (detail.b_kernels, op.b_ns, op.b_cast_ns, op.b_kernels),
        ):
            assert sum(kernel.ns for kernel in kernels) == pytest.approx(time or 0, abs=1)
            assert sum(kernel.ns for kernel in kernels if kernel.cast) == pytest.approx(casts or 0, abs=1)
            assert round(sum(kernel.calls for kernel in kernels)) == (calls or 0)
    with pytest.raises(KeyError):
        compare_op(*sides, "nothing")


def test_the_precision_of_an_op_and_its_distance_from_the_ceiling_change(vgg: ComparePage) -> None:
    op = next(op for op in vgg.ops if op.name == "features.7/conv2d" and op.direction == "forward")
    assert (op.a_precision, op.b_precision, op.how, op.reason) == ("fp32", "fp16", "module", "")
    assert op.a_roof_percent is not None
    assert op.b_roof_percent is not None
    assert op.noise is False
    assert op.low_ns <= op.difference_ns <= op.high_ns


def test_added_and_removed_modules_are_marked_and_have_no_time_on_the_other_side(new_trace, ref: RunRef) -> None:
    def side(*modules: str) -> CompareInput:
        trace = new_trace()
        for step in range(2):
            trace.step(step, 1000 * step, 1000)
            for number, module in enumerate(modules):
                at = 1000 * step + 100 * number
                trace.module(module, at, 50)
                trace.op(f"aten::{module}", at + 1, 40, dims=[[8, 4]], types=["float"])
                trace.launch(KERNEL, at + 2, at + 10, 20)
        view = trace.view()
        return CompareInput(view, ref, view.selection())

    page = compare_page(side("linear", "relu"), side("linear", "gelu"))
    assert {(row.module, row.status, row.a_ns, row.b_ns) for row in page.modules} == {
        ("linear", "", 20_000, 20_000),
        ("relu", "removed", 20_000, None),
        ("gelu", "added", None, 20_000),
    }
    assert page.explanation[-1] == (
        "50.0 % of the base's GPU time has no counterpart. 50.0 % of the candidate's GPU time has no counterpart."
    )
    assert (page.step_difference_ns, page.noise) == (0, True)


def test_memory_is_that_of_the_allocator_where_the_hook_read_none(new_trace, ref: RunRef) -> None:
    def side(peak: int) -> CompareInput:
        trace = new_trace()
        trace.step(0, 0, 1000)
        trace.op("aten::relu", 10, 50)
        trace.launch(KERNEL, 12, 20, 5)
        trace.memory(15, peak, 1, allocated=peak, reserved=2 * peak, device=0)
        trace.memory(55, -peak, 1, allocated=0, reserved=2 * peak, device=0)
        view = trace.view()
        return CompareInput(view, ref, view.selection())

    metrics = {metric.key: metric for metric in compare_page(side(4096), side(1024)).metrics}
    assert (metrics["peak_memory"].a, metrics["peak_memory"].b, metrics["peak_memory"].gain) == (4096, 1024, 4)
    assert metrics["peak_memory_reserved"].a == 8192


def test_between_different_models_no_speedup_is_stated() -> None:
    page = compare_page(demo_run("vgg16/fp32"), demo_run("lenet/fp32"))
    assert page.different_models
    assert page.headline == (
        "The runs train different models, VGG16 and LeNet5. A step takes 113 ms and 2.07 ms: their ratio is no speedup."
    )
    assert not any("speedup" in text.lower() or "times as" in text for text in page.explanation)
    assert not any("model" in text for text in page.warnings)
    # For those who want it all the same.
    assert page.speedup == pytest.approx(page.base_ms / page.candidate_ms)


def test_kernels_from_before_the_recording_are_a_note_unless_they_are_most_of_it(
    vgg: ComparePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "15 % of the base's GPU time was launched before its recording began: it is in no op and no iteration."
    assert (note in vgg.notes, note in vgg.warnings) == (True, False)
    monkeypatch.setattr(compare_module, "ORPHAN_PERCENT", 10.0)
    again = compare_page(demo_run("vgg16/fp32"), demo_run("vgg16/amp-fp16"))
    assert (note in again.notes, note in again.warnings) == (False, True)


def test_an_interval_is_no_longer_than_its_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = [demo_run(f"vgg16/{mode}") for mode in ("fp32", "amp-fp16")]
    comparison = compare(*(side.view for side in sides), *(side.selection for side in sides))
    exact = dataclasses.replace(comparison, speedup_interval=(2.6001, 2.6049))
    assert explanation(exact)[0].startswith("The speedup is 2.60, to three digits (95 %")
    wide = dataclasses.replace(comparison, speedup_interval=(2.6, 2.7))
    assert explanation(wide)[0].startswith("The speedup lies between 2.60 and 2.70 (95 %")
