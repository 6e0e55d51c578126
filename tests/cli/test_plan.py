"""`tb-dlprof plan` on a recorded MLP: text, JSON, and the exit status for CI."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin import read_profiles
from tb_dlprof_plugin.cli.main import app
from tests.planning.memory.test_recorded_step import MLP
from tests.support.recorded_runs import DEMO

WITHOUT_MEMORY = DEMO / "lenet" / "fp32"


def run(*arguments: str, source: object = MLP) -> tuple[int, str]:
    """Exit status and output."""
    done = CliRunner().invoke(app, ["plan", str(source), *arguments])
    return done.exit_code, done.output


def plan(*arguments: str, source: object = MLP) -> dict:
    """The JSON."""
    code, text = run(*arguments, "--format", "json", source=source)
    assert code == 0, text
    found: dict = json.loads(text)
    return found


def test_the_json_has_what_a_script_asks_for() -> None:
    found = plan("--batch-size", "16384", "--gpu", "A100 40GB")
    wanted = (
        "peak_allocated_mb peak_reserved_mb low_mb high_mb smallest_limit_mb fits largest_batch step_ms "
        "samples_per_second joules_per_step assumptions"
    )
    assert set(wanted.split()) <= set(found)
    assert found["fits"] is True
    assert found["low_mb"] <= found["peak_reserved_mb"] <= found["high_mb"]
    assert found["peak_allocated_mb"] == pytest.approx(2 * 720, rel=0.2)
    assert found["joules_per_step"] is None
    assert set(found["unknown"]) >= {"joules_per_step"}
    # Tables are answered where they are asked for.
    assert found["gpus"] == found["batches"] == []
    asked = plan("--also", "gpus")
    assert [row["verdict"] for row in asked["gpus"]] == ["fits"] * len(asked["gpus"])
    assert asked["gpus"]
    code, table = run("--format", "csv")
    assert code == 0
    assert table.startswith("gpu,batch_size")


def test_the_text_names_the_verdict_and_the_tables() -> None:
    code, text = run("--optimizer", "adamw", "--layers", "0=2", "--also", "all")
    assert code == 0
    assert text.startswith("Fits into ")
    assert "\\n" not in text
    for words in ("Largest batch", "Checkpointed", "Assumed:", "unknown: Step, "):
        assert words in text


@pytest.mark.parametrize(("memory", "status"), [("80GB", 0), ("1GiB", 3)])
def test_a_ci_gate_fails_where_it_does_not_fit(memory: str, status: int) -> None:
    assert run("--memory", memory, "--batch-size", "65536", "--fail-if-not-fits")[0] == status


def test_what_was_not_recorded_is_null_with_the_reason_and_does_not_pass_the_gate() -> None:
    found = plan(source=WITHOUT_MEMORY)
    assert found["peak_reserved_mb"] is None
    assert "profile_memory=True" in found["unknown"]["peak_reserved_mb"]
    # No batch fits where no memory is known, and what is unknown has the names of the tables.
    assert found["largest_batch"] is None
    # The headline has the reason for most; it is said once.
    assert "profile_memory=True" in found["headline"]
    assert found["reasons"][0].startswith("Energy per step: ")
    assert "profile_memory=True" not in "".join(found["reasons"])
    assert not any("_" in reason.split(": ")[0] for reason in found["reasons"])
    assert run("--fail-if-not-fits", source=WITHOUT_MEMORY)[0] == 3


def test_auto_checkpoints_only_where_it_does_not_fit_without() -> None:
    sets = plan("--also", "checkpoints")["checkpoints"]
    assert plan("--checkpoint", "auto")["peak_allocated_mb"] == sets[0]["peak_allocated_mb"]
    tight = plan("--checkpoint", "auto", "--memory", "1300MiB", "--batch-size", "9000")
    assert tight["peak_allocated_mb"] <= plan("--batch-size", "9000")["peak_allocated_mb"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--checkpoint", "head"), "head"),
        (("--layers", "three"), "--layers takes NAME=N, not 'three'."),
        (("--memory", "much"), "--memory takes a size with its unit, such as 24GiB"),
        (("--gpu", "Radeon"), "not known"),
        (("--also", "colours"), "--also takes all, or some of batches, gpus"),
    ],
)
def test_a_wrong_option_says_what_is_right(arguments: tuple[str, ...], why: str) -> None:
    code, text = run(*arguments)
    assert code == 1 or code == 2
    assert why in text


def test_python_has_the_same_plan() -> None:
    found = read_profiles(MLP)[0].plan(batch_size=16384, gpu="A100 40GB")
    assert (
        json.loads(found.to_json())["peak_reserved_mb"]
        == plan("--batch-size", "16384", "--gpu", "A100 40GB")["peak_reserved_mb"]
    )


def test_reserved_memory_of_earlier_steps_is_named_where_the_step_is_as_recorded() -> None:
    gpt = MLP.parents[2] / "energy" / "recorded" / "gpt" / "fp32"
    sentence = "The run had 14.0 GiB reserved"
    assert sentence in "".join(plan(source=gpt)["assumptions"])
    assert sentence not in "".join(plan("--batch-size", "64", source=gpt)["assumptions"])
