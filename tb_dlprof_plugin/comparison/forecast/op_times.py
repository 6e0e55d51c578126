"""How many times as long an op takes in another precision, from ops that were measured one by one.

``op_times.json.gz`` holds thousands of ops, drawn at random over the sizes that training uses and from no particular
model, with their kernel times in FP32, TF32, FP16 and BF16 on one GPU (`benchmarks/op_speed` records and makes it).
An op of a run gets a weighted linear fit through the measured ops of its kind that are most like it: in size, in time
and in how far they stay below the GPU's ceilings in FP32.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
from dataclasses import dataclass
from importlib import resources

import numpy as np

from tb_dlprof_plugin.comparison.forecast.features import Features

NEIGHBOURS = 30
_SOFTENING = 0.3
"""Keeps one neighbour that is nearly the same from deciding alone: one measurement is noisy, too."""
_FLATNESS = 1.0
"""Number of neighbours, softening and flatness gave the least error when each measured op was left out in turn."""
_DATA = "op_times.json.gz"


@dataclass(frozen=True, slots=True)
class Ratio:
    """New time over FP32 time; ``spread`` is the standard deviation of its logarithm among the neighbours."""

    value: float
    spread: float


@dataclass(frozen=True)
class _Table:
    features: np.ndarray  # type: ignore[type-arg]
    logarithms: np.ndarray  # type: ignore[type-arg]


@dataclass(frozen=True)
class OpTimes:
    """``gpu`` is the one that the ops were measured on."""

    gpu: str
    tables: dict[tuple[str, str], _Table]

    def ratio(self, kind: str, precision: str, features: Features) -> Ratio | None:
        """Of an op of this kind in "tf32", "fp16" or "bf16"; None for a kind that was not measured."""
        table = self.tables.get((kind, precision))
        if table is None:
            return None
        offset = table.features - np.asarray(features)
        distance = np.sqrt((offset**2).sum(axis=1))
        nearest = np.argsort(distance, kind="stable")[:NEIGHBOURS]
        weight = 1.0 / (distance[nearest] + _SOFTENING) ** 2
        weight /= weight.sum()
        near, known = offset[nearest], table.logarithms[nearest]
        center, mean = weight @ near, float(weight @ known)
        # A plane through the neighbours, held flat where they say little about its slope; never beyond what was seen.
        spread_of = near - center
        normal = (spread_of * weight[:, None]).T @ spread_of + np.eye(near.shape[1]) * _FLATNESS / len(nearest)
        slope = np.linalg.solve(normal, (spread_of * weight[:, None]).T @ (known - mean))
        value = float(np.clip(mean - center @ slope, known.min(), known.max()))
        residual = known - mean - spread_of @ slope
        return Ratio(math.exp(value), math.sqrt(float(weight @ residual**2)))


@functools.cache
def measured() -> OpTimes:
    """The measured ops that come with the package."""
    packed = resources.files(__package__).joinpath(_DATA).read_bytes()
    data = json.loads(gzip.decompress(packed))
    tables = {}
    for kind, columns in data["kinds"].items():
        features = np.asarray(columns["features"], dtype=np.float64)
        for precision, ratios in columns["ratios"].items():
            known = np.array([ratio is not None for ratio in ratios])
            values = np.array([ratio for ratio in ratios if ratio is not None], dtype=np.float64)
            tables[kind, precision] = _Table(features[known], np.log(values))
    return OpTimes(data["gpu"], tables)
