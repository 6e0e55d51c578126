"""What NVTX ranges mean: each convention by its texts, and the iterations that ranges mark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.nsys_database import NsysDatabase

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.model.profile import CallKind, Profile, Role
from tb_dlprof_plugin.model.shapes import TensorList
from tb_dlprof_plugin.model.timeline import HostKind, StatedOp
from tb_dlprof_plugin.profile_view import ProfileView, op_name
from tb_dlprof_plugin.readers.nvtx import pyprof, tensorflow, tensorrt, xla
from tb_dlprof_plugin.readers.nvtx.emit_nvtx import EmitNvtx
from tb_dlprof_plugin.readers.nvtx.parts import part_named
from tb_dlprof_plugin.readers.options import Markers, ReadOptions


@pytest.fixture
def database(tmp_path: Path) -> NsysDatabase:
    return NsysDatabase(tmp_path / "report.sqlite")


def only(database: NsysDatabase, markers: Markers = Markers.AUTO) -> Profile:
    (profile,) = analyze_ranks(database.write(), options=ReadOptions(markers))
    return profile


def ops_of(profile: Profile) -> set[str]:
    """Names of the outermost ops that ran, with their modules."""
    groups, strings = ProfileView(profile).groups, profile.strings
    return {
        op_name(strings[m], strings[t]) for m, t in zip(groups.module.tolist(), groups.op_type.tolist(), strict=True)
    }


def roles_of(profile: Profile) -> dict[str, Role]:
    ops = profile.ops
    rows = np.flatnonzero(ops.kind == CallKind.OP).tolist()
    return {profile.strings[ops.name[row]]: Role(int(ops.role[row])) for row in rows}


def iterations_us(profile: Profile) -> list[tuple[int, float, float]]:
    """Number, start and stop of each, as the CPU ran them, in µs from the first."""
    one = profile.iterations
    rows = zip(one.number.tolist(), one.host_start_ns.tolist(), one.host_stop_ns.tolist(), strict=True)
    return [(n, (a - int(one.host_start_ns[0])) / 1000, (b - int(one.host_start_ns[0])) / 1000) for n, a, b in rows]


class TestEmitNvtx:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("aten::mm, seq = 5, op_id = 7, sizes = [[2, 3], [3, 4]]", ("aten::mm", 5, 7, ((2, 3), (3, 4)), False)),
            (
                "aten::cat, op_id = 7, sizes = [[[2], [3]], []], input_op_ids = [(1,0), (0,-1)]",
                ("aten::cat", -1, 7, (TensorList(((2,), (3,))), ()), False),
            ),
            ("AddmmBackward0, seq = 5, op_id = 9", ("AddmmBackward0", 5, 9, None, True)),
            ("autograd::engine::evaluate_function: AddmmBackward0, op_id = 8",
             ("autograd::engine::evaluate_function: AddmmBackward0", -1, 8, None, False)),
            ("aten::mm, seq = -1", ("aten::mm", -1, -1, None, False)),
            ("aten::mm, seq=3", ("aten::mm", 3, -1, None, False)),
            ("aten::mm, op_id = 7, sizes = [[2, 3", ("aten::mm", -1, 7, None, False)),
        ],
    )  # fmt: skip
    def test_a_text_gives_the_op_with_its_numbers_and_shapes(self, text: str, expected: tuple[object, ...]) -> None:
        found = EmitNvtx(namespaces=True).meaning(text)
        assert found is not None
        assert (found.name, found.sequence_number, found.op_id, found.shapes, found.backward) == expected

    def test_ops_of_old_versions_get_the_namespace_that_they_lack(self) -> None:
        found = EmitNvtx(namespaces=False).meaning("addmm, seq = 65")
        assert found is not None
        assert found.name == "aten::addmm"

    @pytest.mark.parametrize("text", ["forward, please", "a, seq = x", "", "seq = 5"])
    def test_other_texts_are_the_users(self, text: str) -> None:
        assert EmitNvtx(namespaces=True).meaning(text) is None


class TestPyprof:
    def test_the_operator_s_name_is_the_function_s(self) -> None:
        names = {"__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_", "__matmul__": "matmul", "__len__": "__len__"}
        assert {op: pyprof.meaning_of_dict(f"{{'op': '{op}'}}").name for op in names} == names

    def test_the_stack_of_functions_gives_the_module_and_the_trace_marker_the_place(self) -> None:
        text = (
            "{'traceMarker': ['train.py:34', '/usr/lib/python3/dist-packages/torch/nn/module.py:680'], "
            "'funcStack': '/<module>/net::forward/Conv2d::_call_impl/Conv2d::forward/conv2d'}"
        )
        found = pyprof.meaning_of_dict(text)
        assert (found.kind, found.name, found.place) == (HostKind.PYTHON_MODULE, "net.Conv2d", "train.py:34")

    @pytest.mark.parametrize(
        ("stack", "module"),
        [
            ("/train/Net::_call_impl/Net::forward/Conv2d::_call_impl/Conv2d::forward", "Net.Conv2d"),
            ("/train/Net::_call_impl/Net::forward/Conv2d::_call_impl(2)/Conv2d::forward", "Net.Conv2d_2"),
            ("/train/Net::_call_impl/Net::forward/Conv2d::_call_impl(3)/Conv2d::forward(2)/conv2d", "Net.Conv2d_3"),
            ("/Net::_wrapped_call_impl/Net::_call_impl(2)/Net::forward/Linear::_wrapped_call_impl(4)", "Net.Linear_4"),
            ("/Net::forward/Net::features(2)/Conv2d::_call_impl/Conv2d::forward", "Net.Conv2d"),
            (
                "/Sequential::_call_impl/Sequential::forward/Sequential::_call_impl(2)/Sequential::forward",
                "Sequential.Sequential_2",
            ),
        ],
    )
    def test_layers_of_one_class_stay_apart_by_the_number_of_their_call(self, stack: str, module: str) -> None:
        assert pyprof.meaning_of_dict(str({"traceMarker": ["train.py:5"], "funcStack": stack})).name == module

    def test_layers_of_one_class_are_modules_of_their_own(self, database) -> None:
        for number, layer in enumerate(("Conv2d::_call_impl", "Conv2d::_call_impl(2)")):
            stack = f"/main/Net::_call_impl/Net::forward/{layer}/Conv2d::forward"
            database.range(str({"traceMarker": ["train.py:5"], "funcStack": stack}), number * 100, 90)
            database.range(str({"mod": "torch.nn.functional", "op": "conv2d", "args": []}), number * 100 + 5, 80)
            database.launch("conv", number * 100 + 10, number * 100 + 20, 20)
        assert ops_of(only(database)) == {"Net.Conv2d/conv2d", "Net.Conv2d_2/conv2d"}

    def test_a_text_that_was_cut_still_names_its_op(self) -> None:
        found = pyprof.meaning_of_dict("{'mod': 'torch', 'op': 'conv2d', 'args': [{'name': '', 'type': 'ten")
        assert (found.kind, found.name) == (HostKind.OP, "conv2d")

    @pytest.mark.parametrize("text", ["{'op': 9}", "{'mod'", "{'op': ['a']}", "{'mod': __import__('os')}"])
    def test_what_says_nothing_is_left_out(self, text: str) -> None:
        assert pyprof.meaning_of_dict(text).kind is None


class TestTensorFlow:
    def test_a_node_is_its_type_in_the_module_of_its_scope(self) -> None:
        found = tensorflow.meaning("MatMul: model/dense/MatMul")
        assert (found.kind, found.name, found.module) == (HostKind.OP, "MatMul", "model.dense")

    def test_detailed_ranges_have_shapes_and_the_data_type(self) -> None:
        found = tensorflow.meaning(
            '{"op":"Conv2D","name":"conv1/Conv2D","args":[{"name":"in","shape":[8,32,32,3]},null],"attrs":{"T":"DT_HALF"}}'
        )
        assert (found.name, found.module, found.shapes) == ("Conv2D", "conv1", ((8, 32, 32, 3), None))
        assert found.dtypes is not None
        assert [one.label for one in found.dtypes] == ["fp16", "fp16"]


class TestTensorRt:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("/layer1/conv1/Conv + /layer1/relu/Relu", "Conv + Relu"),
            ("Conv_0 + Relu_1", "Conv + Relu"),
            ("Reformatting CopyNode for Input Tensor 0 to Conv_0 + Relu_1", "Reformatting CopyNode"),
            ("PWN(PWN(/sigmoid/Sigmoid), /Mul)", "PWN"),
            ("{ForeignNode[/a...b]}", "ForeignNode"),
            ("/hm/Conv + PWN(/Sigmoid_3)", "Conv + Sigmoid"),
        ],
    )
    def test_a_layer_s_type_is_read_from_its_name(self, name: str, kind: str) -> None:
        found = tensorrt.meaning(name)
        assert (found.kind, found.name, found.stated) == (HostKind.OP, name, StatedOp(kind))
        assert found.module

    def test_of_layers_put_together_the_first_says_the_module(self) -> None:
        text = "Reformatting CopyNode for Output Tensor 0 to PWN(PWN(/a/b/Sigmoid), /a/Mul)"
        assert tensorrt.meaning(text).module == "a.b.Sigmoid"

    def test_layers_are_ops_and_executions_are_iterations(self, database) -> None:
        database.domain("TensorRT", 2)
        for at in (0, 100, 200):
            database.range(None, at, 90, textId=database.text("ExecutionContext::enqueue"), domainId=2)
            database.range(None, at + 5, 20, textId=database.text("/conv1/Conv + /relu/Relu"), domainId=2)
            database.launch("sm80_xmma_fprop_f16f16", at + 10, at + 50, 20)
        profile = only(database)
        assert profile.source.framework == "tensorrt"
        assert ops_of(profile) == {"conv1.Conv/Conv + Relu"}
        assert (profile.iterations.found_by, len(profile.iterations)) == ("tensorrt_executions", 3)

    def test_the_warm_up_of_an_engine_is_left_out(self, database) -> None:
        database.domain("TensorRT", 2)
        at = 0
        for number in range(60):
            database.range(None, at, 5, textId=database.text("ExecutionContext::enqueue"), domainId=2)
            database.range(None, at + 1, 2, textId=database.text("/conv1/Conv + /relu/Relu"), domainId=2)
            database.launch("sm80_xmma_fprop_f16f16", at + 1, at + 3, 20)
            at += 130 if number < 20 else 100
        profile = only(database)
        assert (len(profile.iterations), int(profile.iterations.number[0])) == (40, 20)
        assert "The first 20 inferences are the warm-up, and are left out: they take 30 % longer." in [
            note.text for note in profile.notes
        ]


class TestXla:
    def test_thunks_are_ops_of_their_module_and_autotuning_is_none_of_it(self, database) -> None:
        database.domain("TSL", 1)
        database.range("XlaCompile:#module=jit_step#", 0, 50, domainId=1)
        database.range("Thunk:#hlo_op=tried.1#", 10, 10, domainId=1)
        for at in (100, 200, 300):
            database.range("XlaModule:#prefix=jit(step),hlo_module=jit_step,program_id=3#", at, 80, domainId=1)
            database.range("Thunk:#name=command_buffer,hlo_op=call.1#", at + 10, 60, domainId=1)
            database.range("Thunk:#hlo_op=fusion.12#", at + 20, 20, domainId=1)
            database.launch("fusion_12", at + 25, at + 40, 20)
        profile = only(database)
        assert profile.source.framework == "jax"
        assert ops_of(profile) == {"jit_step/fusion"}
        assert (profile.iterations.found_by, len(profile.iterations)) == ("xla_modules", 3)

    @pytest.mark.parametrize("threads", ["one for each GPU", "one for all"])
    def test_the_runs_of_a_program_on_all_gpus_are_one_step(self, database, threads: str) -> None:
        database.domain("TSL", 1)
        for gpu in range(2):
            tid = gpu + 1 if threads == "one for each GPU" else 1
            if tid > gpu:
                text = f"XlaLauncher:#global={gpu},local={gpu},process=0,partition={gpu}#"
                database.range(text, 0, 1000, domainId=1, tid=tid)
            for at in (100, 300, 500):
                start = at + 90 * gpu
                database.range("XlaModule:#hlo_module=jit_step,program_id=3#", start, 80, domainId=1, tid=tid)
                database.launch("fusion_12", start + 25, start + 40, 20, tid=tid, deviceId=gpu)
        profile = only(database)
        assert (profile.iterations.found_by, len(profile.iterations)) == ("xla_modules", 3)
        assert np.diff(profile.iterations.start_ns).tolist() == [200_000, 200_000]

    def test_a_range_of_the_program_around_its_runs_hides_no_step(self, database) -> None:
        database.domain("TSL", 1)
        database.range("benchmark", 0, 1000)
        for at in (100, 200, 300):
            database.range("XlaModule:#hlo_module=jit_step,program_id=3#", at, 80, domainId=1)
            database.range("XlaModule:#hlo_module=jit_inner,program_id=4#", at + 5, 70, domainId=1)
            database.launch("fusion_12", at + 25, at + 40, 20)
        profile = only(database)
        assert (profile.iterations.found_by, len(profile.iterations)) == ("xla_modules", 3)

    def test_names_are_those_of_hlo(self) -> None:
        assert xla.Xla([]).meaning("Thunk:#hlo_op=fusion.12#").name == "fusion.12"
        assert xla.Xla([]).meaning("TfOp").kind is HostKind.ANNOTATION

    def test_paths_of_names_say_module_type_and_part_of_the_step(self) -> None:
        texts = [
            f"Thunk:#name=jit(step){path},hlo_op={op},unique_hlo_op_id=3#"
            for path, op in (
                ("/jvp(layer_0)/attention/dot_general", "gemm_fusion_dot.1"),
                ("/transpose(jvp(layer_0))/attention/bqhd,bkhd->bhqk/transpose", "gemm_fusion_dot.2"),
                ("/transpose(jvp(layer_0))/mlp/transpose", "custom-call.1"),
                ("/jvp(layer_0)/attention", "loop_add_fusion.3"),
                ("", "loop_subtract_fusion"),
            )
        ]
        found = xla.Xla(texts)
        assert [found.meaning(text).stated for text in texts] == [
            StatedOp("dot_general", "jit_step.layer_0.attention", Role.FORWARD),
            StatedOp("dot_general", "jit_step.layer_0.attention", Role.BACKWARD),
            StatedOp("dot_general", "jit_step.layer_0.mlp", Role.BACKWARD),
            StatedOp("loop_add_fusion", "jit_step.layer_0.attention", Role.FORWARD),
            StatedOp("loop_subtract_fusion", "jit_step", Role.OTHER),
        ]

    def test_instructions_of_two_programs_with_one_name_are_two_ops(self) -> None:
        texts = [f"Thunk:#name=jit({step})/jvp({layer})/mul,hlo_op=fusion.1#" for step, layer in ("ta", "vb")]
        found = xla.Xla(texts)
        assert [found.meaning(text).name for text in texts] == ["fusion.1", "jit_v/fusion.1"]

    def test_without_paths_of_names_the_part_of_the_step_is_not_guessed(self) -> None:
        text = "Thunk:#hlo_op=loop_add_fusion.12#"
        assert xla.Xla([text]).meaning(text).stated == StatedOp("loop_add_fusion", "", Role.OTHER)


class TestRangesByHand:
    def test_the_innermost_are_ops_and_those_around_are_modules(self, database) -> None:
        database.range("model", 0, 100)
        database.range("attention", 10, 40)
        database.range("softmax", 20, 10)
        database.launch("one", 22, 100, 5)
        database.launch("two", 60, 110, 5)
        assert ops_of(only(database)) == {"model.attention/softmax", "model/model"}

    def test_ranges_that_name_a_part_of_the_step_are_that_part(self, database) -> None:
        for at in (0, 1000, 2000):
            database.range(f"step {at // 1000}", at, 990)
            for name, begin in (("data", 0), ("forward", 100), ("loss.backward", 400), ("optimizer.step", 700)):
                database.range(name, at + begin, 90)
                database.launch("k", at + begin + 10, at + begin + 20, 50)
            database.range("attention", at + 110, 50)
        assert roles_of(only(database)) == {
            "data": Role.OTHER,
            "attention": Role.FORWARD,
            "loss.backward": Role.BACKWARD,
            "optimizer.step": Role.OPTIMIZER,
        }

    def test_ops_in_a_range_that_names_a_part_of_the_step_are_of_that_part(self, database) -> None:
        for number, name in enumerate(("forward", "backward", "optimizer")):
            database.range(name, number * 100, 90)
            database.range(f"aten::mm{number}, op_id = {number + 1}", number * 100 + 5, 50)
            database.launch("k", number * 100 + 10, number * 100 + 20, 50)
        expected = {"aten::mm0": Role.FORWARD, "aten::mm1": Role.BACKWARD, "aten::mm2": Role.OPTIMIZER}
        assert roles_of(only(database)) == expected

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("forward", Role.FORWARD),
            ("Fwd pass", Role.FORWARD),
            ("transformer_engine._Linear.backward.dgrad", Role.BACKWARD),
            ("lossBackward", Role.BACKWARD),
            ("optimizer.step()", Role.OPTIMIZER),
            ("opt_step", Role.OPTIMIZER),
            ("zero_grad", Role.OPTIMIZER),
            ("forward_backward", Role.OTHER),
            ("feed_forward", Role.OTHER),
            ("FeedForward backward", Role.BACKWARD),
            ("opt-125m", Role.OTHER),
            ("optional", Role.OTHER),
            ("straightforward", Role.OTHER),
        ],
    )
    def test_the_part_is_a_word_of_the_name(self, text: str, part: Role) -> None:
        assert part_named(text) == part

    def test_ranges_of_libraries_are_no_ops(self, database) -> None:
        database.domain("NCCL", 1)
        database.range("step of mine", 0, 20)
        database.range("ncclAllReduce", 5, 10, domainId=1)
        database.launch("ncclDevKernel_AllReduce", 7, 30, 5)
        profile = only(database)
        assert ops_of(profile) == {"step of mine"}
        kinds = {
            profile.strings[n]: CallKind(k)
            for n, k in zip(profile.ops.name.tolist(), profile.ops.kind.tolist(), strict=True)
        }
        assert kinds["NCCL:ncclAllReduce"] is CallKind.ANNOTATION

    @pytest.mark.parametrize(
        ("markers", "ops"),
        [
            (Markers.AUTO, {"mm"}),
            (Markers.EMIT_NVTX, {"mm"}),
            (Markers.RANGES, {"block/mm"}),
            (Markers.TENSORRT, {"mm"}),
            (Markers.NONE, set()),
        ],
    )
    def test_the_convention_can_be_named(self, database, markers: Markers, ops: set[str]) -> None:
        database.range("block", 0, 20)
        database.range("aten::mm, op_id = 1", 5, 10)
        database.launch("k", 7, 30, 5)
        assert ops_of(only(database, markers)) == ops


class TestIterations:
    def test_ranges_that_differ_by_a_number_are_iterations_that_share_their_boundaries(self, database) -> None:
        for number, at in ((7, 0), (8, 100), (9, 205)):
            database.range(f"iteration {number}", at, 90)
            database.range("forward", at + 10, 50)
            database.launch("k", at + 20, at + 40, 10)
        profile = only(database)
        assert profile.iterations.found_by == "nvtx_ranges"
        assert iterations_us(profile) == [(7, 0, 100), (8, 100, 205), (9, 205, 295)]
        assert ops_of(profile) == {"forward"}

    def test_layers_are_no_iterations(self, database) -> None:
        for number in range(12):
            database.range(f"layer {number}", number * 10, 9)
            database.launch("k", number * 10 + 1, 200 + number, 1)
        assert only(database).iterations.found_by == "none"

    def test_ranges_of_nvfuser_in_ops_are_no_iterations(self, database) -> None:
        for op in range(12):
            database.range(f"CudaFusionGroup, seq = {op}, op_id = {op + 1}", op * 200, 150)
            for depth, inner in enumerate(("FusionDefinition::execute", "KernelExecutor::run", "run")):
                database.range(inner, op * 200 + 10 * depth + 5, 100 - 10 * depth)
            database.launch("nvfuser_pointwise_f1", op * 200 + 40, op * 200 + 60, 20)
        assert only(database).iterations.found_by == "none"

    def test_ranges_of_nvfuser_alone_are_no_iterations(self, database) -> None:
        for at in range(0, 1200, 200):
            database.range("FusionDefinition::execute", at, 100)
            database.launch("nvfuser_pointwise_f1", at + 40, at + 60, 20)
        assert only(database).iterations.found_by == "none"

    @pytest.mark.parametrize("around", ["train_loop, op_id = 1", "solver, op_id = 1"])
    def test_an_op_that_is_a_loop_of_the_program_hides_no_iteration(self, database, around: str) -> None:
        database.range(around, 0, 1000)
        for number in range(4):
            database.range(f"iteration {number}", number * 200 + 10, 150)
            database.launch("k", number * 200 + 40, number * 200 + 60, 20)
        assert len(only(database).iterations) == 4

    def test_what_comes_several_times_in_a_larger_range_that_repeats_is_no_iteration(self, database) -> None:
        for at in (0, 1000, 2000):
            database.range("forward", at, 450)
            database.range("backward", at + 500, 400)
            for run in range(4):
                database.range("run", at + 100 * run, 90)
                database.launch("k", at + 100 * run + 10, at + 100 * run + 20, 20)
        assert [start for _, start, _ in iterations_us(only(database))] == [0, 1000, 2000]

    def test_batches_of_several_epochs_are_iterations(self, database) -> None:
        for epoch in range(2):
            database.range(f"epoch {epoch}", epoch * 1000, 900)
            for batch in range(4):
                database.range(f"batch {batch}", epoch * 1000 + 100 * batch, 90)
                database.launch("k", epoch * 1000 + 100 * batch + 10, epoch * 1000 + 100 * batch + 20, 20)
        assert len(only(database).iterations) == 8

    def test_a_step_s_name_that_repeats_marks_iterations(self, database) -> None:
        for at in (0, 100, 200):
            database.range("train_step", at, 90)
            database.range("forward", at + 10, 20)
            database.launch("k", at + 12, at + 30, 5)
        assert [n for n, *_ in iterations_us(only(database))] == [0, 1, 2]

    def test_a_sequence_of_ranges_that_repeats_marks_iterations(self, database) -> None:
        for at in (0, 100, 200):
            for number, name in enumerate(("forward", "backward", "update")):
                database.range(name, at + 30 * number, 25)
                database.launch("k", at + 30 * number + 2, at + 30 * number + 10, 5)
        assert iterations_us(only(database)) == [(0, 0, 100), (1, 100, 200), (2, 200, 285)]

    def test_optimizer_steps_count_where_nothing_else_marks_any(self, database) -> None:
        for at in (0, 100):
            database.range("aten::mm, op_id = 1", at, 20)
            database.launch("k", at + 5, at + 30, 5)
            database.range("Optimizer.step#SGD.step, op_id = 2", at + 60, 20)
        profile = only(database)
        assert (profile.iterations.found_by, len(profile.iterations)) == ("optimizer_step", 2)

    def test_global_step_is_dlprof_s_key_node(self, database) -> None:
        database.domain("tensorflow-core", 1)
        for at in (0, 100, 200):
            database.range("MatMul: dense/MatMul", at, 20, domainId=1)
            database.launch("k", at + 5, at + 30, 5)
            database.range("AssignAdd: global_step", at + 60, 20, domainId=1)
        profile = only(database)
        assert profile.source.framework == "tensorflow"
        assert (profile.iterations.found_by, len(profile.iterations)) == ("global_step", 3)
