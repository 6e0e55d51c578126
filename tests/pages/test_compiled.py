"""Compiled code on the pages: the page of its own, an event of the timeline, the comparison with an eager run."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.comparison import compare
from tb_dlprof_plugin.metrics.compiled_code import compiled_kernel_of_call, compiled_time
from tb_dlprof_plugin.metrics.flops import matrix_calls
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.model.run_facts import Compilation, CudagraphSkip, GraphBreak, RunFacts
from tb_dlprof_plugin.pages.compare import CompareInput, compare_page
from tb_dlprof_plugin.pages.compiled import compiled_page
from tb_dlprof_plugin.pages.timeline.event import timeline_event
from tb_dlprof_plugin.pages.timeline.page import timeline_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

HOOK = Path(__file__).parents[1] / "data" / "compiled" / "hook"
BLOCKS = 6


@pytest.fixture(scope="module")
def compiled() -> ProfileView:
    return recorded_view(HOOK / "gpt.default")


@pytest.fixture(scope="module")
def eager() -> ProfileView:
    return recorded_view(HOOK / "gpt.eager")


def _side(view: ProfileView, ref: RunRef) -> CompareInput:
    return CompareInput(view, ref, view.selection())


def test_the_page_has_each_launch_and_the_modules_sum_to_what_is_known(compiled, ref):
    page = compiled_page(compiled, ref, compiled.selection())
    assert page.total_rows == len(page.rows) == 292
    assert page.region_ns == page.module_ns + page.shared_ns + page.without_module_ns + page.unknown_ns
    assert sum(row.time_ns for row in page.rows) == page.region_ns - page.unknown_ns
    assert sum(row.time_ns for row in page.modules) == page.module_ns + page.shared_ns
    # No bytes of modules were recorded: shared kernels are one row.
    assert [row.shared_ns for row in page.modules if row.module == ""] == [page.shared_ns]


def test_six_blocks_of_equal_code_take_equal_times(compiled, ref):
    page = compiled_page(compiled, ref, compiled.selection())
    times = defaultdict(int)
    for row in page.modules:
        if row.module.startswith("blocks."):
            times[row.module.split(".")[1]] += row.alone_ns
    assert len(times) == BLOCKS
    assert max(times.values()) < 1.05 * min(times.values())


def test_products_and_attention_of_each_module_have_the_flops_of_the_eager_run(compiled, eager):
    found = []
    for view in (compiled, eager):
        ops, strings = view.profile.ops, view.profile.strings
        calls = matrix_calls(view, view.selection())
        flops = defaultdict(int)
        for op, count in zip(view.profile.calls.op[calls.call].tolist(), calls.flops.tolist(), strict=True):
            flops[strings[ops.module[op]], Role(int(ops.role[op]))] += count
        found.append(dict(flops))
    # Of each block qkv, the output, both layers and attention; the head.
    assert len(found[0]) == 2 * (5 * BLOCKS + 1)
    assert min(found[0].values()) > 0
    assert found[0] == found[1]


def test_the_cost_of_compilation_is_by_function_and_skips_have_their_line(compiled, ref):
    facts = RunFacts(
        compilations=[
            Compilation("0/0", "net.py:7 forward", 3 * 10**9, "", 10**9, 2 * 10**9, 5 * 10**8, 1, 2),
            Compilation("0/1", "net.py:7 forward", 2 * 10**9, "0/0: k == 1", cache_misses=1),
            Compilation("1/0", "net.py:9 loss", 10**6, failure="Dynamo recompile limit exceeded"),
        ],
        graph_breaks=[GraphBreak("net.py:8", "print")],
        cudagraph_skips=[CudagraphSkip("net.py:9 loss", "cpu device (x)", 2)],
    )
    view = ProfileView(dataclasses.replace(compiled.profile, facts=facts))
    page = compiled_page(view, ref, view.selection())
    assert page.compilations_ns == 6_001_000_000
    first, second = page.compilations
    assert (first.count, first.duration_ns, first.kernels_ns, first.autotune_ns) == (2, 6 * 10**9, 2 * 10**9, 5 * 10**8)
    assert (first.cache_hits, first.cache_misses, first.note) == (1, 3, "0/0: k == 1")
    assert second.note == "runs eagerly: Dynamo recompile limit exceeded"
    assert [(row.place, row.count) for row in page.skips] == [("net.py:9 loss", 2)]


def test_an_event_of_the_timeline_says_what_its_kernel_computes(compiled, ref):
    page = timeline_page(compiled, ref, compiled.selection(), None)
    kernels = compiled.profile.compiled_kernels
    of_launch = compiled_kernel_of_call(compiled)[compiled.profile.launches.call]
    shown = np.flatnonzero((of_launch >= 0) & (compiled.launch_iteration == page.iteration.index))
    row = int(shown[kernels.module_count[of_launch[shown]] == 1][0])
    event = timeline_event(compiled, ref, compiled.selection(), page.iteration.index, f"g{row}")
    assert event.compiled is not None
    strings = compiled.profile.strings
    assert event.compiled.ops == strings[kernels.ops[of_launch[row]]]
    assert event.compiled.modules == strings[kernels.modules[of_launch[row]]] == event.module
    outside = int(np.flatnonzero((of_launch < 0) & (compiled.launch_iteration == page.iteration.index))[0])
    assert timeline_event(compiled, ref, compiled.selection(), page.iteration.index, f"g{outside}").compiled is None


def test_a_break_is_an_insight_at_the_region_behind_it(new_trace, ref):
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.op("Torch-Compiled Region: 0/0", 100, 200)
    trace.op("Torch-Compiled Region: 1/0", 400, 200)
    trace.op("Torch-Compiled Region: 2/0", 650, 200)
    view = trace.view(facts=RunFacts(graph_breaks=[GraphBreak("net.py:9", "print")]))
    (found,) = [one for one in timeline_page(view, ref, view.selection(), None).insights if one.title == "Graph break"]
    assert found.spot.label == "Torch-Compiled Region: 1/0"
    assert found.text == "100 µs (10.0 %) before this region, net.py:9"
    plain = trace.view()
    assert "Graph break" not in [one.title for one in timeline_page(plain, ref, plain.selection(), None).insights]


def test_eager_and_compiled_are_compared_by_module(compiled, eager, ref):
    page = compare_page(_side(eager, ref), _side(compiled, ref))
    time = compiled_time(compiled, compiled.selection())
    rows = {row.module: row for row in page.compiled_modules}
    assert abs(sum(row.b_ns for row in rows.values()) - time.region_ns // 3) <= len(rows)
    assert rows["blocks.0.up"].ops == "linear"
    assert rows["blocks.0.up"].difference_ns < 0
    assert rows["blocks.0.n1"].b_ns == 0
    (fusion,) = [text for text in page.explanation if text.startswith("Fusion")]
    assert "in 450 launches eagerly" in fusion
    assert "1.08 ms saved" in fusion
    assert not [text for text in page.explanation if text.startswith("CUDA graphs")]
    back = compare(compiled, eager).replaced
    assert (back.compiled, back.gpu_ns) == (0, compare(eager, compiled).replaced.gpu_ns[::-1])
    assert compare(eager, eager).replaced is None


def test_the_page_of_an_eager_run_says_what_compiling_it_would_save(eager, ref):
    page = compiled_page(eager, ref, eager.selection())
    assert page.rows == []
    assert page.headline.startswith("No code of torch.compile ran in the selected iterations. torch.compile would save")
    assert 'With mode="reduce-overhead" it would save about' in page.headline
