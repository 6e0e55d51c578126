"""Types as autocast would give them, on literal forward passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tb_dlprof_plugin.planning.dtype_flow import FP32, HALF, Cast, Flow, float_shapes, flow, rule_of
from tb_dlprof_plugin.readers.input_text import parse_dtypes, parse_shapes

IMAGE, MAP = [2, 3, 8, 8], [2, 16, 8, 8]
ROWS, HIDDEN = [4, 10, 16], [4, 10, 64]
CASE = tuple[str, bool, list[int]]
"""An op, whether it computes in half precision, and the elements of each tensor that it casts."""


class Walk:
    """A forward pass op by op, with the ops inside of each, and parameters that get a gradient."""

    def __init__(self, trace: Any) -> None:
        self._trace, self._at = trace, 0.0

    def op(self, name: str, *inputs: list[int], inside: tuple[str, ...] = (), types: Any = None, **where: Any) -> None:
        """An op of 10 µs; its inputs are FP32 unless ``types`` says otherwise."""
        types = types or ["float"] * len(inputs)
        dims = list(inputs)
        self._trace.op(f"aten::{name}", self._at, 10, dims=dims, types=types, **where)
        for place, inner in enumerate(inside):
            self._trace.op(f"aten::{inner}", self._at + 1 + 2 * place, 1, dims=dims, types=types, **where)
        self._at += 20

    def module(self, path: str, ops: int) -> None:
        """A module around the next ops."""
        self._trace.module(path, self._at - 1, 20 * ops)

    def parameters(self, *shapes: list[int]) -> None:
        for shape in shapes:
            name = "torch::autograd::AccumulateGrad"
            self._trace.op(name, self._at, 5, tid=2, dims=[shape], types=["float"])
            self._at += 20

    def view(self) -> Any:
        self._trace.step(0, -5, self._at + 10)
        return self._trace.view()

    def flow(self) -> Flow:
        return flow(self.view(), 0)

    def cases(self) -> list[CASE]:
        view = self.view()
        profile = view.profile
        return [
            (
                profile.strings[profile.ops.name[profile.calls.op[op.call]]].removeprefix("aten::"),
                op.half,
                [cast.elements for cast in op.casts],
            )
            for op in flow(view, 0).ops
        ]


@pytest.fixture
def walk(new_trace: Callable[..., Any]) -> Walk:
    return Walk(new_trace())


def test_a_residual_block_stays_in_half_precision(walk: Walk) -> None:
    norm = ([16],) * 4
    walk.op("to", IMAGE)
    walk.op("conv2d", IMAGE, [16, 3, 3, 3])
    walk.op("batch_norm", MAP, *norm)
    walk.op("relu_", MAP)
    walk.op("conv2d", MAP, [16, 16, 3, 3])
    walk.op("batch_norm", MAP, *norm)
    walk.op("add_", MAP, MAP)
    walk.op("relu_", MAP)
    walk.op("conv2d", MAP, [16, 16, 3, 3])
    walk.parameters([16, 3, 3, 3], [16, 16, 3, 3], [16], [16])
    assert walk.cases() == [
        ("conv2d", True, [384, 432]),
        ("batch_norm", True, []),
        ("relu_", True, []),
        ("conv2d", True, [2304]),
        ("batch_norm", True, []),
        ("add_", True, []),
        ("relu_", True, []),
        ("conv2d", True, [2304]),
    ]


def test_parameters_are_told_by_their_gradients_and_the_images_have_none(walk: Walk) -> None:
    walk.op("to", IMAGE)
    walk.op("conv2d", IMAGE, [16, 3, 3, 3], [16])
    walk.parameters([16, 3, 3, 3], [16])
    found = walk.flow()
    assert found.ops[0].casts == [
        Cast(384, parameter=False, differentiated=False),
        Cast(432, parameter=True, differentiated=True),
        Cast(16, parameter=True, differentiated=True),
    ]
    assert (found.parameters, found.parameter_elements) == (2, 448)


def test_images_that_are_only_scaled_have_no_gradient_either(walk: Walk) -> None:
    walk.op("to", IMAGE, types=["unsigned char"])
    walk.op("div_", IMAGE, [], types=["float", "long int"])
    walk.op("conv2d", IMAGE, [16, 3, 3, 3])
    walk.parameters([16, 3, 3, 3])
    assert [cast.differentiated for cast in walk.flow().ops[-1].casts] == [False, True]


def test_labels_that_were_moved_are_no_images(walk: Walk) -> None:
    # GIVEN two branches from one convolution, and labels of which no op ever takes anything
    walk.op("to", IMAGE)
    walk.op("to", [2], types=["long int"])
    walk.op("conv2d", IMAGE, [16, 3, 3, 3])
    walk.op("relu", MAP)
    walk.op("conv2d", MAP, [16, 16, 1, 1])
    walk.op("conv2d", MAP, [32, 16, 3, 3])
    walk.parameters([16, 3, 3, 3], [16, 16, 1, 1], [32, 16, 3, 3])
    # THEN the second branch takes the half precision images again
    assert walk.cases()[-2:] == [("conv2d", True, [256]), ("conv2d", True, [4608])]


def test_batch_norm_has_the_type_of_its_images(walk: Walk) -> None:
    walk.op("to", IMAGE)
    walk.op("batch_norm", IMAGE, [3], [3], [3], [3])
    walk.op("conv2d", IMAGE, [16, 3, 3, 3])
    walk.op("batch_norm", MAP, [16], [16], [16], [16])
    walk.parameters([3], [16, 3, 3, 3], [16])
    assert [(name, half) for name, half, _ in walk.cases()] == [
        ("batch_norm", False),
        ("conv2d", True),
        ("batch_norm", True),
    ]


def _transformer(walk: Walk, embedded: bool) -> list[CASE]:
    """A block before whose first norm there is an embedding, or a linear layer."""
    if embedded:
        walk.op("embedding", [100, 16], [4, 10], types=["float", "long int"])
        walk.op("dropout", ROWS)
    else:
        walk.op("to", HIDDEN)
        walk.op("linear", HIDDEN, [16, 64], [16])
    walk.op("layer_norm", ROWS, [16], [16])
    walk.op("linear", ROWS, [64, 16], [64])
    walk.op("gelu", HIDDEN)
    walk.op("linear", HIDDEN, [16, 64], [16])
    walk.op("add", ROWS, ROWS)
    walk.op("layer_norm", ROWS, [16], [16])
    walk.parameters([100, 16], [64, 16], [64], [16, 64], [16])
    return walk.cases()[2:] if embedded else walk.cases()[1:]


def test_an_fp32_residual_keeps_the_sum_in_fp32_and_its_norm_casts_nothing(walk: Walk) -> None:
    assert _transformer(walk, embedded=True) == [
        ("layer_norm", False, []),
        ("linear", True, [640, 1024, 64]),
        ("gelu", True, []),
        ("linear", True, [1024, 16]),
        ("add", False, []),
        ("layer_norm", False, []),
    ]


def test_a_half_residual_keeps_the_sum_in_half_and_each_norm_casts_it(walk: Walk) -> None:
    assert _transformer(walk, embedded=False) == [
        ("layer_norm", False, [640]),
        ("linear", True, [640, 1024, 64]),
        ("gelu", True, []),
        ("linear", True, [1024, 16]),
        ("add", True, []),
        ("layer_norm", False, [640]),
    ]


def test_cross_entropy_casts_the_logits_and_no_labels(walk: Walk) -> None:
    walk.op("linear", [8, 16], [10, 16], [10])
    walk.op("cross_entropy_loss", [8, 10], [8], types=["float", "long int"], inside=("log_softmax", "nll_loss_nd"))
    walk.parameters([10, 16], [10])
    found = walk.flow().ops[-1]
    assert (found.half, found.casts) == (False, [Cast(80, parameter=False, differentiated=True)])


def test_attention_by_products_follows_its_inputs(walk: Walk) -> None:
    heads = [2, 4, 8, 16]
    walk.op("linear", ROWS, [16, 16])
    walk.op("view", ROWS)
    walk.op("matmul", heads, [2, 4, 16, 8])
    walk.op("softmax", [2, 4, 8, 8])
    walk.op("matmul", [2, 4, 8, 8], heads)
    walk.parameters([16, 16])
    # Softmax gives FP32, which the second product casts back.
    assert [(name, half) for name, half, _ in walk.cases()] == [
        ("linear", True),
        ("view", True),
        ("matmul", True),
        ("softmax", False),
        ("matmul", True),
    ]
    assert 2 * 4 * 8 * 8 in walk.cases()[-1][2]


def test_the_op_that_autocast_sees_first_decides_for_all_inside(walk: Walk) -> None:
    walk.op("linear", [8, 16], [10, 16], inside=("t", "addmm"))
    # What autocast has no rule for is looked into.
    walk.op("my_block", [8, 10], [4, 10], inside=("linear",))
    walk.parameters([10, 16], [4, 10])
    assert walk.cases() == [("linear", True, [128, 160]), ("linear", True, [40])]


def test_ops_of_the_backward_pass_and_other_iterations_are_left_out(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    for step in range(2):
        trace.step(step, 100 * step, 100)
        dims, types = [[8, 16], [10 + step, 16]], ["float"] * 2
        trace.op("aten::linear", 100 * step + 5, 10, seq=step, dims=dims, types=types)
        trace.backward("AddmmBackward0", 100 * step + 40, 20, step)
        trace.op("aten::mm", 100 * step + 45, 10, tid=2, dims=dims, types=types)
    view = trace.view()
    assert [[cast.elements for cast in op.casts] for op in flow(view, 0).ops] == [[128, 160]]
    assert [[cast.elements for cast in op.casts] for op in flow(view, 1).ops] == [[128, 176]]


def test_the_backward_pass_has_the_type_of_most_calls_of_its_op(walk: Walk) -> None:
    walk.module("relu", 3)
    walk.op("relu", [3, 3])
    walk.op("conv2d", [1, 3, 3, 3], [3, 3, 1, 1])
    walk.op("relu", [1, 3, 3, 3])
    view = walk.view()
    found = flow(view, 0).backward_half
    strings = view.profile.strings
    assert {(strings[module], strings[op]): half for (module, op), half in found.items()} == {
        ("relu", "relu"): False,
        ("relu", "conv2d"): True,
    }


def test_a_run_without_ops_has_no_flow(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.launch("k", 10, 20, 5)
    assert flow(trace.view(), 0) == Flow()


@pytest.mark.parametrize("name", ["linear", "addmm", "matmul", "scaled_dot_product_attention", "bmm"])
@pytest.mark.parametrize("inputs", [([],), ([], [], []), ([8, 16], []), ([8], [8]), ([0, 4], [4, 0])])
def test_shapes_that_no_product_has_tell_nothing_of_its_output(walk: Walk, name: str, inputs: Any) -> None:
    walk.op(name, *inputs)
    assert [case[:2] for case in walk.cases()] == [(name, True)]


@pytest.mark.parametrize(
    ("shapes", "dtypes", "expected"),
    [
        ("[[2,3],[4]]", '["float","float"]', ((2, 3), (4,))),
        ("[[2,3],[4],[5]]", '["float","long int","c10::Half"]', ((2, 3),)),
        ("[[],[]]", '["float","Scalar"]', ((),)),
        ("[[[2],[3]],[4]]", '["TensorList","float"]', ((4,),)),
        ("[[2,3]]", "", ()),
        ("", '["float"]', ()),
        ("[[2,3", '["float"]', ()),
        ('[["s0",3],[4]]', '["float","float"]', ((4,),)),
    ],
)
def test_only_fp32_tensors_have_a_type_to_change(shapes: str, dtypes: str, expected: Any) -> None:
    assert float_shapes(parse_shapes(shapes) or (), parse_dtypes(dtypes) or ()) == expected


def test_rules_are_pytorchs() -> None:
    assert not HALF & FP32
    names = ("aten::conv2d", "aten::linear", "aten::layer_norm", "aten::softmax", "aten::relu", "aten::batch_norm")
    assert [rule_of(name) for name in names] == ["half", "half", "fp32", "fp32", "follow", "follow"]
    # In place ops follow their tensor, whatever its type.
    assert rule_of("aten::add_") == "follow"
