"""A logdir with runs that cannot be shown: the page says why, and shows the others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from e2e.conftest import BOTH_LOADERS
from playwright.sync_api import expect
from support.tensorboard import BY_VIEW, PAGE_MS, RECORDED, Server, Watched, address

from tb_dlprof_plugin.store import event_file
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles

ODD = '"a\\b'
"""A name that TensorBoard's fast loader lists and cannot read."""


@BOTH_LOADERS
def test_a_broken_run_and_an_odd_name_have_their_message_and_leave_the_others_alone(
    serve: Callable[[Path, int], Server],
    watched: Watched,
    tmp_path: Path,
    load_fast: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for source, name in (("fp32", ODD), ("fp32", "x"), ("amp-fp16", "y")):
        shutil.copytree(RECORDED / "lenet" / source, tmp_path / name)
    (stored,) = read_profiles(tmp_path / "x")
    whole = event_file.encode(stored.profile)
    # A valid event file around a profile that was cut: what a failing disk or a copy that ended early leaves.
    monkeypatch.setattr(event_file, "encode", lambda profile: whole[: len(whole) // 2])
    write_profile(tmp_path / "z_broken", stored.profile)
    server = serve(tmp_path, 4)

    page = watched.open(server, "compare")
    expect(page.get_by_test_id("compare-speedup")).to_be_visible(timeout=PAGE_MS)

    page.goto("about:blank")
    page.goto(server.page_alone + address("overview", run="z_broken"))
    expect(page.get_by_test_id("run-error")).to_contain_text("z_broken", timeout=PAGE_MS)
    page.get_by_test_id("run-picker").select_option("x")
    expect(page.get_by_test_id("overview-step-time")).to_be_visible(timeout=PAGE_MS)

    page.goto("about:blank")
    page.goto(server.page_alone + address("overview", run=quote(ODD)))
    if BY_VIEW or load_fast == "false":
        expect(page.get_by_test_id("overview-step-time")).to_be_visible(timeout=PAGE_MS)
    else:
        expect(page.get_by_test_id("run-error")).to_contain_text('rename its directory, for example to "_a_b"')
    assert watched.foreign == []
