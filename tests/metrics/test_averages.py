"""`operator_averages` against `torch.profiler`'s own `key_averages()`, on the same profile object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.metrics.averages import OperatorAverage, operator_averages
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.profile_view import ProfileView

torch = pytest.importorskip("torch")

Averages = dict[str, tuple[int, float, float]]


def _model() -> Any:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 10)
    )


def _train(step: Callable[[], None], autocast: bool = False) -> None:
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = torch.utils.data.TensorDataset(torch.randn(16, 3, 16, 16), torch.randint(0, 10, (16,)))
    for images, labels in torch.utils.data.DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        step()


def _without_schedule() -> Any:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        _train(lambda: None)
    return prof


def _with_steps() -> Any:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        _train(prof.step, autocast=True)
    return prof


def _with_schedule() -> Any:
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule, on_trace_ready=lambda p: None
    ) as prof:
        _train(prof.step)
    return prof


def _nested_names() -> Any:
    matrix = torch.randn(8, 8)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        for _ in range(3):
            # Only child of the same name: one call. Two children of the same name: three.
            with torch.profiler.record_function("block"), torch.profiler.record_function("block"):
                matrix @ matrix
            with torch.profiler.record_function("pair"):
                with torch.profiler.record_function("pair"):
                    matrix + matrix
                with torch.profiler.record_function("pair"):
                    matrix * matrix
    return prof


RECORDINGS = {
    "fp32 without schedule": _without_schedule,
    "bf16 autocast with steps": _with_steps,
    "schedule": _with_schedule,
    "nested same names": _nested_names,
}


@pytest.fixture(scope="module", params=list(RECORDINGS))
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ProfileView]:
    """A torch profile and our view of the trace it exports."""
    torch.manual_seed(0)
    _train(lambda: None)  # first calls of oneDNN are slow and recorded nowhere
    prof = RECORDINGS[request.param]()
    path: Path = tmp_path_factory.mktemp("torch") / "worker.pt.trace.json"
    prof.export_chrome_trace(str(path))
    return prof, ProfileView(analyze_trace(path))


def _torchs(prof: Any) -> Averages:
    """Per name: calls, total and self CPU time (ns), over all of torch's rows of that name."""
    result: Averages = {}
    for row in prof.key_averages():
        calls, total, own = result.get(row.key, (0, 0.0, 0.0))
        result[row.key] = (
            calls + row.count, total + 1000 * row.cpu_time_total, own + 1000 * row.self_cpu_time_total,
        )  # fmt: skip
    return result


def _ours(rows: list[OperatorAverage]) -> Averages:
    result: Averages = {}
    for row in rows:
        calls, total, own = result.get(row.name, (0, 0.0, 0.0))
        result[row.name] = (calls + row.calls, total + row.cpu_total_ns, own + row.cpu_self_ns)
    return result


def test_every_name_has_torchs_calls_and_times(recording: tuple[Any, ProfileView]) -> None:
    prof, view = recording
    theirs, ours = _torchs(prof), _ours(operator_averages(view))
    assert {name: row[0] for name, row in ours.items()} == {name: row[0] for name, row in theirs.items()}
    for name, (_, total, own) in theirs.items():
        assert ours[name][1] == pytest.approx(total, rel=1e-3, abs=1), f"total time of {name}"
        assert ours[name][2] == pytest.approx(own, rel=1e-3, abs=1), f"self time of {name}"


def test_self_times_sum_to_the_time_of_outermost_calls(recording: tuple[Any, ProfileView]) -> None:
    _, view = recording
    calls = view.profile.calls
    assert sum(row.cpu_self_ns for row in operator_averages(view)) == int(calls.duration_ns[calls.depth == 0].sum())


def test_a_recording_with_nested_names_holds_them_as_torch_counts_them(tmp_path: Path) -> None:
    prof = _nested_names()
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    counts = {row.name: row.calls for row in operator_averages(ProfileView(analyze_trace(tmp_path / "t.json")))}
    assert (counts["block"], counts["pair"]) == (3, 9)


def test_device_time_counts_for_the_op_that_launched_and_for_those_around_it(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::linear", 0, 30)
    trace.op("aten::addmm", 5, 20)
    trace.launch("ampere_sgemm_128x64_nn", 8, 20, 50)
    rows = {row.name: row for row in operator_averages(trace.view())}
    assert rows == {
        "aten::linear": OperatorAverage("aten::linear", 1, 30_000, 10_000, 50_000, 0),
        "aten::addmm": OperatorAverage("aten::addmm", 1, 20_000, 18_000, 50_000, 50_000),
        "cudaLaunchKernel": OperatorAverage("cudaLaunchKernel", 1, 2_000, 2_000, 0, 0),
    }


def test_device_times_are_none_without_a_gpu(cpu_view: ProfileView) -> None:
    rows = operator_averages(cpu_view)
    assert {(row.device_total_ns, row.device_self_ns) for row in rows} == {(None, None)}
    assert CallKind.OP in cpu_view.profile.ops.kind.tolist()
