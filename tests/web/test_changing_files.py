"""Event files that are replaced, cut and removed while a real TensorBoard serves them.

Other runs do not notice, and each answer is a page or a sentence.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.store.event_file import write_profile

PAGES = ("overview", "ops", "kernels", "advice", "memory")


@pytest.mark.parametrize(
    "load_fast",
    [pytest.param(True, id="rust loader"), pytest.param(False, id="python loader", marks=pytest.mark.long)],
)
def test_runs_are_served_while_files_of_another_change(
    start_tensorboard: Callable[..., Any], profiles: dict[str, Profile], tmp_path: Path, load_fast: bool
) -> None:
    logdir = tmp_path / "logs"
    kept = write_profile(logdir / "kept", profiles["fp32"])
    changing = write_profile(logdir / "changing", profiles["fp16"])
    contents = [changing.read_bytes(), kept.read_bytes()]
    server = start_tensorboard(logdir, load_fast=load_fast)
    server.wait_for(lambda: {one["run"] for one in server.page("runs")[1]["runs"]} == {"kept", "changing"})
    expected = {page: server.page(page, run="kept") for page in PAGES}
    assert {status for status, _ in expected.values()} == {200}
    source = random.Random(1)
    for turn in range(30):
        content = source.choice(contents)
        content = content[: source.randrange(len(content))] if source.random() < 0.5 else content
        if source.random() < 0.2:
            changing.unlink(missing_ok=True)
        elif source.random() < 0.5:
            # In place, as a copy over the network does; else at once.
            changing.write_bytes(content)
        else:
            (tmp_path / "new").write_bytes(content)
            os.replace(tmp_path / "new", changing)
        page = PAGES[turn % len(PAGES)]
        status, answer = server.page(page, run="changing")
        assert status == 200 or (status in (404, 422) and answer["error"].endswith((".", "…"))), answer
        assert server.page(page, run="kept") == expected[page]
        assert server.page("runs")[0] == 200
    write_profile(logdir / "changing", profiles["fp32"])
    server.wait_for(lambda: server.page("overview", run="changing")[0] == 200)
    # No traceback goes through our code.
    assert "tb_dlprof_plugin/" not in "".join(server.log)
