"""A light window's launches and calls are found in the full recording."""

from __future__ import annotations

import numpy as np
import pytest

from tb_dlprof_plugin.analysis.light_window import with_light_window
from tb_dlprof_plugin.store.codec import decode, encode

BASE = 1_700_000_000_000_000_000
GAP_US = 10_000.0
"""The light window lies so long before the recording."""
STEP_US = 500.0


@pytest.fixture
def light_trace(training, new_trace, tmp_path):
    """Makes the light trace of a training: CUDA calls and GPU activities alone, each step half as long."""

    def make(steps=3, *, change=lambda index, events: events, precision="fp32"):
        full = training(precision, steps=steps)
        light = new_trace(baseTimeNanoseconds=BASE - 1_000_000_000)
        light.folder = tmp_path
        for event in full.events:
            if event["cat"] in ("cuda_runtime", "kernel", "gpu_memcpy"):
                index, offset = divmod(event["ts"], 1000)
                if not 0 <= index < steps:
                    continue
                # The file has a base of its own.
                at = 1e6 - GAP_US + STEP_US * index + offset / 2
                found = change(int(index), [{**event, "ts": at, "dur": event["dur"] / 2}])
                light.events += found
        boundary = [BASE + int(1000 * (STEP_US * index - GAP_US)) for index in range(steps + 1)]
        return light.write(), boundary

    return make


def names(profile, launches):
    return [profile.strings[profile.kernels.name[profile.launches.kernel[row]]] for row in launches.tolist()]


def test_each_step_is_matched_with_an_iteration_launch_by_launch(training, light_trace):
    profile = training().profile()
    found = with_light_window(profile, *light_trace())
    light = found.light_window
    assert light.iteration.tolist() == [0, 1, 2]
    assert np.diff(light.boundary_ns).tolist() == [500_000] * 3
    assert light.boundary_ns[0] == BASE - 10_000_000 - profile.base_time_unix_ns
    assert (light.launches.launch >= 0).all()
    # The same kernels in the same order, of which each takes half as long.
    full = profile.launches
    assert light.launches.duration_ns.tolist() == (full.duration_ns[light.launches.launch] // 2).tolist()
    iteration = np.searchsorted(profile.iterations.host_start_ns, profile.calls.start_ns[
        full.call[light.launches.launch]], side="right") - 1  # fmt: skip
    assert iteration.tolist() == sorted(iteration.tolist())
    assert found.notes == profile.notes


def test_calls_are_those_of_the_full_recording_also_those_that_wait(training, light_trace):
    profile = training(steps=3).profile()
    found = with_light_window(profile, *light_trace())
    calls = found.light_window.calls
    ours = [found.strings[name] for name in calls.name.tolist()]
    theirs = [profile.strings[name] for name in profile.ops.name[profile.calls.op[calls.call]].tolist()]
    assert (calls.call >= 0).all()
    assert ours == theirs
    assert ours.count("cudaStreamSynchronize") == 3
    assert calls.thread.tolist() == profile.calls.thread[calls.call].tolist()
    launches = found.light_window.launches
    assert calls.call[launches.call].tolist() == profile.launches.call[launches.launch].tolist()


def test_a_step_with_one_more_small_launch_is_matched_without_that(training, light_trace):
    def with_one_more(index, events):
        (event,) = events
        if index != 1 or not event["name"].startswith("Memcpy"):
            return events
        call = {**event, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 1, "ts": event["ts"] - 3}
        more = {**event, "cat": "kernel", "name": "one_more", "dur": 1.0, "ts": event["ts"] - 2}
        for one in (call, more):
            one["args"] = {**event["args"], "correlation": 7777}
        return [call, more, event]

    found = with_light_window(training().profile(), *light_trace(change=with_one_more))
    light = found.light_window
    assert (light.iteration >= 0).all()
    assert (light.launches.launch < 0).sum() == 1
    assert light.launches.duration_ns[light.launches.launch < 0].tolist() == [1000]
    # The call that only the light window has is no call of the full one.
    assert (light.calls.call < 0).sum() == 1


def test_a_step_of_another_kind_is_matched_with_none(training, light_trace):
    found = with_light_window(training("fp16").profile(), *light_trace())
    light = found.light_window
    assert light.iteration.tolist() == [-1, -1, -1]
    assert (light.launches.launch == -1).all()
    assert (light.calls.call == -1).all()
    assert [(note.code, note.count) for note in found.notes if note.code == "light_window"] == [("light_window", 3)]


def test_what_was_launched_before_the_window_belongs_to_no_call(training, light_trace):
    path, boundary = light_trace()
    # The window begins after the first kernel's launch, and while it runs.
    light = with_light_window(training().profile(), path, [boundary[0] + 60_000, *boundary[1:]]).light_window
    assert light.launches.call[0] == light.launches.launch[0] == -1
    assert (light.launches.call[1:] >= 0).all()


def test_a_light_window_survives_the_event_file(training, light_trace):
    found = with_light_window(training().profile(), *light_trace())
    again = decode(encode(found))
    for name in ("name", "start_ns", "duration_ns", "thread", "call"):
        assert np.array_equal(getattr(again.light_window.calls, name), getattr(found.light_window.calls, name))
    for name in ("call", "start_ns", "duration_ns", "device", "stream", "launch"):
        assert np.array_equal(getattr(again.light_window.launches, name), getattr(found.light_window.launches, name))
    assert again.strings == found.strings


@pytest.mark.parametrize(("text", "says"), [("no trace", "cannot be read"), ('{"traceEvents": []}', "There is no")])
def test_a_light_window_that_cannot_be_read_costs_nothing_but_itself(training, tmp_path, text, says):
    path = tmp_path / "light.json"
    path.write_text(text)
    profile = training().profile()
    found = with_light_window(profile, path, [BASE, BASE + 1])
    assert len(found.light_window) == 0
    assert found.launches is profile.launches
    assert says in found.notes[-1].text
