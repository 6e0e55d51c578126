"""How much of batches of sequences is padding."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from tb_dlprof_plugin.trial.inside.called_models import tensors_of

_FEWEST_ROWS, _FEWEST_PLACES = 4, 8
"""Of a tensor that may have padding."""
_INSIDE = 0.05
"""Share of the places before the ends at which a padding value may stand: labels of a picture have more of each."""
_MASK = "attention_mask"


def padded_share(batches: Iterable[Any]) -> float:
    """Share of the places of sequences that are padding, over batches; 0 where none is seen.

    A mask says it, by the name that transformers gives it; without one, integers whose rows end, or begin, with
    different numbers of the same value.
    """
    found = [max(_shares(one), default=0.0) for one in batches]
    return statistics.fmean(found) if found else 0.0


def _shares(batch: Any) -> Iterator[float]:
    if isinstance(batch, Mapping) and isinstance(batch.get(_MASK), torch.Tensor):
        yield 1 - float((batch[_MASK] != 0).double().mean())
        return
    for one in tensors_of(batch):
        integers = not one.is_floating_point() and not one.is_complex() and one.dtype is not torch.bool
        if integers and one.ndim == 2 and one.shape[0] >= _FEWEST_ROWS and one.shape[1] >= _FEWEST_PLACES:
            yield max(_behind(one), _behind(one.flip(1)))


def _behind(rows: torch.Tensor) -> float:
    """Share of the places in runs of one value at the ends of rows, of which the longest row may have none."""
    value = rows[:, -1].mode().values
    is_value = rows == value
    runs = is_value.flip(1).cumprod(1).sum(1)
    before = rows.numel() - int(runs.sum())
    inside = int(is_value.sum() - runs.sum())
    varied = len(set(runs.tolist())) > 2
    return float(runs.sum()) / rows.numel() if varied and inside <= _INSIDE * before else 0.0
