"""Heat map of a job: by how much each rank worked longer by itself than the median rank, by iteration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.chosen_steps import among
from tb_dlprof_plugin.fleet.job import Heat
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Ints

MOST_CELLS = 100_000
"""With up to seven characters a cell an answer stays below 1 MB."""


def heat(facts: Sequence[RankFacts], numbers: Ints) -> Heat | None:
    """Of the iterations with these numbers; None without any.

    Where there are more than `MOST_CELLS` cells, evenly spread iterations are shown.
    """
    if not len(numbers) or not facts:
        return None
    numbers = numbers[:: -(-len(facts) * len(numbers) // MOST_CELLS)]
    own = np.full((len(facts), len(numbers)), np.nan)
    for index, (one, here) in enumerate(zip(facts, among(facts, numbers), strict=True)):
        rows = np.flatnonzero(here)
        place = np.searchsorted(numbers, one.steps.number[rows])
        steps = one.steps
        own[index, place] = (steps.end_ns - steps.start_ns - np.maximum(steps.communication_ns, 0))[rows]
    known = ~np.isnan(own).all(axis=0)
    middle = np.ones(len(numbers))
    middle[known] = np.maximum(np.nanmedian(own[:, known], axis=0), 1.0)
    percent = 100 * (own / middle - 1)
    return Heat(
        [one.rank for one in facts],
        numbers.tolist(),
        [[None if np.isnan(value) else round(value, 2) for value in row] for row in percent.tolist()],
    )
