"""A training that goes on: what it records shows when TensorBoard reloads, without the page being loaded again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from e2e.conftest import BOTH_LOADERS
from playwright.sync_api import expect
from support.tensorboard import OF_TENSORBOARD, PAGE_MS, RECORDED, Server, Watched, holding

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles


def _record(folder: Path, cycle: int, precision: str) -> None:
    """What a training's hook writes at the end of a cycle; each precision has other times."""
    (stored,) = read_profiles(RECORDED / "mlp" / precision)
    profile: Profile = stored.profile
    source = dataclasses.replace(profile.source, session="training", cycle=cycle)
    write_profile(folder, dataclasses.replace(profile, source=source))


@OF_TENSORBOARD
@BOTH_LOADERS
def test_new_cycles_and_runs_show_on_reload_and_nothing_is_lost(
    serve: Callable[[Path, int], Server], watched: Watched, tmp_path: Path
) -> None:
    _record(tmp_path / "mlp", 0, "fp32")
    server = serve(tmp_path, 1)
    page = watched.page

    def reload_after(written: Callable[[dict[str, list[int]]], bool]) -> None:
        """TensorBoard's own button, once its loader has read what was written."""

        def loaded() -> bool:
            index = server.get("runs")
            assert isinstance(index, dict)
            return written({entry["run"]: entry["cycles"] for entry in index["runs"]})

        for _ in range(150):
            if loaded():
                break
            page.wait_for_timeout(200)
        page.locator("app-header-reload button").click()

    page.goto(f"{server.url}#tb_dlprof&p.tb_dlprof.page=ops")
    frame = page.frame_locator("iframe")
    table = frame.get_by_test_id("ops-table")
    table.get_by_role("button", name="fc2/linear").first.click(timeout=PAGE_MS)
    expect(frame.get_by_test_id("op-detail")).to_contain_text("fc2/linear", timeout=PAGE_MS)
    before = frame.get_by_test_id("headline").inner_text()
    first_row = table.locator("tbody tr").first.inner_text()
    page.frames[1].evaluate("window.stays = true")

    _record(tmp_path / "mlp", 1, "amp-bf16")
    reload_after(lambda runs: runs["mlp"] == [0, 1])
    expect(frame.get_by_test_id("news")).to_contain_text(
        "Cycle 1 of mlp was recorded; the page follows", timeout=PAGE_MS
    )
    expect(frame.get_by_test_id("cycle-picker")).to_have_value("")
    expect(table.locator("tbody tr").first).not_to_have_text(first_row)
    expect(table.locator("tr.selected")).to_contain_text("fc2/linear")
    expect(frame.get_by_test_id("op-detail")).to_contain_text("fc2/linear")

    # One that was chosen stays, and the way to the latest is offered.
    frame.get_by_test_id("cycle-picker").select_option("0")
    expect(frame.get_by_test_id("headline")).to_have_text(before)
    _record(tmp_path / "mlp", 2, "tf32")
    _record(tmp_path / "other", 0, "fp32")
    reload_after(lambda runs: runs["mlp"] == [0, 1, 2] and "other" in runs)
    expect(frame.get_by_test_id("news")).to_contain_text("The one that you chose stays.", timeout=PAGE_MS)
    expect(frame.get_by_test_id("headline")).to_have_text(before)
    expect(page).to_have_url(holding("p.tb_dlprof.cycle=0"))
    expect(frame.get_by_test_id("news-run")).to_have_text("other")
    frame.get_by_test_id("news-follow").click()
    expect(frame.get_by_test_id("cycle-picker").locator("option:checked")).to_have_text("latest (2)")
    expect(frame.get_by_test_id("news")).to_have_count(0)
    expect(page).not_to_have_url(holding("cycle"))
    assert page.frames[1].evaluate("window.stays") is True
    watched.nothing_went_wrong()
