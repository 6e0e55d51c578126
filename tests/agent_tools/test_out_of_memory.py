"""The tool and the route that read a failed allocation in a run's directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from tb_dlprof_plugin.agent_tools.reply import ToolFailure
from tb_dlprof_plugin.agent_tools.tools import Tools
from tb_dlprof_plugin.model.out_of_memory import SUMMARY_NAME
from tests.planning.memory.test_smallest_change import DATA, failure, planned


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    shutil.copytree(DATA / "held_out" / "bert" / "base", tmp_path / "bert")
    return tmp_path


def test_a_failure_of_a_run_is_read_with_what_would_have_fitted(logdir: Path) -> None:
    found = failure(planned("held_out/bert"))
    (logdir / "bert" / SUMMARY_NAME.format(stem="rank0.x")).write_bytes(msgspec.json.encode(found))
    reply = Tools(logdir).out_of_memory("bert")
    assert reply.answer.startswith("Too much is held: ")
    assert {figure.name: figure.value for figure in reply.figures}["limit"] == found.limit
    assert any("--accumulate" in row["command"] for row in reply.rows)


def test_a_run_without_a_failure_says_so(logdir: Path) -> None:
    with pytest.raises(ToolFailure, match="no failed allocation"):
        Tools(logdir).out_of_memory("bert")


def test_a_link_and_a_damaged_file_are_none(logdir: Path) -> None:
    (logdir / "outside.json").write_bytes(msgspec.json.encode(failure(planned("held_out/bert"))))
    (logdir / "bert" / SUMMARY_NAME.format(stem="link")).symlink_to(logdir / "outside.json")
    with pytest.raises(ToolFailure, match="no failed allocation"):
        Tools(logdir).out_of_memory("bert")
    (logdir / "bert" / SUMMARY_NAME.format(stem="damaged")).write_text("{")
    with pytest.raises(ToolFailure, match="no failed allocation"):
        Tools(logdir).out_of_memory("bert")
