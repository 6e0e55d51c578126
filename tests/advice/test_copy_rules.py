"""The rules about loading, copies and waits, on made-up recordings: when they fire, with what numbers, and when not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from advice.helpers import readings_of

from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.finding import FindingItem, Silent
from tb_dlprof_plugin.advice.rule import Finding
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.copies.copies import Fault, copies
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, RunFacts, System
from tb_dlprof_plugin.profile_view import ProfileView

KERNEL = "void at::native::elementwise_kernel<128>(int)"
HTOD, DTOH = "Memcpy HtoD ({} -> Device)", "Memcpy DtoH (Device -> {})"
RULES = (
    *("dataloader_bound", "synchronous_dataloader", "worker_restart"),
    *("pageable_copies", "blocking_copies", "blocking_sets", "small_copies", "slow_copies"),
    *("copies_not_overlapped", "extra_copies", "host_reads", "synchronising_calls"),
)
STEP = 1000
STEPS = 3


def _answer(view: ProfileView, rule: str) -> Finding | Silent:
    (found,) = [one for one in all_rules() if one.rule.id == rule]
    return found.answer(RuleContext(view, view.selection()))


def _finding(view: ProfileView, rule: str) -> FindingItem:
    answer = _answer(view, rule)
    assert isinstance(answer, Finding), answer
    return answer.item


def _why(view: ProfileView, rule: str) -> tuple[bool, str]:
    answer = _answer(view, rule)
    assert isinstance(answer, Silent), answer
    return answer.applicable, answer.why


def _frame(trace: Any, **facts: Any) -> ProfileView:
    loader = facts.pop("dataloader", None)
    view: ProfileView = trace.view(facts=RunFacts(dataloader=loader, **facts), system=System(cpu_count=8))
    return view


class Loop:
    """Steps of 1000 µs: a kernel of 300, then what a test adds at 50 to 320, then CPU work and a kernel of 400 at 600.

    A wait for the first kernel costs the GPU 290 µs of the step; without it the second kernel would be launched when
    the first one still runs.
    """

    def __init__(self, new_trace: Callable[..., Any]) -> None:
        self.trace = new_trace(baseTimeNanoseconds=1_700_000_000_000_000_000)
        self.trace.gpu()

    def steps(self, each: Callable[[Any, float], None], waits: bool = True) -> Any:
        """The trace; ``each`` adds to the step that begins at a time. Without waits the second kernel comes early."""
        for number in range(STEPS):
            at = float(STEP * number)
            self.trace.step(number, at, STEP)
            self.trace.op("aten::mul", at + 5, 20, dims=[[8, 8]], types=["float"])
            self.trace.launch(KERNEL, at + 10, at + 20, 300)
            each(self.trace, at)
            later = 580.0 if waits else 280.0
            for op in range(5):
                self.trace.op("aten::add", at + 350 + 45 * op if waits else at + 60 + 40 * op, 38)
            self.trace.op("aten::mul", at + later, 20, dims=[[8, 8]], types=["float"])
            self.trace.launch(KERNEL, at + later + 5, at + max(later + 20, 330), 400)
        return self.trace


def _copy(
    trace: Any, at: float, name: str, *, size: int, gpu: float, dur: float, until: float | None, dims: Any = None
) -> None:
    """``aten::to`` with the copy of ``dur`` µs that its call starts; the CPU waits for it where ``until`` is given."""
    end = until if until is not None else at + 14
    trace.op("aten::to", at, end - at + 6, dims=dims or [[8, 3]], types=["float"])
    trace.op("aten::_to_copy", at + 1, end - at + 4, dims=dims or [[8, 3]], types=["float"])
    trace.op("aten::copy_", at + 2, end - at + 2, dims=dims or [[8, 3]], types=["float"])
    trace.launch(name, at + 4, gpu, dur, bytes=size)
    if until is not None:
        trace.runtime(at + 8, until - at - 8, name="cudaStreamSynchronize")


# -- Copies that the CPU waits for


def test_a_copy_that_the_cpu_waits_for_costs_what_the_gpu_then_idles(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        _copy(trace, at + 50, HTOD.format("Pinned"), size=100_000, gpu=at + 321, dur=3, until=at + 325)

    finding = _finding(_frame(Loop(new_trace).steps(each)), "blocking_copies")
    readings = readings_of(finding)
    assert readings["Copies that the CPU waits for, per step"] == 1
    assert readings["Waiting, per step"] == 267_000
    assert finding.saving is not None
    # THEN most of the 275 µs that the GPU idles between the two kernels goes, and no more than it idles in all
    assert 150_000 < finding.saving.expected_ns < 300_000
    assert finding.saving.high_ns <= readings["GPU idle per step"]  # type: ignore[operator]
    assert "non_blocking=True" in finding.change
    assert finding.evidence[0].label.startswith("to, 1 a step")


def test_a_wait_that_the_gpu_does_not_notice_is_no_finding(new_trace) -> None:
    # GIVEN a GPU that has work queued whenever the CPU waits
    trace = new_trace()
    trace.gpu()
    for number in range(STEPS):
        at = float(STEP * number)
        trace.step(number, at, STEP)
        trace.op("aten::mul", at + 1, 30)
        trace.launch(KERNEL, at + 5, at + 10, 495)
        trace.launch(KERNEL, at + 20, at + 505, 490)
        trace.op("aten::item", at + 600, 397)
        trace.op("aten::_local_scalar_dense", at + 601, 395)
        trace.launch(DTOH.format("Pinned"), at + 605, at + 995.5, 1, bytes=4)
        trace.runtime(at + 608, 388, name="cudaStreamSynchronize")
    applicable, why = _why(_frame(trace), "host_reads")
    assert applicable
    assert "the GPU is idle for only" in why


def test_copies_that_nobody_waits_for_are_no_finding(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        _copy(trace, at + 30, HTOD.format("Pinned"), size=100_000, gpu=at + 321, dur=3, until=None)

    view = _frame(Loop(new_trace).steps(each, waits=False))
    assert "waited for no copy" in _why(view, "blocking_copies")[1]


# -- Values that the CPU reads


def _item(trace: Any, at: float) -> None:
    trace.op("aten::item", at + 50, 276)
    trace.op("aten::_local_scalar_dense", at + 51, 274)
    trace.launch(DTOH.format("Pinned"), at + 53, at + 321, 2, bytes=4)
    trace.runtime(at + 56, 268, name="cudaStreamSynchronize")


def test_a_read_names_the_function_that_reads(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        trace.event("train.py(12): log_loss", "python_function", at + 45, 300)
        trace.event("torch/_tensor.py(30): item", "python_function", at + 48, 290)
        _item(trace, at)

    finding = _finding(_frame(Loop(new_trace).steps(each)), "host_reads")
    assert readings_of(finding)["Reads per step"] == 1
    assert readings_of(finding)["Waiting for them, per step"] == 268_000
    assert "Most of them are in train.py:12 log_loss" in finding.seen
    assert "train.py:12 log_loss" in finding.change
    assert finding.evidence[0].label == "item, 1 a step, in train.py:12 log_loss"
    assert finding.saving is not None
    assert finding.saving.expected_ns > 150_000


def test_a_read_in_one_of_many_steps_is_logging(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        if at == 0:
            _item(trace, at)

    assert "no more than logging needs" in _why(_frame(Loop(new_trace).steps(each)), "host_reads")[1]


def test_the_gradient_scalers_read_asks_for_a_fused_optimizer(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        trace.op("aten::_amp_foreach_non_finite_check_and_unscale_", at + 40, 8)
        trace.launch(KERNEL, at + 42, at + 320, 0.5)
        _item(trace, at)

    finding = _finding(_frame(Loop(new_trace).steps(each)), "host_reads")
    assert "GradScaler" in finding.change
    assert "fused=True" in finding.code


def test_an_op_whose_size_the_gpu_decides_is_a_read(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        trace.op("aten::nonzero", at + 50, 276)
        trace.launch(DTOH.format("Pinned"), at + 53, at + 321, 2, bytes=4)
        trace.runtime(at + 56, 268, name="cudaStreamSynchronize")

    finding = _finding(_frame(Loop(new_trace).steps(each)), "host_reads")
    assert "aten::nonzero in the training loop: use torch.where" in finding.change


def test_an_op_that_copies_to_find_something_out_is_a_read(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        trace.op("aten::bincount", at + 40, 300)
        _copy(trace, at + 50, DTOH.format("Pageable"), size=8, gpu=at + 321, dur=2, until=at + 325)

    view = _frame(Loop(new_trace).steps(each))
    assert "aten::bincount" in _finding(view, "host_reads").change
    assert "waited for no copy" in _why(view, "blocking_copies")[1]


def test_what_ddp_copies_in_the_backward_pass_is_its_own(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        trace.op("aten::copy_", at + 50, 280, tid=2)
        trace.launch(DTOH.format("Pageable"), at + 53, at + 321, 2, bytes=8, tid=2)
        trace.runtime(at + 56, 268, name="cudaStreamSynchronize", tid=2)

    view = _frame(Loop(new_trace).steps(each))
    assert "waited for no copy" in _why(view, "blocking_copies")[1]
    assert "No op waited" in _why(view, "host_reads")[1]


# -- Waits of the loop itself


def test_a_wait_outside_every_op_is_the_loops_own(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        trace.runtime(at + 50, 275, name="cudaDeviceSynchronize")

    view = _frame(Loop(new_trace).steps(each))
    finding = _finding(view, "synchronising_calls")
    assert readings_of(finding)["Waiting calls per step"] == 1
    assert "torch.cuda.synchronize()" in finding.change
    assert finding.evidence[0].label == "cudaDeviceSynchronize, 1 a step"
    assert finding.evidence[0].page == "launches"
    # THEN no other rule asks for the same time
    assert _why(view, "host_reads")[1] == "No op waited for a value of the GPU."


def test_waiting_for_an_event_while_the_gpu_has_more_to_do_costs_nothing(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        trace.op("aten::mul", at + 30, 8)
        trace.launch(KERNEL, at + 32, at + 321, 350)
        trace.runtime(at + 50, 275, name="cudaEventSynchronize")

    assert "waited for nothing" in _why(_frame(Loop(new_trace).steps(each)), "synchronising_calls")[1]


def test_waits_of_ddp_are_not_the_loops(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        trace.annotation("DistributedDataParallel.forward", at + 45, 290)
        trace.runtime(at + 50, 275, name="cudaEventSynchronize")

    assert "waited for nothing" in _why(_frame(Loop(new_trace).steps(each)), "synchronising_calls")[1]


def test_sets_of_pinned_memory_wait_and_those_of_the_gpus_do_not(new_trace) -> None:
    def waits(trace: Any, at: float, name: str = "Memset (Pinned)") -> None:
        trace.runtime(at + 50, 275, 77_000 + int(at), name="cudaMemset")
        trace.kernel(name, at + 321, 2, 77_000 + int(at), cat="gpu_memset", bytes=4096)

    finding = _finding(_frame(Loop(new_trace).steps(waits)), "blocking_sets")
    assert readings_of(finding)["Sets that wait, per step"] == 1
    assert finding.saving is not None
    assert 150_000 < finding.saving.expected_ns < 300_000
    on_gpu = _frame(Loop(new_trace).steps(lambda trace, at: waits(trace, at, "Memset (Device)")))
    assert "No set" in _why(on_gpu, "blocking_sets")[1]


# -- Which fault a copy has


@pytest.mark.parametrize(
    ("name", "size", "dur", "waits", "fault"),
    [
        (HTOD.format("Pinned"), 2**24, 310.0, False, Fault.NONE),
        (HTOD.format("Pinned"), 2**24, 310.0, True, Fault.BLOCKING),
        (HTOD.format("Pinned"), 2**24, 1_000.0, False, Fault.SLOW),
        (HTOD.format("Pageable"), 2**24, 1_000.0, True, Fault.PAGEABLE),
        (HTOD.format("Pageable"), 4096, 1.0, True, Fault.BLOCKING),
        (DTOH.format("Pageable"), 2**24, 1_000.0, True, Fault.SLOW),
        (DTOH.format("Pageable"), 4, 1.0, True, Fault.BLOCKING),
    ],
)
def test_a_copy_has_one_fault(new_trace, name: str, size: int, dur: float, waits: bool, fault: Fault) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 3000)
    _copy(trace, 100, name, size=size, gpu=110, dur=dur, until=115 + dur if waits else None)
    view = _frame(trace)
    found = copies(view, view.selection())
    assert found.fault.tolist() == [fault]
    assert (found.wait >= 0).tolist() == [waits or "Pageable" in name]


# -- Pageable memory, slow copies


def test_pageable_copies_are_priced_at_the_rate_of_pinned_ones(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        # 5.5 MB in 250 µs: 22 GB/s, where 55 GB/s would take 100 µs.
        trace.event("data.py(5): batch", "python_function", at + 28, 560)
        _copy(trace, at + 30, HTOD.format("Pageable"), size=5_500_000, gpu=at + 325, dur=250, until=at + 577)

    finding = _finding(_frame(Loop(new_trace).steps(each)), "pageable_copies")
    readings = readings_of(finding)
    assert readings["Copies from pageable memory, per step"] == 250_000
    assert readings["Bytes per step"] == 5_500_000
    assert readings["Rate over that of pinned memory"] == pytest.approx(22 / 55)
    assert finding.saving is not None
    assert finding.saving.low_ns >= 0.6 * 100_000
    assert finding.saving.high_ns <= 1_000_000 - 300_000 - 400_000 - 100_000
    assert "pin_memory=True" in finding.code
    assert finding.evidence[0].label == "to, in data.py:5 batch"


def test_a_slow_copy_of_results_asks_for_a_pinned_buffer(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        _copy(trace, at + 30, DTOH.format("Pageable"), size=2_200_000, gpu=at + 325, dur=250, until=at + 577)

    finding = _finding(_frame(Loop(new_trace).steps(each)), "slow_copies")
    assert readings_of(finding)["Rate over the link's"] == pytest.approx(8.8 / 55)
    assert "pinned buffer" in finding.change
    assert "from the GPU, pageable memory" in finding.seen


def test_without_the_links_rate_nothing_is_called_slow(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 3000)
    _copy(trace, 100, DTOH.format("Pageable"), size=2**21, gpu=110, dur=2000, until=2200)
    assert _why(_frame(trace), "slow_copies") == (False, "What the link of this GPU carries is not known.")


# -- Small copies


def _many(new_trace, count: int) -> ProfileView:
    trace = new_trace()
    trace.gpu()
    for number in range(STEPS):
        at = float(STEP * number)
        trace.step(number, at, STEP)
        for copy in range(count):
            _copy(
                trace, at + 10 + 22 * copy, HTOD.format("Pinned"), size=4096, gpu=at + 25 + 22 * copy, dur=1, until=None
            )
        trace.op("aten::mul", at + 700, 20)
        trace.launch(KERNEL, at + 705, at + 710, 200)
    return _frame(trace)


def test_twenty_small_copies_a_step_are_many(new_trace) -> None:
    finding = _finding(_many(new_trace, 20), "small_copies")
    readings = readings_of(finding)
    assert readings["Small copies per step"] == 20
    assert readings["Bytes of one, at the median"] == 4096
    assert readings["CPU time for them, per step"] == 20 * 20_000
    assert finding.saving is not None
    # THEN one of them is left, and the kernel's 200 µs
    assert 0 < finding.saving.expected_ns <= 19 * 20_000
    assert "Join the tensors on the CPU" in finding.change
    assert _why(_many(new_trace, 19), "small_copies")[1] == "19 small copies a step are no more than usual."


# -- Tensors made on the CPU


def _made_and_copied(trace: Any, at: float, filled: list[int], copied: list[int]) -> None:
    trace.op("aten::randn", at + 25, 200)
    trace.op("aten::normal_", at + 30, 190, dims=[filled, [], [], []], types=["float"])
    _copy(
        trace, at + 230, HTOD.format("Pageable"), size=800_000, gpu=at + 295, dur=40, until=at + 340, dims=[copied, []]
    )  # fmt: skip


def test_a_tensor_made_on_the_cpu_and_copied_is_found_by_its_shape(new_trace) -> None:
    def same(trace: Any, at: float) -> None:
        _made_and_copied(trace, at, [64, 100], [64, 100])

    def other(trace: Any, at: float) -> None:
        _made_and_copied(trace, at, [7], [64, 100])

    finding = _finding(_frame(Loop(new_trace).steps(same)), "extra_copies")
    readings = readings_of(finding)
    assert readings["Tensors made on the CPU and copied, per step"] == 1
    assert readings["CPU time for them, per step"] == 200_000 + 116_000
    assert "They come from torch.randn." in finding.seen
    view = _frame(Loop(new_trace).steps(other))
    assert "No copy" in _why(view, "extra_copies")[1]
    assert copies(view, view.selection()).fault.tolist() == [Fault.PAGEABLE] * STEPS


def test_a_tensor_from_python_values_is_made_in_its_copy(new_trace) -> None:
    def each(trace: Any, at: float) -> None:
        _copy(trace, at + 60, HTOD.format("Pageable"), size=24, gpu=at + 325, dur=2, until=at + 330)
        trace.op("aten::lift_fresh", at + 338, 2)
        trace.op("aten::detach_", at + 341, 2)

    finding = _finding(_frame(Loop(new_trace).steps(each)), "extra_copies")
    assert "They come from torch.tensor." in finding.seen


# -- Copies in parallel with computing


def test_copies_that_run_alone_could_overlap_with_kernels(new_trace) -> None:
    def each(trace: Any, at: float, stream: int = 7) -> None:
        trace.op("aten::to", at + 1, 3)
        corr = 50_000 + int(at)
        trace.runtime(at + 2, 1, corr, name="cudaMemcpyAsync")
        trace.kernel(HTOD.format("Pinned"), at + 740, 200, corr, stream=stream, cat="gpu_memcpy", bytes=11_000_000)

    finding = _finding(_frame(Loop(new_trace).steps(each, waits=False)), "copies_not_overlapped")
    readings = readings_of(finding)
    assert readings["Of them while no kernel runs"] == 200_000
    assert finding.saving is not None
    assert 0 < finding.saving.expected_ns <= finding.saving.high_ns <= 200_000


# -- The DataLoader


def _loading(new_trace, iterator: str, loading: float, **loader: Any) -> ProfileView:
    trace = new_trace()
    trace.gpu()
    for number in range(STEPS):
        at = float(STEP * number)
        trace.step(number, at, STEP)
        trace.annotation(f"enumerate(DataLoader)#_{iterator}DataLoaderIter.__next__", at, loading)
        trace.op("aten::mul", at + loading + 10, 20)
        trace.launch(KERNEL, at + loading + 15, at + loading + 20, 150)
    return _frame(trace, dataloader=DataLoaderFacts(**loader) if loader else None)


@pytest.mark.parametrize(
    ("iterator", "loader", "rule"),
    [
        ("SingleProcess", {"num_workers": 0}, "synchronous_dataloader"),
        ("SingleProcess", {}, "synchronous_dataloader"),
        ("MultiProcessing", {"num_workers": 2}, "dataloader_bound"),
        ("MultiProcessing", {}, "dataloader_bound"),
    ],
)
def test_waiting_for_data_is_one_rules_matter(new_trace, iterator: str, loader: dict[str, int], rule: str) -> None:
    view = _loading(new_trace, iterator, 600, **loader)
    other = ({"synchronous_dataloader", "dataloader_bound"} - {rule}).pop()
    finding = _finding(view, rule)
    assert readings_of(finding)["Waiting per step"] == 600_000
    assert isinstance(_answer(view, other), Silent)
    assert finding.saving is not None
    assert 0 < finding.saving.low_ns <= finding.saving.expected_ns <= finding.saving.high_ns <= 850_000


def test_the_number_of_workers_follows_from_the_time_per_batch(new_trace) -> None:
    finding = _finding(_loading(new_trace, "SingleProcess", 600, num_workers=0), "synchronous_dataloader")
    # THEN 1.3 times 600 µs of loading, for steps of about 200 to 300 µs without it
    assert any(f"num_workers={count}," in finding.code for count in (4, 5, 6)), finding.code


def test_loading_behind_the_gpus_work_is_no_finding(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.op("aten::mul", 0, 10)
    trace.launch(KERNEL, 2, 10, 980)
    trace.loader(100, 400)
    applicable, why = _why(_frame(trace, dataloader=DataLoaderFacts(num_workers=0)), "synchronous_dataloader")
    assert applicable
    assert "0.40 ms of each 1.00 ms step are spent loading in the training process, but only 0.0 %" in why


def _epochs(new_trace, **loader: Any) -> ProfileView:
    """Two steps, each an epoch: 80 µs in which workers stop, 300 in which they start, 100 for the first batch."""
    trace = new_trace()
    trace.gpu()
    loading = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    for number in range(2):
        at = float(STEP * number)
        trace.step(number, at, STEP)
        trace.op("aten::empty", at + 10, 2)
        trace.op("aten::random_", at + 13, 2)
        trace.op("aten::item", at + 16, 2)
        trace.annotation(loading, at + 313, 100)
        trace.op("aten::mul", at + 420, 20)
        trace.launch(KERNEL, at + 425, at + 430, 200)
        trace.annotation(loading, at + 880, 80)
    return _frame(trace, dataloader=DataLoaderFacts(num_workers=2, **loader))


def test_workers_that_start_anew_are_priced_per_step_of_the_epoch(new_trace) -> None:
    finding = _finding(_epochs(new_trace, persistent_workers=False, batches=1), "worker_restart")
    readings = readings_of(finding)
    # THEN 300 µs of starting for both epochs, and 80 of stopping where the recording holds the end of one before
    assert readings["Stopping and starting workers, per epoch"] == 340_000
    assert readings["Waiting for the first batch, per epoch"] == 100_000
    assert finding.saving is not None
    assert (finding.saving.low_ns, finding.saving.expected_ns, finding.saving.high_ns) == (204_000, 356_000, 440_000)
    assert "persistent_workers=True" in finding.code

    _, why = _why(_epochs(new_trace, persistent_workers=False, batches=50), "worker_restart")
    assert "0.7 % of the time per step" in why
    assert _why(_epochs(new_trace, persistent_workers=True), "worker_restart") == (True, "persistent_workers is on.")
    # THEN the time in the DataLoader is not asked for twice
    assert "see worker_restart" in _why(_epochs(new_trace, persistent_workers=False), "dataloader_bound")[1]


def test_without_the_start_of_an_epoch_nothing_is_said_of_workers(new_trace) -> None:
    view = _loading(new_trace, "MultiProcessing", 100, num_workers=2, persistent_workers=False)
    assert _why(view, "worker_restart") == (False, "No epoch began in the recording.")


# -- All of them


def test_without_a_gpu_no_rule_about_copies_applies(cpu_view: ProfileView) -> None:
    for rule in RULES[3:]:
        assert _why(cpu_view, rule) == (False, "The run used no GPU."), rule


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_takes_a_recording_of_one_op(new_trace, rule: str) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10)
    assert isinstance(_answer(_frame(trace), rule), Silent)
