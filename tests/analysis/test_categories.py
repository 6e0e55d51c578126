"""The seven time categories partition each iteration, by DLProf's precedence."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_dlprof_plugin.model.profile import TIME_CATEGORIES

TENSOR_CORE, ORDINARY, UNKNOWN = "nvjet_sm90_tst_64x64_TNT", "ampere_sgemm_128x64_nn", "made_up_by_a_user"

_LAYERS = ("tensor_core", "other_kernels", "memory", "dataloader", "cpu")
_EVENTS = st.lists(
    st.tuples(st.sampled_from(_LAYERS), st.integers(0, 110), st.integers(0, 40), st.integers(0, 1)), max_size=25
)


def _add(trace, layer: str, start: float, dur: float, device: int = 0, thread: int = 1) -> None:
    if layer in ("tensor_core", "other_kernels"):
        trace.kernel(TENSOR_CORE if layer == "tensor_core" else ORDINARY, start, dur, device=device)
    elif layer == "memory":
        trace.kernel("Memset (Device)", start, dur, device=device, cat="gpu_memset")
    elif layer == "dataloader":
        trace.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, dur, tid=thread)
    else:
        trace.runtime(start, dur, tid=thread)


def test_each_category_takes_what_those_before_it_leave(new_trace) -> None:
    # GIVEN one interval of each kind, each starting 10 µs earlier than the one of the next higher precedence
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::mm", 10, 50)
    trace.loader(20, 40)
    trace.kernel("Memcpy HtoD", 30, 30, cat="gpu_memcpy")
    trace.kernel(ORDINARY, 40, 20)
    trace.kernel(TENSOR_CORE, 50, 10)
    iterations = trace.profile().iterations
    assert dict(zip(TIME_CATEGORIES, iterations.category_ns[0, 0].tolist(), strict=True)) == {
        "tensor_core": 10_000,
        "other_kernels": 10_000,
        "memory": 10_000,
        "dataloader": 10_000,
        "io": 0,
        "cpu": 10_000,
        "other": 50_000,
    }
    assert iterations.unrecorded_categories == ("io",)


def test_an_unknown_kernel_counts_among_the_other_kernels(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 10)
    trace.kernel(UNKNOWN, 2, 3)
    assert trace.profile().iterations.category_ns.tolist() == [[[0, 3_000, 0, 0, 0, 0, 7_000]]]


def test_module_ranges_and_user_annotations_are_no_cpu_time(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.module("fc", 10, 50)
    trace.annotation("my block", 10, 70)
    trace.op("aten::mm", 20, 5)
    assert trace.profile().iterations.category_ns.tolist() == [[[0, 0, 0, 0, 0, 5_000, 95_000]]]


def test_each_gpu_is_accounted_for_by_itself(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 10)
    trace.kernel(ORDINARY, 0, 4, device=0)
    trace.kernel(TENSOR_CORE, 2, 3, device=3)
    iterations = trace.profile(rank=0).iterations
    assert iterations.gpu_ids == (0, 3)
    # The capability of the GPU is not known, so the name alone decides.
    assert iterations.category_ns.tolist() == [[[0, 4_000, 0, 0, 0, 0, 6_000], [3_000, 0, 0, 0, 0, 0, 7_000]]]


def test_an_event_across_a_boundary_counts_in_both_iterations(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 10)
    trace.step(1, 10, 10)
    trace.kernel(ORDINARY, 7, 8)
    assert trace.profile().iterations.category_ns[:, 0, 1].tolist() == [3_000, 5_000]


@given(events=_EVENTS, boundaries=st.lists(st.integers(1, 150), min_size=1, max_size=4, unique=True))
def test_categories_equal_a_model_that_looks_at_each_nanosecond(new_trace, events, boundaries: list[int]) -> None:
    # GIVEN overlapping events of all kinds on two GPUs, in nanoseconds
    trace = new_trace()
    edges = [0, *sorted(boundaries)]
    # A step without an op would be left out as unfinished.
    events = [*events, *(("cpu", start, 1, 0) for start in edges[:-1])]
    for number, (start, stop) in enumerate(itertools.pairwise(edges)):
        trace.step(number, start / 1000, (stop - start) / 1000)
        # On a thread of its own: inside a loader's call it would be the loader's.
        trace.op("aten::mm", start / 1000, 0.001, tid=9)
    for number, (layer, start, duration, device) in enumerate(events):
        # On threads of their own: what overlaps on one thread is shortened.
        _add(trace, layer, start / 1000, duration / 1000, device, thread=100 + number)

    iterations = trace.profile().iterations

    def model(gpu: int) -> list[list[int]]:
        result = np.zeros((len(edges) - 1, len(TIME_CATEGORIES)), dtype=int)
        for row, (start, stop) in enumerate(itertools.pairwise(edges)):
            for moment in range(start, stop):
                running = {
                    layer
                    for layer, begin, duration, device in events
                    if begin <= moment < begin + duration and (layer in ("dataloader", "cpu") or device == gpu)
                }
                first = next((name for name in TIME_CATEGORIES if name in running), "other")
                result[row, TIME_CATEGORIES.index(first)] += 1
        return result.tolist()

    assert iterations.category_ns.swapaxes(0, 1).tolist() == [model(gpu) for gpu in iterations.gpu_ids or (-1,)]
    assert (iterations.category_ns.sum(axis=2) == iterations.duration_ns[:, None]).all()
