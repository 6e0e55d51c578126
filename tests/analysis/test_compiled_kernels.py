"""Kernels of torch.compile joined with the wrappers that launched them, on recordings of an H100."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tb_dlprof_plugin.analysis.build import build_profile
from tb_dlprof_plugin.analysis.compiled_kernels import stored_graphs
from tb_dlprof_plugin.analysis.wrapper_order import Work, aligned, recorded_name
from tb_dlprof_plugin.metrics.compiled_code import compiled_kernel_of_call, compiled_modules, compiled_time, split_by
from tb_dlprof_plugin.metrics.cpu_activity import split_by_activity
from tb_dlprof_plugin.metrics.flops import matrix_calls
from tb_dlprof_plugin.metrics.modules import module_totals
from tb_dlprof_plugin.model.compiled_graph import CompiledGraph, CompiledKernel
from tb_dlprof_plugin.model.profile import CompiledKernels, Profile, Role, Source
from tb_dlprof_plugin.model.run_facts import RunFacts, System
from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.names.compiled import REPLAYED_LIBRARY, fused_words, is_generated, replayed_libraries
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.options import ReadOptions
from tb_dlprof_plugin.readers.registry import read_timelines
from tb_dlprof_plugin.store.codec import decode, encode
from tb_dlprof_plugin.store.logdir import read_profiles

DATA = Path(__file__).parents[1] / "data" / "compiled"
RECORDED = ["gpt.default", "gpt.reduce-overhead"]


def _timeline(name: str) -> Timeline:
    options = ReadOptions(torch_trace=DATA / f"{name}.torch_trace.log.gz")
    return read_timelines(DATA / f"{name}.pt.trace.json.gz", options)[0]


def _profile(timeline: Timeline) -> Profile:
    return build_profile(timeline, Source("s", 0, 0, "", "t", 0, "1"), RunFacts(), System())


@pytest.fixture(params=RECORDED, scope="module")
def view(request) -> ProfileView:
    return ProfileView(_profile(_timeline(request.param)))


def _kernel_of_launch(view: ProfileView) -> np.ndarray:
    return compiled_kernel_of_call(view)[view.profile.launches.call]


def test_every_launch_of_both_wrappers_is_found_in_each_step(view):
    profile = view.profile
    own = profile.ops.compiled[profile.calls.op]
    assert Counter(np.bincount(own[own >= 0]).tolist()) == {3: 100 + 192}
    # The two passes do not share a launch.
    roles = profile.ops.role[profile.calls.op[own >= 0]]
    assert Counter(roles.tolist()) == {Role.FORWARD: 3 * 100, Role.BACKWARD: 3 * 192}


def test_each_generated_kernel_has_the_launch_of_its_name(view):
    profile, of = view.profile, _kernel_of_launch(view)
    names = [profile.strings[profile.kernels.name[row]] for row in profile.launches.kernel.tolist()]
    generated = [row for row, name in enumerate(names) if name.startswith("triton_")]
    assert len(generated) == 3 * (69 + 136)
    assert [profile.strings[profile.compiled_kernels.name[of[row]]] for row in generated] == [
        names[row] for row in generated
    ]


def test_replays_and_launches_one_by_one_agree_on_what_each_kernel_is():
    """The graph runs the same code: each launch as many kernels as without it."""
    found = []
    for name in RECORDED:
        view = ProfileView(_profile(_timeline(name)))
        of = _kernel_of_launch(view)
        # Wrappers of both runs have the same order; their keys differ.
        found.append(np.bincount(of[(of >= 0) & view.launch_is_kernel], minlength=292).tolist())
    assert sum(found[0]) == 912
    assert found[0] == found[1]


def test_the_parts_of_compiled_time_sum_to_it_to_the_nanosecond(view):
    time = compiled_time(view, view.selection())
    assert time.region_ns == time.module_ns + time.shared_ns + time.without_module_ns + time.unknown_ns
    assert time.region_ns - time.unknown_ns == time.time_ns.sum()
    # Copies to a graph's own inputs are no launch of the wrapper.
    assert time.unknown_ns / time.region_ns < 0.03


def test_ops_of_compiled_code_are_those_of_the_model(view):
    profile = view.profile
    types = {profile.strings[index] for index in view.groups.op_type.tolist()}
    assert {"mm", "addmm", "_scaled_dot_product_cudnn_attention", "view+gelu_backward+gelu"} <= types
    assert not any(name.startswith("Torch-Compiled Region") for name in types)


def test_blocks_of_identical_code_are_told_apart_by_order():
    """Six blocks launch kernels of the same names: each launch has the path that its handle has, below the model."""
    timeline = _timeline("gpt.reduce-overhead")

    def with_blocks(graph: CompiledGraph) -> CompiledGraph:
        nth = Counter[str]()

        def in_block(kernel: CompiledKernel) -> CompiledKernel:
            if "attention" not in kernel.name:
                return msgspec.structs.replace(kernel, modules=("blocks.0.norm", "blocks.1"), module_bytes=(1, 2))
            nth[kernel.name] += 1
            return msgspec.structs.replace(kernel, modules=(f"blocks.{nth[kernel.name] - 1}",))

        return CompiledGraph(graph.key, tuple(map(in_block, graph.kernels)))

    timeline = replace(timeline, compiled_graphs=tuple(map(with_blocks, timeline.compiled_graphs)))
    view = ProfileView(_profile(timeline))
    profile = view.profile
    module = profile.ops.module[profile.calls.op]
    own = profile.ops.compiled[profile.calls.op] >= 0
    # Three steps, each pass once; what several modules share is theirs together.
    found = Counter(profile.strings[index] for index in module[own].tolist())
    assert found == {**{f"blocks.{n}": 6 for n in range(6)}, "blocks": 3 * (292 - 12)}
    time, totals = compiled_time(view, view.selection()), module_totals(view, view.selection())
    assert time.region_ns == time.module_ns + time.shared_ns + time.unknown_ns
    assert totals.inside.gpu_sum_ns[0] == time.module_ns + time.shared_ns
    modules = {one.path: one for one in compiled_modules(view, view.selection())}
    assert sum(one.alone_ns for one in modules.values()) == time.module_ns
    assert sum(one.shared_ns for one in modules.values()) == time.shared_ns
    assert modules["blocks.1"].shared_ns / modules["blocks.0.norm"].shared_ns == pytest.approx(2, abs=1e-3)
    stored = ProfileView(decode(encode(profile)))
    assert compiled_modules(stored, stored.selection()) == list(modules.values())


@pytest.mark.parametrize("name", RECORDED)
def test_what_the_cpu_does_in_a_region_does_not_depend_on_its_wrappers(name):
    """Between launches the wrapper works, and no Python of the user."""
    joined = _timeline(name)
    views = [ProfileView(_profile(one)) for one in (joined, replace(_timeline(name), compiled_graphs=()))]
    found = [
        split_by_activity(view, view.profile.iterations.host_start_ns, view.profile.iterations.host_stop_ns)
        for view in views
    ]
    assert found[0].tolist() == found[1].tolist()


def _bare(name: str) -> ProfileView:
    return ProfileView(_profile(read_timelines(DATA / f"{name}.pt.trace.json.gz")[0]))


@pytest.mark.parametrize("name", RECORDED)
def test_without_wrappers_launches_have_their_names_and_a_note_says_what_is_missing(name):
    view = _bare(name)
    (note,) = [note for note in view.profile.notes if note.code == "compiled_names_only"]
    assert note.count == 6
    assert "--torch-trace" in note.text
    kernels, strings = view.profile.compiled_kernels, view.profile.strings
    assert not kernels.module_count.any()
    assert not kernels.places.any()
    # What the name of a library call says, and nothing that a generated kernel's would have to be split for.
    assert {strings[index] for index in kernels.ops.tolist() if index} <= {
        "aten.mm", "aten.addmm", "aten._foreach_copy_", "aten._scaled_dot_product_cudnn_attention",
        "aten._scaled_dot_product_cudnn_attention_backward",
    }  # fmt: skip
    assert stored_graphs(view.profile) == ()


def test_without_wrappers_each_launch_takes_the_time_that_it_has_with_them():
    """The names in the trace and the wrappers of the logs lead to the same launches."""
    times = []
    for view in (_bare("gpt.default"), ProfileView(_profile(_timeline("gpt.default")))):
        found = compiled_time(view, view.selection())
        names = [view.profile.strings[index] for index in view.profile.compiled_kernels.name.tolist()]
        rows = [(recorded_name(name), time) for name, time in zip(names, found.time_ns.tolist(), strict=True)]
        times.append((found.region_ns, sorted(rows)))
        assert found.unknown_ns == 0
    assert times[0] == times[1]


def test_without_wrappers_library_kernels_of_a_replay_stay_together_between_generated_ones():
    bare, joined = _bare("gpt.reduce-overhead"), ProfileView(_profile(_timeline("gpt.reduce-overhead")))
    times = []
    for view in (bare, joined):
        strings, found = view.profile.strings, compiled_time(view, view.selection())
        generated = np.array([is_generated(strings[index]) for index in view.profile.compiled_kernels.name.tolist()])
        times.append(sorted(found.time_ns[generated].tolist()))
        assert found.region_ns == compiled_time(joined, joined.selection()).region_ns
    assert times[0] == times[1]
    types = {bare.profile.strings[index] for index in bare.groups.op_type.tolist()}
    assert {"gelu_gelu_backward_view", "matrix products (replayed)", "attention (replayed)"} <= types
    assert REPLAYED_LIBRARY not in types


def test_products_of_a_bare_trace_have_their_flops():
    rows = [
        sorted(matrix_calls(view, view.selection()).flops.tolist())
        for view in (_bare("gpt.default"), ProfileView(_profile(_timeline("gpt.default"))))
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("triton_poi_fused__to_copy_add_gelu_12", "_to_copy_add_gelu"),
        ("triton_red_fused_sum_4", "sum"),
        ("cpp_fused_gelu_view_1", "gelu_view"),
        ("triton_tem_fused_addmm_3", ""),
        ("aten::mm", ""),
    ],
)
def test_a_generated_name_says_what_it_fuses(name, words):
    assert fused_words(name) == words


def test_products_in_a_graph_have_the_flops_that_they_have_outside_of_it():
    found = []
    for name in RECORDED:
        view = ProfileView(_profile(_timeline(name)))
        rows = matrix_calls(view, view.selection())
        assert (rows.flops > 0).all()
        found.append(sorted(rows.flops.tolist()))
    # Products and attentions, forward and backward, in three steps.
    assert len(found[0]) == 3 * (25 + 6 + 50 + 6)
    assert found[0] == found[1]


@pytest.mark.parametrize(("weights", "parts"), [((1, 1), [50, 51]), ((0, 3), [0, 101]), ((1, 2, 4), [14, 29, 58])])
def test_a_time_is_split_by_weights_to_the_nanosecond(weights, parts):
    assert split_by(101, weights) == parts
    assert sum(parts) == 101


def test_a_shuffled_wrapper_is_unknown():
    timeline = _timeline("gpt.default")

    def shuffled(graph: CompiledGraph) -> CompiledGraph:
        kernels = list(graph.kernels)
        random.Random(1).shuffle(kernels)
        return CompiledGraph(graph.key, tuple(kernels))

    view = ProfileView(_profile(replace(timeline, compiled_graphs=tuple(map(shuffled, timeline.compiled_graphs)))))
    time = compiled_time(view, view.selection())
    assert time.unknown_ns == time.region_ns > 0
    assert [note.count for note in view.profile.notes if note.code == "compiled_unknown"] == [6]


@pytest.mark.parametrize(
    ("kernels", "found"),
    [
        (("dgrad", "wgrad", "dgrad", "wgrad"), (1, 1, 2, 2)),
        # The first image needs no gradient.
        (("dgrad", "wgrad", "reduce", "wgrad"), None),
        (("wgrad", "dgrad", "wgrad"), (1, 2, 2)),
        # Whose the padding is does not show.
        (("dgrad", "wgrad", "nhwcAddPaddingKernel", "dgrad", "wgrad"), None),
    ],
)
def test_two_convolutions_backward_in_a_graph_are_told_apart_by_their_gradients(kernels, found):
    launches = ("triton_0", "aten::convolution_backward", "aten::convolution_backward", "triton_1")
    names = ("triton_0", *kernels, "triton_1")
    order = aligned(launches, tuple(Work(name, replayed=True) for name in names))
    assert order is not None
    assert order == (0, *(found or (-1,) * len(kernels)), 3)


@pytest.mark.parametrize(
    ("handle", "name"),
    [
        ("extern_kernels.bias_addmm", "aten::addmm"),
        ("torch.ops.aten.convolution_backward.default", "aten::convolution_backward"),
        # Seeds of dropout.
        ("aten.randint.low_out", "aten::randint"),
        ("aten.index_put_", "aten::index_put_"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
    ],
)
def test_a_handle_names_the_op_that_its_launch_leaves_in_a_trace(handle, name):
    assert recorded_name(handle) == name


def test_wrappers_under_each_others_keys_are_unknown():
    timeline = _timeline("gpt.default")
    one, other = timeline.compiled_graphs
    swapped = (CompiledGraph(one.key, other.kernels), CompiledGraph(other.key, one.kernels))
    view = ProfileView(_profile(replace(timeline, compiled_graphs=swapped)))
    assert not len(view.profile.compiled_kernels)


def test_the_joined_kernels_are_stored_and_small(view):
    profile = view.profile
    stored = encode(profile)
    back = decode(stored)
    assert np.array_equal(back.ops.compiled, profile.ops.compiled)
    assert [back.strings[row] for row in back.compiled_kernels.ops.tolist()] == [
        profile.strings[row] for row in profile.compiled_kernels.ops.tolist()
    ]
    no_rows = replace(profile.ops, compiled=np.full(len(profile.ops), -1))
    bare = replace(profile, compiled_kernels=CompiledKernels.none(), ops=no_rows)
    per_thousand = (len(stored) - len(encode(bare))) * 1000 / len(profile.compiled_kernels)
    assert per_thousand < 100_000


def test_convolutions_of_a_bare_trace_have_the_flops_of_the_eager_run():
    """Which gradients a backward pass computed: of the first layer the weight's alone."""
    model = DATA.parent / "precision_pairs" / "torchvision" / "resnet18"
    found = []
    for run in ("compile-fp32", "fp32"):
        view = ProfileView(read_profiles(model / run)[-1].profile)
        matrix, profile = matrix_calls(view, view.selection(1, 1)), view.profile
        names = [profile.call_name(call) for call in matrix.call.tolist()]
        rows = [number for number, name in enumerate(names) if "conv" in name]
        backward = [names[number].endswith("backward") for number in rows]
        found.append(sorted(zip(backward, matrix.flops[rows].tolist(), strict=True)))
    assert len(found[0]) == 40
    assert found[0] == found[1]


@pytest.mark.parametrize(("kernel", "later", "gradients"), [
    ("sm90_xmma_wgrad_implicit_gemm", [], 1), ("sm90_xmma_dgrad_implicit_gemm", [[64, 32, 3, 3]], 2),
    ("some_kernel", [[64, 32, 3, 3], [8, 32, 16, 16]], 2), ("some_kernel", [[8, 64, 16, 16]], 0),
])  # fmt: skip
def test_gradients_of_a_compiled_convolution_show_by_its_kernels_and_later_launches(
    new_trace, kernel, later, gradients
):
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.event("CompiledFunctionBackward", "cpu_op", 10, 500, tid=2)
    dims = [[8, 64, 16, 16], [8, 32, 16, 16], [64, 32, 3, 3]]
    trace.op("aten::convolution_backward", 20, 50, tid=2, dims=dims, types=["float"] * 3)
    trace.launch(kernel, 25, 100, 90, tid=2)
    trace.op("triton_poi_fused_0", 100, 20, tid=2, dims=later, types=["float"] * len(later))
    trace.launch("triton_poi_fused_0", 105, 200, 10, tid=2)
    view = trace.view()
    one = 2 * 8 * 64 * 16 * 16 * 32 * 9
    assert matrix_calls(view, view.selection()).flops.tolist() == [gradients * one or -1]


def test_library_kernels_of_a_replay_have_the_name_of_their_family():
    products, attention = "matrix products (replayed)", "attention (replayed)"
    assert replayed_libraries(["set", "gemm", "reduction", "attention", "copy"]) == [products] * 2 + [attention] * 3
    assert replayed_libraries(["set", "other"]) == [REPLAYED_LIBRARY] * 2
    assert replayed_libraries([]) == []
