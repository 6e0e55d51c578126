"""Cases of `relu_before_maxpool`: a ReLU of elements that the pooling removes."""

from __future__ import annotations

import pytest
from advice.case import Case, between
from advice.training_step import ELEMENTWISE, IMAGES, POOL, Step


def _layers(shortcut: bool = False) -> Step:
    """A ReLU of 100 us and 150 us backward before a pooling to a quarter; a shortcut uses its output, too."""
    run = Step()
    small, two = [16, 64, 28, 28], ["float"] * 2
    relu = run.forward("relu", "aten::relu", [(ELEMENTWISE, 100)], dims=[IMAGES], types=["float"])
    pool = run.forward("pool", "aten::max_pool2d", [(POOL, 120)], dims=[IMAGES], types=["float"])
    summed = [("aten::add_", [IMAGES, IMAGES], two, [(ELEMENTWISE, 20)])] if shortcut else []
    of_pool = ("aten::max_pool2d_with_indices_backward", [small, IMAGES], two, [(POOL, 130)])
    run.backward("MaxPool2DWithIndicesBackward0", pool, [of_pool, *summed])
    of_relu = ("aten::threshold_backward", [IMAGES, IMAGES], two, [(ELEMENTWISE, 150)])
    run.backward("ReluBackward0", relu, [of_relu])
    return run


CASES = (
    Case(
        "a pooling to a quarter",
        _layers(),
        "fired",
        readings={"Their kernel time per step": 250_000, "Of it for elements that the pooling removes": 187_500},
        saving_ns=(between(0, 0.86 * 187_500), pytest.approx(187_500, rel=0.05), between(187_501, 1e6)),
        says=["relu and pool"],
    ),
    Case("the output is used twice", _layers(shortcut=True), "not_applicable"),
)
