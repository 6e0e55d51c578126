"""The Runs page over recorded runs: table, base, comparison by a click, models before and after, sweeps."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.tensorboard import PAGE_MS, RECORDED, Server, Watched, holding

from tb_dlprof_plugin.pages.by_model import by_model_page
from tb_dlprof_plugin.pages.recorded_run import recorded_run
from tb_dlprof_plugin.pages.runs import many_runs_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef

MODELS = ("mlp", "alexnet")
RUNS = 4 * len(MODELS)


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models in four precisions."""
    root = tmp_path_factory.mktemp("runs")
    for model in MODELS:
        shutil.copytree(RECORDED / model, root / model)
    return root


def test_the_runs_page_holds_all_runs_against_their_bases(
    serve: Callable[[Path, int], Server], watched: Watched, logdir: Path
) -> None:
    runs = []
    for stored in sorted(read_profiles(logdir), key=lambda stored: str(stored.path)):
        frame = ProfileView(stored.profile)
        ref = RunRef(stored.path.parent.relative_to(logdir).as_posix(), "", 0, 0)
        runs.append(recorded_run(frame, ref, frame.selection()))
    expected = many_runs_page(runs)
    address = f"{serve(logdir, RUNS).page_alone}#tb_dlprof&p.tb_dlprof.page=runs"
    frame = watched.page
    frame.goto(address)

    expect(frame.get_by_test_id("headline")).to_have_text(expected.headline, timeout=PAGE_MS)
    expect(frame.get_by_test_id("run-bars").get_by_role("listitem")).to_have_count(RUNS)
    # A scale for each model.
    expect(frame.get_by_test_id("model-bars")).to_have_count(len(MODELS))
    for group in frame.get_by_test_id("model-bars").all():
        expect(group.locator(".run-bar").first).to_have_attribute("style", re.compile(r"width: 100%"))
    table = frame.get_by_test_id("runs-table")
    expect(table.locator("tbody tr")).to_have_count(RUNS)
    expect(table.locator("tbody tr").first).to_contain_text("FP32 to AMP BF16")

    frame.get_by_test_id("runs-base").select_option("mlp/tf32")
    expect(table.locator("tbody tr").first).to_contain_text("mlp/tf32")
    expect(watched.page).to_have_url(holding("p.tb_dlprof.base=mlp"))

    # A run's name opens its comparison with the base.
    table.get_by_role("button", name="alexnet/amp-bf16").click()
    expect(frame.get_by_test_id("compare-base-run-picker")).to_have_value("mlp/tf32", timeout=PAGE_MS)
    expect(frame.get_by_test_id("compare-candidate-run-picker")).to_have_value("alexnet/amp-bf16")

    frame.goto("about:blank")
    frame.goto(f"{address}&p.tb_dlprof.runs=models")
    models = frame.get_by_test_id("by-model-table")
    expect(models.locator("tbody tr")).to_have_count(len(MODELS), timeout=PAGE_MS)
    for row in by_model_page(runs).rows:
        expect(frame.get_by_test_id("by-model-next")).to_contain_text(row.recommendation)

    frame.get_by_test_id("nav-runs-sweep").click()
    expect(frame.get_by_test_id("headline")).to_contain_text("Step time over model", timeout=PAGE_MS)
    expect(frame.get_by_test_id("sweep-chart").locator(".chart > svg")).to_be_visible(timeout=PAGE_MS)
    frame.get_by_test_id("sweep-measure").select_option("share")
    expect(frame.get_by_test_id("headline")).to_contain_text("convolutions, all over model")
    frame.get_by_test_id("sweep-share").select_option("op:linear backward")
    expect(frame.get_by_test_id("headline")).to_contain_text("linear, backward")
    frame.get_by_test_id("sweep-over").select_option("precision")
    expect(frame.get_by_test_id("headline")).to_contain_text("over precision")
    watched.nothing_went_wrong()
