"""``tb-dlprof runs`` and ``tb-dlprof sweep`` on the recorded runs of the demo."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.model.run_facts import Gpu, RunFacts, System
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"


def _output(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def _failure(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    return result.stderr


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory, training) -> Path:
    """Four runs of one model: two precisions at two batch sizes."""
    logdir = tmp_path_factory.mktemp("batches")
    for batch in (8, 64):
        for precision in ("fp32", "tf32"):
            facts = RunFacts(model="Net", parameter_count=10, batch_size=batch, unprofiled_step_ns=800_000)
            write_profile(logdir / f"b{batch}" / precision, training(precision).profile(facts=facts))
    return logdir


def test_the_table_is_the_same_as_text_and_csv() -> None:
    text = _output("runs", RECORDED / "mlp")
    assert "is the base" in text
    assert " ~" in text
    assert "~ marks those that are estimated" in text
    assert "within noise" in text
    table = list(csv.DictReader(io.StringIO(_output("runs", RECORDED / "mlp", "--format", "csv"))))
    assert [row["run"] for row in table] == ["amp-bf16", "amp-fp16", "fp32", "tf32"]
    assert {row["base"] for row in table} == {"fp32"}
    assert float(table[0]["speedup"]) == pytest.approx(float(table[2]["step_ns"]) / float(table[0]["step_ns"]))


def test_runs_on_several_gpus_have_a_column_with_the_gpu(tmp_path: Path, training) -> None:
    profile = training().profile()
    write_profile(tmp_path / "h200", profile)
    assert "  GPU  " not in _output("runs", tmp_path)
    for name, gpus in (("a100", [Gpu(0, "NVIDIA A100")]), ("cpu", [])):
        write_profile(tmp_path / name, replace(profile, system=System(gpus=gpus)))
    _, _, header, *rows = _output("runs", tmp_path).splitlines()
    at = slice(header.index("GPU  "), header.index("GPU  ") + len("NVIDIA A100"))
    assert [row[at].strip() for row in rows[:3]] == ["NVIDIA A100", "unknown", "NVIDIA H200"]


def test_a_base_may_be_named_in_any_way_that_is_clear(tmp_path: Path) -> None:
    both = (tmp_path / "mlp", tmp_path / "lenet")
    for model in both:
        for precision in ("fp32", "tf32"):
            shutil.copytree(RECORDED / model.name / precision, model / precision)
    page = json.loads(_output("runs", *both, "--base", "lenet/tf32", "--format", "json"))
    assert {row["base"] for row in page["rows"]} == {"lenet/tf32"}
    named = json.loads(_output("runs", *both, "--base", tmp_path / "lenet" / "tf32", "--format", "json"))
    assert named == page
    assert "2 runs are named 'tf32'" in _failure("runs", *both, "--base", "tf32")
    assert "there is no run 'nothing'" in _failure("runs", *both, "--base", "nothing")


@pytest.mark.slow
def test_by_model_there_is_a_row_before_and_after_with_what_to_do_next() -> None:
    both = (RECORDED / "vgg16", RECORDED / "lenet")
    page = json.loads(_output("runs", *both, "--by-model", "--format", "json"))
    rows = {row["model"]: row for row in page["rows"]}
    assert list(rows) == ["LeNet5", "VGG16"]
    for row in rows.values():
        assert row["before"]["precision"] == "FP32"
        assert row["after"]["precision"].startswith("AMP ")
        assert row["after"]["tensor_core_utilization"] > row["before"]["tensor_core_utilization"]
        assert row["recommendation"]
    # What was measured beats what the rules expect: AMP is no faster there, or not by more than the noise.
    assert "Stay with FP32." in rows["LeNet5"]["recommendation"]
    assert "torch.autocast" not in rows["LeNet5"]["recommendation"]
    assert rows["VGG16"]["recommendation"].startswith("Keep AMP BF16, the fastest recorded: 3.71 times as fast.")
    text = _output("runs", RECORDED / "vgg16", "--by-model")
    assert "VGG16, batch 64: Keep AMP BF16" in text
    (row,) = csv.DictReader(io.StringIO(_output("runs", RECORDED / "vgg16", "--by-model", "--format", "csv")))
    assert float(row["before_gpu_utilization"]) == rows["VGG16"]["before"]["gpu_utilization"]


def test_a_sweep_finds_the_fact_in_which_the_runs_differ(batches: Path) -> None:
    page = json.loads(_output("sweep", batches, "--format", "json"))
    assert (page["over"], page["positions"], page["left_out"]) == ("batch_size", ["8", "64"], [])
    assert [(curve["label"], [mark["value"] for mark in curve["marks"]]) for curve in page["curves"]] == [
        ("FP32", [800_000, 800_000]),
        ("TF32", [800_000, 800_000]),
    ]
    assert "Net" in page["common"]
    rates = _output("sweep", batches, "--measure", "samples_per_second")
    assert "10,000.0" in rates
    assert "80,000.0" in rates


def test_the_share_of_an_op_or_of_kernels_is_swept(batches: Path) -> None:
    # The last of three steps launches 5 µs in no op.
    whole = 760 + 5 / 3
    pages = [
        json.loads(_output("sweep", batches, *choice, "--format", "json"))
        for choice in (
            ("--kernel-group", "convolution"),
            ("--op", "conv2d"),
            ("--op", "conv2d", "--direction", "backward"),
            ("--op", "conv2d", "--direction", "bprop"),
        )
    ]
    shares = [page["curves"][0]["marks"][0]["value"] for page in pages]
    assert shares == pytest.approx([100 * part / whole for part in (500, 500, 300, 300)])
    assert [page["measure"] for page in pages] == ["share"] * 4
    assert [page["op"] for page in pages] == ["", "conv2d", "conv2d backward", "conv2d backward"]


def test_a_sweep_that_makes_no_sense_says_what_does(batches: Path) -> None:
    assert "the facts are model, precision" in _failure("sweep", batches, "--over", "weather")
    assert "the measures are step_time" in _failure("sweep", batches, "--measure", "beauty")
    assert "the groups are convolution" in _failure("sweep", batches, "--kernel-group", "wino")
    assert "it is forward or backward" in _failure("sweep", batches, "--op", "conv2d", "--direction", "up")
    assert "name one" in _failure("sweep", batches, "--measure", "share")
    assert "No two runs differ in the workers alone" in _output("sweep", batches, "--over", "workers")
    assert "record the same training with another batch size" in _output("sweep", batches / "b8" / "fp32")


def test_of_a_run_the_newest_session_and_its_last_cycle_count(tmp_path: Path) -> None:
    profile = read_profiles(next((RECORDED / "mlp" / "fp32").glob("events*")))[0].profile
    for session, cycle in (("1-b", 0), ("1-b", 1), ("0-a", 5)):
        write_profile(tmp_path / "run", replace(profile, source=replace(profile.source, session=session, cycle=cycle)))
    page = json.loads(_output("runs", tmp_path, "--format", "json"))
    assert [row["ref"] for row in page["rows"]] == [{"run": "run", "session": "1-b", "rank": 0, "cycle": 1}]
    assert page["headline"].startswith("One run: record another one")


def test_a_damaged_run_costs_the_others_nothing(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "mlp", tmp_path / "mlp")
    broken = next((tmp_path / "mlp" / "tf32").glob("events*"))
    broken.write_bytes(broken.read_bytes()[:-100])
    result = CliRunner().invoke(app, ["runs", str(tmp_path), "--format", "json"])
    page = json.loads(result.stdout)
    assert (len(page["rows"]), page["done"], [failed["run"] for failed in page["failed"]]) == (3, 4, ["mlp/tf32"])
    assert "mlp/tf32 cannot be shown" in result.stderr


def test_without_any_run_it_says_what_to_do(tmp_path: Path) -> None:
    assert "holds no profile; record one" in _failure("runs", tmp_path)
    assert "does not exist" in _failure("sweep", tmp_path / "nothing")
    assert "'xml' is not one of 'text', 'json', 'csv'" in _failure("runs", tmp_path, "--format", "xml")
