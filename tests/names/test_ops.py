"""What is left of an op's name without its namespaces."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.names.ops import short_op_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::conv2d", "conv2d"),
        ("autograd::engine::evaluate_function: ConvolutionBackward0", "ConvolutionBackward0"),
        ("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "AccumulateGrad"),
        ("my_extension::aten::op", "my_extension::aten::op"),
    ],
)
def test_the_type_of_an_op_has_no_namespace_of_pytorchs(name: str, short: str) -> None:
    assert short_op_name(name) == short
