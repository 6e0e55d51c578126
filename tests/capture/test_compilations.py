"""Graph breaks and recompiles that the hook notes while Dynamo compiles: planted ones, and none of a clean script."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tb_dlprof_plugin.model.run_facts import GraphBreak
from tb_dlprof_plugin.readers.inductor.compilation_text import counted, graph_break_of, reason_of

_PROGRAM = """
import json
import sys

import msgspec
import torch

from tb_dlprof_plugin.capture.compiled.compilations import COMPILATIONS
from tb_dlprof_plugin.model.run_facts import RunFacts

COMPILATIONS.install()


def broken(x, k):
    y = x + k
    torch._dynamo.graph_break()
    return y * 2


def clean(x):
    return x.relu() + 1


if sys.argv[1] == "planted":
    call = torch.compile(broken, backend="eager")
    call(torch.ones(2), 1)
    call(torch.ones(2), 2)
    call(torch.ones(2, dtype=torch.float64), 2)
else:
    torch.compile(clean, backend="eager")(torch.ones(2))
facts = RunFacts()
COMPILATIONS.fill(facts)
print(json.dumps(msgspec.to_builtins([facts.compilations, facts.graph_breaks])))
"""


def _facts(tmp_path, kind: str) -> tuple[list[dict], list[dict]]:
    (tmp_path / "program.py").write_text(_PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    compilations, breaks = json.loads(done.stdout.splitlines()[-1])
    return compilations, breaks


@pytest.mark.slow
def test_planted_breaks_and_guards_are_noted_with_their_lines(tmp_path):
    compilations, breaks = _facts(tmp_path, "planted")
    line = next(at for at, text in enumerate(_PROGRAM.splitlines(), 1) if text.strip() == "torch._dynamo.graph_break()")
    assert {one["place"] for one in breaks} == {f"program.py:{line}"}
    assert "graph_break()" in breaks[0]["reason"]
    guards = " ".join(one["recompile_reason"] for one in compilations)
    assert "k == 1" in guards
    assert "dtype mismatch" in guards
    assert all(one["duration_ns"] > 0 for one in compilations)


@pytest.mark.slow
def test_a_clean_script_has_neither(tmp_path):
    compilations, breaks = _facts(tmp_path, "clean")
    assert breaks == []
    assert [one["recompile_reason"] for one in compilations] == [""]


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
