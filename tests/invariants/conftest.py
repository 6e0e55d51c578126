"""The recordings that the accounts are held against.

Recorded traces of every kind (`tests/traces`), the demo's recorded event files, the literal traces of the tests, and,
where ``TB_DLPROF_TRACES`` names directories (separated as in PATH), every trace below them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from invariants.raw import RawTrace, read_raw

import tb_dlprof_plugin
from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "tests" / "traces"
RECORDED = ROOT / "demo" / "recorded"
NOTHING_RECORDED = {"cpu_empty.pt.trace.json.gz"}
"""Traces without a training step, which are refused."""
LITERALS = ("fp32", "tf32", "fp16", "cpu")
_SUFFIXES = (".json", ".json.gz")


@dataclass(frozen=True)
class Recording:
    """A profile and, where it comes from a trace that is valid JSON, the trace read a second time."""

    name: str
    path: Path
    profile: Profile
    view: ProfileView

    @cached_property
    def raw(self) -> RawTrace:
        """The trace; the test is skipped where it cannot be had."""
        found = read_raw(self.path) if self.path.name.endswith(_SUFFIXES) else None
        if found is None:
            pytest.skip("no trace that the standard library reads")
        return found

    @cached_property
    def averages(self) -> dict[str, Any]:
        """Torch's own averages of the same recording; the test is skipped where there are none."""
        name = self.path.name.removesuffix(".gz").removesuffix(".pt.trace.json")
        beside = self.path.with_name(f"{name}.key_averages.json")
        if not beside.exists():
            pytest.skip("no averages were recorded beside it")
        found: dict[str, Any] = json.loads(beside.read_text())
        return found

    def has_note(self, *codes: str) -> bool:
        """Whether the reader noted one of these about the file."""
        return any(note.code in codes for note in self.profile.notes)


def _below(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.rglob("*") if path.name.endswith(_SUFFIXES))
    return [path for path in files if not path.name.endswith(".key_averages.json")]


def _sources() -> dict[str, Path | str]:
    found: dict[str, Path | str] = {f"literal-{name}": name for name in LITERALS}
    found |= {path.name.split(".")[0]: path for path in _below(TRACES) if path.name not in NOTHING_RECORDED}
    for path in sorted(RECORDED.rglob("*.tb_dlprof")):
        found["-".join(path.relative_to(RECORDED).parts[:-1])] = path
    for folder in filter(None, os.environ.get("TB_DLPROF_TRACES", "").split(os.pathsep)):
        found |= {str(path.relative_to(folder)): path for path in _below(Path(folder))}
    return found


_SOURCES = _sources()


@pytest.fixture(scope="module", params=_SOURCES, ids=lambda name: name)
def recording(request: pytest.FixtureRequest) -> Recording:
    """One recording after the other."""
    name: str = request.param
    source = _SOURCES[name]
    if isinstance(source, str):
        source = _literal(request, source)
    if not source.name.endswith(_SUFFIXES):
        (stored,) = tb_dlprof_plugin.read_profiles(source.parent)
        return Recording(name, source, stored.profile, ProfileView(stored.profile))
    try:
        profile = analyze_trace(source)
    except TraceError as error:
        if TRACES in source.parents:
            raise
        pytest.skip(str(error))
    return Recording(name, source, profile, ProfileView(profile))


def _literal(request: pytest.FixtureRequest, name: str) -> Path:
    if name == "cpu":
        written: Path = request.getfixturevalue("cpu_trace").write()
        return written
    make: Callable[..., Any] = request.getfixturevalue("training")
    path: Path = make(name).write()
    return path


def selections(view: ProfileView) -> list[Any]:
    """All iterations, each alone, and the later half."""
    count = len(view.profile.iterations)
    alone = [view.selection(index, index) for index in range(count)]
    return [view.selection(), view.selection(count // 2, count - 1), *alone]
