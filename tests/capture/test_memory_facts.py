"""Storages and peaks as the hook reads them, with the answers of a GPU in the place of one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture import profile  # noqa: E402
from tb_dlprof_plugin.capture.facts import storages  # noqa: E402
from tb_dlprof_plugin.capture.facts.gpu_memory import PeakMemory  # noqa: E402
from tb_dlprof_plugin.model.run_facts import RunFacts  # noqa: E402
from tb_dlprof_plugin.store.logdir import read_profiles  # noqa: E402


class _Gpu:
    """The peak of one GPU, which a reset lowers to what is allocated."""

    def __init__(self) -> None:
        self.allocated, self.peak = 100, 4000

    def reset(self, _: int) -> None:
        self.peak = self.allocated


@pytest.fixture
def gpu(monkeypatch) -> _Gpu:
    found, cuda = _Gpu(), torch.cuda
    for name, answer in (
        ("is_initialized", lambda: True),
        ("device_count", lambda: 1),
        ("max_memory_allocated", lambda _=0: found.peak),
        ("max_memory_reserved", lambda _=0: found.peak + 50),
        ("reset_peak_memory_stats", found.reset),
    ):
        monkeypatch.setattr(cuda, name, answer)
    return found


def test_the_peak_is_that_of_the_recorded_steps(gpu: _Gpu) -> None:
    peaks, facts = PeakMemory(), RunFacts()
    peaks.begin()
    gpu.peak = 900
    peaks.begin()
    peaks.fill(facts)
    assert facts.peak_memory_allocated_bytes == 900
    assert facts.peak_memory_reserved_bytes == 950
    assert facts.process_peak_memory_bytes == 4000


def test_without_a_seen_beginning_the_peak_is_the_process_s_and_says_so(gpu: _Gpu) -> None:
    facts = RunFacts()
    PeakMemory().fill(facts)
    assert facts.peak_memory_allocated_bytes == 4000
    assert facts.process_peak_memory_bytes is None


def test_each_recording_has_its_own_peak(gpu: _Gpu) -> None:
    peaks = PeakMemory()
    for peak in (900, 700):
        peaks.begin()
        gpu.peak = peak
        facts = RunFacts()
        peaks.fill(facts)
        peaks.forget()
        assert facts.peak_memory_allocated_bytes == peak


def test_storages_are_named_once_and_other_blocks_by_what_was_asked_for(gpu: _Gpu, monkeypatch) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    model[1].tied = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    address = model[0].weight.untyped_storage().data_ptr()
    blocks = [
        {"address": address, "size": 512, "requested_size": 48, "state": "active_allocated"},
        {"address": address + 512, "size": 1024, "requested_size": 1000, "state": "active_allocated"},
        {"address": address + 1536, "size": 512, "state": "inactive"},
    ]
    monkeypatch.setattr(storages, "_is_on", lambda tensor, gpu: True)
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: [{"device": 0, "address": address, "blocks": blocks}])
    facts = RunFacts()
    storages.fill_storages(facts, model, optimizer)
    found = {(row.kind, row.module): row.bytes for row in facts.storages}
    assert found == {
        ("parameter", "0"): [48, 12],
        ("parameter", "1"): [12, 12],
        ("gradient", "0"): [48, 12],
        ("gradient", "1"): [12, 12],
        ("optimizer_state", "0"): [48, 12],
        ("optimizer_state", "1"): [12, 12],
        ("buffer", "1"): [12, 12, 8],
        ("other", ""): [1000],
    }


def test_a_run_on_the_cpu_has_neither(tmp_path) -> None:
    model = torch.nn.Linear(4, 2)
    with profile(tmp_path, model, schedule=(0, 1, 2, 1), wait=True) as prof:
        for _ in range(3):
            model(torch.randn(2, 4)).sum().backward()
            prof.step()
    (stored,) = read_profiles(tmp_path)
    facts = stored.profile.facts
    assert (facts.storages, facts.process_peak_memory_bytes) == ([], None)
