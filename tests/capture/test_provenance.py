"""What the hook takes from Inductor: paths of modules, ops that compute, and a whole compiled training."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from support.marks import long

from tb_dlprof_plugin.capture.compiled import provenance
from tb_dlprof_plugin.capture.compiled.after_import import after_import
from tb_dlprof_plugin.capture.compiled.provenance import Provenance, module_path
from tb_dlprof_plugin.metrics.compiled_code import compiled_modules, compiled_time
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles

_PROGRAM = """
import sys

import tb_dlprof_plugin
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        return x + nn.functional.gelu(self.fc(self.norm(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x):
        return self.blocks(x)


torch.manual_seed(0)
model = Net()
step = torch.compile(model)
with tb_dlprof_plugin.profile(sys.argv[1] + "/run", model=model, schedule=(1, 1, 2), wait=True) as prof:
    for _ in range(5):
        step(torch.ones(4, 8)).sum().backward()
        prof.step()
"""


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("L['self'].blocks.0.fc", "blocks.0.fc"),
        ("L['model']", ""),
        ("G['net'].blocks.0", "blocks.0"),
        ("L['self']._modules['blocks']._modules['0'].fc", "blocks.0.fc"),
        ("L__self___blocks.0", "blocks.0"),
        ("L['self'].blocks[1]", "blocks.1"),
    ],
)
def test_the_innermost_module_of_a_node_has_the_path_of_the_users_model(text, path):
    assert module_path({"outer": ("L['self']", object), "inner": (text, object)}) == path


class _Node(SimpleNamespace):
    """Of an FX graph, as far as provenance reads it."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class _Value(SimpleNamespace):
    """A tensor of 4-byte elements."""

    def element_size(self) -> int:
        return 4


def _node(op: str, module: str | None, *inputs: _Node, code: bool = True, size: int = 1, **meta: bool) -> _Node:
    stack = None if module is None else {"a": (f"L['self'].{module}", object)}
    meta_of = {
        "original_aten": op, "nn_module_stack": stack, "val": _Value(shape=(size,)), **meta,
        "stack_trace": 'File "net.py", line 3, in forward' if code else None,
    }  # fmt: skip
    node = _Node(target=f"{op}", meta=meta_of, all_input_nodes=list(inputs), users=[])
    for one in inputs:
        one.users.append(node)
    return node


INPUT = _node("placeholder", None)


def _found(*nodes: _Node, handle: str = "triton_0:1") -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = provenance._of_nodes(handle, nodes)
    return found.ops, found.modules


def test_views_and_constants_of_other_modules_do_not_make_a_kernel_shared():
    first = _node("aten.mul", "fc", INPUT)
    nodes = [first, _node("aten.view", "head", first), _node("aten.full", "act"), _node("aten.add", "fc", first)]
    assert _found(*nodes) == (("aten.mul", "aten.add"), ("fc",))


def test_a_kernel_of_views_alone_belongs_to_their_modules():
    assert _found(_node("aten.clone", "fc", INPUT)) == (("aten.clone",), ("fc",))


def test_a_library_call_computes_its_own_op_alone():
    before = _node("aten.native_batch_norm_backward", "bn", INPUT)
    nodes = [before, _node("aten.convolution_backward", "conv", before)]
    handle = "torch.ops.aten.convolution_backward.default:4"
    assert _found(*nodes, handle=handle) == (("aten.convolution_backward",), ("conv",))


def test_code_of_the_compiled_module_is_its_own_and_sums_of_gradients_are_of_none():
    assert _found(_node("aten.mul", None, INPUT)) == (("aten.mul",), ("",))
    assert _found(_node("aten.add", None, INPUT, is_gradient_acc=True)) == (("aten.add",), ())


def test_what_a_pass_over_the_graph_made_belongs_to_the_module_of_its_inputs():
    scattered = _node("aten.clone", "fc", INPUT)
    assert _found(_node("", None, scattered, code=False)) == ((), ("fc",))
    assert _found(_node("", None, INPUT, code=False)) == ((), ())


def test_modules_of_a_kernel_have_the_bytes_that_they_read_from_outside_and_write():
    norm = _node("aten.native_layer_norm", "norm", _node("placeholder", None, size=100), size=100)
    cast = _node("aten._to_copy", "fc", norm, size=50)
    _node("aten.mm", "fc", cast)
    found = provenance._of_nodes("triton_0:1", [norm, cast])
    assert dict(zip(found.modules, found.module_bytes, strict=True)) == {"norm": 400, "fc": 200}
    assert found.places == ("net.py:3 forward",)


def test_an_action_waits_for_the_import_and_its_error_stays_inside(tmp_path, monkeypatch):
    (tmp_path / "waited_for_by_a_test.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    seen = []

    def action():
        seen.append(sys.modules["waited_for_by_a_test"].VALUE)
        raise RuntimeError

    before = list(sys.meta_path)
    after_import("waited_for_by_a_test", action)
    assert not seen
    assert importlib.import_module("waited_for_by_a_test").VALUE == 1
    assert seen == [1]
    assert sys.meta_path == before
    after_import("waited_for_by_a_test", action)
    assert seen == [1, 1]


@pytest.mark.parametrize("off", ["switch", "worker"])
def test_nothing_waits_where_provenance_is_switched_off_or_a_worker_compiles(monkeypatch, off):
    before = list(sys.meta_path)
    if off == "switch":
        monkeypatch.setenv("TB_DLPROF_PROVENANCE", "0")
    else:
        monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "torch._inductor.compile_worker"])
    Provenance().install()
    assert sys.meta_path == before


def _run(folder, name: str, code: str, **environment: str) -> str:
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1"}
    unset = ("INDUCTOR_PROVENANCE", "TORCH_COMPILE_DEBUG")
    users = {key: value for key, value in os.environ.items() if key not in unset}
    (folder / "program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), str(folder / name)],
        env={**users, **cache, **environment}, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_compiled_training_has_the_modules_of_its_kernels_with_a_cold_cache_and_a_warm_one(tmp_path):
    tables = []
    for name in ("cold", "warm"):
        _run(tmp_path, name, _PROGRAM)
        (file,) = (tmp_path / name / "run").glob("*.tb_dlprof")
        profile = read_profiles(file)[0].profile
        view = ProfileView(profile)
        time = compiled_time(view, view.selection())
        assert time.region_ns == time.module_ns + time.shared_ns + time.without_module_ns + time.unknown_ns
        assert time.without_module_ns == 0
        assert time.module_ns > 0
        split = compiled_modules(view, view.selection())
        assert None not in [one.path for one in split]
        assert sum(one.alone_ns + one.shared_ns for one in split) == time.module_ns + time.shared_ns
        assert (profile.compiled_kernels.bytes > 0).all()
        modules = {profile.strings[index] for index in profile.ops.module.tolist()}
        assert {"blocks.0.fc", "blocks.1.fc"} <= modules
        kernels = profile.compiled_kernels
        columns = np.stack((kernels.name, kernels.ops, kernels.modules), axis=1)
        tables.append([profile.strings[index] for index in columns.ravel().tolist()])
    assert tables[0] == tables[1]
    assert len(list((tmp_path / "cache" / "tb_dlprof").iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "level"), [({}, 2), long({"INDUCTOR_PROVENANCE": "0"}, 0), long({"TB_DLPROF_PROVENANCE": "0"}, 0)]
)
def test_the_level_is_set_when_inductor_is_imported_and_never_against_the_user(tmp_path, environment, level):
    code = (
        "import json, sys, torch, tb_dlprof_plugin\n"
        "tb_dlprof_plugin.trace_handler(sys.argv[1])\n"
        "early = 'torch._inductor' in sys.modules\n"
        "import torch._inductor.compile_fx\n"
        "print(json.dumps([early, torch._inductor.config.trace.provenance_tracking_level]))\n"
    )
    assert json.loads(_run(tmp_path, "run", code, **environment)) == [False, level]
