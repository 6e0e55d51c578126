"""Cases of `amp_will_not_pay`: small models, whose steps the CPU paces.

Steps without the profiler are those of demo/recorded/recording.json.
"""

from __future__ import annotations

from advice.case import Case, between
from support.recorded_runs import DEMO, recorded_view

CASES = (
    Case("LeNet in FP32", lambda _: recorded_view(DEMO / "lenet/fp32"), "fired", "% longer", saving_ns=None,
         severity="low"),
    *(
        Case(
            f"{name} under autocast",
            lambda _, name=name: recorded_view(DEMO / name),  # type: ignore[misc]
            "fired",
            # What leaving AMP saves lies in the interval.
            saving_ns=(between(0, 1e6 * saved_ms), between(0, 1e9), between(1e6 * saved_ms, 1e9)),
        )
        for name, saved_ms in (
            ("mlp/amp-bf16", 1.2986 - 1.0606), ("mlp/amp-fp16", 1.5883 - 1.0606), ("lenet/amp-bf16", 1.9428 - 1.5346),
        )
    ),
    *(
        Case(f"{name}, which the GPU paces", lambda _, name=name: recorded_view(DEMO / name), "silent")  # type: ignore[misc]
        for name in ("vgg16/fp32", "resnet50/amp-bf16", "vgg16/amp-fp16", "custom/amp-bf16")
    ),
)  # fmt: skip
