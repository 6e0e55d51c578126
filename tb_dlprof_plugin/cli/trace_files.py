"""The recordings that a user names by files and folders: which there are, and what an import says of them."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tb_dlprof_plugin.readers.registry import FORMATS, files_below, recording_of

_MOST_NAMED = 5


def trace_files(paths: Iterable[Path]) -> list[Path]:
    """Files as they are; of directories the traces in all formats that can be read.

    Raises:
        FileNotFoundError: a directory holds none; ``filename`` names it.
    """
    files: list[Path] = []
    for path in paths:
        inside = files_below(path) if path.is_dir() else [path]
        if not inside:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        files += inside
    return list(dict.fromkeys(files))


def folder_summary(
    named: Iterable[Path], files: Sequence[Path], formats: Iterable[str], failures: Mapping[Path, str]
) -> Iterator[str]:
    """Lines of text.

    Args:
        named: what the user named, directories among them.
        files: the recordings that were found.
        formats: of each profile that was written.
        failures: a sentence for each recording that could not be read.
    """
    read = len(files) - len(failures)
    counted = Counter(formats)
    kinds = ", ".join(f"{counted[one.NAME]} of {one.NAME}" for one in FORMATS if counted[one.NAME])
    profiles = f"; profiles: {kinds}" if kinds else ""
    yield f"{read} of {len(files)} recordings were read{profiles}."
    if failures:
        yield f"Not read, for the reasons above: {_names(failures)}."
    others = [one for folder in named if folder.is_dir() for one in _others(folder, set(files))]
    from tb_dlprof_plugin.readers.known_not_read import known_below

    known = known_below(others)
    for known_format, of_it in known.items():
        yield f"Not read: {known_format.what} ({_names(of_it)}); {known_format.instead(of_it[0])}."
    others = [one for one in others if not any(one in of_it for of_it in known.values())]
    if others:
        yield f"Not recordings by their names: {_names(others)}. Name one to have it read all the same."


def known_in(folder: Path) -> str:
    """What the first file below a directory of a known format is, and what to do; "" where there is none."""
    from tb_dlprof_plugin.readers.known_not_read import known_below

    for known, files in known_below(sorted(folder.rglob("*"))).items():
        return f"{_names(files)}: {known.what}, which tb-dlprof does not read; {known.instead(files[0])}"
    return ""


def _others(folder: Path, files: set[Path]) -> Iterator[Path]:
    for one in sorted(folder.rglob("*")):
        if one.name.startswith(".") or "tfevents" in one.name or one in files or not one.is_file():
            continue
        # Some recordings are several files, of which one stands for all.
        if not (one.name.endswith((".json", ".json.gz")) and recording_of(one) in files):
            yield one


def _names(files: Iterable[Path]) -> str:
    names = [one.name for one in files]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
