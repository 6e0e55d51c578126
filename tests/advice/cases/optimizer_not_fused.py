"""Cases of `optimizer_not_fused`: steps over lists."""

from __future__ import annotations

import pytest
from advice.case import Case, between
from advice.recordings import FUSED, one_by_one, optimizing, over_lists

_SGD = (("aten::_foreach_mul_", 1), ("aten::_foreach_add_", 2), ("aten::_foreach_add_", 2))
_WITHOUT_SHAPES = [
    (name, [[]] * (lists + 1), ["TensorList"] * lists + ["Scalar"], 200.0 * lists) for name, lists in _SGD
]

CASES = (
    Case(
        "AdamW over lists makes 21 passes, a fused step 7",
        optimizing(over_lists()),
        "fired",
        readings={"Passes over the parameters": 21, "Optimizer kernels per step": 2_100_000},
        saving_ns=(between(0, 1.4e6), pytest.approx(1_400_000, rel=0.03), between(1.35e6, 2.1e6)),
        says=["torch.optim.AdamW(model.parameters(), ..., fused=True)"],
    ),
    Case(
        "SGD with momentum, no shapes of its lists",
        optimizing(_WITHOUT_SHAPES, "SGD"),
        "fired",
        readings={"Passes over the parameters": 8},
    ),
    Case(
        "SGD alone",
        optimizing(over_lists([("aten::_foreach_add_", 2)]), "SGD"),
        "silent",
        "moves 3 elements per parameter",
    ),
    Case("no fused version", optimizing(over_lists(), "RMSprop"), "silent", "RMSprop has no fused version"),
    Case("short kernels", optimizing(over_lists(microseconds=4)), "silent", "fused it should save"),
    Case("fused already", optimizing(FUSED), "silent", "does not go over lists"),
    Case("one by one", optimizing(one_by_one(100, 2), "Adam", cpu=40), "silent"),
    Case("no kernel", optimizing([]), "not_applicable", "No kernel"),
)
