"""The made-up images are the same each time, and the loader yields exactly as many batches as asked for."""

from __future__ import annotations

import pytest
import torch

from synthetic_data import SyntheticImages, make_loader


def test_two_data_sets_of_the_same_shape_are_equal() -> None:
    first, second = (SyntheticImages(100, (3, 8, 8), 10) for _ in range(2))
    for index in (0, 63, 64, 99):
        (image, label), (other_image, other_label) = first[index], second[index]
        assert torch.equal(image, other_image)
        assert label == other_label


def test_a_sample_is_an_image_of_bytes_and_a_class() -> None:
    image, label = SyntheticImages(70, (3, 8, 6), 10)[69]
    assert image.shape == (3, 8, 6)
    assert image.dtype == torch.uint8
    assert 0 <= label < 10


def test_a_data_set_ends() -> None:
    with pytest.raises(IndexError):
        SyntheticImages(3, (1, 4, 4), 2)[3]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_yields_full_batches_and_can_be_iterated_again(workers: int) -> None:
    loader = make_loader(
        batches=4, batch_size=5, image_shape=(1, 4, 4), num_classes=2, workers=workers, pin_memory=False
    )
    for _ in range(2):
        assert [tuple(images.shape) for images, _ in loader] == [(5, 1, 4, 4)] * 4
