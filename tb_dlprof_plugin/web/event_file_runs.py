"""The profiles in event files below a directory, as TensorBoard lists them; each listing finds new files."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tb_dlprof_plugin.model.visible import visible
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.event_file import PlacedProfile, event_files, placed_in
from tb_dlprof_plugin.store.tags import Tag
from tb_dlprof_plugin.web.run_source import Series

_log = logging.getLogger(__name__)

_Version = tuple[int, int, int]
"""Inode, size and time of the last change of a file."""


@dataclass(frozen=True, slots=True)
class _FileBlob(StoredBlob):
    path: Path
    placed: PlacedProfile

    def read(self) -> bytes:
        return self._read(self.placed.blob)

    def read_facts(self) -> bytes | None:
        return None if self.placed.facts is None else self._read(self.placed.facts)

    def _read(self, place: slice) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(place.start)
                data = file.read(place.stop - place.start)
        except OSError as error:
            raise ProfileError(f"its event file cannot be read ({error.strerror}); press Refresh") from None
        if len(data) != place.stop - place.start:
            raise ProfileError("its event file was cut short meanwhile; press Refresh")
        return data


class EventFileRuns:
    """A `web.run_source.RunSource` over a directory, or over one event file.

    Each file is read once, and again where it changed. One that cannot be read is named in the log and left out, as
    TensorBoard does. Safe to call from several threads.
    """

    def __init__(self, root: Path, only: Path | None = None) -> None:
        self._root, self._only = root, only
        self._known: dict[Path, tuple[_Version, list[PlacedProfile]]] = {}
        self._lock = threading.Lock()

    def series(self) -> list[Series]:
        """What is stored; no profile is read."""
        headers: dict[tuple[str, str, int], bytes] = {}
        for blob in self._blobs():
            # That of the first, as TensorBoard keeps it.
            headers.setdefault((blob.ref.run, blob.ref.session, blob.ref.rank), blob.placed.header)
        return [Series(run, Tag(session, rank), header) for (run, session, rank), header in headers.items()]

    def blobs(self, runs: Collection[str] | None = None) -> list[StoredBlob]:
        """The profiles of these runs, or of all; none is decoded."""
        return [blob for blob in self._blobs() if runs is None or blob.ref.run in runs]

    def _blobs(self) -> Iterator[_FileBlob]:
        with self._lock:
            files = event_files(self._root) if self._only is None else [self._only]
            placed = {file: known for file in files if (known := self._placed(file)) is not None}
            self._known = placed
        for path, (version, profiles) in placed.items():
            for one in profiles:
                yield _FileBlob(one.ref, (one.key, version), path, one)

    def _placed(self, file: Path) -> tuple[_Version, list[PlacedProfile]] | None:
        try:
            status = os.stat(file)
        except OSError:
            return None  # It was removed meanwhile.
        version = (status.st_ino, status.st_size, status.st_mtime_ns)
        known = self._known.get(file)
        if known is not None and known[0] == version:
            return known
        try:
            # A logdir that is a run itself is called ".", as in TensorBoard.
            return version, placed_in(file, file.parent.relative_to(self._root).as_posix())
        except ProfileError as error:
            _log.warning("%s", visible(str(error)))
            return version, []
