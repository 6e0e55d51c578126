"""Module ranges in real traces: the user's names, proper nesting, no trace of them afterwards."""

from __future__ import annotations

import contextlib
import threading

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture.modules import ModuleRanges, walk  # noqa: E402

PREFIX = "tb_dlprof::module::"


def record(ranges, call, tmp_path):
    ranges.install()
    with torch.profiler.profile() as prof:
        call()
    ranges.remove()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    return path


def test_names_are_named_modules_paths_and_nest(tmp_path, kit):
    model = kit.Net()
    path = record(ModuleRanges(model), lambda: model(torch.randn(2, 3, 8, 8)).sum().backward(), tmp_path)
    events = kit.module_events(path)
    assert {event["name"] for event in events} == {PREFIX + name for name, _ in model.named_modules()}
    assert {event["cat"] for event in events} == {"cpu_op"}
    assert not kit.is_observed(model)
    spans = {e["name"].removeprefix(PREFIX): (e["ts"], e["ts"] + e["dur"]) for e in events}
    for name, (start, stop) in spans.items():
        parent = name.rpartition(".")[0] if name else None
        if parent is not None:
            assert spans[parent][0] <= start <= stop <= spans[parent][1]


def test_no_range_without_a_profiler_and_none_after_removal(kit):
    model = kit.Net()
    ranges = ModuleRanges(model)
    ranges.install()
    model(torch.randn(2, 3, 8, 8))
    assert not ranges.recorded
    assert ranges.observation is None
    ranges.remove()
    assert not kit.is_observed(model)
    assert not ranges.installed


def test_an_exception_in_forward_closes_its_ranges(tmp_path, kit):
    class Fails(torch.nn.Module):
        def forward(self, x):
            raise ValueError("on purpose")

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fails = Fails()
            self.good = torch.nn.Linear(2, 2)

        def forward(self, x):
            with contextlib.suppress(ValueError):
                self.fails(x)
            return self.good(x)

    model = Outer()
    events = kit.module_events(record(ModuleRanges(model), lambda: model(torch.randn(2, 2)), tmp_path))
    spans = {e["name"].removeprefix(PREFIX): (e["ts"], e["ts"] + e["dur"]) for e in events}
    assert set(spans) == {"", "fails", "good"}
    assert spans["fails"][1] <= spans["good"][0]


def test_an_interrupt_leaves_nothing_open(tmp_path, kit):
    class Interrupted(torch.nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    model = torch.nn.Sequential(torch.nn.Identity(), Interrupted())
    ranges = ModuleRanges(model)

    def call():
        with pytest.raises(KeyboardInterrupt):
            model(torch.randn(2))

    record(ranges, call, tmp_path)
    assert ranges.here.stack == []


def test_the_same_module_entered_again_inside_itself(tmp_path, kit):
    class Recursive(torch.nn.Module):
        def forward(self, x, depth=2):
            return self(x + 1, depth - 1) if depth else x

    model = Recursive()
    events = kit.module_events(record(ModuleRanges(model), lambda: model(torch.zeros(1)), tmp_path))
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events)
    assert len(spans) == 3
    assert spans[0][1] >= spans[1][1] >= spans[2][1]


def test_threads_do_not_close_each_others_ranges(kit):
    model = kit.Net().eval()
    ranges = ModuleRanges(model)
    ranges.install()
    failures = []

    def work():
        try:
            for _ in range(20):
                model(torch.randn(1, 3, 8, 8))
        except Exception as error:
            failures.append(error)

    with torch.profiler.profile():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ranges.remove()
    assert not failures


def test_wrappers_do_not_show_in_the_names(kit):
    model = kit.Net()
    names = [name for name, _ in model.named_modules()]
    assert [path for path, _ in walk(torch.nn.DataParallel(model))] == names


def test_distributed_data_parallel_does_not_show_in_the_names(tmp_path, kit):
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available():
        pytest.skip("torch was built without torch.distributed")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        model = kit.Net()
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        events = kit.module_events(record(ModuleRanges(wrapped), lambda: wrapped(torch.randn(2, 3, 8, 8)), tmp_path))
    finally:
        dist.destroy_process_group()
    assert {e["name"] for e in events} == {PREFIX + name for name, _ in model.named_modules()}


def test_a_compiled_model_gets_one_range_and_no_graph_break(tmp_path, kit):
    torch._dynamo.reset()
    model = kit.Net()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    x = torch.randn(2, 3, 8, 8)
    expected = compiled(x)
    outputs = []
    events = kit.module_events(record(ModuleRanges(compiled), lambda: outputs.append(compiled(x)), tmp_path))
    assert [e["name"] for e in events] == [PREFIX]
    assert torch.equal(outputs[0], expected)
    assert not kit.is_observed(model)


def test_a_compiled_function_around_a_hooked_model_has_no_graph_break():
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    ranges = ModuleRanges(model)
    ranges.install()
    function = torch.compile(lambda x: model(x).sum(), backend="eager", fullgraph=True)
    x = torch.randn(2, 4)
    assert torch.equal(function(x), model(x).sum())
    ranges.remove()


def test_transformer_inference_keeps_its_fast_path_and_gets_a_range(tmp_path, kit):
    model = torch.nn.Sequential(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval())
    x, outputs = torch.randn(2, 3, 8), []
    with torch.no_grad():
        expected = model(x)
        events = kit.module_events(record(ModuleRanges(model), lambda: outputs.append(model(x)), tmp_path))
    assert [event["name"] for event in events] == [PREFIX, PREFIX + "0"]
    assert any("transformer_encoder_layer_fwd" in e.get("name", "") for e in kit.trace_events(tmp_path / "trace.json"))
    assert torch.equal(outputs[0], expected)


def test_hooks_that_are_taken_off_within_a_call_of_the_model_do_not_break_it(training):
    model, step = training
    ranges = ModuleRanges(model)
    ranges.install()
    model.register_forward_pre_hook(lambda module, args: ranges.remove(), prepend=True)
    step()
    assert not ranges.installed
