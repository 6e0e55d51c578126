"""The timeline: what is drawn adds up to what the measures say, answers stay small, and an event knows its launch."""

from __future__ import annotations

import re
from itertools import accumulate

import msgspec
import numpy as np
import pytest

from tb_dlprof_plugin.metrics.idle_gaps import idle_gaps
from tb_dlprof_plugin.metrics.kernels import kernel_totals
from tb_dlprof_plugin.metrics.launches import launch_columns
from tb_dlprof_plugin.pages.ops import op_rows
from tb_dlprof_plugin.pages.timeline import events, paging
from tb_dlprof_plugin.pages.timeline.columns import timeline_chunk
from tb_dlprof_plugin.pages.timeline.event import timeline_event
from tb_dlprof_plugin.pages.timeline.events import MOST_LEVELS, timeline_events
from tb_dlprof_plugin.pages.timeline.matches import timeline_matches
from tb_dlprof_plugin.pages.timeline.page import TimelinePage, timeline_page
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES

Drawn = dict[str, tuple[int, int, str, str, bool]]
"""Start, duration, label, kind and "of another iteration" by id."""


def _drawn(view: ProfileView, page: TimelinePage) -> Drawn:
    """All events, decoded from the page and its chunks as the browser does it."""
    answers = [page] + [
        timeline_chunk(view, view.selection(), page.iteration.index, chunk) for chunk in range(len(page.chunks))
    ]
    found: Drawn = {}
    for answer in answers:
        names = {name.index: name for name in answer.names}
        for lane in answer.lanes:
            columns = (accumulate(lane.id), accumulate(lane.start), lane.duration, lane.name)
            for row, start, duration, index in zip(*columns, strict=True):
                key = f"{page.tracks[lane.track].source}{row}"
                assert key not in found
                name = names[index]
                found[key] = (start, duration, name.label, name.kind, name.other)
    assert len(found) == page.events
    return found


def _time(drawn: Drawn, source: str) -> int:
    return sum(event[1] for key, event in drawn.items() if key[0] == source and not event[4])


@pytest.fixture(params=[6000, 7])
def few_in_the_first_answer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "FIRST_EVENTS", request.param)
    monkeypatch.setattr(paging, "CHUNK_EVENTS", request.param)


def test_many_threads_are_looked_at_together(new_trace, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    for number in range(40):
        trace.op("aten::add", 10 * number, 8, tid=1 + number % 8)
    view, asked = trace.view(), []
    found = events.call_kinds
    monkeypatch.setattr(events, "call_kinds", lambda view: asked.append(view) or found(view))
    assert len([track for track in timeline_events(view, view.selection()).tracks if track.kind == "thread"]) == 8
    assert len(asked) == 1


def test_drawn_time_is_measured_time(training, ref: RunRef, few_in_the_first_answer: None) -> None:
    view = training().view()
    for index in range(3):
        one = Selection(index, index)
        page = timeline_page(view, ref, view.selection(), index)
        drawn = _drawn(view, page)
        assert _time(drawn, "g") == int(kernel_totals(view, one).total_ns.sum())
        assert _time(drawn, "i") == int(idle_gaps(view, one).duration_ns.sum())
        tops = view.call_top == np.arange(len(view.call_top))
        ops = sum(drawn[f"c{row}"][1] for row in np.flatnonzero(tops & (view.call_iteration == index)).tolist())
        assert ops == sum(row.cpu_total_ns for row in op_rows(view, one))


def test_the_median_iteration_of_the_range_is_shown(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    for index, (start, length) in enumerate(((0, 300), (300, 100), (400, 200))):
        trace.step(index, start, length)
        trace.op("aten::add", start + 10, 50)
    view = trace.view()
    page = timeline_page(view, ref, view.selection())
    assert (page.iteration.index, page.headline) == (
        2,
        "Iteration 2, the median one, took 200 µs on the CPU: 25 % forward.",
    )
    assert timeline_page(view, ref, view.selection(0, 1)).iteration.index == 1
    with pytest.raises(ValueError, match="iteration 3 is not in this recording, which has 0 to 2"):
        timeline_page(view, ref, view.selection(), 3)


def test_work_of_the_iterations_around_is_drawn_as_theirs(new_trace, ref: RunRef) -> None:
    """The CPU runs ahead: while it is in the second step, the GPU still works on the first."""
    trace = new_trace()
    for index in range(2):
        trace.step(index, 100 * index, 100)
        trace.op("aten::mm", 100 * index + 10, 20)
        trace.launch("gemm", 100 * index + 12, 100 + 200 * index, 180)
    view = trace.view()
    page = timeline_page(view, ref, view.selection(), 1)
    drawn = _drawn(view, page)
    assert (page.window_ns, page.iteration.host_start_ns, page.iteration.start_ns) == (380_000, 0, 180_000)
    assert sorted(
        (start, duration, other) for key, (start, duration, _, _, other) in drawn.items() if key[0] == "g"
    ) == [
        (0, 180_000, True),
        (200_000, 180_000, False),
    ]


def test_a_thread_is_named_by_what_runs_on_it(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.event("Activity Buffer Request", "overhead", 1, 5, tid=11)
    trace.runtime(2, 5, tid=12)
    trace.event("Activity Buffer Request", "overhead", 10, 5, tid=12)
    trace.op("aten::pin_memory", 3, 5, tid=13)
    trace.backward("AddmmBackward0", 40, 20, 1)
    trace.op("aten::addmm", 5, 20, seq=1)
    view = trace.view()
    page = timeline_page(view, ref, view.selection(), 0)
    assert [track.label.partition(": ")[2] for track in page.tracks if track.kind == "thread"] == [
        "training",
        "backward",
        "other ops",
        "CUDA calls",
        "profiler",
    ]


def test_rows_are_named_in_words_and_what_is_idle_says_why(gpu_view: ProfileView, ref: RunRef) -> None:
    page = timeline_page(gpu_view, ref, gpu_view.selection(), 1)
    assert [(track.label, track.detail, track.levels) for track in page.tracks] == [
        ("CPU works on", "the part of the step that it runs", 1),
        ("GPU 0 works on", "the part of the step that launched it", 1),
        ("GPU 0 idle", "3 gaps, 24 % of the step", 1),
        ("GPU 0, stream 7", "6 kernels, 1 copy or set", 1),
        ("CPU thread 0: training", "21 calls", 6),
        ("CPU thread 1: backward", "8 calls", 4),
    ]
    names = {(name.label, name.kind) for name in page.names}
    assert names >= {
        ("Forward", "forward"),
        ("conv2d", "forward"),
        ("ConvolutionBackward0", "backward"),
        ("cudaStreamSynchronize", "wait"),
        ("conv1", "module"),
        ("DataLoader", "idle_dataloader"),
        ("Memcpy HtoD (Pageable -> Device)", "memory"),
    }


def test_an_event_knows_its_op_its_launch_and_what_is_around_it(gpu_view: ProfileView, ref: RunRef) -> None:
    every = gpu_view.selection()
    page = timeline_page(gpu_view, ref, every, 1)
    kernel = timeline_event(gpu_view, ref, every, 1, page.longest_gpu[0].spot.id)
    assert kernel.gpu is not None
    assert kernel.gpu.launch.call is not None
    row = int(kernel.spot.id[1:])
    assert kernel.gpu.launch.delay_ns == launch_columns(gpu_view, every).delay_ns[row]
    assert (kernel.op, kernel.role, kernel.gpu.kind, kernel.gpu.tensor_core) == (
        "conv1/conv2d",
        "backward",
        "kernel",
        "no",
    )
    assert [spot.label for spot in kernel.around] == [
        "ConvolutionBackward0",
        "convolution_backward",
        "cudaLaunchKernel",
    ]
    assert kernel.gpu.launch.call == kernel.around[-1]

    call = timeline_event(gpu_view, ref, every, 1, kernel.around[0].id)
    assert (call.launched, call.launched_ns) == ([kernel.spot], kernel.spot.duration_ns)
    assert call.op_id == kernel.op_id
    inner = timeline_event(gpu_view, ref, every, 1, kernel.around[1].id)
    assert (call.inside, inner.shapes, inner.dtypes) == (
        kernel.around[1],
        "8×16×30×30, 8×3×32×32, 16×3×3×3",
        "fp32",
    )
    assert kernel.previous is not None
    assert timeline_event(gpu_view, ref, every, 1, kernel.previous.id).next == kernel.spot

    gap = timeline_event(gpu_view, ref, every, 1, page.longest_gaps[0].spot.id)
    assert gap.gap is not None
    assert gap.gap.ended_by is not None
    assert sum(part.value_ns or 0 for part in gap.gap.causes) == gap.spot.duration_ns
    assert sum(part.value_ns for part in gap.gap.activities) == gap.spot.duration_ns
    assert gap.spot.label == max(gap.gap.causes, key=lambda part: part.value_ns or 0).label
    assert gap.gap.launched == "Launched late"
    assert gap.gap.ended_by.start_ns == gap.spot.start_ns + gap.spot.duration_ns


@pytest.mark.parametrize("wrong", ["", "g", "x1", "c-1", "c1.5", "c999999", "g\u0661", "c" + "9" * 30])
def test_an_event_that_is_not_there_is_refused(gpu_view: ProfileView, ref: RunRef, wrong: str) -> None:
    with pytest.raises(KeyError):
        timeline_event(gpu_view, ref, gpu_view.selection(), 1, wrong)


def test_an_op_without_gpu_work_is_found_at_its_longest_call(cpu_trace, ref: RunRef) -> None:
    view = ProfileView(cpu_trace.profile())
    first = op_rows(view, Selection(0, 0))[0]
    found = timeline_matches(view, view.selection(), 0, op=first.id).first
    assert found is not None
    assert found.id.startswith("c")


def test_an_op_an_op_type_a_kernel_and_a_text_are_found(gpu_view: ProfileView, ref: RunRef) -> None:
    every = gpu_view.selection()
    conv = next(r for r in op_rows(gpu_view, Selection(1, 1)) if (r.name, r.direction) == ("conv1/conv2d", "backward"))
    of_op = timeline_matches(gpu_view, every, 1, op=conv.id)
    assert (of_op.count, of_op.on_gpu, of_op.gpu_ns) == (conv.calls + conv.kernel_calls, conv.kernel_calls, conv.gpu_ns)
    assert of_op.first is not None
    assert of_op.first.id.startswith("g")

    of_type = timeline_matches(gpu_view, every, 1, op_type="conv2d")
    convs = [row for row in op_rows(gpu_view, Selection(1, 1)) if row.op_type == "conv2d"]
    assert len(convs) > 1
    assert of_type.count == sum(row.calls + row.kernel_calls for row in convs)
    assert of_type.gpu_ns == sum(row.gpu_ns or 0 for row in convs)
    assert timeline_matches(gpu_view, every, 1, op_type="conv").count == 0

    kernel = timeline_event(gpu_view, ref, every, 1, timeline_page(gpu_view, ref, every, 1).longest_gpu[0].spot.id)
    assert kernel.gpu is not None
    of_kernel = timeline_matches(gpu_view, every, 1, kernel=kernel.gpu.kernel_id)
    assert of_kernel.first == kernel.spot

    by_text = timeline_matches(gpu_view, every, 1, text="ATEN::conv")
    assert by_text.count == 3  # conv2d, convolution, convolution_backward; not cudnn_convolution
    for nothing in (timeline_matches(gpu_view, every, 1, text="no such name"), timeline_matches(gpu_view, every, 1)):
        assert (nothing.count, nothing.first, nothing.lanes) == (0, None, [])


@pytest.fixture(scope="module")
def large(new_trace) -> ProfileView:
    """One step of 60,000 calls and 20,000 kernels whose names are as long as labels get."""
    trace = new_trace()
    trace.step(0, 0, 400_000)
    for number in range(20_000):
        at = 20.0 * number
        trace.op(f"aten::op{number % 3000} {'ä' * 100}", at, 10)
        trace.op(f"aten::inner{number % 5}", at + 1, 8)
        trace.launch(f"kernel_{number % 4000}_{'x' * 100}", at + 2, at + 5 + number % 3, 1 + number % 11)
    return trace.view()


def test_every_answer_stays_below_the_limit(large: ProfileView, ref: RunRef) -> None:
    page = timeline_page(large, ref, large.selection())
    sizes = [len(msgspec.json.encode(page))] + [
        len(msgspec.json.encode(timeline_chunk(large, large.selection(), None, chunk)))
        for chunk in range(len(page.chunks))
    ]
    sizes.append(len(msgspec.json.encode(timeline_matches(large, large.selection(), None, text="n"))))
    assert max(sizes) < MAX_RESPONSE_BYTES
    assert page.events > 80_000
    assert len(_drawn(large, page)) == page.events


def test_from_afar_the_segments_cover_what_the_chunks_hold(large: ProfileView, ref: RunRef) -> None:
    page = timeline_page(large, ref, large.selection())
    drawn = timeline_events(large, Selection(page.iteration.index, page.iteration.index))
    dealt = paging.paging(large, Selection(0, 0))
    rest = np.concatenate(dealt.chunks)
    bins = np.zeros((len(page.tracks), 8, page.bins), dtype=bool)
    for line in page.segments:
        for start, length in zip(accumulate(line.start), line.length, strict=True):
            assert not bins[line.track, line.level, start : start + length].any()
            bins[line.track, line.level, start : start + length] = True
    middle = (drawn.start_ns[rest] + drawn.duration_ns[rest] // 2) * page.bins // page.window_ns
    assert bins[drawn.track[rest], drawn.level[rest], np.minimum(middle, page.bins - 1)].all()
    for (start, stop), rows in zip(dealt.bounds, dealt.chunks, strict=True):
        assert drawn.start_ns[rows].min() == start
        assert (drawn.start_ns[rows] + drawn.duration_ns[rows]).max() == stop


def test_calls_nested_too_deep_are_counted_and_left_out(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    for depth in range(80):
        trace.op("aten::again", depth + 1, 900 - 2 * depth)
    view = trace.view()
    page = timeline_page(view, ref, view.selection())
    assert (page.deeper, page.tracks[-1].levels) == (81 - MOST_LEVELS, MOST_LEVELS)


def test_work_that_overlaps_on_one_stream_stands_on_two_lines(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    for start, length in ((10, 30), (20, 30), (45, 10), (60, 5)):
        trace.op("aten::mm", start - 5, 3)
        trace.launch("gemm", start - 4, start, length)
    view = trace.view()
    page = timeline_page(view, ref, view.selection())
    stream = next(number for number, track in enumerate(page.tracks) if track.kind == "stream")
    assert [(lane.level, list(accumulate(lane.start))) for lane in page.lanes if lane.track == stream] == [
        (0, [10_000, 45_000, 60_000]),
        (1, [20_000]),
    ]


def test_the_idle_time_of_the_drawn_iteration_is_said_to_be_of_the_recorded_step(
    gpu_view: ProfileView, ref: RunRef
) -> None:
    headline = timeline_page(gpu_view, ref, gpu_view.selection()).headline
    assert re.search(r"idle \d+ % of the recorded step, at most", headline)
