"""Imports what the profilers of JAX and TensorFlow wrote for ``tb-dlprof run``.

The files stay below the run's directory, where the Profile tab (xprof) finds them, too.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.capture.launcher.protocol import RECORDING, ProcessStatus
from tb_dlprof_plugin.fleet.run_writer import write_run
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.log_directory import ENDINGS, SESSIONS
from tb_dlprof_plugin.store.run_files import entry_named


def import_recordings(processes: Sequence[ProcessStatus], run_directory: Path, session: str) -> list[str]:
    """Write the profiles of all processes that JAX' or TensorFlow's profiler recorded; a sentence for each failure."""
    folders = [(process, folder) for process in processes if (folder := _folder_of(process, run_directory)) is not None]
    recorded = [(process, folder) for process, folder in folders if process.phase == "recorded"]
    failures = []
    target = _unused(run_directory.joinpath(*SESSIONS), run_directory.name)
    named = [
        (process, file) for process, folder in recorded for file in _kept(process, folder, target, len(recorded) > 1)
    ]
    if recorded and not named:
        failures.append("The profiler wrote no file: the script's own messages may say why.")
    for process, file in named:
        try:
            profiles = analyze_ranks(file, session=session)
            for profile in profiles:
                facts = msgspec.structs.replace(
                    profile.facts, unprofiled_before_ns=process.before_ns, unprofiled_after_ns=process.after_ns
                )
                write_run(run_directory, replace(profile, facts=facts))
        except (TraceError, OSError) as error:
            command = f"tb-dlprof import {shlex.quote(str(file))} --logdir {shlex.quote(str(run_directory.parent))}"
            failures.append(f"The profile of {file} was not written: {error} Run `{command}`.")
    for _, folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return failures


def _folder_of(process: ProcessStatus, run_directory: Path) -> Path | None:
    """Where its profiler wrote; None where no folder of a recording has that name."""
    folder = entry_named(run_directory, process.folder) if process.folder else None
    return folder if folder is not None and folder.name.startswith(RECORDING) else None


def _unused(folder: Path, name: str) -> Path:
    """A session of that name, or with a number: the sessions that are there stay as they are."""
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(folder / one for one in names if not os.path.lexists(folder / one))


def _kept(process: ProcessStatus, folder: Path, target: Path, several: bool) -> list[Path]:
    """Moves the files of a process to where the Profile tab looks for them; of several processes by their ranks."""
    found = sorted(file for ending in ENDINGS for file in folder.rglob(f"*{ending}"))
    kept = []
    for file in found:
        name = f"rank{process.rank:05d}.{file.name}" if several else file.name
        target.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            os.replace(file, target / name)
            kept.append(target / name)
    return kept
