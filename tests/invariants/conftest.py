"""The recordings that are checked.

Recorded traces of every kind (`tests/traces`), the demo's recorded event files, the literal traces of the tests, and,
where ``TB_DLPROF_TRACES`` names directories (separated as in PATH), every trace below them. All but `SHORT` and those
of that variable are marked ``long``.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from invariants.properties import NotRecorded
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
SHORT = {
    # Each torch version, with another kind of file that its profiler wrote on the CPU.
    "torch_1_9_cpu_legacy", "torch_1_12_cpu_stack", "torch_1_13_cpu_user_ranges", "torch_2_1_cpu_loader",
    "torch_2_4_cpu_events_export", "torch_2_8_cpu_training", "cpu_all_options", "cpu_script",
    # On a GPU: eager, graphs, compiled, other threads, streams, GPUs and ranks; options on and off.
    "cuda_training", "all_options", "cuda_graph", "cuda_only", "data_parallel", "hook_amp_bf16", "legacy_cuda",
    "nccl_rank0", "no_external_ids", "no_steps", "sync_events", "threads", "torch_compile", "two_streams",
    # Event files with a light window and without, and literal traces.
    "mlp-fp32", "lenet-amp-fp16", "literal-fp16", "literal-cpu",
}  # fmt: skip
"""What ``make test`` checks: one at least of each torch version, kind of recording, GPU or none, and kind of file."""
LITERALS = ("fp32", "tf32", "fp16", "cpu")
_SUFFIXES = (".json", ".json.gz")
_BESIDE_RECORDINGS = (".key_averages.json.gz", "expected.json")
"""What lies next to recordings and is none: torch's averages, what a database must become."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A profile and, where it comes from a trace that is valid JSON, the trace read a second time."""

    name: str
    path: Path
    profile: Profile
    view: ProfileView

    @cached_property
    def raw(self) -> RawTrace:
        """The trace; `NotRecorded` where it cannot be had."""
        found = read_raw(self.path) if self.path.name.endswith(_SUFFIXES) else None
        if found is None:
            raise NotRecorded("no trace that the standard library reads")
        return found

    @cached_property
    def averages(self) -> dict[str, Any]:
        """Torch's own averages of the same recording."""
        return _read_averages(self.path)

    def has_note(self, *codes: str) -> bool:
        """Whether the reader noted one of these about the file."""
        return any(note.code in codes for note in self.profile.notes)


def _averages_of(path: Path) -> Path:
    """The file next to a trace that holds torch's averages."""
    name = path.name.removesuffix(".gz").removesuffix(".pt.trace.json")
    return path.with_name(f"{name}.key_averages.json.gz")


def _read_averages(trace: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(_averages_of(trace).read_bytes()))
    return found


def _has_exact_averages(trace: Path) -> bool:
    """Up to version 2.3 torch wrote whole microseconds, rounds them otherwise in its rows, and nests by them."""
    if not _averages_of(trace).exists():
        return False
    version = _read_averages(trace)["recorded"]["torch"]
    return tuple(int(part) for part in version.split(".")[:2]) >= (2, 4)


def _below(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.rglob("*") if path.name.endswith(_SUFFIXES))
    return [path for path in files if not path.name.endswith(_BESIDE_RECORDINGS)]


def _sources() -> dict[str, Path | str]:
    found: dict[str, Path | str] = {f"literal-{name}": name for name in LITERALS}
    for path in _below(TRACES):
        if path.name not in NOTHING_RECORDED:
            name = path.name.split(".")[0]
            assert name not in found, f"two recordings are named {name}"
            found[name] = path
    for path in sorted(RECORDED.rglob("*.tb_dlprof")):
        found["-".join(path.relative_to(RECORDED).parts[:-1])] = path
    for folder in filter(None, os.environ.get("TB_DLPROF_TRACES", "").split(os.pathsep)):
        found |= {str(path.relative_to(folder)): path for path in _below(Path(folder))}
    return found


def _parameter(name: str) -> ParameterSet:
    foreign = isinstance(source := _SOURCES[name], Path) and ROOT not in source.parents
    return pytest.param(name, marks=() if foreign or name in SHORT else pytest.mark.long, id=name)


_SOURCES = _sources()
AVERAGED = [
    _parameter(name) for name, source in _SOURCES.items() if isinstance(source, Path) and _has_exact_averages(source)
]
"""Parameters for the fixture `recording`: those with torch's own averages in nanoseconds."""


@pytest.fixture(scope="session", params=[_parameter(name) for name in _SOURCES])
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
