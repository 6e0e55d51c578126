"""Recordings in archives that are small enough to travel: traces are compressed with xz, which takes less than half.

python -m lab.ranks.archives unpack DIRECTORY ARCHIVE ...     # back as they were, traces gzip'd
"""

from __future__ import annotations

import argparse
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from .subjects import BARE, Subject

ARCHIVE_BYTES = 15 << 20
ARCHIVES = 2
"""Of each kind; what does not fit is left out, traces before event files and of the last jobs first."""
_GZIP, _XZ = ".json.gz", ".json.xz"


def pack(recordings: Path, folder: Path, subjects: Sequence[Subject]) -> list[str]:
    """Archives of the jobs in their order, held out ones apart; names of the files that found no room."""
    folder.mkdir(parents=True, exist_ok=True)
    left_out = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for held_out in (False, True):
            files = [
                path
                for subject in subjects
                if subject.held_out == held_out
                for folder_of in (recordings / subject.name, recordings / BARE / subject.name)
                for path in sorted(folder_of.glob("*"))
                if path.is_file() and not path.name.startswith(".")
            ]
            # A stable order: traces last, each kind in the order of the jobs.
            files.sort(key=lambda path: path.name.endswith(_GZIP))
            members: list[list[tuple[str, bytes]]] = [[] for _ in range(ARCHIVES)]
            room = [ARCHIVE_BYTES] * ARCHIVES
            for name, content in pool.map(_member, files, [recordings] * len(files)):
                taken = len(content) + 1024
                at = next((index for index, free in enumerate(room) if free >= taken), None)
                if at is None:
                    left_out.append(name)
                    continue
                room[at] -= taken
                members[at].append((name, content))
            label = "held_out" if held_out else "dev"
            for index, inside in enumerate(members):
                if inside:
                    _write(folder / f"{label}_{index}.tar", inside)
    return left_out


def unpack(folder: Path, archives: list[Path]) -> None:
    """Writes what the archives hold to ``folder``."""
    for archive in archives:
        with tarfile.open(archive) as opened:
            for member in opened.getmembers():
                file = opened.extractfile(member)
                if file is None:
                    continue
                path, content = folder / member.name, file.read()
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.name.endswith(_XZ):
                    path = path.with_name(path.name.removesuffix(_XZ) + _GZIP)
                    content = gzip.compress(lzma.decompress(content), 6, mtime=0)
                path.write_bytes(content)


def _member(path: Path, recordings: Path) -> tuple[str, bytes]:
    name, content = str(path.relative_to(recordings)), path.read_bytes()
    if name.endswith(_GZIP):
        return name.removesuffix(_GZIP) + _XZ, lzma.compress(gzip.decompress(content))
    return name, content


def _write(path: Path, members: list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("unpack",))
    parser.add_argument("folder", type=Path)
    parser.add_argument("archives", type=Path, nargs="+")
    given = parser.parse_args()
    unpack(given.folder, given.archives)


if __name__ == "__main__":
    main()
