"""Times of an op relative to FP32 from those of measured ops: literal tables, and the measured one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tb_dlprof_plugin.planning.op_times import NEIGHBOURS, GaussianProcess, Like, OpTimes, Ratio, RatioTable, measured

KIND = ("product", "fp16")
WAYS = ("fprop", "bprop")


def whole() -> OpTimes:
    """The measured ops, with the tables of all kinds."""
    known = measured()
    assert not any(known.table(kind, "none") for kind in known.gpus)
    return known


def ratio_of(known: OpTimes, features: tuple[float, ...]) -> Ratio:
    found = known.ratios([like := Like(*KIND, features)])[like]
    assert found is not None
    return found


def times(features: list[tuple[float, ...]], ratios: list[float], noise: float = 1e-4) -> OpTimes:
    process = GaussianProcess((1.0,) * len(features[0]), 0.5, 0.1, noise)
    return OpTimes({}, {KIND: RatioTable(np.array(features, dtype=float), np.log(ratios), process)})


def grid(slope: float) -> OpTimes:
    """61 ops between 0 and 6, of which the ratio falls from 1 by ``slope`` in its logarithm."""
    places = np.linspace(0, 6, 61)
    return times([(place,) for place in places], [math.exp(-slope * place) for place in places])


def test_between_measured_ops_the_ratio_follows_them() -> None:
    known = grid(0.3)
    for place in (1.53, 3.0, 4.47):
        found = ratio_of(known, (place,))
        assert found is not None
        assert found.value == pytest.approx(math.exp(-0.3 * place), rel=0.02)
        assert found.spread < 0.02


def test_beyond_all_measured_ops_the_ratio_is_that_of_the_last_ones() -> None:
    known = grid(0.3)
    found = ratio_of(known, (100.0,))
    assert found is not None
    assert math.exp(-0.3 * 6) <= found.value < math.exp(-0.3 * 5)


def test_nearer_ops_count_more() -> None:
    known = times([(float(place),) for place in range(40)], [0.25] * 10 + [1.0] * 30)
    near, far = ratio_of(known, (0.0,)), ratio_of(known, (39.0,))
    assert near is not None
    assert far is not None
    assert near.value == pytest.approx(0.25, rel=0.01)
    assert far.value == pytest.approx(1.0, rel=0.01)


def test_a_feature_with_a_short_length_counts_more() -> None:
    places = [(float(one), float(other)) for one in range(6) for other in range(6)]
    ratios = np.array([-0.3 * one for one, _ in places])
    short = RatioTable(np.array(places), ratios, GaussianProcess((0.5, 50.0), 0.5, 0.0, 1e-4)).ratio((3.0, 2.5))
    assert short.value == pytest.approx(math.exp(-0.9), rel=0.01)


def test_what_is_the_same_in_all_measured_ops_says_nothing_of_another() -> None:
    known = times([(float(place), 0.0) for place in range(20)], [math.exp(-0.1 * place) for place in range(20)])
    assert ratio_of(known, (7.5, 0.0)) == ratio_of(known, (7.5, 6.0))


def test_the_process_is_the_textbooks() -> None:
    # GIVEN two measured ops, amplitude 1 and no trend: covariances by Matern 3/2, solved by hand
    process, at = GaussianProcess((2.0,), 1.0, 0.0, 0.1), 0.5
    known, logarithms = np.array([[0.0], [2.0]]), np.array([-1.0, 0.0])

    def shared(distance: float) -> float:
        return (1 + math.sqrt(3) * distance) * math.exp(-math.sqrt(3) * distance)

    one, other, between = shared(0.25), shared(0.75), shared(1.0)
    own = 1.1**2 - between**2
    weights = np.array([1.1 * one - between * other, 1.1 * other - between * one]) / own
    found = RatioTable(known, logarithms, process).ratio((at,))
    assert math.log(found.value) == pytest.approx(-0.5 + weights @ (logarithms + 0.5))
    assert found.spread**2 == pytest.approx(1.1 - weights @ [one, other])


def test_the_spread_is_that_of_the_noise_among_many_measured_ops_and_of_all_far_from_them() -> None:
    table = RatioTable(
        np.linspace(0, 3, 61)[:, None], np.tile([-0.1, 0.1], 31)[:61], GaussianProcess((1.0,), 0.25, 0.0, 0.01)
    )
    among, far = table.ratio((1.5,)), table.ratio((50.0,))
    assert among.value == pytest.approx(1.0, abs=0.05)
    assert among.spread == pytest.approx(0.1, rel=0.1)
    assert far.spread == pytest.approx(math.sqrt(0.25 + 0.01), rel=0.01)


def test_ops_further_away_than_the_nearest_change_nothing() -> None:
    places = np.linspace(0, 6, 2 * NEIGHBOURS)[:, None]
    process = GaussianProcess((1.0,), 0.5, 0.0, 1e-3)
    ratios = np.where(places[:, 0] < 3, -0.5, 0.5)
    assert RatioTable(places, ratios, process).ratio((0.0,)).value == pytest.approx(math.exp(-0.5), rel=1e-6)


def test_a_single_measured_op_is_taken_as_it_is() -> None:
    found = ratio_of(times([(1.0, 2.0)], [0.4]), (5.0, 5.0))
    assert found is not None
    assert found.value == pytest.approx(0.4)


def _of_sizes(slowness: dict[float, float], ratio: float = 0.5) -> RatioTable:
    """Matrix routines with these least times (µs), each so many times slower than that in FP32."""
    least, slow = np.log(list(slowness)), np.log(list(slowness.values()))
    features = np.column_stack([least + slow, slow])
    return RatioTable(features, np.log(np.full(len(least), ratio)), GaussianProcess((1.0, 1.0), 0.5, 0.1, 1e-4))


def test_matrix_routines_grow_by_less_where_they_leave_the_gpu_part_empty() -> None:
    known = OpTimes({}, {KIND: _of_sizes({1.0: 8.0, 1000.0: 2.0}), ("product", "tf32"): _of_sizes({5.0: 3.0})})
    # From 1 to 1000 µs: 8 times too slow at first, twice at last.
    assert known.growth(*KIND, 1e3, 1e6) == pytest.approx(250)
    assert known.growth(*KIND, 1e6, 1e3) == pytest.approx(1 / 250)
    # Where all measured ones are alike it takes as many times as long as it has to do.
    assert known.growth("product", "fp32", 1e3, 4e3) == known.growth("product", "tf32", 1e3, 4e3) == pytest.approx(4)
    # None gets longer by more than it has to do.
    odd = OpTimes({}, {KIND: _of_sizes({1.0: 2.0, 1000.0: 3.0})})
    assert (odd.growth(*KIND, 1e3, 1e6), odd.growth(*KIND, 1e6, 1e3)) == (1000, 0.001)
    # Far from all measured ones it stays as slow as the last of them.
    assert known.growth(*KIND, 1e9, 1e12) == pytest.approx(1000)
    assert known.growth("attention fprop", "fp16", 1e3, 3e3) == pytest.approx(3)


def test_in_half_precision_they_grow_as_they_do_in_it() -> None:
    table = _of_sizes({1.0: 8.0, 1000.0: 2.0})
    gaining = replace(table, logarithms=np.log([1.0, 0.25]))
    known = OpTimes({}, {KIND: gaining, ("product", "tf32"): table})
    assert known.growth(*KIND, 1e3, 1e6) == pytest.approx(250 / 4)
    assert known.growth("product", "fp32", 1e3, 1e6) == pytest.approx(250)


@pytest.mark.parametrize("kind", ["product", "convolution wide fprop", "convolution wide bprop", "attention fprop"])
def test_larger_measured_ops_come_nearer_to_their_least_time(kind: str) -> None:
    known = measured()
    for precision in ("fp32", "tf32"):
        assert 1.5 < known.growth(kind, precision, 1e4, 4e4) < 4
        assert 2.9 < known.growth(kind, precision, 1e6, 4e6) <= 4


def test_what_was_not_measured_is_unknown() -> None:
    known = grid(0.3)
    assert known.ratios([other := Like("attention fprop", "fp16", (1.0,))]) == {other: None}
    assert known.ratios([other := Like("product", "bf16", (1.0,))]) == {other: None}


def test_the_measured_ops_are_of_all_kinds_in_all_precisions() -> None:
    known = whole()
    assert known.gpus["product"] == {"NVIDIA H200"}
    assert known.gpus["scatter_add fprop"] == known.gpus["convolution 3-D wide bprop"] == {"NVIDIA H100 80GB HBM3"}
    assert len(known.gpus["convolution depthwise fprop"]) == 2
    assert measured() is known
    matrix = {
        *(f"convolution {what} {way}" for what in ("1x1", "wide", "depthwise", "grouped") for way in WAYS),
        "convolution first fprop", "convolution first bprop of weights", "product", "batched product",
        "attention fprop", "attention bprop",
    }  # fmt: skip
    for kind in matrix:
        assert {precision for found, precision in known.tables if found == kind} == {"tf32", "fp16", "bf16"}
    for kind in ("relu", "gelu", "batch_norm", "add", "mul", "max_pool2d", "dropout"):
        assert (f"{kind} fprop", "fp16") in known.tables
    for table in known.tables.values():
        assert len(table.features) == len(table.logarithms)
        assert np.isfinite(table.features).all()
        assert np.isfinite(table.logarithms).all()
    # First layers have too few channels for Tensor Cores.
    slower = {kind for kind in matrix if np.median(known.tables[kind, "fp16"].logarithms) > 0}
    assert slower == {"convolution first fprop", "convolution first bprop of weights"}


def left_out(kind: str, precision: str) -> list[tuple[float, Ratio]]:
    """Logarithms of the ratios of some 60 measured ops, with what all others say of each."""
    table = whole().tables[kind, precision]
    found = []
    for row in range(0, len(table.features), max(1, len(table.features) // 60)):
        others = replace(
            table, features=np.delete(table.features, row, axis=0), logarithms=np.delete(table.logarithms, row)
        )
        found.append((float(table.logarithms[row]), others.ratio(tuple(table.features[row]))))
    return found


@pytest.mark.parametrize(
    ("kind", "precision", "most"),
    [
        ("product", "fp16", 0.11),
        ("product", "bf16", 0.11),
        ("product", "tf32", 0.15),
        ("batched product", "fp16", 0.12),
        ("attention fprop", "bf16", 0.07),
        ("convolution 1x1 fprop", "bf16", 0.14),
        ("convolution wide fprop", "bf16", 0.17),
        ("convolution wide bprop", "tf32", 0.16),
        ("convolution 1x1 bprop", "fp16", 0.25),
        ("batch_norm fprop", "fp16", 0.1),
        ("relu fprop", "fp16", 0.02),
    ],
)
def test_a_measured_op_is_found_by_the_others(kind: str, precision: str, most: float) -> None:
    errors = [abs(math.log(found.value) - truth) for truth, found in left_out(kind, precision)]
    # Half of them are at most so far off.
    assert float(np.median(errors)) < most
    # A constant for all ops of the kind would be much worse.
    logarithms = whole().tables[kind, precision].logarithms
    assert 1.7 * np.mean(errors) < np.abs(logarithms - np.median(logarithms)).mean()


@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
def test_two_thirds_of_the_measured_ops_lie_within_a_standard_deviation(precision: str) -> None:
    kinds = [kind for kind, found in whole().tables if found == precision and ("conv" in kind or "product" in kind)]
    shifts = [
        (math.log(found.value) - truth) / found.spread for kind in kinds for truth, found in left_out(kind, precision)
    ]
    # A normal distribution has 0.68 and 0.95.
    assert 0.68 < np.mean(np.abs(shifts) < 1) < 0.85
    assert 0.9 < np.mean(np.abs(shifts) < 2) < 0.98


def test_from_tf32_an_op_is_told_by_its_time_in_tf32() -> None:
    # GIVEN the measured products WHEN one that took half as long in TF32 is asked about by either time
    known, kind = whole(), "product"
    table, tf32, relative = known.tables[kind, "bf16"], known.tables[kind, "tf32"], known.from_tf32[kind, "bf16"]
    for row in range(0, len(table.features), 100):
        to_tf32, to_bf16 = tf32.logarithms[row], table.logarithms[row]
        features = table.features[row].copy()
        features[:2] += to_tf32
        assert relative.features[row] == pytest.approx(features)
        assert relative.logarithms[row] == pytest.approx(to_bf16 - to_tf32)
    # THEN most ratios are nearer to 1 than those to FP32
    assert np.median(relative.logarithms) > np.median(table.logarithms) + 0.2


def test_only_matrix_routines_are_relative_to_tf32() -> None:
    kinds = {kind for kind, _ in whole().from_tf32}
    assert {"product", "batched product", "attention fprop", "convolution wide bprop"} <= kinds
    assert not any(kind.startswith(("relu", "conv2d", "batch_norm", "linear")) for kind in kinds)
    assert measured().table("relu fprop", "bf16", "tf32") is None
