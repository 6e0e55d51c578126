"""The name that was meant by one that does not exist."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.model.near_names import did_you_mean, near_names

MODES = ("fp32", "tf32", "amp-fp16", "amp-bf16")
RUNS = [
    f"{model}/{mode}" for model in ("mlp", "vgg16", "resnet50") for mode in ("fp32", "tf32", "amp-fp16", "amp-bf16")
]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("resnet5/fp32", ["resnet50/fp32"]),
        ("ResNet50/FP32", ["resnet50/fp32"]),
        ("vgg/fp32", ["vgg16/fp32"]),
        ("rsenet50/tf32", ["resnet50/tf32"]),
        ("resnet50/amp", ["resnet50/amp-bf16", "resnet50/amp-fp16"]),
        ("fp32", ["mlp/fp32", "resnet50/fp32", "vgg16/fp32"]),
        ("bert/fp32", []),
        ("", []),
    ],
)
def test_the_nearest_names_are_offered_and_none_that_only_ends_alike(name: str, meant: list[str]) -> None:
    assert sorted(near_names(name, RUNS)) == meant


def test_the_question_names_all_of_them() -> None:
    assert did_you_mean(["a", "b"]) == "did you mean a or b?"
    assert did_you_mean([]) == ""
