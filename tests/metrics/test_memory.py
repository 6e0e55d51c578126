"""What was allocated, by category, module and moment: a literal trace, summed by hand, and one of an H200."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.metrics.memory import (
    CATEGORIES,
    CPU,
    DeviceMemory,
    growth,
    growth_per_iteration,
    kept_allocations,
    recorded_devices,
)
from tb_dlprof_plugin.model.profile import Memory
from tb_dlprof_plugin.profile_view import ProfileView, Selection

RECORDED = Path(__file__).parent / "recorded"
TRACES = Path(__file__).parents[1] / "traces"
BACKWARD_THREAD = 2
OLD, INPUT, WORKSPACE, OUTPUT, GRADIENT, SCRATCH, STATE = 1, 2, 3, 4, 5, 6, 7


class Allocator:
    """Writes events with the device's running total."""

    def __init__(self, trace, total: int, device: int | None = 0) -> None:
        self.trace, self.total, self.device = trace, total, device

    def __call__(self, at: float, size: int, address: int, tid: int = 1) -> None:
        self.total += size
        reserved = 4096 if self.device is not None else 0
        self.trace.memory(
            at, size, address, allocated=self.total, reserved=reserved, device=self.device, tid=tid
        )  # fmt: skip


def _recording(new_trace, totals: bool = True, addresses: bool = True):
    """Three steps of 100 µs of a linear layer on GPU 0, which holds 1300 bytes before; the third only frees."""
    trace = new_trace()
    trace.gpu()
    allocate = Allocator(trace, 1300)
    for step in range(2):
        at = 100 * step
        trace.step(step, at, 100)
        allocate(at + 1, -300, OLD if step == 0 else GRADIENT)
        trace.op("aten::randn", at + 2, 4)
        allocate(at + 3, 50, INPUT)
        trace.module("fc", at + 10, 30)
        trace.op("aten::linear", at + 12, 18, seq=step)
        allocate(at + 14, 64, WORKSPACE)
        allocate(at + 18, -64, WORKSPACE)
        allocate(at + 20, 200, OUTPUT)
        trace.backward("AddmmBackward0", at + 50, 20, step)
        allocate(at + 55, 300, GRADIENT, BACKWARD_THREAD)
        allocate(at + 60, -200, OUTPUT, BACKWARD_THREAD)
        trace.optimizer(at + 80, 12)
        trace.op("aten::_foreach_add", at + 82, 4)
        allocate(at + 83, 40, SCRATCH)
        if step == 0:
            allocate(at + 84, 500, STATE)
        trace.op("aten::_foreach_mul_", at + 88, 3)
        allocate(at + 89, -40, SCRATCH)
        allocate(at + 95, -50, INPUT)
    trace.step(2, 200, 100)
    trace.op("aten::add_", 202, 4)
    allocate(203, -300, GRADIENT)
    if not totals:
        for event in trace.events:
            if event["name"] == "[memory]":
                del event["args"]["Total Allocated"], event["args"]["Total Reserved"]
    if not addresses:
        for event in trace.events:
            event.get("args", {}).pop("Addr", None)
    return trace.view()


@pytest.fixture(scope="module")
def view(new_trace) -> ProfileView:
    made: ProfileView = _recording(new_trace)
    return made


@pytest.fixture(scope="module")
def memory(view: ProfileView) -> DeviceMemory:
    return DeviceMemory(view, 0)


def _named(values) -> dict[str, int | None]:
    return dict(zip(CATEGORIES, values, strict=True))


def test_the_peak_is_the_devices_own_total_and_its_categories_sum_to_it(memory: DeviceMemory) -> None:
    peak = memory.peak(memory.window(0, 2))
    assert (peak.allocated, peak.time_ns, peak.reserved) == (2050, 155_000, 4096)
    assert _named(peak.category_bytes) == {
        "before": 1000, "activations": 200, "gradients": 300, "optimizer_state": 500, "temporary": 0, "other": 50,
    }  # fmt: skip


def test_each_iteration_has_a_peak_of_its_own(memory: DeviceMemory) -> None:
    first = memory.peak(memory.window(0, 0))
    assert (first.allocated, first.time_ns) == (1890, 84_000)
    # What one op of the optimizer leaves to the next one is temporary.
    assert _named(first.category_bytes) == {
        "before": 1000, "activations": 0, "gradients": 300, "optimizer_state": 500, "temporary": 40, "other": 50,
    }  # fmt: skip


def test_a_peak_can_be_carried_into_an_iteration(memory: DeviceMemory) -> None:
    last = memory.peak(memory.window(2, 2))
    assert (last.allocated, last.time_ns, last.call) == (1800, 200_000, -1)
    assert _named(last.category_bytes)["gradients"] == 300


def test_the_categories_sum_to_the_devices_total_at_every_moment(memory: DeviceMemory) -> None:
    assert memory.category_bytes.sum(axis=0).tolist() == memory.allocated.tolist()
    assert (memory.category_bytes >= 0).all()
    assert memory.contradictions == 0
    before = memory.category_bytes[CATEGORIES.index("before")]
    assert (before[0], before[1], before[-1]) == (1300, 1000, 1000)


def test_own_peaks_are_each_at_a_moment_of_its_own(memory: DeviceMemory) -> None:
    assert _named(memory.own_category_peaks(memory.window(0, 2))) == {
        "before": 1300, "activations": 200, "gradients": 300, "optimizer_state": 500, "temporary": 64, "other": 50,
    }  # fmt: skip
    assert _named(memory.own_category_peaks(memory.window(1, 1)))["before"] == 1000


def test_groups_hold_what_is_alive_at_the_peak_and_have_peaks_of_their_own(memory: DeviceMemory) -> None:
    window = memory.window(0, 2)
    group = np.where(memory.bytes >= 200, 1, 0)
    found = memory.group_peaks(group, 3, memory.peak(window).state, window)
    assert found.bytes.tolist() == [50, 1000, 0]
    assert found.allocations.tolist() == [1, 3, 0]
    assert found.own_peak.tolist() == [114, 1000, 0]
    # Step 1 begins with the state of the optimizer and the gradient.
    only_last = memory.group_peaks(group, 3, memory.window(2, 2).first, memory.window(2, 2))
    assert only_last.own_peak.tolist() == [0, 800, 0]


def test_growth_is_what_an_iteration_leaves(view: ProfileView, memory: DeviceMemory) -> None:
    assert growth(memory, view.selection()) == [500, 0, -300]
    kept = np.flatnonzero(kept_allocations(memory, Selection(0, 1)))
    assert memory.bytes[kept].tolist() == [500]


def test_memory_of_a_recording_without_calls_is_of_no_known_part(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.kernel("kernel", 0, 50)
    allocate = Allocator(trace, 0)
    for at, size, address in ((10, 100, 1), (20, -100, 1), (30, 50, 2), (40, -300, 3)):
        allocate(at, size, address)
    view = trace.view()
    assert len(view.profile.calls) == 0
    assert [CATEGORIES[i] for i in DeviceMemory(view, 0).category] == ["other", "other", "other", "before"]


def test_without_totals_only_recorded_allocations_count(new_trace) -> None:
    memory = DeviceMemory(_recording(new_trace, totals=False), 0)
    peak = memory.peak(memory.window(0, 2))
    assert not memory.has_totals
    assert (peak.allocated, peak.reserved) == (1050, None)
    assert _named(peak.category_bytes)["before"] is None
    assert sum(value or 0 for value in peak.category_bytes) == 1050


def test_without_addresses_and_totals_allocated_is_the_running_sum_above_its_lowest_moment(new_trace) -> None:
    view = _recording(new_trace, totals=False, addresses=False)
    memory = DeviceMemory(view, 0)
    whole = DeviceMemory(_recording(new_trace), 0)
    assert (memory.relative, memory.partners_known) == (True, False)
    # The first event frees 300 bytes that were there before: the lowest moment, 1000 bytes in all.
    assert memory.known_before == 300
    assert (memory.allocated == whole.allocated - 1000).all()
    assert growth(memory, view.selection()) == [500, 0, -300]
    peak, in_all = (device.peak(device.window(0, 2)) for device in (memory, whole))
    assert (peak.allocated, peak.time_ns, peak.call) == (1050, in_all.time_ns, in_all.call)


def test_without_addresses_the_totals_are_used_where_they_are_recorded(new_trace) -> None:
    memory, whole = DeviceMemory(_recording(new_trace, addresses=False), 0), DeviceMemory(_recording(new_trace), 0)
    assert (memory.relative, memory.known_before, memory.contradictions) == (False, 0, 0)
    assert (memory.allocated == whole.allocated).all()
    assert memory.peak(memory.window(0, 2)).reserved == 4096


@pytest.mark.parametrize("totals", [True, False])
def test_without_addresses_neither_categories_nor_what_is_alive_is_known(new_trace, totals: bool) -> None:
    view = _recording(new_trace, totals=totals, addresses=False)
    memory = DeviceMemory(view, 0)
    window = memory.window(0, 2)
    assert set(memory.peak(window).category_bytes) == {None}
    assert set(memory.own_category_peaks(window)) == {None}
    with pytest.raises(ValueError, match="addresses were not recorded"):
        memory.alive(window.last)
    with pytest.raises(ValueError, match="addresses were not recorded"):
        kept_allocations(memory, view.selection())


def test_a_recording_of_torch_1_9_ends_with_what_its_events_sum_to() -> None:
    memory = DeviceMemory(ProfileView(analyze_trace(TRACES / "torch_1_9_cpu_memory.pt.trace.json.gz")), CPU)
    assert memory.relative
    # torch of that time does not write frees of older CPU memory: the sum never falls below its start.
    assert (memory.known_before, memory.allocated[0], memory.allocated[-1]) == (0, 0, memory.bytes.sum())


def test_events_that_the_total_does_not_confirm_are_counted(view: ProfileView) -> None:
    lost = np.arange(len(view.profile.memory)) != 5
    columns = {name: getattr(view.profile.memory, name)[lost] for name in Memory.__slots__}
    columns["partner"] = np.full(lost.sum(), -1)
    memory = DeviceMemory(ProfileView(replace(view.profile, memory=Memory(**columns))), 0)
    assert memory.contradictions == 1
    assert memory.category_bytes.sum(axis=0).tolist() == memory.allocated.tolist()


def test_gpus_come_before_the_cpu_whose_old_memory_is_unknown(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::add", 10, 10)
    Allocator(trace, 0, None)(12, 8, 1)
    Allocator(trace, 0, 1)(13, 16, 1)
    Allocator(trace, 0, 0)(14, 32, 1)
    view = trace.view()
    assert recorded_devices(view.profile) == [0, 1, CPU]
    cpu = DeviceMemory(view, CPU)
    peak = cpu.peak(cpu.window(0, 0))
    assert (peak.allocated, peak.reserved, peak.category_bytes[0]) == (8, None, None)


def test_a_decimated_curve_keeps_the_peaks_and_only_real_moments(view: ProfileView) -> None:
    memory = DeviceMemory(_many(view, 100_000), 0)
    window = memory.window(0, 2)
    states = memory.curve_states(window, 2004)
    assert len(states) <= 2004
    assert (np.diff(states) > 0).all()
    assert (states[0], states[-1]) == (window.first, window.last)
    assert memory.peak(window).state in states
    # Of a thousand stretches of time the highest moment is drawn, so of a hundred, too.
    time = np.maximum(memory.time_ns[np.maximum(np.arange(window.first, window.last + 1) - 1, 0)], 0)
    stretch = (time * 100) // window.stop_ns
    for index in range(100):
        inside = np.flatnonzero(stretch == index) + window.first
        assert memory.allocated[inside].max() == memory.allocated[np.intersect1d(inside, states)].max()


def _many(view: ProfileView, count: int) -> ProfileView:
    """The view's recording with ``count`` allocations of random sizes, each freed a few events later."""
    random = np.random.default_rng(0)
    size = random.integers(1, 1 << 20, count // 2)
    time = np.sort(random.integers(0, 300_000, count))
    partner = np.arange(count) ^ 1
    delta = np.stack((size, -size), axis=1).reshape(-1)
    # Pairs are interleaved, so that several live at once.
    order = np.argsort(np.arange(count) + 7 * (delta < 0), kind="stable")
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    total = np.cumsum(delta[order])
    call = random.integers(-1, len(view.profile.calls), count)
    zero = np.zeros(count, dtype=np.int64)
    return ProfileView(
        replace(view.profile, memory=Memory(time, delta[order], total, total + 1, zero, call, place[partner[order]]))
    )


@pytest.fixture(scope="module")
def h200() -> DeviceMemory:
    return DeviceMemory(ProfileView(analyze_trace(RECORDED / "resnet18_memory_h200.pt.trace.json.gz")), 0)


@pytest.fixture(scope="module")
def reported() -> list[dict[str, dict[str, int]]]:
    """Per step what torch.cuda said at the end of forward, backward and the step."""
    steps: list[dict[str, dict[str, int]]] = json.loads((RECORDED / "resnet18_memory_h200.json").read_text())
    return steps


def test_peaks_on_an_h200_are_those_that_torch_cuda_reports(h200: DeviceMemory, reported) -> None:
    for index, step in enumerate(reported):
        window = h200.window(index, index)
        assert h200.peak(window).allocated == step["end"]["peak"]
        assert h200.peak_reserved(window) == step["end"]["peak_reserved"]


def test_what_a_step_leaves_on_an_h200_is_what_torch_cuda_reports(h200: DeviceMemory, reported) -> None:
    ends = [int(h200.allocated[h200.window(index, index).last]) for index in range(2)]
    assert ends == [step["end"]["allocated"] for step in reported]


def test_an_h200s_recording_is_consistent(h200: DeviceMemory) -> None:
    assert h200.contradictions == 0
    assert (h200.category_bytes >= 0).all()
    before = h200.category_bytes[CATEGORIES.index("before")]
    assert (np.diff(before) <= 0).all()


def test_on_an_h200_weights_and_adams_state_are_from_before_and_gradients_stay(h200: DeviceMemory) -> None:
    parameters = 11_689_512
    end = _named(h200.category_bytes[:, h200.window(0, 0).last].tolist())
    # Four bytes each for a weight and its two moments; buffers and the libraries' workspace come on top.
    assert end["before"] > 3 * 4 * parameters
    # The allocator rounds up to 512 bytes, and to 2 MiB where a block is not worth splitting.
    assert 4 * parameters <= end["gradients"] <= 1.1 * 4 * parameters
    assert end["optimizer_state"] == end["temporary"] == 0


@pytest.mark.parametrize("name", ["all_options", "cpu_all_options", "cpu_memory", "with_memory"])
def test_every_recording_explains_its_devices_totals_to_the_byte(name: str) -> None:
    profile = analyze_trace(TRACES / f"{name}.pt.trace.json.gz")
    devices = recorded_devices(profile)
    assert devices
    for device in devices:
        memory = DeviceMemory(ProfileView(profile), device)
        assert memory.has_totals
        assert memory.contradictions == 0
        assert (memory.category_bytes >= 0).all()
        assert memory.category_bytes.sum(axis=0).tolist() == memory.allocated.tolist()


def test_gpu_bytes_by_op_are_those_of_key_averages() -> None:
    profile = analyze_trace(TRACES / "with_memory.pt.trace.json.gz")
    memory = DeviceMemory(ProfileView(profile), 0)
    ours: dict[str, int] = {}
    for call, size in zip(memory.call.tolist(), memory.bytes.tolist(), strict=True):
        if call >= 0:
            name = profile.strings[profile.ops.name[profile.calls.op[call]]]
            ours[name] = ours.get(name, 0) + size
    rows = json.loads(gzip.decompress((TRACES / "with_memory.key_averages.json.gz").read_bytes()))["rows"]
    theirs = {row["key"]: row["self_device_memory_usage"] for row in rows if row.get("self_device_memory_usage")}
    # torch looks for a step's events by time alone, so its own figure holds those of the backward thread as well.
    assert theirs.pop("ProfilerStep*") != 0
    assert {name: size for name, size in ours.items() if size and not name.startswith("ProfilerStep#")} == theirs


@pytest.mark.parametrize(
    ("by_iteration", "rate"),
    [
        ([119, 0, 0, 0], 0),  # gradients that are there from the first backward pass on
        ([0, 0, 0, 119], 0),  # what the last step leaves, which the next one would free
        ([119, 3, 3, 4, 3], 3),
        ([0, 5, 5, 5, -15], 0),  # the curve returns
        ([0, -2, -2], -2),
        ([119], None),
    ],
)
def test_growth_is_from_the_end_of_a_step_to_the_end_of_the_next(by_iteration: list[int], rate: int | None) -> None:
    assert growth_per_iteration(by_iteration) == rate
