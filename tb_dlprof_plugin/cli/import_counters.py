"""Adds the counters of Nsight Compute to the profiles of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tb_dlprof_plugin.analysis.measured_kernels import counters_of_launches
from tb_dlprof_plugin.model.profile import KernelKind, Profile
from tb_dlprof_plugin.pages.stored_summary import write_run
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.ncu.counters_file import as_columns, read_counters
from tb_dlprof_plugin.readers.ncu.measured_launch import MeasuredLaunch
from tb_dlprof_plugin.store.event_file import event_files
from tb_dlprof_plugin.store.logdir import read_profiles


@dataclass(frozen=True, slots=True)
class Joined:
    """A profile with counters: its new event file, how many of its kernel launches have counters, and their share of
    the kernel time."""

    path: Path
    profile: Profile
    launches: int
    percent: float


def add_counters(folder: Path, files: Sequence[Path]) -> list[Joined]:
    """Write each profile of a run again, with the counters in place of those that it had.

    Raises:
        TraceError: a file holds no counters, or the run no profile that has a kernel of them.
        ProfileError: a profile of the run cannot be read.
        OSError: the run cannot be written.
    """
    measured = [launch for file in files for launch in read_counters(file)]
    before = [path for path in event_files(folder) if path.parent == folder] if folder.is_dir() else []
    if not before:
        raise TraceError(f"{folder} holds no profile that the counters could belong to; name a run with --run.")
    stored = [(path, one.profile) for path in before for one in read_profiles(path)]
    joined = [_with_counters(profile, measured) for _, profile in stored]
    if not any(launches for _, launches, _ in joined):
        raise TraceError(
            f"no kernel of {', '.join(map(str, files))} is in {folder}: name the run of the same program, or let ncu "
            "print full names (--print-kernel-base demangled)."
        )
    result = [Joined(write_run(folder, profile), profile, launches, percent) for profile, launches, percent in joined]
    for path in before:
        path.unlink()
    return result


def _with_counters(profile: Profile, measured: list[MeasuredLaunch]) -> tuple[Profile, int, float]:
    strings = list(profile.strings)
    counters = as_columns(measured, strings)
    result = replace(profile, strings=strings, kernel_counters=counters)
    launches = result.launches
    row = counters_of_launches(counters, result.kernels, launches, result.launch_configs, strings)
    is_kernel = result.kernels.kind[launches.kernel] == KernelKind.KERNEL
    whole = int(launches.duration_ns[is_kernel].sum())
    known = int(launches.duration_ns[row >= 0].sum())
    return result, int((row >= 0).sum()), 100.0 * known / whole if whole else 0.0
