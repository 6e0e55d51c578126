"""Baselines in a file count for the same test, device, driver, torch and batch."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tb_dlprof_plugin.pytest_plugin.base_checkout import BaseError
from tb_dlprof_plugin.pytest_plugin.baselines import FEWEST, Baseline, add_to_files, verdict_by_file

KEY = Baseline("test_speed.py::test_step", "NVIDIA H200", "580.1", "2.13.0", 64, [])


def _measured(step_ms: float, **other: object) -> Baseline:
    return msgspec.structs.replace(KEY, step_ms=[step_ms], **other)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "steps.json"
    for step_ms in (10.0, 10.1, 9.9, 10.05):
        add_to_files([{"file": str(path), **msgspec.to_builtins(_measured(step_ms))}])
    return path


def test_runs_of_one_key_are_one_entry(file: Path) -> None:
    add_to_files([{"file": str(file), **msgspec.to_builtins(_measured(5.0, batch=32))}])
    assert [len(one["step_ms"]) for one in json.loads(file.read_text())["baselines"]] == [4, 1]


def test_a_step_is_compared_with_what_a_further_run_may_take(file: Path) -> None:
    assert verdict_by_file(file, _measured(12.0), 5.0).verdict == "slower"
    assert verdict_by_file(file, _measured(10.0), 5.0).verdict == "not_slower"
    near = verdict_by_file(file, _measured(10.4), 5.0)
    assert near.verdict == "cannot_say"
    assert (near.high_percent or 0) > 5


@pytest.mark.parametrize("other", [{"device": "NVIDIA A100"}, {"driver": "570"}, {"torch": "2.12"}, {"batch": 32}])
def test_another_key_has_no_baseline(file: Path, other: dict[str, object]) -> None:
    found = verdict_by_file(file, _measured(30.0, **other), 5.0)
    assert (found.verdict, found.percent) == ("cannot_say", None)
    assert f"has 0 of {FEWEST} runs" in found.why


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "steps.json"
    path.write_text("[1]")
    with pytest.raises(BaseError, match="remove it and measure them again"):
        verdict_by_file(path, _measured(1.0), 5.0)
