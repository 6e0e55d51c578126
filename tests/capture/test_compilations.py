"""Graph breaks and recompiles that the hook notes while Dynamo compiles: planted ones, and none of a clean script."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import msgspec
import pytest
from support.marks import long

from tb_dlprof_plugin.model.run_facts import CompileCall, CudagraphSkip, GraphBreak, RunFacts
from tb_dlprof_plugin.readers.inductor.compilation_text import counted, graph_break_of, reason_of, skip_of

_PROGRAM = """
import json
import sys

import msgspec
import torch

from tb_dlprof_plugin.capture.compiled.compilations import COMPILATIONS
from tb_dlprof_plugin.model.run_facts import RunFacts

COMPILATIONS.install()
kind = sys.argv[1]


def broken(x, k):
    y = x + k
    torch._dynamo.graph_break()
    return y * 2


def clean(x):
    return x.relu() + 1


def gives_up(x, k):
    return x * k


if kind == "planted":
    call = torch.compile(broken, backend="eager")
    call(torch.ones(2), 1)
    call(torch.ones(2), 2)
    call(torch.ones(2, dtype=torch.float64), 2)
elif kind == "skipped":
    torch.compile(clean, mode="reduce-overhead")(torch.ones(2))
elif kind == "dynamic":
    call = torch.compile(clean)
    call(torch.ones(3))
    call(torch.ones(5))
elif kind == "failed":
    torch._dynamo.config.recompile_limit = 2
    call = torch.compile(gives_up, backend="eager", dynamic=False)
    for k in range(2, 6):
        call(torch.ones(k), k)
elif kind == "no effect":
    model = torch.nn.Linear(2, 2)
    torch.compile(model)
    model(torch.ones(1, 2))
else:
    torch.compile(clean)(torch.ones(2))
facts = RunFacts()
COMPILATIONS.fill(facts)
print(json.dumps(msgspec.to_builtins(facts)))
"""


def _facts(tmp_path, kind: str) -> RunFacts:
    (tmp_path / "program.py").write_text(_PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), kind]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=RunFacts)


def _line(text: str) -> int:
    return next(at for at, line in enumerate(_PROGRAM.splitlines(), 1) if line.strip().startswith(text))


@pytest.mark.slow
def test_planted_breaks_and_guards_are_noted_with_their_lines(tmp_path):
    facts = _facts(tmp_path, "planted")
    assert {one.place for one in facts.graph_breaks} == {f"program.py:{_line('torch._dynamo.graph_break()')}"}
    assert "graph_break()" in facts.graph_breaks[0].reason
    guards = " ".join(one.recompile_reason for one in facts.compilations)
    assert "k == 1" in guards
    assert "dtype mismatch" in guards
    assert all(one.duration_ns > 0 for one in facts.compilations)
    assert facts.compile_calls == [CompileCall(f"program.py:{_line('call = torch.compile(broken')}", backend="eager")]


@pytest.mark.long
@pytest.mark.slow
def test_a_clean_script_has_one_compilation_and_nothing_else(tmp_path):
    facts = _facts(tmp_path, "clean")
    (one,) = facts.compilations
    assert (one.recompile_reason, one.dynamic, one.failure, one.cache_hits, one.cache_misses) == ("", False, "", 0, 1)
    assert 0 < one.kernels_ns < one.duration_ns
    assert (facts.graph_breaks, facts.cudagraph_skips) == ([], [])
    again = _facts(tmp_path, "clean")
    assert (again.compilations[0].cache_hits, again.compilations[0].cache_misses) == (1, 0)


@pytest.mark.long
@pytest.mark.slow
def test_a_graph_that_gets_no_cuda_graph_is_noted_with_the_reason(tmp_path):
    (skip,) = _facts(tmp_path, "skipped").cudagraph_skips
    assert "device" in skip.reason


def test_a_skipped_cuda_graph_has_the_line_that_inductor_names():
    reason = (
        'skipping cudagraphs due to mutated inputs (1 instances). Found from : \n   File "/a/net.py", line 5, in f\n'
    )
    assert skip_of(reason) == CudagraphSkip("net.py:5 f", "mutated inputs (1 instances).")
    assert skip_of("") == CudagraphSkip("", "unknown")


@pytest.mark.long
@pytest.mark.slow
def test_code_for_sizes_that_vary_is_noted(tmp_path):
    first, second = _facts(tmp_path, "dynamic").compilations
    assert (first.dynamic, second.dynamic) == (False, True)
    assert "size mismatch" in second.recompile_reason


@pytest.mark.long
@pytest.mark.slow
def test_a_function_that_dynamo_gave_up_is_noted_with_its_place(tmp_path):
    failed = [one for one in _facts(tmp_path, "failed").compilations if one.failure]
    assert failed
    assert failed[0].place == f"program.py:{_line('def gives_up')} gives_up"
    assert "recompile limit" in failed[0].failure


@pytest.mark.slow
def test_a_call_without_effect_leaves_its_line(tmp_path):
    facts = _facts(tmp_path, "no effect")
    assert facts.compile_calls == [CompileCall(f"program.py:{_line('torch.compile(model)')}")]
    assert facts.compilations == []


_WATCHED = """
import json
import sys

import torch
from torch import nn

import tb_dlprof_plugin


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.blocks = nn.Embedding(8, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        x = self.words(x)
        for number, block in enumerate(self.blocks):
            if number == 1 and x.sum().item() > 1e9:
                x = x / 2
            x = block(x)
        return x


model = Net()
with tb_dlprof_plugin.profile(sys.argv[1], model=model, schedule=(0, 1, 2), wait=True, quiet=True) as prof:
    call = torch.compile(model, backend="eager")
    for _ in range(4):
        call(torch.arange(8)).sum().backward()
        prof.step()
print(json.dumps([one.co_filename for one in torch._dynamo.utils.get_compilation_metrics() if one.co_filename]))
"""


@pytest.mark.long
@pytest.mark.slow
def test_dynamo_compiles_nothing_of_the_hook_where_it_falls_back_to_calls_of_modules(tmp_path):
    """Behind a break in a loop the whole function runs in Python, with our calls of modules."""
    program = tmp_path / "program.py"
    program.write_text(_WATCHED)
    command = [sys.executable, str(program), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    files = json.loads(done.stdout.splitlines()[-1])
    assert files
    assert set(files) == {str(program)}


_OWN_CALLS = """
import json
import sys

import torch
from torch import nn

import tb_dlprof_plugin


class Layer(nn.Module):
    # As `GradientCheckpointingLayer` of transformers does.
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)


class Block(Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return x + self.linear(x)


how, run = sys.argv[1:]
model = nn.Sequential(*(Block() for _ in range(3)))
with tb_dlprof_plugin.profile(run, model=model, schedule=(0, 1, 3, 1), wait=True, quiet=True) as prof:
    if how == "in place":
        model.compile(backend="eager")
    call = {
        "module": lambda: torch.compile(model, backend="eager"),
        "in place": lambda: model,
        "function": lambda: torch.compile(lambda x: model(x), backend="eager"),
    }[how]()
    call(torch.ones(2, 4))
    graphs = [torch._dynamo.utils.counters["stats"]["unique_graphs"]]
    for _ in range(5):
        call(torch.ones(2, 4))
        prof.step()
        graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
print(json.dumps(graphs))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "more"), [("module", 0), long("in place", 0), long("function", 1)])
def test_a_layer_that_calls_the_call_of_modules_is_not_compiled_in_each_step(tmp_path, how: str, more: int):
    """What Dynamo compiles is guarded by the code of ``nn.Module.__call__``; a function is compiled once more."""
    program = tmp_path / "program.py"
    program.write_text(_OWN_CALLS)
    command = [sys.executable, str(program), how, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    first, *later = json.loads(done.stdout.splitlines()[-1])
    assert first >= 1
    assert later[-1] - first <= more


def test_a_break_names_the_line_and_the_reason_behind_what_dynamo_did():
    text = (
        "Graph break in user code at /home/me/net.py:22\nGraph Break Reason: Failed to handle it. Graph break "
        "encountered:\n\nCall to `print`\n  Explanation: ...\n\nUser code traceback:\n"
    )
    assert graph_break_of(text) == GraphBreak("net.py:22", "Call to `print`", 1)
    assert graph_break_of("nothing of the kind") is None
    assert reason_of("") == ""


def test_equal_breaks_are_counted():
    one, other = GraphBreak("a.py:1", "print"), GraphBreak("a.py:2", "print")
    assert counted([one, other, one]) == [GraphBreak("a.py:1", "print", 2), GraphBreak("a.py:2", "print", 1)]
