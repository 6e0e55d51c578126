"""Names of runs with characters that JSON escapes: TensorBoard's fast loader lists such runs and cannot read them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.marks import long
from support.recorded_runs import ROOT

from tb_dlprof_plugin.web.loader_names import unreadable_name

RECORDED = ROOT / "demo" / "recorded"

ODD = ['aa"quote', "ab\\back", "ac\x01\x1b[31m", "ad\nline"]
FINE = ["ae\x7f", "af\u202e", "ag'<b>&%41#?", "zz"]


@pytest.mark.parametrize("load_fast", [True, long(False)], ids=["rust loader", "python loader"])
def test_one_such_run_says_what_to_do_and_leaves_the_others_alone(
    start_tensorboard: Callable[..., Any], tmp_path: Path, load_fast: bool
) -> None:
    for name in ODD + FINE:
        shutil.copytree(RECORDED / "lenet" / "fp32", tmp_path / name)
    server = start_tensorboard(tmp_path, load_fast=load_fast)
    server.wait_for(lambda: len(server.page("runs")[1]["runs"]) == len(ODD + FINE))

    unreadable = {entry["run"]: entry["unreadable"] for entry in server.page("runs")[1]["runs"]}
    table = _complete(server)
    assert unreadable == {name: unreadable_name(name) if load_fast else "" for name in ODD + FINE}
    assert [row["ref"]["run"] for row in table["rows"]] == (FINE if load_fast else ODD + FINE)
    assert [one["run"] for one in table["failed"]] == (ODD if load_fast else [])
    for name in ODD + FINE:
        status, page = server.page("overview", run=name)
        assert status == (422 if load_fast and name in ODD else 200), name
        if status == 422:
            assert "rename its directory" in page["error"]
            assert "--load_fast=false" in page["error"]


def _complete(server: Any) -> Any:
    while True:
        status, table = server.page("many_runs")
        assert status == 200
        if table["done"] == table["total"]:
            return table


def test_the_sentence_names_the_characters_and_a_name_without_them() -> None:
    assert unreadable_name('a"b\\c\x1bd"') == (
        "its name holds a quotation mark and a backslash and \\x1b, and TensorBoard's fast loader cannot read what is "
        'stored under such a name; rename its directory, for example to "a_b_c_d_", or start TensorBoard with '
        "--load_fast=false"
    )
    assert unreadable_name("a'b<c>/d é\u202e\x7f") == ""


def test_a_run_that_could_not_be_read_is_known_in_the_next_list(
    start_tensorboard: Callable[..., Any], tmp_path: Path, profiles: Any, damaged: Callable[[Path, Any], None]
) -> None:
    damaged(tmp_path / "a", next(iter(profiles.values())))
    server = start_tensorboard(tmp_path, load_fast=True)
    server.wait_for(lambda: len(server.page("runs")[1]["runs"]) == 1)
    before = server.page("runs")[1]
    assert server.page("overview", run="a")[0] == 422
    after = server.page("runs")[1]
    assert [entry["unreadable"] for entry in before["runs"]] == [""]
    assert "damaged" in after["runs"][0]["unreadable"]
    assert after["revision"] != before["revision"]
