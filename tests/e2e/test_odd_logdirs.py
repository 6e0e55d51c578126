"""Logdirs that hold nothing, or something broken: the page says so and shows the rest."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from e2e.conftest import BOTH_LOADERS
from playwright.sync_api import expect
from support.tensorboard import RECORDED, Server, Watched

from tb_dlprof_plugin.store import event_file
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles

_PAGE_MS = 30_000


def test_an_empty_logdir_shows_how_to_start(
    shared: Callable[[str, str], Server], load_fast: str, watched: Watched
) -> None:
    watched.page.goto(shared("none", load_fast).page_alone)
    expect(watched.page.get_by_test_id("empty-state")).to_be_visible(timeout=_PAGE_MS)
    expect(watched.page.get_by_test_id("empty-state")).to_contain_text("tb_dlprof_plugin.profile")
    assert watched.foreign == []


@BOTH_LOADERS
def test_a_broken_run_shows_its_message_and_leaves_the_others_alone(
    serve: Callable[[Path, int], Server], watched: Watched, tmp_path: Path, monkeypatch
) -> None:
    (stored,) = read_profiles(RECORDED / "lenet" / "fp32")
    shutil.copytree(RECORDED / "lenet" / "fp32", tmp_path / "good")
    whole = event_file.encode(stored.profile)
    # A valid event file around a profile that was cut: what a failing disk or a copy that ended early leaves.
    monkeypatch.setattr(event_file, "encode", lambda profile: whole[: len(whole) // 2])
    write_profile(tmp_path / "broken", stored.profile)
    server = serve(tmp_path, 2)

    frame = watched.page
    frame.goto(f"{server.page_alone}#tb_dlprof&p.tb_dlprof.run=broken")
    expect(frame.get_by_test_id("run-error")).to_be_visible(timeout=_PAGE_MS)
    expect(frame.get_by_test_id("run-error")).to_contain_text("broken")

    frame.get_by_test_id("run-picker").select_option("good")
    expect(frame.get_by_test_id("overview-step-time")).to_be_visible(timeout=_PAGE_MS)
    assert watched.foreign == []


@BOTH_LOADERS
def test_a_name_that_the_fast_loader_cannot_read_leaves_compare_and_the_others_alone(
    serve: Callable[[Path, int], Server], watched: Watched, tmp_path: Path, load_fast: str
) -> None:
    odd = '"a\\b'
    for source, name in (("fp32", odd), ("fp32", "x"), ("amp-fp16", "y")):
        shutil.copytree(RECORDED / "lenet" / source, tmp_path / name)
    server = serve(tmp_path, 3)

    page = watched.page
    page.goto(f"{server.page_alone}#tb_dlprof&p.tb_dlprof.page=compare")
    expect(page.get_by_test_id("compare-speedup")).to_be_visible(timeout=_PAGE_MS)
    page.goto("about:blank")
    page.goto(f"{server.page_alone}#tb_dlprof&p.tb_dlprof.run={quote(odd)}")
    if load_fast == "false":
        expect(page.get_by_test_id("overview-step-time")).to_be_visible(timeout=_PAGE_MS)
    else:
        expect(page.get_by_test_id("run-error")).to_contain_text('rename its directory, for example to "_a_b"')
    assert watched.foreign == []
