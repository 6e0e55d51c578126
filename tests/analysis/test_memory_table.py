"""Which free ends which allocation, and which call made it."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.model.profile import PARTNER_UNKNOWN, Memory, Profile
from tb_dlprof_plugin.store.codec import decode, encode

MAIN, BACKWARD = 1, 2


@pytest.fixture(scope="module")
def profile(new_trace) -> Profile:
    """Two threads that run at the same time, and the addresses 10 and 20."""
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.op("aten::linear", 10, 30, seq=1)
    trace.op("aten::addmm", 12, 20)
    trace.op("aten::mm", 15, 20, tid=BACKWARD)
    trace.memory(5, -64, 30)
    trace.memory(13, 64, 10)
    trace.memory(16, 32, 20, tid=BACKWARD)
    trace.memory(35, -64, 10)
    trace.memory(38, 128, 10)
    trace.memory(50, 16, 10, device=0)
    trace.memory(60, -128, 10)
    trace.memory(70, 8, 10)
    made: Profile = trace.profile()
    return made


@pytest.fixture(scope="module")
def memory(profile: Profile) -> Memory:
    return profile.memory


def test_events_stand_in_order_of_time_with_their_bytes_and_device(memory: Memory) -> None:
    assert memory.time_ns.tolist() == [t * 1000 for t in (5, 13, 16, 35, 38, 50, 60, 70)]
    assert memory.bytes.tolist() == [-64, 64, 32, -64, 128, 16, -128, 8]
    assert memory.device.tolist() == [-1, -1, -1, -1, -1, 0, -1, -1]


def test_a_free_ends_the_last_allocation_at_its_address_on_its_device(memory: Memory) -> None:
    assert memory.partner.tolist() == [-1, 3, -1, 1, 6, -1, 4, -1]


def test_an_event_belongs_to_the_innermost_call_of_its_own_thread(profile: Profile) -> None:
    names = [profile.strings[profile.ops.name[op]] for op in profile.calls.op]
    assert [names[call] for call in profile.memory.call.tolist()] == [
        "ProfilerStep#1", "aten::addmm", "aten::mm", "aten::linear", "aten::linear", *["ProfilerStep#1"] * 3,
    ]  # fmt: skip


def test_the_partner_of_an_event_without_an_address_is_unknown(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::add", 0, 10)
    trace.memory(1, 64, None)
    trace.memory(2, -64, None)
    trace.memory(3, 32, 10)
    memory = decode(encode(trace.profile())).memory
    assert memory.partner.tolist() == [PARTNER_UNKNOWN, PARTNER_UNKNOWN, -1]


def test_an_allocation_whose_free_was_lost_has_no_partner(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::add", 0, 10)
    trace.memory(1, 64, 10)
    trace.memory(2, 32, 10)
    trace.memory(3, -32, 10)
    assert trace.profile().memory.partner.tolist() == [-1, 2, 1]


def test_a_trace_without_memory_events_has_an_empty_table(cpu_view) -> None:
    assert len(cpu_view.profile.memory) == 0
