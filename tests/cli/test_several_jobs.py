"""``tb-dlprof distributed --against`` and ``tb-dlprof scaling`` on recorded jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app

RANKS = Path(__file__).parents[2] / "tests" / "data" / "ranks"
EVEN, LATE = (str(RANKS / "held_out" / name) for name in ("images_even", "images_slow_host"))


def _run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_against_another_job_in_text_json_and_csv() -> None:
    code, text, _ = _run("distributed", LATE, "--against", EVEN)
    assert code == 0
    code, out, _ = _run("distributed", LATE, "--against", EVEN, "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert text.startswith(found["sentence"])
    assert found["sentence"].startswith("A step of images_slow_host takes ")
    assert sum(part["difference_ms"] for part in found["parts"]) == pytest.approx(found["difference_ms"])
    assert found["delays"][0]["what"] == "new"
    code, out, _ = _run("distributed", LATE, "--against", EVEN, "--format", "csv", "--table", "delays")
    assert code == 0
    assert out.splitlines()[0].startswith("what,cause,base_rank,rank,")


def test_fail_on_is_about_the_job_and_not_about_the_one_it_is_compared_with() -> None:
    assert _run("distributed", EVEN, "--against", LATE, "--fail-on", "straggler")[0] == 0
    assert _run("distributed", LATE, "--against", EVEN, "--fail-on", "straggler")[0] == 1


def test_scaling_says_what_it_does_not_know_and_refuses_jobs_of_one_size() -> None:
    run = str(RANKS.parents[2] / "demo" / "recorded" / "lenet" / "fp32")
    code, text, _ = _run("scaling", run, EVEN)
    assert code == 0
    assert "1 GPU" in text
    code, _, err = _run("scaling", LATE, EVEN)
    assert code != 0
    assert "scaling takes jobs on different numbers of GPUs" in err.replace("\n", " ")
