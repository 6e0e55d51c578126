"""The Memory page: tables that add up to the peak, words that fit, responses that stay small."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.model.profile import Memory
from tb_dlprof_plugin.pages.memory import MemoryPage, memory_page
from tb_dlprof_plugin.pages.sentences import text_of
from tb_dlprof_plugin.pages.work_detail import WorkMemory, work_detail
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES

GIB = 1 << 30
TOTALS = ("Total Allocated", "Total Reserved")
LEAKED = 1 << 20


def _leaking(new_trace, keeps: int = LEAKED, steps: int = 4, without: tuple[str, ...] = ()) -> ProfileView:
    """Steps of 100 µs on GPU 0 of which each keeps ``keeps`` bytes of the linear layer's output; 1 GiB was there.

    ``without`` names what the memory events lack.
    """
    trace = new_trace()
    trace.gpu()
    total = GIB
    for step in range(steps):
        at = 100 * step
        trace.step(10 + step, at, 100)
        trace.module("fc", at + 10, 30)
        trace.op("aten::linear", at + 12, 18, seq=step)
        for size, when in ((keeps, 14), (4096, 15), (-4096, 20)):
            if size:
                total += size
                address = 100 + step if size == keeps else 1
                trace.memory(at + when, size, address, allocated=total, reserved=2 * GIB, device=0)
        trace.backward("AddmmBackward0", at + 50, 20, step)
    trace.memory(95, 16, 7, allocated=16, reserved=0)
    for event in trace.events:
        for name in without:
            event.get("args", {}).pop(name, None)
    made: ProfileView = trace.view()
    return made


@pytest.fixture(scope="module")
def view(new_trace) -> ProfileView:
    return _leaking(new_trace)


@pytest.fixture(scope="module")
def page(view: ProfileView, ref: RunRef) -> MemoryPage:
    return memory_page(view, ref, view.selection())


def test_categories_modules_and_op_types_each_sum_to_the_peak(page: MemoryPage) -> None:
    assert page.figures is not None
    assert page.not_attributed == ""
    peak = GIB + 4 * LEAKED + 4096
    assert page.figures.peak_allocated_bytes == peak
    for rows in (page.categories, page.modules, page.op_types):
        assert sum(row.bytes or 0 for row in rows) == peak
        assert sum(row.percent or 0 for row in rows) == pytest.approx(100)
    assert [(row.kind, row.name) for row in page.modules] == [("before", ""), ("group", "fc")]
    assert [(row.kind, row.name, row.direction) for row in page.op_types] == [
        ("before", "", ""),
        ("group", "linear", "forward"),
    ]


@pytest.mark.parametrize(("kind", "subject"), [("module", "fc"), ("op_type", "linear")])
def test_what_is_selected_elsewhere_holds_what_this_page_says(view: ProfileView, ref: RunRef, kind, subject) -> None:
    held = work_detail(view, ref, view.selection(), kind, subject).memory
    size, peak = 4 * LEAKED + 4096, GIB + 4 * LEAKED + 4096
    assert held == WorkMemory("0", size, 100 * size / peak, 5)


def test_what_is_selected_holds_nothing_known_where_allocations_cannot_be_followed(new_trace, ref: RunRef) -> None:
    blind = _leaking(new_trace, without=("Addr",))
    assert work_detail(blind, ref, blind.selection(), "module", "fc").memory is None


def test_the_largest_allocations_alive_at_the_peak_say_where_they_come_from(page: MemoryPage) -> None:
    assert [(row.bytes, row.iteration, row.category, row.freed) for row in page.rows] == [
        *[(LEAKED, 10 + step, "activations", "") for step in range(4)],
        (4096, 13, "temporary", "13"),
    ]
    assert {(row.op, row.module, row.direction) for row in page.rows} == {("fc/linear", "fc", "forward")}
    assert page.rows[-1].lifetime_ns == 5_000


def test_the_curve_is_exact_and_sums_to_what_is_allocated(page: MemoryPage) -> None:
    curve = page.curve
    assert curve is not None
    assert [sum(parts) for parts in zip(*curve.categories, strict=True)] == curve.allocated
    assert curve.time_ns[:4] == [0, 14_000, 15_000, 20_000]
    assert (curve.stop_ns, curve.moments, set(curve.reserved)) == (400_000, 13, {2 * GIB})


def test_fragmentation_is_what_is_reserved_and_not_allocated_at_the_peak(page: MemoryPage) -> None:
    figures = page.figures
    assert figures is not None
    assert figures.fragmentation_bytes == 2 * GIB - figures.peak_allocated_bytes
    assert figures.peak_reserved_percent == pytest.approx(100 * 2 * GIB / 150_000_000_000)


def test_growth_is_told_only_where_every_iteration_grows(new_trace, page: MemoryPage, ref: RunRef) -> None:
    assert page.figures is not None
    assert page.figures.grows
    assert [row.growth_bytes for row in page.iterations] == [LEAKED] * 4
    assert page.headline.endswith(
        "Memory grows in each iteration, usually by 1.00 MiB: something keeps tensors from step to step, "
        "most of them made by fc/linear (forward)."
    )
    for view in (_leaking(new_trace, keeps=0), _leaking(new_trace, steps=2)):
        steady = memory_page(view, ref, view.selection())
        assert steady.figures is not None
        assert not steady.figures.grows
        assert "grows" not in steady.headline


def test_the_headline_says_how_much_and_of_what(page: MemoryPage) -> None:
    assert page.headline.startswith(
        "GPU 0 (NVIDIA H200) holds at most 1.00 GiB, 0.7 % of the 140 GiB it has; 99.6 % of it was there before the "
        "recording began."
    )


def test_the_peak_is_in_words_with_links_beside_the_curve(page: MemoryPage) -> None:
    assert page.peak is not None
    assert text_of(page.peak_parts) == (
        f"Peak 1.00 GiB at {duration(page.peak.step_time_ns)} of step 13, in fc/linear (forward): "
        "over 99 % before the recording. Of the modules fc holds most, 0.4 %."
    )
    links = {(part.text, part.kind, part.id) for part in page.peak_parts if part.kind}
    assert links == {("fc/linear", "op", page.peak.op_id), ("fc", "module", "fc")}
    start = next(row.start_ns for row in page.iterations if row.number == 13)
    assert page.peak.time_ns == start + page.peak.step_time_ns


def test_a_peak_from_before_the_steps_is_at_their_beginning(new_trace, ref: RunRef) -> None:
    view = _leaking(new_trace, keeps=-LEAKED, without=("Addr", *TOTALS))
    page = memory_page(view, ref, view.selection())
    assert text_of(page.peak_parts) == "Peak 4.00 MiB at the beginning of step 10."


def test_without_addresses_and_totals_the_page_shows_changes_and_names_the_unknown(new_trace, ref: RunRef) -> None:
    view = _leaking(new_trace, without=("Addr", *TOTALS))
    page = memory_page(view, ref, view.selection())
    figures, curve = page.figures, page.curve
    assert figures is not None
    assert curve is not None
    assert (figures.relative, figures.known_before_bytes) == (True, 0)
    assert figures.peak_allocated_bytes == 4 * LEAKED + 4096 == max(curve.allocated)
    assert (figures.peak_allocated_percent, figures.fragmentation_bytes) == (None, None)
    assert figures.device_memory_bytes == 150_000_000_000
    assert "have no addresses" in page.not_attributed
    assert (page.categories, page.modules, page.op_types, page.rows, page.total_rows) == ([], [], [], [], None)
    assert (curve.categories, [row.category_bytes for row in page.iterations]) == ([], [[]] * 4)
    assert page.headline == (
        "GPU 0 (NVIDIA H200) holds at most 4.00 MiB above what was there before the recording, which is "
        "unknown. Memory grows in each iteration, usually by 1.00 MiB: something keeps tensors from step to step; "
        "which op made them is unknown."
    )


def test_what_was_freed_beyond_what_was_allocated_was_there_before(new_trace, ref: RunRef) -> None:
    view = _leaking(new_trace, keeps=-LEAKED, without=("Addr", *TOTALS))
    page = memory_page(view, ref, view.selection())
    assert page.figures is not None
    assert page.curve is not None
    assert page.figures.known_before_bytes == 4 * LEAKED == page.curve.allocated[0]
    assert (min(page.curve.allocated), page.figures.growth_bytes) == (0, -LEAKED)
    assert page.headline == (
        "GPU 0 (NVIDIA H200) holds at most 4.00 MiB above its lowest moment; what was there before the recording is "
        "unknown, at least 4.00 MiB."
    )


def test_without_addresses_totals_and_their_share_of_the_device_are_shown(new_trace, ref: RunRef) -> None:
    view = _leaking(new_trace, without=("Addr",))
    page = memory_page(view, ref, view.selection())
    assert page.figures is not None
    assert page.figures.peak_allocated_bytes == GIB + 4 * LEAKED + 4096
    assert page.figures.peak_allocated_percent == pytest.approx(100 * page.figures.peak_allocated_bytes / 150e9)
    assert (page.figures.relative, page.figures.peak_reserved_bytes) == (False, 2 * GIB)
    assert page.not_attributed
    assert page.categories == []
    assert "holds at most 1.00 GiB, 0.7 % of the 140 GiB it has" in page.headline


def test_a_device_can_be_chosen(view: ProfileView, page: MemoryPage, ref: RunRef) -> None:
    assert [(device.key, device.label) for device in page.devices] == [("0", "GPU 0 (NVIDIA H200)"), ("cpu", "CPU")]
    assert page.device == "0"
    cpu = memory_page(view, ref, view.selection(), "cpu")
    assert cpu.figures is not None
    assert cpu.figures.peak_allocated_bytes == 16
    assert (cpu.figures.peak_reserved_bytes, cpu.figures.fragmentation_bytes) == (None, None)
    assert cpu.categories[0].bytes is None
    assert "of what was allocated while it recorded" in cpu.headline
    with pytest.raises(KeyError):
        memory_page(view, ref, view.selection(), "1")


def test_an_iteration_can_be_looked_at_alone(view: ProfileView, ref: RunRef) -> None:
    second = memory_page(view, ref, view.selection(1, 1))
    assert second.figures is not None
    assert second.peak is not None
    assert second.figures.peak_allocated_bytes == GIB + 2 * LEAKED + 4096
    assert (second.peak.iteration_number, second.peak.time_ns) == (11, 15_000)


def test_a_recording_without_memory_says_how_to_get_it(gpu_view: ProfileView, ref: RunRef) -> None:
    page = memory_page(gpu_view, ref, gpu_view.selection())
    assert "profile_memory=True" in page.headline
    assert "profile_memory=True" in page.how_to_record
    assert (page.figures, page.curve, page.device, page.rows, page.devices) == (None, None, None, [], [])


def test_the_page_of_a_huge_recording_stays_small(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    for step in range(700):
        trace.step(step, 100 * step, 100)
    for module in range(1500):
        trace.module(f"model.encoder.layers.{module}.feed_forward.projection", 40 * module, 30)
        trace.op(f"aten::some_rather_long_operator_{module}", 40 * module + 1, 20, seq=module)
    trace.backward("X", 69_990, 1, 5)
    view = trace.view()
    ops = np.flatnonzero(view.call_top >= 0)
    count = 200_000
    size = np.random.default_rng(0).integers(1 << 20, 1 << 34, count)
    none, zero = np.full(count, -1), np.zeros(count, dtype=np.int64)
    memory = Memory(
        np.sort(np.random.default_rng(1).integers(0, 70_000_000, count)), size, np.cumsum(size), np.cumsum(size), zero,
        np.random.default_rng(2).choice(ops, count), none,
    )  # fmt: skip
    view = ProfileView(replace(view.profile, memory=memory))
    page = memory_page(view, ref, view.selection())
    assert page.figures is not None
    assert page.curve is not None
    assert page.figures.peak_allocated_bytes == int(size.sum()) == max(page.curve.allocated)
    assert (page.total_rows, len(page.rows)) == (count, 200)
    assert len(page.curve.time_ns) <= 2000
    assert len(msgspec.json.encode(page)) < MAX_RESPONSE_BYTES
