"""Logs of TORCH_TRACE: the launches of each wrapper, by the key of its graph."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest

from tb_dlprof_plugin.model.compiled_graph import CompiledKernel
from tb_dlprof_plugin.model.run_facts import GraphBreak
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.inductor.torch_trace import read_torch_trace
from tb_dlprof_plugin.readers.inductor.wrapper_code import kernels_of_wrapper, places_of

DATA = Path(__file__).parents[1] / "data" / "compiled"
FORWARD = "fntdo66s7uqidkcyxuxhdi6ndcvntxcuxqmoh2ksimt32qyonh4y"
BACKWARD = "fflgk45w22pjjlqroekjdbgf57i5ptdett735zu56guvxihi6knf"


def test_a_recorded_log_has_every_launch_of_both_wrappers():
    graphs = {graph.key: graph.kernels for graph in read_torch_trace(DATA / "gpt.default.torch_trace.log.gz").graphs}
    assert set(graphs) == {FORWARD, BACKWARD}
    triton = {key: sum(one.name.startswith("triton_") for one in kernels) for key, kernels in graphs.items()}
    assert triton == {FORWARD: 69, BACKWARD: 136}
    assert graphs[FORWARD][4] == CompiledKernel(
        name="torch.ops.aten._scaled_dot_product_cudnn_attention.default",
        ops=("aten.view", "aten.permute", "aten.select", "aten._scaled_dot_product_cudnn_attention"),
        places=("compiled.py:12 forward", "compiled.py:11 forward"),
        # Query, key and value, each read once.
        bytes=3 * 16 * 8 * 256 * 64 * 2,
        shapes=((16, 8, 256, 64),) * 3,
        dtypes=("bfloat16",) * 3,
    )


def test_wrappers_with_the_same_kernel_names_are_told_apart_by_their_keys():
    graphs = read_torch_trace(DATA / "gptbreak.default.torch_trace.log.gz").graphs
    assert [len(graph.kernels) for graph in graphs] == [17, 31, 17, 31]
    first, second = ([one.name for one in graph.kernels] for graph in graphs[::2])
    assert first == second
    assert len({graph.key for graph in graphs}) == 4


def test_launches_come_in_the_order_of_the_text_and_a_comment_counts_for_the_next_line_alone():
    code = (
        "        # Topologically Sorted Source Nodes: [a], Original ATen: [aten.add, aten.mul]\n"
        "        # [Provenance debug handles] triton_poi_fused_add_mul_0:1\n"
        "        triton_poi_fused_add_mul_0.run(x)\n"
        "        # Topologically Sorted Source Nodes: [b], Original ATen: [aten.mm]\n"
        "        y = x\n"
        "        # [Provenance debug handles] extern_kernels.mm:2\n"
    )
    stacks = {"extern_kernels.mm:2": ['  File "/home/me/net.py", line 7, in forward\n    y = x @ w\n']}
    assert kernels_of_wrapper(code, stacks) == (
        CompiledKernel("triton_poi_fused_add_mul_0", ("aten.add", "aten.mul")),
        CompiledKernel("extern_kernels.mm", (), ("net.py:7 forward",)),
    )


def test_a_line_is_the_innermost_of_the_user():
    stack = (
        '  File "/home/me/net.py", line 7, in forward\n    y = self.fc(x)\n'
        '  File "/usr/lib/python3/site-packages/torch/nn/modules/linear.py", line 125, in forward\n    F.linear(x)\n'
    )
    assert places_of([stack, stack, ""]) == ("net.py:7 forward",)


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (None, "no log of TORCH_TRACE"),
        ('V0101 00:00:00.0 1 torch/a.py:1] {"chromium_event": {}}\n\t{}\n', "no compilation by Inductor"),
        (
            (
                'V0101 00:00:00.0 1 torch/a.py:1] {"inductor_output_code": {}}\n\tdef call(args):\n'
                'V0101 00:00:00.0 1 torch/a.py:1] {"artifact": {"name": "fx_graph_cache_miss"}}\n\t{"key": "fabc"}\n'
            ),
            "without provenance",
        ),
    ],
)
def test_a_folder_that_explains_nothing_says_why(tmp_path, log, says):
    if log is not None:
        (tmp_path / "dedicated_log_torch_trace_1.log").write_text(log)
    with pytest.raises(TraceError, match=says):
        read_torch_trace(tmp_path)


def test_a_log_that_was_cut_gives_the_graphs_before_the_cut(tmp_path):
    text = gzip.decompress((DATA / "gpt.default.torch_trace.log.gz").read_bytes())
    backward = text.index(b'"inductor_output_code"', text.index(b'"fx_graph_cache_miss"'))
    (tmp_path / "dedicated_log_torch_trace_1.log").write_bytes(text[: backward + 40_000])
    assert [graph.key for graph in read_torch_trace(tmp_path).graphs] == [FORWARD]


def test_planted_breaks_and_recompiles_are_found_once_and_none_without():
    found = read_torch_trace(DATA / "gptbreak.default.torch_trace.log.gz")
    assert found.graph_breaks == [GraphBreak("compiled.py:22", "Call to `torch._dynamo.graph_break()`", 1)]
    assert [(one.compile_id, one.place, round(one.duration_ns / 1e9, 1)) for one in found.compilations] == [
        ("0/0", "compiled.py:17 forward", 0.8), ("1/0", "compiled.py:10 forward", 4.7),
        ("1/1", "compiled.py:10 forward", 7.2),
    ]  # fmt: skip
    guards = [one.recompile_reason for one in found.compilations if one.recompile_reason]
    assert guards == ["1/0: tensor 'x' size mismatch at index 0. expected 16, actual 8"]

    clean = read_torch_trace(DATA / "gpt.default.torch_trace.log.gz")
    assert not clean.graph_breaks
    assert [one.recompile_reason for one in clean.compilations] == [""]


def test_an_archive_is_named_as_one(tmp_path):
    archive = tmp_path / "logs.tgz"
    with tarfile.open(archive, "w:gz") as made:
        made.add(DATA / "README.md", "README.md")
    with pytest.raises(TraceError, match="is an archive; unpack it"):
        read_torch_trace(archive)
