"""A stored profile comes back as it was, or says in one sentence why it cannot."""

from __future__ import annotations

import dataclasses
import gzip
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.messages import pb
from support.stored_profiles import full_profile

from tb_dlprof_plugin.model.profile import SCHEMA_VERSION
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, RunFacts, System
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.store.header import header_of, parse_header


def _assert_same(first: Any, second: Any, path: str = "profile") -> None:
    for field in dataclasses.fields(first):
        left, right, name = getattr(first, field.name), getattr(second, field.name), f"{path}.{field.name}"
        if isinstance(left, np.ndarray):
            assert (left.dtype, left.shape, left.tolist()) == (right.dtype, right.shape, right.tolist()), name
        elif dataclasses.is_dataclass(left):
            _assert_same(left, right, name)
        else:
            assert left == right, name


def test_a_profile_comes_back_column_for_column(gpu_view: ProfileView) -> None:
    profile = full_profile(gpu_view)
    structs = (profile.system, profile.facts, profile.facts.dataloader, profile.facts.ddp, profile.facts.fsdp)
    unset = [name for struct in structs for name in struct.__struct_fields__ if getattr(struct, name) is None]
    assert unset == []
    _assert_same(decode(encode(profile)), profile)


def test_what_was_not_recorded_stays_none(cpu_view: ProfileView) -> None:
    profile = decode(encode(cpu_view.profile))
    _assert_same(profile, cpu_view.profile)
    assert profile.facts == RunFacts()
    assert profile.system == System()


def test_false_and_zero_are_not_taken_for_missing(cpu_view: ProfileView) -> None:
    facts = RunFacts(training=False, parameter_count=0, dataloader=DataLoaderFacts(num_workers=0))
    assert decode(encode(dataclasses.replace(cpu_view.profile, facts=facts))).facts == facts


def test_the_same_profile_gives_the_same_bytes(gpu_view: ProfileView) -> None:
    assert encode(gpu_view.profile) == encode(gpu_view.profile)


def test_a_kernel_on_an_unnamed_device_and_a_recording_without_ops_can_be_stored(new_trace) -> None:
    trace = new_trace()
    trace.event("k", "kernel", 0, 5, pid="GPU", tid="?", correlation=3)
    profile = trace.profile()
    _assert_same(decode(encode(profile)), profile)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["op", "kernel", "copy", "step"]),
            st.integers(0, 2**40),
            st.integers(0, 2**34),
            st.integers(0, 6),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_any_recording_survives_the_round_trip(new_trace, events) -> None:
    trace = new_trace(baseTimeNanoseconds=1_700_000_000_000_000_000)
    trace.op("aten::mm", 5, 5)
    for kind, start, duration, number in events:
        if kind == "op":
            trace.op(f"op {number}", start / 1000, duration / 1000, tid=number, seq=number)
        elif kind == "step":
            trace.step(number, start / 1000, duration / 1000)
        else:
            cat = "kernel" if kind == "kernel" else "gpu_memcpy"
            trace.kernel(f"k{number}", start / 1000, duration / 1000, number, device=number % 3, cat=cat, bytes=number)
    profile = trace.profile()
    _assert_same(decode(encode(profile)), profile)


def _message(**fields) -> bytes:
    return gzip.compress(pb.Profile(**{"schema_version": SCHEMA_VERSION, **fields}).SerializeToString(), mtime=0)


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", "cut short"),
        (b"not a profile", "damaged"),
        (gzip.compress(b"\xff\xff\xff\xff", mtime=0), "damaged"),
        (gzip.compress(b"", mtime=0), "not a profile"),
        (_message(schema_version=SCHEMA_VERSION + 1), "install a newer"),
        (_message(iterations=pb.Iterations(number=[1], start_ns=[0], stop_ns=[5], category_ns=[1, 2])), "damaged"),
        (_message(iterations=pb.Iterations(unrecorded_categories=[99])), "damaged"),
        (_message(launch_configs=pb.LaunchConfigs(grid=[1, 2])), "damaged"),
        (_message(calls=pb.Calls(op=[0, 0], start_ns=[1], duration_ns=[1, 1], depth=[0, 0])), "damaged"),
        (_message(ops=pb.Ops(name=[0])), "damaged"),
    ],
)
def test_a_blob_that_is_no_profile_says_so_in_one_sentence(blob: bytes, reason: str) -> None:
    with pytest.raises(ProfileError) as caught:
        decode(blob)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_blob_cut_or_changed_anywhere_is_refused(gpu_view: ProfileView) -> None:
    blob = encode(gpu_view.profile)
    for at in range(0, len(blob) - 1, 97):
        with pytest.raises(ProfileError):
            decode(blob[:at])
    # The header's time stamp and flags are not covered by the checksum, the data and the checksum are.
    for at in range(12, len(blob), 97):
        with pytest.raises(ProfileError):
            decode(blob[:at] + bytes([blob[at] ^ 0x55]) + blob[at + 1 :])


def test_the_header_says_what_the_profile_is(training) -> None:
    profile = training("fp16").profile(session="s", rank=2, facts=RunFacts(model="LeNet"))
    header = parse_header(header_of(profile).encode())
    assert header is not None
    assert (header.session, header.rank, header.model, header.precision, header.device) == (
        "s", 2, "LeNet", "fp16", "NVIDIA H200",
    )  # fmt: skip
    assert (header.iterations, header.average_iteration_ns) == (3, 1_000_000)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16"])
def test_the_precision_observed_is_that_of_the_kernels(training, precision: str) -> None:
    assert header_of(training(precision, steps=1).profile()).precision == precision


def test_the_precision_of_a_cpu_run_is_that_of_its_matrix_inputs(cpu_view: ProfileView, new_trace) -> None:
    assert header_of(cpu_view.profile).precision == "fp32"
    trace = new_trace()
    trace.op("aten::relu", 0, 5, types=["float"])
    assert header_of(trace.profile()).precision == ""


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"hello world"])
def test_other_writers_metadata_is_no_header(content: bytes) -> None:
    assert parse_header(content) is None


def test_equal_steps_are_packed_as_far_as_they_may_be_read(new_trace) -> None:
    # GIVEN steps whose ops take other times, and each step the same: packed well, too many rows for the file's size
    trace = new_trace()
    times = (np.random.default_rng(1).integers(1, 20_000, 4_000) / 1000).tolist()
    for number in range(20):
        at = 100_000 * number
        trace.step(number, at, 100_000)
        for place, time in enumerate(times):
            trace.op("aten::relu", at + 20 * place, time)
    profile = trace.profile()
    blob = encode(profile)
    unpacked = gzip.decompress(blob)
    # WHEN it is stored THEN it is read again, and takes less than unpacked
    _assert_same(decode(blob), profile)
    assert len(gzip.compress(unpacked)) < len(blob) < 0.8 * len(unpacked)
