"""Cases of `bias_before_batch_norm`: a convolution whose bias the batch norm cancels."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from advice.case import ANY, Case, between
from advice.training_step import ELEMENTWISE, IMAGES, NORM, REDUCE, SIMT_GEMM, WEIGHT, Step

from tb_dlprof_plugin.model.run_facts import RunFacts


def _layer(bias: Sequence[int] = (64,), shortcut: bool = False) -> Step:
    """A bias of 80 us forward and 60 us backward. A shortcut uses the output, too."""
    run = Step()
    two = ["float"] * 2
    adds = [("aten::add_", [IMAGES, [1, 64, 1, 1]], two, [(ELEMENTWISE, 80)])] if bias else []
    product = ("aten::cudnn_convolution", [IMAGES, WEIGHT], two, [(SIMT_GEMM, 300)])
    dims = [IMAGES, WEIGHT, list(bias)]
    conv = run.forward("conv", "aten::conv2d", [product, *adds], dims=dims, types=["float"] * 3)
    run.forward("norm", "aten::add_", dims=[[], []], types=["long int", "Scalar"])
    norm = run.forward("norm", "aten::batch_norm", [(NORM, 100)], dims=[IMAGES], types=["float"])
    summed = [("aten::add", [IMAGES, IMAGES], two, [(ELEMENTWISE, 20)])] if shortcut else []
    of_norm = ("aten::native_batch_norm_backward", [IMAGES], ["float"], [(NORM, 100)])
    run.backward("NativeBatchNormBackward0", norm, [of_norm, *summed])
    run.backward("torch::autograd::AccumulateGrad", norm)
    sums = [("aten::sum", [IMAGES], ["float"], [(REDUCE, 60)])] if bias else []
    of_conv = ("aten::convolution_backward", [IMAGES, IMAGES, WEIGHT], ["float"] * 3, [(SIMT_GEMM, 500)])
    run.backward("ConvolutionBackward0", conv, [of_conv, *sums])
    return run


CASES = (
    Case(
        "a bias of 140 us",
        _layer(),
        "fired",
        readings={"Layers with a bias before a batch norm": 1, "Kernel time for their biases, per step": 140_000},
        # A quarter of the kernels' time, and 1 % of the step for noise, may stay.
        saving_ns=(between(56_001, 104_999), pytest.approx(140_000, rel=0.05), ANY),
        says=["nn.Conv2d(64, 64, kernel_size=3, bias=False)  # conv\n"],
    ),
    Case("no bias", _layer(bias=()), "silent", "No layer in front of a batch norm has a bias."),
    Case(
        "the output is used twice", _layer(shortcut=True), "not_applicable", "No batch norm follows a layer directly."
    ),
    Case("evaluation", _layer(), "not_applicable", "evaluation mode", facts=RunFacts(training=False)),
)
