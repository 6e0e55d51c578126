"""Adds the counters of Nsight Compute to the profiles of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tb_dlprof_plugin.analysis.measured_kernels import counters_of_launches
from tb_dlprof_plugin.fleet.run_writer import write_runs
from tb_dlprof_plugin.model.profile import KernelKind, Profile
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.ncu.counters_file import as_columns, read_counters
from tb_dlprof_plugin.readers.ncu.measured_launch import MeasuredLaunch
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class JoinedCounters:
    """A profile with counters: its new event file, how many of its kernel launches have counters, and their share of
    the kernel time."""

    path: Path
    profile: Profile
    launches: int
    percent: float


def add_counters(run: RunFolder, files: Sequence[Path]) -> list[JoinedCounters]:
    """Write each profile of a run again, with the counters in place of those that it had.

    Raises:
        TraceError: a file holds no counters, or the run no profile that has a kernel of them.
        ProfileError: a profile of the run cannot be read.
        RunFolderError: another command writes the run, or it lies behind a link.
        OSError: the run cannot be written.
    """
    measured = [launch for file in files for launch in read_counters(file)]
    if not run.event_files():
        raise TraceError(f"{run.path} holds no profile that the counters could belong to; name a run with --run.")
    with run.locked():
        return _join(run, files, measured)


def _join(run: RunFolder, files: Sequence[Path], measured: list[MeasuredLaunch]) -> list[JoinedCounters]:
    before = run.event_files()
    joined = [_with_counters(one.profile, measured) for file in before for one in read_profiles(file.path)]
    if not any(launches for _, launches, _ in joined):
        raise TraceError(
            f"no kernel of {', '.join(map(str, files))} is in {run.path}: name the run of the same program, or let ncu "
            "print full names (--print-kernel-base demangled)."
        )
    paths, _ = run.replace(lambda: write_runs(run.path, [profile for profile, _, _ in joined]), before)
    return [JoinedCounters(path, *one) for path, one in zip(paths, joined, strict=True)]


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
