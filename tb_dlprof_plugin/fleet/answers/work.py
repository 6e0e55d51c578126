"""How much work a step of a job is, so that jobs of several sizes can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tb_dlprof_plugin.fleet.job import JobWork
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, RankFacts

_SAME_DATA = ("tp", "pp", "cp")
"""Dimensions whose ranks read the same samples."""


def job_work(facts: Sequence[RankFacts], mesh: Mapping[str, int], world_size: int) -> JobWork:
    """Samples, FLOPs and kernels of a step of the whole job.

    Args:
        facts: of the recorded ranks.
        mesh: size of each parallel dimension.
        world_size: ranks of the job, recorded or not.
    """
    return JobWork(_samples(facts, mesh, world_size), _flops(facts, world_size), _kernels(facts))


def _samples(facts: Sequence[RankFacts], mesh: Mapping[str, int], world_size: int) -> float | None:
    sizes = [one.batch_size for one in facts]
    if UNKNOWN in sizes:
        return None
    readers = world_size / prod(mesh.get(name, 1) for name in _SAME_DATA)
    return float(np.mean(sizes)) * readers


def _flops(facts: Sequence[RankFacts], world_size: int) -> float | None:
    if any(not len(one.steps.matrix_flops) or (one.steps.matrix_flops < 0).any() for one in facts):
        return None
    mean = float(np.mean([one.steps.matrix_flops.mean() for one in facts]))
    return mean * world_size if mean > 0 else None


def _kernels(facts: Sequence[RankFacts]) -> int | None:
    hashes = np.unique(np.concatenate([one.steps.work_hash for one in facts]))
    return int(hashes[0]) if len(hashes) == 1 and hashes[0] > 0 else None
