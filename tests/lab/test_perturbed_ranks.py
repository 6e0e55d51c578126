"""Recordings of two H200s that are worse than they were: the right rank and cause stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.ranks.perturbed import CHANGES, Score, profiles_of
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job_files import read_job

FOLDER = Path(__file__).parents[2] / "tests" / "data" / "ranks" / "recorded" / "ddp_slow_host"


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_answers_stay_right_and_accounts_add_up(name: str) -> None:
    score = Score()
    changed = CHANGES[name](profiles_of(FOLDER), np.random.default_rng(0))
    score.count(FOLDER, changed, job_of(read_job([FOLDER]).facts))
    assert score.adding_up == score.jobs == 1
    assert (score.first, score.planted) == ((0, 0) if changed.missing else (1, 1))
    assert score.silent == score.even == int(changed.missing)
    assert score.clock_us < 10


def test_each_change_changes_what_it_is_about() -> None:
    profiles = profiles_of(FOLDER)
    facts = {name: change(profiles, np.random.default_rng(0)).facts for name, change in CHANGES.items()}
    before = facts["as recorded"]
    calls = [len(one.collectives) for one in before]
    assert sorted(len(one.collectives) for one in facts["5 % of a rank's calls lost"]) == [min(calls) - 2, max(calls)]
    assert len(facts["a rank missing"]) == 1
    assert [one.base_ns for one in facts["clocks up to 5 ms apart, drifting"]] != [one.base_ns for one in before]
    varied = facts["durations vary by 5 %"][0].collectives.duration_ns
    assert 0.01 < float(np.std(varied / before[0].collectives.duration_ns)) < 0.1
    assert not any(one.groups for one in facts["NCCL's old names, no process groups"])
