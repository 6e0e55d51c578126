"""The run or file that was meant by a path that does not exist."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb_dlprof_plugin.store import near_paths as module
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.logdir import files_below
from tb_dlprof_plugin.store.near_paths import near_paths


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    for name in (
        "resnet50/fp32/events.out.tfevents.1.tb_dlprof",
        "vgg16/fp32/a.pt.trace.json.gz",
        "resnet51/notes.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("resnet5/fp32", ["resnet50/fp32"]),
        ("resnet5", ["resnet50"]),
        ("resnet50/fp23", ["resnet50/fp32"]),
        ("vgg/fp32/a.pt.trace.json.gz", ["vgg16/fp32/a.pt.trace.json.gz"]),
        ("vgg16/fp32/b.pt.trace.json.gz", ["vgg16/fp32/a.pt.trace.json.gz"]),
        ("something/else", []),
        ("vgg16/fp32/a.pt.trace.json.gz/fp32", []),
    ],
)
def test_only_what_holds_recordings_is_offered(logdir: Path, typed: str, meant: list[str]) -> None:
    assert near_paths(logdir / typed) == [str(logdir / name) for name in meant]


def test_the_error_asks_for_the_nearest_or_says_what_to_give(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logdir)
    with pytest.raises(ProfileError, match=r"^resnet5/fp32 does not exist; did you mean resnet50/fp32\?$"):
        files_below("resnet5/fp32")
    with pytest.raises(ProfileError, match=r"^else does not exist; give a logdir, a run or an event file\.$"):
        files_below("else")


def test_a_large_directory_is_not_searched_for_long(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[object] = []
    scan = os.scandir
    monkeypatch.setattr(module.os, "scandir", lambda place: listed.append(place) or scan(place))
    monkeypatch.setattr(module, "_MOST_ENTRIES", 2)
    assert near_paths(logdir / "resnet5") == []
    assert len(listed) == 1
