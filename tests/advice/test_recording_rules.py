"""Rules about what was recorded and how several GPUs share the work: made-up cases with one fault each."""

from __future__ import annotations

from typing import Any

import pytest
from advice.helpers import finding_of, readings_of, status_of

from tb_dlprof_plugin.advice.step_detection import key_nodes
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView

# -- iterations unlike the others


@pytest.fixture
def steps(new_trace) -> Any:
    """Makes a CPU recording of steps of the given lengths (us); the ops of a step take its first half."""

    def make(*lengths: float, first: int = 10, extra: dict[int, str] | None = None, **options: Any) -> ProfileView:
        trace, at = new_trace(), 0.0
        for index, length in enumerate(lengths):
            trace.step(first + index, at, length)
            trace.op("aten::linear", at + 1, length / 2)
            if name := (extra or {}).get(index):
                trace.op(name, at + 1 + length / 2, length / 4)
            at += length
        view: ProfileView = trace.view(**options)
        return view

    return make


def test_a_slow_beginning_is_left_out_of_the_range(steps) -> None:
    finding = finding_of(steps(500, 180, 100, 102, 98, 101, 100, 99), "bad_iteration_range")
    assert "use steps 12 to 17" in finding.title
    assert "--first 2 --last 7" in finding.code
    assert "the first ones do what is done only once" in finding.change
    assert readings_of(finding) == {
        "Furthest from the median": pytest.approx(100 * (500 / 100.5 - 1)),
        "Iterations unlike the others": 2,
        "Mean over the selected iterations": 160_000,
        "Mean over the range to use": 100_000,
    }


def test_a_stray_step_is_shown_with_the_ops_that_only_it_has(steps) -> None:
    finding = finding_of(steps(100, 101, 100, 400, 99, 100, extra={3: "aten::argmax"}), "bad_iteration_range")
    assert "use steps 10 to 12" in finding.title
    assert [(row.label, row.value_ns) for row in finding.evidence] == [("Only there: argmax", 100_000)]


def test_steps_that_all_vary_have_no_stray_one(steps) -> None:
    assert status_of(steps(100, 140, 95, 130, 105, 145), "bad_iteration_range").outcome == "silent"
    assert status_of(steps(100, 102, 110, 98, 101), "bad_iteration_range").outcome == "silent"
    assert status_of(steps(100, 400), "bad_iteration_range").outcome == "not_applicable"


SLOW = (1_900e3, 2_100e3, 1_200e3, 800e3)


def test_the_steps_nearest_to_the_unprofiled_ones_are_kept_although_most_are_slow(steps) -> None:
    facts = RunFacts(unprofiled_before_ns=[90_000_000, 91_000_000, 89_000_000, 92_000_000])
    view = steps(*SLOW, 92e3, 93e3, *SLOW, facts=facts)
    finding = finding_of(view, "bad_iteration_range")
    assert finding.title == "8 of 10 iterations are unlike the others: use steps 14 to 15"
    assert "--first 4 --last 5" in finding.code
    assert "Without the profiler a step takes 90.67 ms, and the iterations nearest to that 92.50 ms" in finding.seen
    # Nothing else tells which are the usual ones.
    assert status_of(steps(*SLOW, 92e3, 93e3, *SLOW), "bad_iteration_range").outcome == "silent"


def test_steps_that_are_as_often_long_without_the_profiler_are_not_stray(steps) -> None:
    lengths = (100, 101, 100, 200, 100, 102, 100, 205)
    alike = RunFacts(unprofiled_before_ns=[90_000, 90_000, 90_000, 180_000] * 3)
    assert status_of(steps(*lengths, facts=alike), "bad_iteration_range").outcome == "silent"
    never = RunFacts(unprofiled_before_ns=[90_000] * 8)
    assert "2 of 8" in finding_of(steps(*lengths, facts=never), "bad_iteration_range").title


def test_what_the_profiler_adds_to_every_step_makes_none_of_them_stray(steps) -> None:
    facts = RunFacts(unprofiled_before_ns=[50_000] * 5)
    # The first one's beginning was not recorded.
    view = steps(55, 110, 112, 108, 111, 109, facts=facts)
    assert "use steps 11 to 15" in finding_of(view, "bad_iteration_range").title


def test_calls_that_are_made_once_explain_a_first_step(new_trace) -> None:
    trace = new_trace()
    for index, (at, length) in enumerate(((0, 400), (400, 100), (500, 100), (600, 100))):
        trace.step(index, at, length)
        trace.op("aten::linear", at + 1, length / 2)
    trace.runtime(20, 150, name="cudaMalloc")
    trace.runtime(180, 80, name="cuLibraryLoadData", cat="cuda_driver")
    trace.runtime(270, 9, name="cudaMallocAsync")
    view = trace.view()
    seen = "1 call to the driver for memory (0.15 ms) and 1 call to load code (0.08 ms)"
    assert seen in finding_of(view, "bad_iteration_range").seen
    window = finding_of(view, "profiling_window")
    assert seen in window.seen
    # The first step takes 300 us more than the later ones.
    assert readings_of(window)["Done only once"] == pytest.approx(100 * 300 / 700)


# -- no iterations


def _scoring(new_trace, batches: int, step_mark: bool = True) -> ProfileView:
    trace = new_trace()
    if step_mark:
        trace.step(0, 0, 100 * batches + 20)
    trace.op("aten::zeros", 1, 2)
    for index in range(batches):
        at = 10 + 100 * index
        trace.module("", at, 80)
        trace.op("aten::linear", at + 5, 20)
        trace.op("aten::relu", at + 30, 20)
        trace.op("aten::argmax", at + 85, 5)
    view: ProfileView = trace.view()
    return view


@pytest.mark.parametrize("step_mark", [True, False])
def test_a_block_that_never_steps_names_what_repeats_in_it(new_trace, step_mark: bool) -> None:
    view = _scoring(new_trace, 6, step_mark)
    finding = finding_of(view, "no_iterations")
    assert finding.title == "No iterations were found; the model repeats 6 times"
    assert readings_of(finding)["Time from one to the next"] == 100_000
    nodes = [(node.name, node.calls) for node in key_nodes(view, view.selection())]
    assert nodes == [("the model", 6), ('op "linear"', 6), ('op "relu"', 6), ('op "argmax"', 6)]
    assert status_of(view, "profiling_window").outcome == "not_applicable"


def test_one_marked_step_is_an_iteration(new_trace, steps) -> None:
    assert status_of(_scoring(new_trace, 2), "no_iterations").outcome == "silent"
    assert status_of(steps(100), "no_iterations").outcome == "silent"


def test_gradient_accumulation_in_one_step_is_an_iteration(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 700)
    for index in range(6):
        trace.module("", 100 * index, 80)
        trace.op("aten::linear", 100 * index + 5, 20)
    trace.optimizer(610, 50)
    assert status_of(trace.view(), "no_iterations").outcome == "silent"


def test_optimizer_steps_are_iterations(new_trace) -> None:
    trace = new_trace()
    for index in range(4):
        trace.op("aten::linear", 100 * index, 20)
        trace.optimizer(100 * index + 40, 20)
    status = status_of(trace.view(), "no_iterations")
    assert (status.outcome, status.why) == ("silent", "4 iterations were found by the optimizer's steps.")


# -- module names


def test_ops_without_modules_are_counted(new_trace, gpu_view: ProfileView) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    for index in range(4):
        trace.op("aten::linear", 10 * index, 8)
    trace.op("aten::relu", 50, 8)
    finding = finding_of(trace.view(), "missing_annotations")
    assert "The 5 ops of a step are in 2 rows" in finding.seen
    assert "linear stands for 4 calls, relu stands for 1 calls" in finding.seen
    assert "model=model" in finding.code
    assert status_of(gpu_view, "missing_annotations").outcome == "silent"


def test_a_compiled_or_replicated_model_has_no_modules_to_name(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::linear", 10, 8)
    for facts in (RunFacts(compiled=True), RunFacts(parallel_wrapper="DataParallel")):
        assert status_of(trace.view(facts=facts), "missing_annotations").outcome == "not_applicable"


# -- the window


@pytest.mark.parametrize(("lengths", "outcome"), [((100,), "fired"), ((100, 110), "fired"), ((100,) * 3, "silent")])
def test_two_iterations_are_too_few(steps, lengths, outcome: str) -> None:
    assert status_of(steps(*lengths), "profiling_window").outcome == outcome


def test_the_first_steps_are_no_fault_where_nothing_is_done_once(steps) -> None:
    assert status_of(steps(100, 100, 100, first=0), "profiling_window").outcome == "silent"


def test_a_recording_of_many_events_says_how_many_steps_are_enough(steps) -> None:
    import dataclasses

    view = steps(*(100,) * 40)
    view.profile = dataclasses.replace(
        view.profile, source=dataclasses.replace(view.profile.source, trace_events=6_000_000)
    )
    finding = finding_of(view, "profiling_window")
    assert "40 iterations of 150,000 events each were recorded; 6 are enough" in finding.seen
    assert "active=6" in finding.code


# -- the profiler's own time


def test_a_stretched_step_names_the_options_that_cost(steps) -> None:
    facts = RunFacts(unprofiled_step_ns=50_000, unprofiled_steps=12, with_stack=True, profile_memory=True)
    finding = finding_of(steps(100, 100, 900, 100, facts=facts), "profiler_overhead")
    assert readings_of(finding)["Recorded over unprofiled step"] == pytest.approx(2.0)
    assert "with_stack=False, profile_memory=False" in finding.code
    assert finding.severity == "medium"


def test_what_a_recording_usually_costs_is_no_finding(steps) -> None:
    for length, outcome in ((99, "silent"), (101, "fired")):
        view = steps(length, facts=RunFacts(unprofiled_step_ns=50_000, with_stack=False))
        assert status_of(view, "profiler_overhead").outcome == outcome
    assert status_of(steps(74), "profiler_overhead").outcome == "not_applicable"


# -- several ranks

DDP = {"parallel_wrapper": "DistributedDataParallel", "parameter_count": 1000, "parameter_dtypes": ["float32"]}
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "ampere_sgemm_128x64_nn"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"


@pytest.fixture
def rank(new_trace) -> Any:
    """Makes the view of one rank: three steps of 1000 us with ``work`` us of kernels, then ``exchanges`` collectives.

    Collectives follow each other, take ``own`` us each and end with the step; all but ``hidden`` us of the first lie
    behind the kernels.
    """

    def make(
        number: int,
        *,
        work: float,
        own: float = 100,
        exchanges: int = 1,
        hidden: float = 0,
        size: int = 1000,
        **facts: Any,
    ) -> ProfileView:
        trace = new_trace()
        trace.gpu(id=number)
        for index in range(3):
            at = 1000 * index
            trace.step(4 + index, at, 1000)
            trace.op("aten::linear", at + 1, 20)
            begin = at + 1000 - exchanges * own
            trace.launch(GEMM, at + 5, begin + hidden - work, work, device=number)
            trace.optimizer(at + 300, 20)
            trace.runtime(at + 330, 665, name="cudaStreamSynchronize")
            for exchange in range(exchanges):
                call = at + 100 + 10 * exchange
                trace.op("c10d::allreduce_", call, 8)
                trace.event(
                    "nccl:all_reduce", "user_annotation", call + 1, 6, Input_Dims=[[size]], Input_type=["float"]
                )
                trace.launch(ALL_REDUCE, call + 2, begin + exchange * own, own, device=number, stream=17)
        view: ProfileView = trace.view(rank=number, session="s", facts=RunFacts(rank=number, world_size=2, **facts))
        return view

    return make


def test_the_rank_with_most_work_is_named_and_what_even_shares_would_save(rank) -> None:
    ranks = [
        rank(0, work=900, own=50, unprofiled_step_ns=1_000_000),
        rank(1, work=300, own=650, unprofiled_step_ns=1_000_000),
    ]
    for view in ranks:
        finding = finding_of(view, "imbalanced_gpu", ranks)
        assert finding.title == "rank 1 has 33 % of the work of rank 0 and waits for it"
        assert "rank 0 0.00 ms, rank 1 0.60 ms a step" in finding.seen
        # A third of the step goes with even shares of 600 us, at the least 0.6 of that.
        assert finding.saving is not None
        assert finding.saving.expected_ns == 333_333
        assert finding.saving.low_ns == 200_000
        assert [(row.label, row.value_ns) for row in finding.evidence] == [
            ("linear, more on rank 0 than on rank 1", 600_000)
        ]


def test_a_rank_that_is_late_in_every_step_is_named_with_its_cause(rank) -> None:
    timed = {"unprofiled_step_ns": 1_000_000}
    ranks = [rank(0, work=900, own=50, **timed), rank(1, work=300, own=650, **timed)]
    for view in ranks:
        finding = finding_of(view, "straggler", ranks)
        assert finding.title == "Rank 0 delays the others"
        assert "The other ranks wait" in finding.seen
        assert finding.saving is not None
        assert 0.3e6 < finding.saving.expected_ns <= 0.65e6
    assert status_of(ranks[0], "straggler").outcome == "not_applicable"
    even = [rank(0, work=500), rank(1, work=500)]
    assert status_of(even[0], "straggler", even).outcome == "silent"


def test_equal_ranks_and_a_rank_alone_are_not_judged_unequal(rank) -> None:
    ranks = [rank(0, work=500), rank(1, work=410)]
    assert status_of(ranks[0], "imbalanced_gpu", ranks).outcome == "silent"
    assert status_of(ranks[0], "imbalanced_gpu").outcome == "not_applicable"


def test_waiting_for_another_rank_is_no_communication(rank) -> None:
    timed = {"unprofiled_step_ns": 1_000_000}
    ranks = [rank(0, work=900, own=50, **timed), rank(1, work=300, own=650, **timed)]
    alone = finding_of(ranks[1], "communication_bound")
    assert readings_of(alone)["Communication not hidden"] == 65.0
    assert alone.saving is not None
    assert alone.saving.low_ns == 0
    status = status_of(ranks[1], "communication_bound", ranks)
    assert (status.outcome, "0.05 ms (5.0 %) of that move data" in status.why) == ("silent", True)


def test_exchanging_in_every_accumulated_batch_is_told_from_the_bytes(rank) -> None:
    facts = DDP | {"unprofiled_step_ns": 900_000}
    ranks = [rank(i, work=400, own=100, exchanges=4, hidden=40, **facts) for i in range(2)]
    finding = finding_of(ranks[0], "communication_bound", ranks)
    assert finding.title == "Gradients are exchanged 4 times for each optimizer step"
    assert "no_sync" in finding.code
    assert readings_of(finding)["Given into collectives per step"] == 16_000
    # Three exchanges of 100 us, of which 40 us overlap with kernels: these count for 27 %.
    assert finding.saving is not None
    assert finding.saving.expected_ns == 260_000 + 10_800


def test_exchanging_once_is_advised_to_take_fewer_bytes(rank) -> None:
    facts = DDP | {"unprofiled_step_ns": 700_000}
    ranks = [rank(i, work=400, own=200, **facts) for i in range(2)]
    finding = finding_of(ranks[0], "communication_bound", ranks)
    assert "bf16_compress_hook" in finding.code
    assert finding.saving is not None
    # Of 200 us a fifth to a half; at best what the replay of both ranks saves without any exposed exchange.
    assert (finding.saving.low_ns, finding.saving.expected_ns) == (40_000, 100_000)
    assert 100_000 < finding.saving.high_ns <= 200_000


def test_gpus_that_exchange_through_the_cpu_should_use_nccl(gpu_view: ProfileView, training) -> None:
    view = training().view(facts=RunFacts(distributed_backend="gloo", world_size=2))
    assert 'init_process_group("nccl")' in finding_of(view, "communication_bound").code
    assert status_of(gpu_view, "communication_bound").outcome == "not_applicable"


# -- DataParallel


def test_what_data_parallel_adds_is_its_forward_pass_outside_of_the_replicas(new_trace) -> None:
    trace = new_trace()
    trace.gpu(id=0)
    trace.gpu(id=1)
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.annotation("DataParallel.forward", at, 600)
        trace.op("Broadcast", at + 10, 200)
        for gpu, thread in ((0, 31), (1, 32)):
            trace.launch(GEMM, at + 400 + 20 * gpu, at + 500, 100, tid=thread, device=gpu)
            trace.launch(GEMM, at + 470 + 20 * gpu, at + 600, 50, tid=thread, device=gpu)
        trace.backward("BroadcastBackward", at + 700, 100, 5)
    view = trace.view()
    finding = finding_of(view, "data_parallel")
    # The replicas launch from 400 to 492 us: 92 of the forward pass's 600 us.
    assert readings_of(finding)["DataParallel's own work per step"] == 508_000 + 100_000
    assert "--nproc-per-node=2" in finding.code
    assert status_of(view, "imbalanced_gpu").outcome == "silent"


def test_data_parallel_over_one_gpu_is_no_finding(training) -> None:
    view = training().view(facts=RunFacts(parallel_wrapper="DataParallel"))
    assert "only calls the model" in status_of(view, "data_parallel").why


# -- batch size


@pytest.mark.parametrize(("busy", "outcome"), [(200, "fired"), (950, "silent")])
def test_a_larger_batch_is_advised_where_the_gpu_has_time_for_it(new_trace, busy: float, outcome: str) -> None:
    trace = new_trace()
    trace.gpu()
    for index in range(3):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.op("aten::linear", at + 1, 900)
        trace.launch(GEMM, at + 5, at + 20, busy, grid=[264, 1, 1])
    facts = {"batch_size": 8, "unprofiled_step_ns": 1_000_000, "steady_memory_bytes": 10**9}
    view = trace.view(facts=RunFacts(peak_memory_allocated_bytes=3 * 10**9, **facts))
    assert status_of(view, "batch_size").outcome == outcome
    if outcome == "fired":
        finding = finding_of(view, "batch_size")
        # Five times the kernels fill the step: four times the batch costs nothing, eight times gains a quarter more.
        assert finding.title == "A batch of 64 instead of 8 would train 5.0 times as many samples a second"
        assert readings_of(finding)["Memory per sample"] == 250_000_000
        assert readings_of(finding)["Samples that would fit"] == 530


def test_a_batch_that_fills_the_memory_cannot_grow(training) -> None:
    facts = RunFacts(batch_size=8, peak_memory_allocated_bytes=100 * 10**9)
    assert "would not fit" in status_of(training().view(facts=facts), "batch_size").why
    assert status_of(training().view(), "batch_size").outcome == "not_applicable"


# -- debugging aids


def _checked(new_trace, checked: int, **facts: Any) -> ProfileView:
    """Four backward nodes, ``checked`` of which check their gradient for NaN."""
    trace = new_trace()
    trace.gpu()
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.module("fc", at, 300)
        trace.op("aten::relu", at + 10, 200)
        trace.launch(GEMM, at + 20, at + 40, 50)
        for node in range(4):
            begin = at + 400 + 100 * node
            trace.backward("ReluBackward0", begin, 90, node)
            if node < checked:
                trace.op("aten::isnan", begin + 10, 20, tid=2, seq=node, fwd=1)
                trace.op("aten::item", begin + 40, 40, tid=2, seq=node, fwd=1)
                trace.runtime(begin + 45, 30, name="cudaStreamSynchronize", tid=2)
    view: ProfileView = trace.view(facts=RunFacts(unprofiled_step_ns=900_000, **facts))
    return view


@pytest.mark.parametrize("facts", [{}, {"anomaly_mode": True}])
def test_checks_for_nan_in_the_backward_pass_are_anomaly_detection(new_trace, facts) -> None:
    finding = finding_of(_checked(new_trace, 3, **facts), "slow_api")
    assert finding.title == "Anomaly detection is on"
    # Three checks of 20 and 40 us; relu takes 200 - 2 us of its own, 20 of which are no stack trace.
    assert "6 calls a step check gradients for NaN, 0.18 ms on the CPU" in finding.seen
    assert "forward ops spend 0.18 ms on stack traces" in finding.seen
    assert finding.saving is not None
    assert 0 < finding.saving.low_ns <= finding.saving.expected_ns <= finding.saving.high_ns <= 900_000


def test_a_check_of_the_users_own_is_no_anomaly_detection(new_trace) -> None:
    assert status_of(_checked(new_trace, 1), "slow_api").outcome == "silent"


def test_launches_that_return_after_their_kernel_wait_for_it(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        for kernel in range(15):
            begin = at + 60 * kernel
            trace.op("aten::mm", begin, 55)
            trace.runtime(begin + 2, 50, 100 * index + kernel + 1)
            trace.kernel(GEMM, begin + 6, 45, 100 * index + kernel + 1)
    finding = finding_of(trace.view(facts=RunFacts(unprofiled_step_ns=900_000)), "slow_api")
    assert finding.title == "Waiting for each launch is on"
    assert readings_of(finding)["Launches waiting for their kernel, per step"] == 15 * 40_000
    # The GPU works 675 us of a step.
    assert finding.saving is not None
    assert finding.saving.high_ns == 225_000


def test_switches_that_the_hook_saw_say_what_they_do(training) -> None:
    view = training().view(facts=RunFacts(slow_switches=["PYTHONTRACEMALLOC=1", "sys.settrace(pydevd)"]))
    finding = finding_of(view, "slow_api")
    assert finding.title == "PYTHONTRACEMALLOC=1, sys.settrace(pydevd) are on"
    assert finding.code == "unset PYTHONTRACEMALLOC\n"
    assert finding.saving is None


def test_deterministic_algorithms_are_blamed_for_what_they_fill_only(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    for index in range(2):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.op("aten::empty", at + 10, 100)
        trace.op("aten::fill_", at + 20, 80)
        trace.launch(ELEMENTWISE, at + 30, at + 40, 300)
        trace.op("aten::mm", at + 120, 30)
        trace.launch(GEMM, at + 130, at + 340, 400)
    finding = finding_of(trace.view(facts=RunFacts(deterministic_algorithms=True)), "slow_api")
    assert "fill 1 new tensors a step" in finding.seen
    assert "torch.utils.deterministic.fill_uninitialized_memory = False" in finding.code
    assert status_of(trace.view(), "slow_api").outcome == "silent"
