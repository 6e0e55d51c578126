"""How many times as long an op takes in another precision, from ops that were measured one by one.

``op_times.json.gz`` holds thousands of ops, drawn at random over the sizes that training uses and from no particular
model, with their kernel times in FP32, TF32, FP16 and BF16 on one GPU (`benchmarks/op_speed` records and makes it).
An op of a run gets what a Gaussian process says from the measured ops of its kind that are most like it: in size, in
time and in how far they stay below the GPU's ceilings in FP32. How much each of these numbers counts (the process's
hyperparameters) was chosen by the likelihood of the measured ops alone (`benchmarks/op_speed/fit.py`).
"""

from __future__ import annotations

import functools
import gzip
import json
import math
from dataclasses import dataclass, field
from importlib import resources

import numpy as np

from tb_dlprof_plugin.comparison.forecast.features import SLOWNESS, TIME, Features
from tb_dlprof_plugin.storage.model import Floats

NEIGHBOURS = 64
"""With more, the error of measured ops left out in turn falls by a hundredth; numpy solves so few without threads."""
_NEAR = 0.5
"""Of the logarithm of least times; gave the least error when each measured op was left out in turn."""
_SQRT3 = math.sqrt(3.0)
_DATA = "op_times.json.gz"


@dataclass(frozen=True, slots=True)
class Ratio:
    """New time over FP32 time; ``spread`` is the standard deviation of its logarithm."""

    value: float
    spread: float


@dataclass(frozen=True, slots=True)
class Process:
    """A Gaussian process over features: Matern 3/2 with a length for each, a linear trend, and noise.

    Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), equations 2.23, 2.24 and 4.17. ``lengths``
    are in the features' units; ``amplitude``, ``trend`` (per squared length) and ``noise`` are variances of the
    logarithm of the ratio.
    """

    lengths: tuple[float, ...]
    amplitude: float
    trend: float
    noise: float

    def covariance(self, left: Floats, right: Floats) -> Floats:
        """Between rows of features, which are in lengths."""
        distance = _SQRT3 * np.sqrt(np.maximum(((left[:, None] - right[None]) ** 2).sum(axis=2), 0.0))
        near: Floats = self.amplitude * (1 + distance) * np.exp(-distance)
        return near + self.trend * (left @ right.T)


@dataclass(frozen=True)
class Table:
    """Measured ops of one kind in one precision: a row of features and the logarithm of the ratio of each.

    A feature that is the same in all of them (the layout of images, of a product) says nothing about others.
    """

    features: Floats
    logarithms: Floats
    process: Process
    _center: Floats = field(init=False)
    _per_unit: Floats = field(init=False)
    _scaled: Floats = field(init=False)

    def __post_init__(self) -> None:
        differs = np.ptp(self.features, axis=0) > 0
        object.__setattr__(self, "_center", self.features.mean(axis=0))
        object.__setattr__(self, "_per_unit", np.where(differs, 1.0 / np.asarray(self.process.lengths), 0.0))
        object.__setattr__(self, "_scaled", (self.features - self._center) * self._per_unit)

    def ratio(self, features: Features) -> Ratio:
        """Of an op with these features; never beyond the ratios of the ops it was told by."""
        process = self.process
        at = ((np.asarray(features) - self._center) * self._per_unit)[None]
        distance = ((self._scaled - at) ** 2).sum(axis=1)
        nearest = np.argsort(distance, kind="stable")[:NEIGHBOURS]
        near, known = self._scaled[nearest], self.logarithms[nearest]
        mean = float(known.mean())
        noisy = process.covariance(near, near) + process.noise * np.eye(len(near))
        shared = process.covariance(near, at)
        weight = np.linalg.solve(noisy, shared)[:, 0]
        value = float(np.clip(mean + weight @ (known - mean), known.min(), known.max()))
        own = float(process.covariance(at, at)[0, 0]) + process.noise
        variance = own - float(weight @ shared[:, 0])
        return Ratio(math.exp(value), math.sqrt(max(variance, 0.0)))

    def slowness(self, least_ns: float, in_fp32: bool) -> float:
        """Of matrix routines whose least time is about this: mean logarithm of the time over the least one.

        In FP32, or in the table's precision; over the least time in FP32 in both.
        """
        slowness = self.features[:, SLOWNESS]
        away = (self.features[:, TIME] - slowness - math.log(least_ns / 1e3)) / _NEAR
        weight = np.exp(0.5 * ((away**2).min() - away**2))
        return float(np.average(slowness if in_fp32 else slowness + self.logarithms, weights=weight))


@dataclass(frozen=True)
class OpTimes:
    """``gpu`` is the one that the ops were measured on; the tables are by kind and precision."""

    gpu: str
    tables: dict[tuple[str, str], Table]

    def ratio(self, kind: str, precision: str, features: Features) -> Ratio | None:
        """Of an op of this kind in "tf32", "fp16" or "bf16"; None for a kind that was not measured."""
        table = self.tables.get((kind, precision))
        return table.ratio(features) if table is not None else None

    def growth(self, kind: str, precision: str, before_ns: float, after_ns: float) -> float:
        """How many times as long a matrix routine takes whose least time in FP32 gets longer from ``before_ns``.

        Small ones leave a part of the GPU empty, and grow by less: as the measured ones of their kind do. None grows by
        more than its least time.
        """
        in_fp32, times = precision == "fp32", after_ns / before_ns
        table = self.tables.get((kind, "tf32" if in_fp32 else precision))
        if table is None:
            return times
        faster = table.slowness(before_ns, in_fp32) - table.slowness(after_ns, in_fp32)
        return times * math.exp(-max(faster, 0.0) if times > 1 else -min(faster, 0.0))


@functools.cache
def measured() -> OpTimes:
    """The ops that the package brings."""
    return read_op_times(resources.files(__package__).joinpath(_DATA).read_bytes())


def read_op_times(packed: bytes) -> OpTimes:
    """A table as `benchmarks.op_speed.fit` writes it."""
    data = json.loads(gzip.decompress(packed))
    tables = {}
    for kind, columns in data["kinds"].items():
        features = np.array(columns["features"], dtype=np.float64)
        for precision, ratios in columns["ratios"].items():
            known = np.array([ratio is not None for ratio in ratios])
            values = np.array([ratio for ratio in ratios if ratio is not None], dtype=np.float64)
            *lengths, amplitude, trend, noise = columns["processes"][precision]
            process = Process(tuple(lengths), amplitude, trend, noise)
            tables[kind, precision] = Table(features[known], np.log(values), process)
    return OpTimes(data["gpu"], tables)
