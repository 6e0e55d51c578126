"""The ops that are measured, and the table that is made of their times."""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from op_speed import fit
from op_speed.cases import DRAWS, Case, draw

from tb_dlprof_plugin.comparison.forecast.features import matrix_features, other_features
from tb_dlprof_plugin.kernels.ceilings import ceilings_of

GPU = "NVIDIA H200"


def names(cases: list[Case]) -> list[tuple[str, str, str]]:
    return [(case.kind, case.about, case.layout) for case in cases]


@pytest.mark.parametrize("what", DRAWS)
def test_a_draw_is_the_same_everywhere_and_a_larger_one_begins_with_it(what: str) -> None:
    found = names(draw(60, what))
    assert len(set(found)) == 60
    assert found == names(draw(60, what))
    assert names(draw(200, what))[:60] == found


@pytest.mark.parametrize(("recording", "what"), list(zip(fit.RECORDINGS, DRAWS, strict=True)))
def test_cases_are_still_those_that_the_recordings_number(recording: Path, what: str) -> None:
    rows = json.loads(gzip.decompress(recording.read_bytes()))["rows"]
    cases = draw(250, what)
    found = {(row["case"], row["kind"], row["layout"]) for row in rows if row["case"] < 250}
    assert len({case for case, _, _ in found}) > 200
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
    recording = folder / "recording.json.gz"
    recording.write_bytes(gzip.compress(json.dumps({"device": GPU, "rows": rows}).encode()))
    monkeypatch.setattr(fit, "TABLE", folder / "table.json.gz")
    monkeypatch.setattr(sys, "argv", ["fit", str(recording)])
    fit.main()
    table: dict[str, Any] = json.loads(gzip.decompress((folder / "table.json.gz").read_bytes()))
    return table


def test_the_table_holds_features_and_ratios_to_fp32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for case in range(8):
        rows += [_row(case, "fp32", 2000.0), _row(case, "fp16", 500.0), _row(case, "bf16", 1000.0)]
    table = _fitted(rows, tmp_path, monkeypatch)
    ceilings = ceilings_of(GPU)
    assert ceilings is not None
    expected = [
        matrix_features("aten::mm", [[8 * (n + 1), 16], [16, 32]], 8192 * (n + 1), 3584 * (n + 1), 2e3, ceilings, False)
        for n in range(8)
    ]
    assert table["gpu"] == GPU
    assert list(table["kinds"]) == ["product"]
    product = table["kinds"]["product"]
    assert product["features"] == [[round(value, 3) for value in one] for one in expected]
    assert product["ratios"] == {"tf32": [None] * 8, "fp16": [0.25] * 8, "bf16": [0.5] * 8}


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
    assert kinds["batch_norm fprop"] == {
        "features": [values] * 8, "ratios": {"tf32": [None] * 8, "fp16": [0.5] * 8, "bf16": [None] * 8},
    }  # fmt: skip


def test_what_says_too_little_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relu = {"matrix": False, "op": "relu_", "about": "relu of 8x16"}
    rows = [_row(case, "fp32", 2000.0) for case in range(8)]
    # Seven of a kind are too few.
    rows += [_row(100 + case, "fp32", 2000.0, **relu) for case in range(fit.LEAST_OPS - 1)]
    # Without FP32, without a time, with unknown shapes, and the sums of gradients, there is nothing to compare.
    rows += [_row(200 + case, "fp16", 2000.0) for case in range(8)]
    rows += [_row(300 + case, "fp32", 0.0) for case in range(8)]
    rows += [_row(400 + case, "fp32", 9.0, shapes="[]") for case in range(8)]
    rows += [_row(500 + case, "fp32", 9.0, matrix=False, op="AccumulateGrad") for case in range(8)]
    kinds = _fitted(rows, tmp_path, monkeypatch)["kinds"]
    assert {kind: len(columns["features"]) for kind, columns in kinds.items()} == {"product": 8}


def test_the_packages_table_is_made_of_the_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = json.loads(gzip.decompress(fit.TABLE.read_bytes()))
    monkeypatch.setattr(fit, "TABLE", tmp_path / "table.json.gz")
    monkeypatch.setattr(sys, "argv", ["fit"])
    fit.main()
    assert json.loads(gzip.decompress((tmp_path / "table.json.gz").read_bytes())) == shipped
