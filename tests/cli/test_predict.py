"""``tb-dlprof predict`` on the recorded runs of the demo."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.pages.forecast import ForecastPage, forecast_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
LENET, VGG = RECORDED / "lenet" / "fp32", RECORDED / "vgg16" / "fp32"


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["predict", *map(str, arguments)])


def _output(*arguments: object) -> str:
    result = _run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def _failure(*arguments: object) -> str:
    result = _run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    return " ".join(result.stderr.split())


def _page(directory: Path, precision: str, **asked: Any) -> ForecastPage:
    (stored,) = read_profiles(directory)
    made_by = stored.profile.source
    ref = RunRef(directory.name, made_by.session, made_by.rank, made_by.cycle)
    return forecast_page(ProfileView(stored.profile), ref, precision, **asked)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def test_json_is_the_page() -> None:
    printed = json.loads(_output(VGG, "--precision", "bf16", "--format", "json"))
    assert printed == json.loads(msgspec.json.encode(_page(VGG, "bf16")))


def test_batch_size_and_gpu_are_asked_for() -> None:
    gpu = "NVIDIA A100-SXM4-80GB"
    asked = ("--batch-size", 256, "--gpu", gpu)
    printed = json.loads(_output(LENET, "--precision", "tf32", *asked, "--format", "json"))
    assert (printed["batch_size"], printed["gpu"], printed["precision"]) == (256, gpu, "tf32")
    assert printed["predicted_step_ms"] == _page(LENET, "tf32", batch_size=256, gpu=gpu).predicted_step_ms


def test_text_begins_with_the_headline_and_ends_with_how_to_see_all() -> None:
    page = _page(VGG, "fp16")
    lines = _output(VGG, "--precision", "fp16", "--limit", 3).splitlines()
    assert lines[0] == page.headline
    text = "\n".join(lines)
    assert f"casts ({page.casts})" in text
    assert "GradScaler" in text
    assert f"{page.low_ms:.2f} to {page.high_ms:.2f} ms" in text
    assert lines[-1] == f"{page.total_rows - 3} more; --limit {page.total_rows} prints all."
    table = lines[next(number for number, line in enumerate(lines) if line.startswith("Op ")) + 1 : -2]
    rows = [line for line in table if "ms" in line]
    assert [row.split()[0] for row in rows] == [op.name for op in page.ops[:3]]
    assert " more; --limit" not in _output(VGG, "--precision", "fp16", "--limit", 1000)


def test_text_without_a_scaler_has_no_row_for_it() -> None:
    assert "GradScaler" not in _output(LENET, "--precision", "bf16")
    assert "as now" in _output(LENET, "--precision", "bf16")


def test_a_run_that_allows_no_forecast_is_refused_in_a_sentence(
    tmp_path: Path, cpu_trace: Any, training: Callable[..., Any]
) -> None:
    write_profile(tmp_path / "cpu", cpu_trace.profile())
    write_profile(tmp_path / "plain", training("fp32").profile())
    for source, arguments, words in (
        (tmp_path / "cpu", ("--precision", "bf16"), "the run recorded no GPU work"),
        (RECORDED / "lenet" / "amp-bf16", ("--precision", "bf16"), "the run computed in AMP BF16 (autocast), and"),
        (LENET, ("--precision", "bf16", "--batch-size", 0), "a batch has at least one sample."),
        (LENET, ("--precision", "bf16", "--gpu", "A100"), "the peak rates of 'A100' are not known"),
        (tmp_path / "plain", ("--precision", "bf16", "--batch-size", 9), "own batch size was not recorded"),
    ):
        text = _failure(source, *arguments)
        assert text.startswith(f"tb-dlprof: {source}: ")
        assert words in text


def test_wrong_arguments_are_named() -> None:
    assert "'fp8'" in _failure(LENET, "--precision", "fp8")
    assert "--precision" in _failure(LENET)
    assert "--batch-size" in _failure(LENET, "--precision", "bf16", "--batch-size", "many")
    assert "does not exist" in _failure(RECORDED / "nothing", "--precision", "bf16").lower()
    assert "holds 4 runs; name one of them" in _failure(RECORDED / "lenet", "--precision", "bf16")
