"""The rules on launching, idle GPUs, kernels and optimizers, each on made-up cases."""

from __future__ import annotations

from typing import Any

import pytest
from advice.helpers import finding_of, readings_of, status_of

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.idle_gpu import launch_bound
from tb_dlprof_plugin.advice.rules.optimizer import optimizer_not_fused, single_tensor_optimizer, zero_grad_to_zero
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
STEPS = 4


@pytest.fixture
def launches(new_trace) -> Any:
    """Makes the view of four steps, each with phases of (number, us of the CPU per launch, us of the GPU, options).

    Options: ``name`` of the ops, ``pause`` before the phase in us, ``annotation`` around it, ``wait`` for the GPU after
    it, more arguments of ``op`` and of ``kernel``.
    """

    def make(phases: list[tuple[int, float, float, dict[str, Any]]], steps: int = STEPS, **facts: Any) -> ProfileView:
        trace = new_trace()
        trace.gpu()
        clock, free = 0.0, 0.0
        for step in range(steps):
            begin = clock
            for number, cpu, gpu, options in phases:
                clock += options.get("pause", 0)
                start = clock
                for _ in range(number):
                    free = max(free, clock + cpu / 2 + 5)
                    trace.op(options.get("name", "aten::add"), clock + 1, cpu - 2, **options.get("op", {}))
                    trace.launch(ADD, clock + cpu / 2, free, gpu, **options.get("kernel", {}))
                    free, clock = free + gpu, clock + cpu
                if "annotation" in options:
                    trace.annotation(options["annotation"], start, clock - start)
                if options.get("wait"):
                    trace.runtime(clock, max(free - clock, 0) + 1, name="cudaStreamSynchronize")
                    clock = max(free, clock) + 1
            trace.step(step, begin, clock - begin)
        view: ProfileView = trace.view(facts=RunFacts(**facts))
        return view

    return make


# -- launch_bound


def test_launching_sets_the_pace_where_kernels_are_shorter_than_their_launches(launches) -> None:
    finding = finding_of(launches([(40, 50, 10, {})], unprofiled_step_ns=1_200_000), "launch_bound")
    readings = readings_of(finding)
    assert (readings["Launches per step"], readings["GPU time per launch"]) == (40, 10_000)
    assert readings["CPU time per launch"] == pytest.approx(50_000, rel=0.01)
    assert readings["GPU waits for launches, while recorded"] == pytest.approx(80, abs=2)
    saving = finding.saving
    assert saving is not None
    # THEN a step takes the GPU's 400 us; torch.compile alone takes a fifth off the CPU's 1200 us. The low end is
    # wider by 6.4 % of the step afterwards, which the replay may miss; the high end is what the GPU leaves.
    assert saving.expected_ns == pytest.approx(800_000, rel=0.03)
    assert saving.high_ns == pytest.approx(800_000, rel=0.001)
    assert saving.low_ns == pytest.approx(240_000 - 0.064 * 960_000, rel=0.05)
    assert "3.0 times as large" in finding.change


@pytest.mark.parametrize(
    ("phases", "facts", "why"),
    [
        ([(40, 10, 50, {})], {}, "sets the pace of 0 of 4"),
        ([(40, 50, 40, {})], {"unprofiled_step_ns": 1_650_000}, "without the profiler it is faster"),
        ([(40, 50, 10, {"pause": 3000})], {}, "launching is only"),
    ],
)
def test_launch_bound_is_silent_where_something_else_sets_the_pace(launches, phases, facts, why: str) -> None:
    status = status_of(launches(phases, **facts), "launch_bound")
    assert (status.outcome, why in status.why) == ("silent", True), status.why


# -- low_utilization_stretch


def test_a_stretch_of_small_kernels_after_a_wait_stands_out(launches) -> None:
    phases = [(10, 20, 400, {"name": "aten::mm", "wait": True}), (50, 40, 4, {"name": "aten::mul_"})]
    view = launches(phases, unprofiled_step_ns=5_500_000)
    finding = finding_of(view, "low_utilization_stretch")
    readings = readings_of(finding)
    assert readings["GPU utilization in the stretch"] == pytest.approx(15, abs=6)
    assert readings["GPU utilization in the rest"] == pytest.approx(95, abs=6)
    assert readings["Launches in it per step"] == pytest.approx(48, abs=4)
    assert finding.evidence[0].label.startswith("mul_: ")
    # THEN launching in general has no finding of its own
    assert status_of(view, "launch_bound").outcome == "silent"


def test_no_stretch_stands_out_where_all_of_the_step_is_badly_used(launches) -> None:
    assert status_of(launches([(60, 50, 10, {})]), "low_utilization_stretch").outcome == "silent"


# -- gpu_gaps


def test_a_pause_in_each_step_is_a_gap_with_its_share_and_what_the_cpu_does(launches) -> None:
    phases = [(20, 20, 100, {"name": "aten::mm", "pause": 5000})]
    finding = finding_of(launches(phases, unprofiled_step_ns=5_400_000), "gpu_gaps")
    readings = readings_of(finding)
    assert readings["Iterations with such a gap"] == STEPS
    # 5 ms in the first iteration; later ones begin with 1.6 ms of the kernels before.
    assert readings["GPU idle in them per step"] == pytest.approx((5_000_000 + 3 * 3_400_000) / 4, rel=0.02)
    assert "runs Python code outside of PyTorch, before mm is launched" in finding.seen
    saving = finding.saving
    assert saving is not None
    # THEN without the pause the GPU's 2 ms are the step; with half of it it is 2.9 ms
    assert saving.expected_ns == pytest.approx(3_400_000, rel=0.05)
    assert saving.high_ns == pytest.approx(3_400_000 + 0.064 * 2_000_000, rel=0.05)
    assert saving.low_ns == pytest.approx(2_500_000 - 0.064 * 2_900_000, rel=0.05)


def test_a_gap_in_one_iteration_of_four_is_none_of_each_step(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(STEPS):
        at = 10_000 * step
        late = 6000 if step == 1 else 0
        trace.step(step, at, 10_000)
        trace.op("aten::mm", at + late, 100)
        trace.launch(ADD, at + late + 50, at + late + 100, 9000 - late)
    status = status_of(trace.view(), "gpu_gaps")
    assert (status.outcome, "only 1 of 4 iterations" in status.why) == ("silent", True), status.why


def test_gaps_of_loading_and_of_launching_have_rules_of_their_own(new_trace, launches) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(STEPS):
        at = 10_000 * step
        trace.step(step, at, 10_000)
        trace.loader(at, 6000)
        trace.op("aten::mm", at + 6000, 100)
        trace.launch(ADD, at + 6050, at + 6100, 3000)
    assert status_of(trace.view(), "gpu_gaps").outcome == "silent"
    assert status_of(launches([(5, 900, 10, {})]), "gpu_gaps").outcome == "silent"


# -- gpu_underutilized


def test_utilization_leaves_the_price_to_the_rules_that_name_a_cause(launches) -> None:
    finding = finding_of(launches([(40, 50, 10, {})], unprofiled_step_ns=1_200_000), "gpu_underutilized")
    assert finding.saving is None
    assert "The CPU's launching sets the pace" in finding.saving_unknown_because
    assert finding.severity == "low"


def test_utilization_has_a_price_where_short_pauses_are_the_cause(launches) -> None:
    """Twelve pauses of 1.5 ms, none a tenth of the step, and 0.8 ms of kernels after each."""
    phases = [(4, 20, 200, {"pause": 2000})] * 12
    view = launches(phases, unprofiled_step_ns=25_000_000)
    assert status_of(view, "gpu_gaps").outcome == "silent"
    finding = finding_of(view, "gpu_underutilized")
    assert readings_of(finding)["GPU utilization"] == pytest.approx(38, abs=2)
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(25_000_000 - 9_600_000, rel=0.1)


def test_the_profiler_alone_makes_no_gpu_underutilized(launches) -> None:
    status = status_of(launches([(40, 50, 20, {})], unprofiled_step_ns=1_000_000), "gpu_underutilized")
    assert (status.outcome, "80 % of the step" in status.why) == ("silent", True), status.why


# -- Optimizers

MATRIX, VECTOR = [512, 512], [512]
_ADAMW = (
    ("aten::_foreach_mul_", 1), ("aten::_foreach_lerp_", 2), ("aten::_foreach_mul_", 1), ("aten::_foreach_addcmul_", 3),
    ("aten::_foreach_sqrt", 1), ("aten::_foreach_div_", 1), ("aten::_foreach_add_", 1), ("aten::_foreach_addcdiv_", 3),
)  # fmt: skip
"""Ops of AdamW's step over lists, each with the number of lists that it takes."""


@pytest.fixture
def optimizing(new_trace) -> Any:
    """Makes the view of four steps of 5 ms of kernels and an optimizer's step: ops as (name, inputs, types, us)."""

    def make(ops: list[tuple[str, Any, Any, float]], name: str = "AdamW", cpu: float = 20, **facts: Any) -> ProfileView:
        trace = new_trace()
        trace.gpu()
        clock, free = 0.0, 0.0
        for step in range(STEPS):
            begin = clock
            for _ in range(5):
                free = max(free, clock + 8)
                trace.op("aten::mm", clock, 20)
                trace.launch(ADD, clock + 5, free, 1000)
                free, clock = free + 1000, clock + 20
            start = clock
            for op, dims, types, microseconds in ops:
                free = max(free, clock + 8)
                trace.op(op, clock + 1, cpu - 2, dims=dims, types=types)
                trace.launch(ADD, clock + 3, free, microseconds)
                free, clock = free + microseconds, clock + cpu
            trace.annotation(f"Optimizer.step#{name}.step", start, clock - start)
            trace.runtime(clock, max(free - clock, 0) + 1, name="cudaStreamSynchronize")
            clock = max(free, clock) + 1
            trace.step(step, begin, clock - begin)
        view: ProfileView = trace.view(facts=RunFacts(**facts))
        return view

    return make


def _over_lists(
    ops: Any, tensors: Any = (MATRIX, VECTOR), microseconds: float = 100
) -> list[tuple[str, Any, Any, float]]:
    """Ops over lists: 100 us for each pass over the parameters."""
    return [
        (name, [list(tensors)] * lists + [[]], ["TensorList"] * lists + ["Scalar"], microseconds * (lists + 1))
        for name, lists in ops
    ]


def test_adamw_over_lists_makes_21_passes_where_a_fused_step_makes_7(optimizing) -> None:
    finding = finding_of(optimizing(_over_lists(_ADAMW)), "optimizer_not_fused")
    readings = readings_of(finding)
    assert (readings["Passes over the parameters"], readings["Optimizer kernels per step"]) == (21, 2_100_000)
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(1_400_000, rel=0.03)
    assert "torch.optim.AdamW(model.parameters(), ..., fused=True)" in finding.code


@pytest.mark.parametrize(
    ("ops", "optimizer", "outcome", "why"),
    [
        (_over_lists([("aten::_foreach_add_", 2)]), "SGD", "silent", "moves 3 elements per parameter"),
        (_over_lists(_ADAMW), "RMSprop", "silent", "RMSprop has no fused version"),
        (_over_lists(_ADAMW, microseconds=4), "AdamW", "silent", "fused it should save"),
        ([("aten::_fused_adamw_", [[MATRIX]], ["TensorList"], 900)], "AdamW", "silent", "does not go over lists"),
        ([], "AdamW", "not_applicable", "No kernel"),
    ],
)
def test_optimizers_that_would_gain_nothing_are_left_alone(optimizing, ops, optimizer, outcome: str, why: str) -> None:
    status = status_of(optimizing(ops, optimizer), "optimizer_not_fused")
    assert (status.outcome, why in status.why) == (outcome, True), status.why


def test_passes_are_known_where_the_shapes_of_long_lists_are_not(optimizing) -> None:
    """SGD with momentum reads or writes 8 times over lists, of which Kineto tells no shapes, and 5 times fused."""
    ops = [
        (name, [[]] * (lists + 1), ["TensorList"] * lists + ["Scalar"], 200.0 * lists)
        for name, lists in (("aten::_foreach_mul_", 1), ("aten::_foreach_add_", 2), ("aten::_foreach_add_", 2))
    ]
    assert readings_of(finding_of(optimizing(ops, "SGD"), "optimizer_not_fused"))["Passes over the parameters"] == 8


def _one_by_one(parameters: int, microseconds: float) -> list[tuple[str, Any, Any, float]]:
    return [
        (name, [VECTOR] * inputs, ["float"] * inputs, microseconds)
        for _ in range(parameters)
        for name, inputs in (("aten::lerp_", 2), ("aten::addcmul_", 3), ("aten::addcdiv_", 3))
    ]


def test_an_optimizer_that_steps_parameter_by_parameter_is_priced_by_the_cpu_time_that_goes(optimizing) -> None:
    view = optimizing(_one_by_one(100, 2), "Adam", cpu=40, unprofiled_step_ns=12_000_000)
    finding = finding_of(view, "single_tensor_optimizer")
    readings = readings_of(finding)
    assert (readings["Kernels on one tensor each per step"], readings["CPU time of the optimizer's step"]) == (
        300,
        12e6,
    )
    saving = finding.saving
    assert saving is not None
    # THEN the step cannot get shorter than the other kernels' 5 ms
    assert saving.low_ns < saving.expected_ns < saving.high_ns <= 7_000_000 + 0.064 * 5_000_000
    assert saving.expected_ns == pytest.approx(6_900_000, rel=0.02)
    assert "fused=True" in finding.code
    assert status_of(view, "optimizer_not_fused").outcome == "silent"


def test_ops_over_lists_are_advised_where_there_is_no_fused_version(optimizing) -> None:
    finding = finding_of(optimizing(_one_by_one(100, 2), "NAdam", cpu=40), "single_tensor_optimizer")
    assert "foreach=True" in finding.code


def test_few_kernels_or_hidden_ones_are_no_single_tensor_optimizer(optimizing) -> None:
    few = status_of(optimizing(_one_by_one(5, 2), "Adam"), "single_tensor_optimizer")
    assert "15 of 15 kernels" in few.why
    hidden = status_of(optimizing(_one_by_one(10, 100), "NAdam", cpu=10), "single_tensor_optimizer")
    assert (hidden.outcome, "% shorter without them" in hidden.why) == ("silent", True), hidden.why


# -- zero_grad


@pytest.fixture
def zeroing(new_trace) -> Any:
    """Makes the view of four steps: ``zero_grad`` with a kernel of 300 us, ``passes`` times 2 ms of kernels and the
    accumulation of two gradients at 150 us each; ``added`` leaves the latter's kernels out."""

    def make(passes: int = 1, zeroed: bool = True, added: bool = True) -> ProfileView:
        trace = new_trace()
        trace.gpu()
        free = 0.0
        for step in range(STEPS):
            at = free + 10
            clock, free = at + 40.0, at + 20.0
            trace.annotation("Optimizer.zero_grad#SGD.zero_grad", at, 30)
            if zeroed:
                trace.op("aten::_foreach_zero_", at + 5, 20, dims=[[MATRIX, VECTOR]], types=["TensorList"])
                trace.launch(ADD, at + 8, free, 300)
                free += 300
            for _ in range(passes):
                trace.op("aten::mm", clock, 20)
                trace.launch(ADD, clock + 5, free, 2000)
                free, clock = free + 2000, clock + 30
                for shape in (MATRIX, VECTOR):
                    trace.backward("torch::autograd::AccumulateGrad", clock, 20, step)
                    trace.op("torch::autograd::AccumulateGrad", clock + 1, 18, tid=2, dims=[shape], types=["float"])
                    if added:
                        trace.op("aten::add_", clock + 2, 16, tid=2, dims=[shape, shape, []])
                        trace.launch(ADD, clock + 4, free, 150, tid=2)
                        free += 150
                    clock += 30
            trace.runtime(clock, free - clock + 1, name="cudaStreamSynchronize")
            trace.step(step, at, free + 5 - at)
        view: ProfileView = trace.view()
        return view

    return make


def test_zeroed_gradients_cost_the_filling_and_the_adding(zeroing) -> None:
    finding = finding_of(zeroing(), "zero_grad_to_zero")
    readings = readings_of(finding)
    assert (readings["Filling per step"], readings["Adding per step"]) == (300_000, 300_000)
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(600_000, rel=0.1)
    # THEN half of the adding is certain, less the 2 % of the step by which steps of one run vary
    assert 350_000 < finding.saving.low_ns < 450_000
    assert "set_to_none=True" in finding.code


def test_of_several_backward_passes_one_adds_to_nothing(zeroing) -> None:
    finding = finding_of(zeroing(passes=3), "zero_grad_to_zero")
    assert readings_of(finding)["Adding per step"] == 900_000
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(600_000, rel=0.1)


@pytest.mark.parametrize(
    ("options", "why"),
    [({"zeroed": False, "passes": 3}, "No kernel fills"), ({"added": False}, "no kernel adds to them")],
)
def test_accumulated_or_unused_gradients_are_no_fault(zeroing, options, why: str) -> None:
    assert why in status_of(zeroing(**options), "zero_grad_to_zero").why


# -- for_loop_indexing


@pytest.mark.parametrize(("turns", "outcome"), [(15, "silent"), (40, "fired")])
def test_a_loop_over_rows_is_told_by_its_turns(new_trace, turns: int, outcome: str) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(STEPS):
        at = 10_000 * step
        clock = at + 0.0
        for _ in range(turns):
            trace.op("aten::select", clock, 10, dims=[[64, 512], [], []])
            trace.op("aten::mul", clock + 15, 30, dims=[[512], []])
            trace.launch(ADD, clock + 20, clock + 30, 2)
            trace.op("aten::copy_", clock + 50, 30, dims=[[512], [512], []])
            trace.launch(ADD, clock + 60, clock + 70, 2)
            clock += 100
        trace.op("aten::mm", clock, 20)
        trace.launch(ADD, clock + 10, clock + 20, 1000)
        trace.step(step, at, clock + 1100 - at)
        trace.runtime(clock + 30, 1000, name="cudaStreamSynchronize")
    view = trace.view()
    assert status_of(view, "for_loop_indexing").outcome == outcome
    if outcome == "fired":
        finding = finding_of(view, "for_loop_indexing")
        readings = readings_of(finding)
        assert (readings["Turns of the longest loop"], readings["Launches in them per step"]) == (40, 80)
        assert "select, mul, copy_" in finding.seen
        assert finding.saving is not None
        assert finding.saving.high_ns == pytest.approx(4_000_000 * 0.81, rel=0.35)


def test_repeated_ops_without_an_indexing_op_are_no_loop_over_rows(launches) -> None:
    assert status_of(launches([(60, 50, 5, {})]), "for_loop_indexing").outcome == "silent"


# -- allocation_in_steps


@pytest.mark.parametrize("steps_with", [1, STEPS])
def test_allocating_in_each_step_is_priced_by_the_gpus_idle_time(new_trace, steps_with: int) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(STEPS):
        at = 10_000 * step
        trace.step(step, at, 10_000)
        if step < steps_with:
            trace.op("aten::empty", at, 2100)
            trace.runtime(at + 50, 1000, name="cudaMalloc")
            trace.runtime(at + 1060, 1000, name="cudaMalloc")
            trace.runtime(at + 8000, 1500, name="cudaFree")
        trace.op("aten::mm", at + 2200, 20)
        trace.launch(ADD, at + 2210, at + 2220, 5700)
    view = trace.view()
    if steps_with == 1:
        assert "in 1 of 4 steps" in status_of(view, "allocation_in_steps").why
        return
    finding = finding_of(view, "allocation_in_steps")
    readings = readings_of(finding)
    assert (readings["Calls that allocate, per step"], readings["Calls that free, per step"]) == (2, 1)
    assert readings["Time in them per step"] == 3_500_000
    assert finding.saving is not None
    # THEN 70 % of that is certain, all of the 4.3 ms in which the GPU idles possible
    assert finding.saving.low_ns == pytest.approx(0.7 * 3_420_000, rel=0.1)
    assert finding.saving.high_ns == pytest.approx(4_300_000, rel=0.05)
    assert "empty_cache" in finding.change


# -- Kernels


@pytest.fixture
def filled(new_trace) -> Any:
    """Makes the view of four steps: kernels as (op, blocks, us, options) one after another on 132 multiprocessors.

    Without blocks an op launches nothing. Options: ``module``, ``stream``, ``beside`` for a kernel that begins with the
    one before, ``dims`` and ``types``.
    """

    def make(kernels: list[tuple[str, int, float, dict[str, Any]]], **facts: Any) -> ProfileView:
        trace = new_trace()
        trace.gpu()
        clock = 0.0
        for step in range(STEPS):
            begin = clock
            at, free = clock, clock + 20
            start = free
            for op, blocks, microseconds, options in kernels:
                if options.get("module"):
                    trace.module(options["module"], at, 10)
                trace.op(op, at + 1, 8, dims=options.get("dims"), types=options.get("types"))
                if not blocks:
                    at += 10
                    continue
                start = start if options.get("beside") else free
                trace.launch(
                    ADD, at + 2, start, microseconds, stream=options.get("stream", 7), grid=[blocks, 1, 1],
                    block=[1024, 1, 1], registers_per_thread=40, shared_memory=1024,
                )  # fmt: skip
                free, at = max(free, start + microseconds), at + 10
            clock = max(free, at) + 10
            trace.runtime(at + 1, clock - at - 2, name="cudaStreamSynchronize")
            trace.step(step, begin, clock - begin)
        view: ProfileView = trace.view(facts=RunFacts(**facts))
        return view

    return make


ROW = {"dims": [[4096]], "types": ["float"]}
ROWS = {"dims": [[16, 4096]], "types": ["float"]}
TAKEN_APART = ("aten::unbind", 0, 0, ROWS)
SQUARE = {"dims": [[8, 64], [64, 64], [64]], "types": ["float"] * 3}
WIDER = {"dims": [[8, 64], [128, 64], [128]], "types": ["float"] * 3}
PICKED = [("aten::select", 0, 0, ROWS), ("aten::softmax", 1, 200, ROW)]
RECURRENT = [("aten::select", 0, 0, ROWS), ("aten::add", 1, 200, {"dims": [[4096], [4096]], "types": ["float"] * 2})]


@pytest.mark.parametrize(
    ("calls", "independent"),
    [
        ([TAKEN_APART, *[("aten::softmax", 1, 200, ROW)] * 16], True),
        (PICKED * 16, True),
        ([("aten::linear", 1, 200, WIDER)] * 16, True),  # none can take what another returns
        ([("aten::softmax", 1, 200, ROW)] * 16, False),
        ([("aten::linear", 1, 200, SQUARE)] * 16, False),  # the layers of a chain
        (RECURRENT * 16, False),  # two tensors: one may come from the step before
        ([TAKEN_APART, *[("aten::softmax", 1, 200, ROW), ("aten::mul", 1, 20, ROW)] * 16], False),
        ([("aten::unbind", 0, 0, ROW), *[("aten::softmax", 1, 200, ROW)] * 16], False),  # of too small a tensor
        ([("aten::softmax", 1, 200, {})] * 16, False),  # shapes not recorded
    ],
)
def test_only_calls_that_cannot_feed_each_other_are_to_be_made_one(filled, calls, independent: bool) -> None:
    view = filled([*calls, ("aten::mm", 512, 2000, {})])
    finding = finding_of(view, "small_kernels")
    assert ("in calls that do not depend on each other" in finding.change) == independent, finding.change
    assert (readings_of(finding)["Of it in kernels of calls that do not depend on each other"] > 0) == independent
    assert bool(finding.code) == independent


def test_kernels_of_one_block_that_could_run_as_one_are_small(filled) -> None:
    view = filled([TAKEN_APART, *[("aten::softmax", 1, 200, ROW)] * 16, ("aten::mm", 512, 2000, {})])
    finding = finding_of(view, "small_kernels")
    readings = readings_of(finding)
    assert readings["Time in such kernels per step"] == 3_200_000
    assert readings["Multiprocessors used in it"] == pytest.approx(100 / 132)
    assert "1 block of 1024 threads; registers let 1 of them onto a multiprocessor" in finding.seen
    assert "runs 16 times" in finding.change
    saving = finding.saving
    assert saving is not None
    # THEN one kernel of 16 blocks takes one and a half times as long as one of them
    assert saving.expected_ns == pytest.approx(3_200_000 * (1 - 1.5 / 16), rel=0.03)
    assert saving.low_ns == pytest.approx(3_200_000 * (1 - 4 / 16), rel=0.1)


@pytest.mark.parametrize(
    ("kernels", "why"),
    [
        ([("aten::softmax", 132, 1000, {})], "take 0.0 % of the kernels' time"),
        ([("aten::softmax", 1, 4, {})] * 50, "take 0.0 % of the kernels' time"),
        ([("aten::softmax", 60, 1000, {}), ("aten::mm", 512, 3500, {})], "should save only"),
        ([("aten::mm", 8, 1000, {}), ("aten::mm", 8, 1000, {"stream": 9, "beside": True})], "take 0.0 %"),
    ],
)
def test_full_short_or_shared_kernels_are_not_small(filled, kernels, why: str) -> None:
    status = status_of(filled(kernels), "small_kernels")
    assert (status.outcome, why in status.why) == ("silent", True), status.why


BRANCH = {"dims": [[8, 4096], [16, 4096]], "types": ["float", "float"]}


def test_branches_that_cannot_feed_each_other_could_run_side_by_side(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(STEPS):
        at = 10_000 * step
        trace.step(step, at, 9000)
        trace.module("", at, 100)
        for number in range(4):
            trace.module(f"heads.{number}", at + 20 * number + 1, 18)
            trace.op("aten::linear", at + 20 * number + 2, 16, **BRANCH)
            trace.launch(ADD, at + 20 * number + 5, at + 100 + 2000 * number, 2000, grid=[8, 1, 1], block=[256, 1, 1])
        trace.runtime(at + 110, 8000, name="cudaStreamSynchronize")
    finding = finding_of(trace.view(), "kernel_concurrency")
    assert "heads.0, heads.1, heads.2 and 1 more" in finding.seen
    assert readings_of(finding)["How many fit side by side"] == 4
    assert finding.saving is not None
    assert finding.saving.expected_ns == pytest.approx(8_000_000 * (1 - 1.2 / 4), rel=0.05)


@pytest.mark.parametrize(
    "change",
    [
        {"dims": [[8, 16], [16, 16]]},  # what one returns is what the next could take
        {"op": "aten::cumsum"},  # the shape of the result is not known
        {"between": True},  # an op between could turn the one into the other
    ],
)
def test_branches_that_might_feed_each_other_are_left_alone(new_trace, change: dict[str, Any]) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(STEPS):
        at = 10_000 * step
        trace.step(step, at, 9000)
        trace.module("", at, 200)
        for number in range(4):
            begin = at + 40 * number + 1
            trace.module(f"heads.{number}", begin, 18)
            trace.op(
                change.get("op", "aten::linear"),
                begin + 1,
                16,
                dims=change.get("dims", BRANCH["dims"]),
                types=["float"],
            )
            trace.launch(ADD, begin + 3, at + 100 + 2000 * number, 1999, grid=[8, 1, 1], block=[256, 1, 1])
            if change.get("between"):
                trace.op("aten::mul", begin + 20, 10)
                trace.launch(ADD, begin + 22, at + 2099 + 2000 * number, 1, grid=[8, 1, 1], block=[256, 1, 1])
        trace.runtime(at + 210, 8000, name="cudaStreamSynchronize")
    status = status_of(trace.view(), "kernel_concurrency")
    assert (status.outcome, "cannot be shown" in status.why) == ("silent", True), status.why


@pytest.mark.parametrize(("beside", "outcome"), [(False, "fired"), (True, "silent")])
def test_streams_that_never_overlap_are_told_from_those_that_do(filled, beside: bool, outcome: str) -> None:
    kernels = [("aten::mm", 8, 1000, {}), ("aten::mm", 8, 1000, {"stream": 9, "beside": beside})] * 2
    status = status_of(filled(kernels), "kernel_concurrency")
    assert status.outcome == outcome, status.why


def test_streams_that_wait_for_each_other_are_not_independent(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(STEPS):
        at = 5000.0 * step
        trace.step(step, at, 5000)
        for number in range(4):
            trace.op("aten::mm", at + 20 * number, 18)
            trace.runtime(at + 20 * number + 1, 1, name="cudaStreamWaitEvent")
            trace.launch(
                ADD, at + 20 * number + 3, at + 100 + 1000 * number, 1000, stream=7 + number % 2, grid=[8, 1, 1]
            )
        trace.runtime(at + 110, 4000, name="cudaStreamSynchronize")
    status = status_of(trace.view(), "kernel_concurrency")
    assert (status.outcome, "wait for each other by events" in status.why) == ("silent", True), status.why


FULL = [4096, 4096]


def test_a_chain_of_pointwise_ops_is_priced_by_the_memory_it_need_not_move(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(STEPS):
        at, free = 2250.0 * step, 2250.0 * step + 30
        trace.step(step, at, 2250)
        for number, (op, kernel, inputs, microseconds) in enumerate(
            (
                ("aten::mm", "ampere_sgemm_128x64_nn", 2, 1000),
                ("aten::mul", ADD, 1, 40),
                ("aten::add", ADD, 2, 60),
                ("aten::tanh", ADD, 1, 40),
                ("aten::mul", ADD, 2, 60),
                ("aten::mm", "ampere_sgemm_128x64_nn", 2, 1000),
            )
        ):
            trace.op(op, at + 20 * number, 18, dims=[FULL] * inputs, types=["float"] * inputs)
            trace.launch(kernel, at + 20 * number + 2, free, microseconds)
            free += microseconds
        trace.runtime(at + 200, free - at - 200, name="cudaStreamSynchronize")
    finding = finding_of(trace.view(), "no_fusion")
    readings = readings_of(finding)
    assert (readings["Kernels in chains per step"], readings["Their time per step"]) == (4, 200_000)
    tensor = 4096 * 4096 * 4
    assert readings["Bytes moved by them per step"] == 10 * tensor
    assert "mul, add, tanh, mul" in finding.seen
    saving = finding.saving
    assert saving is not None
    # THEN of ten tensors two remain at best, one further input is expected, at 0.8 of 4.8 TB/s
    expected = 200_000 - 3 * tensor / 3.84e12 * 1e9
    assert saving.expected_ns == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    "ops",
    [
        ["aten::mul", "aten::add"],
        ["aten::mul", "aten::copy_", "aten::copy_", "aten::add"],
        ["aten::mul", "aten::mm", "aten::add", "aten::mm", "aten::mul"],
    ],
)
def test_short_chains_casts_and_what_products_divide_are_none(new_trace, ops: list[str]) -> None:
    trace = new_trace()
    trace.gpu()
    for step in range(STEPS):
        at = 5000.0 * step
        trace.step(step, at, 4000)
        for number, op in enumerate(ops):
            trace.op(op, at + 20 * number, 18, dims=[FULL, FULL], types=["float", "float"])
            kernel = "ampere_sgemm_128x64_nn" if op == "aten::mm" else ADD
            trace.launch(kernel, at + 20 * number + 2, at + 100 + 500 * number, 500)
    assert "No 3 pointwise kernels" in status_of(trace.view(), "no_fusion").why


# -- How a change shows in a later run


def test_a_changed_optimizer_is_recognised(optimizing) -> None:
    one_by_one = optimizing(_one_by_one(100, 2), "Adam")
    lists = optimizing(_over_lists(_ADAMW))
    fused = optimizing([("aten::_fused_adamw_", [[MATRIX]], ["TensorList"], 900)])
    assert single_tensor_optimizer.was_applied(one_by_one, lists) == "optimizer over lists of parameters"
    assert single_tensor_optimizer.was_applied(one_by_one, fused) == "fused optimizer"
    assert single_tensor_optimizer.was_applied(lists, fused) == ""
    assert optimizer_not_fused.was_applied(lists, fused) == "fused optimizer"
    assert optimizer_not_fused.was_applied(fused, lists) == ""


def test_gradients_set_to_none_are_recognised(zeroing) -> None:
    assert zero_grad_to_zero.was_applied(zeroing(), zeroing(zeroed=False, added=False)) == "gradients set to None"
    assert zero_grad_to_zero.was_applied(zeroing(), zeroing()) == ""


def test_what_makes_launching_cheaper_is_recognised(new_trace, launches) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.runtime(10, 20, 5, name="cudaGraphLaunch")
    trace.kernel(ADD, 40, 500, 5)
    graphs = trace.view(facts=RunFacts(batch_size=8, compiled=False))
    eager = launches([(10, 50, 10, {})], batch_size=4, compiled=False)
    assert launch_bound.was_applied(eager, graphs) == "batch size 4 to 8, CUDA graphs"
    assert launch_bound.was_applied(graphs, graphs) == ""


# -- All of them


RULES = (
    "launch_bound", "low_utilization_stretch", "gpu_gaps", "gpu_underutilized", "optimizer_not_fused",
    "single_tensor_optimizer", "zero_grad_to_zero", "for_loop_indexing", "allocation_in_steps", "small_kernels",
    "kernel_concurrency", "no_fusion",
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_without_a_gpu_they_do_not_apply(cpu_view: ProfileView, rule: str) -> None:
    assert status_of(cpu_view, rule).outcome == "not_applicable"


def test_one_iteration_alone_can_be_looked_at(launches) -> None:
    view = launches([(40, 50, 10, {})], unprofiled_step_ns=2_000_000)
    context = RuleContext(view, view.selection(1, 1))
    assert context.steps.average_ns == pytest.approx(2_000_000, rel=0.02)
    outcomes = {status.rule: status.outcome for status in advise(view, view.selection(1, 1)).rules}
    assert outcomes["launch_bound"] == "fired"
    assert "failed" not in outcomes.values()
