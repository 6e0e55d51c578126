"""The ops that are measured, and the table that is made of their times."""

from __future__ import annotations

import gzip
import json
import lzma
import math
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from op_speed import fit
from op_speed.cases import COMMON_CHANNELS, DRAWS, Case, draw
from op_speed.process import fitted
from precision_pairs.forecast import frame_of, recordings

from tb_dlprof_plugin.model.shapes import inputs_text
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of
from tb_dlprof_plugin.planning.features import matrix_features, other_features
from tb_dlprof_plugin.planning.op_times import GaussianProcess, RatioTable, read_op_times

GPU = "NVIDIA H200"


def names(cases: list[Case]) -> list[tuple[str, str, str]]:
    return [(case.kind, case.about, case.layout) for case in cases]


@pytest.mark.parametrize("what", DRAWS)
def test_a_draw_is_the_same_everywhere_and_a_larger_one_begins_with_it(what: str) -> None:
    found = names(draw(60, what))
    assert len(set(found)) == 60
    assert found == names(draw(60, what))
    assert names(draw(200, what))[:60] == found


DRAWS = ("broad", "edges", "common", "irregular", "irregular")


@pytest.mark.parametrize(("recording", "what"), list(zip(fit.RECORDINGS, DRAWS, strict=True)))
def test_cases_are_still_those_that_the_recordings_number(recording: Path, what: str) -> None:
    rows = json.loads(lzma.decompress(recording.read_bytes()))["rows"]
    cases = draw(250, what)
    found = {(row["case"], row["kind"], row["layout"]) for row in rows if row["case"] < 250}
    # The recordings of irregular ops have 160 cases and those after them.
    assert len({case for case, _, _ in found}) > (80 if what == "irregular" else 200)
    assert {(number, cases[number].kind, cases[number].layout) for number, _, _ in found} == found
    for row in rows:
        if row["case"] < 250 and "about" in row:
            assert cases[row["case"]].about == row["about"]


def test_edges_are_what_a_broad_draw_finds_too_seldom() -> None:
    cases = draw(200, "edges")
    assert {case.kind for case in cases} == {"convolution", "linear"}
    convolutions = [case for case in cases if case.kind == "convolution"]
    assert sum(case.layout == "nhwc" for case in convolutions) > len(convolutions) / 2
    odd = [int(case.about.split("-> ")[1]) for case in cases if case.kind == "linear"]
    assert sum(width % 8 > 0 for width in odd) > len(odd) / 3


def test_common_convolutions_are_drawn_from_ranges_of_sizes_in_both_layouts() -> None:
    cases = draw(300, "common")
    assert {case.kind for case in cases} == {"convolution"}
    sizes = [re.fullmatch(r"\d+x(\d+)x\d+x\d+ -> (\d+), .*", case.about) for case in cases]
    channels = [(int(found[1]), int(found[2])) for found in sizes if found]
    common = [pair for pair in channels if {*pair} <= {*COMMON_CHANNELS}]
    assert len(channels) == 300
    # The others are first layers.
    assert 0.75 < len(common) / 300 < 0.9
    assert len({*common}) > 70
    assert 0.35 < sum(case.layout == "nhwc" for case in cases) / 300 < 0.65


def _size(case: Case) -> int:
    return math.prod(max(int(number), 1) for number in re.findall(r"\d+", case.about))


def test_each_kind_of_case_runs_and_is_differentiated() -> None:
    smallest: dict[str, Case] = {}
    for case in draw(300):
        name = case.about.split(" of ")[0] if case.kind in ("pointwise", "images") else case.kind
        if name not in smallest or _size(case) < _size(smallest[name]):
            smallest[name] = case
    assert len(smallest) > 15
    for case in smallest.values():
        output = case.build(torch.float32, "cpu")()
        assert output.requires_grad
        output.sum().backward()


def _row(case: int, precision: str, ns: float, **facts: Any) -> dict[str, Any]:
    known = {
        "case": case, "precision": precision, "ns": ns, "backward": False, "matrix": True, "op": "aten::mm",
        "shapes": json.dumps([[8 * (case + 1), 16], [16, 32]]), "flops": 8192 * (case + 1), "bytes": 3584 * (case + 1),
        "layout": "", "about": "a product",
    }  # fmt: skip
    return known | facts


def _fitted(rows: list[dict[str, Any]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    recording = folder / "recording.json.xz"
    recording.write_bytes(lzma.compress(json.dumps({"device": GPU, "rows": rows}).encode()))
    monkeypatch.setattr(fit, "TABLE", folder / "table.json.gz")
    monkeypatch.setattr(sys, "argv", ["fit", str(recording)])
    fit.main()
    table: dict[str, Any] = json.loads(gzip.decompress((folder / "table.json.gz").read_bytes()))
    return table


@pytest.mark.long
def test_the_table_holds_features_and_ratios_to_fp32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for case in range(8):
        rows += [_row(case, "fp32", 2000.0), _row(case, "fp16", 500.0), _row(case, "bf16", 1000.0)]
    table = _fitted(rows, tmp_path, monkeypatch)
    ceilings = ceilings_of(GPU)
    assert ceilings is not None
    expected = [
        matrix_features("aten::mm", ((8 * (n + 1), 16), (16, 32)), 8192 * (n + 1), 3584 * (n + 1), 2e3, ceilings, False)
        for n in range(8)
    ]
    assert list(table["kinds"]) == ["product"]
    product = table["kinds"]["product"]
    assert product["gpus"] == [GPU]
    assert product["features"] == [[round(value, 3) for value in one] for one in expected]
    # There is nothing to say of TF32.
    assert product["ratios"] == {"fp16": [0.25] * 8, "bf16": [0.5] * 8}
    assert {name: len(numbers) for name, numbers in product["processes"].items()} == {"fp16": 12, "bf16": 12}


@pytest.mark.long
def test_ops_that_multiply_nothing_are_told_by_name_and_direction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for case in range(8):
        for backward in (False, True):
            facts = {"matrix": False, "op": "batch_norm", "about": "batch_norm of 8x16x4x4", "backward": backward}
            rows += [_row(case, "fp32", 3000.0, **facts), _row(case, "fp16", 1500.0, **facts)]
    kinds = _fitted(rows, tmp_path, monkeypatch)["kinds"]
    assert list(kinds) == ["batch_norm bprop", "batch_norm fprop"]
    values = [round(value, 3) for value in other_features(3000.0, 8 * 4 * 4, False)]
    assert kinds["batch_norm fprop"]["features"] == [values] * 8
    assert kinds["batch_norm fprop"]["ratios"] == {"fp16": [0.5] * 8}


def test_what_says_too_little_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relu = {"matrix": False, "op": "relu_", "about": "relu of 8x16"}
    rows = [_row(case, "fp32", 2000.0) for case in range(8)]
    # Three of a kind are too few.
    rows += [_row(100 + case, "fp32", 2000.0, **relu) for case in range(fit.LEAST_OPS - 1)]
    # Without FP32, without a time, with unknown shapes, and the sums of gradients, there is nothing to compare.
    rows += [_row(200 + case, "fp16", 2000.0) for case in range(8)]
    rows += [_row(300 + case, "fp32", 0.0) for case in range(8)]
    rows += [_row(400 + case, "fp32", 9.0, shapes="[]") for case in range(8)]
    rows += [_row(500 + case, "fp32", 9.0, matrix=False, op="AccumulateGrad") for case in range(8)]
    kinds = _fitted(rows, tmp_path, monkeypatch)["kinds"]
    assert {kind: len(columns["features"]) for kind, columns in kinds.items()} == {"product": 8}


def test_a_table_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [_row(case, precision, ns) for case in range(8) for precision, ns in (("fp32", 2e3), ("fp16", 5e2))]
    _fitted(rows, tmp_path, monkeypatch)
    known = read_op_times((tmp_path / "table.json.gz").read_bytes())
    assert known.gpus == {"product": {GPU}}
    assert not known.tables
    product = known.table("product", "fp16")
    assert product is not None
    assert {*known.tables} == {("product", "fp16")}
    found = product.ratio(tuple(product.features[0]))
    assert found is not None
    assert found.value == pytest.approx(0.25)


@pytest.mark.long
def test_the_packages_table_is_made_of_the_recordings() -> None:
    shipped = json.loads(gzip.decompress(fit.TABLE.read_bytes()))
    gpus, kinds = fit.measured_ops(fit.RECORDINGS)
    assert all(set(one["gpus"]) == gpus[kind] for kind, one in shipped["kinds"].items())
    assert {*shipped["kinds"]} == {kind for kind, rows in kinds.items() if len(rows) >= fit.LEAST_OPS}
    for kind, known in shipped["kinds"].items():
        assert known["features"] == [[round(value, 3) for value in one] for one, _ in kinds[kind]]
        for precision, ratios in known["ratios"].items():
            assert ratios == [of_op.get(precision) for _, of_op in kinds[kind]]
    # Hyperparameters take minutes for all kinds; those of a few small ones are found again.
    for kind in ("batch_norm fprop", "relu bprop", "convolution grouped fprop"):
        again = fit.columns(kinds[kind])["processes"]
        for precision, numbers in shipped["kinds"][kind]["processes"].items():
            assert again[precision] == pytest.approx(numbers, rel=0.05)


def _convolutions(rows: Iterable[tuple[str, str]]) -> set[str]:
    """Shapes of image and filters of forward convolutions, of names and shapes of ops."""
    found = set()
    for name, shapes in rows:
        if "conv" in name and "backward" not in name and shapes:
            image, weight = json.loads(shapes)[:2]
            if len(image) == len(weight) == 4:
                found.add(f"{image} {weight}")
    return found


def test_hardly_a_measured_op_is_a_layer_of_a_recorded_model() -> None:
    layers: set[str] = set()
    for run in recordings():
        if run.precision == "fp32":
            profile = frame_of(run).profile
            names = (profile.strings[name] for name in profile.ops.name.tolist())
            layers |= _convolutions(
                zip(names, (inputs_text(profile.input_shapes[row]) for row in profile.ops.shapes.tolist()), strict=True)
            )
    assert len(layers) > 250
    same = []
    for path in fit.RECORDINGS:
        rows = json.loads(lzma.decompress(path.read_bytes()))["rows"]
        measured = _convolutions((row["op"], row["shapes"]) for row in rows if row["matrix"] and not row["backward"])
        assert len(measured) > (40 if "irregular" in path.name else 350)
        same.append(len(measured & layers))
    # As docs/forecast.md says: by chance, and in the third draw alone.
    assert same[:3] == [0, 0, 9]
    assert sum(same[3:]) <= 2


def _smooth(count: int, lengths: tuple[float, float], seed: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Rows of two features, the second in units a hundred times as small, and a random function of such lengths."""
    source = np.random.default_rng(seed)
    features = source.uniform(0, 6, (count, 2)) * (1, 100)
    process = GaussianProcess(lengths, 1.0, 0.0, 0.0)
    scaled = features / lengths
    root = np.linalg.cholesky(process.covariance(scaled, scaled) + 1e-6 * np.eye(count))
    values: np.ndarray = root @ source.standard_normal(count) + 0.1 * source.standard_normal(count)  # type: ignore[type-arg]
    return features, values


@pytest.mark.parametrize("lengths", [(0.5, 800.0), (8.0, 50.0)])
def test_hyperparameters_are_those_of_the_function_that_was_measured(lengths: tuple[float, float]) -> None:
    features, values = _smooth(300, lengths, 1)
    found = fitted(features[:200], values[:200])
    # The feature that counts has its length; the other's is much longer than what the features span.
    counts = int(lengths[0] > 1)
    assert found.lengths[counts] == pytest.approx(lengths[counts], rel=0.4)
    assert found.lengths[1 - counts] > 6 * (100, 1)[counts]
    assert 0.003 < found.noise < 0.03

    def error(process: GaussianProcess) -> float:
        table = RatioTable(features[:200], values[:200], process)
        told = [math.log(table.ratio((one, other)).value) for one, other in features[200:]]
        return float(np.abs(told - values[200:]).mean())

    # Of what was not measured it knows more than one with the lengths the other way round.
    wrong = GaussianProcess((found.lengths[1] / 100, 100 * found.lengths[0]), found.amplitude, found.trend, found.noise)
    assert error(found) < 0.7 * error(wrong)
    assert error(found) < 0.4 * float(np.abs(values).mean())


def test_hyperparameters_of_a_feature_that_never_changes_stay_in_place() -> None:
    features, values = _smooth(60, (1.0, 100.0), 2)
    found = fitted(np.column_stack([features, np.full(60, 6.0)]), values)
    assert found.lengths[2] == pytest.approx(3.0, rel=0.05)


def test_few_measured_ops_leave_the_hyperparameters_near_what_is_usual() -> None:
    features, values = _smooth(8, (0.01, 1.0), 3)
    found = fitted(features, values)
    assert all(0.3 < length / spread < 30 for length, spread in zip(found.lengths, features.std(axis=0), strict=True))
    assert found.noise > 1e-3
