"""Memory that torch itself recorded on the CPU, against the sizes of known tensors and torch's own averages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.metrics.memory import CATEGORIES, CPU, DeviceMemory
from tb_dlprof_plugin.profile_view import ProfileView

torch = pytest.importorskip("torch")

BATCH, INPUTS, HIDDEN, OUTPUTS = 32, 64, 128, 10
FLOAT = 4
PARAMETERS = INPUTS * HIDDEN + HIDDEN + HIDDEN * OUTPUTS + OUTPUTS
TENSORS = 4
STEPS = 3


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[DeviceMemory, Any]:
    """Three steps of a two-layer network with Adam, whose first step is the first recorded one."""
    path = tmp_path_factory.mktemp("torch") / "memory.pt.trace.json"
    model = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, OUTPUTS)
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    inputs = torch.randn(BATCH, INPUTS)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        profile_memory=True,
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=lambda made: made.export_chrome_trace(str(path)),
        acc_events=True,
    ) as profiler:
        for step in range(1 + STEPS):
            optimizer.zero_grad()
            output = model(inputs)
            loss = output.sum()
            with torch.profiler.record_function("forward is over"):
                pass
            loss.backward()
            if step > 0:
                optimizer.step()
            del output, loss
            profiler.step()
    return DeviceMemory(ProfileView(analyze_trace(path)), CPU), profiler.key_averages()


def _state_at(memory: DeviceMemory, annotation: str, which: int) -> int:
    profile = memory.view.profile
    names = np.array(profile.strings)[profile.ops.name[profile.calls.op]]
    start = profile.calls.start_ns[names == annotation][which]
    return int(np.searchsorted(memory.time_ns, start))


def _at(memory: DeviceMemory, state: int) -> dict[str, int]:
    return dict(zip(CATEGORIES, memory.category_bytes[:, state].tolist(), strict=True))


def test_activations_after_the_forward_pass_are_what_the_backward_pass_needs(recorded) -> None:
    memory, _ = recorded
    for which in range(STEPS):
        # The ReLU's output, which the second layer keeps, the output and the loss. The first layer's output is gone.
        expected = BATCH * HIDDEN * FLOAT + BATCH * OUTPUTS * FLOAT + FLOAT
        assert _at(memory, _state_at(memory, "forward is over", which))["activations"] == expected


def test_gradients_after_a_step_are_those_of_the_parameters(recorded) -> None:
    memory, _ = recorded
    for index in range(STEPS):
        assert _at(memory, memory.window(index, index).last)["gradients"] == PARAMETERS * FLOAT


def test_adams_state_is_two_moments_and_a_step_per_tensor(recorded) -> None:
    memory, _ = recorded
    for index in range(STEPS):
        expected = 2 * PARAMETERS * FLOAT + TENSORS * FLOAT
        assert _at(memory, memory.window(index, index).last)["optimizer_state"] == expected


def test_nothing_temporary_or_active_is_left_after_a_step(recorded) -> None:
    memory, _ = recorded
    end = _at(memory, memory.window(0, STEPS - 1).last)
    assert (end["activations"], end["temporary"], end["other"]) == (0, 0, 0)


def test_the_categories_sum_to_torchs_total_at_every_event(recorded) -> None:
    memory, _ = recorded
    assert memory.has_totals
    assert memory.reserved is None
    assert memory.contradictions == 0
    assert memory.category_bytes.sum(axis=0).tolist() == memory.allocated.tolist()
    # Other than 0 where an earlier recording of this process left memory behind, and nothing of it is freed here.
    assert len(set(memory.category_bytes[CATEGORIES.index("before")].tolist())) == 1
    assert (memory.category_bytes >= 0).all()


def test_bytes_by_op_are_those_of_key_averages(recorded) -> None:
    memory, averages = recorded
    profile = memory.view.profile
    ours: dict[str, int] = {}
    for call, size in zip(memory.call.tolist(), memory.bytes.tolist(), strict=True):
        name = profile.strings[profile.ops.name[profile.calls.op[call]]] if call >= 0 else "[memory]"
        name = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        ours[name] = ours.get(name, 0) + size
    theirs = {row.key: row.self_cpu_memory_usage for row in averages if row.self_cpu_memory_usage}
    assert {name: size for name, size in ours.items() if size} == theirs
