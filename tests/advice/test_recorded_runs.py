"""What holds for the advice of every recorded run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.marks import short_of
from support.recorded_runs import DEMO, PAIRS, ROOT

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.basis import basis
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.store.logdir import read_profiles

PLANTED = ROOT / "tests" / "data" / "planted"
RUNS = sorted({path.parent for root in (DEMO, PAIRS, PLANTED) for path in root.rglob("*tfevents*")})
SHORT = {
    *(f"demo/recorded/{run}" for run in ("mlp/fp32", "lenet/amp-fp16", "custom/amp-bf16", "resnet50/fp32")),
    *(f"tests/data/precision_pairs/{run}" for run in ("transformers/gpt2/fp32", "timm/mixer_s16_224/tf32")),
    *(f"tests/data/planted/{run}/fault" for run in ("dataloader_bound", "communication_bound", "small_kernels")),
}


def name_of(run: Path) -> str:
    return str(run.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("run", short_of(RUNS, SHORT, name_of), ids=name_of)
def test_no_saving_is_above_the_step_and_the_replay_is_near_the_recording(run: Path) -> None:
    for stored in read_profiles(run):
        view = ProfileView(stored.profile)
        selection = view.selection()
        step = step_estimate(view, selection)
        assert 0 < step.low_ns <= step.ns <= step.high_ns
        advice = advise(view, selection)
        savings = [found.saving for found in advice.findings if found.saving is not None]
        if advice.combined is not None:
            savings.append(advice.combined)
            assert advice.combined.expected_ns >= max(saving.expected_ns for saving in savings[:-1])
        for saving in savings:
            assert saving.low_ns <= saving.expected_ns <= saving.high_ns <= step.ns + 1
        off = basis(view, selection).off_percent
        assert off is None or abs(off) < 3
