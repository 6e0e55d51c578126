"""Each GPU activity is tied to the call that launched it, or it is said why not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_dlprof_plugin.metrics.kernels import coverage
from tb_dlprof_plugin.model.profile import Attribution, CallKind, Profile
from tb_dlprof_plugin.profile_view import ProfileView


def _launches(profile: Profile) -> list[tuple[str, str | None, str]]:
    """Kernel name, name of the launching call, attribution."""
    ops, strings = profile.ops, profile.strings
    return [
        (
            strings[profile.kernels.name[kernel]],
            strings[ops.name[profile.calls.op[call]]] if call >= 0 else None,
            Attribution(attribution).name,
        )
        for kernel, call, attribution in zip(
            profile.launches.kernel, profile.launches.call, profile.launches.attribution, strict=True
        )
    ]


@pytest.mark.parametrize(
    ("name", "cat"), [("cudaLaunchKernel", "cuda_runtime"), ("cuLaunchKernelEx", "cuda_driver"), ("x", "Runtime")]
)
def test_a_kernel_is_linked_by_correlation_to_its_runtime_or_driver_call(new_trace, name: str, cat: str) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10)
    trace.runtime(2, 3, 44, name=name, cat=cat)
    trace.kernel("k", 100, 5, 44)
    assert _launches(trace.profile()) == [("k", name, "LINKED")]


def test_a_kernel_without_a_launch_call_is_linked_by_its_external_id(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::linear", 0, 20, ext=1)
    trace.op("aten::mm", 2, 10, ext=2)
    trace.kernel("k", 100, 5, ext=2)
    assert _launches(trace.profile()) == [("k", "aten::mm", "LINKED")]


def test_a_launch_in_no_op_falls_back_to_the_external_id(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10, ext=2)
    trace.runtime(20, 3, 44)
    trace.kernel("k", 100, 5, 44, ext=2)
    assert _launches(trace.profile()) == [("k", "aten::mm", "LINKED")]


def test_a_kernel_queued_before_every_recorded_launch_is_an_orphan(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10)
    trace.runtime(2, 3, 44)
    trace.kernel("before", 1, 5, 43)
    trace.kernel("mine", 10, 5, 44)
    trace.kernel("lost", 20, 5, 45)
    profile = trace.profile()
    assert _launches(profile) == [
        ("before", None, "ORPHAN"),
        ("mine", "cudaLaunchKernel", "LINKED"),
        ("lost", None, "UNATTRIBUTED"),
    ]
    counts = {note.code: note.count for note in profile.notes}
    assert counts == {"no_steps": None, "no_modules": None, "orphans": 1, "unattributed": 1, "no_shapes": None}


def test_a_launch_outside_every_op_is_unattributed_but_keeps_its_call(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10)
    trace.runtime(20, 3, 44)
    trace.kernel("k", 100, 5, 44)
    assert _launches(trace.profile()) == [("k", "cudaLaunchKernel", "UNATTRIBUTED")]


def test_kernels_are_never_linked_by_the_clock(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10)
    trace.kernel("k", 2, 5)
    assert _launches(trace.profile()) == [("k", None, "UNATTRIBUTED")]


def test_a_recording_of_kernels_alone_is_a_profile(new_trace) -> None:
    trace = new_trace()
    trace.kernel("k", 0, 5, 3)
    profile = trace.profile()
    assert _launches(profile) == [("k", None, "UNATTRIBUTED")]
    assert len(profile.calls) == 0
    assert coverage(ProfileView(profile)).total_ns == 5_000


_ID = st.one_of(st.none(), st.integers(1, 12))


@given(
    launches=st.lists(st.tuples(st.integers(0, 60), st.integers(3, 10)), max_size=8),
    kernels=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 20), _ID, _ID), min_size=1, max_size=15),
)
def test_linked_orphan_and_unattributed_time_is_all_gpu_time(new_trace, launches, kernels) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 30, ext=4)
    trace.op("aten::add", 40, 10, ext=5)
    for at, correlation in launches:
        trace.runtime(at, 1, correlation)
    for at, duration, correlation, external in kernels:
        trace.kernel("k", at, duration, correlation, ext=external)

    profile = trace.profile()
    found = coverage(ProfileView(profile))

    assert found.total_ns == 1000 * sum(duration for _, duration, _, _ in kernels)
    assert found.linked_ns + found.orphan_ns + found.unattributed_ns == found.total_ns
    linked = profile.launches.attribution == Attribution.LINKED
    kinds = profile.ops.kind[profile.calls.op[profile.launches.call[linked]]]
    assert set(kinds.tolist()) <= {CallKind.OP, CallKind.RUNTIME}
    assert (profile.launches.call[profile.launches.attribution == Attribution.ORPHAN] == -1).all()
