"""How much of a batch of sequences is padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tb_dlprof_plugin.trial.inside.padding import padded_share

LENGTHS = (12, 5, 9, 3)
WORDS = torch.arange(1, 49).reshape(4, 12)
BEFORE_END = torch.arange(12)[None] < torch.tensor(LENGTHS)[:, None]
PADDED = torch.where(BEFORE_END, WORDS, 0)
SHARE = 1 - sum(LENGTHS) / 48


@pytest.mark.parametrize(
    ("batch", "share"),
    [
        ((PADDED, torch.arange(4)), SHARE),
        ({"words": PADDED.flip(1)}, SHARE),
        ({"input_ids": WORDS, "attention_mask": BEFORE_END.long()}, SHARE),
        ([torch.where(BEFORE_END, WORDS, -100)], SHARE),
        # None of these is padding: full rows, rows of one length, classes of pixels, pictures, a mask without a name.
        (WORDS, 0.0),
        (torch.where(torch.arange(12)[None] < 8, WORDS, 0), 0.0),
        (torch.randint(0, 2, (16, 64), generator=torch.Generator().manual_seed(0)), 0.0),
        (PADDED.float(), 0.0),
        (BEFORE_END, 0.0),
        ("words", 0.0),
    ],
    ids=["ends", "begins", "mask", "labels", "full", "one length", "classes", "floats", "booleans", "text"],
)
def test_padding_is_what_a_mask_says_or_rows_that_end_differently(batch: Any, share: float) -> None:
    assert padded_share([batch]) == pytest.approx(share)


def test_batches_count_alike() -> None:
    assert padded_share([PADDED, WORDS]) == pytest.approx(SHARE / 2)
    assert padded_share([]) == 0
