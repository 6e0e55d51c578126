"""The name of the model, from the ranges of its modules."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.nsys_database import NsysDatabase

from tb_dlprof_plugin.analysis import analyze_ranks


def found(folder: Path, *paths: str) -> str | None:
    """The model of a recording with a range for each part of each path."""
    database = NsysDatabase(folder / "report.sqlite")
    for number, path in enumerate(paths):
        start, parts = 100 * number, path.split("/")
        for depth, part in enumerate(parts):
            database.range(part, start + depth, 90 - 2 * depth)
        database.range("aten", start + 20, 10)
        database.launch("kernel", start + 22, start + 40, 5)
    (profile,) = analyze_ranks(database.write())
    return profile.facts.model


@pytest.mark.parametrize(
    ("paths", "model"),
    [
        (("train/GPT/Block_0", "train/GPT/Block_1"), "GPT"),
        (("train/Gpt/Block_0", "train/Gpt/Block_1"), "Gpt"),
        (("ResNet_0/Conv2d_1", "ResNet_0/Linear_2"), "ResNet"),
        (("Encoder/Layer", "Decoder/Layer"), None),
        (("forward/attention", "backward/attention"), None),
        (("Training/Forward", "Training/Backward"), None),
        (("Linear",), None),
    ],
)
def test_the_class_around_every_module_is_the_model(paths: tuple[str, ...], model: str | None, tmp_path: Path) -> None:
    assert found(tmp_path, *paths) == model
