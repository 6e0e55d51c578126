"""Finds the profiles for an exported file in logdirs, runs, event files or traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.store.event_file import StoredBlob, read_blobs
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.store.ranks import ranks_together
from tb_dlprof_plugin.web.export import ExportedRun


def exported_run(name: str, files: Sequence[Path], rank: int | None, cycle: int | None) -> tuple[ExportedRun, str]:
    """A run's newest session, lowest rank and last cycle, or those that are given; and a note on the rest.

    ``files`` are its event files, or one trace.

    Raises:
        TraceError, ProfileError: a file cannot be read, or there is no such rank or cycle.
    """
    if "tfevents" not in files[0].name:
        return _of_trace(name, files[0]), ""
    stored = [blob for file in files for blob in read_blobs(file)]
    if not stored:
        raise ProfileError(f"{files[0].parent} holds event files without a profile; record the run again")
    fitting = [one for one in stored if rank in (None, one.tag.rank) and cycle in (None, one.cycle)]
    if not fitting:
        raise ProfileError(f"{files[0].parent} has no profile of that rank and cycle")
    chosen = max(fitting, key=lambda one: (one.tag.session, -one.tag.rank, one.cycle))
    same = {
        one.tag.rank: one.blob for one in stored if one.tag.session == chosen.tag.session and one.cycle == chosen.cycle
    }
    try:
        header = header_of(decode(chosen.blob)).SerializeToString()
    except ProfileError as error:
        raise ProfileError(f"{chosen.path}: {error}") from None
    ranks = {number: same[number] for number in {*ranks_together(same, chosen.tag.rank), chosen.tag.rank}}
    run = ExportedRun(name, chosen.tag.session, chosen.tag.rank, chosen.cycle, header, ranks)
    return run, _left_out(stored, chosen)


def _of_trace(name: str, path: Path) -> ExportedRun:
    with Progress(path) as progress:
        profile = analyze_trace(path, progress=progress.update)
    made_by = profile.source
    header = header_of(profile).SerializeToString()
    return ExportedRun(name, made_by.session, made_by.rank, made_by.cycle, header, {made_by.rank: encode(profile)})


def _left_out(stored: Sequence[StoredBlob], chosen: StoredBlob) -> str:
    """The profiles of the run that the file does not show, in words; "" if there are none."""
    of_session = [one for one in stored if one.tag.session == chosen.tag.session]
    counts = (
        (len({one.tag.session for one in stored}) - 1, "session", "sessions"),
        (len({one.tag.rank for one in of_session}) - 1, "rank", "ranks"),
        (len({one.cycle for one in of_session if one.tag.rank == chosen.tag.rank}) - 1, "cycle", "cycles"),
    )
    return ", ".join(f"{count} other {one if count == 1 else several}" for count, one, several in counts if count > 0)
