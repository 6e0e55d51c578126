"""The demo models have the shapes and the sizes of the architectures they are named after."""

from __future__ import annotations

import pytest
import torch

from models import MODELS

# The published sizes; `custom` and `mlp` are ours.
PARAMETERS = {"lenet": 61_706, "alexnet": 61_100_840, "vgg16": 138_357_544, "resnet50": 25_557_032}


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_model_has_as_many_parameters_as_published(name: str) -> None:
    spec = MODELS[name]
    with torch.device("meta"):
        model = spec.build(spec.full.image_shape, spec.num_classes)
    assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("size", ["full", "quick"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_model_maps_images_of_its_setting_to_class_scores(name: str, size: str) -> None:
    spec = MODELS[name]
    shape = getattr(spec, size).image_shape
    with torch.device("meta"):
        scores = spec.build(shape, spec.num_classes)(torch.empty(2, *shape))
    assert scores.shape == (2, spec.num_classes)


def test_there_are_the_six_models_of_the_studies() -> None:
    assert list(MODELS) == ["mlp", "lenet", "alexnet", "vgg16", "resnet50", "custom"]
