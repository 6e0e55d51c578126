"""Event files below a log directory, and the `ProfileStore` over them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.event_file import EventBlob, event_files, read_blobs
from tb_dlprof_plugin.store.profile_store import ProfileStore
from tb_dlprof_plugin.store.remote_copies import path_here


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """A profile and the file it was read from."""

    path: Path
    profile: Profile


class _EventFiles:
    def __init__(self, runs: Mapping[str, Sequence[Path]]) -> None:
        self._runs = runs

    def blobs(self, runs: Collection[str] | None = None) -> Iterator[EventBlob]:
        for run, files in self._runs.items():
            if runs is None or run in runs:
                for file in files:
                    yield from read_blobs(file, run)


class EventFileStore(ProfileStore[EventBlob]):
    """The profiles in event files, given by the name of their run.

    Listing them, which every method does, raises ProfileError where a file is damaged. Errors name the file.
    """

    def __init__(self, runs: Mapping[str, Sequence[Path]]) -> None:
        super().__init__(_EventFiles(runs))

    def profile(self, blob: EventBlob) -> Profile:
        """The profile itself, which is not kept.

        Raises:
            ProfileError: it is damaged.
        """
        try:
            return super().profile(blob)
        except ProfileError as error:
            raise ProfileError(f"{blob.path}: {error}.") from None


def files_below(path: str | os.PathLike[str]) -> list[Path]:
    """Our event files below a logdir, by path; the path itself where it is a file.

    Raises:
        ProfileError: the path does not exist.
    """
    root = path_here(path)
    if not root.exists():
        raise ProfileError(no_such_path(root))
    return [root] if root.is_file() else event_files(root)


def no_such_path(path: Path) -> str:
    """The sentence about a path that does not exist."""
    from tb_dlprof_plugin.model.near_names import did_you_mean
    from tb_dlprof_plugin.store.near_paths import near_paths

    return f"{path} does not exist; {did_you_mean(near_paths(path)) or 'give a logdir, a run or an event file.'}"


def runs_below(path: str | os.PathLike[str]) -> dict[str, list[Path]]:
    """`files_below` by run, named as TensorBoard names it.

    Raises:
        ProfileError: the path does not exist.
    """
    root = path_here(path)
    folders: dict[Path, list[Path]] = {}
    for file in files_below(root):
        folders.setdefault(file.parent, []).append(file)
    runs: dict[str, list[Path]] = {}
    for folder, files in folders.items():
        runs.setdefault(_run_name(root, folder), []).extend(files)
    return runs


def read_profiles(logdir: str | os.PathLike[str]) -> list[StoredProfile]:
    """All profiles under a logdir (or in one event file), by path, each with today's verdicts.

    Event files of other writers are passed over.

    Raises:
        ProfileError: the path does not exist, or one of our event files cannot be read.
    """
    store = EventFileStore(runs_below(logdir))
    return [StoredProfile(blob.path, store.profile(blob)) for blob in store.all()]


def _run_name(root: Path, folder: Path) -> str:
    """The run of a folder's event files, as TensorBoard names it; of a logdir that is a run, its directory's name."""
    name = folder.relative_to(root).as_posix() if root.is_dir() else "."
    return folder.resolve().name if name == "." else name
