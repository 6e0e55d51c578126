"""Cases of `channels_last`: transposes around convolutions on Tensor Cores."""

from __future__ import annotations

import pytest
from advice.case import ANY, Case
from advice.training_step import HALF_TYPE, IMAGES, NORM, SIMT_GEMM, TENSOR_CONV, TO_NHWC, WEIGHT, Step

from tb_dlprof_plugin.model.run_facts import RunFacts


def _layer(transposes: float, kernel: str = TENSOR_CONV, norm: bool = False, group_norms: int = 0) -> Step:
    run = Step()
    types = [HALF_TYPE] * 2
    convolution = ("aten::cudnn_convolution", [IMAGES, WEIGHT], types, [(TO_NHWC, transposes), (kernel, 300)])
    run.forward("conv", "aten::conv2d", [convolution], dims=[IMAGES, WEIGHT], types=types)
    if norm:
        run.forward("norm", "aten::batch_norm", [(NORM, 200)], dims=[IMAGES], types=[HALF_TYPE])
    for _ in range(group_norms):
        run.forward(
            "norm",
            "aten::group_norm",
            [("aten::native_group_norm", [IMAGES], [HALF_TYPE], [(NORM, 100)])],
            [IMAGES],
            [HALF_TYPE],
        )
    return run


CASES = (
    Case(
        "a quarter of the time",
        _layer(100),
        "fired",
        readings={"Changing layouts around convolutions, per step": 100_000},
        saving_ns=(ANY, pytest.approx(100_000, rel=0.05), ANY),
        says=["memory_format=torch.channels_last"],
        facts=RunFacts(channels_last=False),
    ),
    Case(
        "a batch norm gets faster, too",
        _layer(100, norm=True),
        "fired",
        saving_ns=(ANY, pytest.approx(200_000, rel=0.05), ANY),
    ),
    Case("group norms change the layout back", _layer(100, group_norms=1), "silent"),
    Case("off the Tensor Cores", _layer(100, SIMT_GEMM), "silent"),
    Case("short ones", _layer(4), "silent"),
)
