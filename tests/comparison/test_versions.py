"""Two versions of a script: layers added and changed, other batches, compiled code, mixed precision's own work."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tb_dlprof_plugin.comparison.differences import Comparison, compare
from tb_dlprof_plugin.metrics.amp_calls import cast_calls, scaler_calls
from tb_dlprof_plugin.metrics.op_sites import run_of
from tb_dlprof_plugin.metrics.step_buckets import bucket_times
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView

KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
CAST = "void at::native::unrolled_elementwise_kernel<at::native::float16_copy_kernel_cuda>(int)"
Layer = tuple[str, str, Any, float]


def forward_pass(new_trace, layers: list[Layer], *, steps: int = 2, **options: Any) -> ProfileView:
    """A forward pass of these layers: module path ("" for none), op, input dims (None for not recorded), GPU µs."""
    trace = new_trace()
    for index in range(steps):
        at = 1000 * index
        trace.step(index, at, 1000)
        for number, (module, op, dims, time) in enumerate(layers):
            begin = at + 10 + 20 * number
            if module:
                trace.module(module, begin, 15)
            trace.op(op, begin + 1, 10, dims=dims, types=None if dims is None else ["float"] * len(dims))
            trace.launch(KERNEL, begin + 2, at + 300 + 50 * number, time)
    return trace.view(**options)


def rows(found: Comparison) -> list[tuple[str, str, str, str, int | None, int | None]]:
    """Module, type, how and reason of each op with its µs in both runs."""
    return sorted(
        (
            pair.module,
            pair.op_type,
            pair.how or "",
            pair.reason,
            pair.a.time_ns // 1000 if pair.a else None,
            pair.b.time_ns // 1000 if pair.b else None,
        )
        for pair in found.pairs
    )


def test_added_and_removed_layers_are_told_from_ops_of_other_types(new_trace) -> None:
    base = forward_pass(
        new_trace,
        [("conv1", "aten::conv2d", [[8, 3, 9, 9], [4, 3, 3, 3]], 20), ("drop", "aten::dropout", [[8, 4]], 5),
         ("act", "aten::relu", [[8, 4]], 4)],
    )  # fmt: skip
    candidate = forward_pass(
        new_trace,
        [("conv1", "aten::conv2d", [[8, 3, 9, 9], [4, 3, 3, 3]], 10), ("norm", "aten::layer_norm", [[8, 4]], 6),
         ("act", "aten::gelu", [[8, 4]], 3)],
    )  # fmt: skip
    found = compare(base, candidate)
    assert rows(found) == [
        ("act", "gelu", "", "replaced", None, 3),
        ("act", "relu", "", "replaced", 4, None),
        ("conv1", "conv2d", "module", "", 20, 10),
        ("drop", "dropout", "", "layer", 5, None),
        ("norm", "layer_norm", "", "layer", None, 6),
    ]
    assert found.shares[0].unmatched_ns == 9_000
    assert found.shares[1].matched_percent == pytest.approx(100 * 10 / 19)


def test_a_layer_put_in_front_shifts_names_but_not_partners(new_trace) -> None:
    def layers(*sizes: int) -> list[Layer]:
        return [(str(n), "aten::linear", [[8, a], [b, a]], a) for n, (a, b) in enumerate(itertools.pairwise(sizes))]

    found = compare(forward_pass(new_trace, layers(10, 20, 30)), forward_pass(new_trace, layers(5, 10, 20, 30)))
    assert rows(found) == [
        ("0", "linear", "", "more_calls", None, 5),
        ("0", "linear", "sequence", "", 10, 10),
        ("1", "linear", "sequence", "", 20, 20),
    ]
    assert {(pair.module, pair.b_module) for pair in found.pairs if pair.how} == {("0", "1"), ("1", "2")}


def test_a_layer_of_another_width_is_still_that_layer(new_trace) -> None:
    base = forward_pass(new_trace, [("fc", "aten::linear", [[8, 64], [10, 64]], 10)])
    candidate = forward_pass(new_trace, [("fc", "aten::linear", [[8, 128], [10, 128]], 20)])
    assert rows(compare(base, candidate)) == [("fc", "linear", "resized", "", 10, 20)]


def test_renamed_modules_match_by_order_and_dims(new_trace) -> None:
    dims = [[8, 3, 9, 9], [4, 3, 3, 3]]
    base = forward_pass(new_trace, [("a.conv", "aten::conv2d", dims, 20), ("a.fc", "aten::linear", [[8, 4]], 5)])
    other = forward_pass(new_trace, [("b.conv", "aten::conv2d", dims, 10), ("b.fc", "aten::linear", [[8, 4]], 2)])
    assert {row[2] for row in rows(compare(base, other))} == {"sequence"}


def test_without_modules_ops_of_other_dims_are_other_rows(new_trace) -> None:
    layers: list[Layer] = [("", "aten::linear", [[8, n], [n, n]], n) for n in (10, 20, 10)]
    found = compare(forward_pass(new_trace, layers), forward_pass(new_trace, layers))
    assert sorted((pair.dims, pair.a.time_ns if pair.a else 0) for pair in found.pairs) == [
        (((8, 10), (10, 10)), 20_000),
        (((8, 20), (20, 20)), 20_000),
    ]


def test_without_shapes_the_order_decides(new_trace) -> None:
    layers: list[Layer] = [("", "aten::linear", None, n) for n in (10, 20)]
    found = compare(forward_pass(new_trace, layers), forward_pass(new_trace, layers))
    assert found.matched_percent == 100
    assert found.batches is None


@pytest.mark.parametrize("recorded", [True, False])
def test_other_batch_sizes_are_seen_and_matched(new_trace, recorded: bool) -> None:
    def run(batch: int) -> ProfileView:
        layers: list[Layer] = [("", "aten::linear", [[batch, n], [16, n]], batch) for n in (10, 20, 30)]
        facts = {"facts": RunFacts(batch_size=batch)} if recorded else {}
        return forward_pass(new_trace, layers, **facts)

    found = compare(run(8), run(32))
    assert found.matched_percent == 100
    assert {pair.how for pair in found.pairs} == {"module"}
    assert found.batches is not None
    assert found.batches.recorded is recorded
    assert found.batches.b / found.batches.a == 4
    # Steps are of the same length: four times as many samples a second.
    assert (found.speedup, found.per_sample) == (1.0, 4.0)


def test_lists_of_tensors_and_odd_dims_are_compared_too(new_trace) -> None:
    odd: list[Any] = [[[[8, 4], [8, 2]], [], [8, 6]], [[[]], "x"], [[0, 3]]]

    def run(batch: int) -> ProfileView:
        layers: list[Layer] = [("", "aten::cat", dims, 5) for dims in odd]
        return forward_pass(new_trace, layers, facts=RunFacts(batch_size=batch))

    for batch in (8, 16):
        assert compare(run(8), run(batch)).matched_percent == 100


def test_more_calls_of_an_op_are_no_counterpart(new_trace) -> None:
    once: list[Layer] = [("fc", "aten::linear", [[8, 64]], 10)]
    found = compare(forward_pass(new_trace, once), forward_pass(new_trace, once * 2))
    assert rows(found) == [("fc", "linear", "", "more_calls", None, 10), ("fc", "linear", "module", "", 10, 10)]


def test_compiled_code_is_a_bucket_of_both_sides(new_trace) -> None:
    base = forward_pass(new_trace, [("fc", "aten::linear", [[8, 64]], 10), ("act", "aten::relu", [[8, 64]], 5)])
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.op("Torch-Compiled Region: 0/0", 10, 50)
    trace.op("triton_poi_fused_addmm_relu_0", 20, 10, dims=[[8, 64]])
    trace.launch(KERNEL, 22, 30, 7)
    found = compare(base, trace.view())
    assert {pair.reason for pair in found.pairs} == {"compiled"}
    assert (found.shares[0].compiled_ns, found.shares[1].compiled_ns) == (15_000, 7_000)
    assert (found.shares[0].matched_percent, found.shares[0].unmatched_ns) == (0, 0)


def test_gradscalers_work_is_told_from_the_models(new_trace) -> None:
    trace = new_trace()
    for index in range(2):
        at = 1000 * index
        trace.step(index, at, 1000)
        script = [
            ("aten::mul", [[8, 4], [8, 4]]),
            ("aten::mul", [[], []]),  # loss times scale
            ("aten::ones_like", [[]]),
        ]
        for number, (name, dims) in enumerate(script):
            trace.op(name, at + 20 * number, 10, dims=dims, types=["float"] * len(dims), seq=100 * index + number)
            trace.launch(KERNEL, at + 20 * number + 1, at + 20 * number + 5, 2)
        for number, seq in enumerate((1, 0)):
            trace.backward("MulBackward0", at + 100 + 20 * number, 10, 100 * index + seq)
            trace.launch(KERNEL, at + 101 + 20 * number, at + 105 + 20 * number, 2, tid=2)
        unscaling = ["reciprocal", "full", "to", "_amp_foreach_non_finite_check_and_unscale_", "item"]
        for number, name in enumerate(unscaling):
            trace.op("aten::" + name, at + 200 + 20 * number, 10, dims=[[]], types=["float"])
            trace.launch(KERNEL, at + 201 + 20 * number, at + 205 + 20 * number, 2)
        trace.op("aten::add_", at + 400, 10, dims=[[8, 4]], types=["float"])
        trace.launch(KERNEL, at + 401, at + 405, 2)
        # The user's own reading of the loss lies apart.
        trace.op("aten::item", at + 420, 10, dims=[[]], types=["float"])
        trace.launch(KERNEL, at + 421, at + 425, 2)
    view = trace.view()
    profile = view.profile
    tops = scaler_calls(view) & profile.ops.top[profile.calls.op]
    names = sorted(profile.strings[name] for name in profile.ops.name[profile.calls.op[tops]].tolist())
    assert names == sorted(
        2 * [
            "aten::mul",
            "autograd::engine::evaluate_function: MulBackward0",
            *("aten::" + name for name in unscaling),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("types", "kernel", "cast"),
    [
        (["c10::Half", "float"], KERNEL, True),
        (["float", "c10::BFloat16", "Scalar"], KERNEL, True),
        (["float", "float"], KERNEL, False),
        (["float", "bool"], KERNEL, False),
        (None, CAST, True),
        (None, KERNEL, False),
    ],
)
def test_a_cast_goes_from_one_floating_point_type_to_another(new_trace, types, kernel: str, cast: bool) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::linear", 10, 50, dims=[[8, 4]], types=["float"])
    trace.op("aten::to", 12, 20, dims=[[8, 4]], types=types and ["float"])
    trace.op("aten::_to_copy", 13, 18, dims=[[8, 4]], types=types and ["float"])
    trace.op("aten::copy_", 14, 16, dims=[[8, 4], [8, 4]], types=types)
    trace.launch(kernel, 15, 20, 3)
    trace.launch(KERNEL, 40, 50, 9)
    view = trace.view()
    assert bool(cast_calls(view).any()) is cast
    (linear,) = (pair for pair in compare(view, view).pairs)
    assert linear.a is not None
    assert (linear.a.time_ns, linear.a.cast_ns) == (12_000, 3_000 if cast else 0)


def test_idle_time_belongs_to_what_the_cpu_does(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.loader(0, 100)
    trace.op("aten::relu", 200, 100)
    trace.launch(KERNEL, 280, 290, 110)
    trace.runtime(400, 300, name="cudaDeviceSynchronize")
    trace.op("aten::add", 800, 10)
    view = trace.view()
    run = run_of(view, view.selection())
    times = bucket_times(run, "gpu")
    found = dict(zip(times.labels, (times.by_iteration[0] // 1000).tolist(), strict=True))
    assert {name: value for name, value in found.items() if value} == {
        "dataloader": 100,
        # To the kernel's start, and the op that launches nothing.
        "cpu_launch": 90 + 10,
        "other_compute": 110,
        "python": 100 + 100 + 190,
        # The CPU waits for a GPU that has nothing to do.
        "idle": 300,
    }
    (relu, add) = (times.by_site[site] // 1000 for site in range(2))
    assert (relu[list(times.labels).index("cpu_launch")], add.sum()) == (90, 10)


def test_a_run_without_a_gpu_is_split_by_the_parts_of_its_step(cpu_view: ProfileView) -> None:
    found = compare(cpu_view, cpu_view)
    assert found.basis == "cpu"
    assert {bucket.key: bucket.a_ns // 1000 for bucket in found.buckets} == {
        "dataloader": 10,
        "backward": 20,
        "forward": 30,
        "optimizer": 15,
        "other": 25,
    }
    assert found.matched_percent == 100
    assert {bucket.difference_ns for bucket in found.buckets} == {0}


def test_noise_is_told_from_a_difference(new_trace) -> None:
    def run(times: list[float]) -> ProfileView:
        trace = new_trace()
        for index, time in enumerate(times):
            trace.step(index, 1000 * index, 1000)
            trace.op("aten::relu", 1000 * index + 10, 20)
            trace.launch(KERNEL, 1000 * index + 12, 1000 * index + 40, time)
        return trace.view()

    steady, noisy = run([100, 101, 99, 100]), run([90, 130, 80, 101])
    faster = run([50, 51, 49, 50])
    assert [pair.noise for pair in compare(steady, noisy).pairs] == [True]
    assert [pair.noise for pair in compare(steady, faster).pairs] == [False]
    assert [pair.noise for pair in compare(steady, run([100])).pairs] == [None]
