"""Summaries next to profiles: what they give back, and when the profile is asked instead."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.pages import stored_summary
from tb_dlprof_plugin.pages.recorded_run import RecordedRun, recorded_run
from tb_dlprof_plugin.pages.stored_summary import decode_summary, encode_summary, write_summarized_run
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store import event_file
from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.logdir import EventFileStore, read_profiles, runs_below
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
REF = RunRef("a/b", "s1", 0, 0)


def _recorded(run: Path, ref: RunRef = REF) -> RecordedRun:
    view = ProfileView(read_profiles(run)[0].profile)
    return recorded_run(view, ref, view.selection())


@pytest.mark.parametrize("run", ["lenet/fp32", "mlp/amp-bf16", "custom/tf32"])
def test_a_written_run_holds_what_its_profile_says(run: str, tmp_path: Path) -> None:
    write_summarized_run(tmp_path / "run", read_profiles(RECORDED / run)[0].profile)
    (blob,) = EventFileStore(runs_below(tmp_path)).all()
    summary = blob.read_summary()
    assert summary is not None
    assert len(summary) < 5_000
    assert decode_summary(summary, blob.ref) == _recorded(tmp_path / "run", blob.ref)


def test_a_profile_is_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Profile] = []
    for module in (stored_summary, event_file):
        monkeypatch.setattr(module, "encode", lambda profile: encoded.append(profile) or encode(profile))
    write_summarized_run(tmp_path / "run", read_profiles(RECORDED / "lenet" / "fp32")[0].profile)
    assert len(encoded) == 1


def test_it_is_the_runs_under_whatever_name_it_has_now() -> None:
    summary = encode_summary(_recorded(RECORDED / "lenet" / "fp32"))
    moved = decode_summary(summary, RunRef("moved", "s1", 0, 0))
    assert moved is not None
    assert (moved.ref.run, moved.run.name) == ("moved", "moved")


def test_other_code_asks_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = encode_summary(_recorded(RECORDED / "lenet" / "fp32"))
    monkeypatch.setattr(stored_summary, "code_version", lambda: "another")
    assert decode_summary(summary, REF) is None


@pytest.fixture(scope="module")
def stored() -> bytes:
    """The JSON of a summary."""
    return gzip.decompress(encode_summary(_recorded(RECORDED / "lenet" / "fp32")))


@pytest.mark.parametrize(
    "summary",
    [
        b"",
        b"no gzip",
        gzip.compress(b"no JSON", mtime=0),
        gzip.compress(b"[" * 100_000, mtime=0),
        gzip.compress(b'{"code_version": "' + b"x" * 3_000_000, mtime=0),
    ],
)
def test_what_no_summary_is_is_none(summary: bytes) -> None:
    assert decode_summary(summary, REF) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: stored["figures"].update(iterations=0),
        lambda stored: stored["figures"].update(iteration_ns=[], iterations=0),
        lambda stored: stored["figures"].update(iteration_ns=[-1] * stored["figures"]["iterations"]),
        lambda stored: stored["figures"]["step"].update(ns=-5.0),
        lambda stored: stored["figures"]["step"].update(ns=1e300),
        lambda stored: stored["figures"]["step"].update(source="guessed"),
        lambda stored: stored["figures"].update(setup=None),
        lambda stored: stored.update(advice=[{"rule": 3}]),
    ],
)
def test_what_no_run_has_is_none(stored: bytes, change: Callable[[Any], object]) -> None:
    document = json.loads(stored)
    change(document)
    assert decode_summary(gzip.compress(json.dumps(document).encode(), mtime=0), REF) is None


def test_a_run_is_written_where_its_summary_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a rule")

    monkeypatch.setattr(stored_summary, "recorded_run", fail)
    profile = read_profiles(RECORDED / "lenet" / "fp32")[0].profile
    write_summarized_run(tmp_path / "run", profile)
    (blob,) = EventFileStore(runs_below(tmp_path)).all()
    assert blob.read_summary() is None
    assert len(read_profiles(tmp_path)) == 1
