"""How many times as long an op takes in another precision, from single ops that were measured.

``op_times.json.gz`` holds thousands of ops, drawn at random over the sizes that training uses and from no particular
model, with their kernel times in FP32, TF32, FP16 and BF16 on one GPU (`lab/op_speed` records and makes it). The
ratio of an op is predicted by a Gaussian process from the measured ops of its kind that are most like it: in size, in
time and in the distance from the GPU's ceilings in FP32. The hyperparameters were chosen by the likelihood of the
measured ops alone (`lab/op_speed/fit.py`).
"""

from __future__ import annotations

import functools
import gzip
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import NamedTuple

import msgspec
import numpy as np

from tb_dlprof_plugin.model.decoders import json_decoder
from tb_dlprof_plugin.model.profile import Floats, Ints
from tb_dlprof_plugin.planning.features import SLOWNESS, TIME, Features, is_matrix_kind

NEIGHBOURS = 64
"""With more, the error of measured ops left out in turn falls by a hundredth; numpy solves so few without threads."""
_PRODUCTS = 1 << 18
"""A product of matrices with more multiplications OpenBLAS gives to threads, which cost more than they save here."""
_SOLVED_TOGETHER = 16
"""Groups of ops with the same neighbours: a table of numbers for so many fits into a cache."""
_NEAR = 0.5
"""Of the logarithm of least times; gave the least error when each measured op was left out in turn."""
_SQRT3 = math.sqrt(3.0)
_DATA = "op_times.json.gz"


@dataclass(frozen=True, slots=True)
class Ratio:
    """New time over that of the base; ``spread`` is the standard deviation of its logarithm.

    ``measured`` is whether it follows from ops of its kind.
    """

    value: float
    spread: float
    measured: bool = True

    def at(self, spreads: float) -> float:
        """So many standard deviations above its value."""
        return self.value * math.exp(spreads * self.spread)


@dataclass(frozen=True, slots=True)
class GaussianProcess:
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
        """Between rows of features, which are in lengths; of tables of them, between the rows of each two."""
        products: Floats = left @ np.swapaxes(right, -1, -2)
        return self._near(_apart(_squares(left)[..., :, None], _squares(right)[..., None, :], products), products)

    def own_covariance(self, rows: Floats) -> Floats:
        """`covariance` of rows with themselves: each pair is computed once."""
        products: Floats = rows @ np.swapaxes(rows, -1, -2)
        one, other = _pairs(rows.shape[-2])
        squares = _squares(rows)
        near = self._near(
            _apart(squares[..., one], squares[..., other], products[..., one, other]), products[..., one, other]
        )
        result = np.empty_like(products)
        result[..., one, other] = near
        result[..., other, one] = near
        return result

    def _near(self, apart: Floats, products: Floats) -> Floats:
        distance = np.sqrt(apart)
        distance *= _SQRT3
        near = np.exp(-distance)
        distance += 1.0
        near *= distance
        near *= self.amplitude
        return near + self.trend * products


def _squares(rows: Floats) -> Floats:
    return np.asarray(np.einsum("...i,...i->...", rows, rows))


def _apart(left: Floats, right: Floats, products: Floats) -> Floats:
    """Squared distances between rows, from their squares and products: much faster than a table of differences."""
    apart = left - 2.0 * products
    apart += right
    return np.maximum(apart, 0.0, out=apart)


@functools.cache
def _pairs(count: int) -> tuple[Ints, Ints]:
    """The pairs of so many rows."""
    return np.triu_indices(count)


@dataclass(frozen=True)
class RatioTable:
    """Measured ops of one kind in one precision: a row of features and the logarithm of the ratio of each.

    A feature that is the same in all of them (the layout of images, of a product) does not distinguish others.
    """

    features: Floats
    logarithms: Floats
    process: GaussianProcess
    _center: Floats = field(init=False)
    _per_unit: Floats = field(init=False)
    _scaled: Floats = field(init=False)

    def __post_init__(self) -> None:
        differs = np.ptp(self.features, axis=0) > 0
        object.__setattr__(self, "_center", self.features.mean(axis=0))
        object.__setattr__(self, "_per_unit", np.where(differs, 1.0 / np.asarray(self.process.lengths), 0.0))
        object.__setattr__(self, "_scaled", (self.features - self._center) * self._per_unit)

    def ratio(self, features: Features) -> Ratio:
        """Of an op with these features; never beyond the ratios of the measured ops."""
        return self.ratios([features])[0]

    def ratios(self, features: Sequence[Features]) -> list[Ratio]:
        """`ratio` of each of several ops; those with the same neighbours are solved together."""
        at = (np.asarray(features, dtype=np.float64).reshape(len(features), -1) - self._center) * self._per_unit
        alike: dict[bytes, list[int]] = defaultdict(list)
        nearest = self._nearest(at)
        for row, rows in enumerate(nearest):
            alike[rows.tobytes()].append(row)
        values, spreads = np.empty(len(at)), np.empty(len(at))
        # Those of about as many ops are solved in one call.
        groups = sorted(alike.values(), key=len)
        for first in range(0, len(groups), _SOLVED_TOGETHER):
            some = groups[first : first + _SOLVED_TOGETHER]
            most = len(some[-1])
            # The last op of a shorter group is solved again.
            rows = np.array([mine + mine[-1:] * (most - len(mine)) for mine in some])
            values[rows], spreads[rows] = self._solved(at[rows], nearest[rows[:, 0]])
        return list(map(Ratio, map(math.exp, values.tolist()), map(math.sqrt, spreads.tolist())))

    def _solved(self, at: Floats, nearest: Ints) -> tuple[Floats, Floats]:
        """The logarithm of the ratio of ops and its variance, of each group by its neighbours."""
        process, near, known = self.process, self._scaled[nearest], self.logarithms[nearest]
        noisy = process.own_covariance(near)
        diagonal = np.arange(near.shape[1])
        noisy[:, diagonal, diagonal] += process.noise
        shared = process.covariance(near, at)
        weights = np.linalg.solve(noisy, shared)
        # Of an op with itself: its distance is 0.
        own = process.amplitude + process.trend * (at * at).sum(axis=2) + process.noise
        mean = known.mean(axis=1, keepdims=True)
        values = mean + ((known - mean)[:, None, :] @ weights)[:, 0, :]
        values = np.clip(values, known.min(axis=1, keepdims=True), known.max(axis=1, keepdims=True))
        return values, np.maximum(own - (weights * shared).sum(axis=1), 0.0)

    def _nearest(self, at: Floats) -> Ints:
        """The rows most like each of several ops, ascending."""
        size = len(self._scaled)
        if size <= NEIGHBOURS:
            return np.tile(np.arange(size), (len(at), 1))
        found, squares = np.empty((len(at), NEIGHBOURS), dtype=np.int64), _squares(self._scaled)
        together = max(_PRODUCTS // self._scaled.size, 1)
        for first in range(0, len(at), together):
            some = at[first : first + together]
            distance = _apart(_squares(some)[:, None], squares, some @ self._scaled.T)
            found[first : first + together] = np.argpartition(distance, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
        found.sort(axis=1)
        return found

    def slowness(self, least_ns: float, in_fp32: bool) -> float:
        """Of matrix routines whose least time is about this: mean logarithm of the time over the least one.

        In FP32, or in the table's precision; over the least time in FP32 in both.
        """
        slowness = self.features[:, SLOWNESS]
        away = (self.features[:, TIME] - slowness - math.log(least_ns / 1e3)) / _NEAR
        weight = np.exp(0.5 * ((away**2).min() - away**2))
        return float(np.average(slowness if in_fp32 else slowness + self.logarithms, weights=weight))


class Like(NamedTuple):
    """Of an op what it has in common with measured ops: its kind, the precision it would run in, its features by its
    time in ``base``, "fp32" or (matrix routines alone) "tf32"."""

    kind: str
    precision: str
    features: Features
    base: str = "fp32"


class _MeasuredKind(msgspec.Struct):
    """Ops of a kind, a value of each column per op; a ratio is None where it was not measured."""

    gpus: frozenset[str]
    features: msgspec.Raw
    ratios: dict[str, msgspec.Raw]
    processes: dict[str, list[float]]


class _Measured(msgspec.Struct):
    kinds: dict[str, _MeasuredKind]


@dataclass(frozen=True)
class OpTimes:
    """``gpus``: on which the ops of each kind were measured; the tables are by kind and precision.

    ``from_tf32`` holds those of the matrix routines once more, with features from their times in TF32 and relative to
    those. Kinds that are ``unread`` get their tables when they are asked for: a step has few of them.
    """

    gpus: dict[str, frozenset[str]]
    tables: dict[tuple[str, str], RatioTable]
    from_tf32: dict[tuple[str, str], RatioTable] = field(default_factory=dict)
    unread: dict[str, _MeasuredKind] = field(default_factory=dict)

    def ratios(self, likes: Iterable[Like]) -> dict[Like, Ratio | None]:
        """Of ops like these; None where their kind was not measured. Those of a kind are solved together."""
        found: dict[Like, Ratio | None] = dict.fromkeys(likes)
        of_table: dict[tuple[str, str, str], list[Like]] = defaultdict(list)
        for one in found:
            of_table[one.kind, one.precision, one.base].append(one)
        for key, ops in of_table.items():
            if (table := self.table(*key)) is not None:
                found.update(zip(ops, table.ratios([one.features for one in ops]), strict=True))
        return found

    def table(self, kind: str, precision: str, base: str = "fp32") -> RatioTable | None:
        """Of the ops of this kind; None where it was not measured.

        Args:
            kind: of the ops.
            precision: in which they would run: "tf32", "fp16" or "bf16".
            base: what they ran in, "fp32" or (matrix routines alone) "tf32".
        """
        self._read(kind)
        return (self.from_tf32 if base == "tf32" else self.tables).get((kind, precision))

    def growth(self, kind: str, precision: str, before_ns: float, after_ns: float) -> float:
        """How many times as long a matrix routine takes whose least time in FP32 gets longer from ``before_ns``.

        Small ones leave a part of the GPU empty, and grow by less: as the measured ones of their kind do. None grows by
        more than its least time.
        """
        in_fp32, times = precision == "fp32", after_ns / before_ns
        table = self.table(kind, "tf32" if in_fp32 else precision)
        if table is None:
            return times
        faster = table.slowness(before_ns, in_fp32) - table.slowness(after_ns, in_fp32)
        return times * math.exp(-max(faster, 0.0) if times > 1 else -min(faster, 0.0))

    def _read(self, kind: str) -> None:
        found = self.unread.get(kind)
        if found is None:
            return
        features = np.array(msgspec.json.decode(found.features), dtype=np.float64)
        values = {one: _logarithms(found.ratios[one]) for one in found.ratios}
        for precision, logarithms in values.items():
            *lengths, amplitude, trend, noise = found.processes[precision]
            process = GaussianProcess(tuple(lengths), amplitude, trend, noise)
            known = ~np.isnan(logarithms)
            self.tables[kind, precision] = RatioTable(features[known], logarithms[known], process)
            if precision != "tf32" and "tf32" in values and is_matrix_kind(kind):
                self.from_tf32[kind, precision] = _relative(features, logarithms, values["tf32"], process)
        # Last: another thread may ask, too.
        self.unread.pop(kind, None)


@functools.cache
def measured() -> OpTimes:
    """The measured ops in the package data."""
    return read_op_times(resources.files(__package__).joinpath(_DATA).read_bytes())


def read_op_times(packed: bytes) -> OpTimes:
    """A table as `lab.op_speed.fit` writes it."""
    kinds: dict[str, _MeasuredKind] = json_decoder(_Measured).decode(gzip.decompress(packed)).kinds
    return OpTimes({kind: one.gpus for kind, one in kinds.items()}, {}, {}, kinds)


def _logarithms(ratios: msgspec.Raw) -> Floats:
    found: list[float | None] = msgspec.json.decode(ratios)
    return np.log(np.array([math.nan if ratio is None else ratio for ratio in found], dtype=np.float64))


def _relative(features: Floats, logarithms: Floats, in_tf32: Floats, process: GaussianProcess) -> RatioTable:
    """A table of ops with features from their times in TF32.

    The hyperparameters are those found for times in FP32: the ops are equally similar.
    """
    known = ~np.isnan(logarithms) & ~np.isnan(in_tf32)
    moved = features[known].copy()
    moved[:, [TIME, SLOWNESS]] += in_tf32[known, None]
    return RatioTable(moved, (logarithms - in_tf32)[known], process)
