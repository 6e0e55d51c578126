"""Definitions have one source, and say something."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import column_files
import generate
import msgspec
import pytest
from definition_files import at_fields, definitions, docs

from tb_dlprof_plugin.model.run_facts import GpuEnergy
from tb_dlprof_plugin.pages.columns import Definition
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import METRICS, CompareInput
from tb_dlprof_plugin.pages.shared_definitions import SLICES
from tb_dlprof_plugin.profile_view import ProfileView

FRONTEND = Path(__file__).resolve().parents[2] / "frontend" / "src"


def test_every_definition_is_a_sentence_and_is_used() -> None:
    if not FRONTEND.is_dir():
        pytest.skip("no frontend sources next to this package")
    generated = generate.frontend()
    sources = (path.read_text() for path in FRONTEND.rglob("*.ts*") if path not in generated)
    pages = "\n".join([*sources, column_files.typescript()])
    for key, text in definitions().items():
        assert re.search(rf'DEFINITIONS\.{key}\b|"{key}"', pages), f"nothing shows {key}"
        assert re.fullmatch(r"\S.*[.]", text), key
    assert all(re.fullmatch(r"\S.*[.]", text) for parts in SLICES.values() for text in parts.values())


def test_every_measure_of_a_comparison_is_defined(gpu_view, ref) -> None:  # type: ignore[no-untyped-def]
    measured = msgspec.structs.replace(gpu_view.profile.facts, batch_size=8, energy=[GpuEnergy(0, 900_000, 2**31, 5)])
    view = ProfileView(replace(gpu_view.profile, facts=measured))
    side = CompareInput(view, ref, view.selection())
    assert {metric.key for metric in compare_page(side, side).metrics} == set(METRICS)


def test_the_page_of_the_docs_has_a_row_for_each_definition() -> None:
    rows = [line for line in docs().splitlines() if line.startswith("| ")]
    texts = [*definitions().values(), *(text for parts in SLICES.values() for text in parts.values())]
    assert [text for text in texts if not any(row.endswith(f" | {text} |") for row in rows)] == []


class Figures(msgspec.Struct):
    calls: Annotated[int, Definition("figureCalls", "How often.")]
    bytes: int


def test_a_definition_at_a_field_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert at_fields(Figures) == [Definition("figureCalls", "How often.")]
    monkeypatch.setattr("definition_files.answers", lambda: {"figures": Figures})
    assert definitions()["figureCalls"] == "How often."
    monkeypatch.setattr("definition_files.DEFINITIONS", {"figureCalls": "When."})
    with pytest.raises(ValueError, match="two definitions are named figureCalls"):
        definitions()
