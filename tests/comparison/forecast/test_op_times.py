"""Times of an op relative to FP32 from those of measured ops: literal tables, and the measured one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tb_dlprof_plugin.comparison.forecast.op_times import OpTimes, _Table, measured

KIND = ("product", "fp16")
WAYS = ("fprop", "bprop")


def times(features: list[tuple[float, ...]], ratios: list[float]) -> OpTimes:
    return OpTimes("a GPU", {KIND: _Table(np.array(features, dtype=float), np.log(ratios))})


def grid(slope: float) -> OpTimes:
    """61 ops between 0 and 6, of which the ratio falls from 1 by ``slope`` in its logarithm."""
    places = np.linspace(0, 6, 61)
    return times([(place,) for place in places], [math.exp(-slope * place) for place in places])


def test_between_measured_ops_the_ratio_follows_them() -> None:
    known = grid(0.3)
    for place in (1.53, 3.0, 4.47):
        found = known.ratio(*KIND, (place,))
        assert found is not None
        assert found.value == pytest.approx(math.exp(-0.3 * place), rel=0.02)
        assert found.spread < 0.02


def test_beyond_all_measured_ops_the_ratio_is_that_of_the_last_ones() -> None:
    known = grid(0.3)
    found = known.ratio(*KIND, (100.0,))
    assert found is not None
    assert math.exp(-0.3 * 6) <= found.value < math.exp(-0.3 * 5)


def test_nearer_ops_count_more() -> None:
    known = times([(float(place),) for place in range(40)], [0.25] * 10 + [1.0] * 30)
    near, far = known.ratio(*KIND, (0.0,)), known.ratio(*KIND, (39.0,))
    assert near is not None
    assert far is not None
    assert near.value < 0.45
    assert far.value == 1.0


def test_ops_that_agree_leave_no_doubt_and_others_do() -> None:
    places = [(float(place),) for place in range(20)]
    sure = times(places, [0.5] * 20).ratio(*KIND, (7.5,))
    unsure = times(places, [0.25, 1.0] * 10).ratio(*KIND, (7.5,))
    assert sure is not None
    assert unsure is not None
    assert (sure.value, sure.spread) == (pytest.approx(0.5), pytest.approx(0.0, abs=1e-6))
    # Ratios of a quarter and one stand by log 2 on both sides of a half.
    assert unsure.value == pytest.approx(0.5, rel=0.2)
    assert unsure.spread == pytest.approx(math.log(2), rel=0.1)


def test_a_single_measured_op_is_taken_as_it_is() -> None:
    found = times([(1.0, 2.0)], [0.4]).ratio(*KIND, (5.0, 5.0))
    assert found is not None
    assert found.value == pytest.approx(0.4)


def test_what_was_not_measured_is_unknown() -> None:
    known = grid(0.3)
    assert known.ratio("attention fprop", "fp16", (1.0,)) is None
    assert known.ratio("product", "bf16", (1.0,)) is None


def test_the_measured_ops_are_of_all_kinds_in_all_precisions() -> None:
    known = measured()
    assert known.gpu == "NVIDIA H200"
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


@pytest.mark.parametrize(
    ("kind", "precision", "most"),
    [
        ("product", "fp16", 0.15),
        ("product", "bf16", 0.15),
        ("product", "tf32", 0.15),
        ("convolution 1x1 fprop", "bf16", 0.25),
        ("convolution wide fprop", "bf16", 0.25),
        ("batch_norm fprop", "fp16", 0.1),
        ("relu fprop", "fp16", 0.1),
    ],
)
def test_a_measured_op_is_found_by_the_others(kind: str, precision: str, most: float) -> None:
    table = measured().tables[kind, precision]
    errors = []
    for row in range(0, len(table.features), max(1, len(table.features) // 60)):
        others = _Table(np.delete(table.features, row, axis=0), np.delete(table.logarithms, row))
        known = replace(measured(), tables={(kind, precision): others})
        found = known.ratio(kind, precision, tuple(table.features[row]))
        assert found is not None
        errors.append(abs(math.log(found.value) - table.logarithms[row]))
    # Half of them are at most so far off.
    assert float(np.median(errors)) < most
    # A constant for all ops of the kind would be worse.
    assert np.mean(errors) < np.abs(table.logarithms - np.median(table.logarithms)).mean()
